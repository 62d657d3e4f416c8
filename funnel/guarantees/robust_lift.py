"""The worst lift of a channel over the confidence set: how far an output moves the belief in a secret, at most."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from funnel.guarantees.chi2_ball import extreme_distribution, tilt
from funnel.guarantees.worst_case import Neighbourhood
from funnel.joint import FloatArray

Places = npt.NDArray[np.intp]

# Intervals of P(s) that every output and secret starts from, and how often those that are not settled are cut in parts.
_INTERVALS, _PARTS, _ROUNDS = 1, 4, 40
# Steps of the search for how the deviation is split between s and the rest.
_SPLITS = 16
# Where a split counts as one that leaves a block nothing, as a share of what there is to split.
_EDGE = 2.0**-15
# How close bound and attained value come, relatively; a hundred times as wide, again and again, once so many
# intervals were cut.
_CLOSE, _MOST = 1e-7, 400
# Entries of all tasks beyond which a search would take minutes: no bound is found then.
_LARGEST = 2**14
# A round that raises the ratio by this share is followed by one without cuts.
_RISES = 1e-3
_UNIT = 2.0**-53


@dataclass(frozen=True, eq=False)
class WorstLift:
    """The largest lift ``P(y|s)/P(y)``, or the largest inverse, over all outputs, secrets and laws in F.

    Attributes
    ----------
    bound : float
        Not exceeded by any law in F; infinite if the channel excludes a secret under an output, or is too large to be
        searched.
    attained : float
        What ``law`` attains: mostly within a relative 1e-7 of the bound, further below where cells that were
        never seen leave the multipliers undetermined. The bound holds all the same.
    output, secret : int
    law : ndarray, shape (c, u), or None
        A law in F; None where the bound is infinite.
    """

    bound: float
    attained: float
    output: int
    secret: int
    law: FloatArray | None


@dataclass(frozen=True, eq=False)
class _Tasks:
    """Every output y and secret s as two blocks: the cells of s, and all others. Shapes (N, W), padded, or (N,).

    What is maximised is ``w_s P_s·f + w_r P_r·g`` with ``w_s = A - B σ``, ``w_r = B σ`` and σ = P(s): for the lift
    f = T_s, g = -T, A = 1, B = r; for its inverse f = -T_s, g = T, A = r, B = 1. A ratio is at most r if and only if
    that is at most 0 for every law in F.
    """

    own: FloatArray
    own_law: FloatArray
    rest: FloatArray
    rest_law: FloatArray
    prior: FloatArray
    upward: bool
    limit: float

    def factors(self, ratio: float) -> tuple[float, float]:
        return (1.0, ratio) if self.upward else (ratio, 1.0)


@dataclass(frozen=True, eq=False)
class _Saddle:
    """Multipliers for tasks at one σ each, the split of the deviation, and the ratio that it attains; shapes (N,)."""

    own: FloatArray
    own_mass: FloatArray
    rest: FloatArray
    rest_mass: FloatArray
    split: FloatArray
    ratio: FloatArray


def worst_lift_over(rows: FloatArray, neighbourhood: Neighbourhood, upward: bool, reads_secret: bool) -> WorstLift:
    """The largest lift (``upward``) or inverse lift over F, from above and from below.

    Parameters
    ----------
    rows : ndarray, shape (b, c, u)
        ``T_{s,u}`` of every output, each with an entry above 0.
    neighbourhood : Neighbourhood
    upward : bool
    reads_secret : bool
        False says that rows are the same for every s, which makes the work c times smaller.

    Notes
    -----
    A lift needs the law of S as well: ``P(y|s)/P(y) = 1/(σ + (1-σ) P(y|not s)/P(y|s))`` with σ = P(s). For a given
    σ, F bounds ``P̂_s² D_s/σ + P̂_r² D_r/(1-σ) <= 1 + B``, with the divergences of the laws given s and given not s: two
    balls that share a budget. With fixed multipliers η, ζ and masses X = P̂_s S, Z = P̂_r S' (`Tilt`), the functional of
    `_Tasks` is at most, whatever the split (Cauchy and Schwarz),

        ``w_s σ η + w_r (1-σ) ζ - (√w_s X + √w_r Z)² / (1+B)``,

    a quadratic in σ less ``2XZ √(w_s w_r)/(1+B)``, which is concave, so that its chord bounds it over an interval of σ.
    Intervals are cut until none can exceed the ratio that is attained by more than 1e-7: branch and bound in one
    dimension, hence a proof. METHOD section 5. O(b c u) a step, times c for channels that read the secret.
    """
    b, c, _ = rows.shape
    given = np.einsum("ysu,su->ys", rows, neighbourhood.law)
    average = given @ neighbourhood.prior
    if c == 1:
        return WorstLift(1.0, 1.0, 0, 0, neighbourhood.law * neighbourhood.prior[:, None])
    if not upward and (given <= 0).any():
        y, s = (int(k) for k in np.argwhere(given <= 0)[0])
        return WorstLift(np.inf, np.inf, y, s, None)
    with np.errstate(divide="ignore", invalid="ignore"):
        nominal = np.nan_to_num(given / average[:, None], nan=1.0)
    nominal = nominal if upward else 1 / nominal
    tasks = _tasks(rows, neighbourhood, upward, reads_secret)
    if tasks.own.size > _LARGEST:
        y, s = (int(k) for k in np.unravel_index(int(nominal.argmax()), nominal.shape))
        estimate = neighbourhood.law * neighbourhood.prior[:, None]
        return WorstLift(np.inf, _ratio(rows[y], estimate, s, upward), y, s, estimate)
    low, high = _range(neighbourhood)
    # Where an interval of P(s) begins and ends, in logits.
    edges = np.linspace(_logit(low), _logit(high), _INTERVALS + 1)
    secret = np.tile(np.arange(c), b)
    place = np.repeat(np.arange(b * c), _INTERVALS)
    start = edges[:-1].T[secret].ravel()
    end = edges[1:].T[secret].ravel()
    first = int(nominal.argmax())
    best, close = max(1.0, float(nominal.max())), _CLOSE
    work = 0
    where: tuple[int, float, float | None] = (first, float(neighbourhood.prior[secret[first]]), None)
    for _ in range(_ROUNDS):
        limit = best * (1 + close)
        middle = (start + end) / 2
        sigma = _sigma(middle)
        saddle = _saddle(tasks, place, sigma, limit)
        most, before = int(saddle.ratio.argmax()), best
        if saddle.ratio[most] > best:
            best, where = float(saddle.ratio[most]), (int(place[most]), float(sigma[most]), float(saddle.split[most]))
        # Ends rounded outwards.
        open_ = _bound(tasks, place, _sigma(start) * (1 - 1e-14), _sigma(end) * (1 + 1e-14), saddle, limit) > 0
        if not open_.any():
            law = _distribution(rows, neighbourhood, tasks, where)
            y, s = divmod(where[0], c)
            attained = best if law is None else _ratio(rows[y], law, s, upward)
            return WorstLift(max(limit, 1.0) * (1 + 2.0**-40), attained, y, s, law)
        place, start, end = place[open_], start[open_], end[open_]
        if best > before * (1 + _RISES):
            # A larger ratio settles most of them: those that it leaves are cut.
            continue
        work += _PARTS * len(place)
        if work > _MOST or float((end - start).max()) < 1e-5:
            # Too many or too narrow to be cut further: prove less.
            close *= 100
            continue
        cuts = np.linspace(start, end, _PARTS + 1)
        place, start, end = np.tile(place, _PARTS), cuts[:-1].ravel(), cuts[1:].ravel()
    y, s = divmod(where[0], c)
    return WorstLift(float(1 / low.min()) if upward else np.inf, best, y, s, None)


def _logit(sigma: FloatArray) -> FloatArray:
    return np.asarray(np.log(sigma) - np.log1p(-sigma))


def _sigma(logit: FloatArray) -> FloatArray:
    return np.asarray(1 / (1 + np.exp(-logit)))


def _tasks(rows: FloatArray, near: Neighbourhood, upward: bool, reads_secret: bool) -> _Tasks:
    b, c, u = rows.shape
    others = [np.delete(np.arange(c), s) for s in range(c)]
    weights = near.law * near.prior[:, None]
    if reads_secret:
        rest = np.stack([rows[:, rest].reshape(b, -1) for rest in others], axis=1)
        law = np.stack([weights[rest].ravel() for rest in others])
    else:
        # Cells of one input are told apart by nobody: one χ² term bounds theirs (Cauchy and Schwarz).
        rest, law = rows, np.stack([weights[rest].sum(axis=0) for rest in others])
    law = law / law.sum(axis=1, keepdims=True)
    sign = 1.0 if upward else -1.0
    scale = rows.max(axis=(1, 2), keepdims=True)
    width = rest.shape[2]
    own = np.concatenate([rows, np.repeat(rows[:, :, :1], width - u, axis=2)], axis=2)
    own_law = np.concatenate([near.law, np.zeros((c, width - u))], axis=1)
    return _Tasks(
        (sign * own / scale).reshape(b * c, width),
        np.tile(own_law, (b, 1)),
        (-sign * rest / scale).reshape(b * c, width),
        np.tile(law, (b, 1)),
        np.tile(near.prior, b),
        upward,
        (1 + near.radius) * (1 + 2.0**-48),
    )


def _range(near: Neighbourhood) -> tuple[FloatArray, FloatArray]:
    """Least and largest P(s) over F, (c,), a hair wider: ``P̂_s²/σ + (1-P̂_s)²/(1-σ) <= 1 + B``."""
    total = (1 + near.radius) * (1 + 2.0**-48)
    middle = (total + near.prior**2 - (1 - near.prior) ** 2) / 2
    root = np.sqrt(np.maximum(middle**2 - total * near.prior**2, 0.0))
    # The product of both ends is P̂_s²/(1+B): so the smaller one loses no digits.
    high = np.minimum((middle + root) / total * (1 + 1e-12), 1 - 1e-15)
    low = near.prior**2 / total / ((middle + root) / total) * (1 - 1e-12)
    return np.minimum(low, near.prior), np.maximum(high, near.prior)


def _saddle(tasks: _Tasks, place: Places, sigma: FloatArray, limit: float) -> _Saddle:
    """The best split and multipliers at given σ, by bisection on the slope of a concave function."""
    prior = tasks.prior[place]
    a, b = tasks.factors(limit)
    own_weight, rest_weight = np.maximum(a - b * sigma, 0.0), b * sigma
    least = prior**2 / sigma
    low = np.zeros(len(place))
    room = np.maximum(tasks.limit - (1 - prior) ** 2 / (1 - sigma) - least, 0.0)
    high = room.copy()
    rows = np.concatenate([tasks.own[place], tasks.rest[place]])
    laws = np.concatenate([tasks.own_law[place], tasks.rest_law[place]])
    number = len(place)
    for step in range(_SPLITS + 1):
        part = (low + high) / 2
        if step == _SPLITS:
            part = np.where(part <= _EDGE * room, 0.0, np.where(part >= (1 - _EDGE) * room, room, part))
        own_share, rest_share = least + part, np.maximum(tasks.limit - least - part, (1 - prior) ** 2 / (1 - sigma))
        own_divergence = np.maximum(own_share * sigma / prior**2, 1.0)
        rest_divergence = np.maximum(rest_share * (1 - sigma) / (1 - prior) ** 2, 1.0)
        divergence = np.concatenate([own_divergence, rest_divergence])
        found = tilt(rows, laws, divergence)
        own_mass, rest_mass = prior * found.mass[:number], (1 - prior) * found.mass[number:]
        if step == _SPLITS:
            break
        rises = own_weight * (own_mass / own_share) ** 2 > rest_weight * (rest_mass / rest_share) ** 2
        low, high = np.where(rises, part, low), np.where(rises, high, part)
    mean = np.minimum(found.top, found.top + found.distance - found.mass**2 / divergence)
    own, rest = sigma * np.abs(mean[:number]), (1 - sigma) * np.abs(mean[number:])
    with np.errstate(divide="ignore", invalid="ignore"):
        lift = own / (sigma * (own + rest))
        ratio = np.nan_to_num(lift if tasks.upward else 1 / lift, nan=1.0, posinf=1.0)
    # A block that gains nothing by deviating still takes its least share of the budget, D = 1: its price, and so its
    # multiplier, is that of the other block.
    own_price = np.sqrt(own_weight) * own_mass / own_share
    rest_price = np.sqrt(rest_weight) * rest_mass / rest_share
    with np.errstate(divide="ignore", invalid="ignore"):
        own_wanted = np.where(part <= _EDGE * room, rest_price * own_share / np.sqrt(own_weight) / prior, 0.0)
        rest_wanted = np.where(
            part >= (1 - _EDGE) * room, own_price * rest_share / np.sqrt(rest_weight) / (1 - prior), 0.0
        )
    wanted = np.concatenate(
        [np.where(own_price < rest_price, own_wanted, 0.0), np.where(rest_price < own_price, rest_wanted, 0.0)]
    )
    distance = np.maximum(found.distance, np.where(np.isfinite(wanted), wanted, 0.0) ** 2)
    mass = (laws * np.sqrt(distance[:, None] + (found.top[:, None] - rows))).sum(axis=1)
    eta = found.top + distance
    return _Saddle(
        eta[:number],
        prior * mass[:number],
        eta[number:],
        (1 - prior) * mass[number:],
        part,
        np.asarray(ratio),
    )


def _bound(
    tasks: _Tasks, place: Places, low: FloatArray, high: FloatArray, saddle: _Saddle, limit: float
) -> FloatArray:
    """Above the functional for all σ in [low, high] and every split, with a margin for rounding, shape (N,)."""
    a, b = tasks.factors(limit)
    # Beyond A/B the lift is below the limit because P(y) >= P(s) P(y|s).
    beyond = low >= a / b
    low = np.minimum(low, a / b)
    high = np.minimum(high, a / b)
    own_square, rest_square = saddle.own_mass**2 / tasks.limit, saddle.rest_mass**2 / tasks.limit
    cross = 2 * saddle.own_mass * saddle.rest_mass / tasks.limit

    def root(sigma: FloatArray) -> FloatArray:
        return np.asarray(-cross * np.sqrt(np.maximum((a - b * sigma) * b * sigma, 0.0)))

    first, last = root(low), root(high)
    width = high - low
    slope = np.where(width > 0, (last - first) / np.where(width > 0, width, 1.0), 0.0)
    square = -b * (saddle.own + saddle.rest)
    linear = a * saddle.own + b * saddle.rest + b * (own_square - rest_square) + slope
    constant = -a * own_square + first - slope * low
    top = np.clip(np.where(square < 0, -linear / np.where(square < 0, 2 * square, 1.0), low), low, high)
    values = [constant + sigma * (linear + square * sigma) for sigma in (low, high, top)]
    size = np.abs(saddle.own) + np.abs(saddle.rest) + own_square + rest_square
    margin = 8 * (tasks.own.shape[1] + 16) * _UNIT * size * (a * low + b * high + b * high**2 + a * high)
    # A term without σ: a own_square alone, known to a relative error.
    margin += 8 * (tasks.own.shape[1] + 16) * _UNIT * (a * own_square + np.abs(slope) * high + np.abs(first))
    return np.where(beyond, -1.0, np.maximum.reduce(values) + margin)


def _distribution(
    rows: FloatArray, near: Neighbourhood, tasks: _Tasks, where: tuple[int, float, float | None]
) -> FloatArray | None:
    """The law in F that attains the ratio found at a place, moved inside by what rounding may have put it outside."""
    estimate = near.law * near.prior[:, None]
    task, sigma, part = where
    y, s = divmod(task, len(near.prior))
    if part is None:
        return np.asarray(estimate)
    prior = float(near.prior[s])
    own_share = prior**2 / sigma + part
    sign = 1.0 if tasks.upward else -1.0
    others = np.delete(np.arange(len(near.prior)), s)
    rest_law = estimate[others].ravel() / estimate[others].sum()
    divergence = (tasks.limit - own_share) * (1 - sigma) / (1 - prior) ** 2
    law = np.empty_like(estimate)
    law[s] = sigma * extreme_distribution(sign * rows[y, s], near.law[s], max(1.0, own_share * sigma / prior**2))
    rest = extreme_distribution(-sign * rows[y, others].ravel(), rest_law, max(1.0, divergence))
    law[others] = (1 - sigma) * rest.reshape(len(others), -1)
    law /= law.sum()
    seen = estimate > 0
    with np.errstate(divide="ignore"):
        excess = float((estimate[seen] ** 2 / law[seen]).sum()) - 1
    if excess > near.radius:
        # Σ P̂²/P is convex in P and 1 at P̂.
        law += (1 - near.radius / excess) * (estimate - law)
    return np.asarray(law)


def _ratio(rows: FloatArray, law: FloatArray, secret: int, upward: bool) -> float:
    joint = (rows * law).sum(axis=1)
    lift = float(joint[secret] / law[secret].sum() / joint.sum())
    return lift if upward else 1 / lift
