"""Plausible: how likely noise is that was found by counting again, or that noisy tables show, by proven tails."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from funnel.recount.noisy_moves import NoisyChanges, NoisyRows

# Outweighs the rounding of a few logarithms in floats.
_ROUNDING = 1 + 1e-9
# Exponents that are tried are this much smaller than the one at which the bound is infinite.
_INSIDE = 1e-9
_STEPS = 80


@dataclass(frozen=True)
class Plausible:
    """How likely the noise in a table is, if it was drawn as is said.

    Attributes
    ----------
    p_value : float
        At most t with a probability of at most t, if the noise was drawn so.
    what : str
        What is least likely of it, in words.
    """

    p_value: float
    what: str


def plausible_noise(
    noise: Sequence[Sequence[int]], scale: float, exact: Sequence[Sequence[int]] | None = None
) -> Plausible:
    """Judge noise: exact counts taken from the published ones, c × a.

    Looked at are the largest one, how many are zero, below zero and even, how many neighbours are equal or cancel, the
    sum and the sum of absolute values of the whole table, of every secret and of every input; and of the cells whose
    exact counts are even, odd, among the larger and among the smaller half. The whole shows noise that is absent, of
    another scale, of one sign or a function of other noise; lines show what has noise in a part only, or the same noise
    again and again; cells by their counts show noise that depends on these.

    Parameters
    ----------
    noise : sequence of sequence of int
    scale : float
    exact : sequence of sequence of int, optional
        The counts that it was added to, c × a. Noise that is drawn as is said does not depend on them, so that every
        test on cells that they select has its level.

    Notes
    -----
    Each tail is bounded by Chernoff's inequality, ``P(S >= s) <= min_θ e^{-θ s} E e^{θ S}``: of the numbers of
    cells by the binomial distribution, of the others with ``E e^{θ Z} = (1-α)² / ((1-α e^θ)(1-α e^{-θ}))`` and
    ``E e^{θ |Z|} = (1-α)(1+α e^θ) / ((1+α)(1-α e^θ))``. A bound on a tail that falls with s is at most t with a
    probability of at most t; two sides of one sum count twice. Tests of the whole table, of lines, and of cells by
    their counts share the level, a third for each, or a half where there are no counts. What they see in tables of
    which size is measured in ``tests/funnel/recount/test_noise.py``.
    """
    table, alpha = [list(map(int, row)) for row in noise], math.exp(-1 / scale)
    cells = [count for row in table for count in row]
    whole = [
        (len(cells) * _largest(max(map(abs, cells)), scale), "the largest of it"),
        *_signs(cells, alpha, "it is"),
        *_neighbours(cells, alpha),
        *_sums(cells, alpha, "in all"),
    ]
    parts = []
    if len(table) > 1 and len(table[0]) > 1:
        parts += [one for row in table for one in _sums(row, alpha, "for one secret")]
        parts += [one for line in zip(*table, strict=True) for one in _sums(line, alpha, "for one published value")]
    families = [whole, parts]
    if exact is not None:
        groups = _by_count(cells, [count for row in exact for count in row])
        families.append(
            [
                one
                for group, where in groups
                for one in (*_signs(group, alpha, f"{where} it is"), *_sums(group, alpha, where))
            ]
        )
    # The same for each family, however many lines there are.
    found = [(len(families) * len(family) * p, what) for family in families for p, what in family]
    smallest, what = min(found)
    return Plausible(min(1.0, smallest * _ROUNDING), what)


def _by_count(cells: Sequence[int], exact: Sequence[int]) -> list[tuple[list[int], str]]:
    """The noise of cells by what was counted in them; groups of fewer than two are left out."""
    order = sorted(range(len(cells)), key=lambda place: exact[place])
    half = len(cells) // 2
    groups = [
        ([cells[place] for place in order[:half]], "where counts are small"),
        ([cells[place] for place in order[half:]], "where counts are large"),
        ([z for z, count in zip(cells, exact, strict=True) if count % 2 == 0], "where counts are even"),
        ([z for z, count in zip(cells, exact, strict=True) if count % 2], "where counts are odd"),
    ]
    return [(group, where) for group, where in groups if len(group) > 1]


def _signs(cells: Sequence[int], alpha: float, what: str) -> list[tuple[float, str]]:
    zero, below = sum(count == 0 for count in cells), sum(count < 0 for count in cells)
    even = sum(count % 2 == 0 for count in cells)
    return [
        (_share(zero, len(cells), (1 - alpha) / (1 + alpha)), f"how often {what} zero"),
        (_share(below, len(cells), alpha / (1 + alpha)), f"how often {what} below zero"),
        (_share(even, len(cells), (1 + alpha * alpha) / (1 + alpha) ** 2), f"how often {what} even"),
    ]


def _neighbours(cells: Sequence[int], alpha: float) -> list[tuple[float, str]]:
    """Of disjoint pairs of cells, how many are equal, and how many cancel."""
    pairs = list(zip(cells[::2], cells[1::2], strict=False))
    if not pairs:
        return []
    # Σ_k P(k)²: one at zero, and two at all others.
    chance = (1 - alpha) * (1 + alpha**2) / (1 + alpha) ** 3
    return [
        (_share(sum(z == w for z, w in pairs), len(pairs), chance), "how often neighbours are equal"),
        (_share(sum(z == -w for z, w in pairs), len(pairs), chance), "how often neighbours cancel"),
    ]


def _sums(line: Sequence[int], alpha: float, where: str) -> list[tuple[float, str]]:
    return [
        (2 * _absolute(sum(map(abs, line)), len(line), alpha), f"how large it is {where}"),
        (2 * tail(abs(sum(line)), ((len(line), -1 / math.log(alpha)),)), f"which way it goes {where}"),
    ]


def _largest(size: int, scale: float) -> float:
    """P(|Z| >= size)."""
    return 1.0 if size == 0 else 2 * math.exp(-size / scale) / (1 + math.exp(-1 / scale))


def _share(number: int, cells: int, chance: float) -> float:
    """Not below twice the smaller tail of Bin(cells, chance) at a number."""
    return 2 * min(_binomial(number, cells, chance), _binomial(cells - number, cells, 1 - chance))


def _binomial(number: int, trials: int, chance: float) -> float:
    """Not below P(Bin(trials, chance) >= number)."""
    share = number / trials
    if share <= chance:
        return 1.0
    rest = 0.0 if share == 1 else (1 - share) * math.log((1 - share) / (1 - chance))
    return math.exp(-trials * (share * math.log(share / chance) + rest))


def _absolute(total: int, cells: int, alpha: float) -> float:
    """Not below the smaller of P(Σ|Z| >= total) and P(Σ|Z| <= total)."""
    if total == 0:
        return ((1 - alpha) / (1 + alpha)) ** cells
    mean = total / cells
    # α e^θ where the tilted mean is the one that was found; the sign of θ says which side it is on.
    tilted = mean / (1 + math.sqrt(1 + mean * mean))
    theta = math.log(tilted / alpha)
    transform = math.log((1 - alpha) / (1 + alpha) * (1 + tilted) / (1 - tilted))
    return math.exp(min(0.0, cells * transform - theta * total))


def disagreement(
    counts: Sequence[Sequence[int]], scale: float, changes: NoisyChanges | None, rows: NoisyRows | None
) -> float:
    """How likely it is at most that noise alone makes tables disagree as they do; 1 if they do not.

    Everybody who came from a version is in one count of ``secrets`` and in one of ``stayed`` or ``left``, in the row of
    their secret then; and nobody is in two versions, so that no more came with a secret than have it now. Each of it is
    true of exact counts, and of noisy ones up to a sum of noise whose distribution is known.

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
