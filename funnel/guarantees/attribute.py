"""Attribute protection: what a published secret discloses to observers who know anything else about a record."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from funnel.guarantees.any_column import AnyColumn
from funnel.guarantees.base import Witness
from funnel.guarantees.exact import capped_exp
from funnel.guarantees.label_ratios import all_labels, label_levels, label_rows, worst_label
from funnel.guarantees.reading import reads_secret
from funnel.guarantees.srlip import SRLIP
from funnel.joint import FloatArray, IntArray, Joint
from funnel.protocol import WeightArray
from funnel.wording import at_most


@dataclass(frozen=True)
class Attribute(SRLIP):
    """ε-attribute protection of a secret that is published itself, beside columns u (METHOD section 17).

    For a channel that reads (s, u), the layout of `Joint.with_secret`:

    - ``e^-ε P(y|u_J) <= P(y|s, u_J) <= e^ε P(y|u_J)`` for every output y, every *proper* subset J of the other columns
      (the empty one included), all values u_J and secrets s that occur together; and
    - label local differential privacy given all of them, ``T(y|s, u) <= e^ε T(y|s', u)`` for *all* s, s', u and y,
      whether or not anybody has (s', u). No prior comes into it.

    The second implies LIP for an observer who knows all of u: ``P(y|u)`` is an average of the ``T(y|s', u)`` over s',
    each of which is between e^-ε and e^ε times ``T(y|s, u)``. For a channel that reads u alone it says nothing, and all
    is SRLIP; of one column u that is LIP.

    Parameters
    ----------
    epsilon : float
        Bound in nats, >= 0.

    Raises
    ------
    SpecError
        If ε is not a finite number >= 0.

    Notes
    -----
    2^m sets J of m columns, and c(c-1) conditions for every u.

    Examples
    --------
    >>> import funnel
    >>> joint = funnel.Joint.from_counts([[30, 10], [10, 50]], secret=["ill", "well"]).with_secret()
    >>> guarantee = funnel.Attribute(1.0)
    >>> protocol = funnel.fit("grr", joint, guarantee)
    >>> guarantee.holds(joint, protocol), round(guarantee.level(joint, protocol).value, 6)
    (True, 1.0)
    """

    name: ClassVar[str] = "attribute"
    title: ClassVar[str] = "attribute protection of a published secret"
    example: ClassVar[str] = "attribute:1.0"
    beyond: ClassVar[str] = (
        f"{SRLIP.beyond} For an observer who knows all other columns the bound holds whatever the observer believed "
        "about the secret. It does not hide whose record it is: such an observer can find the record. For an observer "
        "who also holds the data of everyone else and the noisy counts, twice the epsilon of these counts is added."
    )
    bounds_labels: ClassVar[bool] = True

    def every_set(self, joint: Joint) -> bool:
        """Proper subsets alone: label LDP covers observers who know all columns."""
        return False

    def cone(self, joint: Joint) -> FloatArray:
        """Two rows for every (s, u_J) that occurs, and one for every u and pair of secrets; shape (m, a)."""
        known = super().cone(joint)
        return np.vstack([known, label_rows(all_labels(joint), self.epsilon)]) if reads_secret(joint) else known

    def label_equations(self, joint: Joint) -> IntArray:
        """``T_{s,u} - T_{s',u}`` for all u and pairs."""
        if not reads_secret(joint):
            return super().label_equations(joint)
        return label_rows(all_labels(joint), 0.0).astype(np.int64)

    def worst(self, joint: Joint, weights: WeightArray) -> Witness:
        """The worse of both, exactly; its ``other_secret`` is that of label LDP."""
        return _or_label(super().worst(joint, weights), joint, weights)

    def worst_between_parts(self, joint: Joint, weights: WeightArray) -> Witness:
        """For observers who know no other column of a person, and for those who know all: of some, srlip says it."""
        return _or_label(AnyColumn.of(joint, knowing=False).worst(weights), joint, weights)

    @property
    def meaning(self) -> str:
        """What an observer can conclude, whatever the observer knows of the rest."""
        return (
            "An observer who knows the frequencies, and any of the other columns of a person, changes the belief in "
            f"any value of the secret by at most a factor {at_most(capped_exp(self.epsilon))} after a published record "
            "of the person; for an observer who knows all of them the odds between any two values change by at most "
            "this factor, whatever the observer believed before."
        )

    def meaning_at_once(self, columns: int, publishes: bool) -> str:
        """What those conclude who know no other column, or all: what of some, srlip says."""
        factor = at_most(capped_exp(self.epsilon))
        return (
            "An observer who knows the frequencies, and no other column of a person, changes the belief in any value "
            f"of the secret by at most a factor {factor} after a published record of the person; for an observer who "
            "knows all other columns the odds between any two values change by at most this factor, whatever the "
            "observer believed before."
        )

    def counted_levels(self, joint: Joint, rows: FloatArray) -> FloatArray:
        """The larger of both for each row."""
        levels = super().counted_levels(joint, rows)
        return np.maximum(levels, label_levels(all_labels(joint), rows)) if reads_secret(joint) else levels


def _or_label(known: Witness, joint: Joint, weights: WeightArray) -> Witness:
    """The witness of label LDP, where that is worse than one that is known and the secret is published."""
    if known.ratio is None or not reads_secret(joint):
        return known
    label = worst_label(joint, weights)
    return label if label.ratio is None or label.ratio > known.ratio else known
