"""Utilities: what a release is worth, as the share of all there is to tell that an output tells."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np

from funnel.alphabet import Alphabet
from funnel.errors import SpecError
from funnel.estimation.estimation_utility import utility_of_estimates
from funnel.joint import FloatArray, Joint
from funnel.measures.distributions import input_output_distribution
from funnel.measures.information import mutual_information
from funnel.protocol import Protocol

#: The names of the utilities that `utility_of` knows.
NAMES = ("information", "variance", "estimation")


class Utility(ABC):
    """What a protocol is chosen by: a number for every protocol, and the most that any could reach.

    Attributes
    ----------
    name : str
        As in a spec.
    kept : str
        What the share is called: what of X the output keeps or explains.
    unit : str
        The unit of `told`, as it is written behind a number.
    keep, keeps : str
        What a protocol does with it.
    everything : str
        What `told` is a share of.

    Examples
    --------
    >>> import funnel
    >>> issubclass(funnel.measures.Variance, funnel.measures.Utility)
    True
    """

    name: ClassVar[Literal["information", "variance", "estimation"]]
    kept: ClassVar[str]
    unit: ClassVar[str]
    keep: ClassVar[str]
    keeps: ClassVar[str]
    everything: ClassVar[str]

    @property
    def content(self) -> list[object]:
        """All that it depends on beside the joint distribution, as JSON values; empty for information."""
        return []

    @abstractmethod
    def told(self, joint: Joint, protocol: Protocol) -> float:
        """The utility of a protocol, never below zero."""

    @abstractmethod
    def whole(self, joint: Joint) -> float:
        """The utility of publishing X as it is: the most there is."""

    def share(self, joint: Joint, protocol: Protocol) -> float:
        """`told` of `whole`, between 0 and 1; 0 where there is nothing to tell."""
        whole = self.whole(joint)
        return min(1.0, self.told(joint, protocol) / whole) if whole > 0 else 0.0


@dataclass(frozen=True)
class Information(Utility):
    """I(X;Y) in nats, of H(X).

    Examples
    --------
    >>> import funnel
    >>> joint = funnel.Joint.from_counts([[30, 10], [10, 50]])
    >>> best = funnel.optimal(joint, funnel.LIP(0.5))
    >>> funnel.measures.Information().told(joint, best.protocol) == best.utility
    True
    """

    name: ClassVar[Literal["information", "variance", "estimation"]] = "information"
    kept: ClassVar[str] = "information kept"
    unit: ClassVar[str] = "nats"
    keep: ClassVar[str] = "keep"
    keeps: ClassVar[str] = "keeps"
    everything: ClassVar[str] = "H(X)"

    def told(self, joint: Joint, protocol: Protocol) -> float:
        """I(X;Y), nats."""
        return mutual_information(joint, protocol)

    def whole(self, joint: Joint) -> float:
        """H(X), nats."""
        return joint.entropy


INFORMATION = Information()


@dataclass(frozen=True)
class Variance(Utility):
    """Var E[N|Y] / Var N for a number N of every input: the share of its variance that the output explains.

    This is the correlation ratio η² of N and Y, the R² of the best estimate of the number from what is released.

    Parameters
    ----------
    numbers : mapping of symbol to float, or None
        The number of every value of X, by its text (or tuple of texts); any unit. None for a value that has none, such
        as a missing one: it counts as the mean of those that have one, about which it says nothing.

    Examples
    --------
    >>> import funnel
    >>> joint = funnel.Joint.from_counts([[30, 10, 5], [10, 50, 20]], inputs=["1", "2", "9"])
    >>> best = funnel.optimal(joint, funnel.LIP(0.5), utility=funnel.measures.Variance({"1": 1, "2": 2, "9": 9}))
    >>> 0.3 < best.utility <= best.bound <= 1
    True
    """

    name: ClassVar[Literal["information", "variance", "estimation"]] = "variance"
    kept: ClassVar[str] = "variance explained"
    unit: ClassVar[str] = "of the variance"
    keep: ClassVar[str] = "explain"
    keeps: ClassVar[str] = "explains"
    everything: ClassVar[str] = "the variance"

    numbers: Mapping[str, float | None] | Mapping[tuple[str, ...], float | None] = field(hash=False)

    def __post_init__(self) -> None:
        by_symbol = {(key,) if isinstance(key, str) else tuple(key): number for key, number in self.numbers.items()}
        known = [number for number in by_symbol.values() if number is not None]
        if not known or not np.isfinite(known).all():
            raise SpecError("utility by variance needs a finite number for every published value")
        object.__setattr__(self, "numbers", by_symbol)

    @property
    def content(self) -> list[object]:
        """Its name, and every value with its number."""
        return [self.name, *([*key, number] for key, number in self.numbers.items())]

    @classmethod
    def of(cls, values: Alphabet | Iterable[str]) -> Variance:
        """Of values that are numbers themselves, written with a decimal point.

        Raises
        ------
        SpecError
            If one is none.
        """
        if isinstance(values, Alphabet) and len(values.columns) > 1:
            raise SpecError(
                f"utility by variance is for one column of numbers, not for {' and '.join(values.columns)} together"
            )
        return cls({value: _number(value) for value in values})

    def of_inputs(self, inputs: Alphabet, distribution: FloatArray) -> FloatArray:
        """The numbers of an alphabet's symbols, shape (a,), those without one by the distribution (a,) of all.

        Raises
        ------
        SpecError
            If a symbol has none.
        """
        numbers: Mapping[Any, float | None] = self.numbers
        lacking = [symbol for symbol in inputs.symbols if symbol not in numbers]
        if lacking:
            raise SpecError(
                f"utility by variance needs a number for every published value, and {inputs.labels[0]!r} has none"
                if len(lacking) == len(inputs)
                else f"utility by variance needs a number for every published value; {len(lacking)} have none"
            )
        found = np.array([numbers[symbol] for symbol in inputs.symbols], dtype=np.float64)
        known = np.isfinite(found)
        weights = distribution[known] if distribution[known].any() else np.ones(int(known.sum()))
        # From one of them: the mean of numbers that are all one is exactly that.
        first = found[known][0] if known.any() else 0.0
        found[~known] = first + (float((found[known] - first) @ weights / weights.sum()) if known.any() else 0.0)
        return found

    def told(self, joint: Joint, protocol: Protocol) -> float:
        """Var E[N|Y] / Var N; 0 where N does not vary."""
        if self.whole(joint) == 0:
            return 0.0
        numbers = self.of_inputs(joint.inputs, joint.p_input)
        centred = numbers - float(numbers @ joint.p_input)
        spread = float(joint.p_input @ centred**2)
        distribution = input_output_distribution(joint, protocol)
        q = distribution.sum(axis=0)
        sums = centred @ distribution
        return float(np.clip((sums[q > 0] ** 2 / q[q > 0]).sum() / spread, 0.0, 1.0))

    def whole(self, joint: Joint) -> float:
        """1, or 0 where N does not vary."""
        numbers = self.of_inputs(joint.inputs, joint.p_input)[joint.p_input > 0]
        return 1.0 if float(np.ptp(numbers)) > 0 else 0.0


@dataclass(frozen=True)
class Estimation(Utility):
    """What the records are worth for estimates of every column and every two crossed, as a share of the records.

    The variances that such estimates have of records published as they are, over those that they have of the protocol's
    answers: with a worth of 0.4, a million answers tell as much as 400,000 records would. 0 where some cell cannot be
    told at all.

    Examples
    --------
    >>> import funnel
    >>> joint = funnel.Joint.from_counts([[30, 10, 5], [10, 50, 20]])
    >>> best = funnel.optimal(joint, funnel.LIP(0.5), utility="estimation")
    >>> informative = funnel.optimal(joint, funnel.LIP(0.5)).protocol
    >>> funnel.measures.Estimation().told(joint, informative) <= best.utility + 1e-3
    True
    """

    name: ClassVar[Literal["information", "variance", "estimation"]] = "estimation"
    kept: ClassVar[str] = "worth for estimates"
    unit: ClassVar[str] = "of the records"
    keep: ClassVar[str] = "be worth"
    keeps: ClassVar[str] = "is worth"
    everything: ClassVar[str] = "the records"

    @property
    def content(self) -> list[object]:
        """Its name: it depends on nothing else."""
        return [self.name]

    def told(self, joint: Joint, protocol: Protocol) -> float:
        """`funnel.estimation.estimation_utility.utility_of_estimates`.

        Raises
        ------
        SpecError
            If there are too many values to compute it.
        """
        worth = utility_of_estimates(joint, protocol)
        if worth is None:
            raise SpecError(
                f"utility by estimation cannot be computed for {len(joint.inputs):,} values; publish fewer, or take "
                "utility out"
            )
        return worth

    def whole(self, joint: Joint) -> float:
        """1; of a single value too, whose share is known."""
        return 1.0


@dataclass(frozen=True)
class Explained:
    """How much a release explains of numbers.

    Attributes
    ----------
    share : float
        Var E[N|Y] / Var N.
    numbers : tuple of float or None
        The number of every input, in order; None for those that have none.
    """

    share: float
    numbers: tuple[float | None, ...]

    @classmethod
    def of(cls, utility: Utility, joint: Joint, protocol: Protocol) -> Explained | None:
        """By a protocol, where that is the utility."""
        if not isinstance(utility, Variance):
            return None
        numbers: Mapping[Any, float | None] = utility.numbers
        return cls(utility.told(joint, protocol), tuple(numbers[symbol] for symbol in joint.inputs.symbols))


def utility_of(utility: str | Utility, inputs: Alphabet) -> Utility:
    """A utility by its name; "variance" of an alphabet whose values are numbers.

    Raises
    ------
    SpecError
        If there is none of that name, or a value is no number.
    """
    if isinstance(utility, Utility):
        return utility
    if utility == "information":
        return INFORMATION
    if utility == "variance":
        return Variance.of(inputs)
    if utility == "estimation":
        return Estimation()
    raise SpecError(f"unknown utility {utility!r}; choose one of {', '.join(NAMES)}")


def _number(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = np.nan
    if not np.isfinite(number):
        raise SpecError(
            f"utility by variance needs a number for every published value, and {text!r} is none; give "
            "funnel.measures.Variance({value: number, ...})"
        )
    return number
