"""Whole records of several rows of a person: the bound by a sum over all rows there could be, and computed twice."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pyarrow as pa
import pytest

import funnel
from funnel.errors import DataError, SpecError
from funnel.guarantees.base import Guarantee
from funnel.history.donor_units import UnitRecords, publish_units
from funnel.recount.unit_donors import UnitRelease
from tests.donor_panels import SECRET, ByLetter, class_of
from tests.sabotage.patching import Patch, patched
from tests.unit_panels import judged_rows, plain_release, published_rows, visits

BELIEFS, CHANNELS, STEP, UNITS = (
    f"funnel.history.{name}" for name in ("donor_beliefs", "donor_channels", "donor_step", "donor_units")
)
MUTANTS = {
    "rows to come are not bounded": (STEP, "ahead = rows_to_come(", "ahead = (lambda *_: ())("),
    "the prior is that of first rows": (
        BELIEFS,
        "everybody.reshape(-1), everybody.sum(axis=1))",
        "everybody.reshape(-1), self.priors[0])",
    ),
    "a bound of twice the budget": (
        UNITS,
        "require_kept(guarantee), version",
        "require_kept(type(guarantee)(1.0)), version",
    ),
    "donors with any number of rows": (
        UNITS,
        "np.bincount(self.rows.units)[self.rows.units[at]]",
        "np.ones(len(at), dtype=np.int64)",
    ),
    "records of other rows": (UNITS, "= nodes[here], whole[taken]", "= nodes[here], np.roll(whole[taken], 1)"),
    "rare numbers of rows stay": (UNITS, "taken, drawn.stands_for)", "np.arange(len(taken)), drawn.stands_for)"),
    "more rows are own": (UNITS, "(step.own or 0.0) * step.joint.n", "(step.own or 0.0) ** 0.5 * step.joint.n"),
    "no number of rows is rare": (UNITS, ">= FEWEST).all()", ">= 0).all()"),
    "all rows draw alike": (UNITS, "words(step, nodes, at, None)", "words(step, nodes, at, None)[:1].repeat(len(at))"),
    "the donor before goes on": (UNITS, "past.followed_by(chapter), here[taken]", "past.followed_by(chapter), here"),
}


@pytest.mark.parametrize(
    "guarantee", [funnel.LIP(0.5), funnel.LDP(1.0), funnel.PML(0.5), funnel.ALIP(lower=0.6, upper=0.4)], ids=str
)
def test_the_second_computation_finds_the_same_and_nothing_wrong(guarantee: Guarantee) -> None:
    table = visits(900, seed=3)
    released = published_rows(table, guarantee)
    found = judged_rows(released, table, guarantee)
    assert found.complaints == ()
    assert found.figures.level == pytest.approx(released.level, abs=1e-9)
    assert found.off < 1e-6
    assert 0 < released.level <= guarantee.budget
    assert 0.2 < released.own < 1
    assert all(step.moved == 0 for step in released.waves)
    # Two units have four rows.
    assert (released.outputs < 0).sum() == 8


@pytest.mark.parametrize("name", MUTANTS)
def test_one_changed_line_is_found(name: str) -> None:
    table = visits(900, seed=3)
    try:
        with patched(Patch(*MUTANTS[name])):
            released = published_rows(table, funnel.LIP(0.5))
        found = judged_rows(released, table, funnel.LIP(0.5))
    except (DataError, KeyError):
        return
    assert found.complaints


def largest(release: UnitRelease, waves: int) -> float:
    """The largest level of any row's secret, after any row and output: a sum over all rows that a unit could have."""
    cell_of = {row: (secret, "abc".index(class_of(record))) for row, (secret, record) in release.rows.items()}
    cells = {row: cell for row, cell in cell_of.items() if row in release.outputs}
    first = Counter(cell for (_, place), cell in cells.items() if place == 1)
    after: dict[tuple[str, int], Counter[tuple[str, int]]] = defaultdict(Counter)
    for (unit, place), cell in cells.items():
        if (unit, place + 1) in cells:
            after[cell][cells[unit, place + 1]] += 1
    # What no row follows is like anybody's first row.
    rows_after = {a: after[a] or first for a in {*cells.values()}}
    kernel = {a: {b: Fraction(n, row.total()) for b, n in row.items()} for a, row in rows_after.items()}
    paths = {
        path: Fraction(first[path[0]]) * math.prod(kernel[a].get(b, 0) for a, b in pairwise(path))
        for path in product(kernel, repeat=waves)
    }
    there = [defaultdict[tuple[str, int], Fraction](Fraction) for _ in range(waves)]
    for path, mass in paths.items():
        for t, cell in enumerate(path):
            there[t][cell] += mass
    priors = [{s: sum(m for c, m in of.items() if c[0] == s) / sum(of.values()) for s in ("yes", "no")} for of in there]
    most = 0.0
    for history, weights in release.channels.items():
        told: dict[tuple[int, int, str], Fraction] = defaultdict(Fraction)
        for path, mass in paths.items():
            # Whose record it is: one's own, or that of a donor with some cell.
            who: dict[tuple[str, int] | None, Fraction] = {None: mass}
            for t, y in enumerate([y for _, y in history] + [-1]):
                rows = weights if y < 0 else release.channels[history[:t]]
                if t:
                    moved: dict[tuple[str, int] | None, Fraction] = defaultdict(Fraction)
                    for donor, share in who.items():
                        for to, p in {None: Fraction(1)}.items() if donor is None else kernel[donor].items():
                            moved[to] += share * p
                    who = moved
                if y < 0:
                    for donor, share in who.items():
                        x = path[t][1] if donor is None else 3 + donor[1]
                        for out, row in enumerate(rows):
                            for u, cell in enumerate(path):
                                told[out, u, cell[0]] += share * row[x]
                    continue
                new: dict[tuple[str, int] | None, Fraction] = defaultdict(Fraction)
                of_class = {cell: m for cell, m in there[t].items() if cell[1] == y % 3}
                for donor, share in who.items():
                    mine = share * rows[y][path[t][1] if donor is None else 3 + donor[1]]
                    if y < 3 or (t == 0 and path[t][1] == y - 3):
                        new[donor] += mine
                    elif mine:
                        for cell, m in of_class.items():
                            new[cell] += mine * m / sum(of_class.values())
                who = new
        for out, u in {(out, u) for out, u, _ in told}:
            both = {s: told[out, u, s] for s in ("yes", "no")}
            if total := sum(both.values()):
                lifts = [one / total / priors[u][s] for s, one in both.items()]
                most = max(most, *(abs(math.log(lift)) if lift else math.inf for lift in lifts))
    return most


def small(seed: int) -> tuple[UnitRecords, UnitRelease]:
    table = visits(60, seed, most=2, rare=0)
    released = published_rows(table, funnel.LIP(0.5))
    return released, plain_release(released, table)


@pytest.mark.parametrize("seed", range(4))
def test_no_row_of_any_unit_there_could_be_is_beyond_the_bound(seed: int) -> None:
    released, release = small(seed)
    assert largest(release, 2) == pytest.approx(released.level, abs=1e-9)
    assert released.level <= 0.5
    with patched(Patch(*MUTANTS["rows to come are not bounded"])):
        _, other = small(seed)
    assert largest(other, 2) > 0.41


def test_donors_have_as_many_rows_and_records_stay_whole() -> None:
    table = visits(300, seed=2)
    released = published_rows(table, funnel.LIP(0.7))
    sizes = np.bincount(released.rows.units)[released.rows.units]
    drawn = released.outputs >= 0
    assert (sizes[released.stands_for] == sizes)[drawn].all()
    assert (released.rows.places[released.stands_for] == released.rows.places)[drawn].all()
    true = {tuple(row.values()) for row in table.select(ByLetter.columns).to_pylist()}
    assert {tuple(row.values())[:-1] for row in released.released.to_pylist()} <= true
    again = published_rows(table, funnel.LIP(0.7))
    assert again.released.equals(released.released)
    assert not published_rows(table, funnel.LIP(0.7), secret_bytes=None).released.equals(released.released)


def test_units_of_one_row_are_records_of_different_people() -> None:
    table = visits(600, seed=5, most=1, rare=0)
    released = published_rows(table, funnel.LIP(0.5))
    assert judged_rows(released, table, funnel.LIP(0.5)).complaints == ()
    assert len(released.waves) == 1


def test_what_cannot_be_kept_is_refused() -> None:
    table = visits(60, seed=1)
    with pytest.raises(SpecError, match="cannot be kept by followed donors"):
        published_rows(table, funnel.SRLIP(1.0))
    with pytest.raises(SpecError, match="more than 24 rows"):
        published_rows(pa.concat_tables([table] * 9), funnel.LIP(1.0))
    with pytest.raises(DataError, match="for every number of rows"):
        published_rows(visits(6, seed=1), funnel.LIP(1.0))
    with pytest.raises(SpecError, match="'town' is published and a secret"):
        publish_units(table, funnel.LIP(1.0), ByLetter(), unit=["id"], secret=["town"], secret_bytes=SECRET)
    with pytest.raises(SpecError, match="between 0 and 1"):
        publish_units(table, funnel.LIP(1.0), ByLetter(), unit=["id"], secret=["ill"], budget_fraction=1.0)
