"""Who is forgotten is part of the effective channel as what tells nothing, exactly."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from funnel.errors import DataError
from funnel.history.library import effective_weights
from funnel.history.observed import Observed
from funnel.joint import Joint
from funnel.protocol import DENOMINATOR

COUNTS = np.array([[3, 2, 1], [2, 2, 4]])


def observed(silent: list[int] | None) -> Observed:
    """People of three inputs: new ones, of whom some are forgotten, and one history more."""
    joint = Joint.from_counts(COUNTS)
    nodes, inputs, records = np.array([0, 0, 0, 1, 1]), np.array([0, 1, 2, 0, 2]), np.array([4, 4, 2, 1, 3])
    return Observed(joint, {}, nodes, inputs, records, None if silent is None else np.array(silent))


def library() -> np.ndarray:
    first = np.array([[6, 1, 2], [1, 6, 2], [1, 1, 4]], dtype=np.uint64) * np.uint64(DENOMINATOR // 8)
    return np.stack([first, np.roll(first, 1, axis=0)])


def test_they_draw_from_the_distribution_of_the_output_of_all_others() -> None:
    people, channels = observed([2, 0, 1]), library()
    found = effective_weights(people, channels, np.array([0, 0, 0, 1, 1]))
    speaking = np.array([[2, 4, 1], [1, 0, 3]])
    drawn = [[sum(int(speaking[k][x]) * int(channels[k][y][x]) for k in (0, 1)) for x in range(3)] for y in range(3)]
    distribution = [Fraction(sum(row), 11) for row in drawn]
    for y in range(3):
        for x, silent in enumerate((2, 0, 1)):
            expected = (drawn[y][x] + silent * distribution[y]) / int(COUNTS[:, x].sum())
            assert abs(int(found[y, x]) - expected) <= 3
    # So the distribution of the output of everybody is that of the others.
    everybody = [sum(int(found[y, x]) * int(COUNTS[:, x].sum()) for x in range(3)) for y in range(3)]
    for one, other in zip(everybody, distribution, strict=True):
        assert abs(Fraction(one, int(COUNTS.sum())) - other) <= 3


def test_all_of_them_may_be_forgotten() -> None:
    joint = Joint.from_counts(COUNTS)
    sizes = COUNTS.sum(axis=0)
    everybody = Observed(joint, {}, np.zeros(3, dtype=np.int64), np.arange(3), sizes, sizes)
    found = effective_weights(everybody, library(), np.zeros(3, dtype=np.int64))
    assert (found == found[:, :1]).all()
    assert (found.sum(axis=0) == DENOMINATOR).all()


@pytest.mark.parametrize("silent", [[5, 0, 0], [-1, 0, 0], [0, 0]])
def test_no_more_are_forgotten_than_count_as_new(silent: list[int]) -> None:
    with pytest.raises(DataError, match="more people are said to be forgotten than count as new"):
        observed(silent)
    assert observed(None).silent is not None
