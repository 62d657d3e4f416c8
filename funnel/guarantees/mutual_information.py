"""Bound on the average leakage I(S;Y): the original Privacy Funnel."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

from funnel.guarantees.base import Guarantee, Level, Witness, checked_number
from funnel.guarantees.exact import secret_output
from funnel.joint import Joint
from funnel.protocol import WeightArray
from funnel.wording import at_most

if TYPE_CHECKING:
    from flint import arb

_BITS = 192


@dataclass(frozen=True)
class MutualInformation(Guarantee):
    """``I(S;Y) <= M`` (PF problem 1): a bound on the average over all records, not on every output.

    A rare output may still reveal everything about the record it came from: prefer LIP, which bounds I(S;Y) as well.

    Parameters
    ----------
    bound : float
        M, nats, >= 0.

    Raises
    ------
    SpecError
        If M is not a finite number >= 0.

    Examples
    --------
    >>> import funnel
    >>> joint = funnel.Joint.from_counts([[30, 10], [10, 50]])
    >>> protocol = funnel.fit("grr", joint, funnel.MutualInformation(0.1))
    >>> funnel.MutualInformation(0.1).holds(joint, protocol)
    True
    >>> round(funnel.measures.secret_information(joint, protocol), 4)
    0.1
    """

    bound: float
    name: ClassVar[str] = "mi"
    title: ClassVar[str] = "bounded mutual information"
    example: ClassVar[str] = "mi:0.1"
    arithmetic: ClassVar[str] = "in interval arithmetic"
    extent: ClassVar[str] = "an average over all records"
    beyond: ClassVar[str] = (
        "The bound starts from the estimated share of each value, and is an average over the records. An "
        "observer who knows "
        "more about a person starts from another belief, which the record can change by more."
    )

    def __post_init__(self) -> None:
        checked_number(self, "bound")

    @property
    def budget(self) -> float:
        """M."""
        return self.bound

    def with_budget(self, budget: float) -> Self:
        """The same bound with another M."""
        return type(self)(budget)

    def level_for(self, joint: Joint, weights: WeightArray) -> Level:
        """I(S;Y) in interval arithmetic of 192 bits, its upper end; exactly 0 where S and Y are independent.

        The witness is the output that contributes most, and the secret whose lift is furthest from 1 there.
        """
        distribution = secret_output(joint.counts, weights)
        distribution = distribution[joint.counts.any(axis=1)]
        secrets, outputs = distribution.sum(axis=1), distribution.sum(axis=0)
        total = int(distribution.sum())
        if all(
            int(distribution[s, y]) * total == int(secrets[s]) * int(outputs[y])
            for s, y in np.ndindex(distribution.shape)
        ):
            return Level(0.0, self._witness(joint, distribution, int(np.flatnonzero(outputs)[0])))
        parts = _contributions(distribution)
        value = _above(parts)
        return Level(
            value, self._witness(joint, distribution, max(range(len(parts)), key=lambda y: float(parts[y].mid())))
        )

    @property
    def meaning(self) -> str:
        """An average over records."""
        return (
            "On average over all records, a published record tells an observer who knows the frequencies alone at "
            f"most {at_most(self.bound)} nats about the secret. That is an average: a rare published value may tell "
            "far more about the records that have it."
        )

    def _witness(
        self, joint: Joint, distribution: np.ndarray[tuple[int, ...], np.dtype[np.object_]], y: int
    ) -> Witness:
        seen = np.flatnonzero(joint.counts.any(axis=1))
        prior = distribution.sum(axis=1).astype(np.float64)
        lifts = distribution[:, y].astype(np.float64) / prior
        average = float(distribution[:, y].sum()) / float(distribution.sum())
        with np.errstate(divide="ignore"):
            strength = np.abs(np.log(lifts / average))
        s = int(strength.argmax())
        return Witness(y, int(seen[s]), None, None, bool(lifts[s] >= average))


def _contributions(distribution: np.ndarray[tuple[int, ...], np.dtype[np.object_]]) -> list[arb]:
    """P(y) D(P(S|y) ‖ P(S)) of every output, as intervals; distribution: exact integers (c, b)."""
    # Imported here, as below: specs of all guarantees are read by this package, and few are of this one.
    from flint import arb, ctx

    before, ctx.prec = ctx.prec, _BITS
    try:
        total = int(distribution.sum())
        secrets, outputs = [int(v) for v in distribution.sum(axis=1)], [int(v) for v in distribution.sum(axis=0)]
        parts = []
        for y, output in enumerate(outputs):
            part = arb(0)
            for s, secret in enumerate(secrets):
                if cell := int(distribution[s, y]):
                    part += arb(cell) * (arb(cell) * arb(total) / (arb(secret) * arb(output))).log()
            parts.append(part / arb(total))
        return parts
    finally:
        ctx.prec = before


def _above(parts: list[arb]) -> float:
    """A float that is not below the sum."""
    from flint import arb, ctx

    before, ctx.prec = ctx.prec, _BITS
    try:
        upper = sum(parts, arb(0)).upper()
    finally:
        ctx.prec = before
    # The conversion rounds to nearest, or a few ulps off: two steps up are enough.
    value = math.nextafter(math.nextafter(float(upper), math.inf), math.inf)
    return max(value, 0.0)
