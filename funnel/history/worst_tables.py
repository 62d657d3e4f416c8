"""Worst tables: how far outputs go beyond a bound under the worst of all tables that noise or a sample leaves open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from funnel.history.allowed import Allowed
from funnel.history.distributions import BoolArray
from funnel.history.open_shares import HAIR
from funnel.history.possible import PossibleStep, Reach, Told
from funnel.history.possible_distributions import DistributionSet
from funnel.joint import FloatArray, IntArray
from funnel.protocol import WeightArray


@dataclass(frozen=True, eq=False)
class Worst:
    """What a bound compares under the worst tables: within it where ``above <= below``, for n outputs and k conditions.

    Attributes
    ----------
    above, below : ndarray, shape (n, k)
        Neither is linear in the row of an output, but ``above - below`` of a sum is no more than the sum of both.
    which : ndarray of int64, shape (k, 3)
        For each condition its kind (0: a lift, 1: an inverse lift, 2: two lifts), the secret, and the other one or -1.
    known : ndarray of int64, shape (k,)
        What the observer knows besides, of what the step has; 0 for nothing.
    """

    above: FloatArray
    below: FloatArray
    which: IntArray
    known: IntArray

    @classmethod
    def joined(cls, found: Sequence[Worst]) -> Worst:
        """Those of an observer who knows nothing besides, and of others."""
        first, *others = found
        above, below = (
            np.concatenate([getattr(first, name), *(getattr(one, name)[:, 1:] for one in others)], axis=1)
            for name in ("above", "below")
        )
        numbers = [np.full(len(one.which) - (place > 0), place) for place, one in enumerate(found)]
        which = np.concatenate([first.which, *(one.which[1:] for one in others)])
        return cls(above, below, which, np.concatenate(numbers))

    @property
    def holds(self) -> BoolArray:
        """Whether an output is within the bound for certain; (n,)."""
        return np.asarray((self.above * (1 + HAIR) <= self.below).all(axis=1))

    @property
    def ratios(self) -> FloatArray:
        """``above / below``, (n, k): infinite where a value may be ruled out, 0 of outputs that never occur."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.nan_to_num(self.above / self.below, nan=0.0, posinf=np.inf)


def worst(told: Told, prior: FloatArray, allowed: Allowed) -> Worst:
    """How far outputs go under the worst tables.

    Parameters
    ----------
    told : Told
        Of n outputs, c secrets.
    prior : ndarray, shape (2, c)
    allowed : Allowed
    """
    least, most = told.least, told.most
    possible = np.flatnonzero(prior[1] > 0).tolist()
    above, below, which = [np.zeros(len(least))], [np.zeros(len(least))], [(0, 0, -1)]
    for s in possible:
        others = [t for t in possible if t != s]
        if allowed.up is not None:
            above.append(most[:, s])
            below.append(float(allowed.up) * prior[0, s] * (most[:, s] + least[:, others].sum(axis=1)))
            which.append((0, s, -1))
        if allowed.down is not None:
            above.append(prior[1, s] * (least[:, s] + most[:, others].sum(axis=1)))
            below.append(float(allowed.down) * least[:, s])
            which.append((1, s, -1))
        for t in others if allowed.apart is not None else ():
            above.append(most[:, s] * prior[1, t])
            below.append(float(allowed.apart or 1) * least[:, t] * prior[0, s])
            which.append((2, s, t))
    conditions = np.array(which, dtype=np.int64)
    return Worst(
        np.stack(above, axis=1), np.stack(below, axis=1), conditions, np.zeros(len(conditions), dtype=np.int64)
    )


def worst_after(step: PossibleStep, reach: Reach, rows: FloatArray, told: Told, allowed: Allowed) -> Worst:
    """`worst` of people with a history, whose u is one and the same in every N_s that a bound compares.

    A bound is ``F = Σ_s a_s N_s <= 0`` with a as in `_weights`: linear in u, so its largest value over u is found at
    once, and not that of each N_s by itself. ``above - below`` is F, and ``above / below`` no less than any true
    ratio.
    """
    found = worst(told, step.prior, allowed)
    above, below = found.above.copy(), found.below.copy()
    for k, condition in enumerate(found.which.tolist()):
        if k == 0:
            continue
        weights = _weights(condition, step.prior, allowed)
        largest = step.largest(reach, rows, weights)
        excess = np.minimum(largest, found.above[:, k] - found.below[:, k])
        # Of the denominators that there may be the one that makes the ratio largest.
        reference = np.where(excess > 0, found.below[:, k], _most_below(told, step.prior, condition, allowed))
        together = np.maximum(reference + excess, 0.0)
        # Both are limits of the ratio.
        smaller = together * found.below[:, k] < found.above[:, k] * reference
        above[smaller, k], below[smaller, k] = together[smaller], reference[smaller]
    return replace(found, above=above, below=below)


def _weights(condition: list[int], prior: FloatArray, allowed: Allowed) -> FloatArray:
    """a of a condition, (c,), for the prior that is worst for it."""
    kind, s, t = condition
    found = np.zeros(prior.shape[1])
    if kind == 2:
        found[s], found[t] = prior[1, t], -float(allowed.apart or 1) * prior[0, s]
        return found
    possible = prior[1] > 0
    if kind == 0:
        found[possible] = -float(allowed.up or 1) * prior[0, s]
        found[s] += 1.0
        return found
    found[possible] = prior[1, s]
    found[s] -= float(allowed.down or 1)
    return found


def _most_below(told: Told, prior: FloatArray, condition: list[int], allowed: Allowed) -> FloatArray:
    kind, s, t = condition
    if kind == 0:
        return np.asarray(float(allowed.up or 1) * prior[0, s] * told.most[:, prior[1] > 0].sum(axis=1))
    if kind == 1:
        return np.asarray(float(allowed.down or 1) * told.most[:, s])
    return np.asarray(float(allowed.apart or 1) * told.most[:, t] * prior[0, s])


def worst_distribution(step: PossibleStep, told: Sequence[Told], found: Worst, place: int, k: int) -> FloatArray:
    """The distribution (c, a), up to a factor, that is nearly the worst for an output and a condition."""
    known, (kind, s, t) = int(found.known[k]), found.which[k].tolist()
    low, high = told[known].least_distribution[place], told[known].most_distribution[place]
    if known:
        low, high = low * step.known[known - 1].inside, high * step.known[known - 1].inside
    distribution: FloatArray = (high if kind == 1 else low).copy()
    distribution[s] = low[s] if kind == 1 else high[s]
    if kind == 2:
        distribution[t] = low[t]
    return distribution


def told_of(
    possible: DistributionSet,
    step: PossibleStep,
    nodes: IntArray,
    rows: FloatArray,
    allowed: Allowed,
    weights: WeightArray | None = None,
) -> tuple[list[Told], Worst]:
    """What rows (m, b, a) of histories with one last version say at most, of m b outputs; and how far that goes.

    First to an observer who knows nothing of a person besides, and then by what the step says may be known. Where
    whole numbers (m, b, a) of the rows are given, rows that are the same for all inputs with what is known are decided:
    they tell its observer nothing, whatever is true.
    """
    m, b, a = rows.shape
    reach, outputs = possible.reach(np.repeat(nodes, b)), rows.reshape(m * b, a)
    every, found = [], []
    for known in (None, *step.known):
        given = step if known is None else step.with_prior(known.prior)
        # Of people with some inputs alone, what others get says nothing.
        some = outputs if known is None else outputs * known.inside
        told = given.told(reach, some)
        far = worst(told, given.prior, allowed) if reach is None else worst_after(given, reach, some, told, allowed)
        if known is not None:
            # Nobody with the history has such an input, or gets the output.
            far = replace(far, below=np.where(told.most.max(axis=1, keepdims=True) > 0, far.below, 1.0))
        if known is not None and weights is not None:
            inside = weights.reshape(m * b, a)[:, known.inside]
            silent = inside.max(axis=1, keepdims=True) == inside.min(axis=1, keepdims=True)
            far = replace(far, above=np.where(silent, 0.0, far.above), below=np.where(silent, 1.0, far.below))
        every.append(told)
        found.append(far)
    joined = Worst.joined(found)
    if reach is None:
        return every, joined
    # Where numbers came near the smallest that doubles can hold, nothing is known.
    return every, replace(joined, above=np.where(reach.sound[:, None], joined.above, np.inf))
