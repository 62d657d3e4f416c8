"""The section of a spec about disclosure control: what a table of frequencies may hold, and what follows if not."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StrictFloat, StrictInt

from funnel.settings.disclosure_rules import Rules
from funnel.settings.fields import Texts
from funnel.settings.section import Section

# Of classes of records whose secret is published, where a spec does not say it.
DOMINANCE_OF_PUBLISHED = 0.995
Share = Annotated[StrictFloat, Field(ge=0, le=1, allow_inf_nan=False)]


class DisclosureSettings(Section):
    """``[disclosure]``: the rules of statistical offices that public frequencies are held against before a release.

    Attributes
    ----------
    minimum_cell : int
        Records that every combination of secret and published values has, if any has it; 1 for no such rule.
    dominance : float
        Largest share of the records of a published combination that may have one value of the secret, unless it has
        that share of all records; 1 for no such rule. In classes of records it is the largest share of the doubt that a
        class takes away, and 0.995 by default where the secret is published.
    unique_share : float
        Largest share of all records whose published combination may be theirs alone; 1 for no such rule.
    on_breach : "refuse", "report" or None
        Whether a release that breaks a rule is refused, or the reports say so. By default it is refused, but where the
        frequencies are protected by noise: there it is only told what they leave beyond doubt.
    ordered : tuple of str
        Columns of which only neighbours may be grouped, in the order in which [categories] lists their values; of
        numbers, dates, bins and labels such as 30-39 it is so anyway.
    blank : tuple of str
        Columns that may be published as one value, "any value", where grouping for a threshold leaves no two.
    """

    minimum_cell: Annotated[StrictInt, Field(ge=1)] = 10
    dominance: Annotated[Share, Field(gt=0)] = 0.95
    unique_share: Share = 0.0
    on_breach: Literal["refuse", "report"] | None = None
    ordered: Texts = ()
    blank: Texts = ()

    @property
    def rules(self) -> Rules:
        """These rules, to hold counts against."""
        return Rules(self.minimum_cell, self.dominance, self.unique_share)

    def refuses(self, protection: str) -> bool:
        """Whether a release that breaks a rule is refused, with frequencies that are protected so."""
        return protection != "noise" if self.on_breach is None else self.on_breach == "refuse"
