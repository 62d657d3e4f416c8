"""Register people: who is in a register, what became of them and what was drawn, counted anew by DuckDB."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from funnel.recount.chapters import NEW, Tree
from funnel.recount.register_files import Entry, read_entry
from funnel.recount.register_tables import asked, damaged, require_columns
from funnel.recount.rows import connect

if TYPE_CHECKING:
    import duckdb


FirstRows = Mapping[tuple[tuple[str, ...], tuple[str, ...]], int]
"""People by secret and published values of their first row; people who are forgotten are in no table."""

# A register is never said to be damaged because of noise that is as it should be.
_NEVER = 1e-12


@dataclass(frozen=True)
class Followed:
    """The people of a version, by the history that they had before it.

    Attributes
    ----------
    people : mapping of node to int
    by_channel : mapping of (channel, input) to int
        How many drew from a channel with an input.
    by_output : tuple of int, length b
        How many got an output.
    impossible : int
        How many have an answer that their channel never gives for their input.
    """

    people: Mapping[int, int]
    by_channel: Mapping[tuple[int, int], int]
    by_output: tuple[int, ...]
    impossible: int


def order_complaints(database: duckdb.DuckDBPyConnection, entry: Entry) -> Iterator[str]:
    """People who are there twice or not in order, or whose value or history is none of the version."""
    require_columns(database, entry.people)
    query = """
        SELECT *, lag(high) OVER (ORDER BY file_row_number) AS before_high,
          lag(low) OVER (ORDER BY file_row_number) AS before_low
        FROM read_parquet($FILE, file_row_number = true)
    """
    missing = "high IS NULL OR low IS NULL OR cell IS NULL OR node IS NULL"
    wrong = {
        "before_high > high OR (before_high = high AND before_low >= low)": (
            "people are there twice, or not in the order of their digests"
        ),
        f"{missing} OR {_is_strange(entry)}": "people have a value or a history that is none of this version",
    }
    yield from wrong_rows(database, entry.people, query, wrong)


def _is_strange(entry: Entry) -> str:
    """The condition that a row has a value or a history that is none of the version."""
    chapter = entry.chapter
    last = chapter.first + len(chapter.parents) - 1
    # Nothing is read of units whose number of rows is rare, where whole records are published.
    unread = " AND node <> 0" if entry.classes is not None and chapter.units is not None else ""
    strange = f"(node NOT BETWEEN {chapter.first} AND {last}{unread})"
    return f"cell NOT BETWEEN 0 AND {chapter.c * chapter.a - 1} OR {strange}"


def wrong_rows(
    database: duckdb.DuckDBPyConnection, path: Path, query: str, wrong: Mapping[str, str], values: Sequence[object] = ()
) -> Iterator[str]:
    """How many of the rows that a query finds meet a condition, by what is said of these."""
    counts = ", ".join(f"count(*) FILTER ({condition})" for condition in wrong)
    (found,) = asked(database, path, f"SELECT {counts} FROM ({query})", values)
    yield from (f"{number:,} {what}" for number, what in zip(found, wrong.values(), strict=True) if number)


def unit_complaints(database: duckdb.DuckDBPyConnection, tree: Tree, entry: Entry) -> Iterator[str]:
    """Rows of people with several that do not follow each other, change their secret, or end elsewhere than said."""
    require_columns(database, entry.rows)
    a = entry.chapter.a
    query = """
        SELECT *, lag(row) OVER unit AS before_row, lag(cell) OVER unit AS before_cell
        FROM read_parquet($FILE) WINDOW unit AS (PARTITION BY high, low ORDER BY row)
    """
    wrong = {"row <> coalesce(before_row, 0) + 1": "rows are not the next ones of their people"}
    if entry.classes is None and not (entry.chapter.has_members and entry.secrets == "all"):
        wrong[f"cell // {a} <> before_cell // {a}"] = (
            "rows have another secret than the row before, and only one of a person is bounded"
        )
    wrong[_is_strange(entry)] = "rows have a value or a history that is none of this version"
    yield from wrong_rows(database, entry.rows, query, wrong)
    query = """
        SELECT ends.cell IS DISTINCT FROM people.cell OR ends.node IS DISTINCT FROM people.node AS elsewhere FROM (
          SELECT high, low, max_by(cell, row) AS cell, max_by(node, row) AS node
          FROM read_parquet($FILE) GROUP BY high, low
        ) AS ends FULL JOIN read_parquet(?) AS people USING (high, low)
    """
    wrong = {"elsewhere": "people do not stand where their last row ends"}
    yield from wrong_rows(database, entry.rows, query, wrong, [str(entry.people)])
    if strange := sum(
        n
        for (before, after), n in _next_rows(database, entry, "node").items()
        if not tree.goes_on(before, after) and (before or after)
    ):
        yield f"{strange:,} rows have a history that does not go on from the row before"


def _next_rows(database: duckdb.DuckDBPyConnection, entry: Entry, column: str, some: str = "") -> Counter[Any]:
    """Pairs of successive rows of a person, of some of them or of all, by what they have in a column."""
    query = f"""
        SELECT before, {column}, count(*) FROM (
          SELECT {column}, lag({column}) OVER (PARTITION BY high, low ORDER BY row) AS before FROM read_parquet($FILE)
          {some}
        ) WHERE before IS NOT NULL GROUP BY ALL
    """
    return tallied(database, entry.rows, query)


def row_changes_of(database: duckdb.DuckDBPyConnection, entry: Entry, completed: bool) -> Counter[tuple[int, int]]:
    """Pairs of successive rows of a person, by their cells; after one that no row follows, first rows.

    Of its secret, where all rows of a person have one.
    """
    found = _next_rows(database, entry, "cell", "WHERE node > 0")
    if found and completed:
        a, own = entry.chapter.a, any(before // entry.chapter.a != after // entry.chapter.a for before, after in found)
        for before in counts_of(database, entry, "WHERE node > 0").keys() - {before for before, _ in found}:
            for after, count in enumerate(entry.chapter.beginning):
                if count and (own or after // a == before // a):
                    found[before, after] = count
    return found


def first_rows(entry: Entry) -> str:
    """The first rows of people of whom something is read, as a part of a query on the table of rows."""
    of_units = "(SELECT * FROM read_parquet($FILE) WHERE row = 1 AND node > 0)"
    return "read_parquet($FILE)" if entry.chapter.units is None else of_units


def counts_of(database: duckdb.DuckDBPyConnection, entry: Entry, some: str = "") -> Counter[int]:
    """Records by cell, of some of them or of all."""
    return tallied(database, entry.rows, f"SELECT cell, count(*) FROM read_parquet($FILE) {some} GROUP BY cell")


def first_counts(database: duckdb.DuckDBPyConnection, entry: Entry) -> Counter[int]:
    """People by the cell of their first row."""
    return tallied(database, entry.rows, f"SELECT cell, count(*) FROM {first_rows(entry)} GROUP BY cell")


def second_row_counts(database: duckdb.DuckDBPyConnection, entry: Entry) -> Counter[tuple[int, int]]:
    """People with two rows or more, by secret, and 0 where the second has the input of the first, 1 where another."""
    a = entry.chapter.a
    query = f"""
        SELECT one.cell // {a}, (one.cell % {a} <> two.cell % {a})::INT, count(*)
        FROM read_parquet($FILE) AS one JOIN read_parquet($FILE) AS two USING (high, low)
        WHERE one.row = 1 AND two.row = 2 GROUP BY ALL
    """
    return tallied(database, entry.rows, query)


def first_row_counts(folder: Path) -> FirstRows:
    """People by secret and published values of their first row, of the folder of an entry.

    Raises
    ------
    DataError
        If it is no entry, or its rows cannot be read.
    """
    with connect() as database:
        entry = read_entry(database, folder)
        chapter, cells = entry.chapter, first_counts(database, entry)
    if any(not 0 <= cell < len(chapter.counts) for cell in cells):
        raise damaged(entry.rows, "has values that do not exist")
    return {(chapter.secret[cell // chapter.a], chapter.inputs[cell % chapter.a]): n for cell, n in cells.items()}


def changes_of(
    database: duckdb.DuckDBPyConnection, earlier: Entry, later: Entry, by_state: bool
) -> Counter[tuple[Any, Any]]:
    """People in both versions, by the cells that they had: in the last row there and the first here.

    Or by their states: the cells, and whether they had changed till then.
    """
    state = "(cell, changed = 1)" if by_state else "cell"
    query = f"""
        SELECT before.state, after.state, count(*)
        FROM (SELECT high, low, {state} AS state FROM {first_rows(later)}) AS after
        JOIN (SELECT high, low, {state} AS state FROM read_parquet(?)) AS before USING (high, low) GROUP BY ALL
    """
    return tallied(database, later.rows, query, [str(earlier.people)])


def last_of(column: str, entries: Sequence[Entry]) -> str:
    """What the last of some versions says of everybody in a column, as a part of a query on their tables of people."""
    versions = [
        "SELECT 0::UBIGINT AS high, 0::UBIGINT AS low, 0 AS ordinal, 0::BIGINT AS value WHERE false",
        *(f"SELECT high, low, {one.chapter.ordinal}, {column} FROM read_parquet(?)" for one in entries),
    ]
    last = f"SELECT high, low, max(ordinal) AS ordinal, max_by(value, ordinal) AS {column}"
    return f"({last} FROM ({' UNION ALL '.join(versions)}) GROUP BY high, low)"


def unfollowed(
    database: duckdb.DuckDBPyConnection, tree: Tree, entries: Sequence[Entry], entry: Entry
) -> tuple[int, set[int]]:
    """How many people have a history that does not go on from their own, and the versions that people come from.

    The history of a person is what the last earlier version that has the person says.
    """
    query = f"""
        SELECT coalesce(earlier.node, {NEW}), people.node, count(*)
        FROM {first_rows(entry)} AS people LEFT JOIN {last_of("node", entries)} AS earlier USING (high, low)
        GROUP BY ALL
    """
    pairs = tallied(database, entry.rows, query, [str(one.people) for one in entries])
    wrong = sum(count for (before, after), count in pairs.items() if not tree.goes_on(before, after))
    last = {tree.versions[before] for before, _ in pairs if 0 <= before < len(tree.versions)}
    return wrong, {version for version in last if version is not None}


def last_histories(database: duckdb.DuckDBPyConnection, tree: Tree, entries: Sequence[Entry]) -> Counter[int]:
    """How many people have which history as their last one."""
    query = f"SELECT node, count(*) FROM {last_of('node', entries)} GROUP BY node"
    found = tallied(database, entries[-1].people, query, [str(one.people) for one in entries])
    return Counter({node: count for node, count in found.items() if 0 < node < len(tree.parents)})


def followed_by(database: duckdb.DuckDBPyConnection, tree: Tree, entry: Entry) -> Followed:
    """Whom the version is about, by what they drew from and got.

    Raises
    ------
    DataError
        If somebody has a history that the version does not know.
    """
    chapter = entry.chapter
    people: Counter[int] = Counter()
    by_channel: Counter[tuple[int, int]] = Counter()
    by_output, impossible = [0] * chapter.b, 0
    query = f"SELECT node, cell % {chapter.a}, count(*) FROM read_parquet($FILE) GROUP BY ALL"
    for (node, x), count in tallied(database, entry.rows, query).items():
        if not chapter.first <= node < chapter.first + len(chapter.parents):
            raise damaged(entry.people, "has people with a history that is none of this version")
        before, y = tree.parents[node], tree.outputs[node]
        channel = chapter.followed[before]
        people[before] += count
        by_channel[channel, x] += count
        by_output[y] += count
        impossible += 0 if any(x == place for place, _ in chapter.channels[channel][y]) else count
    return Followed(people, by_channel, tuple(by_output), impossible)


def counted_complaints(
    database: duckdb.DuckDBPyConnection,
    entries: Sequence[Entry],
    entry: Entry,
    last: set[int],
    missing: Sequence[int],
    coming: bool,
) -> Iterator[str]:
    """Counts of an entry that are not those of its people.

    Parameters
    ----------
    database : DuckDB connection
    entries : sequence of Entry
        Those before it.
    entry : Entry
    last : set of int
        Versions that people come from.
    missing : sequence of int
        By version, how many people were counted and are forgotten.
    coming : bool
        Whether nobody was forgotten since the changes were counted.
    """
    chapter = entry.chapter
    counted = counts_of(database, entry)
    stated = {cell: count for cell, count in enumerate(chapter.counts) if count}
    gone = missing[chapter.ordinal]
    if _differ(stated, counted, exactly=not gone) or sum(stated.values()) - sum(counted.values()) != gone:
        yield "its counts of secret and input are not those of its people"
    if without := last - set(chapter.changes):
        yield f"it lacks the changes from version number {min(without)}, which people come from"
    if chapter.units is not None:
        units = {cell: count for cell, count in enumerate(chapter.units) if count}
        if _differ(units, first_counts(database, entry), exactly=not gone):
            yield "its counts of first rows are not those of its people"
        second = enumerate(entry.second_rows or ())
        told = Counter({(s, unlike): n for s, row in second for unlike, n in enumerate(row)})
        if entry.second_rows and _differ(+told, second_row_counts(database, entry), exactly=coming or not gone):
            yield "its counts of second rows are not those of its people"
        # Where somebody was forgotten since, nobody knows any more which cells no row followed.
        within = row_changes_of(database, entry, coming or not gone)
        if within and _differ(chapter.changes.get(chapter.ordinal, {}), within, coming or not gone):
            yield "its changes from a row to the next are not those of its people"
    for ordinal, table in sorted(chapter.changes.items()):
        if ordinal == chapter.ordinal:
            continue
        exactly = coming or not (gone or missing[ordinal])
        name = entries[ordinal].chapter.name
        by_state = chapter.classes is not None
        stated_by = table if chapter.classes is None else chapter.classes[ordinal]
        if _differ(stated_by, changes_of(database, entries[ordinal], entry, by_state), exactly):
            who = "its people who changed before, or never did" if by_state else "its people"
            yield f"its changes from version {name!r} are not those of {who}"


def is_further(stated: Sequence[int], counted: Mapping[int, int], epsilon: float, gone: int) -> bool:
    """Whether published counts are further from those of people than noise is; they are clipped at 0, never away."""
    limit = noise_limit(epsilon, len(stated))
    return any(not -limit <= count - counted.get(cell, 0) <= limit + gone for cell, count in enumerate(stated))


def forgotten_complaints(
    database: duckdb.DuckDBPyConnection, forgotten: Path, entries: Sequence[Entry]
) -> Iterator[str]:
    """People who are forgotten and still there."""
    require_columns(database, forgotten)
    query = "SELECT * FROM read_parquet($FILE) AS here JOIN read_parquet(?) AS gone USING (high, low)"
    for entry in entries:
        for path in dict.fromkeys((entry.people, entry.rows)):
            wrong = {"true": f"people who are forgotten are still in {entry.folder.name}"}
            yield from wrong_rows(database, path, query, wrong, [str(forgotten)])


def noise_limit(epsilon: float, cells: int) -> int:
    """What the noise of some cells exceeds anywhere with a probability below `_NEVER`."""
    # P(|Z| >= k) = 2 e^(-k ε) / (1 + e^(-ε)) <= 2 e^(-k ε).
    return math.ceil(math.log(2 * cells / _NEVER) / epsilon)


def _differ(stated: Mapping[Any, int], counted: Mapping[Any, int], exactly: bool) -> bool:
    if exactly:
        return dict(stated) != dict(counted)
    return any(count > stated.get(key, 0) for key, count in counted.items())


def tallied(database: duckdb.DuckDBPyConnection, path: Path, query: str, values: Sequence[object] = ()) -> Counter[Any]:
    """The counts that answer a query, in its last column, by what is in the one before, or in all before."""
    rows = asked(database, path, query, values)
    return Counter({row[0] if len(row) == 2 else row[:-1]: row[-1] for row in rows})
