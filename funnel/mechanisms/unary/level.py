"""The exact level of a unary encoding, without its 2^a outputs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from funnel.guarantees.alip import ALIP
from funnel.guarantees.base import Guarantee
from funnel.guarantees.events import CLOSE
from funnel.guarantees.exact import log_above
from funnel.joint import FloatArray, IntArray, Joint
from funnel.mechanisms.unary.encoding import UnaryEncoding
from funnel.mechanisms.unary.limits import Limits, event_limits, is_unlimited
from funnel.protocol import DENOMINATOR

_CHUNK_CELLS = 1 << 20


@dataclass(frozen=True)
class UnaryWitness:
    """The set that leaks most.

    Attributes
    ----------
    members : tuple of int
        Positions in the input alphabet of the symbols of the worst set, rising.
    secret : int
        Index s of the secret value.
    other_secret : int or None
        Index s' of the value it is compared with; None when compared with a larger group of records.
    ratio : Fraction
        The exact worst ratio, at least 1 and, since every set is possible for every input, finite.
    upward : bool
        True if the set makes the secret likelier.
    given : tuple of (column, value)
        What the observer knows about the record besides.
    """

    members: tuple[int, ...]
    secret: int
    other_secret: int | None
    ratio: Fraction
    upward: bool
    given: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class UnaryLevel:
    """The smallest budget (nats) for which the guarantee holds for an encoding, and where it is attained.

    Attributes
    ----------
    value : float
        Never below the exact level and at most a few ulps above it.
    witness : UnaryWitness
    """

    value: float
    witness: UnaryWitness

    def __float__(self) -> float:
        return self.value


def unary_level(joint: Joint, guarantee: Guarantee, encoding: UnaryEncoding) -> UnaryLevel:
    """The exact level of an encoding under LIP (PF equation (29)), ALIP, LDP, SRLIP or perfect privacy.

    ``P(A|E)/P(A|F) = (1 + k p(A|E))/(1 + k p(A|F))`` over all sets A is a linear-fractional programme, so its largest
    value λ is attained by ``{x : p(x|E) > λ p(x|F)}``: the first few symbols in the order of p(x|E)/p(x|F).

    Parameters
    ----------
    joint : Joint
        Counts of (S, X), shape (c, a), over the inputs of the encoding.
    guarantee : Guarantee
        Its kind, and for two budgets their proportion, is what counts.
    encoding : UnaryEncoding

    Raises
    ------
    SpecError
        For any other guarantee.
    DataError
        If the encoding is for other inputs.

    Notes
    -----
    O(pairs · a log a). Floats rank pairs and symbols; the pairs within 1e-9 of the largest ratio are solved in
    integers (Dinkelbach 1967), and their ratios compared as fractions.
    """
    encoding.require(joint)
    levels = []
    for limits in event_limits(joint, guarantee):
        if not is_unlimited(limits):
            witness = _worst(limits, encoding)
            nats = log_above(witness.ratio)
            levels.append((guarantee.scaled(nats, limits.budget) if isinstance(guarantee, ALIP) else nats, witness))
    # The larger ratio where the levels are the same float.
    return UnaryLevel(*max(levels, key=lambda level: (level[0], level[1].ratio)))


def _worst(limits: Limits, encoding: UnaryEncoding) -> UnaryWitness:
    counts = limits.counts
    step = max(1, _CHUNK_CELLS // counts.shape[1])
    values = np.concatenate(
        [
            _largest_ratios(counts[limits.first[i : i + step]], counts[limits.second[i : i + step]], encoding)
            for i in range(0, len(limits.first), step)
        ]
    )
    near = np.flatnonzero(values >= values.max() * (1 - CLOSE))
    worst = {
        int(pair): largest_ratio(counts[limits.first[pair]].tolist(), counts[limits.second[pair]].tolist(), encoding)
        for pair in near
    }
    pair = max(worst, key=lambda pair: worst[pair][0])
    ratio, members = worst[pair]
    other = None if limits.other is None else int(limits.other[pair])
    return UnaryWitness(members, int(limits.secret[pair]), other, ratio, limits.upward, limits.given[pair])


def _largest_ratios(first: IntArray, second: IntArray, encoding: UnaryEncoding) -> FloatArray:
    """Largest P(A|E)/P(A|F) over sets A in floats, for the counts (k, a) of k pairs of events; shape (k,)."""
    likelihood = np.divide(first, second, out=np.where(first > 0, math.inf, 0.0), where=second > 0)
    order = np.argsort(-likelihood, axis=1)
    # Whole numbers below 2^53: the sums are exact, and both factors positive, so nothing is lost in the quotient.
    ours, theirs = (np.take_along_axis(counts, order, axis=1).cumsum(axis=1) for counts in (first, second))
    excess = float(encoding.excess)
    ratios = (1 + excess * (ours / ours[:, -1:])) / (1 + excess * (theirs / theirs[:, -1:]))
    return np.asarray(np.maximum(1.0, ratios.max(axis=1)))


def largest_ratio(first: list[int], second: list[int], encoding: UnaryEncoding) -> tuple[Fraction, tuple[int, ...]]:
    """Largest P(A|E)/P(A|F) over sets A, exactly, and the set, for the counts of both events by input.

    Every step goes to the set that is best for the ratio so far; the ratio rises until that set attains it, and then
    it is the largest there is. Few steps: the distance to the largest shrinks faster than geometrically.
    """
    weight, gap = encoding.other_weight, DENOMINATOR - 2 * encoding.other_weight
    ours, theirs = sum(first), sum(second)

    def ratio_of(members: list[int]) -> Fraction:
        top = ours * weight + gap * sum(first[x] for x in members)
        bottom = theirs * weight + gap * sum(second[x] for x in members)
        return Fraction(top * theirs, bottom * ours)

    members: list[int] = []
    ratio = Fraction(1)
    while True:
        gain, loss = theirs * ratio.denominator, ours * ratio.numerator
        better = [x for x, (u, v) in enumerate(zip(first, second, strict=True)) if u * gain > v * loss]
        if (found := ratio_of(better)) <= ratio:
            return ratio, tuple(members)
        members, ratio = better, found
