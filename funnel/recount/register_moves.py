"""Register moves: how the people of a register changed, counted anew by DuckDB, and held to tables with noise.

Of a person with rows x_1, x_2, … drawn from the channels R_1, R_2, … every value y departs by ``Σ_k R_k(y|x_k) -
W(y|x_k)``. Sizes that add up to more than the stated length are shortened in proportion. All people with the same
channels and values are counted by DuckDB together; what is published besides is noise.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import chain
from typing import TYPE_CHECKING

from funnel.recount.balance import Correction
from funnel.recount.chapters import WHOLE, Tree
from funnel.recount.expected import waves_of
from funnel.recount.left_open import exact_since
from funnel.recount.noisy_moves import (
    RECORD,
    Since,
    block_complaints,
    since_complaints,
)
from funnel.recount.register_files import Entry
from funnel.recount.register_people import first_counts, first_rows, is_further, last_of, noise_limit
from funnel.recount.register_tables import asked, damaged

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


Noise = Mapping[str, tuple[float, Mapping[str, Sequence[int]]]]
"""Scale of the noise of some tables, and what was added to their counts, by names of tables."""


def moves_of(
    database: duckdb.DuckDBPyConnection, entries: Sequence[Entry], entry: Entry
) -> dict[int, Counter[tuple[int, int]]]:
    """By the last version of everybody before an entry: pairs of cells, in the last row there and the first here."""
    if not entries:
        return {}
    query = f"""
        SELECT last.ordinal, last.cell, now.cell, count(*)
        FROM {first_rows(entry)} AS now JOIN {last_of("cell", entries)} AS last USING (high, low) GROUP BY ALL
    """
    found: dict[int, Counter[tuple[int, int]]] = {one.chapter.ordinal: Counter() for one in entries}
    for ordinal, before, after, count in asked(database, entry.rows, query, [str(one.people) for one in entries]):
        found[ordinal][before, after] = count
    return found


def noise_of_moves(database: duckdb.DuckDBPyConnection, entries: Sequence[Entry], entry: Entry) -> dict[str, list[int]]:
    """What was added to the counts of every table of changes of an entry, by names of tables; empty if it has none.

    Counts of people who stayed are left out where nobody can have: these have no noise.

    Raises
    ------
    DataError
        If people cannot be counted.
    """
    if entry.moves is None:
        return {}
    counted = moves_of(database, entries, entry)
    known = {one.chapter.name: one for one in entries}
    found: dict[str, list[int]] = {}
    for since in entry.moves.since:
        one, chapter = known[since.version].chapter, entry.chapter
        same, sizes = chapter.distributions[one.ordinal].same, (one.c, chapter.c, chapter.a)
        exact = exact_since(since.version, counted[one.ordinal], same, sizes, len(since.stayed[0]) > 1)
        of_exact = _named(exact, same)
        found |= {name: _less(counts, of_exact[name]) for name, counts in _named(since, same).items()}
    return found


def _less(told: Sequence[int], exact: Sequence[int]) -> list[int]:
    return [one - other for one, other in zip(told, exact, strict=True)]


def changed_counts(entries: Sequence[Entry], entry: Entry) -> list[int]:
    """The noisy counts of all tables of changes of an entry, in the order in which `noise_of_moves` has their noise."""
    assert entry.moves is not None
    known = {one.chapter.name: entry.chapter.distributions[one.chapter.ordinal].same for one in entries}
    tables = [table for since in entry.moves.since for table in _named(since, known[since.version]).values()]
    return [count for table in tables for count in table]


def _named(since: Since, same: Sequence[int | None]) -> dict[str, list[int]]:
    """The counts since one version that have noise, by names of tables."""
    can = [x for x, place in enumerate(same) if place is not None]
    if len(since.stayed[0]) == 1:
        can = can[:1] and [0]
    return {
        f"secrets since {since.version}": [count for row in since.secrets for count in row],
        f"those who stayed since {since.version}": [row[x] for row in since.stayed for x in can],
        f"those who left since {since.version}": [count for row in since.left for count in row],
    }


def noise_of_rows(database: duckdb.DuckDBPyConnection, entry: Entry) -> dict[str, list[int]]:
    """What was added to the counts of every table of rows of an entry, by names of tables; empty if it has none.

    Raises
    ------
    DataError
        If rows cannot be counted.
    """
    tables = entry.row_moves
    if tables is None:
        return {}
    chapter = entry.chapter
    sizes, pairs = list(tables.sizes), Counter[tuple[int, int]]()
    query = """
        SELECT first, second, size, count(*) FROM (
          SELECT max(cell) FILTER (row = 1) AS first, max(cell) FILTER (row = 2) AS second, count(*) AS size
          FROM read_parquet($FILE) GROUP BY high, low
        ) GROUP BY ALL
    """
    for first, second, size, count in asked(database, entry.rows, query):
        if first is None or not 0 < size <= len(sizes):
            raise damaged(entry.rows, "has people with other numbers of rows than can be")
        sizes[size - 1] -= count
        if second is not None:
            pairs[first, second] += count
    exact = exact_since("", pairs, range(chapter.a), (chapter.c, chapter.c, chapter.a), len(tables.stayed[0]) > 1)
    like, unlike = ([*chain(*of)] for of in (exact.stayed, exact.left))
    return {
        "second rows like the first": _less([*chain(*tables.stayed)], like),
        "second rows unlike the first": _less([*chain(*tables.left)], unlike),
        "numbers of rows": sizes,
    }


def noise_of_means(entry: Entry, by_channel: Mapping[tuple[int, int], int], gone: int) -> dict[str, list[int]]:
    """What was added to the means of an entry, in parts of a record, by the name of their table; empty if it has none.

    What its people are published as on average follows from the channels that they drew from, and what that was before
    their answers were changed, from the published means and counts. People who are forgotten draw like all.

    Parameters
    ----------
    entry : Entry
    by_channel : mapping of (channel, input) to int
        How many people drew from a channel with an input.
    gone : int
        People who are forgotten.
    """
    if entry.means is None:
        return {}
    chapter = entry.chapter
    inputs = [sum(chapter.counts[x :: chapter.a]) for x in range(chapter.a)]
    published = [0] * chapter.b
    for (k, x), count in by_channel.items():
        for y, row in enumerate(chapter.channels[k]):
            published[y] += count * dict(row).get(x, 0)
    of_all = [sum(map(int.__mul__, row, inputs)) for row in entry.effective]
    whole = [
        RECORD * (Fraction(one, WHOLE) + gone * Fraction(other, WHOLE * sum(inputs)))
        for one, other in zip(published, of_all, strict=True)
    ]
    exact = Correction.of(entry.means.counts, inputs).before(whole)
    return {"means": [told - round(one) for told, one in zip(entry.means.counts, exact, strict=True)]}


def noise_of_tables(
    database: duckdb.DuckDBPyConnection,
    tree: Tree,
    entries: Sequence[Entry],
    entry: Entry,
    by_channel: Mapping[tuple[int, int], int],
    gone: int,
) -> Noise:
    """The noise of the tables that an entry has beside its counts, where it is known what they are of.

    Parameters
    ----------
    database : DuckDB connection
    tree : Tree
    entries : sequence of Entry
        Those before it.
    entry : Entry
    by_channel : mapping of (channel, input) to int
        How many people drew from a channel with an input.
    gone : int
        People who were counted and are forgotten.

    Raises
    ------
    DataError
        If people or rows cannot be counted.
    """
    found: dict[str, tuple[float, dict[str, list[int]]]] = {}
    known, chapter = {one.chapter.name for one in entries}, entry.chapter
    if entry.moves is not None and {one.version for one in entry.moves.since} <= known:
        found["changes"] = entry.moves.scale, noise_of_moves(database, entries, entry)
    if entry.row_moves is not None:
        found["counts of rows"] = entry.row_moves.scale, noise_of_rows(database, entry)
    if entry.means is not None and chapter.inputs == chapter.outputs and len(entry.means.counts) == chapter.a:
        found["means"] = entry.means.scale, noise_of_means(entry, by_channel, gone)
    if entry.departures is not None and len(entry.departures.counts) == chapter.b:
        found["departures"] = entry.departures.scale, noise_of_departures(database, tree, entry)
    return found


def protected_complaints(
    database: duckdb.DuckDBPyConnection, entries: Sequence[Entry], entry: Entry, tables: Noise, gone: int
) -> Iterator[str]:
    """Noisy tables of an entry that are not those of its people with noise of their scale; nothing else is in it.

    Parameters as of `noise_of_tables`, and what that finds.
    """
    chapter, noise = entry.chapter, entry.noise
    assert noise is not None
    if chapter.changes:
        yield "it has exact changes beside those with noise"
    if is_further(chapter.counts, first_counts(database, entry), noise, gone):
        yield "its counts of secret and input are further from those of its people than their noise is"
    # All versions before, whether anybody comes from them or not: which ones do is told with noise alone.
    told = [] if entry.moves is None else [one.version for one in entry.moves.since]
    if told != [one.chapter.name for one in entries]:
        yield "its changes are not since all versions before it, each once and in their order"
        return
    sizes = (chapter.c, chapter.a, chapter.b)
    yield from block_complaints(entry.moves, entry.row_moves, entry.means, entry.departures, sizes)
    if entry.moves is not None:
        for one, since in zip(entries, entry.moves.since, strict=True):
            # Of other columns nobody has the same labels.
            inputs = chapter.inputs if one.input_columns == entry.input_columns else ()
            yield from since_complaints(since, (one.chapter.secret, one.chapter.inputs), inputs)
    if entry.means is not None and chapter.inputs != chapter.outputs:
        yield "it has means, and publishes other values than its people have"
    yield from length_complaints(entry)
    for what, (scale, noise_of) in tables.items():
        # What those drew from who are forgotten since is not known.
        if not (gone and what in ("means", "departures")) and _is_beyond(noise_of, scale, gone):
            yield f"its {what} are further from those of its people than their noise is"


def _is_beyond(noise: Mapping[str, Sequence[int]], scale: float, gone: int) -> bool:
    """Whether noise is what none of this scale is; people who are forgotten since are in no table any more."""
    limit = noise_limit(1 / scale, sum(map(len, noise.values())))
    return any(not -limit <= one <= limit + gone for table in noise.values() for one in table)
