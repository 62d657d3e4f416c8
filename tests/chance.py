"""Noise that is the same in every run of the tests: of the law of OpenDP's, begun anew with every test.

What is made of noisy counts may be anything that noise allows, and of a test that looks at it one run in thousands is
unlike all others. So in CI it sees the same noise every time, as tests of properties see the same examples, and
elsewhere noise of its own. OpenDP is still what makes a sampler and vouches for what it costs.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy as np

from funnel.frequencies.noise import scale_of
from funnel.joint import IntArray

_generator = np.random.default_rng(0)
_by_opendp = False


def begin(test: str) -> None:
    """From now on noise is that of the test of this name."""
    global _generator
    _generator = np.random.default_rng(list(hashlib.sha256(test.encode()).digest()))


@contextmanager
def same_noise() -> Iterator[None]:
    """What OpenDP would draw is drawn by the generator of the test."""
    from opendp import measurements

    real = measurements.make_laplace

    def make(*spaces: Any, scale: float, **options: Any) -> Any:
        sampler = real(*spaces, scale=scale, **options)
        return sampler if _by_opendp else _Seeded(sampler, scale)

    with mock.patch.object(measurements, "make_laplace", make):
        yield


@contextmanager
def by_opendp() -> Iterator[None]:
    """Noise is what OpenDP draws, for tests of that."""
    global _by_opendp
    _by_opendp = True
    try:
        yield
    finally:
        _by_opendp = False


def noise_of(seed: int) -> Callable[[int, float, int], IntArray]:
    """What draws noise of the same law, and the same whenever the tests are run: no test may fail once in a while."""
    random = np.random.default_rng(seed)
    return lambda size, epsilon, sensitivity=1: _laplace(random, size, scale_of(epsilon, sensitivity))


class _Seeded:
    """A sampler of OpenDP that vouches for what it costs, and whose noise is that of the test."""

    def __init__(self, sampler: Any, scale: float) -> None:
        self._sampler = sampler
        self._scale = scale

    def map(self, distance: int) -> float:
        """What it costs, as OpenDP says."""
        return float(self._sampler.map(distance))

    def __call__(self, counts: list[int]) -> list[int]:
        return (np.array(counts, dtype=np.int64) + _laplace(_generator, len(counts), self._scale)).tolist()


def _laplace(random: np.random.Generator, size: int, scale: float) -> IntArray:
    success = -math.expm1(-1 / scale)
    return random.geometric(success, size) - random.geometric(success, size)
