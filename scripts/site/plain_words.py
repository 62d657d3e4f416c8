"""Private words on pages stop the build: each has a standard term (docs/glossary.md) that readers of the field know."""

from __future__ import annotations

import re

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page

# What stands for each: the reason is in the message, so that an author need not look elsewhere.
TERMS = {
    "whoever": "an observer who …, anyone who …",
    "whom": "a relative clause with its own subject",
    "nobody": "no one, no person, no record",
    "somebody": "a person",
    "foreseen": "predicted",
    "handouts?": "release documentation",
    "complaints?": "validation error",
    "vaults?": "secret store",
    "chapters?": "version state",
    "makers?": "training split, or the code that makes a release",
    "provers?": "validation split",
    "besides?": "next to, side information",
    "outlooks?": "status, forecast",
    "recount(?:s|ed)?": "independent recomputation",
    "judge[sd]?": "validate, check",
}
_WORD = re.compile(r"\b(?:" + "|".join(TERMS) + r")\b", re.IGNORECASE)
# Blocks, code, addresses and tags are no prose; the map of modules is made of the code.
_NO_PROSE = re.compile(
    r"^( *)```.*?^\1```$|<!-- map:.*?<!-- end of map -->|`[^`]+`|\]\([^)]*\)|<[^>]*>", re.MULTILINE | re.DOTALL
)


def private_words(markdown: str) -> list[tuple[int, str, str]]:
    """Line, word, and the standard term, of every private word in the prose of a page."""
    prose = _NO_PROSE.sub(lambda found: "\n" * found[0].count("\n") or " ", markdown)
    return [
        (prose.count("\n", 0, found.start()) + 1, found[0], _term(found[0].lower())) for found in _WORD.finditer(prose)
    ]


def _term(word: str) -> str:
    return next(term for pattern, term in TERMS.items() if re.fullmatch(pattern, word))


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> None:
    """Refuse a page of the guides, the method or the project that has one; decisions are records of their time."""
    source = page.file.src_uri
    if source.startswith(("decisions/", "project/", "reference/", "papers/")):
        return
    if found := private_words(markdown):
        said = "; ".join(f"line {line}: {word!r}, write {term}" for line, word, term in found)
        raise PluginError(f"docs/{source} has private words: {said}")
