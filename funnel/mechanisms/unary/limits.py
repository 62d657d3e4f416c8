"""Guarantees that compare the probabilities of two events, as ordered pairs of counts and a budget."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import permutations

import numpy as np
import numpy.typing as npt

from funnel.errors import SpecError
from funnel.guarantees.alip import ALIP
from funnel.guarantees.base import Guarantee
from funnel.guarantees.events import Comparisons, secret_comparisons
from funnel.guarantees.ldp import LDP
from funnel.guarantees.lip import LIP
from funnel.guarantees.perfect import PerfectPrivacy
from funnel.guarantees.srlip import SRLIP
from funnel.joint import IntArray, Joint

COMPARING = (LIP, ALIP, LDP, SRLIP, PerfectPrivacy)
"""Guarantees that bound ratios of probabilities of an output, and nothing else."""

Indices = npt.NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Limits:
    """Pairs of events (A, B) with ``P(y|A) <= e^budget P(y|B)`` for every output y.

    Attributes
    ----------
    counts : ndarray of int64, shape (m, a)
        Records of each event by input; every event occurs.
    first, second : ndarray of int, shape (k,)
        Places of A and B in ``counts``.
    budget : float
        Nats; infinite where nothing is asked.
    upward : bool
        Whether A is the event with the secret of the pair, so that the bound is on a gain.
    secret : ndarray of int, shape (k,)
        The secret value that A (if upward) or B holds.
    other : ndarray of int, shape (k,), or None
        The secret value of the other event; None where that is a larger group of records.
    given : tuple of tuple of (column, value), length k
        What both events say about a record besides.
    """

    counts: IntArray
    first: Indices
    second: Indices
    budget: float
    upward: bool
    secret: Indices
    other: Indices | None
    given: tuple[tuple[tuple[str, str], ...], ...]


def event_limits(joint: Joint, guarantee: Guarantee) -> tuple[Limits, ...]:
    """What the guarantee bounds, where that is ratios of probabilities of outputs: LIP, ALIP, LDP, SRLIP, perfect.

    Raises
    ------
    SpecError
        For guarantees that bound something else; their level needs all outputs.
    """
    match guarantee:
        case LDP():
            return (_every_two_secrets(joint, guarantee.epsilon),)
        case LIP():
            return _both_ways(secret_comparisons(joint), guarantee.epsilon, guarantee.epsilon)
        case PerfectPrivacy():
            return _both_ways(secret_comparisons(joint), 0.0, 0.0)
        case ALIP():
            return _both_ways(secret_comparisons(joint), guarantee.lower, guarantee.upper)
        case SRLIP():
            return _both_ways(guarantee.comparisons(joint), guarantee.epsilon, guarantee.epsilon)
    raise SpecError(
        f"the level of unary encoding under {guarantee.name} is known only from a list of all its outputs; "
        "use at most 10 input symbols, or one of lip, alip, ldp, srlip"
    )


def _both_ways(compared: Comparisons, lower: float, upper: float) -> tuple[Limits, ...]:
    part, whole, secret, given = compared.part, compared.whole, compared.secret, compared.given
    return (
        Limits(compared.counts, part, whole, upper, True, secret, None, given),
        Limits(compared.counts, whole, part, lower, False, secret, None, given),
    )


def _every_two_secrets(joint: Joint, epsilon: float) -> Limits:
    seen = np.flatnonzero(joint.counts.any(axis=1))
    # With one secret there is nothing to tell apart: it is compared with itself.
    pairs = list(permutations(range(len(seen)), 2)) or [(0, 0)]
    first, second = np.array(pairs, dtype=np.intp).T
    given = ((),) * len(pairs)
    return Limits(joint.counts[seen], first, second, epsilon, True, seen[first], seen[second], given)


def is_unlimited(limits: Limits) -> bool:
    """Whether the pairs are free of any bound."""
    return math.isinf(limits.budget)
