"""Parts of the public report about what published values reveal: beliefs, true values behind outputs, and lifts."""

from __future__ import annotations

from funnel.release.document import Count, Part, Probability
from funnel.release.report_parts import Level, Total


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
