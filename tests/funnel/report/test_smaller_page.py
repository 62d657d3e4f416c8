"""A page is made smaller without anything a browser shows: indents, and rules of style for what is not in it."""

from __future__ import annotations

from pathlib import Path

import pytest

import funnel.report
from funnel.report.page import smaller

_STYLES = Path(funnel.report.__file__).parent / "templates"


def _page(style: str, body: str) -> str:
    return f"<html>\n<head>\n<style>\n{style}\n</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"


def _style(page: str) -> str:
    return page.split("<style>")[1].split("</style>")[0].strip()


@pytest.mark.parametrize(
    ("rule", "is_kept"),
    [
        (":root{--ink: black;}", True),
        ("*{margin: 0;}", True),
        ("p{margin: 0;}", True),
        ("table{margin: 0;}", False),
        (".there{margin: 0;}", True),
        (".gone{margin: 0;}", False),
        ("p.there > b#one:hover::after{margin: 0;}", True),
        ("p.there > i{margin: 0;}", False),
        ("p:not(.gone, :has(table:nth-child(2), i)){margin: 0;}", True),
        ('p[title="a, b"]{margin: 0;}', True),
        ("@page{margin: 2cm;}", True),
        ("@media print{.gone{margin: 0;}}", False),
        ("@media print{p{margin: 0;}}", True),
    ],
)
def test_rules_stay_where_something_is_that_they_may_be_about(rule: str, is_kept: bool) -> None:
    made = smaller(_page(rule, '<p class="other there"><b id="one">x</b></p>'))
    assert _style(made) == (rule.replace("margin: ", "margin:").replace("ink: ", "ink:") if is_kept else "")


def test_of_several_selectors_those_stay_that_mean_something() -> None:
    style = "/* a } comment */ i, .there,  b.gone { margin: 0; }\nb { margin: 1px; }"
    made = smaller(_page(style, '<p class="there"><b>x</b></p>'))
    assert _style(made).splitlines() == [".there{margin:0;}", "b{margin:1px;}"]


def test_texts_keep_their_spaces_and_what_is_preformatted_its_lines() -> None:
    body = "    <p>\n      one\n      two  <b>three</b>\n    </p>\n    <pre>a\n    b</pre>\n      <p>x</p>"
    made = smaller(_page("p { margin: 0; }", body))
    assert (
        made.split("<body>\n")[1]
        == "<p>\none\ntwo  <b>three</b>\n</p>\n<pre>a\n    b</pre>\n<p>x</p>\n</body>\n</html>\n"
    )
    assert smaller(made) == made


@pytest.mark.parametrize("name", ["page.css", "plan.css"])
def test_our_styles_have_as_many_braces_closed_as_opened(name: str) -> None:
    style = (_STYLES / name).read_text(encoding="utf-8")
    depth = [0]
    for character in style:
        depth.append(depth[-1] + (character == "{") - (character == "}"))
    assert (min(depth), depth[-1]) == (0, 0)
