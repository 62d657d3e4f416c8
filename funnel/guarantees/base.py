"""What a guarantee is: a cone on the rows of a channel, an exact level with its witness, an exact decision."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from fractions import Fraction
from numbers import Real
from typing import ClassVar

import numpy as np

from funnel.errors import SpecError
from funnel.guarantees.exact import exp_below, log_above
from funnel.joint import FloatArray, Joint
from funnel.protocol import Protocol, WeightArray


@dataclass(frozen=True)
class Witness:
    """The place where a channel leaks most.

    Attributes
    ----------
    output : int
        Index y of the released symbol.
    secret : int
        Index s of the secret value.
    other_secret : int or None
        Index s' of the value it is compared with; None when compared with the average record.
    ratio : Fraction or None
        The exact worst ratio (at least 1); None when it is infinite.
    upward : bool
        True if the output makes the secret likelier, False if it makes it less likely.
    """

    output: int
    secret: int
    other_secret: int | None
    ratio: Fraction | None
    upward: bool


@dataclass(frozen=True)
class Level:
    """The smallest ε (nats) for which a guarantee holds, and where it is attained.

    Attributes
    ----------
    value : float
        Never below the exact level and at most an ulp above it; infinite if some output excludes a secret.
    witness : Witness
    """

    value: float
    witness: Witness

    def __float__(self) -> float:
        return self.value


@dataclass(frozen=True)
class Guarantee(ABC):
    """A bound with one budget ε (nats) on what an output tells about the secret.

    Subclasses state the cone of rows T of a channel that meet it and the exact worst ratio of a channel; level,
    decision and calibration follow.

    Raises
    ------
    SpecError
        If ε is not a finite number >= 0.
    """

    epsilon: float
    name: ClassVar[str] = ""
    title: ClassVar[str] = ""

    def __post_init__(self) -> None:
        given: object = self.epsilon
        try:
            value = math.nan if isinstance(given, bool) or not isinstance(given, Real) else float(given)
        except OverflowError:
            value = math.inf
        if not math.isfinite(value) or value < 0:
            raise SpecError(f"{self.name} needs a finite epsilon >= 0 (nats), not {given!r}")
        object.__setattr__(self, "epsilon", value)

    def __str__(self) -> str:
        return f"{self.name}:{self.epsilon!r}"

    @abstractmethod
    def cone(self, joint: Joint) -> FloatArray:
        """Rows G, shape (m, a), such that a row T >= 0 of a channel meets the guarantee iff G T <= 0.

        Secrets that never occur set no condition.
        """

    def tightened(self, margin: float) -> Guarantee:
        """The same guarantee with a budget smaller by a relative margin."""
        return replace(self, epsilon=self.epsilon * (1 - margin))

    @abstractmethod
    def worst(self, joint: Joint, weights: WeightArray) -> Witness:
        """Exact worst ratio of the channel with these weights (b, a) over the joint law it reads (c, a)."""

    def level(self, joint: Joint, protocol: Protocol) -> Level:
        """The smallest ε (nats) for which this kind of guarantee holds for the protocol, exactly, with its witness.

        Raises
        ------
        DataError
            If the protocol reads other columns than the joint law describes.
        """
        witness = self.worst(*_aligned(joint, protocol))
        return Level(math.inf if witness.ratio is None else log_above(witness.ratio), witness)

    def holds(self, joint: Joint, protocol: Protocol) -> bool:
        """Whether the protocol meets this guarantee: decided in rational arithmetic on its integer weights.

        Raises
        ------
        DataError
            If the protocol reads other columns than the joint law describes.
        """
        return self.holds_for(*_aligned(joint, protocol))

    def holds_for(self, joint: Joint, weights: WeightArray) -> bool:
        """`holds` for bare weights (b, a) over the joint law (c, a) that they read."""
        ratio = self.worst(joint, weights).ratio
        return ratio is not None and ratio <= exp_below(self.epsilon)


@dataclass(frozen=True)
class PosteriorGuarantee(Guarantee):
    """A guarantee on the posterior of the secret alone: P(S|y) must lie in a cone that depends on the prior only."""

    @abstractmethod
    def posterior_cone(self, prior: FloatArray) -> FloatArray:
        """Rows M, shape (m, c), such that an output meets the guarantee iff M P(S|y) <= 0; prior: shape (c,), > 0."""

    def cone(self, joint: Joint) -> FloatArray:
        """The cone on the posterior, seen by a row T of the channel through ``P(y) P(s|y) = Σ_x p(s, x) T_x``."""
        seen = joint.p_secret > 0
        return np.asarray(self.posterior_cone(joint.p_secret[seen]) @ joint.p[seen])


def _aligned(joint: Joint, protocol: Protocol) -> tuple[Joint, WeightArray]:
    read = joint.read_by(protocol.inputs.columns)
    return read, protocol.weights_for(read.inputs)
