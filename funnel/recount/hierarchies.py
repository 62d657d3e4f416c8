"""Hierarchies: the groups of values that tables of levels come to, read a second time."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

from funnel.recount.source import recount, source_columns
from funnel.spec import ReleaseSpec

# What a spec has to say, and what is not about its levels.
_ASKED = {
    "name": "levels",
    "title": "Levels",
    "guarantee": "ldp:1.0",
    "metadata": {"licence": "none"},
    "frequencies": {"protection": "none"},
}
_NOTHING = "(missing)"


def hierarchy_complaints(spec: ReleaseSpec) -> Iterator[str]:
    """In what a spec groups values otherwise than the tables of levels that its text names, as parts of sentences.

    Parameters
    ----------
    spec : ReleaseSpec
        With the groups that were made of these tables.

    Raises
    ------
    DataError
        If a table cannot be read.
    """
    for column, told in tomllib.loads(spec.text).get("recode", {}).items():
        if not isinstance(told, Mapping) or "hierarchy" not in told:
            continue
        groups = spec.recode[column].groups or {}
        used = {value: group for group, values in groups.items() for value in values if value}
        again = _groups(told["hierarchy"], told["level"], spec)
        wrong = sum(used.get(value) != again.get(value) for value in {*used, *again})
        if wrong:
            yield f"group {wrong:,} values of {column} otherwise than the table of levels"


def _groups(told: Any, level: str, spec: ReleaseSpec) -> dict[str, str]:
    """The group of every value, by the readers that count sources a second time."""
    source = {"path": told} if isinstance(told, str) else dict(told)
    asked = {**_ASKED, "source": source, "secret": [level]}
    first = source_columns(ReleaseSpec.of({**asked, "publish": ["?"]}, spec.folder))[0]
    found = recount(ReleaseSpec.of({**asked, "publish": [first]}, spec.folder), wide=True)
    return {x: s for (s,), (x,) in found.counts if s.strip() and _NOTHING not in (s, x)}
