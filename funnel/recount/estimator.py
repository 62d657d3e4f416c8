"""estimator.csv judged: whether its weights give every true value back, whatever the true shares are.

Nothing of what makes it is used here. Weights are right if they undo the channel, and are the least squares ones with
all values alike. Other weights would undo it too, where there are more outputs than values, and could have been chosen
by what is not public; and so could digits beyond those that matter. So every weight is computed again where all values
can be told, and is the one that is found to its last digit, of nine, or its neighbour where that is between two.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from flint import arb, arb_mat, ctx

from funnel.recount.channel import weights_of
from funnel.recount.published import csv_line, in_csv

Json = Mapping[str, Any]
# What is published to be more common than this may not be taken as given.
_RARE = 0.0025
_LARGEST = 10**7
_CLOSE = 1e-8
_DIGITS = 9
# Of the sum of weights of a value, what floats cannot tell.
_UNSURE = 3e-10
# Where elimination ends with pivots above this, every value can be told.
_CLEAR = 1e-3
_LEAST_SQUARES, _DEPENDENT = 1e-6, 1e-9
_BITS = 256


def estimator_complaints(text: bytes, protocol: Json) -> Iterator[str]:
    """What is wrong with estimator.csv.

    Parameters
    ----------
    text : bytes
        Of the file.
    protocol : JSON object
        Content of ``protocol.json``, judged.

    Notes
    -----
    O(a² b), where values times outputs times the fewer of both are at most 10⁷; above it there may be no line.
    """
    inputs, outputs = protocol["inputs"], protocol["outputs"]
    a, b = len(inputs["symbols"]), len(outputs["symbols"])
    head = [f"true {name}" for name in inputs["columns"]] + [f"published {name}" for name in outputs["columns"]]
    try:
        first, *lines = csv.reader(io.StringIO(text.decode(), newline=""), strict=True)
        true = {tuple(map(in_csv, symbol)): x for x, symbol in enumerate(inputs["symbols"])}
        published = {tuple(map(in_csv, symbol)): y for y, symbol in enumerate(outputs["symbols"])}
        k = len(inputs["columns"])
        found = [(true[tuple(line[:k])], published[tuple(line[k:-1])], float(line[-1])) for line in lines]
        rows: list[list[Any]] = [first, *([*line[:-1], float(line[-1])] for line in lines)]
        plain = b"".join(map(csv_line, rows))
    except (UnicodeDecodeError, csv.Error, KeyError, ValueError, IndexError):
        yield "is no table of true values, published values and weights"
        return
    if first != [*map(in_csv, head), "weight"]:
        yield "has other columns"
        return
    places = [(x, y) for x, y, _ in found]
    if any(one >= other for one, other in pairwise(places)) or not all(math.isfinite(w) and w for _, _, w in found):
        yield "has a line twice, out of order, or without a weight"
        return
    if a * b * min(a, b) > _LARGEST:
        if found:
            yield "has lines, and the table is too large for them"
        return
    weights = [[0.0] * b for _ in range(a)]
    for x, y, weight in found:
        weights[x][y] = weight
    complaints = list(_weight_complaints(weights, protocol))
    if not complaints and (text != plain or any(float(f"{w:.{_DIGITS}g}") != w for _, _, w in found)):
        complaints = [f"is not written as it always is, to {_DIGITS} digits"]
    yield from complaints


def _weight_complaints(weights: list[list[float]], protocol: Json) -> Iterator[str]:
    channel, prior = _channel(protocol), _prior(protocol)
    a = len(weights)
    rare = {
        x
        for x in range(a)
        if prior[x] <= _RARE and all(math.isclose(weight, prior[x], rel_tol=1e-11) for weight in weights[x])
    }
    others = [x for x in range(a) if x not in rare]
    left = 1.0 - math.fsum(prior[x] for x in rare)
    # A record of another value, mixed with those that are taken as given.
    mixed = [
        [left * channel[x][y] + math.fsum(prior[r] * channel[r][y] for r in rare) for y in range(len(channel[x]))]
        for x in range(a)
    ]
    for x in others:
        row = weights[x]
        if not any(row):
            continue
        size = max(1.0, math.fsum(map(abs, row)))
        for z in others:
            back = math.fsum(weight * share for weight, share in zip(row, mixed[z], strict=True))
            if abs(back - (left if x == z else 0.0)) > _CLOSE * size:
                yield f"the weights of value {x + 1} do not give it back"
                return
    rows = [mixed[x] for x in others]
    distribution = [math.fsum(row[y] for row in rows) / len(rows) for y in range(len(weights[0]))]
    basis = _orthonormal(
        [[v / math.sqrt(p) if p else 0.0 for v, p in zip(row, distribution, strict=True)] for row in rows]
    )
    for x in others:
        scaled = [weight * math.sqrt(p) for weight, p in zip(weights[x], distribution, strict=True)]
        size, rest = math.hypot(*scaled), _less(scaled, basis)
        if math.hypot(*rest) > _LEAST_SQUARES * size or any(
            w and not p for w, p in zip(weights[x], distribution, strict=True)
        ):
            yield f"the weights of value {x + 1} are not those of least squares with all values alike"
            return
    if not all(any(weights[x]) for x in others) and _least_pivot(rows) > _CLEAR:
        yield "a value that the records can tell is missing"
    if len(basis) == len(rows) and _least_pivot(rows) > _CLEAR:
        pairs = zip((weights[x] for x in others), _again(rows, distribution, left), strict=True)
        if any(any(row) and not _follows(row, again) for row, again in pairs):
            yield f"has a weight that is not what follows, to {_DIGITS} digits"


def _again(rows: list[list[float]], distribution: list[float], left: float) -> list[list[float]]:
    """The least squares weights that give every value back: ``left (C D⁻¹ Cᵀ)⁻¹ C D⁻¹``, with the distribution as D."""
    with ctx.workprec(_BITS):
        scaled = arb_mat([[arb(v) / p if p else 0 for v, p in zip(row, distribution, strict=True)] for row in rows])
        found = (arb_mat(rows) * scaled.transpose()).solve(scaled) * arb(left)
        return [[float(weight.mid()) for weight in row] for row in found.tolist()]


def _follows(row: list[float], again: list[float]) -> bool:
    """Whether weights are those found again, each rounded to its last digit, but for what floats cannot tell."""
    slack = _UNSURE * math.fsum(map(abs, again))
    return all(
        abs(w - v) <= slack + (0.5 * 10.0 ** (math.floor(math.log10(abs(w))) + 1 - _DIGITS) if w else 0.0)
        for w, v in zip(row, again, strict=True)
    )


def _orthonormal(rows: list[list[float]]) -> list[list[float]]:
    """Orthogonal directions of length one of the space of some rows; rows that add almost nothing add none."""
    basis: list[list[float]] = []
    for row in sorted(rows, key=lambda row: -math.hypot(*row)):
        # Twice is enough.
        rest = _less(_less(row, basis), basis)
        if (size := math.hypot(*rest)) > _DEPENDENT * math.hypot(*row):
            basis.append([v / size for v in rest])
    return basis


def _less(row: list[float], basis: list[list[float]]) -> list[float]:
    """What of a row is in none of the directions."""
    for direction in basis:
        along = math.fsum(u * v for u, v in zip(row, direction, strict=True))
        row = [u - along * v for u, v in zip(row, direction, strict=True)]
    return row


def _channel(protocol: Json) -> list[list[float]]:
    """Of every true value, the probability of every published one."""
    whole = int(protocol["denominator"])
    columns = [[0.0] * len(protocol["outputs"]["symbols"]) for _ in protocol["inputs"]["symbols"]]
    for y, x, weight in weights_of(protocol):
        columns[x][y] = weight / whole
    return columns


def _prior(protocol: Json) -> list[float]:
    """Published shares of the true values; one, which is not rare, where the protocol reads more than these."""
    symbols = protocol["inputs"]["symbols"]
    if protocol["prior"]["columns"] != protocol["inputs"]["columns"]:
        return [1.0] * len(symbols)
    known = dict(zip(map(tuple, protocol["prior"]["symbols"]), protocol["prior"]["probabilities"], strict=True))
    return [known.get(tuple(symbol), 1.0) for symbol in symbols]


def _least_pivot(rows: list[list[float]]) -> float:
    """The smallest pivot of an elimination that always goes on with the largest entry; 0 if none is left."""
    rows, least = [row[:] for row in rows], math.inf
    if rows and len(rows) > len(rows[0]):
        return 0.0
    while rows:
        i, j = max(
            ((i, j) for i in range(len(rows)) for j in range(len(rows[0]))), key=lambda at: abs(rows[at[0]][at[1]])
        )
        pivot = rows.pop(i)
        if (size := abs(pivot[j])) == 0:
            return 0.0
        least = min(least, size)
        rows = [[v - row[j] / pivot[j] * p for v, p in zip(row, pivot, strict=True)] for row in rows]
    return least
