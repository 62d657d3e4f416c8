"""Maximum likelihood shares by expectation maximisation, accelerated, with a certificate of how near they are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from funnel.joint import FloatArray

_MOST_STEPS = 20_000
# After so many steps, a multiple of three, the maximum is looked for by curvature, of so many values at most.
_BETWEEN = 600
_LARGEST = 1_000
_NEWTON_STEPS = 60
# Shares that small are none, but an outcome that needs one would make the likelihood zero.
_TINY = 1e-300


@dataclass(frozen=True, eq=False)
class Likeliest:
    """Shares of highest likelihood.

    Attributes
    ----------
    shares : ndarray, shape (a,)
    gap : float
        No shares have a log-likelihood that is higher by more than this, nats per record.
    steps : int
    """

    shares: FloatArray
    gap: float
    steps: int


def likeliest_shares(channel: FloatArray, seen: FloatArray, gap: float, start: FloatArray | None = None) -> Likeliest:
    """Maximise ``Σ_y f_y ln (Q p)_y`` over the simplex.

    Expectation maximisation (Dempster et al. 1977) with squared extrapolation (SQUAREM S3, Varadhan and Roland 2008).
    The log-likelihood is concave in p, so with ``g = Qᵀ(f / Qp)`` it is at most ``max_x g_x - 1`` below its maximum.

    Parameters
    ----------
    channel : ndarray, shape (b, a)
        Q, columns summing to one.
    seen : ndarray, shape (b,)
        f: shares of the outputs, summing to one.
    gap : float
        Wanted, nats per record; what is reached is told.
    start : ndarray, shape (a,), optional
        By default all values alike.

    Notes
    -----
    O(a b) a step. Where the channel is singular the maximum is not unique, and what is not told stays as it started.
    """
    used = seen > 0
    rows, shares_seen = np.ascontiguousarray(channel[used]), seen[used]
    p = np.full(channel.shape[1], 1 / channel.shape[1]) if start is None else (start + 1e-12) / (start + 1e-12).sum()
    value = _value(rows, shares_seen, p)
    steps = 0
    while True:
        slope = rows.T @ (shares_seen / np.maximum(rows @ p, _TINY))
        reached = float(slope.max()) - 1
        steps += 3
        if reached <= gap or steps >= _MOST_STEPS:
            return Likeliest(p, max(0.0, reached), steps)
        if steps % _BETWEEN == 0 and len(p) <= _LARGEST:
            p, value = _by_newton(rows, shares_seen, p, gap)
            continue
        once = p * slope
        twice = once * (rows.T @ (shares_seen / np.maximum(rows @ once, _TINY)))
        first, second = once - p, twice - 2 * once + p
        length = float(np.linalg.norm(second))
        stride = -float(np.linalg.norm(first)) / length if length > 0 else -1.0
        p, value = _leap(rows, shares_seen, p, first, second, min(stride, -1.0), twice, value)


def _by_newton(rows: FloatArray, seen: FloatArray, p: FloatArray, gap: float) -> tuple[FloatArray, float]:
    """Newton's steps on the values that have a share, which others join and leave; never less likely than p.

    Expectation maximisation creeps where values are hardly told apart, or a share goes to zero: these are directions of
    little curvature, and ends that it never reaches.
    """
    start, before = p, _value(rows, seen, p)
    # What the plain steps have all but taken away can come back by its slope.
    p = np.where(p > 1e-9 / len(p), p, 0.0)
    p = p / p.sum()
    value = _value(rows, seen, p)
    for _ in range(_NEWTON_STEPS):
        outputs = np.maximum(rows @ p, _TINY)
        slope = rows.T @ (seen / outputs)
        if slope.max() - 1 <= gap:
            break
        free = (p > 0) | (slope > 1 + gap / 2)
        scaled = rows[:, free] * (np.sqrt(seen) / outputs)[:, np.newaxis]
        number = int(free.sum())
        system = np.zeros((number + 1, number + 1))
        system[:number, :number] = scaled.T @ scaled
        system[:number, number], system[number, :number] = 1.0, 1.0
        step = np.zeros(len(p))
        step[free] = np.linalg.lstsq(system, np.append(slope[free] - 1, 0.0), rcond=1e-13)[0][:number]
        # A value without a share cannot lose one.
        blocked = (p == 0) & (step < 0)
        step[blocked] = 0.0
        falling = step < 0
        far = min(1.0, float((-p[falling] / step[falling]).min())) if falling.any() else 1.0
        moved = False
        for _ in range(40):
            tried = np.maximum(p + far * step, 0.0)
            tried[tried < 1e-15] = 0.0
            tried = tried / tried.sum()
            found = _value(rows, seen, tried)
            if found > value:
                p, value, moved = tried, found, True
                break
            far /= 2
        if not moved:
            break
    return (p, value) if value >= before else (start, before)


def _leap(
    rows: FloatArray,
    seen: FloatArray,
    p: FloatArray,
    first: FloatArray,
    second: FloatArray,
    stride: float,
    twice: FloatArray,
    value: float,
) -> tuple[FloatArray, float]:
    """The extrapolation, shortened until it is a distribution of no less likelihood; at least two plain steps."""
    while stride < -1.0:
        leapt = p - 2 * stride * first + stride**2 * second
        if (leapt >= 0).all():
            leapt = leapt / leapt.sum()
            # One plain step mends what the extrapolation broke.
            leapt = leapt * (rows.T @ (seen / np.maximum(rows @ leapt, _TINY)))
            found = _value(rows, seen, leapt)
            if found >= value:
                return leapt, found
        stride = (stride - 1) / 2 if stride < -1.01 else -1.0
    twice = twice / twice.sum()
    return twice, _value(rows, seen, twice)


def _value(rows: FloatArray, seen: FloatArray, p: FloatArray) -> float:
    return float(seen @ np.log(np.maximum(rows @ p, _TINY)))


def on_simplex(values: FloatArray) -> FloatArray:
    """The distribution nearest to values (a,) in Euclidean distance (Duchi et al. 2008, figure 1); O(a log a)."""
    falling = np.sort(values)[::-1]
    excess = (np.cumsum(falling) - 1) / np.arange(1, len(values) + 1)
    return np.asarray(np.maximum(values - excess[np.flatnonzero(falling > excess)[-1]], 0.0))
