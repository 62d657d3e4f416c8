"""What a mechanism is: a way to make a protocol for a joint law that meets a guarantee."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import isqrt
from typing import ClassVar

from funnel.alphabet import Alphabet
from funnel.errors import InfeasibleGuarantee, SpecError
from funnel.guarantees.base import Guarantee
from funnel.joint import FloatArray, Joint
from funnel.mechanisms.false_position import LARGEST_PARAMETER, parameter_at
from funnel.naming import name_outputs
from funnel.progress import Progress
from funnel.protocol import Protocol, WeightArray
from funnel.rounding import integer_weights, marginal_weights, silence_unseen

_STEPS = 60
_LARGEST_CHANNEL = 2**26


@dataclass(frozen=True, eq=False)
class Fitted:
    """A protocol and, where an optimiser made it, how far the optimum can be.

    Attributes
    ----------
    protocol : Protocol
    bound : float or None
        No protocol of the mechanism's kind has a larger I(X;Y), in nats.
    finished : bool
        False if the time limit or an interrupt ended the search.
    """

    protocol: Protocol
    bound: float | None = None
    finished: bool = True


class Mechanism(ABC):
    """A family of protocols.

    Attributes
    ----------
    name : str
        Name in specs and on the command line.
    summary : str
        One line for people who choose.
    reads_secret : bool
        Whether its protocols read the secret as well as the input.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    reads_secret: ClassVar[bool] = False

    @abstractmethod
    def fit(self, joint: Joint, guarantee: Guarantee, time_limit: float | None = None) -> Protocol:
        """The protocol of this family with the highest utility that meets the guarantee exactly.

        Raises
        ------
        InfeasibleGuarantee
            If no protocol of the family meets it.
        SolverError
            If a computation fails or does not finish in ``time_limit`` seconds.
        """

    def fitted(
        self, joint: Joint, guarantee: Guarantee, time_limit: float | None = None, progress: Progress | None = None
    ) -> Fitted:
        """`fit`, with what an optimiser can say about its result; progress: told of the steps."""
        return Fitted(self.fit(joint, guarantee, time_limit))

    def protocol(self, joint: Joint, guarantee: Guarantee, weights: WeightArray, inputs: Alphabet) -> Protocol:
        """Wrap verified weights (b, len(inputs)) with names; ``joint`` is over what the protocol publishes."""
        read = joint.read_by(inputs.columns)
        # The symbol of an input that never occurs may have lost its only source to the marginal.
        weights = weights[weights.any(axis=1)]
        return Protocol(
            weights,
            marginal_weights(read, weights),
            inputs,
            name_outputs(weights, inputs, joint.inputs.columns),
            self.name,
            str(guarantee),
        )

    def renamed(self, protocol: Protocol) -> Protocol:
        """The same protocol as one of this mechanism."""
        return replace(protocol, mechanism=self.name)


def check_size(joint: Joint) -> None:
    """Refuse alphabets whose channel fits no memory.

    Raises
    ------
    SpecError
        If a channel from the input to itself has more than 2^26 entries.
    """
    a = len(joint.inputs)
    if a * a > _LARGEST_CHANNEL:
        raise SpecError(
            f"{a:,} combinations of {', '.join(joint.inputs.columns)} occur, and a protocol would be a table of "
            f"{a:,} × {a:,} probabilities; recode to at most {isqrt(_LARGEST_CHANNEL):,} of them, for instance with "
            "minimum_count, or publish fewer columns"
        )


def calibrate(
    family: Callable[[float], FloatArray],
    joint: Joint,
    guarantee: Guarantee,
    precision: float = 0.0,
    start: float | None = None,
) -> tuple[float, WeightArray]:
    """The strongest parameter of a one-parameter family for which the guarantee holds exactly (METHOD section 4).

    Bisection on the exact decision for the rounded integer weights, so the answer needs no repair; false position on
    levels that are themselves found by a search, with the decision at the end.

    Parameters
    ----------
    family : callable
        Parameter α >= 0 (nats) to a channel (b, a) whose levels increase with α.
    joint : Joint
        The joint law over what the channel reads.
    guarantee : Guarantee
    precision : float
        Relative precision of α that is enough.
    start : float, optional
        A first guess of α.

    Returns
    -------
    alpha : float
        Within a relative 2^-60 of the largest feasible parameter, at most 64.
    weights : ndarray of uint64, shape (b, a)
        For which ``guarantee.holds_for`` is true.

    Raises
    ------
    InfeasibleGuarantee
        If even α = 0 does not meet it.
    """
    return calibrate_weights(lambda alpha: integer_weights(family(alpha)), joint, guarantee, precision, start)


def calibrate_weights(
    family: Callable[[float], WeightArray],
    joint: Joint,
    guarantee: Guarantee,
    precision: float = 0.0,
    start: float | None = None,
) -> tuple[float, WeightArray]:
    """`calibrate` for a family that rounds its channels to integer weights (b, a) itself."""

    def weights_at(alpha: float) -> WeightArray | None:
        weights = silence_unseen(joint, family(alpha))
        return weights if guarantee.holds_for(joint, weights) else None

    best = weights_at(0.0)
    if best is None:
        weakest = silence_unseen(joint, family(0.0))
        level = guarantee.level_for(joint, weakest).value
        raise InfeasibleGuarantee(
            f"even the weakest protocol of this kind has level {level:.3g}, above {guarantee}", level
        )
    if guarantee.precision > 0:
        # Levels that are bounds found by a search cost as much as decisions, and say how far to go.
        close = max(guarantee.precision, precision)
        alpha = parameter_at(
            lambda alpha: guarantee.level_for(joint, silence_unseen(joint, family(alpha))).value,
            guarantee.budget,
            close,
            guarantee.budget if start is None else start,
        )
        # A level equal to the budget need not be provably within it.
        for _ in range(_STEPS):
            if (found := weights_at(alpha)) is not None:
                return alpha, found
            alpha *= 1 - 4 * close
        return 0.0, best
    low, high = 0.0, max(guarantee.budget, 2.0**-20)
    while (found := weights_at(high)) is not None:
        low, best = high, found
        if high == LARGEST_PARAMETER:
            return low, best
        high = min(2 * high, LARGEST_PARAMETER)
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if not low < middle < high or high - low <= max(guarantee.precision, precision) * high:
            break
        if (found := weights_at(middle)) is not None:
            low, best = middle, found
        else:
            high = middle
    return low, best
