"""Selection: which values are named, by what chance, and that the shares add up to a quarter."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from funnel.frequencies import selection
from funnel.frequencies.selection import Looks, Share, rounded_down, selected, shares


@pytest.fixture
def noise(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, float]]:
    """No noise but one record more each, and what was asked for."""
    asked: list[tuple[int, float]] = []

    def draw(size: int, epsilon: float, key: bytes | None) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        asked.append((size, epsilon))
        return np.ones(size, dtype=np.int64)

    monkeypatch.setattr(selection, "draw_noise", draw)
    return asked


def named(counts: Mapping[str, int], share: Share) -> dict[str, int]:
    return selected(Looks("x").with_noise("values", counts, share.epsilon), share)


@given(st.floats(1e-3, 20), st.floats(1e-12, 0.5), st.integers(1, 40))
def test_shares_are_a_quarter_together(epsilon: float, delta: float, columns: int) -> None:
    parts = shares(epsilon, delta, [f"column {j}" for j in range(columns)])
    assert len(parts) == columns
    spent = sum(Fraction(part.epsilon) for part in parts.values())
    assert Fraction(epsilon) / 4 * (1 - Fraction(1, 2**40)) < spent <= Fraction(epsilon) / 4
    spent = sum(Fraction(part.delta) for part in parts.values())
    assert Fraction(delta) * (1 - Fraction(1, 2**40)) < spent <= Fraction(delta)
    assert 2 * Fraction(next(iter(parts.values())).halved().epsilon) <= Fraction(parts["column 0"].epsilon)


def test_no_column_no_share() -> None:
    assert shares(1.0, 1e-9, []) == {}


@given(st.fractions(min_value=0, max_value=10))
def test_rounded_down_is_the_largest_double_below(number: Fraction) -> None:
    below = rounded_down(number)
    assert Fraction(below) <= number < Fraction(math.nextafter(below, math.inf))


def test_what_reaches_the_threshold_is_named(
    noise: list[tuple[int, float]],
) -> None:
    share = Share(0.5, 1e-6)
    least = share.threshold
    counts = {"at": least - 1, "below": least - 2, "above": least + 100, "nobody": 0, "one": 1}
    assert named(counts, share) == {"at": least, "above": least + 101}
    assert noise == [(5, 0.5)]
    assert Looks("x").with_noise("values", {}, 1.0) == {}


def test_a_value_of_one_record_is_named_with_a_probability_of_delta() -> None:
    share = Share(1.0, 0.01)
    found = [named({str(k): 1 for k in range(5000)}, share) for _ in range(4)]
    total = sum(map(len, found))
    # Noise is fresh: one in 10^11 runs fails, here and below.
    assert stats.binom.sf(total - 1, 20_000, share.delta) > 1e-11
    # The threshold is no higher than it has to be: one less would name them oftener than delta.
    alpha = math.exp(-1)
    assert stats.binom.cdf(total, 20_000, alpha ** (share.threshold - 1) / (1 + alpha)) > 1e-11
    assert alpha ** (share.threshold - 2) / (1 + alpha) > share.delta


def test_the_threshold_does_not_depend_on_the_data() -> None:
    def names(values: Sequence[int]) -> set[str]:
        return set(named({str(k): n for k, n in enumerate(values)}, Share(30.0, 1e-3)))

    # With so large an epsilon the noise of all four is 0 but for a chance of 1 in 10^12.
    assert names([1, 2, 500]) == {"1", "2"}
