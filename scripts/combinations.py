"""The page of all combinations of settings: which ones are released, and in one sentence why the others are refused.

`python scripts/combinations.py` writes ``docs/combinations.md`` from the rules that a spec is held against.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from string import ascii_uppercase

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.combinations import (  # noqa: E402
    COMBINATIONS,
    GUARANTEES,
    ONE,
    OTHERS,
    PEOPLE,
    PROTECTIONS,
    UTILITIES,
    WIDTHS,
    Combination,
)

PAGE = ROOT / "docs" / "combinations.md"
COSTS = ROOT / "benchmarks" / "results" / "combination-costs.json"
# Where it is proven that nobody can build something, or what is known of it, by words of the refusal.
THEOREMS = {
    "sees where a record of the same people goes on": "[theorem](history-theorems.md#followed-donors)",
    "adds up for an observer": "[theorem, and what is left](history-theorems.md#a-published-secret-over-versions)",
    "as the noisy tables say": "[figures](history-theorems.md#values-as-they-are-in-rows-of-a-unit)",
    "how many rows a person has": "[figures without noise](history-theorems.md#observers-who-know-columns-of-one-row)",
}
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
unchanged; `srlip` of whole records names `[groups] known`, or is for any columns (`known = "single"`, `"pairs"`), with
`lip`, with `rlip` where `held_out` names a part of the records, or, where the secret is published, with `attribute`.
What each costs is [below](#what-is-kept).
"""
_COSTS = """## What is kept

`python -m benchmarks.combination_costs` releases combinations in one channel on real tables and reads the public report
of the last version: under *unchanged* the share of records unchanged, else the share of the information in the
published columns that is kept. One version is Adult (48,842 records), marital status and sex given income; versions
about the same people are two waves of a health panel (3,000 people in each), kids and married given outwork; under
units a third of these people have two rows. {measured:,} of the {accepted:,} accepted combinations were measured; a
dash stands for a combination that is refused, or was not measured.
"""
_REASONS = """## Reasons

A dash stands for the guarantee of the spec. A theorem says what no such release could do; a combination of which there
are figures alone is refused because it is not there yet.
"""


def reason(refusal: str) -> str:
    """A refusal without the guarantee that it is about."""
    return _GUARANTEE.sub('"–"', refusal, count=1)


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
    lines += costs(cells)
    lines.append(_REASONS)
    unused = set(THEOREMS)
    for text, letter in reasons.items():
        theorem = ""
        for words, place in THEOREMS.items():
            if words in text:
                unused.discard(words)
                theorem = f" ({place})"
        lines.append(f"- **{letter}.** {text}{theorem}.")
    if unused:
        raise ValueError(f"nothing is refused any more because of {unused.pop()!r}")
    return "\n".join([*lines, ""])


def costs(cells: dict[Combination, str]) -> list[str]:
    """What was measured of the combinations that are released: a table for each kind of people.

    Raises
    ------
    ValueError
        If something was measured that is not released.
    """
    shares: dict[str, float] = json.loads(COSTS.read_text(encoding="utf-8"))
    accepted = {
        str(one): one for one, cell in cells.items() if cell == "yes" and one.width == ONE and one.people != OTHERS
    }
    if unknown := [name for name in shares if name not in accepted]:
        raise ValueError(f"{unknown[0]} was measured and is not released; run python -m benchmarks.combination_costs")
    found = {accepted[name]: f"{100 * share:.1f} %" for name, share in shares.items()}
    lines = [_COSTS.format(measured=len(found), accepted=len(accepted))]
    for people in PEOPLE:
        of_people = {one: found.get(one, "–") for one in cells if one.width == ONE and one.people == people}
        if any(share != "–" for share in of_people.values()):
            measured = [
                str(one) for one in GUARANTEES if any(c.guarantee == str(one) for c in found if c.people == people)
            ]
            lines += [f"### {people.capitalize()}", "", table(of_people, ONE, people, measured), ""]
    return lines


def table(cells: dict[Combination, str], width: str, people: str, guarantees: Sequence[str] | None = None) -> str:
    """One table: a row for guarantees that go with the same, a column for each protection and utility."""
    columns = list(product(PROTECTIONS, UTILITIES))
    lines = [
        "| | " + " | ".join(f"{protection}, {utility}" for protection, utility in columns) + " |",
        "| --- |" + " --- |" * len(columns),
    ]
    alike: dict[str, list[str]] = {}
    for guarantee in map(str, GUARANTEES) if guarantees is None else guarantees:
        row = (cells[Combination(width, people, protection, guarantee, utility)] for protection, utility in columns)
        alike.setdefault(" | ".join(row), []).append(f"`{guarantee.partition(':')[0]}`")
    lines += [f"| {', '.join(kinds)} | {row} |" for row, kinds in alike.items()]
    return "\n".join(lines)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
