"""The design of an optimised unary encoding: one probability, as an integer, for any number of inputs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from funnel.alphabet import Alphabet
from funnel.errors import DataError, SpecError
from funnel.joint import Joint
from funnel.protocol import DENOMINATOR, WeightArray, exact_sums


@dataclass(frozen=True, eq=False)
class UnaryEncoding:
    """OUE_α (PF equations (27)-(28)): Y is a set of input symbols, drawn bit by bit.

    Given x, the set holds x with probability 1/2 and every other symbol with probability ``q = other_weight / 2^63``,
    independently; q = 1/(e^α + 1) up to a unit of 2^-63. With ``k = e^α - 1 = (1 - q)/q - 1``, an exact rational,
    ``P(Y = A|x) = b_A (1 + k [x in A])`` where ``b_A = q^|A| (1 - q)^(a - 1 - |A|) / 2``.

    An input that is outside the alphabet or never occurred is first replaced by a draw from ``marginal``, so that its
    set follows the law of Y and says nothing about whose it is (METHOD section 8).

    Parameters
    ----------
    inputs : Alphabet
        The a symbols that a set can hold.
    other_weight : int
        q·2^63, from 1 (α = 43.7 nats) to 2^62 (α = 0).
    marginal : ndarray of uint64, shape (a,)
        Law of the input, summing to 2^63; zero exactly for symbols that never occurred.

    Raises
    ------
    SpecError
        If the weight or the marginal is out of range.
    """

    inputs: Alphabet
    other_weight: int
    marginal: WeightArray
    own_weight: ClassVar[int] = DENOMINATOR // 2

    def __post_init__(self) -> None:
        if not 1 <= self.other_weight <= self.own_weight:
            raise SpecError(f"the weight of a foreign symbol must be from 1 to 2^62, not {self.other_weight}")
        law = np.array(self.marginal)
        if law.dtype != np.uint64 or law.shape != (len(self.inputs),):
            raise SpecError(f"the marginal must be one unsigned 64-bit integer for each of {len(self.inputs)} inputs")
        # Bounding every entry first keeps the exact sum of the 32-bit halves from wrapping around.
        if (law > np.uint64(DENOMINATOR)).any() or exact_sums(law[:, None]) != [DENOMINATOR]:
            raise SpecError("the marginal of a unary encoding must sum to exactly 2^63")
        law.setflags(write=False)
        object.__setattr__(self, "marginal", law)

    @classmethod
    def of(cls, joint: Joint, other_weight: int) -> UnaryEncoding:
        """The encoding of a joint law's inputs, with their law as marginal."""
        counts = [int(count) for count in joint.counts.sum(axis=0)]
        law = [count * DENOMINATOR // joint.n for count in counts]
        law[counts.index(max(counts))] += DENOMINATOR - sum(law)
        return cls(joint.inputs, other_weight, np.array(law, dtype=np.uint64))

    @classmethod
    def at(cls, joint: Joint, alpha: float) -> UnaryEncoding:
        """The encoding of a joint law's inputs nearest to α nats, at most 43.7.

        Raises
        ------
        SpecError
            If α is not a number >= 0.
        """
        if not alpha >= 0:
            raise SpecError(f"unary encoding needs an alpha >= 0 (nats), not {alpha!r}")
        lie = math.exp(-alpha)
        return cls.of(joint, min(max(1, round(DENOMINATOR * (lie / (1 + lie)))), cls.own_weight))

    @property
    def excess(self) -> Fraction:
        """k = e^α - 1, exactly."""
        return Fraction(DENOMINATOR - 2 * self.other_weight, self.other_weight)

    @property
    def alpha(self) -> float:
        """α in nats: ln((1 - q)/q), within a few ulps."""
        return math.log1p((DENOMINATOR - 2 * self.other_weight) / self.other_weight)

    def require(self, joint: Joint) -> None:
        """That a joint law is over these inputs, and every symbol that occurs in it is encoded as itself.

        Raises
        ------
        DataError
            If it is not.
        """
        if joint.inputs != self.inputs:
            raise DataError(
                f"the encoding is over {len(self.inputs)} symbols of {', '.join(self.inputs.columns)} and the joint "
                f"law over {len(joint.inputs)} of {', '.join(joint.inputs.columns)}; "
                "make the encoding for this joint law"
            )
        strange = np.flatnonzero(joint.counts.any(axis=0) & (self.marginal == 0))
        if len(strange):
            raise DataError(
                f"{self.inputs.labels[strange[0]]!r} occurs in the joint law but not in the one the encoding was made "
                "for, where it is encoded as unknown; make the encoding for this joint law"
            )
