"""Helping: how many records, or which values of the secret made one, would let half be kept in spite of noise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from funnel.errors import SpecError
from funnel.frequencies.limits import bounds_of
from funnel.frequencies.noise import Noise
from funnel.guarantees import Guarantee
from funnel.guarantees.sided import over_set
from funnel.joint import MAX_ROWS, FloatArray, Joint
from funnel.measures.information import information_of
from funnel.protocol import DENOMINATOR, Protocol
from funnel.sample_size import grouped, half_of, rarest_together, rounded_up

_PRECISION = 1.01
# Floats decide here; what is made later is decided in whole numbers.
_MARGIN = 1e-9


@dataclass(frozen=True)
class Help:
    """What would let a protocol keep half of what is kept without noise.

    Attributes
    ----------
    share : float
        Half of what is kept without noise, of H(X).
    n : int or None
        So many records with the same frequencies, to two digits and rounded up; None if no number would do.
    together : tuple of str
        The fewest values of the secret, the rarest, that would do as one, with the records there are; empty if none.
    then : float or None
        What the best protocol that was found keeps with these as one, of H(X); None where there are none.
    """

    share: float
    n: int | None
    together: tuple[str, ...]
    then: float | None = None


def what_would_help(joint: Joint, guarantee: Guarantee, noise: Noise, plain: Protocol) -> Help | None:
    """Look for it with one channel: the protocol made without noise, mixed with the marginal until it keeps half.

    The mixture is strictly within the bound for the counts as they are, so that some number of records is enough
    wherever no count that matters is 0. What is enough for this channel is for the best one too; less may be.

    Parameters
    ----------
    joint : Joint
        Public counts.
    guarantee : Guarantee
        One that covers noise.
    noise : Noise
    plain : Protocol
        The best for the counts as they are.

    Returns
    -------
    Help or None
        None if nothing has to help: half can be kept with the records that there are.

    Notes
    -----
    Some dozens of worst cases of one channel. Deterministic.
    """
    rows, share = _half(joint, plain)
    counts = joint.as_published

    def met(table: Joint) -> bool:
        known = expected(table, noise)
        over = over_set(guarantee, known)
        return over is not None and float(over.output_levels(known, rows).max()) <= guarantee.budget * (1 - _MARGIN)

    return None if met(counts) else Help(share, _records(counts, met), rarest_together(counts, met))


def _half(joint: Joint, plain: Protocol) -> tuple[FloatArray, float]:
    """The mixture that keeps half of what a protocol keeps, rows (b, a), and the share of H(X) that it keeps."""
    rows = plain.weights / np.float64(DENOMINATOR)
    marginal = (rows @ joint.p_input)[:, None]

    def mixed(part: float) -> FloatArray:
        return np.asarray(part * rows + (1 - part) * marginal)

    def utility(part: float) -> float:
        return information_of(mixed(part) * joint.p_input)

    part = half_of(utility, 1.0)
    return mixed(part), utility(part) / joint.entropy


def _records(counts: Joint, met: Callable[[Joint], bool]) -> int | None:
    fewer, more = counts.n, 4 * counts.n
    while more < MAX_ROWS and not met(scaled(counts, more)):
        fewer, more = more, 4 * more
    if more >= MAX_ROWS:
        return None
    while more > fewer * _PRECISION:
        middle = int((fewer * more) ** 0.5)
        fewer, more = (fewer, middle) if met(scaled(counts, middle)) else (middle, more)
    return rounded_up(more)


def made_one(counts: Joint, values: Sequence[str]) -> Joint:
    """The same records with these values of the secret as one, without bounds."""
    secrets = [s for s, label in enumerate(counts.secret.labels) if label in values]
    return grouped(counts.as_published, np.array(secrets, dtype=np.intp))


def scaled(joint: Joint, n: int) -> Joint:
    """A table of ``n`` records with the frequencies of ``joint``, in whole numbers, without bounds.

    Every count times ``n / joint.n``, rounded down; the records that are missing then go one each to the largest
    remainders, of equal ones to the first cells. Nothing is random. O(c a log(c a)).

    Parameters
    ----------
    joint : Joint
        Counts of shape (c, a).
    n : int
        From 1 to less than 2^31.

    Raises
    ------
    SpecError
        If there are too few or too many records.
    """
    if not 0 < n < MAX_ROWS:
        raise SpecError(f"a table of {n:,} records cannot be laid out: from 1 to {MAX_ROWS - 1:,} are possible")
    # Both factors are below 2^31.
    whole, left = np.divmod(joint.counts.ravel() * np.int64(n), np.int64(joint.n))
    whole[np.argsort(-left, kind="stable")[: n - int(whole.sum())]] += 1
    return Joint(whole.reshape(joint.counts.shape), joint.secret, joint.inputs)


def expected(joint: Joint, noise: Noise) -> Joint:
    """The counts with the bounds that such noise would leave, had it come out as 0 everywhere.

    Bounds are as wide wherever noise puts the counts, so this is the middle of what a draw gives.
    """
    return Joint(joint.counts, joint.secret, joint.inputs, bounds_of(joint.counts, noise))
