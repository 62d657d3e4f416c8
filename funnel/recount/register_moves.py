"""Register moves: how the people of a register changed, counted anew by DuckDB, and held to tables with noise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from funnel.recount.noisy_moves import change_complaints, row_complaints, since_complaints
from funnel.recount.register_files import Entry, damaged
from funnel.recount.register_people import asked, first_rows, is_further, noise_limit

if TYPE_CHECKING:
    import duckdb


def moves_of(
    database: duckdb.DuckDBPyConnection, entries: Sequence[Entry], entry: Entry
) -> dict[int, Counter[tuple[int, int]]]:
    """By the last version of everybody before an entry: pairs of cells, in the last row there and the first here."""
    if not entries:
        return {}
    versions = " UNION ALL ".join(
        f"SELECT high, low, cell, {one.chapter.ordinal} AS ordinal FROM read_parquet(?)" for one in entries
    )
    rows = asked(
        database,
        entry.rows,
        f"""
        SELECT last.ordinal, last.cell, now.cell, count(*)
        FROM {first_rows(entry)} AS now JOIN (
          SELECT high, low, max(ordinal) AS ordinal, max_by(cell, ordinal) AS cell FROM ({versions}) GROUP BY high, low
        ) AS last USING (high, low) GROUP BY ALL
        """,
        [str(one.people) for one in entries],
    )
    found: dict[int, Counter[tuple[int, int]]] = {one.chapter.ordinal: Counter() for one in entries}
    for ordinal, before, after, count in rows:
        found[ordinal][before, after] = count
    return found


def noise_of_moves(database: duckdb.DuckDBPyConnection, entries: Sequence[Entry], entry: Entry) -> list[list[int]]:
    """What was added to the counts of every table of changes of an entry, table by table; none where it has no tables.

    Counts of people who stayed are left out where nobody can have: these have no noise.

    Raises
    ------
    DataError
        If people cannot be counted.
    """
    if entry.moves is None:
        return []
    counted = moves_of(database, entries, entry)
    known = {one.chapter.name: one for one in entries}
    found = []
    for since in entry.moves.since:
        one = known[since.version]
        same, a = entry.chapter.laws[one.chapter.ordinal].same, entry.chapter.a
        secrets = [list(row) for row in since.secrets]
        stayed, left = [list(row) for row in since.stayed], [list(row) for row in since.left]
        for (before, after), count in counted[one.chapter.ordinal].items():
            s, x = divmod(before, len(same))
            secrets[s][after // a] -= count
            (stayed if same[x] == after % a else left)[s][x] -= count
        can = [x for x, place in enumerate(same) if place is not None]
        found += [
            [count for row in secrets for count in row],
            [row[x] for row in stayed for x in can],
            [count for row in left for count in row],
        ]
    return [table for table in found if table]


def noise_of_rows(database: duckdb.DuckDBPyConnection, entry: Entry) -> list[list[int]]:
    """What was added to the counts of every table of rows of an entry; none where it has no such tables."""
    tables = entry.row_moves
    if tables is None:
        return []
    a = entry.chapter.a
    stayed, left = [list(row) for row in tables.stayed], [list(row) for row in tables.left]
    sizes = list(tables.sizes)
    rows = asked(
        database,
        entry.rows,
        """
        SELECT first, second, size, count(*) FROM (
          SELECT max(cell) FILTER (row = 1) AS first, max(cell) FILTER (row = 2) AS second, count(*) AS size
          FROM read_parquet($FILE) GROUP BY high, low
        ) GROUP BY ALL
        """,
    )
    for first, second, size, count in rows:
        if first is None or not 0 < size <= len(sizes):
            raise damaged(entry.rows, "has people with other numbers of rows than can be")
        sizes[size - 1] -= count
        if second is not None:
            s, x = divmod(first, a)
            (stayed if second % a == x else left)[s][x] -= count
    return [[count for row in stayed for count in row], [count for row in left for count in row], sizes]


def protected_complaints(
    database: duckdb.DuckDBPyConnection, entries: Sequence[Entry], entry: Entry, gone: int
) -> Iterator[str]:
    """Noisy tables of an entry that are not those of its people with noise of their scale; nothing else is in it."""
    chapter, noise = entry.chapter, entry.noise
    assert noise is not None
    if chapter.changes:
        yield "it has exact changes beside those with noise"
    first = Counter(dict(asked(database, entry.rows, f"SELECT cell, count(*) FROM {first_rows(entry)} GROUP BY cell")))
    if is_further(chapter.counts, first, noise, gone):
        yield "its counts of secret and input are further from those of its people than their noise is"
    # All versions before, whether anybody comes from them or not: which ones do is told with noise alone.
    told = [] if entry.moves is None else [one.version for one in entry.moves.since]
    if told != [one.chapter.name for one in entries]:
        yield "its changes are not since all versions before it, each once and in their order"
        return
    if entry.moves is not None:
        yield from change_complaints(entry.moves, chapter.c)
        for one, since in zip(entries, entry.moves.since, strict=True):
            # Of other columns nobody has the same labels.
            inputs = chapter.inputs if one.input_columns == entry.input_columns else ()
            yield from since_complaints(since, (one.chapter.secret, one.chapter.inputs), inputs)
        # What noise does not explain: people who are forgotten since are counted in it, and in no table.
        if _is_beyond(noise_of_moves(database, entries, entry), entry.moves.scale, gone):
            yield "its changes are further from those of its people than their noise is"
    if entry.row_moves is not None:
        yield from row_complaints(entry.row_moves, chapter.c, chapter.a)
        if _is_beyond(noise_of_rows(database, entry), entry.row_moves.scale, gone):
            yield "its counts of rows are further from those of its people than their noise is"


def _is_beyond(noise: Sequence[Sequence[int]], scale: float, gone: int) -> bool:
    limit = noise_limit(1 / scale, sum(map(len, noise)))
    return any(not -limit <= one <= limit + gone for table in noise for one in table)
