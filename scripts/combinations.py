"""The page of all combinations of settings: which ones are released, and in one sentence why the others are refused.

`python scripts/combinations.py` writes ``docs/combinations.md`` from the rules that a spec is held against.
"""

from __future__ import annotations

import re
import sys
from itertools import product
from pathlib import Path
from string import ascii_uppercase

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.combinations import (  # noqa: E402
    COMBINATIONS,
    GUARANTEES,
    PEOPLE,
    PROTECTIONS,
    UTILITIES,
    WIDTHS,
    Combination,
)

PAGE = ROOT / "docs" / "combinations.md"
# Why something is refused that nobody can build, by words of the refusal.
THEOREMS = {"would see whose records are their own": "history-theorems.md#whole-records"}
_GUARANTEE = re.compile(r'"[a-z0-9]+(-[a-z]+)?:[^"]*"')
_HEAD = """# What goes with what

For publishers. Every combination of the people of successive versions, the protection of frequencies, guarantee and
mechanism, as one channel over the published columns and as whole records by class. `python scripts/combinations.py`
makes this page from the rules that every spec is held against. A test compares {number:,} specs with it, and releases
some of those that are accepted.

| here | in a spec |
| --- | --- |
| one channel | `publish` names few columns |
| whole records | `publish` names many columns; `[groups] classes` names a file of classes |
| one version | no `[history]` |
| different people, same people | `[history] people = "different"` or `"same"` |
| units | `unit`, with `people = "same"`; rows with secrets of their own without noise, and with `secrets = "all"` |
| none, threshold, noise | `[frequencies] protection` |
| unchanged | `mechanism = "invariant"`, which leaves most records as they are |
| information | `mechanism = "auto"`, the most information; whole records are drawn as under *unchanged* |
| estimation | `utility = "estimation"`, the least errors of shares |

**Released: {released:,} of {number:,}.** A cell is "yes", or the letters of the [reasons](#reasons) for which the spec
is refused when it is read, before a source is opened. `attribute` publishes the secret as well where most records are
unchanged; `srlip` of whole records names `[groups] known`.
"""
_REASONS = """## Reasons

A dash stands for the guarantee of the spec. A reason with a theorem says that no such release could keep its bound; any
other combination is refused because it is not there yet.
"""


def reason(refusal: str) -> str:
    """A refusal without the guarantee that it is about."""
    return _GUARANTEE.sub('"–"', refusal)


def page() -> str:
    """All of it."""
    found = {one: one.refusals for one in COMBINATIONS}
    reasons: dict[str, str] = {}
    for refusals in found.values():
        for refusal in refusals:
            reasons.setdefault(reason(refusal), ascii_uppercase[len(reasons)])
    cells = {
        one: " ".join(sorted({reasons[reason(refusal)] for refusal in refusals})) or "yes"
        for one, refusals in found.items()
    }
    released = sum(not refusals for refusals in found.values())
    lines = [_HEAD.format(number=len(found), released=released)]
    for width in WIDTHS:
        alike: dict[str, list[str]] = {}
        for people in PEOPLE:
            alike.setdefault(table(cells, width, people), []).append(people)
        for rows, whose in alike.items():
            lines += [f"## {width.capitalize()}: {', '.join(whose)}", "", rows, ""]
    lines.append(_REASONS)
    unused = set(THEOREMS)
    for text, letter in reasons.items():
        theorem = ""
        for words, place in THEOREMS.items():
            if words in text:
                unused.discard(words)
                theorem = f" ([theorem]({place}))"
        lines.append(f"- **{letter}.** {text}{theorem}.")
    if unused:
        raise ValueError(f"nothing is refused any more because of {unused.pop()!r}")
    return "\n".join([*lines, ""])


def table(cells: dict[Combination, str], width: str, people: str) -> str:
    """One table: a row for guarantees that go with the same, a column for each protection and utility."""
    columns = list(product(PROTECTIONS, UTILITIES))
    lines = [
        "| | " + " | ".join(f"{protection}, {utility}" for protection, utility in columns) + " |",
        "| --- |" + " --- |" * len(columns),
    ]
    alike: dict[str, list[str]] = {}
    for guarantee in map(str, GUARANTEES):
        row = (cells[Combination(width, people, protection, guarantee, utility)] for protection, utility in columns)
        alike.setdefault(" | ".join(row), []).append(f"`{guarantee.partition(':')[0]}`")
    lines += [f"| {', '.join(kinds)} | {row} |" for row, kinds in alike.items()]
    return "\n".join(lines)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
