"""Local: the best channel for people about whom a record shows the same so far."""

from __future__ import annotations

import numpy as np

from funnel.errors import SolverError
from funnel.groups.aims import INFORMATION, Aim
from funnel.joint import FloatArray
from funnel.solver.budget import Budget
from funnel.solver.columns import ColumnGeneration
from funnel.solver.interval import Interval
from funnel.solver.merging import merged_split
from funnel.solver.pairs import best_shares, paired
from funnel.solver.region import Region
from funnel.solver.split import best_split

# Nats that are not worth looking for.
_GAP = 1e-3
# Share of the work for the classes that a search starts from.
_STARTING = 0.3
# Entries of a solver below this are its rounding.
_DUST = 1e-10
# Of two secrets all vertices are listed where they have so many coordinates; a search climbs to more of them.
_LISTED = 2**21
# Where the law alone is closer to a condition than this, relatively, there is nothing left to say.
_THIN = 1e-9


def best_channel(law: FloatArray, cone: FloatArray, budget: Budget, aim: Aim = INFORMATION) -> FloatArray | None:
    """The channel T (b, a) that serves an aim best and keeps every posterior of the secret in a cone; None for silence.

    Parameters
    ----------
    law : ndarray, shape (c, a)
        P(s, x | h) up to a factor; every input occurs.
    cone : ndarray, shape (k, c)
        Conditions ``M P(S|h,y) <= 0``.
    budget : Budget
        Ends the search with the best so far.
    aim : Aim
        Over these inputs.

    Returns
    -------
    ndarray or None
        Columns sum to 1. The identity, where it is allowed.
    """
    p = law.sum(axis=0)
    if len(p) < 2:
        return None
    rows = cone @ law
    if (rows <= -_THIN * (np.abs(cone) @ law)).all():
        return np.eye(len(p))
    if (rows.sum(axis=1) >= -_THIN * (np.abs(cone) @ law).sum(axis=1)).any():
        return None
    if len(law) == 2 and aim is INFORMATION:
        return _of_two(law, cone, budget)
    try:
        listed = _vertices_of_two(law, Interval.of_cone(cone)) if len(law) == 2 else None
        if listed is not None:
            split = best_split(listed, p / p.sum(), budget, aim.goal())
            return _said(split.posteriors * split.mass[:, None] / (p / p.sum()))
        region = Region.of(rows / p, p / p.sum(), goal=aim.goal())
        start = merged_split(region, budget.part(_STARTING))
        search = ColumnGeneration(region, budget)
        search.start_from(start.posteriors)
        split = search.run(_GAP, proving=False).split
        if split.value < start.value:
            split = start
    except SolverError:
        return None
    return _said(split.posteriors * split.mass[:, None] / region.law)


def _said(channel: FloatArray) -> FloatArray | None:
    """A channel (b, a) without a solver's dust; None where it is none to its tolerance, or says nothing."""
    channel = np.where(channel < _DUST, 0.0, channel)
    channel = channel[channel.any(axis=1)]
    sums = channel.sum(axis=0)
    if (np.abs(sums - 1) > 1e-6).any() or len(channel) < 2:
        return None
    return np.asarray(channel / sums)


def _of_two(law: FloatArray, cone: FloatArray, budget: Budget) -> FloatArray | None:
    """The same for two secrets, in closed form but for one small linear programme (`funnel.solver.pairs`)."""
    p = law.sum(axis=0)
    interval = Interval.of_cone(cone)
    r, group = np.unique(law[1] / p, return_inverse=True)
    group = group.reshape(-1)
    try:
        shares = best_shares(r, np.bincount(group, weights=p) / p.sum(), interval, _GAP, budget).share[group]
    except SolverError:
        return None
    order = np.argsort(law[1] / p, kind="stable")
    rows = [np.eye(len(p))[shares[:, 0] > 0] * shares[:, 0]]
    for number, _ in interval.ends:
        used = order[shares[order, number] > 0]
        if not len(used):
            continue
        first, second, of_first, of_second = paired((law[1] / p)[used], shares[used, number] * p[used])
        pairs = np.zeros((len(first), len(p)))
        pairs[np.arange(len(first)), used[first]] = of_first / p[used[first]]
        # The same place twice for an input that is an output alone: nothing of it is the second.
        np.add.at(pairs, (np.arange(len(first)), used[second]), of_second / p[used[second]])
        rows.append(pairs)
    return _said(np.concatenate(rows))


def _vertices_of_two(law: FloatArray, interval: Interval) -> FloatArray | None:
    """All vertices (k, a) of the posteriors that an interval allows; None where they are too many to be listed."""
    r = law[1] / law.sum(axis=0)
    sides = [interval.sides(r, end) for _, end in interval.ends]
    if any(len(below) * len(above) * len(r) > _LISTED for below, above in sides):
        return None
    return interval.vertices(r)


def joined(channel: FloatArray, law: FloatArray, least: float, aim: Aim = INFORMATION) -> FloatArray:
    """The channel with outputs that are rarer than ``least`` joined to those with which least is lost.

    Conditions on outputs are cones: what two rows meet, their sum meets. O(b² a).

    Parameters
    ----------
    channel : ndarray, shape (b, a)
    law : ndarray, shape (a,)
        P(x | h), summing to 1.
    least : float
        A probability.
    aim : Aim
        Over these inputs: what is lost.
    """
    rows = [row for row in channel if row.any()]
    while len(rows) > 1:
        masses = np.array([row @ law for row in rows])
        rarest = int(masses.argmin())
        if masses[rarest] >= least:
            break
        rare = rows.pop(rarest)
        others = np.array(rows) * law
        alone = rare * law
        loss = aim.worths(others) - aim.worths(others + alone)
        best = int(loss.argmin())
        rows[best] = rows[best] + rare
    return np.array(rows)
