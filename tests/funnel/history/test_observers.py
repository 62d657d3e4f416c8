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
from funnel.errors import DataError, SpecError
from funnel.frequencies.moves import Moves
from funnel.history.conditions import Conditions
from funnel.history.mover_stayer import changes_without_class, class_cells, differs, without_class
from funnel.protocol import INVARIANT
from tests.histories import History, Wave, level
from tests.movers import FittedReader, MoverStayerReader

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
    """Who counts changes by class in these waves, up to version ``upto``."""

    def rows(t: int, history: History) -> np.ndarray:
        return book.steps[t].rows_for(tuple((f"v{v}", y) for v, y in history))

    return MoverStayerReader(known(waves[: upto + 1]), rows, number)


def known(waves: list[People]) -> tuple[Wave, ...]:
    return tuple(Wave({i: divmod(cell, A) for i, cell in one.items()}, C, A) for one in waves)


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
        assert [(one.observer, one.secret_of) for one in step.by_observer] == [
            (name, of) for name in BOTH for of in (None, *(f"v{v}" for v in range(t)))
        ]
        worst, moved, outside, moved_worst = 0.0, 0, 0, 0.0
        for history, records in histories(book, t).items():
            distribution, prior = reader.before(history, t), reader.prior(history[-1][0] if history else None, t)
            rows = [[Fraction(int(w)) for w in row] for row in reader.rows(t, history)]
            said = [(distribution * np.array(row)).sum(axis=1) for row in rows]
            levels = [level(reader.lifts(row / row.sum(), prior)) for row in said if row.sum()]
            alone = level(reader.lifts(distribution.sum(axis=1), prior))
            if alone > BUDGET:
                assert max(levels) <= alone + 2e-9
                moved, outside = moved + records, outside + records * (max(levels) > BUDGET)
                moved_worst = max(moved_worst, *levels)
            else:
                worst = max(worst, *levels)
                assert max(levels) <= BUDGET
        told = next(one for one in step.by_observer if (one.observer, one.secret_of) == (BOTH[1], None))
        assert (told.moved, told.outside) == (moved, outside)
        assert told.level == pytest.approx(worst, abs=1e-9)
        assert (told.moved_level or 0.0) == pytest.approx(moved_worst, abs=1e-9)


@pytest.mark.parametrize("mechanism", [None, INVARIANT])
def test_who_knows_that_some_never_change_is_bounded_only_where_that_is_asked(mechanism: str | None) -> None:
    waves = panel(6_000, here=1.0)
    outside = {}
    for observers in (("transitions",), BOTH):
        book = published(waves, mechanism, observers=observers, secrets="current")
        assert list(dict.fromkeys(one.observer for one in book.steps[-1].bounded_for)) == list(observers)
        reader = reader_of(book, waves, 2, np.longdouble)
        levels = {}
        for history in histories(book, 2):
            distribution, prior = reader.before(history, 2), reader.prior(1, 2)
            said = [(distribution * (row / 2.0**63)).sum(axis=1) for row in reader.rows(2, history)]
            levels[history] = max(level(reader.lifts(row / row.sum(), prior)) for row in said if row.sum())
        outside[observers] = sum(n for h, n in histories(book, 2).items() if levels[h] > BUDGET + 1e-9)
    assert outside["transitions",] > 1_000
    assert outside[BOTH] == 0


def test_every_fit_of_movers_and_stayers_has_as_many_who_never_change_as_are_counted() -> None:
    waves = known(panel(3_000, waves=4, seed=3, here=1.0, staying=0.4))
    fit, last = FittedReader.fitted(waves, None, float), len(waves) - 1
    begun = Counter(waves[0].people.values())
    never = Counter(cell for key, cell in waves[0].people.items() if len({wave.people[key] for wave in waves}) == 1)
    everywhere = tuple(range(len(waves)))
    for cell, people in begun.items():
        staying = float(fit.stayers[cell, everywhere]) / people
        moving = 1 - staying
        for t in range(last):
            moving *= float(fit.movers(t, t + 1)[(*cell, *cell)])
        assert 0 < staying < 1
        assert staying + moving == pytest.approx(never[cell] / people, abs=1e-6)
    # Counted, these are a product of shares; the last factor of every one is that of all who never changed till then.
    rows = np.eye(A, dtype=np.uint64) * np.uint64(2**63)
    same = MoverStayerReader(waves, lambda t, history: rows, Fraction)
    for s, x in begun:
        table = same.of_classes((), 0)
        for t in range(1, len(waves)):
            went = same._went(t - 1, t)
            state = (0, s, x)
            table = table * 0 + table[state] * Fraction(went[state][state], went[state].total())
        assert table[0, s, x] == Fraction(never[s, x], len(waves[0].people))


def test_changes_by_class_are_those_of_all_people_told_apart() -> None:
    waves = panel(500, waves=4, here=0.7, seed=8)
    book = published(waves)
    other = reader_of(book, waves, 3, Fraction)
    for t, chapter in enumerate(book.past.chapters):
        assert sorted(chapter.by_class or {}) == list(range(t))
        for v, changes in (chapter.by_class or {}).items():
            counted = {
                (cell(was), cell(now)): count for was, went in other._went(v, t).items() for now, count in went.items()
            }
            columns = (changes.before.tolist(), changes.after.tolist(), changes.records.tolist())
            assert {(was, now): count for was, now, count in zip(*columns, strict=True)} == counted
            both = [(waves[v][i], waves[t][i]) for i in waves[v] if i in waves[t]]
            of_all = changes_without_class(changes, book.steps[v].joint, book.steps[t].joint)
            assert Counter(both) == {
                (was, now): count
                for was, now, count in zip(
                    of_all.before.tolist(), of_all.after.tolist(), of_all.records.tolist(), strict=True
                )
            }
            assert len({was for was, _ in counted} & set(range(C * 2 * A))) > C * A or v == 0


def cell(state: tuple[int, int, int]) -> int:
    changed, s, x = state
    return s * 2 * A + changed * A + x


def test_cells_of_classes_go_there_and_back() -> None:
    cells, changed = np.repeat(np.arange(C * A), 2), np.tile([False, True], C * A)
    there = class_cells(cells, changed, A)
    assert sorted(there.tolist()) == list(range(2 * C * A))
    assert [one.tolist() for one in without_class(there, A)] == [cells.tolist(), changed.tolist()]


def test_who_has_another_value_in_a_column_of_both_versions_changed() -> None:
    columns = {
        "id": [1, 2, 3, 4],
        "ill": ["y", "n", "y", "n"],
        "size": ["s", "m", "s", "s"],
        "town": ["a", "a", "b", "b"],
    }
    earlier = funnel.Joint.from_table(pa.table(columns), ["ill"], ["size", "town"])
    later = funnel.Joint.from_table(pa.table({**columns, "job": ["p", "q", "p", "q"]}), ["ill"], ["job", "town"])

    def at(distribution: funnel.Joint, s: str, x: tuple[str, str]) -> int:
        return distribution.secret.symbols.index((s,)) * len(distribution.inputs) + distribution.inputs.symbols.index(x)

    # The size is no column of the later version: who has the town and the secret of before has not changed.
    before = np.array([at(earlier, "y", ("s", "a")), at(earlier, "y", ("s", "a")), at(earlier, "n", ("s", "b"))])
    after = np.array([at(later, "y", ("p", "a")), at(later, "y", ("p", "b")), at(later, "y", ("p", "b"))])
    assert differs(earlier, before, later, after).tolist() == [False, True, True]


def test_units_have_the_first_observer_alone_or_are_refused() -> None:
    rows = table(panel(100)[0])
    names = {"key": ["id"], "secret": ["ill"], "inputs": ["size"]}
    asked = funnel.History(LIP(BUDGET), observers=BOTH)
    with pytest.raises(SpecError, match="one row each"):
        asked.extend(rows, **names, version="a", unit=["id"])
    book = funnel.History(LIP(BUDGET))
    book.extend(rows, **names, version="a", unit=["id"])
    # Rows of a unit were not counted by class, and so neither are versions after them.
    assert {one.observer for one in book.extend(rows, **names, version="b").by_observer} == {BOTH[0]}
    late = funnel.History(LIP(BUDGET), observers=["transitions"])
    late.extend(rows, **names, version="a", unit=["id"])
    late.observers = BOTH
    with pytest.raises(DataError, match="not counted by class"):
        late.extend(rows, **names, version="b")


@pytest.mark.parametrize("names", [["mover-stayer"], ["transitions", "stayers"], ["transitions", "transitions"]])
def test_observers_that_there_are_not_are_refused(names: list[str]) -> None:
    with pytest.raises(SpecError, match="observer"):
        funnel.History(LIP(1.0), observers=names)


def test_conditions_of_several_observers_are_those_of_each() -> None:
    rng = np.random.default_rng(2)
    distributions = rng.dirichlet(np.ones(6), size=(5, 2)).reshape(5, 2, 2, 3)
    cone = LIP(0.1).posterior_cone(np.array([0.5, 0.5]))
    both = Conditions.of(distributions.reshape(5, 4, 3), np.kron(np.eye(2), cone), (2, 2))
    for observer in range(2):
        one, of = (
            Conditions.of(distributions[:, observer], cone),
            slice(observer * len(cone), (observer + 1) * len(cone)),
        )
        assert np.array_equal(both.held[:, of], one.held)
        assert both.rows[:, of] == pytest.approx(one.rows, abs=1e-15)
        assert both.slack[:, of] == pytest.approx(one.slack, abs=1e-15)


def test_where_all_are_moved_their_level_is_told_though_no_frequency_changed() -> None:
    # Nine in ten have the published value of the first wave as the secret of the second one.
    number = np.arange(400)
    ill, size = number % 2, number // 2 % 2
    later = np.where(number // 4 % 10 == 0, 1 - size, size)
    book = funnel.History(LIP(0.5), observers=["transitions"], secrets="current")
    names = {"key": ["id"], "secret": ["ill"], "inputs": ["size"]}
    for version, secret in (("1", ill), ("2", later)):
        columns = {"ill": secret.astype(str), "size": size.astype(str) if version == "1" else (number % 2).astype(str)}
        step = book.extend(pa.table({"id": number, **columns}), **names, version=version)
    assert (step.moved, step.level.value) == (400, 0.0)
    assert step.moved_level == pytest.approx(np.log(5), abs=1e-9)
    assert book.steps[0].moved_level is None


def who_changed(same: bool) -> list[People]:
    """Three waves of 1,200 people, of whom half change each time: always the same, or half of each kind."""
    cells = np.repeat([0, 1, A, A + 1], [500, 100, 100, 500])
    places = np.arange(len(cells)) % 4
    found = [cells]
    for changing in (places < 2, places < 2 if same else places % 2 == 0):
        found.append(np.where(changing, A + 1 - found[-1], found[-1]))
    return [dict(enumerate(one.tolist())) for one in found]


def test_tables_of_changes_leave_open_who_never_changed() -> None:
    """Under noise the second observer is refused: of two panels all is published alike, and they conclude otherwise."""
    panels = who_changed(same=True), who_changed(same=False)
    books = [published(waves, observers=("transitions",), secrets="current") for waves in panels]
    for t in (1, 2):
        one, other = (
            Moves.counted("v", book.steps[t].observed.changes[t - 1], book.steps[t - 1].joint, book.steps[t].joint)
            for book in books
        )
        assert np.array_equal(one.secrets, other.secrets)
        assert np.array_equal(one.stayed, other.stayed)
        assert np.array_equal(one.left, other.left)
        assert np.array_equal(books[0].steps[t].joint.counts, books[1].steps[t].joint.counts)
    # As many as stay from a version to the next, and half of them.
    assert [sum(len({wave[i] for wave in waves}) == 1 for i in waves[0]) for waves in panels] == [600, 300]
    told = [{one.observer: one for one in book.steps[2].by_observer if one.secret_of is None} for book in books]
    # All are within the bound for the observer whom rows are made for.
    assert [one["transitions"].outside for one in told] == [0, 0]
    assert [one["mover-stayer"].outside for one in told] == [1200, 0]
    assert told[0]["mover-stayer"].level > 1.5 * BUDGET > BUDGET >= told[1]["mover-stayer"].level
