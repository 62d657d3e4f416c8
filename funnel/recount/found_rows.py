"""Found rows: what the second computation finds of whole records row by row, where people have several."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

# A level or share that is found twice, by floats and by whole numbers.
_CLOSE = 1e-7


@dataclass(frozen=True)
class RowHistories:
    """What whole records of the first rows of people with several, the second ones, … tell.

    Attributes
    ----------
    units, histories : int
        People with such a row, and the different histories that they had before it.
    level, own : float
        The largest level over these, nats; the share of these rows that are expected to be people's own.
    """

    units: int
    histories: int
    level: float
    own: float


def row_complaints(
    stated: Sequence[Mapping[str, Any]], stated_rare: int | None, found: Sequence[RowHistories], rare: int | None
) -> Iterator[str]:
    """What was stated of rows that is not what is found, while all people are there; as sentences.

    Parameters
    ----------
    stated : sequence of mapping
        Of first rows, second ones, …, from findings.
    stated_rare : int or None
        Rows of people with a rare number of rows.
    found : sequence of RowHistories
    rare : int or None
    """
    if stated_rare != rare:
        yield f"{rare} rows are of people with a rare number of rows, and another number was stated"
    alike = len(stated) == len(found) and all(
        (one["units"], one["histories"]) == (row.units, row.histories)
        and all(math.isclose(one[name], getattr(row, name), abs_tol=_CLOSE) for name in ("level", "own"))
        for one, row in zip(stated, found, strict=True)
    )
    if not alike:
        yield "other figures were stated of the rows of people, one after the other, than are found"
