"""What a mechanism is: a way to make a protocol for a joint distribution that meets a guarantee."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from funnel.alphabet import Alphabet
from funnel.certificate import Weighting
from funnel.errors import InfeasibleGuarantee
from funnel.guarantees.base import Guarantee, OutputGuarantee
from funnel.joint import FloatArray, Joint
from funnel.measures.utilities import INFORMATION, Utility
from funnel.mechanisms.false_position import LARGEST_PARAMETER, parameter_at
from funnel.mechanisms.memory import table_memory
from funnel.naming import name_outputs
from funnel.progress import Progress, quiet
from funnel.protocol import DENOMINATOR, Protocol, WeightArray
from funnel.rounding import integer_weights, marginal_weights, silence_unseen
from funnel.solver.budget import Budget
from funnel.solver.work import decision_work, require_decision

_STEPS = 60
# How far from the parameter that levels in floats find two are decided, as a share of it: far more than their error.
_AROUND = 2.0**-43


@dataclass(frozen=True, eq=False)
class Fitted:
    """A protocol and, where an optimiser made it, how far the optimum can be.

    Attributes
    ----------
    protocol : Protocol
    bound : float or None
        No protocol that reads the same and meets the guarantee has a larger I(X;Y), in nats.
    finished : bool
        False if the budget or an interrupt ended the search: the protocol holds, but a longer search may find a better.
    unchanged_gap : float or None
        No invariant protocol that meets the guarantee leaves a larger share of records unchanged, as they are weighted,
        by more than this.
    weights : "root", "share", "uniform" or None
        How they are weighted.
    """

    protocol: Protocol
    bound: float | None = None
    finished: bool = True
    unchanged_gap: float | None = None
    weights: Weighting | None = None


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
    optimises : bool
        Whether it solves optimisation problems: then it takes long, and what does not is fitted first.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    reads_secret: ClassVar[bool] = False
    optimises: ClassVar[bool] = False

    @abstractmethod
    def fitted(self, joint: Joint, guarantee: Guarantee, budget: Budget, progress: Progress = quiet) -> Fitted:
        """The protocol of this family with the highest utility that meets the guarantee exactly.

        Where the budget ends before the search does, the best protocol found so far, which meets the guarantee too.
        The same input and budget give the same protocol, however busy the machine is.

        Parameters
        ----------
        joint : Joint
            Counts of (S, X), shape (c, a).
        guarantee : Guarantee
        budget : Budget
        progress : callable
            Told how far an optimum has come.

        Raises
        ------
        SpecError
            If the family is not made for this guarantee or joint distribution; the message names a mechanism that is.
        InfeasibleGuarantee
            If no protocol of the family meets the guarantee.
        SolverError
            If a computation fails, or the budget ends before there is any protocol.
        """

    def fitted_to(
        self, joint: Joint, guarantee: Guarantee, utility: Utility, budget: Budget, progress: Progress = quiet
    ) -> Fitted:
        """`fitted` where another utility than information is asked for; by default the same, with no bound on that."""
        found = self.fitted(joint, guarantee, budget, progress)
        return found if utility == INFORMATION else replace(found, bound=None)

    def fit(self, joint: Joint, guarantee: Guarantee, time_limit: float | Budget | None = None) -> Protocol:
        """The protocol of `fitted`; time_limit in seconds, as work that is counted, or a budget."""
        return self.fitted(joint, guarantee, Budget.of(time_limit)).protocol

    def memory(self, joint: Joint, guarantee: Guarantee) -> float:
        """Bytes that fitting takes at most, and the protocol as a document after that; known before any table is made.

        By default what a table of the input alphabet by itself takes.
        """
        return table_memory(len(joint.inputs), len(joint.inputs))

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
        return protocol.named(mechanism=self.name)


@dataclass(frozen=True, eq=False)
class Calibration:
    """The strongest channel found of a one-parameter family.

    Attributes
    ----------
    alpha : float
        Its parameter, nats.
    weights : ndarray of uint64, shape (b, a)
        For which ``guarantee.holds_for`` is true.
    finished : bool
        False if the budget ended the search before the parameter was as large as it can be.
    """

    alpha: float
    weights: WeightArray
    finished: bool


def calibrate(
    family: Callable[[float], FloatArray],
    joint: Joint,
    guarantee: Guarantee,
    precision: float = 0.0,
    start: float | None = None,
) -> tuple[float, WeightArray]:
    """The strongest parameter of a one-parameter family for which the guarantee holds exactly (METHOD section 4).

    Parameters
    ----------
    family : callable
        Parameter α >= 0 (nats) to a channel (b, a) whose levels increase with α.
    joint : Joint
        The joint distribution over what the channel reads.
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
    budget = Budget.of(None)
    found = strongest(lambda alpha: integer_weights(family(alpha)), joint, guarantee, budget, precision, start)
    return found.alpha, found.weights


def strongest(
    family: Callable[[float], WeightArray],
    joint: Joint,
    guarantee: Guarantee,
    budget: Budget,
    precision: float = 0.0,
    start: float | None = None,
) -> Calibration:
    """`calibrate` for a family that makes integer weights (b, a) itself, within a budget.

    Bisection on the exact decision for the rounded integer weights, so the answer needs no repair; false position on
    levels that are themselves found by a search, with the decision at the end. Whatever ends it, the weights passed the
    decision.

    Parameters
    ----------
    family : callable
        Parameter α >= 0 (nats) to integer weights (b, a) whose levels increase with α.
    joint : Joint
    guarantee : Guarantee
    budget : Budget
        One parameter is decided in any case, unless that alone would take far longer.
    precision : float
        Relative precision of α that is enough.
    start : float, optional
        A first guess of α.

    Raises
    ------
    InfeasibleGuarantee
        If even α = 0 does not meet the guarantee.
    SpecError
        If a single decision would take longer than the budget and a second.
    """
    search = _Calibrating(family, joint, guarantee, budget)
    if guarantee.precision > 0:
        return search.by_levels(max(guarantee.precision, precision), guarantee.budget if start is None else start)
    return search.by_decisions(precision)


@dataclass(frozen=True, eq=False)
class _Calibrating:
    """The search for the strongest parameter of a family."""

    family: Callable[[float], WeightArray]
    joint: Joint
    guarantee: Guarantee
    budget: Budget

    def candidate(self, alpha: float) -> WeightArray:
        """The weights of a parameter; charges for deciding them."""
        weights = silence_unseen(self.joint, self.family(alpha))
        self.budget.spend(decision_work(self.joint, self.guarantee, len(weights)))
        return weights

    def weights_at(self, alpha: float) -> WeightArray | None:
        """The same where they meet the guarantee."""
        weights = self.candidate(alpha)
        return weights if self.guarantee.holds_for(self.joint, weights) else None

    def weakest(self) -> WeightArray:
        """The weights of parameter 0.

        Raises
        ------
        InfeasibleGuarantee
            If they do not meet the guarantee.
        """
        weights = self.weights_at(0.0)
        if weights is None:
            level = self.guarantee.level_for(self.joint, silence_unseen(self.joint, self.family(0.0))).value
            raise InfeasibleGuarantee(
                f"even the weakest protocol of this kind has level {level:.3g}, above {self.guarantee}", level
            )
        return weights

    def by_levels(self, close: float, start: float) -> Calibration:
        """By false position on levels: those that a search finds cost as much as decisions and say more."""
        joint, guarantee, budget = self.joint, self.guarantee, self.budget
        outputs = len(self.family(0.0))
        require_decision(joint, guarantee, outputs, budget)
        deciding = decision_work(joint, guarantee, outputs)
        alpha = parameter_at(
            lambda alpha: guarantee.level_for(joint, self.candidate(alpha)).value,
            guarantee.budget,
            close,
            start,
            budget=budget,
            # A level, and what is left for the decision after it.
            work=2 * deciding,
        )
        finished = not budget.expired and not budget.fell_short
        # A level equal to the budget need not be provably within it.
        for step in range(_STEPS):
            if step and not budget.allows(deciding):
                finished = False
                break
            if (found := self.weights_at(alpha)) is not None:
                return Calibration(alpha, found, finished)
            alpha *= 1 - 4 * close
        return Calibration(0.0, self.weakest(), finished)

    def by_decisions(self, precision: float) -> Calibration:
        """By bisection on the exact decision, which is not made where two decisions before settle it."""
        return self.bisected(precision, *self.around()) or self.bisected(precision, 0.0, math.inf) or self.pure_noise()

    def pure_noise(self) -> Calibration:
        """The weakest protocol: where all its outputs tell next to nothing, all must be compared exactly."""
        return Calibration(0.0, self.weakest(), not self.budget.expired)

    def around(self) -> tuple[float, float]:
        """A parameter that meets the guarantee and one that does not, both decided: as close as levels in floats find.

        0 and infinity where they find none.
        """
        joint, guarantee, budget = self.joint, self.guarantee, self.budget
        if not isinstance(guarantee, OutputGuarantee):
            return 0.0, math.inf

        def level_at(alpha: float) -> float:
            weights = self.candidate(alpha)
            return float(guarantee.output_levels(joint, weights[weights.any(axis=1)] / np.float64(DENOMINATOR)).max())

        work = decision_work(joint, guarantee, len(self.family(0.0)))
        near = parameter_at(level_at, guarantee.budget, _AROUND / 4, guarantee.budget, budget=budget, work=work)
        low, high = near * (1 - _AROUND), near * (1 + _AROUND)
        if not 0 < low < high < LARGEST_PARAMETER or not budget.allows(2 * work):
            return 0.0, math.inf
        decided = self.weights_at(low) is not None and self.weights_at(high) is None
        return (low, high) if decided else (0.0, math.inf)

    def bisected(self, precision: float, feasible: float, infeasible: float) -> Calibration | None:
        """By bisection where parameters up to one meet the guarantee, and those from another one on do not.

        Its end is that of a bisection which decides every parameter on its way, since levels increase. None where no
        parameter is found that is decided to meet the guarantee.
        """
        low, high, best = 0.0, math.inf, None
        finished = True
        for _ in range(2 * _STEPS):
            if math.isinf(high):
                middle = min(2 * low if low else max(self.guarantee.budget, 2.0**-20), LARGEST_PARAMETER)
            else:
                middle = (low + high) / 2
            if not low < middle < high or (high - low <= precision * high < math.inf):
                break
            if low and self.budget.expired:
                finished = False
                break
            found = self.weights_at(middle) if feasible < middle < infeasible else None
            if found is not None or middle <= feasible:
                low, best = middle, found
            else:
                high = middle
        if low and best is None:
            best = self.weights_at(low)
        return None if best is None else Calibration(low, best, finished)
