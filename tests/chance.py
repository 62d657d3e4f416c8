"""Draws that are the same in every run of the tests, begun anew with every test.

A release that was drawn as declared is refused with a probability below 1e-9 (`funnel.findings.consistency`), which
turns no run red. But what is made of noisy counts may be anything that noise allows. So a test sees the same noise, the
same secrets and the same words that rows are drawn with every time, as tests of properties see the same examples. What
is exchanged is what the operating system gives, not what follows from it.

Commands of `tests.stage` have draws of their own, the same in every run; and a flow that a server starts, about people
with record keys, draws by the secret that such a command made. In a whole run with every draw of the system noted,
fresh ones were those of tests of random words themselves, and of two workers that measure figures of a paper. With
``FUNNEL_FRESH=1``, or by ``make fuzz``, all draws are fresh.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from unittest import mock

import numpy as np

from funnel.frequencies.noise import scale_of
from funnel.joint import IntArray
from funnel.protocol import Protocol
from funnel.release.documents import JointDocument
from funnel.release.layout import ReleaseFolder
from funnel.sampling import random_words

_SYSTEM, _system_bytes = os.urandom, random_words._system_bytes


class _Test:
    """The draws of one test in one process: a copy of the process must not draw the same."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.process = os.getpid()
        self.commands = 0
        # Words apart from keys, so that noise does not depend on how many rows were drawn before.
        self.keys, self.words = (
            np.random.default_rng(list(hashlib.sha256(f"{use}{name}".encode()).digest())) for use in ("", "words of ")
        )


_test = _Test("")
_same = False


def begin(test: str) -> None:
    """From now on draws of this process are those of the test of this name."""
    global _test
    _test = _Test(test)


def next_command() -> str | None:
    """The name of the draws of the next command that the test starts; None if its draws are fresh."""
    _test.commands += 1
    return f"{_test.name}: command {_test.commands}" if _same else None


@contextmanager
def same_noise() -> Iterator[None]:
    """Keys of noise, and secrets that these are derived from, are those of the test."""
    with ExitStack() as stack:
        stack.enter_context(mock.patch("funnel.frequencies.noise.fresh_key", _key))
        stack.enter_context(mock.patch("funnel.release.secret.fresh_text", _text))
        yield


@contextmanager
def same_draws() -> Iterator[None]:
    """That, and the words that rows are drawn with and put in order by."""
    global _same
    _same, before = True, _same
    try:
        with same_noise(), mock.patch.object(random_words, "_system_bytes", _bytes):
            yield
    finally:
        _same = before


def noise_of(seed: int) -> Callable[..., IntArray]:
    """What draws noise of the same distribution, the same whenever tests are run: none may fail once in a while."""
    random = np.random.default_rng(seed)

    def draw(size: int, epsilon: float, sensitivity: int = 1, key: bytes | None = None) -> IntArray:
        success = -math.expm1(-1 / scale_of(epsilon, sensitivity))
        return random.geometric(success, size) - random.geometric(success, size)

    return draw


def of_equal_draws(protocol: Protocol, records: Sequence[int] | IntArray) -> float:
    """At least the probability that two draws of so many records of each input are the same, in whatever order.

    *Proof.* Given the first draw and the order of the second, the record in each place has that place's output with a
    probability of at most the largest of its input's outputs; and records are drawn independently.
    """
    return float(np.prod(protocol.matrix.max(axis=0) ** np.asarray(records)))


def of_equal_noise(counts: int, epsilon: float) -> float:
    """The probability that so many counts have the same noise twice: Σ P(k)² for each, P(k) being ~ exp(-ε |k|)."""
    kept = math.exp(-epsilon)
    one = ((1 - kept) / (1 + kept)) ** 2 * (1 + kept**2) / (1 - kept**2)
    return float(one**counts)


def of_equal_releases(folder: ReleaseFolder) -> float:
    """At least the probability that another draw of a release has the same records."""
    joint = JointDocument.from_json(folder.joint.read_bytes()).joint
    return of_equal_draws(Protocol.from_json(folder.protocol.read_text(encoding="utf-8")), joint.counts.sum(axis=0))


def _key() -> bytes:
    return _test.keys.bytes(32) if os.getpid() == _test.process else os.urandom(32)


def _bytes(count: int) -> bytes:
    """Those of the test, unless it draws by a system of its own, or in another process."""
    own = os.getpid() == _test.process and os.urandom is _SYSTEM
    return _test.words.bytes(count) if own else _system_bytes(count)


def _text() -> str:
    return _key().hex()
