"""Several guarantees at once: all of them hold, and where each is linear in the rows of a channel their cones stack."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from funnel.errors import SpecError
from funnel.guarantees.base import ConeGuarantee, Guarantee, Level, OutputGuarantee
from funnel.guarantees.by_event import HalfSpaces, most_broken
from funnel.guarantees.exact import scaled_up
from funnel.guarantees.over_distributions import BROKEN, SetGuarantee
from funnel.joint import FloatArray, Joint
from funnel.protocol import WeightArray

SEPARATOR = " & "


@dataclass(frozen=True)
class Several(Guarantee):
    """Guarantees that hold together: for observers who know more, or in the population besides the sample.

    Its budget is the largest of its parts, and its level a scale: the smallest value of that budget for which all hold
    while they keep their proportion. Written with ``&`` between its parts, it is read back by `parse_guarantee`.

    Parameters
    ----------
    parts : sequence of Guarantee
        At least two, no two equal; parts that are several themselves are taken apart.

    Raises
    ------
    SpecError
        If there are fewer than two, two are equal, or some but not all ask for perfect privacy.

    Notes
    -----
    Where all parts are cones it is one (their conditions stack); where all are cones or over sets of distributions it
    is over these. Then it has an optimum. `Several` makes an object of the kind that its parts allow.

    Examples
    --------
    >>> import funnel
    >>> both = funnel.Several([funnel.LIP(0.5), funnel.LDP(0.8)])
    >>> str(both), both.budget, funnel.parse_guarantee("lip:0.5 & ldp:0.8") == both
    ('lip:0.5 & ldp:0.8', 0.8, True)
    >>> joint = funnel.Joint.from_counts([[30, 10], [10, 50]])
    >>> protocol = funnel.optimal(joint, both).protocol
    >>> both.holds(joint, protocol), funnel.LIP(0.5).holds(joint, protocol)
    (True, True)
    """

    name: ClassVar[str] = "several"
    title: ClassVar[str] = "several guarantees at once"
    example: ClassVar[str] = "lip:1.0 & ldp:1.5"

    parts: Sequence[Guarantee]

    def __new__(cls, parts: Iterable[Guarantee] = ()) -> Self:
        """Of the kind that the parts allow."""
        parts = tuple(parts)
        kind: type[Several] = cls
        if cls is Several and parts:
            kind = _kind(_apart(parts))
        return object.__new__(kind)  # type: ignore[return-value]

    def __post_init__(self) -> None:
        parts = _apart(self.parts)
        if len(parts) < 2:
            raise SpecError("several guarantees at once are at least two; give one alone as itself")
        for place, part in enumerate(parts):
            if part in parts[:place]:
                raise SpecError(f"the guarantee {part} is given twice; leave one of them out")
        perfect = [part for part in parts if part.is_perfect]
        if perfect and len(perfect) < len(parts):
            raise SpecError(
                f"{perfect[0]} asks for independence and cannot be scaled with {SEPARATOR.join(map(str, parts))}; ask "
                "for it alone, or give each part budgets above zero"
            )
        object.__setattr__(self, "parts", parts)

    @property
    def budget(self) -> float:
        """The largest of the parts."""
        return max(part.budget for part in self.parts)

    def with_budget(self, budget: float) -> Self:
        """All parts in their proportion, the largest with this budget."""
        largest = self.budget
        if budget == largest:
            return self

        def scaled(part: Guarantee) -> Guarantee:
            return part.with_budget(budget if part.budget == largest else part.budget / largest * budget)

        return replace(self, parts=tuple(map(scaled, self.parts)))

    def tightened(self, margin: float) -> Self:
        """Each part by the margin."""
        return replace(self, parts=tuple(part.tightened(margin) for part in self.parts))

    def level_for(self, joint: Joint, weights: WeightArray) -> Level:
        """The largest level of a part, as a share of its budget; the witness is that of this part."""
        return max((self._of(part, part.level_for(joint, weights)) for part in self.parts), key=float)

    def _of(self, part: Guarantee, level: Level) -> Level:
        return replace(level, value=scaled_up(level.value, part.budget, self.budget))

    def holds_for(self, joint: Joint, weights: WeightArray) -> bool:
        """Whether all parts hold, each decided exactly."""
        return all(part.holds_for(joint, weights) for part in self.parts)

    @property
    def is_perfect(self) -> bool:
        """Whether all parts ask for independence."""
        return all(part.is_perfect for part in self.parts)

    @property
    def precision(self) -> float:
        """The coarsest of the parts."""
        return max(part.precision for part in self.parts)

    @property
    def arithmetic(self) -> str:
        """How each part is proven."""
        return " and ".join(dict.fromkeys(part.arithmetic for part in self.parts))

    @property
    def covers_noise(self) -> bool:
        """Whether all parts do."""
        return all(part.covers_noise for part in self.parts)

    @property
    def covers_parts(self) -> bool:
        """Whether all parts do."""
        return all(part.covers_parts for part in self.parts)

    @property
    def significance(self) -> float | None:
        """The sum of those of the parts: by the union bound all hold together with what is left; None without any."""
        found = [part.significance for part in self.parts if part.significance is not None]
        return math.fsum(found) if found else None

    @property
    def meaning(self) -> str:
        """The sentences of all parts."""
        return " ".join(part.meaning for part in self.parts)

    @property
    def beyond(self) -> str:  # type: ignore[override]
        """The sentences of all parts, each once."""
        return " ".join(dict.fromkeys(part.beyond for part in self.parts))

    @property
    def lift_limits(self) -> tuple[float, float] | None:
        """The tightest of the parts that limit lifts."""
        found = [limits for part in self.parts if (limits := part.lift_limits) is not None]
        return (max(low for low, _ in found), min(high for _, high in found)) if found else None

    @property
    def ratio_limit(self) -> float | None:
        """The tightest of the parts that compare secrets."""
        return min((limit for part in self.parts if (limit := part.ratio_limit) is not None), default=None)

    def posterior_limits(self, prior: FloatArray) -> tuple[FloatArray, FloatArray] | None:
        """The tightest of the parts that limit posteriors one by one."""
        found = [limits for part in self.parts if (limits := part.posterior_limits(prior)) is not None]
        if not found:
            return None
        low, high = zip(*found, strict=True)
        return np.max(low, axis=0), np.min(high, axis=0)

    @property
    def settings(self) -> dict[str, float | str]:
        """Its parts as one text."""
        return {"parts": str(self)}

    def __str__(self) -> str:
        return SEPARATOR.join(map(str, self.parts))

    def __repr__(self) -> str:
        return f"Several({list(self.parts)!r})"


class SeveralOutputs(Several, OutputGuarantee):
    """Several that judge every output alone."""

    def output_levels(self, joint: Joint, rows: FloatArray) -> FloatArray:
        """The largest of the parts, as shares of their budgets."""
        levels = [_outputs(part).output_levels(joint, rows) for part in self.parts]
        shares = [self.budget / part.budget if part.budget else 1.0 for part in self.parts]
        return np.asarray(np.max([level * share for level, share in zip(levels, shares, strict=True)], axis=0))


class SeveralCones(SeveralOutputs, ConeGuarantee):
    """Several cones: their conditions stack."""

    def cone(self, joint: Joint) -> FloatArray:
        """The rows of all parts."""
        return np.vstack([part.cone(joint) for part in self.parts if isinstance(part, ConeGuarantee)])

    def over_set(self, joint: Joint) -> SetGuarantee | None:
        """Over every table within the bounds, where a part is."""
        return _over(self.parts, joint)


class SeveralSets(SeveralOutputs, SetGuarantee):
    """Several of which each is a cone or over a set of distributions, so that all together are over half-spaces."""

    def over_set(self, joint: Joint) -> SetGuarantee | None:
        """Its parts as they are for this joint distribution."""
        return _over(self.parts, joint)

    def starting_cone(self, joint: Joint) -> FloatArray:
        """All of each cone, and what each other part starts with."""
        return np.vstack([_start(part, joint) for part in self.parts])

    def half_spaces(self, joint: Joint, rows: FloatArray, most: int = 4) -> HalfSpaces:
        """The most broken ones of all parts."""
        return most_broken([_broken(part, joint, rows, most) for part in self.parts], rows, most)


def _start(part: Guarantee, joint: Joint) -> FloatArray:
    over = part.over_set(joint)
    if over is not None:
        return over.starting_cone(joint)
    assert isinstance(part, ConeGuarantee)
    return part.cone(joint)


def _broken(part: Guarantee, joint: Joint, rows: FloatArray, most: int) -> HalfSpaces:
    """Half-spaces of a part that rows break: of a cone its own, as differences of two probabilities each."""
    over = part.over_set(joint)
    if over is not None:
        return over.half_spaces(joint, rows, most)
    assert isinstance(part, ConeGuarantee)
    cone = part.cone(joint)
    above, below = rows @ np.maximum(cone, 0.0).T, rows @ np.maximum(-cone, 0.0).T
    with np.errstate(divide="ignore", invalid="ignore"):
        by = np.where(above > 0, above / below, 0.0) - 1
    order = np.argsort(-by, axis=1, kind="stable")[:, :most]
    of, place = np.repeat(np.arange(len(rows)), order.shape[1]), order.ravel()
    kept = by[of, place] > BROKEN
    return cone[place[kept]], of[kept], by[of, place][kept]


def _over(parts: Sequence[Guarantee], joint: Joint) -> SetGuarantee | None:
    over = [part.over_set(joint) for part in parts]
    if all(one is None for one in over):
        return None
    together = Several([part if one is None else one for part, one in zip(parts, over, strict=True)])
    return together if isinstance(together, SetGuarantee) else None


def _kind(parts: Sequence[Guarantee]) -> type[Several]:
    if all(isinstance(part, ConeGuarantee) for part in parts):
        return SeveralCones
    if all(isinstance(part, ConeGuarantee) or (isinstance(part, SetGuarantee) and part.over_boxes) for part in parts):
        return SeveralSets
    return SeveralOutputs if all(isinstance(part, OutputGuarantee) for part in parts) else Several


def _apart(parts: Iterable[Guarantee]) -> tuple[Guarantee, ...]:
    return tuple(one for part in parts for one in parts_of(part))


def parts_of(guarantee: Guarantee) -> tuple[Guarantee, ...]:
    """The guarantees that hold together; one alone is its own part.

    Raises
    ------
    SpecError
        If it is no guarantee.
    """
    if not isinstance(guarantee, Guarantee):
        raise SpecError(f"a guarantee is expected, such as funnel.LIP(1.0), not {guarantee!r}")
    return tuple(guarantee.parts) if isinstance(guarantee, Several) else (guarantee,)


def as_guarantee(given: Guarantee | Sequence[Guarantee]) -> Guarantee:
    """A guarantee, or a list or tuple of several that all hold, as one.

    Raises
    ------
    SpecError
        If there is none, or `Several` refuses them.

    Examples
    --------
    >>> import funnel
    >>> from funnel.guarantees import as_guarantee
    >>> str(as_guarantee([funnel.LIP(1.0), funnel.LDP(1.5)])), str(as_guarantee([funnel.LIP(1.0)]))
    ('lip:1.0 & ldp:1.5', 'lip:1.0')
    """
    if isinstance(given, Guarantee):
        return given
    if not isinstance(given, (list, tuple)):
        raise SpecError(f"a guarantee or a list of them is expected, such as funnel.LIP(1.0), not {given!r}")
    if not given:
        raise SpecError("a list of guarantees needs at least one; write for instance [funnel.LIP(1.0)]")
    return as_guarantee(given[0]) if len(given) == 1 else Several(given)


def _outputs(part: Guarantee) -> OutputGuarantee:
    assert isinstance(part, OutputGuarantee)
    return part
