"""Grouped findings: what the audit of a grouped release found, exactly; internal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from pydantic import Field

from funnel.release.document import Count, Document, Part, Probability

if TYPE_CHECKING:
    from funnel.groups import GroupedSolution

Choice = Literal["given", "order", "auto"]


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
    """One way to publish the columns that was tried: what it told, as a share of H(X)."""

    groups: tuple[tuple[str, ...], ...]
    schedule: str
    kept: float


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
    schema_: Literal["funnel/grouped-solved/1"] = Field(default="funnel/grouped-solved/1", alias="schema")
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
                TriedWay(groups=one.groups, schedule=str(one.schedule), kept=one.kept) for one in solution.tried
            ),
            prefixes=solution.prefixes,
            told=solution.told,
            shared=tuple(min(1.0, one) for one in solution.shared),
            utility=max(0.0, solution.utility),
            entropy=solution.entropy,
        )


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
    consistency : FoundConsistency
    """

    described: ClassVar[str] = "the findings of a grouped release"
    schema_: Literal["funnel/grouped-findings/2"] = Field(default="funnel/grouped-findings/2", alias="schema")
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

    @classmethod
    def upgraded(cls, version: int, content: Any) -> Any:
        """Before version 2 no weights were shared by what breaks a rule, and nothing was said of it."""
        return {**content, "shared": None} if version == 1 else super().upgraded(version, content)
