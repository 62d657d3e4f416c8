"""Departed: by how much answers differ on average from what an effective channel leads to expect, from a register.

Of a person with rows x_1, x_2, … drawn from the channels R_1, R_2, … every value y departs by ``Σ_k R_k(y|x_k) -
W(y|x_k)``. Sizes that add up to more than the stated length are shortened in proportion. All people with the same
channels and values are counted by DuckDB together; what is published besides is noise.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from funnel.recount.chapters import WHOLE, Tree
from funnel.recount.expected import waves_of
from funnel.recount.noisy_moves import RECORD
from funnel.recount.register_files import Entry
from funnel.recount.register_people import asked

if TYPE_CHECKING:
    import duckdb

LEAST = RECORD // 4
WIDTH = 2.5
# Of a length that is computed twice, in floats.
_CLOSE = 1e-6


def noise_of_departures(database: duckdb.DuckDBPyConnection, tree: Tree, entry: Entry) -> dict[str, list[int]]:
    """What was added to the departures of an entry, in parts of a record, by the name of their table.

    People who are forgotten are not in the register, and count for nothing.

    Raises
    ------
    DataError
        If rows cannot be counted.
    """
    told, chapter = entry.departures, entry.chapter
    if told is None:
        return {}
    of_row: dict[tuple[int, int], list[int]] = {}
    weights = {k: [dict(row) for row in rows] for k, rows in chapter.channels.items()}

    def departures(node: int, x: int) -> list[int]:
        key = chapter.followed[tree.parents[node]], x
        if key not in of_row:
            rows = zip(weights[key[0]], entry.effective, strict=True)
            of_row[key] = [drawn.get(x, 0) - expected[x] for drawn, expected in rows]
        return of_row[key]

    found = [0.0] * chapter.b
    query = f"""
        SELECT nodes, cells, count(*) FROM (
          SELECT list(node ORDER BY node) AS nodes, list(cell % {chapter.a} ORDER BY node) AS cells
          FROM read_parquet($FILE) GROUP BY high, low
        ) GROUP BY ALL
    """
    for nodes, cells, count in asked(database, entry.rows, query):
        rows = [departures(node, x) for node, x in zip(nodes, cells, strict=True)]
        sums = [sum(one) for one in zip(*rows, strict=True)]
        size = sum(map(abs, sums)) * RECORD / WHOLE
        kept = count * RECORD / WHOLE * min(1.0, told.length / size if size else 1.0)
        found = [whole + kept * one for whole, one in zip(found, sums, strict=True)]
    return {"departures": [count - round(one) for count, one in zip(told.counts, found, strict=True)]}


def length_complaints(entry: Entry) -> Iterator[str]:
    """In what way the stated length does not follow from what is public, as parts of sentences.

    Noise of it has `WIDTH` times the standard deviation of the answers, on average over the published values; it is
    `LEAST` at least, and never more than all rows of a person can depart by.
    """
    told, chapter = entry.departures, entry.chapter
    if told is None:
        return
    inputs = [sum(chapter.counts[x :: chapter.a]) for x in range(chapter.a)]
    waves = (sum(inputs),) if entry.row_moves is None else waves_of(entry.row_moves)
    spread = math.fsum(
        count / sum(inputs) * (weight / WHOLE) * (1 - weight / WHOLE)
        for row in entry.effective
        for count, weight in zip(inputs, row, strict=True)
    )
    length = WIDTH * told.epsilon * math.sqrt(sum(waves) * spread / chapter.b / 2) * RECORD
    expected = min(max(length, LEAST), 2 * RECORD * len(waves))
    if not math.isclose(told.length, expected, rel_tol=_CLOSE, abs_tol=1):
        yield f"what one person may add to the departures is {told.length} parts of a record, not {round(expected)}"
