"""Several observers of a history: movers and stayers, believed by another recursion, in fractions."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import funnel
from funnel import LIP
from funnel.errors import SpecError
from funnel.history.conditions import Conditions, stacked
from funnel.history.mover_stayer import SCALE, MoverStayer, Trajectories
from funnel.protocol import INVARIANT
from tests.histories import History, Wave, level
from tests.movers import MoverStayerReader

BUDGET, C, A = 0.6, 2, 3
LAW = np.array([0.25, 0.15, 0.1, 0.05, 0.15, 0.3])
BOTH = ("transitions", "mover-stayer")
People = dict[int, int]


def panel(people: int, waves: int = 3, seed: int = 1, here: float = 0.9, staying: float = 0.5) -> list[People]:
    """Movers and stayers who are in a wave or not: the cell of each; all cells are in every wave."""
    rng = np.random.default_rng(seed)
    cells, stays = rng.choice(C * A, people, p=LAW), rng.random(people) < staying
    cells[: C * A], stays[: C * A] = np.arange(C * A), True
    found = []
    for t in range(waves):
        cells = np.where(stays | (t == 0), cells, rng.choice(C * A, people, p=LAW))
        there = rng.random(people) < here
        there[: C * A] = True
        found.append({int(i): int(cells[i]) for i in np.flatnonzero(there)})
    return found


def table(people: People) -> pa.Table:
    ill, size = zip(*(divmod(cell, A) for cell in people.values()), strict=True)
    columns = {"ill": [str(s) for s in ill], "size": [str(x) for x in size]}
    return pa.table({"id": list(people), **columns})


def published(waves: list[People], mechanism: str | None = None, **settings: Any) -> funnel.History:
    book = funnel.History(LIP(BUDGET), **settings)
    names = {"key": ["id"], "secret": ["ill"], "inputs": ["size"]}
    for t, people in enumerate(waves):
        rows, target = table(people), None
        if mechanism is not None:
            target = funnel.fit(mechanism, funnel.Joint.from_table(rows, ["ill"], ["size"]), book.guarantee)
        book.extend(rows, **names, version=f"v{t}", secret_bytes=bytes(range(32)), target=target)
    return book


def reader_of(book: funnel.History, waves: list[People], upto: int, number: Any) -> MoverStayerReader:
    """Who believes what the book fitted before version ``upto``; with long doubles, what is fitted here."""
    known = tuple(Wave({i: divmod(cell, A) for i, cell in one.items()}, C, A) for one in waves[: upto + 1])

    def rows(t: int, history: History) -> np.ndarray:
        return book.steps[t].rows_for(tuple((f"v{v}", y) for v, y in history))

    if number is not Fraction:
        return MoverStayerReader.fitted(known, rows, number)
    fitted = book.steps[upto].observed.movers
    assert fitted is not None
    return MoverStayerReader(known, rows, Fraction, stayers=by_cell(fitted))


def by_cell(fitted: MoverStayer) -> dict[Any, Fraction]:
    """Stayers by what they are and the versions they are in."""
    there = fitted.people
    found = {}
    for cell, versions, changed, stayers in zip(
        there.cells.tolist(), there.versions.tolist(), there.changed.tolist(), fitted.stayers.tolist(), strict=True
    ):
        assert not (changed and stayers)
        if not changed:
            found[divmod(cell, A), tuple(t for t in range(60) if versions >> t & 1)] = Fraction(stayers, SCALE)
    return found


def histories(book: funnel.History, upto: int) -> Counter[History]:
    """How many people had which history before a version."""
    step = book.steps[upto]
    found: Counter[History] = Counter()
    for node, records in zip(step.observed.nodes.tolist(), step.observed.records.tolist(), strict=True):
        found[tuple((int(name[1:]), y) for name, y in step.past.history(node))] += records
    return found


@pytest.mark.parametrize("mechanism", [None, INVARIANT])
def test_the_bound_holds_for_movers_and_stayers_in_fractions(mechanism: str | None) -> None:
    waves = panel(150)
    book = published(waves, mechanism)
    for t in range(1, len(waves)):
        step, reader = book.steps[t], reader_of(book, waves, t, Fraction)
        assert [one.observer for one in step.by_observer] == list(BOTH)
        worst, moved, outside, moved_worst = 0.0, 0, 0, 0.0
        for history, records in histories(book, t).items():
            law, prior = reader.before(history, t), reader.prior(history[-1][0] if history else None, t)
            rows = [[Fraction(int(w)) for w in row] for row in reader.rows(t, history)]
            said = [(law * np.array(row)).sum(axis=1) for row in rows]
            levels = [level(reader.lifts(row / row.sum(), prior)) for row in said if row.sum()]
            alone = level(reader.lifts(law.sum(axis=1), prior))
            if alone > BUDGET:
                assert max(levels) <= alone + 2e-9
                moved, outside = moved + records, outside + records * (max(levels) > BUDGET)
                moved_worst = max(moved_worst, *levels)
            else:
                worst = max(worst, *levels)
                assert max(levels) <= BUDGET
        told = step.by_observer[1]
        assert (told.moved, told.outside) == (moved, outside)
        assert told.level == pytest.approx(worst, abs=1e-9)
        assert (told.moved_level or 0.0) == pytest.approx(moved_worst, abs=1e-9)


@pytest.mark.parametrize("mechanism", [None, INVARIANT])
def test_who_knows_that_some_never_change_is_bounded_only_where_that_is_asked(mechanism: str | None) -> None:
    waves = panel(6_000, here=1.0)
    outside = {}
    for observers in (("transitions",), BOTH):
        book = published(waves, mechanism, observers=observers)
        assert [one.observer for one in book.steps[-1].by_observer] == list(observers)
        reader = reader_of(book, waves, 2, np.longdouble)
        levels = {}
        for history in histories(book, 2):
            law, prior = reader.before(history, 2), reader.prior(1, 2)
            said = [(law * (row / 2.0**63)).sum(axis=1) for row in reader.rows(2, history)]
            levels[history] = max(level(reader.lifts(row / row.sum(), prior)) for row in said if row.sum())
        # Fitted here by rounds of its own, so that stayers are a little more or less than the book's.
        outside[observers] = sum(n for h, n in histories(book, 2).items() if levels[h] > BUDGET + 1e-3)
    assert outside["transitions",] > 1_000
    assert outside[BOTH] == 0


def test_stayers_are_those_that_another_fit_finds() -> None:
    waves = panel(4_000, seed=3, staying=0.4)
    book = published(waves)
    fitted = book.steps[-1].observed.movers
    assert fitted is not None
    other = reader_of(book, waves, 2, float).stayers
    mine = by_cell(fitted)
    assert mine.keys() == other.keys()
    assert max(abs(float(mine[key]) - other[key]) for key in mine) < 0.5
    # Four in ten never move; of those who are in one wave nothing is known.
    assert sum(map(float, mine.values())) / fitted.people.records.sum() == pytest.approx(0.4, abs=0.05)


def test_of_nobody_who_changed_anything_is_said_by_stayers() -> None:
    cells = [np.array([0, 1, 2, -1]), np.array([0, 3, -1, 1]), np.array([-1, 1, 2, 1])]
    law = funnel.Joint.from_counts(np.ones((2, 2), dtype=np.int64))
    found = Trajectories.counted([law] * 3, cells)
    said = zip(found.cells.tolist(), found.versions.tolist(), found.changed.tolist(), strict=True)
    assert sorted(said) == [(0, 0b011, False), (1, 0b110, False), (1, 0b111, True), (2, 0b101, False)]
    assert found.records.tolist() == [1] * 4
    assert found.first[found.versions == 0b110].tolist() == [1]


def test_other_columns_leave_the_first_observer_alone_or_are_refused() -> None:
    rows = table(panel(100)[0])
    other = rows.append_column("town", rows["size"])
    first = {"key": ["id"], "secret": ["ill"]}
    book = funnel.History(LIP(BUDGET))
    book.extend(rows, **first, inputs=["size"], version="a")
    assert [one.observer for one in book.extend(other, **first, inputs=["town"], version="b").by_observer] == [BOTH[0]]
    asked = funnel.History(LIP(BUDGET), observers=BOTH)
    asked.extend(rows, **first, inputs=["size"], version="a")
    with pytest.raises(SpecError, match="publish the same columns"):
        asked.extend(other, **first, inputs=["town"], version="b")
    with pytest.raises(SpecError, match="one row each"):
        asked.extend(rows, **first, inputs=["size"], version="b", unit=["id"])


@pytest.mark.parametrize("names", [["mover-stayer"], ["transitions", "stayers"], ["transitions", "transitions"]])
def test_observers_that_there_are_not_are_refused(names: list[str]) -> None:
    with pytest.raises(SpecError, match="observer"):
        funnel.History(LIP(1.0), observers=names)


def test_conditions_of_several_observers_are_those_of_each() -> None:
    rng = np.random.default_rng(2)
    laws = rng.dirichlet(np.ones(6), size=(5, 2)).reshape(5, 2, 2, 3)
    cone = LIP(0.1).posterior_cone(np.array([0.5, 0.5]))
    both = Conditions.of(laws.reshape(5, 4, 3), stacked(cone, 2), 2)
    for observer in range(2):
        one, of = Conditions.of(laws[:, observer], cone), slice(observer * len(cone), (observer + 1) * len(cone))
        assert np.array_equal(both.held[:, of], one.held)
        assert both.rows[:, of] == pytest.approx(one.rows, abs=1e-15)
        assert both.slack[:, of] == pytest.approx(one.slack, abs=1e-15)


def test_where_all_are_moved_their_level_is_told_though_no_frequency_changed() -> None:
    # Nine in ten have the published value of the first wave as the secret of the second one.
    number = np.arange(400)
    ill, size = number % 2, number // 2 % 2
    later = np.where(number // 4 % 10 == 0, 1 - size, size)
    book = funnel.History(LIP(0.5), observers=["transitions"])
    names = {"key": ["id"], "secret": ["ill"], "inputs": ["size"]}
    for version, secret in (("1", ill), ("2", later)):
        columns = {"ill": secret.astype(str), "size": size.astype(str) if version == "1" else (number % 2).astype(str)}
        step = book.extend(pa.table({"id": number, **columns}), **names, version=version)
    assert (step.moved, step.level.value) == (400, 0.0)
    assert step.moved_level == pytest.approx(np.log(5), abs=1e-9)
    assert book.steps[0].moved_level is None
