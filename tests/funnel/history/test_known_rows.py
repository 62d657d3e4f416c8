"""Observers who know columns of one row of a person, whichever it is: all ways rows could have been, in fractions."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import funnel
from funnel.history.step import Step
from tests.funnel.history.brute import beyond, worse
from tests.funnel.history.test_known_columns import BUDGET, GUARANTEES, KNOWN, ROOM, VALUES, History, asked, believed
from tests.funnel.history.test_members import HouseholdReader
from tests.funnel.history.test_waves import Book
from tests.funnel.history.unit_brute import Cell, UnitReader, Version


class SharingReader(HouseholdReader):
    """Of units whose rows share a secret, which stays after a cell that no row follows."""

    def next_row(self, t: int, cell: Cell) -> dict[Cell, Fraction]:
        return UnitReader.next_row(self, t, cell)


def units(seed: int, shared: bool, people: int = 16) -> list[Version]:
    """Two versions of one to three rows of two columns, one of which goes with the secret; some are in one alone."""
    rng = np.random.default_rng(seed)
    usual, made = rng.random(people) < 0.4, []
    for _ in range(2):
        version: Version = {}
        for unit in np.flatnonzero(rng.random(people) < 0.9).tolist():
            rows = []
            for _ in range(1 + int(rng.random() < 0.6)):
                ill = bool(usual[unit]) if shared else bool(usual[unit] ^ (rng.random() < 0.2))
                x, z = int(rng.random() < (0.7 if ill else 0.3)), int(rng.integers(2))
                rows.append((int(ill), 2 * x + z))
            version[unit] = rows
        made.append(version)
        usual = np.where(rng.random(people) < 0.2, ~usual, usual)
    return made


class TwoColumns(Book):
    """Versions of two columns."""

    def named(self, inputs: list[int]) -> funnel.Alphabet:
        return funnel.Alphabet(("x", "z"), tuple((f"x{x}", f"z{z}") for x, z in map(VALUES.__getitem__, inputs)))


def published(versions: list[Version], guarantee: funnel.Guarantee) -> list[Step]:
    book = TwoColumns(guarantee, read_alone=False, seed=1)
    return [book.extend(version).step for version in versions]


@pytest.mark.parametrize("shared", [True, False], ids=["one secret", "secrets of their own"])
@pytest.mark.parametrize("guarantee", GUARANTEES, ids=str)
@pytest.mark.parametrize("seed", range(2))
def test_no_row_tells_more_to_those_who_know_columns_of_one(
    guarantee: funnel.Guarantee, shared: bool, seed: int
) -> None:
    versions = units(seed, shared)
    reader = (SharingReader if shared else HouseholdReader)(versions)
    steps = published(versions, guarantee)
    moved, outside = ({}, {})
    for one in believed(reader, steps):
        bound = asked(guarantee, one.known)
        if one.version == 0 or not beyond(one.before, bound):
            assert not beyond(one.after, bound), one
        assert not worse(one.after, one.before, bound, ROOM), one
        # Within a version no row moves anybody.
        if one.version == 1 and one.row == 0:
            for found, what in ((moved, one.before), (outside, one.after)):
                of = found.setdefault((one.secret_of, one.known), {})
                of.setdefault((one.history, one.place), {}).setdefault(one.value, 0.0)
                if beyond(what, bound):
                    of[one.history, one.place][one.value] = one.expected
    told = {(one.observer, one.secret_of): one for one in steps[1].by_observer}
    assert len(told) == len(moved) == 2 * len(KNOWN)
    for (secret_of, known), of in moved.items():
        one = told[
            f"transitions, knowing {' and '.join('xz'[p] for p in known)}" if known else "transitions", secret_of
        ]
        assert one.bounded
        assert (one.moved, one.outside) == (most(of), most(outside[secret_of, known]))
    assert steps[0].moved == steps[0].outside == 0
    # Something is told.
    assert steps[0].utility > 0.02 * steps[0].entropy


def most(of: dict[tuple[History, int], dict[str, float]]) -> int:
    """People, of every history those of the row for which they are most, of all that may be known of it."""
    people: dict[History, float] = {}
    for (history, _), by_value in of.items():
        people[history] = max(people.get(history, 0.0), sum(by_value.values()))
    return math.ceil(sum(people.values()) - 1e-9)


def test_a_bound_for_who_knows_nothing_is_none_for_them() -> None:
    found = set()
    for seed in range(2):
        versions = units(seed, True)
        for one in believed(SharingReader(versions), published(versions, funnel.LIP(BUDGET))):
            if not beyond(one.before, funnel.LIP(BUDGET)) and beyond(one.after, funnel.LIP(BUDGET)):
                found.add((one.version, one.secret_of, one.place - len(one.history), bool(one.known)))
    assert all(known for *_, known in found)
    # Of the row that is drawn, of one that is to come, and of one before.
    assert {(0, None, ahead, True) for ahead in (-1, 0, 1)} <= found
