"""Donor register: what versions of whole records tell of the people of a register, and how they were drawn, again."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import mul
from typing import TYPE_CHECKING

from funnel.errors import DataError
from funnel.recount.chapters import NEW, WHOLE, Rows, Tree
from funnel.recount.donor_observer import ALONE, Cell, DonorObserver, PlainMoves, begins_alone, is_channel
from funnel.recount.drawn_donors import DonorDraws, Weights
from funnel.recount.found_histories import Decided, VersionHistories
from funnel.recount.history_bounds import Tally
from funnel.recount.movers import TRANSITIONS, class_complaints
from funnel.recount.promise import Promise
from funnel.recount.ratios import sides_of
from funnel.recount.register_files import Entry
from funnel.recount.register_people import counted_complaints, order_complaints, unfollowed, wrong_rows
from funnel.recount.register_tables import DONORS, asked, require_columns

if TYPE_CHECKING:
    from pathlib import Path

    import duckdb

# A person: the digest of their key.
Person = tuple[int, int]
NOBODY: Person = (0, 0)
"""In the place of a person who is forgotten."""
# What floats leave of a probability in a table that is scaled so often.
_FLOATS, _ROUNDS = 1e-8, 100


def dense(rows: Rows, inputs: int) -> Weights:
    """The weights of a channel, zeros too."""
    found = [[0] * inputs for _ in rows]
    for y, row in enumerate(rows):
        for x, weight in row:
            found[y][x] = weight
    return found


@dataclass(frozen=True)
class DonorPeople:
    """The people of a version as its tables have them.

    Attributes
    ----------
    cells, nodes : mapping of person to int
    stands_for : mapping of person to person
        Whose record was published; `NOBODY` where that is forgotten.
    """

    cells: dict[Person, int]
    nodes: dict[Person, int]
    stands_for: dict[Person, Person]

    @classmethod
    def read(cls, database: duckdb.DuckDBPyConnection, people: Path, donors: Path) -> DonorPeople:
        """From the tables of people and of donors."""
        found = cls({}, {}, {})
        query = """
            SELECT high, low, cell, node, of_high, of_low FROM read_parquet($FILE) AS people
            JOIN read_parquet(?) AS donors USING (high, low) ORDER BY high, low
        """
        for high, low, cell, node, of_high, of_low in asked(database, people, query, [str(donors)]):
            found.cells[high, low], found.nodes[high, low] = cell, node
            found.stands_for[high, low] = of_high, of_low
        return found


@dataclass(frozen=True)
class DonorRegister:
    """A register of whole records that is judged; ``coming`` where its last version is not published yet.

    Of people with one row each; those of people with several are judged by `UnitDonorRegister`.
    """

    database: duckdb.DuckDBPyConnection
    tree: Tree
    entries: tuple[Entry, ...]
    missing: Sequence[int]
    coming: bool

    @cached_property
    def people(self) -> list[DonorPeople]:
        """Of all versions."""
        return [DonorPeople.read(self.database, one.people, one.folder / DONORS) for one in self.entries]

    @property
    def classes(self) -> int:
        """How many there are."""
        return self.entries[0].chapter.a

    def versions(self, promises: Sequence[Promise]) -> Iterator[VersionHistories]:
        """All of them, or the last one if it is coming, each with what it promises."""
        for entry in self.entries:
            alike = (entry.chapter.secret, entry.chapter.inputs, entry.classes)
            first = self.entries[0]
            if alike != (first.chapter.secret, first.chapter.inputs, first.classes):
                raise DataError("versions of whole records have other secrets or classes than the first one")
        observer = self._observer()
        for entry, promise in zip(self.entries, promises, strict=True):
            observer.begins(entry.chapter.name)
            judged = entry is self.entries[-1] or not self.coming
            found = self._decided(entry, observer, promise, judged)
            if judged:
                yield found

    def _observer(self) -> DonorObserver:
        k, chapters = self.classes, [entry.chapter for entry in self.entries]

        def cell(number: int) -> Cell:
            return str(number // k), number % k

        sizes = [{cell(z): n for z, n in enumerate(chapter.counts)} for chapter in chapters]

        def moves(v: int, t: int) -> PlainMoves:
            changes = chapters[t].changes.get(v)
            if not changes:
                raise DataError(f"version {chapters[t].name!r} has no changes from one that people come from")
            both = {(cell(before), cell(after)): n for (before, after), n in changes.items()}
            return PlainMoves(both, sizes[v], sizes[t])

        return DonorObserver(k, [*map(str, range(chapters[0].c))], sizes, moves)

    def _decided(self, entry: Entry, observer: DonorObserver, promise: Promise, judged: bool) -> VersionHistories:
        """What a version tells, with what is believed afterwards."""
        chapter, tree, k, t = entry.chapter, self.tree, self.classes, entry.chapter.ordinal
        having = Counter(tree.parents[node] for node in self.people[t].nodes.values())
        sides, decided = sides_of(promise), asked_secrets(tree, self.entries, entry, promise)
        outputs: dict[int, set[int]] = {}
        for parent, y in zip(chapter.parents, chapter.drawn, strict=True):
            outputs.setdefault(parent, set()).add(y)
        own, off, table = 0.0, [0.0] * k, [[0.0] * (2 * k) for _ in range(k)]
        of_class = Counter(cell % k for cell in self.people[t].cells.values())
        donors = [of_class[c] for c in range(k)]
        complaints: list[str] = []
        for node in sorted(chapter.followed):
            history, weights = tree.history(node), dense(chapter.channels[chapter.followed[node]], 2 * k + 1)
            if not is_channel(weights, k, bool(history)):
                complaints.append("a channel lets a record go on that is of another class, or a first one go on")
            if (self.coming or not self.missing[t]) and begins_alone(weights, donors, bool(history)):
                complaints.append(ALONE)
            states, people = observer.states(history), having[node]
            if judged:
                for place, finding, distribution in observer.judged(history, states, weights, sides, node):
                    decided[place].every.add(distribution, finding, 0)
                    decided[place].real.add(distribution, finding, people)
                own_of, of_history = observer.published(history, states, weights)
                own += people * own_of
                off = [one + people * more for one, more in zip(off, observer.off(states, of_history), strict=True)]
                table = [
                    [one + people * more for one, more in zip(row, rows, strict=True)]
                    for row, rows in zip(table, of_history, strict=True)
                ]
            observer.publish(history, states, weights, outputs.get(node, ()))
        if judged:
            if observer.most_off(off, donors) > 1:
                complaints.append("published records of a class are not as common as own ones would be")
            complaints += self._complaints(entry, having, table)
        drawn = Counter(tree.outputs[node] for node in self.people[t].nodes.values())
        return VersionHistories(
            name=chapter.name,
            promise=promise,
            histories=len(chapter.followed),
            people=having.total(),
            by_output=tuple(drawn[y] for y in range(chapter.b)),
            by_channel={},
            by_row={},
            missing=self.missing[t],
            complaints=tuple(complaints),
            broken=tuple(said for one in decided.values() for said in one.broken()),
            followed=len(chapter.followed),
            observers=tuple(one.figures() for one in decided.values()),
            own=own / sum(chapter.counts),
        )

    def _complaints(self, entry: Entry, having: Counter[int], table: Sequence[Sequence[float]]) -> Iterator[str]:
        t, missing, coming = entry.chapter.ordinal, self.missing, self.coming
        before = self.entries[:t]
        yield from order_complaints(self.database, entry)
        yield from class_complaints(self.database, before, entry)
        wrong, last = unfollowed(self.database, self.tree, before, entry)
        if wrong:
            yield f"{wrong:,} people have a history that does not go on from their own"
        yield from counted_complaints(self.database, before, entry, last, missing, coming)
        yield from self._order(entry)
        known = coming or not missing[t]
        new = {NEW} if missing[t] else set()
        had, has = set(having) - new, set(entry.chapter.followed) - new
        if not had <= has or (had != has and known):
            yield "it has channels for other histories than its people had"
        if known and is_other_channel(entry, table):
            yield "the effective channel is not what the channels of its people come to"
        yield from self._draws(entry).complaints(self.classes)

    def _order(self, entry: Entry) -> Iterator[str]:
        """Donors that are not told of everybody once."""
        donors = entry.folder / DONORS
        require_columns(self.database, donors)
        query = """
            SELECT people.high IS NULL OR donors.high IS NULL AS alone
            FROM read_parquet($FILE) AS donors FULL JOIN read_parquet(?) AS people USING (high, low)
        """
        wrong = {"alone": "people have no donor, or others have one"}
        yield from wrong_rows(self.database, donors, query, wrong, [str(entry.people)])
        rows = asked(self.database, donors, "SELECT count(*), count(DISTINCT (high, low)) FROM read_parquet($FILE)")
        if rows[0][0] != rows[0][1]:
            yield "people have several donors"

    def _draws(self, entry: Entry) -> DonorDraws:
        """What was drawn of the people of a version who are not forgotten."""
        t, chapter, tree = entry.chapter.ordinal, entry.chapter, self.tree
        last = {person: of for one in self.people[:t] for person, of in one.stands_for.items()}
        here = self.people[t]
        followed: dict[Person, Person | None] = {person: last.get(person, person) for person in here.nodes}
        # Whose donor is forgotten had none before the version, or one until then.
        gone = {person for person, of in followed.items() if of == NOBODY}
        weights = {k: dense(rows, 2 * chapter.a + 1) for k, rows in chapter.channels.items()}
        return DonorDraws(
            {person: cell % chapter.a for person, cell in here.cells.items()},
            {person: None if of == NOBODY else of for person, of in followed.items()},
            {person: tree.outputs[node] for person, node in here.nodes.items()},
            {person: None if of == NOBODY else of for person, of in here.stands_for.items()},
            {person: weights[chapter.followed[tree.parents[node]]] for person, node in here.nodes.items()},
            {person for person, node in here.nodes.items() if tree.parents[node] == NEW},
            frozenset() if self.coming and t == len(self.entries) - 1 else gone,
        )


def asked_secrets(tree: Tree, entries: Sequence[Entry], entry: Entry, promise: Promise) -> dict[int, Decided]:
    """What is to be decided of the secret of each version up to one, of that one first."""
    t, sides = entry.chapter.ordinal, sides_of(promise)
    return {
        place: Decided(
            TRANSITIONS,
            None if place == t else entries[place].chapter.name,
            entry.secrets == "all" or place == t,
            Tally(tree, promise, sides),
            Tally(tree, promise, sides),
            Tally(tree, promise, sides),
            None,
        )
        for place in (t, *range(t))
    }


def is_other_channel(entry: Entry, table: Sequence[Sequence[float]]) -> bool:
    """Whether the effective channel is not what a table of own and published classes comes to, put right.

    Its rows and columns are scaled in turn to the counted classes. What the last ones are off by then is made up for by
    records that begin, as often in every class.
    """
    k, chapter = entry.chapter.a, entry.chapter
    people = [sum(chapter.counts[x::k]) for x in range(k)]
    shares = [n / sum(people) for n in people]
    of_class = [[row[y] + row[k + y] for y in range(k)] for row in table]
    columns = [1.0] * k
    for _ in range(_ROUNDS):
        rows = [share / (_product(row, columns) or 1) for share, row in zip(shares, of_class, strict=True)]
        sums = [_product(rows, column) for column in zip(*of_class, strict=True)]
        columns = [share / (of or 1) for share, of in zip(shares, sums, strict=True)]
    totals = [_product(row, columns) for row in of_class]
    # Of a class that no one is of, any record begins.
    channel = [
        [p * q / of for p, q in zip(row, columns * 2, strict=True)] if of else [0.0] * k + shares
        for row, of in zip(table, totals, strict=True)
    ]
    by_output = [_product(shares, of) for of in zip(*channel, strict=True)]
    published = [goes_on + begins for goes_on, begins in zip(by_output[:k], by_output[k:], strict=True)]
    kept = min(1.0, *(share / of for share, of in zip(shares, published, strict=True) if of))
    more = [0.0] * k + [share - kept * of for share, of in zip(shares, published, strict=True)]
    return any(
        abs(entry.effective[y][x] / WHOLE - kept * channel[x][y] - more[y]) > _FLOATS
        for x in range(k)
        for y in range(2 * k)
    )


def _product(one: Sequence[float], other: Sequence[float]) -> float:
    return math.fsum(map(mul, one, other))
