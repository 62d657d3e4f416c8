"""Comparison: what every mechanism that was fitted for a release would have kept, as a document."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Literal, Self

from pydantic import Field

from funnel.certificate import Certificate, Weighting
from funnel.planning import PlanRow
from funnel.release.document import Document, Part, Probability


class CertificatePart(Part):
    """By how much another protocol could be better at most: `funnel.certificate.Certificate`.

    ``of`` is "kept" where ``gap`` is a share of what there is of the utility, of protocols that read the same;
    "unchanged" where it is one of the records, as they are weighted, of protocols that keep values as they are;
    "classes" where it is one of whole records, of protocols that move them by their class alone. ``weights`` is how
    these are weighted; null of "kept".
    """

    of: Literal["kept", "unchanged", "classes"]
    gap: Probability
    weights: Weighting | None = None

    def sentence(self, share: float) -> str:
        """The same in words, of a protocol that keeps a share."""
        return Certificate(self.of, self.gap, self.weights).sentence(share)


class ComparedMechanism(Part):
    """One mechanism, as `funnel.planning.PlanRow` describes it; None where there is no number, or an infinite one."""

    mechanism: str
    reads_secret: bool
    usable: bool
    utility: float | None
    share: float | None
    level: float | None
    certificate: CertificatePart | None
    finished: bool
    seconds: float
    reason: str | None

    @classmethod
    def of(cls, row: PlanRow) -> Self:
        """Of a row of `funnel.plan`."""
        told = row.to_dict()
        return cls.model_validate({name: told[name] for name in cls.model_fields})

    def optimum(self, share: float) -> str | None:
        """What is known of protocols that are better than this one, which keeps a share; None where nothing is."""
        ended = () if self.finished else ("its search was ended by the time limit",)
        known = () if self.certificate is None else (self.certificate.sentence(share),)
        return "; ".join((*ended, *known)) or None


class ComparisonDocument(Document):
    """The mechanisms that were fitted for a release, best first; internal."""

    described: ClassVar[str] = "the comparison of mechanisms"
    schema_: Literal["funnel/comparison/1"] = Field(default="funnel/comparison/1", alias="schema")
    utility: Literal["information", "variance", "estimation"]
    rows: tuple[ComparedMechanism, ...]


def comparison_document(
    rows: Iterable[PlanRow], utility: Literal["information", "variance", "estimation"] = "information"
) -> ComparisonDocument:
    """The document of mechanisms compared by a utility."""
    return ComparisonDocument(utility=utility, rows=tuple(map(ComparedMechanism.of, rows)))
