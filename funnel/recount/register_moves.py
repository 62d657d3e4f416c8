"""Register moves: how the people of a register changed, counted anew by DuckDB, and held to tables with noise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from funnel.recount.noisy_moves import Since, Table, change_complaints, row_complaints, since_complaints
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
        one = known[since.version]
        same, a = entry.chapter.laws[one.chapter.ordinal].same, entry.chapter.a
        secrets = [list(row) for row in since.secrets]
        stayed, left = [list(row) for row in since.stayed], [list(row) for row in since.left]
        for (before, after), count in counted[one.chapter.ordinal].items():
            s, x = divmod(before, len(same))
            secrets[s][after // a] -= count
            # Where they are counted by secret alone there is one column.
            (stayed if same[x] == after % a else left)[s][x if len(stayed[s]) > 1 else 0] -= count
        changed = Since(since.version, _table(secrets), _table(stayed), _table(left))
        found |= _named(changed, same)
    return found


def _table(rows: Sequence[Sequence[int]]) -> Table:
    return tuple(map(tuple, rows))


def changed_counts(entries: Sequence[Entry], entry: Entry) -> list[int]:
    """The noisy counts of all tables of changes of an entry, in the order in which `noise_of_moves` has their noise."""
    assert entry.moves is not None
    known = {one.chapter.name: entry.chapter.laws[one.chapter.ordinal].same for one in entries}
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
    return {
        "second rows like the first": [count for row in stayed for count in row],
        "second rows unlike the first": [count for row in left for count in row],
        "numbers of rows": sizes,
    }


def noise_of_tables(
    database: duckdb.DuckDBPyConnection, entries: Sequence[Entry], entry: Entry
) -> list[tuple[float, dict[str, list[int]]]]:
    """Scale and noise of its tables of changes, and of its tables of rows; of those that it has.

    Raises
    ------
    DataError
        If people or rows cannot be counted.
    """
    found = []
    known = {one.chapter.name for one in entries}
    if entry.moves is not None and {one.version for one in entry.moves.since} <= known:
        found.append((entry.moves.scale, noise_of_moves(database, entries, entry)))
    if entry.row_moves is not None:
        found.append((entry.row_moves.scale, noise_of_rows(database, entry)))
    return found


def protected_complaints(
    database: duckdb.DuckDBPyConnection, entries: Sequence[Entry], entry: Entry, gone: int
) -> Iterator[str]:
    """Noisy tables of an entry that are not those of its people with noise of their scale; nothing else is in it.

    Parameters
    ----------
    database : DuckDB connection
    entries : sequence of Entry
        Those before it.
    entry : Entry
    gone : int
        People who were counted and are forgotten.
    """
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
        if _is_beyond(noise_of_moves(database, entries, entry), entry.moves.scale, gone):
            yield "its changes are further from those of its people than their noise is"
    if entry.row_moves is not None:
        yield from row_complaints(entry.row_moves, chapter.c, chapter.a)
        if _is_beyond(noise_of_rows(database, entry), entry.row_moves.scale, gone):
            yield "its counts of rows are further from those of its people than their noise is"


def _is_beyond(noise: Mapping[str, Sequence[int]], scale: float, gone: int) -> bool:
    """Whether noise is what none of this scale is; people who are forgotten since are in no table any more."""
    limit = noise_limit(1 / scale, sum(map(len, noise.values())))
    return any(not -limit <= one <= limit + gone for table in noise.values() for one in table)
