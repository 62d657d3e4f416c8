"""Noisy tables of the same people agree up to their noise, and others do not."""

from __future__ import annotations

import math

import numpy as np
import pytest

from funnel.recount.noisy_moves import NoisyChanges, NoisyRows, Since
from funnel.recount.plausible import disagreement, tail

RARE = 1e-12
SCALE, OTHER = 4.0, 1.0
RNG = np.random.default_rng(11)


def noise(shape: tuple[int, ...], scale: float, rng: np.random.Generator) -> np.ndarray:
    success = -math.expm1(-1 / scale)
    return rng.geometric(success, shape) - rng.geometric(success, shape)


def noisy(table: np.ndarray, scale: float, rng: np.random.Generator) -> tuple[tuple[int, ...], ...]:
    return tuple(map(tuple, (table + noise(table.shape, scale, rng)).tolist()))


def tables(seed: int, twice: int = 1) -> tuple[tuple[tuple[int, ...], ...], NoisyChanges, NoisyRows]:
    """Tables of some thousand people: two secrets, three inputs, two versions before, up to four rows."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(200, 400, (2, 3))
    since = []
    for number in range(2):
        secrets = rng.integers(20, 80, (2, 2))
        leaving = rng.integers(0, 10, (2, 3))
        staying = np.zeros((2, 3), dtype=int)
        staying[:, 0] = secrets.sum(axis=1) - leaving.sum(axis=1)
        cells = (secrets, twice * staying, leaving)
        since.append(Since(f"people/1.{number}.0", *(noisy(table, SCALE, rng) for table in cells)))
    second = rng.integers(0, 60, (2, 2, 3))
    several = int(second.sum())
    sizes = np.array([counts.sum() - several, several - 5, 4, 1, *[0] * 96])
    rows = NoisyRows(
        0.5, SCALE, noisy(second[0], SCALE, rng), noisy(second[1], SCALE, rng), noisy(sizes[None], SCALE, rng)[0]
    )
    return noisy(counts, OTHER, rng), NoisyChanges(0.5, SCALE, tuple(since)), rows


def test_tables_of_the_same_people_agree() -> None:
    found = [disagreement(*(one := tables(seed))[:1], OTHER, *one[1:]) for seed in range(100)]
    # A bound on a p-value: at most t with a probability of at most t.
    assert sum(p < 0.05 for p in found) <= 15
    assert min(found) > 1e-6


def test_nothing_disagrees_with_counts_alone() -> None:
    assert disagreement(((1, 2), (3, 4)), 1.0, None, None) == 1.0


def test_tables_of_other_people_disagree() -> None:
    counts, _, rows = tables(1)
    assert disagreement(counts, OTHER, tables(1, twice=3)[1], None) < RARE
    few = tuple(tuple(count // 20 for count in row) for row in counts)
    # More came with a secret than have it now; more second rows than first ones.
    assert disagreement(few, OTHER, tables(1)[1], None) < RARE
    assert disagreement(few, OTHER, None, rows) < RARE
    assert disagreement(counts, OTHER, None, NoisyRows(0.5, SCALE, rows.stayed, rows.left, (9,) * 100)) < RARE


@pytest.mark.parametrize("total", [1, 5, 20, 60])
def test_a_tail_is_bounded_from_above_and_not_far(total: int) -> None:
    drawn = noise((40_000, 6), SCALE, RNG).sum(axis=1) + noise((40_000, 4), OTHER, RNG).sum(axis=1)
    bound = tail(total, ((6, SCALE), (4, OTHER)))
    true = float((drawn >= total).mean())
    assert true <= bound + 0.01
    assert bound <= max(5e-3, 12 * true)


def test_a_tail_of_nothing_is_certain() -> None:
    assert tail(0, ((3, 1.0),)) == tail(-4, ((3, 1.0),)) == 1.0
