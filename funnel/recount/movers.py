"""Movers: what somebody knows of a register besides who knows, of everybody in a version, who ever changed till then.

A person *changed* who had another secret in two versions till then, or another value in a column that both publish.
Changes are counted for both kinds of people. So the distributions of histories, the bounds on them and their proofs are
those of all people, where that is a part of the published values.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from funnel.errors import DataError
from funnel.recount.chapters import Chapter, Rows, State, Tree
from funnel.recount.register_files import Entry
from funnel.recount.register_people import wrong_rows

if TYPE_CHECKING:
    import duckdb

TRANSITIONS, MOVER_STAYER = "transitions", "mover-stayer"


def told_apart(chapters: Sequence[Chapter]) -> Tree:
    """The same histories, of people whose cell is ``s * 2a + k * a + x``, where k is 1 of those who changed.

    Raises
    ------
    DataError
        If a version does not say who of its people changed.
    """
    found: list[Chapter] = []
    for chapter in chapters:
        if chapter.classes is None:
            raise DataError(f"version {chapter.name!r} does not say of its people who changed")
        a = chapter.a
        kinds = ("unchanged", "changed")
        rows = [chapter.counts[s * a : (s + 1) * a] for s in range(chapter.c)]
        found.append(
            replace(
                chapter,
                inputs=tuple((kind, *symbol) for kind in kinds for symbol in chapter.inputs),
                # People of whom nothing was published have not changed yet.
                counts=tuple(count for row in rows for count in (*row, *([0] * a))),
                changes={
                    ordinal: {
                        (_cell(before, chapters[ordinal].a), _cell(after, a)): count
                        for (before, after), count in table.items()
                    }
                    for ordinal, table in chapter.classes.items()
                },
                channels={k: _twice(channel, a) for k, channel in chapter.channels.items()},
                classes=None,
            )
        )
    return Tree(found)


def _cell(state: State, a: int) -> int:
    s, x = divmod(state[0], a)
    return 2 * a * s + (a if state[1] else 0) + x


def _twice(rows: Rows, a: int) -> Rows:
    """The channel of people who draw alike, whether they changed or not."""
    return tuple((*row, *((x + a, weight) for x, weight in row)) for row in rows)


def observer_complaints(entries: Sequence[Entry], asked_for: Sequence[str] | None) -> Iterator[str]:
    """What is wrong with the observers that the last entry is bounded for.

    Parameters
    ----------
    entries : sequence of Entry
        In the order of publication.
    asked_for : sequence of str or None
        As the spec names them; None for all that can be.
    """
    if asked_for is None:
        # Of whole records who changed and who never did is not told apart.
        both = all(entry.chapter.classes is not None and entry.classes is None for entry in entries)
        asked_for = (TRANSITIONS, MOVER_STAYER) if both else (TRANSITIONS,)
    if set(entries[-1].observers) != set(asked_for):
        yield f"is bounded for {', '.join(entries[-1].observers)}, and the spec asks for {', '.join(asked_for)}"


def secret_complaints(entry: Entry, asked_for: str | None, robust: bool) -> Iterator[str]:
    """What is wrong with the secrets that an entry is bounded for.

    Parameters
    ----------
    entry : Entry
    asked_for : str or None
        As the spec names them; None for all, or, where the bound is to hold under true tables too, the current one.
    robust : bool
    """
    wanted = asked_for or ("current" if robust else "all")
    if entry.secrets != wanted:
        yield f"bounds the secrets of {entry.secrets} versions, and the spec asks for {wanted}"


def class_complaints(database: duckdb.DuckDBPyConnection, entries: Sequence[Entry], entry: Entry) -> Iterator[str]:
    """People who are said to have changed and did not, or the other way.

    Parameters
    ----------
    database : DuckDB connection
    entries : sequence of Entry
        Those before it.
    entry : Entry
    """
    if entry.chapter.units is not None:
        wrong = {"changed <> 0": "people with several rows are said to have changed, of whom that is not counted"}
        yield from wrong_rows(database, entry.people, "SELECT * FROM read_parquet($FILE)", wrong)
        return
    # 1 of those with other values than in an earlier version, or who had changed by then.
    pieces = ["SELECT high, low, 0 AS differs FROM read_parquet($FILE)"]
    values: list[object] = []
    for one in entries:
        pieces.append(
            """
            SELECT high, low, CASE
              WHEN before.changed = 1 OR list_extract(?, before.cell + 1) <> list_extract(?, now.cell + 1) THEN 1 ELSE 0
            END AS differs
            FROM read_parquet($FILE) AS now JOIN read_parquet(?) AS before USING (high, low)
            """
        )
        values += [*_names(one, entry), str(one.people)]
    query = f"""
        SELECT now.changed <> found.differs AS wrong FROM read_parquet($FILE) AS now JOIN (
          SELECT high, low, max(differs) AS differs FROM ({" UNION ALL ".join(pieces)}) GROUP BY high, low
        ) AS found USING (high, low)
    """
    wrong = {"wrong": "people are said to have changed who did not, or not to have changed who did"}
    yield from wrong_rows(database, entry.people, query, wrong, values)


def _names(earlier: Entry, entry: Entry) -> tuple[list[int], list[int]]:
    """A number of the secret and the values of common columns of each cell of two versions, the same for the same."""
    known: dict[tuple[object, ...], int] = {}
    common = [column for column in earlier.input_columns if column in entry.input_columns]

    def of(one: Entry) -> list[int]:
        places = [one.input_columns.index(column) for column in common]
        chapter = one.chapter
        cells = [(s, *(x[place] for place in places)) for s in chapter.secret for x in chapter.inputs]
        return [known.setdefault(cell, len(known)) for cell in cells]

    return of(earlier), of(entry)
