"""Grouped findings: what the audit of a grouped release found, exactly; internal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Self

from pydantic import Field, model_validator

from funnel.release.document import Count, Document, Part, Probability

if TYPE_CHECKING:
    from funnel.groups import GroupedSolution

Choice = Literal["given", "order", "auto"]
ChosenBy = Literal["information", "variance", "estimation"]


BY_INFORMATION: Final[Mapping[str, Any]] = {"chosen_by": "information", "explained": [], "worth": None}
"""What documents from before there was a choice are upgraded with."""


class FoundColumn(Part):
    """One published column.

    ``plain`` is the share of people of whom its plain, true value is published, ``information`` what its published
    text tells of it (nats), ``entropy`` what there is to know of it, ``kept`` the share of that; ``group`` is from 1.
    """

    column: str
    group: int = Field(ge=1)
    plain: Probability
    kept: Probability
    entropy: float = Field(ge=0)
    information: float = Field(ge=0)


class TriedWay(Part):
    """One way to publish the columns that was tried: what it told, as a share of H(X), and what it was compared by.

    ``worth`` is a share of H(X), the mean share of the variance of a number that is explained, or a share of the
    records, as the release was made by information, variance or estimation; older documents do not tell it.
    """

    groups: tuple[tuple[str, ...], ...]
    schedule: str
    kept: float
    worth: float | None = None


class ExplainedColumn(Part):
    """A column of numbers: what its values stand for, None for one that stands for no number, and the share of the
    variance of these numbers that whole published records explain.
    """

    column: str
    values: tuple[str, ...] = Field(min_length=1)
    numbers: tuple[float | None, ...]
    share: Probability

    @model_validator(mode="after")
    def _one_each(self) -> Self:
        if len(self.values) != len(self.numbers):
            raise ValueError("does not have one number for each value")
        return self


class FoundConsistency(Part):
    """Whether records were drawn by the weights: the least p-value of all tests times their number."""

    p_value: Probability
    tests: Count
    impossible: Count


class GroupedSolved(Document):
    """A protocol of groups that was made, as far as it is not in the protocol itself; internal, kept with it.

    Attributes as in `GroupedFindings`.
    """

    described: ClassVar[str] = "what was found with the protocol of groups"
    schema_: Literal["funnel/grouped-solved/2"] = Field(default="funnel/grouped-solved/2", alias="schema")
    holds: bool
    level: float = Field(ge=0)
    decided: Count
    reason: str
    schedule: str
    tried: tuple[TriedWay, ...]
    prefixes: tuple[Count, ...]
    told: tuple[float, ...]
    shared: tuple[Probability, ...] | None = None
    utility: float = Field(ge=0)
    entropy: float = Field(ge=0)
    chosen_by: ChosenBy
    explained: tuple[ExplainedColumn, ...]
    worth: Probability | None

    @classmethod
    def of(cls, solution: GroupedSolution) -> Self:
        """Of a solution, whose bound was decided."""
        return cls(
            holds=True,
            level=solution.level,
            decided=solution.decided,
            reason=solution.reason,
            schedule=str(solution.schedule),
            tried=tuple(
                TriedWay(groups=one.groups, schedule=str(one.schedule), kept=one.kept, worth=one.worth)
                for one in solution.tried
            ),
            prefixes=solution.prefixes,
            told=solution.told,
            shared=tuple(min(1.0, one) for one in solution.shared),
            utility=max(0.0, solution.utility),
            entropy=solution.entropy,
            chosen_by=solution.chosen_by,
            explained=tuple(
                ExplainedColumn(
                    column=column,
                    values=tuple(numbers),
                    numbers=tuple(numbers.values()),
                    share=solution.explained[column],
                )
                for column, numbers in solution.numbers.items()
            ),
            worth=solution.worth,
        )

    @classmethod
    def upgraded(cls, version: int, content: Any) -> Any:
        """Before version 2 all ways were compared by information."""
        return {**content, **BY_INFORMATION} if version == 1 else super().upgraded(version, content)


class GroupedFindings(Document):
    """What a grouped release reveals and how it was drawn; internal.

    Attributes
    ----------
    guarantee : str
        As declared.
    holds : bool
        Whether it holds after every output of every prefix, decided in whole numbers.
    level : float
        The smallest budget (nats) that would do; never below the exact one.
    decided : int
        Prefixes and outputs that were decided.
    rows, dropped, records, published : int
        Records released, left out for a missing value, different ones of the source, and different ones published.
    people : int
        How many people a prefix has for which a channel was made.
    groups : tuple of tuple of str
        In the order in which they were published.
    choice : "given", "order" or "auto"
        Whether the spec gives the groups, their order alone, or neither.
    reason, schedule : str
        Why it is these groups, and how they share the bound.
    tried : tuple of TriedWay
        Best first; empty where there was one way.
    prefixes : tuple of int
        Prefixes of which something is said, by stage.
    told : tuple of float
        What each stage adds (nats) for whoever sees outputs.
    shared : tuple of float, or None
        By stage the share of people who draw by weights that several combinations have in common; older releases do
        not say.
    utility, entropy, share : float
        I(X;Y) and H(X) of whole records (nats), and their quotient.
    columns : tuple of FoundColumn
        In the order in which the spec names them.
    chosen_by : "information", "variance" or "estimation"
        What ways were compared by.
    explained : tuple of ExplainedColumn
        By variance, every column of numbers.
    worth : float or None
        By estimation, what the records are worth for estimates, as a share of them.
    consistency : FoundConsistency
    """

    described: ClassVar[str] = "the findings of a grouped release"
    schema_: Literal["funnel/grouped-findings/3"] = Field(default="funnel/grouped-findings/3", alias="schema")
    guarantee: str
    holds: bool
    level: float = Field(ge=0)
    decided: Count
    rows: Count
    dropped: Count
    records: Count
    published: Count
    people: Count
    groups: tuple[tuple[str, ...], ...]
    choice: Choice
    reason: str
    schedule: str
    tried: tuple[TriedWay, ...]
    prefixes: tuple[Count, ...]
    told: tuple[float, ...]
    shared: tuple[Probability, ...] | None = None
    utility: float = Field(ge=0)
    entropy: float = Field(ge=0)
    share: Probability
    columns: tuple[FoundColumn, ...]
    consistency: FoundConsistency
    chosen_by: ChosenBy
    explained: tuple[ExplainedColumn, ...]
    worth: Probability | None

    @classmethod
    def upgraded(cls, version: int, content: Any) -> Any:
        """Before version 2 nothing was said of shared weights, before version 3 all was chosen by information."""
        if version not in (1, 2):
            return super().upgraded(version, content)
        return {**({"shared": None} if version == 1 else {}), **content, **BY_INFORMATION}
