"""Levels straight from their definitions, in fractions: what the library's exact levels are held against."""

from __future__ import annotations

from fractions import Fraction

from funnel import Joint, Protocol


def given_secret(joint: Joint, protocol: Protocol) -> tuple[dict[tuple[int, int], Fraction], list[Fraction]]:
    """P(y|s) by (y, s) for the secrets that occur, and P(y)."""
    read = joint.read_by(protocol.inputs.columns)
    counts, weights = read.counts.tolist(), protocol.weights_for(read.inputs).tolist()
    law, marginal = {}, []
    for y, row in enumerate(weights):
        marginal.append(
            Fraction(sum(sum(n) * w for n, w in zip(zip(*counts, strict=True), row, strict=True)), 2**63 * joint.n)
        )
        for s, cells in enumerate(counts):
            if sum(cells):
                law[y, s] = Fraction(sum(n * w for n, w in zip(cells, row, strict=True)), 2**63 * sum(cells))
    return law, marginal


def lip_ratio(joint: Joint, protocol: Protocol) -> Fraction | None:
    """Largest of P(y|s)/P(y) and its inverse; None if infinite."""
    law, marginal = given_secret(joint, protocol)
    worst = Fraction(1)
    for (y, _), value in law.items():
        if marginal[y] == 0:
            continue
        if value == 0:
            return None
        worst = max(worst, value / marginal[y], marginal[y] / value)
    return worst


def ldp_ratio(joint: Joint, protocol: Protocol) -> Fraction | None:
    """Largest P(y|s)/P(y|s'); None if infinite."""
    law, _marginal = given_secret(joint, protocol)
    worst = Fraction(1)
    for (y, s), value in law.items():
        for (z, t), other in law.items():
            if y == z and s != t and value > 0:
                if other == 0:
                    return None
                worst = max(worst, value / other)
    return worst
