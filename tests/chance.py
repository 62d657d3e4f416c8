"""Noise that is the same in every run of the tests, begun anew with every test.

What is made of noisy counts may be anything that noise allows, and of a test that looks at it one run in thousands is
unlike all others. So in CI it sees the same noise every time, as tests of properties see the same examples, and
elsewhere noise of its own. What is exchanged is the key that noise follows from, not the noise.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from unittest import mock

import numpy as np

from funnel.frequencies.noise import scale_of
from funnel.joint import IntArray
from funnel.protocol import Protocol

_generator = np.random.default_rng(0)


def begin(test: str) -> None:
    """From now on noise is that of the test of this name."""
    global _generator
    _generator = np.random.default_rng(list(hashlib.sha256(test.encode()).digest()))


@contextmanager
def same_noise() -> Iterator[None]:
    """Keys of noise, and secrets that these are derived from, are those of the test."""
    with ExitStack() as stack:
        stack.enter_context(mock.patch("funnel.frequencies.noise.fresh_key", _key))
        stack.enter_context(mock.patch("funnel.release.secret.fresh_text", _text))
        yield


def noise_of(seed: int) -> Callable[..., IntArray]:
    """What draws noise of the same law, and the same whenever the tests are run: no test may fail once in a while."""
    random = np.random.default_rng(seed)

    def draw(size: int, epsilon: float, sensitivity: int = 1, key: bytes | None = None) -> IntArray:
        success = -math.expm1(-1 / scale_of(epsilon, sensitivity))
        return random.geometric(success, size) - random.geometric(success, size)

    return draw


def of_equal_draws(protocol: Protocol, records: Sequence[int] | IntArray) -> float:
    """The probability that two draws of so many records of each input are the same, record by record."""
    twice = (protocol.matrix**2).sum(axis=0)
    return float(np.prod(twice ** np.asarray(records)))


def _key() -> bytes:
    return _generator.bytes(32)


def _text() -> str:
    return _key().hex()
