"""Members: rows of a unit with secrets of their own, against a reader who adds up every household there could be."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import funnel
from funnel.errors import SpecError
from funnel.history.waves import _CountedRows
from tests.funnel.history.test_waves import Book, allowed, level
from tests.funnel.history.unit_brute import Cell, UnitReader, Version, shares

Path = tuple[Cell, ...]
History = tuple[tuple[str, int], ...]


class HouseholdReader(UnitReader):
    """After a cell that no row follows comes a first row of any secret."""

    def __init__(self, versions: list[Version]) -> None:
        super().__init__(versions)
        # Units of as many rows could have been the same ways.
        self._paths: dict[tuple[tuple[int, int], ...], dict[Path, int]] = {}

    def next_row(self, t: int, cell: Cell) -> dict[Cell, Fraction]:
        followed = {before for rows in self.versions[t].values() for before in rows[:-1]}
        if cell in followed:
            return super().next_row(t, cell)
        return shares(Counter(rows[0] for rows in self.versions[t].values()))

    def paths(self, seen: list[tuple[int, int]]) -> dict[Path, int]:
        """Every sequence of rows in some versions, (version, rows) in their order, and how likely, in whole numbers."""
        if tuple(seen) not in self._paths:
            found = self._likely(seen)
            whole = math.lcm(*(share.denominator for share in found.values()))
            self._paths[tuple(seen)] = {path: int(share * whole) for path, share in found.items()}
        return self._paths[tuple(seen)]

    def _likely(self, seen: list[tuple[int, int]]) -> dict[Path, Fraction]:
        (first, rows), *later = seen
        found = {(cell,): share for cell, share in self.first(first).items()}
        before = first
        for t, steps in [(first, rows - 1), *later]:
            for _ in range(steps):
                kernel = self._kernel(before, t)
                found = {
                    (*path, after): share * part
                    for path, share in found.items()
                    for after, part in kernel(path[-1]).items()
                }
                before = t
        return found

    def _kernel(self, before: int, t: int) -> Any:
        if before == t:
            return cache(lambda cell: self.next_row(t, cell))
        return cache(lambda cell: self.next_version(before, t, cell))

    def secret_before(self, before: int | None, t: int, row: int) -> dict[int, Fraction]:
        """How common secrets are in a row, from 0, of the units that come from a version, or of all."""
        return _by(self.cells_before(before, t, row), lambda cell: cell[0])

    def cells_before(self, before: int | None, t: int, row: int) -> dict[Cell, Fraction]:
        """How common cells are there."""
        units = [u for u in self.versions[t] if before is None or u in self.versions[before]]
        distribution = shares(Counter(self.versions[t][u][0] for u in units))
        for _ in range(row):
            after: dict[Cell, Fraction] = {}
            for cell, share in distribution.items():
                for other, part in self.next_row(t, cell).items():
                    after[other] = after.get(other, Fraction()) + share * part
            distribution = after
        return distribution


def _by(distribution: dict[Any, Any], key: Any) -> dict[int, Any]:
    found: dict[int, Any] = {}
    for what, share in distribution.items():
        found[key(what)] = found.get(key(what), 0) + share
    return found


def lifts(reader: HouseholdReader, book: Book, unit: int, t: int) -> Iterator[dict[int, Fraction]]:
    """Of the secrets of all rows of a unit up to a version, for all that each of its rows there could have got."""
    seen, priors, before = [], [], None
    for v in range(t + 1):
        if unit in reader.versions[v]:
            deepest = max(map(len, reader.versions[v].values()))
            rows = deepest if v == t else len(reader.versions[v][unit])
            seen.append((v, rows))
            priors += [reader.secret_before(before, v, row) for row in range(rows)]
            before = v
    weights = reader.paths(seen)
    history: History = ()
    at = 0
    for v, _ in seen:
        waves = book.done[v][1]
        for row, got in enumerate(book.got(unit, v)):
            table, inputs = waves.step.rows_for(history), book.alphabets[v][1]
            column = {path: inputs.index(path[at][1]) for path in weights}
            for y in range(len(table)) if v == t else ():
                row_of = table[y].tolist()
                after = {path: share * row_of[column[path]] for path, share in weights.items()}
                total = sum(after.values())
                for place, prior in enumerate(priors if total else ()):
                    told = _by(after, lambda path, place=place: path[place][0])
                    yield {s: Fraction(told.get(s, 0), total) / share for s, share in prior.items()}
            row_of = table[got].tolist()
            weights = {path: share * row_of[column[path]] for path, share in weights.items() if row_of[column[path]]}
            history = (*history, (f"v{v}" if row == 0 else f"v{v}#{row + 1}", got))
            at += 1


@st.composite
def households(draw: st.DrawFn) -> list[Version]:
    """One or two versions of units of up to three rows, whose secrets are alike and not the same."""
    made = []
    for _ in range(draw(st.integers(1, 2))):
        random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
        units = [u for u in range(draw(st.integers(6, 30))) if random.random() < 0.8] or [0]
        version: Version = {}
        for unit in units:
            usual = random.random() < 0.4
            secrets = [int(usual ^ (random.random() < 0.2)) for _ in range(1 + int(random.integers(3)))]
            version[unit] = [(s, s if random.random() < 0.6 else int(random.integers(3))) for s in secrets]
        # Where no unit has two secrets they are units whose rows share one, which another reader is for.
        assume(any(len({secret for secret, _ in rows}) > 1 for rows in version.values()))
        made.append(version)
    return made


@settings(max_examples=25, deadline=None)
@given(households(), st.sampled_from([funnel.LIP(0.5), funnel.LIP(1.2), funnel.LDP(1.0)]), st.integers(0, 2**32 - 1))
def test_the_secret_of_every_member_is_within_the_bound_for_whoever_adds_up_all_ways(
    made: list[Version], guarantee: funnel.Guarantee, seed: int
) -> None:
    reader, book = HouseholdReader(made), Book(guarantee, read_alone=False, seed=seed)
    for t, version in enumerate(made):
        waves = book.extend(version)
        worst, known = 0.0, set[Any]()
        for unit in version:
            # What is told of units that got the same is the same.
            got = tuple((v, book.got(unit, v)) for v in range(t + 1) if unit in made[v])
            if got in known:
                continue
            known.add(got)
            found = list(lifts(reader, book, unit, t))
            if t == 0 or not waves.step.moved:
                assert all(allowed(guarantee, lift) for lift in found)
                worst = max(worst, *(level(guarantee, lift) for lift in found))
        assert t or waves.step.moved == waves.step.outside == 0
        assert waves.step.level.value >= worst - 1e-9
        assert waves.step.level.value <= guarantee.budget  # type: ignore[attr-defined]


def alike(units: int = 300, seed: int = 0) -> Version:
    """Households of up to three, most members of which have the same secret, and a value that tells it."""
    random = np.random.default_rng(seed)
    usual = random.random(units) < 0.4
    version: Version = {}
    for unit in range(units):
        secrets = [int(usual[unit] ^ (random.random() < 0.1)) for _ in range(1 + int(random.integers(3)))]
        version[unit] = [(s, s if random.random() < 0.7 else int(random.integers(3))) for s in secrets]
    return version


def beyond(version: Version, book: Book) -> int:
    """Units of whom some member's secret is outside LIP 1 for an output that one of its rows could have got."""
    reader, known = HouseholdReader([version]), {}
    found = 0
    for unit in version:
        drawn = book.got(unit, 0)
        if drawn not in known:
            known[drawn] = any(not allowed(funnel.LIP(1.0), lift) for lift in lifts(reader, book, unit, 0))
        found += known[drawn]
    return found


def test_members_who_are_bounded_for_their_own_secret_alone_leave_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    version = alike()
    book = Book(funnel.LIP(1.0), read_alone=False, seed=1)
    waves = book.extend(version)
    assert beyond(version, book) == 0
    assert waves.step.utility > 0.3 * waves.step.entropy
    # The same without the rows that are to come and those before: only the secret of the row that is drawn.
    decide = _CountedRows.decide

    def alone(self: Any, *args: Any) -> Any:
        self._members = None
        return decide(self, *args)

    monkeypatch.setattr(_CountedRows, "decide", alone)
    careless = Book(funnel.LIP(1.0), read_alone=False, seed=1)
    careless.extend(version)
    assert beyond(version, careless) > len(version) / 4


def table(version: Version) -> pa.Table:
    flat = [(unit, *cell) for unit, rows in version.items() for cell in rows]
    return pa.table(
        {
            "row": range(len(flat)),
            "household": [unit for unit, _, _ in flat],
            "ill": [["no", "yes"][s] for _, s, _ in flat],
            "ward": ["abc"[x] for _, _, x in flat],
        }
    )


def extended(book: funnel.History, version: Version, name: str) -> funnel.history.step.Step:
    return book.extend(table(version), key=["row"], unit=["household"], secret=["ill"], inputs=["ward"], version=name)


def test_a_table_of_households_keeps_the_bound_over_two_versions_in_the_library() -> None:
    book = funnel.History(funnel.LIP(1.0))
    first, second = (extended(book, alike(seed=seed), name) for seed, name in ((0, "1"), (1, "2")))
    for step in (first, second):
        assert step.level.value <= 1.0
        assert step.guarantee.holds(step.joint, step.channel)
    assert first.moved == 0
    assert [(one.observer, one.secret_of, one.bounded) for one in second.by_observer] == [
        ("transitions", None, True),
        ("transitions", "1", True),
    ]


def test_households_are_refused_where_only_the_secret_now_is_bounded_and_where_they_are_too_large() -> None:
    book = funnel.History(funnel.LIP(1.0), secrets="current")
    with pytest.raises(SpecError, match=r'units \(.household.\) have several values of .* choose "all", or give all'):
        extended(book, alike(20), "1")
    large = {0: [(n % 2, 0) for n in range(25)], 1: [(1, 1)]}
    with pytest.raises(SpecError, match=r"1 of 2 units .* more than 24 rows with secrets of their own, the largest 25"):
        extended(funnel.History(funnel.LIP(1.0)), large, "1")
