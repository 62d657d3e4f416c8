"""Grouped proof: who made a protocol of groups, and for how many outputs others were asked; internal."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal, Self

from pydantic import Field

from funnel.release.document import Count, Document, Probability

if TYPE_CHECKING:
    from funnel.groups.robust import Proven


class GroupedProof(Document):
    """What a bound in the population rests on, as far as it does not follow from the protocol and the counts.

    Attributes
    ----------
    seed : str
        What tells who made the protocol and who proved it: the name of the series.
    share : float
        Of people, who made it.
    made_from, proving : int
        People.
    significance : float
        What all limits together may miss the law of the population with.
    cells, leaves : int
        Outputs and unions of them that limits were stated for, and those that are published.
    """

    described: ClassVar[str] = "the proof of a grouped release"
    schema_: Literal["funnel/grouped-proof/1"] = Field(default="funnel/grouped-proof/1", alias="schema")
    seed: str
    share: Probability
    made_from: Count
    proving: Count
    significance: Probability
    cells: Count
    leaves: Count

    @classmethod
    def of(cls, proven: Proven) -> Self:
        """Of what was proven."""
        return cls(
            seed=proven.seed,
            share=proven.share,
            made_from=proven.made_from,
            proving=proven.proving,
            significance=proven.significance,
            cells=proven.cells,
            leaves=proven.leaves,
        )
