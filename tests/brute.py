"""Levels and vertices straight from their definitions, in fractions: what the library's are held against."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np

from funnel import Guarantee, Joint, Protocol


def given_secret(joint: Joint, protocol: Protocol) -> tuple[dict[tuple[int, int], Fraction], list[Fraction]]:
    """P(y|s) by (y, s) for the secrets that occur, and P(y)."""
    read = joint.read_by(protocol.inputs.columns)
    counts, weights = read.counts.tolist(), protocol.weights_for(read.inputs).tolist()
    distribution, marginal = {}, []
    for y, row in enumerate(weights):
        marginal.append(
            Fraction(sum(sum(n) * w for n, w in zip(zip(*counts, strict=True), row, strict=True)), 2**63 * joint.n)
        )
        for s, cells in enumerate(counts):
            if sum(cells):
                distribution[y, s] = Fraction(sum(n * w for n, w in zip(cells, row, strict=True)), 2**63 * sum(cells))
    return distribution, marginal


def lip_ratio(joint: Joint, protocol: Protocol) -> Fraction | None:
    """Largest of P(y|s)/P(y) and its inverse; None if infinite."""
    distribution, marginal = given_secret(joint, protocol)
    worst = Fraction(1)
    for (y, _), value in distribution.items():
        if marginal[y] == 0:
            continue
        if value == 0:
            return None
        worst = max(worst, value / marginal[y], marginal[y] / value)
    return worst


def ldp_ratio(joint: Joint, protocol: Protocol) -> Fraction | None:
    """Largest P(y|s)/P(y|s'); None if infinite."""
    distribution, _marginal = given_secret(joint, protocol)
    worst = Fraction(1)
    for (y, s), value in distribution.items():
        for (z, t), other in distribution.items():
            if y == z and s != t and value > 0:
                if other == 0:
                    return None
                worst = max(worst, value / other)
    return worst


def cone_by_fractions(joint: Joint, guarantee: Guarantee, growth: Fraction) -> list[list[Fraction]]:
    """Rows R of ``R v <= 0`` for posteriors v over the inputs, with ``growth`` for e^ε; all inputs occur."""
    cells = joint.counts.tolist()
    sizes, columns = [sum(row) for row in cells], [sum(column) for column in zip(*cells, strict=True)]
    lifts = [
        [Fraction(n * joint.n, size * total) for n, total in zip(row, columns, strict=True)]
        for row, size in zip(cells, sizes, strict=True)
    ]
    if guarantee.name == "lip":
        above = [[lift - growth for lift in row] for row in lifts]
        return above + [[1 / growth - lift for lift in row] for row in lifts]
    pairs = itertools.permutations(lifts, 2)
    return [[high - growth * low for high, low in zip(one, other, strict=True)] for one, other in pairs]


def vertices_by_fractions(rows: list[list[Fraction]]) -> np.ndarray:
    """Vertices of ``{v >= 0, Σv = 1, rows v <= 0}`` by solving every support with every set of tight rows."""
    a = len(rows[0])
    found: set[tuple[Fraction, ...]] = set()
    for size in range(1, a + 1):
        for support in itertools.combinations(range(a), size):
            for tight in itertools.combinations(rows, size - 1):
                system = [[Fraction(1)] * size, *([row[x] for x in support] for row in tight)]
                solution = solve([[*row, Fraction(int(i == 0))] for i, row in enumerate(system)])
                if solution is None or min(solution) <= 0:
                    continue
                if all(sum(row[x] * v for x, v in zip(support, solution, strict=True)) <= 0 for row in rows):
                    found.add(tuple(dict(zip(support, solution, strict=True)).get(x, Fraction(0)) for x in range(a)))
    return np.array([[float(v) for v in vertex] for vertex in sorted(found)])


def solve(system: list[list[Fraction]]) -> list[Fraction] | None:
    """Solution of a square system given with its right-hand side as last column; None if singular."""
    for i in range(len(system)):
        pivot = next((k for k in range(i, len(system)) if system[k][i] != 0), None)
        if pivot is None:
            return None
        system[i], system[pivot] = system[pivot], system[i]
        system[i] = [value / system[i][i] for value in system[i]]
        for k in range(len(system)):
            if k != i and system[k][i] != 0:
                factor = system[k][i]
                system[k] = [one - factor * other for one, other in zip(system[k], system[i], strict=True)]
    return [row[-1] for row in system]
