"""The variance that a release explains of numbers, from what is public, within what the rounding of shares leaves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Limits = tuple[float, float]
Numbers = Sequence[float | None]


def explained_limits(weights: Sequence[Sequence[float]], prior: Sequence[Limits], numbers: Numbers) -> Limits:
    """The least and the most that Var E[N|Y] / Var N can be, in interval arithmetic; O(a b).

    Parameters
    ----------
    weights : b sequences of a floats
        P(y|x).
    prior : sequence of (low, high), length a
        What the law of the inputs may be.
    numbers : sequence of float or None, length a
        None for an input without a number, which counts as the mean of those that have one.
    """
    known = [(n, p) for n, p in zip(numbers, prior, strict=True) if n is not None]
    whole = sum(low + high for _, (low, high) in known)
    if not whole:
        return 0.0, 1.0
    # From near the mean, what is not known of the law of numbers hardly matters.
    centre = sum(n * (low + high) for n, (low, high) in known) / whole
    mean = _mean([(n - centre, p) for n, p in known])
    gaps: list[Limits] = [mean if n is None else (n - centre, n - centre) for n in numbers]
    first = _sum(_times(p, gap) for p, gap in zip(prior, gaps, strict=True))
    second = _sum(_times(p, _square(gap)) for p, gap in zip(prior, gaps, strict=True))
    off = _square(first)
    total = max(0.0, second[0] - off[1]), max(0.0, second[1] - off[0])
    furthest = max(_square(gap)[1] for gap in gaps)
    low = high = 0.0
    for row in weights:
        mass = _sum((w * p[0], w * p[1]) for w, p in zip(row, prior, strict=True))
        told = _square(_sum(_times((w * p[0], w * p[1]), gap) for w, p, gap in zip(row, prior, gaps, strict=True)))
        low += told[0] / mass[1] if mass[1] else 0.0
        high += min(told[1] / mass[0], mass[1] * furthest) if mass[0] else mass[1] * furthest
    least = max(0.0, low - off[1]) / total[1] if total[1] else 0.0
    return min(1.0, least), min(1.0, max(0.0, high - off[0]) / total[0]) if total[0] else 1.0


def _mean(known: Sequence[tuple[float, Limits]]) -> Limits:
    """Of Σ n p / Σ p for any p within limits: what is above a place gets most, the rest least."""
    ends = []
    for sign in (1.0, -1.0):
        best = -float("inf")
        for place in sorted({sign * n for n, _ in known}):
            chosen = [(sign * n, high if sign * n >= place else low) for n, (low, high) in known]
            if mass := sum(p for _, p in chosen):
                best = max(best, sum(n * p for n, p in chosen) / mass)
        ends.append(sign * best)
    return ends[1], ends[0]


def _sum(parts: Iterable[Limits]) -> Limits:
    low = high = 0.0
    for part in parts:
        low, high = low + part[0], high + part[1]
    return low, high


def _times(one: Limits, other: Limits) -> Limits:
    ends = [x * y for x in one for y in other]
    return min(ends), max(ends)


def _square(one: Limits) -> Limits:
    ends = one[0] ** 2, one[1] ** 2
    return (0.0 if one[0] <= 0 <= one[1] else min(ends)), max(ends)
