"""Noise: the distribution of what is drawn, exactly; the keys it follows from; and settings that make no sense."""

from __future__ import annotations

import functools
import hashlib
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from funnel import Joint, SpecError
from funnel.frequencies.noise import Noise, NoiseSecret, draw_noise, noise_at, scale_of
from funnel.sampling.keyed import encrypted_blocks

KEY = hashlib.sha256(b"a key").digest()
SECRET = NoiseSecret(hashlib.sha256(b"a secret").digest(), "0" * 64)
JOINT = Joint.from_counts([[5, 3], [2, 9]], ["ill", "well"])


def exp_between(x: Fraction, terms: int = 60) -> tuple[Fraction, Fraction]:
    """Rationals that e^x, for x in [-1, 0], is between: partial sums of its alternating series."""
    term, total = Fraction(1), Fraction(1)
    for k in range(1, 2 * terms):
        term *= x / k
        total += term
    return total, total + term * x / (2 * terms)


@functools.cache
def power_between(scale: float, k: int) -> tuple[Fraction, Fraction]:
    """Rationals that e^(-k / scale) is between; none of the intervals of the library is used."""
    rate = Fraction(k) / Fraction(scale)
    parts = max(1, math.ceil(rate))
    low, high = exp_between(-rate / parts)
    return low**parts, high**parts


def up_to(scale: float, k: int) -> tuple[Fraction, Fraction]:
    """Rationals that P(Z <= k) is between."""
    (least, most), (low, high) = power_between(scale, 1), power_between(scale, k + 1 if k >= 0 else -k)
    tail = low / (1 + most), high / (1 + least)
    return tail if k < 0 else (1 - tail[1], 1 - tail[0])


@pytest.mark.parametrize("scale", [0.3, 1.0, 4 / 3, 4.0, 31.7])
def test_the_distribution_is_the_discrete_laplace_one_exactly(scale: float) -> None:
    """Every k has the u between P(Z < k) and P(Z <= k): the first and the last that 128 digits tell, none beyond."""
    bits = 128
    unit = 1 << bits
    for k in range(-12, 13):
        (_, low), (high, _) = up_to(scale, k - 1), up_to(scale, k)
        first, last = math.ceil(low * unit), math.floor(high * unit) - 1
        assert first <= last
        assert {noise_at(digits, bits, scale) for digits in (first, (first + last) // 2, last)} == {k}
        # One more digit on either side leaves two values open, or is the neighbour's; never this one.
        assert noise_at(first - 1, bits, scale) in (None, k - 1)
        assert noise_at(last + 1, bits, scale) in (None, k + 1)
    # What few digits leave open they do not tell; the two ends are never told.
    assert noise_at(0, bits, scale) is None
    assert noise_at(unit - 1, bits, scale) is None


@given(st.integers(0, 2**64 - 1), st.sampled_from([0.7, 3.0, 1000.0]))
def test_more_digits_never_change_what_fewer_told(digits: int, scale: float) -> None:
    told = noise_at(digits, 64, scale)
    for more in (0, 1, 2**64 - 1, 2**63):
        if told is not None:
            assert noise_at((digits << 64) | more, 128, scale) in (told, None)
    # Mirrored digits have the mirrored noise.
    assert noise_at(2**64 - 1 - digits, 64, scale) == (None if told is None else -told)


def test_every_count_has_the_noise_of_its_own_digits() -> None:
    blocks = encrypted_blocks(np.array([[place, 0] for place in range(40)], dtype=np.uint64), KEY).tolist()
    drawn = draw_noise(40, 0.5, key=KEY)
    assert drawn.tolist() == [noise_at((high << 64) | low, 128, 2.0) for high, low in blocks]
    assert draw_noise(7, 0.5, key=KEY).tolist() == drawn[:7].tolist()
    assert draw_noise(40, 1.0, 2, KEY).tolist() == drawn.tolist()
    assert draw_noise(0, 1.0).shape == (0,)
    assert drawn.dtype == np.int64


def test_digits_that_leave_two_values_open_are_read_on(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[list[int]]] = []

    def blocks(places: np.ndarray, _key: bytes) -> np.ndarray:
        asked.append(places.tolist())
        # u begins with 128 zeros, and is then about 2^-129.
        return np.array([[0, 0] if more == 0 else [1 << 63, 0] for _, more in places.tolist()], dtype=np.uint64)

    monkeypatch.setattr("funnel.frequencies.noise.encrypted_blocks", blocks)
    found = draw_noise(2, 1.0, key=KEY).tolist()
    assert asked == [[[0, 0], [1, 0]], [[0, 1]], [[1, 1]]]
    # P(Z <= -k) = e^-k / (1 + e^-1) is about 2^-129.
    assert found == [-math.floor(129 * math.log(2) - math.log(1 + math.exp(-1)))] * 2


def test_counts_of_many_draws_are_as_the_distribution_says() -> None:
    """Under one fixed key: it passes or fails in every run alike."""
    counts = Counter(draw_noise(20_000, 1.0, key=KEY).tolist())
    for k in range(-3, 4):
        mass = math.tanh(1 / 2) * math.exp(-abs(k))
        assert abs(counts[k] - 20_000 * mass) < 5 * math.sqrt(20_000 * mass)


def test_fresh_noise_is_never_the_same() -> None:
    # Equal by chance once in 2^200 or so.
    assert draw_noise(200, 0.1).tolist() != draw_noise(200, 0.1).tolist()


def test_a_table_has_one_key_and_anything_else_another() -> None:
    told = ("counts", 0.5, JOINT, [JOINT.counts])
    key = SECRET.key(*told)
    assert key == SECRET.key(*told)
    others = [
        SECRET.key("rows", *told[1:]),
        SECRET.key("counts", 0.25, *told[2:]),
        SECRET.key("counts", 0.5, Joint.from_counts(JOINT.counts, ["ill", "other"]), [JOINT.counts]),
        SECRET.key("counts", 0.5, JOINT, [JOINT.counts + 1]),
        SECRET.key(*told, ["series/1.0.0"]),
        NoiseSecret(SECRET.root, "1" * 64).key(*told),
        NoiseSecret(KEY, SECRET.source).key(*told),
    ]
    assert len({key, *others}) == 1 + len(others)
    assert "secret" not in repr(SECRET)


@given(st.floats(1e-3, 50))
@example(0.75)
@example(3.7)
@example(1.0)
def test_the_scale_is_the_smallest_that_costs_at_most_epsilon(epsilon: float) -> None:
    scale = scale_of(epsilon)
    assert 1 / Fraction(scale) <= Fraction(epsilon) < 1 / Fraction(math.nextafter(scale, 0))
    assert Noise(epsilon, 0.0, 0.1).scale == scale


@pytest.mark.parametrize(
    "wrong",
    [(0.0, 0.0, 0.1), (math.inf, 0.0, 0.1), (1.0, 1.0, 0.1), (1.0, -0.1, 0.1), (1.0, 0.0, 0.0), (1.0, 0.0, 1.0)],
)
def test_noise_that_makes_no_sense_is_refused(wrong: tuple[float, float, float]) -> None:
    with pytest.raises(SpecError, match="of noise"):
        Noise(*wrong)


@given(st.floats(1e-3, 50), st.integers(1, 5))
def test_what_changes_several_counts_needs_so_many_times_the_noise(epsilon: float, counts: int) -> None:
    scale = scale_of(epsilon, counts)
    assert counts / Fraction(scale) <= Fraction(epsilon) < counts / Fraction(math.nextafter(scale, 0))
