"""Side-channel resistant LIP: the bound holds also for an observer who knows some of the published columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from funnel.guarantees.any_column import AnyColumn
from funnel.guarantees.base import ConeGuarantee, Witness
from funnel.guarantees.by_event import OverKnown, SideChannels
from funnel.guarantees.events import Comparisons, extremes
from funnel.guarantees.exact import capped_exp
from funnel.guarantees.known_columns import Given, known_values
from funnel.guarantees.over_distributions import SetGuarantee
from funnel.guarantees.sided import Counted
from funnel.joint import FloatArray, IntArray, Joint
from funnel.protocol import WeightArray
from funnel.wording import at_most


@dataclass(frozen=True)
class SRLIP(SideChannels, Counted, ConeGuarantee):
    """ε-SRLIP with respect to S for several published columns X = X¹ × … × Xᵐ (PF definition 4, equation (19)).

    ``e^-ε P(y|x_J) <= P(y|s, x_J) <= e^ε P(y|x_J)`` for every output y, every set J of columns (the empty one
    included, which is LIP), all values x_J that occur and all secrets s that occur with them: an observer who knows x_J
    of a record from elsewhere changes their belief in any s by at most a factor e^ε. Both sides are linear in a row of
    the channel, so this is a cone on the full product alphabet.

    For a protocol that reads the secret too, J may be all columns; for one that reads X only, that says nothing.

    Parameters
    ----------
    epsilon : float
        Bound in nats, >= 0; zero is perfect privacy for every such observer.

    Raises
    ------
    SpecError
        If ε is not a finite number >= 0; when used, if there is only one published column.

    Notes
    -----
    2^m sets J: O(2^m c a) conditions at most, of which those that occur count.

    Examples
    --------
    >>> import funnel
    >>> joint = funnel.Joint.from_counts(
    ...     [[30, 10, 5, 5], [10, 20, 10, 10]],
    ...     inputs=funnel.Alphabet(("age", "sex"), (("young", "f"), ("young", "m"), ("old", "f"), ("old", "m"))),
    ... )
    >>> protocol = funnel.fit("grr", joint, funnel.SRLIP(0.4))
    >>> funnel.SRLIP(0.4).holds(joint, protocol), funnel.LIP(0.4).holds(joint, protocol)
    (True, True)
    """

    name: ClassVar[str] = "srlip"
    title: ClassVar[str] = "side-channel resistant local information privacy"
    example: ClassVar[str] = "srlip:1.0"
    covers_parts: ClassVar[bool] = True
    beyond: ClassVar[str] = (
        "The bound starts from the estimated share of each value among all people who have what the observer knows of "
        "the published columns. An observer who knows anything else about a person starts from another belief, "
        "which the "
        "record can change by more."
    )

    def comparisons(self, joint: Joint) -> Comparisons:
        """Every (s, x_J) that occurs against x_J.

        Raises
        ------
        SpecError
            If the joint distribution has one published column.
        """
        return side_channel_comparisons(joint, self.every_set(joint))

    def cone(self, joint: Joint) -> FloatArray:
        """Two rows for every (s, x_J) that occurs, shape (m, a)."""
        compared = self.comparisons(joint)
        given = compared.counts / compared.counts.sum(axis=1, keepdims=True)
        part, whole = given[compared.part], given[compared.whole]
        return np.vstack([part - capped_exp(self.epsilon) * whole, np.exp(-self.epsilon) * whole - part])

    def label_equations(self, joint: Joint) -> IntArray:
        """Rows (m, a) of whole numbers that a row meets besides with 0 where nothing is disclosed: none."""
        return np.zeros((0, len(joint.inputs)), dtype=np.int64)

    def worst(self, joint: Joint, weights: WeightArray) -> Witness:
        """Where P(y|s, x_J) and P(y|x_J) are furthest apart, exactly."""
        compared = self.comparisons(joint)
        up, down = extremes(compared, weights)
        upward = down.ratio is not None and (up.ratio is None or up.ratio >= down.ratio)
        found = up if upward else down
        secret, given = int(compared.secret[found.pair]), compared.given[found.pair]
        return Witness(found.output, secret, None, found.ratio, upward, given)

    def worst_between_parts(self, joint: Joint, weights: WeightArray) -> Witness:
        """For observers who know any columns of a person that they may know, and for those who know none."""
        return AnyColumn.of(joint).worst(weights)

    def over_noise(self) -> SetGuarantee:
        """Event by event."""
        return OverKnown(self)

    @property
    def meaning(self) -> str:
        """The promise of LIP, also to those who know more."""
        return (
            "An observer who knows the frequencies, and any of the published columns of a person, changes the belief "
            f"in any value of the secret by at most a factor {at_most(capped_exp(self.epsilon))} after a published "
            "record of the person."
        )

    def meaning_at_once(self, columns: int, publishes: bool) -> str:
        """The promise where records are exchanged between parts of classes, to those who know so many columns.

        publishes : whether the secret is a published column, which observers do not know.
        """
        published = "other published columns" if publishes else "published columns"
        which = f"one of the {published} of a person, whichever it is"
        if columns > 1:
            which = f"one or two of the {published} of a person, whichever these are"
        more = {1: "two", 2: "three"}[columns]
        return (
            f"An observer who knows the frequencies, and {which}, or all of them, changes the belief in any value of "
            f"the secret by at most a factor {at_most(capped_exp(self.epsilon))} after a published record of the "
            f"person. For an observer who knows {more} or more and not all of them nothing is proven."
        )

    def counted_levels(self, joint: Joint, rows: FloatArray) -> FloatArray:
        """The largest |ln P(y|s, x_J)/P(y|x_J)| of each row."""
        ratios = self.comparisons(joint).ratios(rows)
        with np.errstate(divide="ignore"):
            return np.asarray(np.abs(np.log(np.where(np.isnan(ratios), 1.0, ratios))).max(axis=0))


def side_channel_comparisons(joint: Joint, every: bool) -> Comparisons:
    """Every (s, x_J) that occurs against x_J, for all sets J of published columns that can make a difference.

    every: whether J may be all columns.
    """
    events: list[IntArray] = []
    part: list[int] = []
    whole: list[int] = []
    secrets: list[int] = []
    given: list[Given] = []
    number = 0
    for knowledge, inside in known_values(joint, every):
        counts = joint.counts * inside
        occurring = np.flatnonzero(counts.any(axis=1))
        if len(occurring) < 2:
            # Only one secret has these values: nothing about it is left to learn.
            continue
        events.append(counts[occurring])
        events.append(counts.sum(axis=0, keepdims=True))
        part.extend(range(number, number + len(occurring)))
        whole.extend([number + len(occurring)] * len(occurring))
        secrets.extend(occurring.tolist())
        given.extend([knowledge] * len(occurring))
        number += len(occurring) + 1
    if not events:
        # One secret in all: it is compared with itself.
        seen = int(np.flatnonzero(joint.counts.any(axis=1))[0])
        first = np.array([0])
        return Comparisons(joint.counts.sum(axis=0, keepdims=True), first, first, np.array([seen]), ((),))
    return Comparisons(np.vstack(events), np.array(part), np.array(whole), np.array(secrets), tuple(given))
