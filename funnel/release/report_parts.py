"""Parts of reports: beliefs, lifts, errors of estimates, weighted shares, what stays unchanged and what is learned."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from funnel.release.document import Count, Part, Probability


def _in_json(level: Any) -> Any:
    """A level as JSON has it, which knows no infinity."""
    return "infinite" if level == math.inf else level


Level = Annotated[float | Literal["infinite"], BeforeValidator(_in_json)]
Total = Annotated[int, Field(ge=0)]


def nats_of(level: float | str) -> float:
    """A level of a report as a number, in nats."""
    return math.inf if level == "infinite" else float(level)


class EstimatedValue(Part):
    """A value of one column, and the standard error of estimating its share from the records; None if they cannot."""

    label: str
    error: float | None


class EstimatedTable(Part):
    """How well the shares of one column, or of two crossed, can be estimated from the records.

    ``typical`` is the median error of the cells that can be told, ``largest`` the worst; None if there are none.
    ``unknown`` counts the cells that cannot be told. Of one column ``rows`` holds its most common values, and ``sums``
    groups of values that the records tell only together.
    """

    columns: tuple[str, ...]
    cells: Total
    typical: float | None
    largest: float | None
    unknown: Count
    rows: tuple[EstimatedValue, ...] = ()
    sums: tuple[tuple[str, ...], ...] = ()


class WeightedValue(Part):
    """A value of a column: its share of the records, and of the population that their weights stand for."""

    label: str
    share: Probability
    weighted: Probability


class WeightedColumn(Part):
    """The most common values of a column, of ``total`` that are told of."""

    column: str
    rows: tuple[WeightedValue, ...]
    total: Total


class Weighted(Part):
    """Shares of the population that survey weights stand for, every class of them by its mean.

    ``weight`` is the column of the classes, ``step`` what weighted shares are multiples of: at least ten of the
    heaviest records.
    """

    weight: str
    step: Probability
    columns: tuple[WeightedColumn, ...]


class ColumnUnchanged(Part):
    """Share of the records whose value in a column is the true one."""

    column: str
    share: Probability


class SecretUnchanged(Part):
    """A value of the secret, its share, and the share of its records that are wholly unchanged.

    Where the secret is published, also how often the value itself stays, and how often the guarantee lets it at most.
    """

    label: str
    prior: float
    share: Probability
    stays: Probability | None
    at_most: Probability | None


class Observer(Part):
    """What observers of a record conclude who know so many of its other true values, of ``columns``, and which.

    ``level`` bounds how far any published record moves a belief in a value of the secret, in nats; ``outside`` the
    share of the records that move one by more than the declared budget.
    """

    known: Total
    columns: Count
    level: Level
    outside: Probability


class TableOff(Part):
    """The cell of a table of the secret and another column that is farthest from the true one on average.

    By how many records, rounded up. Tables of published columns alone, and of the secret alone, are not off.
    """

    secret: str
    column: str
    value: str
    records: float


class FollowedCounts(Part):
    """How far counts of values are off in whole records of the same people, by usual errors of counts of such records.

    ``factor`` is the root of the mean square over all values of all columns, in these errors, and ``errors`` the most,
    of a ``value`` of a ``column``; both rounded up.
    """

    factor: float
    column: str
    value: str
    errors: float


class KnownColumns(Part):
    """What observers of a whole record conclude at most who know these other columns of the person."""

    columns: tuple[str, ...]
    level: Level
    outside: Probability


class WholeColumn(ColumnUnchanged):
    """What stays of a column of whole records.

    Of the groups with the same value that have a thousandth of the records, ``typical`` and ``least`` are the shares of
    a group's records that keep the value: in the median group, and in that of the value ``worst``, which keeps it least
    often; None where there is no such group.
    """

    typical: Probability | None
    least: Probability | None
    worst: str | None


class WholeUnchanged(Part):
    """What stays of whole records, by the published ones and the protocol.

    ``columns`` has the share of the records whose value is the true one: the share that is wholly unchanged, and of the
    published records those that agree in the column all the same. ``unique`` published records are like no other
    one in all columns, ``unique_unchanged`` of them expected to be true. ``estimated`` has, for every column, the
    standard errors of the counted shares of its values that drawing adds.
    """

    columns: tuple[WholeColumn, ...]
    estimated: tuple[EstimatedTable, ...]
    unique: Total
    unique_unchanged: Probability | None


class Unchanged(Part):
    """What stays as it is in a release whose outputs are its inputs, with their distribution.

    ``share`` of the records are wholly unchanged, ``rare_unchanged`` of those in cells with less than a thousandth of
    all records (``rare_records``). ``exact_records`` are in cells that always stay and that nothing else becomes, so
    that their counts are published exactly. ``unique`` published records are like no other one, ``unique_unchanged``
    of them expected to be true. ``error`` is the largest standard error of a counted share of one combination,
    and ``any_error`` one that no share exceeds, of whichever values; None where a person may have several records.
    Where whole records are published these are about their classes; ``whole`` is about the records, None where there
    are too many. ``known`` has every column, and every pair of columns where the bound is for observers of two, those
    with most people beyond the bound first; it is empty under noise. ``at_once`` is how many columns, whichever they
    are, observers of that bound know. ``off`` is there where the secret is published as well, and ``followed`` where
    records are those of donors who are followed.
    """

    share: Probability
    error: float
    any_error: float | None
    columns: tuple[ColumnUnchanged, ...]
    secrets: tuple[SecretUnchanged, ...]
    secrets_total: Total
    rare_records: Probability
    rare_unchanged: Probability | None
    exact_records: Probability
    unique: Total
    unique_unchanged: Probability | None
    observers: tuple[Observer, ...]
    off: TableOff | None = None
    known: tuple[KnownColumns, ...] = ()
    at_once: Total = 0
    whole: WholeUnchanged | None = None
    followed: FollowedCounts | None = None


class Belief(Part):
    """What an observer may come to believe about one value of the secret, by the bound and in this release.

    None for ``least`` and ``most`` where the bound sets no limit one by one, and for the others where they are not
    told.
    """

    label: str
    prior: float
    least: float | None
    most: float | None
    lowest: float | None
    highest: float | None


class Beliefs(Part):
    """Beliefs in the most common values of the secret, of ``total`` that there are."""

    rows: tuple[Belief, ...]
    total: Total


class StrongestCase(Part):
    """The place of the largest leakage, in beliefs; None where one is not told or no two values are compared."""

    output: str
    secret: str
    prior: float
    posterior: float | None
    upward: bool
    other: str | None
    other_prior: float
    other_posterior: float | None
    given: tuple[tuple[str, str], ...]


class TrueValue(Part):
    """A true value that a published one may come from, and how likely."""

    label: str
    chance: Probability


class Output(Part):
    """One published value: its share, its likeliest true values, and how many further ones are possible."""

    label: str
    probability: Probability
    sources: tuple[TrueValue, ...]
    further: Count


class Outputs(Part):
    """The most common published values, of ``total`` that there are."""

    rows: tuple[Output, ...]
    total: Total


class Heat(Part):
    """Probability of published values (rows) for true values (columns), the most common of each.

    Every column has as its last entry what the published values that are left out have together, if any are.
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    shares: tuple[tuple[Probability, ...], ...]
    further_inputs: Count
    further_outputs: Count


class LiftCell(Part):
    """One lift P(s|y)/P(s), None where it is not told, and how much of the allowed change it uses, from 0 to 1."""

    lift: float | None
    strength: Probability | None


class LiftTableRow(Part):
    """The lifts of one published value, and its largest ratio between two values of the secret."""

    output: str
    cells: tuple[LiftCell, ...]
    ratio: Level | None


class LiftTable(Part):
    """All lifts, where there are few enough to read."""

    secrets: tuple[str, ...]
    rows: tuple[LiftTableRow, ...]


class StrongLift(Part):
    """One of the strongest lifts, where there are too many to show all."""

    secret: str
    output: str
    prior: float
    posterior: float
    cell: LiftCell


class Spread(Part):
    """A line of the chart: a value of the secret with its lifts, or a published value with its largest ratio."""

    label: str
    values: tuple[Level, ...]


class Lifts(Part):
    """What published values reveal: a table of all or of the strongest, of ``total``, and the lines of the chart."""

    table: LiftTable | None
    strongest: tuple[StrongLift, ...]
    total: Total
    spreads: tuple[Spread, ...]
    spreads_total: Total
