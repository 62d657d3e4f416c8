"""Agreeing: whether noisy tables that count the same people agree, up to what their noise explains; from them alone.

Everybody who came from a version is in one count of ``secrets`` and in one of ``stayed`` or ``left``, in the row of
their secret then; and nobody is in two versions, so that no more came with a secret than have it now. Each of it is
true of exact counts, and of noisy ones up to a sum of noise whose law is known.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from funnel.recount.noisy_moves import NoisyChanges, NoisyRows

# Exponents that are tried are this much smaller than the one at which the bound is infinite.
_INSIDE = 1e-9
_STEPS = 80


def disagreement(
    counts: Sequence[Sequence[int]], scale: float, changes: NoisyChanges | None, rows: NoisyRows | None
) -> float:
    """How likely it is at most that noise alone makes tables disagree as they do; 1 if they do not.

    If the tables are of the same people, with independent noise of these scales, it is at most t with a probability of
    at most t.

    Parameters
    ----------
    counts : c × a whole numbers
        Noisy counts of the version, not clipped.
    scale : float
        Of their noise.
    changes : NoisyChanges or None
    rows : NoisyRows or None
    """
    found = [*_changes(counts, scale, changes), *_rows(counts, scale, rows)]
    return min(1.0, len(found) * min(found)) if found else 1.0


def _changes(counts: Sequence[Sequence[int]], scale: float, changes: NoisyChanges | None) -> Iterator[float]:
    if changes is None:
        return
    for one in changes.since:
        for to, stayed, left in zip(one.secrets, one.stayed, one.left, strict=True):
            # A count of people who cannot have stayed has no noise; to take it for one with noise is no less careful.
            cells = len(to) + len(stayed) + len(left)
            yield 2 * tail(abs(sum(to) - sum(stayed) - sum(left)), ((cells, changes.scale),))
    for s, row in enumerate(counts):
        came = [to[s] for one in changes.since for to in one.secrets]
        yield tail(sum(came) - sum(row), ((len(came), changes.scale), (len(row), scale)))


def _rows(counts: Sequence[Sequence[int]], scale: float, rows: NoisyRows | None) -> Iterator[float]:
    if rows is None:
        return
    cells = [n for table in (rows.stayed, rows.left) for row in table for n in row]
    several = rows.sizes[1:]
    yield 2 * tail(abs(sum(cells) - sum(several)), ((len(cells) + len(several), rows.scale),))
    people = [n for row in counts for n in row]
    noise = ((len(rows.sizes), rows.scale), (len(people), scale))
    yield 2 * tail(abs(sum(rows.sizes) - sum(people)), noise)
    for row, stayed, left in zip(counts, rows.stayed, rows.left, strict=True):
        second = [*stayed, *left]
        yield tail(sum(second) - sum(row), ((len(second), rows.scale), (len(row), scale)))


def tail(total: int, noise: Sequence[tuple[int, float]]) -> float:
    """Not below ``P(ΣZ >= total)`` of independent noise, by Chernoff's inequality.

    Parameters
    ----------
    total : int
    noise : sequence of (int, float)
        How many of the variables have which scale.

    Notes
    -----
    Every θ below the least 1/scale gives a bound ``e^{-θ total} Π E e^{θ Z}``; its logarithm is convex in θ.
    """
    if total <= 0:
        return 1.0
    alphas = [(cells, math.exp(-1 / scale)) for cells, scale in noise]

    def exponent(theta: float) -> float:
        transforms = [
            cells * math.log((1 - alpha) ** 2 / ((1 - alpha * math.exp(theta)) * (1 - alpha * math.exp(-theta))))
            for cells, alpha in alphas
        ]
        return math.fsum([*transforms, -theta * total])

    low, high = 0.0, (1 - _INSIDE) / max(scale for _, scale in noise)
    for _ in range(_STEPS):
        first, second = (2 * low + high) / 3, (low + 2 * high) / 3
        low, high = (low, second) if exponent(first) < exponent(second) else (first, high)
    # A margin for the rounding of logarithms.
    return math.exp(min(0.0, exponent(low))) * (1 + 1e-9)
