"""Open shares: between which limits shares are that a distribution of changes is made of, by what is left open.

Counts are open where they are published with noise; a share among people is open where these are a sample. Either, or
both, give every share a least and a largest value, and all of them hold together but for a stated probability.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

import numpy as np

from funnel.errors import SpecError
from funnel.guarantees.binomial_limits import UNIT, lower_limit, upper_limit
from funnel.guarantees.count_box import count_box
from funnel.guarantees.distribution_box import DistributionBox, limit_number, limits_of
from funnel.history.changes import MoveLimits
from funnel.joint import FloatArray, IntArray, Joint

# Every limit is moved outwards by that much, relatively: more than the roundings of what it is made of.
HAIR: Final = 2.0**-40


@dataclass(frozen=True, eq=False)
class OpenShares:
    """Limits, least and largest first, of what is concluded from when people come to a version.

    Attributes
    ----------
    cells : ndarray, shape (2, c, a)
        Of P(s, x) of new people, up to one factor.
    totals : ndarray, shape (2, c)
        Of its sums over x.
    inputs : ndarray, shape (2, c, a)
        Of P(x|s).
    prior : ndarray, shape (2, c)
        How common secrets are: among people in both versions, or among all who are new.
    secrets : ndarray, shape (2, c_v, c)
        Of P(s|s'), for people of an earlier version; empty of new people.
    stays : ndarray, shape (2, c_v)
        Of the share of those with a secret who keep their published input.
    """

    cells: FloatArray
    totals: FloatArray
    inputs: FloatArray
    prior: FloatArray
    secrets: FloatArray
    stays: FloatArray


def shares_under_noise(joint: Joint, limits: MoveLimits | None) -> OpenShares:
    """What noise leaves open: counts are between limits, and shares are quotients of counts.

    Parameters
    ----------
    joint : Joint
        Published counts of the version, with their bounds.
    limits : MoveLimits or None
        Of the moves since an earlier version; None for new people.

    Raises
    ------
    SpecError
        If the counts have no bounds.
    """
    if joint.bounds is None:
        raise SpecError("counts without bounds leave nothing open; ask for the bound over true tables with noise")
    cells = np.stack([joint.bounds.lower, joint.bounds.upper]).astype(np.float64)
    totals = joint.bounds.totals.T.astype(np.float64)
    inputs = np.stack([_quotients(*cells[:, s], *totals[:, s]) for s in range(cells.shape[1])], axis=1)
    return OpenShares(cells, totals, inputs, *_of_people(limits, totals, _quotients))


def shares_in_population(
    joint: Joint,
    limits: MoveLimits | None,
    version: int,
    alpha: Fraction,
    of_units: bool = False,
    box: DistributionBox | None = None,
) -> OpenShares:
    """What the people of a version leave open of a population: simultaneous limits of Clopper and Pearson.

    Every share is one among so many people, so it has limits that miss it with a small probability, whatever it is.
    Those of all versions together miss one with a probability of at most alpha, and of the bounds of their noise.

    Parameters
    ----------
    joint, limits
        As of `shares_under_noise`; without noise the limits are those of exact counts.
    version : int
        Its place among all versions of a register, from 1.
    alpha : Fraction
        Of all versions together.
    of_units : bool
        Whether people may have several rows in it: how these follow one another then has a part of alpha too.
    box : DistributionBox, optional
        Of its counts, where others are told at the same significance; by default that is all for this one.
    """
    counts = count_box(joint)
    found = limits_of(counts, significance_of_counts(version, alpha) / limit_number(counts)) if box is None else box
    inputs = np.stack([found.lower, found.upper]) / UNIT
    prior = np.stack([found.prior_lower, found.prior_upper]) / UNIT
    if limits is None:
        return OpenShares(prior[:, :, None] * inputs, prior, inputs, *_of_people(None, prior, _quotients))
    number = 2 * (limits.secrets[0].size + len(limits.stayed[0]) + limits.secrets.shape[2])
    sampled = _asking(significance_of_changes(version, alpha, of_units) / number)
    return OpenShares(prior[:, :, None] * inputs, prior, inputs, *_of_people(limits, prior, sampled))


def shares_of_rows(
    first: Joint, limits: MoveLimits, version: int, alpha: Fraction, box: DistributionBox | None = None
) -> OpenShares:
    """The same from a row of a unit to the next, whose secret is the same: how many keep their published input is open.

    Parameters
    ----------
    first : Joint
        Published counts of the first rows of units: whoever does not keep an input has that of a first row.
    limits : MoveLimits
        From first rows to second ones, of which every unit has one at most.
    version, alpha, box
        As of `shares_in_population`.
    """
    begun = shares_in_population(first, None, version, alpha, box=box)
    ask = _asking(significance_of_changes(version, alpha, of_units=True) / (2 * len(limits.stayed[0])))
    same = np.eye(len(first.secret))
    return replace(begun, secrets=np.stack([same, same]), stays=_staying(limits, ask))


def significance_of_counts(version: int, alpha: Fraction) -> Fraction:
    """What limits of counts of version t = 1, 2, … may miss with: half of ``α / (t (t + 1))``; all add up to α."""
    return alpha / (2 * version * (version + 1))


def significance_of_changes(version: int, alpha: Fraction, of_units: bool = False) -> Fraction:
    """The same of the changes since one of the versions before it, which have the other half in equal parts.

    Of units, so have the changes from a row to the next.
    """
    return alpha / (2 * version * (version + 1) * (version - 1 + of_units))


def float_below(number: Fraction) -> float:
    """The largest double whose shortest decimal is not above a positive number."""
    found = float(number)
    while Fraction(repr(found)) > number:
        found = math.nextafter(found, 0.0)
    return found


Ask = Callable[[FloatArray, FloatArray], FloatArray]


def _of_people(limits: MoveLimits | None, totals: FloatArray, ask: Ask) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Limits of the prior, of secrets given the one before, and of who stays; of new people, of the prior alone."""
    if limits is None:
        return _quotients(*totals), np.empty((2, 0, totals.shape[1])), np.empty((2, 0))
    least, most = limits.secrets.astype(np.float64)
    secrets = np.stack([ask(low, high) for low, high in zip(least, most, strict=True)], axis=1)
    return ask(least.sum(axis=0), most.sum(axis=0)), secrets, _staying(limits, ask)


def _staying(limits: MoveLimits, ask: Ask) -> FloatArray:
    """Limits (2, c_v) of the share of those with a secret who keep their published input."""
    pairs = np.stack([limits.stayed, limits.left], axis=2).astype(np.float64)
    return np.stack([ask(low, high)[:, 0] for low, high in zip(*pairs, strict=True)], axis=1)


def _asking(tail: Fraction) -> Ask:
    """Limits of Clopper and Pearson, each side of which misses with this probability."""
    return lambda lower, upper: _sampled(lower.astype(np.int64), upper.astype(np.int64), tail)


def _sampled(lower: IntArray, upper: IntArray, tail: Fraction) -> FloatArray:
    """Limits (2, k) of the probabilities of k values, of which so many were seen; each side misses with ``tail``.

    A lower limit is that of the fewest among the most trials, an upper one that of the most among the fewest.
    """
    many, few = lower + (upper.sum() - upper), upper + (lower.sum() - lower)
    ends = [
        [lower_limit(int(low), int(trials), tail) for low, trials in zip(lower, many, strict=True)],
        [
            upper_limit(int(high), int(trials), tail) if trials else UNIT
            for high, trials in zip(upper, few, strict=True)
        ],
    ]
    return np.array(ends) / UNIT


def _quotients(
    lower: FloatArray, upper: FloatArray, least: float | None = None, most: float | None = None
) -> FloatArray:
    """Limits (2, k) of ``n_i / Σ n`` of numbers with ``lower <= n <= upper``, (k,), and a sum within limits.

    Where all of them may be zero anything is possible.
    """
    fewest, others = lower.sum() - lower, upper.sum() - upper
    if least is not None and most is not None:
        fewest, others = np.maximum(fewest, least - upper), np.minimum(others, np.maximum(most - lower, 0.0))
        if least > 0 and not lower.any():
            return np.stack([np.zeros(len(lower)), _over(upper, np.maximum(fewest, 0.0))])
    if not lower.any():
        return np.stack([np.zeros(len(lower)), np.ones(len(lower))])
    return np.stack([np.maximum(_over(lower, others, 0.0) * (1 - HAIR), 0.0), _over(upper, fewest)])


def _over(part: FloatArray, rest: FloatArray, empty: float = 1.0) -> FloatArray:
    """``part / (part + rest)``, at most 1, moved up by a hair; ``empty`` of nothing."""
    whole = part + rest
    shares = np.divide(part, whole, out=np.full(part.shape, empty), where=whole > 0)
    return np.asarray(np.minimum(shares * (1 + HAIR), 1.0) if empty else shares)
