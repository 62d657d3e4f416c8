"""The build of the site stops at private words in prose, and at none in code, addresses, decisions or the map."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from mkdocs.exceptions import PluginError

ROOT = Path(__file__).parents[2]
_SPEC = importlib.util.spec_from_file_location("plain_words", ROOT / "scripts" / "site" / "plain_words.py")
assert _SPEC is not None
assert _SPEC.loader is not None
plain_words: Any = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(plain_words)


def built(markdown: str, source: str = "guides/steward.md") -> None:
    page = SimpleNamespace(file=SimpleNamespace(src_uri=source))
    plain_words.on_page_markdown(markdown, page, None, None)


def test_the_build_runs_the_check() -> None:
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    hooks = text[text.index("hooks:") : text.index("plugins:")]
    assert "scripts/site/plain_words.py" in yaml.safe_load(hooks)["hooks"]


@pytest.mark.parametrize(
    ("word", "term"),
    [
        ("Nobody", "no one"),
        ("whoever", "an observer"),
        ("judged", "validate"),
        ("recounts", "independent recomputation"),
    ],
)
def test_a_private_word_stops_the_build_with_its_line_and_its_term(word: str, term: str) -> None:
    with pytest.raises(PluginError, match=rf"docs/guides/steward.md has private words: line 3: '{word}', write {term}"):
        built(f"# A page\n\nOf what {word} reads.\n")


def test_every_word_of_the_list_is_found() -> None:
    for pattern in plain_words.TERMS:
        whole = pattern.replace("s?", "s").replace("(?:s|ed)?", "ed").replace("[sd]?", "d")
        assert [found for _, found, _ in plain_words.private_words(f"a {whole} b")] == [whole]


@pytest.mark.parametrize(
    "prose",
    [
        "```console\n$ funnel says nobody\n```\n",
        "`nobody`",
        "[a page](whoever.md)",
        "<!-- map: python x -->\n| nobody |\n<!-- end of map -->",
        "somebodies, a chaptered book, anybody",
    ],
)
def test_code_addresses_the_map_and_other_words_are_left_alone(prose: str) -> None:
    built(prose)


def test_decisions_are_records_of_their_time() -> None:
    built("Nobody asked.", "decisions/0003-no-redraw-unasked.md")
    with pytest.raises(PluginError):
        built("Nobody asked.", "history.md")
