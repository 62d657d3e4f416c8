"""GroupedPublic: all figures of a grouped release that are published, as precisely as they are told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from funnel.guarantees import Guarantee
from funnel.release.public.rounding import public_level, share_step, to_multiple

if TYPE_CHECKING:
    from funnel.release.grouped_findings import Choice, ChosenBy, ExplainedColumn, GroupedFindings


@dataclass(frozen=True)
class PublicColumn:
    """A published column: its group (from 1), and shares of people and of what there is to know of it."""

    column: str
    group: int
    plain: float
    kept: float


@dataclass(frozen=True)
class GroupedPublic:
    """What is told of a grouped release beside its rows, its protocol and its channels.

    Attributes
    ----------
    guarantee : str
    holds : bool
    level : float
        An upper bound, as `funnel.release.public.public_level`: the budget where that holds.
    utility, entropy, share : float
        Multiples of the step; something to know is at least one step.
    rows : int
    columns : tuple of PublicColumn
        In the order of the table.
    groups : tuple of tuple of str
        In the order in which they are published.
    people : int
    choice : "given", "order" or "auto"
    shared : tuple of float, or None
        By group the share of people who draw by weights that several combinations have in common, as multiples of the
        step.
    step : float
        Of all shares, as for any release of so many records.
    chosen_by : "information", "variance" or "estimation"
        What ways to publish the columns were compared by.
    explained : tuple of ExplainedColumn
        By variance, every column of numbers, with its share as a multiple of the step.
    worth : float or None
        By estimation, what the records are worth, as a multiple of the step.
    """

    guarantee: str
    holds: bool
    level: float
    utility: float
    entropy: float
    share: float
    rows: int
    columns: tuple[PublicColumn, ...]
    groups: tuple[tuple[str, ...], ...]
    people: int
    choice: Choice
    shared: tuple[float, ...] | None
    step: float
    chosen_by: ChosenBy
    explained: tuple[ExplainedColumn, ...]
    worth: float | None

    @classmethod
    def of(cls, findings: GroupedFindings, guarantee: Guarantee) -> Self:
        """Of what was found exactly."""
        step = share_step(findings.rows)

        def told(value: float) -> float:
            return to_multiple(value, step)

        return cls(
            findings.guarantee,
            findings.holds,
            public_level(findings.level, guarantee, findings.holds),
            told(findings.utility),
            max(told(findings.entropy), step) if findings.entropy > 0 else 0.0,
            told(findings.share),
            findings.rows,
            tuple(PublicColumn(one.column, one.group, told(one.plain), told(one.kept)) for one in findings.columns),
            findings.groups,
            findings.people,
            findings.choice,
            None if findings.shared is None else tuple(told(one) for one in findings.shared),
            step,
            findings.chosen_by,
            tuple(one.model_copy(update={"share": told(one.share)}) for one in findings.explained),
            None if findings.worth is None else told(findings.worth),
        )
