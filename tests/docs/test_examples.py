"""The examples of the documentation: run, and compared with what the pages say they print."""

from __future__ import annotations

import contextlib
import doctest
import io
import re
from pathlib import Path

import pytest

import funnel

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^```.*$", re.MULTILINE)
PROGRAM = re.compile(r"^```python\n(.*?)^```\n+^```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", ["docs/side-channels.md"])
def test_prompts_answer_as_printed(page: str) -> None:
    # A fence would be taken for a part of the answer above it.
    text = FENCE.sub("", (ROOT / page).read_text(encoding="utf-8"))
    examples = doctest.DocTestParser().get_doctest(text, {}, page, page, 0)
    assert examples.examples, f"{page} has no prompts"
    failures: list[str] = []
    doctest.DocTestRunner(verbose=False).run(examples, out=failures.append)
    assert not failures, "".join(failures)


def test_the_program_of_the_readme_prints_what_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    found = PROGRAM.search((ROOT / "README.md").read_text(encoding="utf-8"))
    assert found, "README.md has no program followed by what it prints"
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(found[1], "README.md", "exec"), {"__name__": "readme"})
    assert printed.getvalue() == found[2]


@pytest.mark.parametrize("page", ["README.md", "docs/tutorial.md"])
def test_plans_on_pages_list_every_mechanism(page: str) -> None:
    """Of one bound and of several."""
    tables = re.findall(
        r"^mechanism  .*\n((?:[a-z-]+  .*\n)+)", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE
    )
    assert len(tables) == 2
    for table in tables:
        assert sorted(line.split()[0] for line in table.splitlines()) == sorted(funnel.mechanisms.names())


def test_the_readme_counts_the_mechanisms() -> None:
    numbers = {16: "Sixteen", 17: "Seventeen", 18: "Eighteen"}
    assert f"{numbers[len(funnel.mechanisms.names())]}\nmechanisms are compared" in (ROOT / "README.md").read_text(
        "utf-8"
    )
