"""What robust guarantees have in common: α, and the set of distributions that the data do not rule out."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import ClassVar, TypeVar

from funnel.errors import SpecError
from funnel.guarantees.base import ConeGuarantee, checked_number
from funnel.guarantees.distribution_box import DistributionBox, distribution_box
from funnel.guarantees.over_distributions import RatioGuarantee, SetGuarantee, Sides
from funnel.guarantees.sided import Sided
from funnel.joint import FloatArray, Joint

N = TypeVar("N", bound=ConeGuarantee)


def _same_budgets(robust: Robust, kind: type[N]) -> N:
    """The guarantee of a kind with the budgets of a robust one."""
    own = [field.name for field in dataclasses.fields(Robust)]
    budgets = (field.name for field in dataclasses.fields(robust) if field.name not in own)
    return kind(**{name: getattr(robust, name) for name in budgets})


@dataclass(frozen=True)
class Robust(SetGuarantee):
    """A guarantee over a set of distributions that holds the true one with probability at least 1 - α.

    Parameters
    ----------
    alpha : float
        Significance of the set, strictly between 0 and 1.
    set : str
        ``"boxes"``: simultaneous Clopper–Pearson limits of p(x|s) and p(s), valid for every number of records
        (`funnel.guarantees.distribution_box`). Where the joint distribution has bounds they are widened by these, and
        what may go wrong is α + β. ``"chi2"``: the asymptotic F of the RLDP paper, for kinds that have it.

    Attributes
    ----------
    of : type
        The kind of guarantee that it promises under every distribution.

    Raises
    ------
    SpecError
        If a number is out of range or there is no such set.
    """

    alpha: float = 0.05
    set: str = "boxes"
    of: ClassVar[type[ConeGuarantee]]
    sets: ClassVar[tuple[str, ...]] = ("boxes",)

    def __post_init__(self) -> None:
        super().__post_init__()  # type: ignore[misc]
        checked_number(self, "alpha", unit="")
        if not 0 < self.alpha < 1:
            raise SpecError(f"{self.name} needs a significance alpha strictly between 0 and 1, not {self.alpha!r}")
        if self.set not in self.sets:
            known = " or ".join(repr(one) for one in self.sets)
            hint = "; only rldp is made for the χ² set" if self.set == "chi2" else ""
            raise SpecError(f"{self.name} needs the set {known}, not {self.set!r}{hint}")

    @property
    def nominal(self) -> ConeGuarantee:
        """The same for one distribution: what it tends to as the records grow in number."""
        return _same_budgets(self, self.of)

    @property
    def over_boxes(self) -> bool:
        """Whether the set is made of Clopper–Pearson limits."""
        return self.set == "boxes"

    @property
    def covers_noise(self) -> bool:
        """Boxes are widened by the bounds of the counts."""
        return self.over_boxes

    @property
    def significance(self) -> float:
        """α."""
        return self.alpha

    @property
    def under(self) -> str:
        """Under which distributions, in the words of a promise."""
        return (
            "under every distribution of the data that the sample does not rule out at significance "
            f"{self.alpha:g}, not under "
            "the estimated one alone"
        )

    def __str__(self) -> str:
        values = [getattr(self, field.name) for field in dataclasses.fields(self)]
        told = values[:-1] if self.set == "boxes" else values
        return f"{self.name}:{','.join(value if isinstance(value, str) else repr(value) for value in told)}"


class RobustRatio(Robust, RatioGuarantee):
    """A robust guarantee over one box around all records: the nominal promise for every distribution in it."""

    of: ClassVar[type[Sided]]

    @property
    def nominal(self) -> Sided:
        """The same for one distribution, with the same budgets."""
        return _same_budgets(self, self.of)

    @property
    def sides(self) -> Sides:
        """Those of the nominal one."""
        return self.nominal.sides

    @property
    def meaning(self) -> str:
        """The promise of the nominal one, whatever the true frequencies are within what the data allow."""
        return f"{self.nominal.meaning[:-1]}, {self.under}."

    @property
    def lift_limits(self) -> tuple[float, float] | None:
        """Those of the nominal one."""
        return self.nominal.lift_limits

    @property
    def ratio_limit(self) -> float | None:
        """That of the nominal one."""
        return self.nominal.ratio_limit

    def posterior_limits(self, prior: FloatArray) -> tuple[FloatArray, FloatArray] | None:
        """Range of P(s|y) for the estimated prior, which the boxes hold; as for the nominal one."""
        return self.nominal.posterior_limits(prior)

    def distributions(self, joint: Joint) -> DistributionBox:
        """The box around the counts, widened by their noise.

        Raises
        ------
        DataError
            If a secret never occurs.
        """
        return distribution_box(joint, self.alpha)
