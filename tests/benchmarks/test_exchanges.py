"""Exchanges of `benchmarks.exchanges`: what observers conclude from who is published as what, person by person."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.exchanges import Exchange, excess, exchanged
from benchmarks.single_columns import Records

RECORD, KNOWING = 1.0, 1.5


def some_records(seed: int) -> Records:
    """Records of three columns in four classes, which follow from all three."""
    random = np.random.default_rng(seed)
    cells = np.array([(a, 2 + b, 5 + c) for a in range(2) for b in range(3) for c in range(4)])
    of_class = (cells.sum(axis=1) + random.integers(0, 3, len(cells))) % 4
    of_class[:4] = range(4)
    given = np.array([0.04, 0.2, 0.45, 0.93])
    return Records(np.array([1 - given, given]), of_class, cells, random.integers(20, 60, len(cells)))


def channel(records: Records, exchange: Exchange) -> np.ndarray:
    """P(y | x), shape (a, a): staying, at random, and one way after the other."""
    people, cells, of_class = records.counts, records.cells, records.of_class
    size, none = len(people), cells.max() + 1
    found = np.diag(exchange.stays)
    for lot in exchange.at_random.T[exchange.at_random.any(axis=0)]:
        found += np.outer(lot * people, lot) / (lot @ people)
    for value, flows in enumerate(exchange.flows):
        having = np.ones(size, dtype=bool) if value == none else (cells == value).any(axis=1)
        for g, h in zip(*np.nonzero(flows), strict=True):
            of, to = having & (of_class == g), having & (of_class == h)
            leave, arrive = of / people[of].sum(), to * people / people[to].sum()
            found += flows[g, h] * np.outer(arrive, leave)
    return found


def largest_change(records: Records, moves: np.ndarray, having: np.ndarray) -> float:
    """The largest |log| of a posterior over the prior of those who know that a person is one of some."""
    belief = records.given[:, records.of_class] * records.counts * having
    prior, after = belief.sum(axis=1) / belief.sum(), belief @ moves.T
    seen = after.sum(axis=0) > 1e-9
    return float(np.abs(np.log(after[:, seen] / after[:, seen].sum(axis=0) / prior[:, np.newaxis])).max())


@pytest.mark.parametrize("seed", range(6))
def test_exchanges_keep_the_distribution_and_both_bounds(seed: int) -> None:
    records = some_records(seed)
    found = exchanged(records, KNOWING, RECORD)
    moves, people = channel(records, found), records.counts
    assert moves.min() >= 0
    assert moves.sum(axis=0) == pytest.approx(np.ones(len(people)), abs=1e-9)
    assert moves @ people == pytest.approx(people, rel=1e-9)
    assert largest_change(records, moves, np.ones(len(people))) <= RECORD + 1e-7
    for value in np.unique(records.cells):
        assert largest_change(records, moves, (records.cells == value).any(axis=1)) <= KNOWING + 1e-7
    assert found.kept(records) > 0.2


def test_what_is_beyond_a_bound_is_seen() -> None:
    """Records that stay more often than they may, and flows between people who differ from those who know the value."""
    records = some_records(0)
    found = exchanged(records, KNOWING, RECORD)
    assert excess(records, found, KNOWING, RECORD) <= 1e-9
    assert excess(records, replace(found, stays=found.stays + 0.1), KNOWING, RECORD) > 1e-3
    assert excess(records, found, 0.8 * KNOWING, RECORD) > 1e-6
    assert excess(records, found, KNOWING, 0.8 * RECORD) > 1e-6
    without = replace(found, flows=np.zeros_like(found.flows))
    assert excess(records, without, KNOWING, RECORD) > 1e-3
