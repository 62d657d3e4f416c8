"""Robust bounds for observers who know some columns: SRLIP and attribute protection whatever the data leave open."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

from funnel.guarantees.attribute import Attribute
from funnel.guarantees.by_event import ByEvent, LIPOver, Part, SideChannels
from funnel.guarantees.count_box import count_box
from funnel.guarantees.distribution_box import DistributionBox, check_every_secret, limit_number, limits_of
from funnel.guarantees.exact import capped_exp
from funnel.guarantees.known_columns import known_events
from funnel.guarantees.robust_guarantee import Robust
from funnel.guarantees.srlip import SRLIP
from funnel.joint import Joint
from funnel.wording import at_most

# Joint distributions whose boxes are kept.
_KEPT = 8


@dataclass(frozen=True)
class RSRLIP(Robust, SideChannels, ByEvent):
    """ε-SRLIP under every distribution that the data do not rule out, for each set of columns that observers may know.

    For every set J of published columns and values x_J: LIP among the records with x_J, for every p(x|s, x_J) and
    p(s|x_J) between Clopper–Pearson limits. Given how many records have (s, x_J), those with x among them are binomial,
    and so are those with s given how many have x_J; so each limit misses the truth with at most its own tail, for every
    number of records. All limits of all events share α equally, hence by the union bound all hold together with
    probability at least 1 - α. A secret that no record of an event has is not ruled out there: anything may be true.

    Parameters
    ----------
    epsilon : float
        Bound in nats, >= 0.
    alpha : float
        Significance, strictly between 0 and 1.

    Raises
    ------
    SpecError
        If a number is out of range; when used, if there is only one published column.
    DataError
        When used, if a value of the secret never occurs.

    Examples
    --------
    >>> import funnel
    >>> joint = funnel.Joint.from_counts(
    ...     [[300, 100, 50, 50], [100, 200, 100, 100]],
    ...     inputs=funnel.Alphabet(("age", "sex"), (("young", "f"), ("young", "m"), ("old", "f"), ("old", "m"))),
    ... )
    >>> protocol = funnel.fit("grr", joint, funnel.RSRLIP(0.5, 0.05))
    >>> funnel.RSRLIP(0.5, 0.05).holds(joint, protocol), funnel.SRLIP(0.5).level(joint, protocol).value < 0.5
    (True, True)
    """

    name: ClassVar[str] = "rsrlip"
    of: ClassVar[type[SRLIP]] = SRLIP
    title: ClassVar[str] = "robust side-channel resistant local information privacy"
    example: ClassVar[str] = "rsrlip:1.0,0.05"
    beyond: ClassVar[str] = SRLIP.beyond

    @property
    def bounded(self) -> SideChannels:
        """What it bounds itself."""
        return self

    def parts(self, joint: Joint) -> Iterator[Part]:
        """Every event, with the box around its records.

        Raises
        ------
        DataError
            If a secret never occurs.
        """
        every = self.every_set(joint)
        for event, box in zip(known_events(joint, every), _boxes(joint, every, self.alpha), strict=True):
            yield event, LIPOver(self.epsilon, box)

    @property
    def meaning(self) -> str:
        """The promise of SRLIP, whatever the true frequencies are within what the data allow."""
        return (
            "An observer who knows the frequencies, and any of the published columns of a person, changes the belief "
            f"in any value of the secret by at most a factor {at_most(capped_exp(self.epsilon))} after a published "
            f"record of the person, {self.under}."
        )


@dataclass(frozen=True)
class RAttribute(RSRLIP):
    """ε-attribute protection under every distribution that the data do not rule out (`funnel.Attribute`).

    What depends on frequencies is robust, as for `funnel.RSRLIP`; label LDP needs no estimate.

    Parameters
    ----------
    epsilon : float
        Bound in nats, >= 0.
    alpha : float
        Significance, strictly between 0 and 1.

    Raises
    ------
    SpecError
        If a number is out of range.
    DataError
        When used, if a value of the secret never occurs.

    Examples
    --------
    >>> import funnel
    >>> joint = funnel.Joint.from_counts([[300, 100], [100, 500]]).with_secret()
    >>> protocol = funnel.fit("grr", joint, funnel.RAttribute(1.0, 0.05))
    >>> funnel.RAttribute(1.0, 0.05).holds(joint, protocol), funnel.RAttribute(0.9, 0.05).holds(joint, protocol)
    (True, False)
    """

    name: ClassVar[str] = "rattribute"
    of: ClassVar[type[Attribute]] = Attribute
    title: ClassVar[str] = "robust attribute protection of a published secret"
    example: ClassVar[str] = "rattribute:1.0,0.05"
    beyond: ClassVar[str] = Attribute.beyond
    bounds_labels: ClassVar[bool] = True

    def every_set(self, joint: Joint) -> bool:
        """Proper subsets alone: label LDP covers observers who know all columns."""
        return False

    @property
    def meaning(self) -> str:
        """The promise of attribute protection, the first part for every distribution that the data allow."""
        factor = at_most(capped_exp(self.epsilon))
        return (
            "An observer who knows the frequencies, and some of the other columns of a person, changes the belief in "
            f"any value of the secret by at most a factor {factor} after a published record of the person, "
            f"{self.under}; for an observer who knows all of them the odds between any two values change by at most "
            "this factor, whatever the observer believed before."
        )


@lru_cache(maxsize=_KEPT)
def _boxes(joint: Joint, every: bool, alpha: float) -> tuple[DistributionBox, ...]:
    """The box around the records of each event; all their limits share α."""
    check_every_secret(joint, count_box(joint))
    events = known_events(joint, every)
    tail = Fraction(repr(float(alpha))) / sum(limit_number(event.counts) for event in events)
    return tuple(limits_of(event.counts, tail) for event in events)
