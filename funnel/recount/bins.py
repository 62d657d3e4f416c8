"""Cut points and groups of values that were found for a column, held to what they may be: computed again."""

from __future__ import annotations

import math
import tomllib
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import Any

from funnel.errors import DataError
from funnel.recount.cells import is_decimal
from funnel.recount.source import recount, source_columns
from funnel.spec import ReleaseSpec

# As documented: quantile cells at most, and what a nat of the secret may weigh.
_CELLS = 64
_WEIGHTS = (0.0, 0.25, 1.0, 4.0, 16.0)
# Edges of a declared range, at most.
_ROUND_EDGES = 9
# How far sums in another order may be apart.
_ROUNDING = 1e-9

Numbers = Mapping[Fraction, Mapping[tuple[str, ...], int]]
# What a spec has to say, and what is not about its levels.
_ASKED = {
    "name": "levels",
    "title": "Levels",
    "guarantee": "ldp:1.0",
    "metadata": {"licence": "none"},
    "frequencies": {"protection": "none"},
}
_NOTHING = "(missing)"


def declared_cuts(low: float, high: float, whole: bool) -> list[Fraction]:
    """Edges that follow from a range alone: all multiples inside it of the least step 1, 2 or 5 times a power of ten of
    which there are nine at most; whole steps for whole numbers; the middle, where no multiple is inside.
    """
    ends = Fraction(str(low)), Fraction(str(high))
    width = ends[1] - ends[0]
    power = -400
    while Fraction(10) ** (power + 1) * _ROUND_EDGES * 10 < width:
        power += 1
    while True:
        for factor in (1, 2, 5):
            step = factor * Fraction(10) ** power
            if whole and step.denominator != 1:
                continue
            number = math.ceil(ends[1] / step) - math.floor(ends[0] / step) - 1
            if number <= _ROUND_EDGES:
                first = math.floor(ends[0] / step) + 1
                return [step * (first + j) for j in range(number)] or [(ends[0] + ends[1]) / 2]
        power += 1


def counted_numbers(spec: ReleaseSpec, column: str) -> dict[Fraction, dict[tuple[str, ...], int]]:
    """Records of every secret by the numbers of a column as they are in the source.

    Raises
    ------
    DataError
        As `recount`; also if a value is no number.
    """
    plain = spec.model_copy(
        update={
            "publish": (column,),
            "recode": {name: recode for name, recode in spec.recode.items() if name != column},
            "limits": spec.limits.model_copy(update={"max_symbols": 2**31, "max_inputs": 2**31}),
            "frequencies": spec.frequencies.model_copy(update={"protection": "none"}),
        }
    )
    mark = spec.source.decimal
    found: dict[Fraction, dict[tuple[str, ...], int]] = {}
    for (secret, (label,)), number in recount(plain).counts.items():
        text = label.strip() if mark == "." else label.strip().replace(mark, ".")
        if is_decimal(text):
            of = found.setdefault(Fraction(float(text)), {})
            of[secret] = of.get(secret, 0) + number
        elif label != spec.source.missing_label:
            raise DataError(f"column {column!r} has values that are not numbers, so no bins can be found for it")
    return found


def is_found(numbers: Numbers, edges: Sequence[float], by_variance: bool, merged: bool = False) -> str | None:
    """Why edges are not what the search for cut points can have found; None if they are.

    Every edge begins one of the quantile cells, and for some weight of the secret no other intervals of as many cells
    have a larger sum: of ``-q ln q``, or of their parts of the variance between them, less the weight times
    ``q D(p(S|interval) ‖ p(S))``. Which of these is taken, the certified optima of the maker decide.

    Parameters
    ----------
    numbers : mapping of number to mapping of secret to int
    edges : sequence of numbers
    by_variance : bool
        Whether the variance that is explained counts.
    merged : bool
        Whether intervals may have been merged since, so that no count is small.
    """
    values = sorted(numbers)
    records = [sum(numbers[value].values()) for value in values]
    n = sum(records)
    below = [0, *accumulate(records)][:-1]
    begins = sorted({bisect_left([_CELLS * count for count in below], j * n) for j in range(_CELLS)} - {len(values)})
    place = {values[begin]: cell for cell, begin in enumerate(begins)}
    cuts = [place.get(Fraction(edge)) for edge in edges]
    if None in cuts:
        return "has an edge that begins no quantile cell"
    if merged:
        return None
    chosen = [0, *(cut for cut in cuts if cut is not None), len(begins)]
    scores = _Scores(numbers, values, begins, by_variance)
    for weight in _WEIGHTS:
        told = math.fsum(scores.of(i, j, weight) for i, j in pairwise(chosen))
        if told >= scores.best(len(edges) + 1, weight) - _ROUNDING:
            return None
    return "has edges that another choice of as many is better than, whatever the secret weighs"


class _Scores:
    """What intervals of quantile cells add to a sum."""

    def __init__(self, numbers: Numbers, values: Sequence[Fraction], begins: Sequence[int], by_variance: bool) -> None:
        secrets = sorted({secret for of in numbers.values() for secret in of})
        ends = [*begins, len(values)]
        self._cells = len(begins)
        self._by_variance = by_variance
        # Of all cells before each: records of every secret, and sums of the numbers from a mean.
        totals = [sum(numbers[value].get(secret, 0) for value in values) for secret in secrets]
        self._n = sum(totals)
        self._prior = [total / self._n for total in totals]
        mean = sum((value * sum(numbers[value].values()) for value in values), Fraction()) / self._n
        self._squares = float(sum((value - mean) ** 2 * sum(numbers[value].values()) for value in values))
        self._counts = [[0] * len(secrets)]
        self._sums = [Fraction()]
        for i, j in pairwise(ends):
            part = values[i:j]
            more = [sum(numbers[value].get(secret, 0) for value in part) for secret in secrets]
            self._counts.append([one + other for one, other in zip(self._counts[-1], more, strict=True)])
            of_part = sum(((value - mean) * sum(numbers[value].values()) for value in part), Fraction())
            self._sums.append(self._sums[-1] + of_part)
        self._parts = [
            [self._part(i, j) if i < j else (-math.inf, 0.0) for j in range(self._cells + 1)]
            for i in range(self._cells + 1)
        ]

    def of(self, i: int, j: int, weight: float) -> float:
        """Of the interval of cells i to j - 1."""
        told, secret = self._parts[i][j]
        return told - weight * secret

    def best(self, number: int, weight: float) -> float:
        """The largest sum of so many intervals."""
        m = self._cells
        best = [self.of(0, j, weight) for j in range(m + 1)]
        for _ in range(number - 1):
            best = [max((best[i] + self.of(i, j, weight) for i in range(j)), default=-math.inf) for j in range(m + 1)]
        return best[m]

    def _part(self, i: int, j: int) -> tuple[float, float]:
        inside = [high - low for low, high in zip(self._counts[i], self._counts[j], strict=True)]
        size = sum(inside)
        q = size / self._n
        secret = math.fsum(
            count / self._n * math.log(count / (size * p))
            for count, p in zip(inside, self._prior, strict=True)
            if count
        )
        if not self._by_variance:
            return -q * math.log(q), secret
        apart = self._sums[j] - self._sums[i]
        return (float(apart**2 / size) / self._squares if self._squares else 0.0), secret


def hierarchy_complaints(spec: ReleaseSpec) -> Iterator[str]:
    """In what a spec groups values otherwise than the tables of levels that its text names, as parts of sentences.

    Parameters
    ----------
    spec : ReleaseSpec
        With the groups that were made of these tables.

    Raises
    ------
    DataError
        If a table cannot be read.
    """
    for column, told in tomllib.loads(spec.text).get("recode", {}).items():
        if not isinstance(told, Mapping) or "hierarchy" not in told:
            continue
        groups = spec.recode[column].groups or {}
        used = {value: group for group, values in groups.items() for value in values if value}
        again = _groups(told["hierarchy"], told["level"], spec)
        wrong = sum(used.get(value) != again.get(value) for value in {*used, *again})
        if wrong:
            yield f"group {wrong:,} values of {column} otherwise than the table of levels"


def _groups(told: Any, level: str, spec: ReleaseSpec) -> dict[str, str]:
    """The group of every value, by the readers that count sources a second time."""
    source = {"path": told} if isinstance(told, str) else dict(told)
    asked = {**_ASKED, "source": source, "secret": [level]}
    first = source_columns(ReleaseSpec.of({**asked, "publish": ["?"]}, spec.folder))[0]
    found = recount(ReleaseSpec.of({**asked, "publish": [first]}, spec.folder), wide=True)
    return {x: s for (s,), (x,) in found.counts if s.strip() and _NOTHING not in (s, x)}
