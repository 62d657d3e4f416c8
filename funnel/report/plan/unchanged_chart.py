"""What stays unchanged by budget, as the page of a plan shows it: a chart, and the same as a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from funnel.certificate import WEIGHTED
from funnel.report.figures.curves import TradeoffChart, unchanged_chart
from funnel.tradeoff.unchanged_by_budget import SECONDS, UnchangedCurve, UnchangedPoint

_SECRETS = 6


@dataclass(frozen=True)
class UnchangedRow:
    """A line of the table: whose share, and the share at every budget; None where there is no protocol."""

    kind: Literal["records", "column", "secret", "other"]
    label: str
    shares: tuple[float | None, ...]


@dataclass(frozen=True, eq=False)
class UnchangedPart:
    """All that the section shows.

    Attributes
    ----------
    curve : UnchangedCurve
    chosen : float or None
        Share of the records unchanged at the bound of the spec.
    chart : TradeoffChart
    rows : tuple of UnchangedRow
    weighting : str
        What counts how much, as a part of a sentence.
    left_out : int
        Values of the secret that have no line.
    seconds : str
        Of work for each point.
    """

    curve: UnchangedCurve
    chosen: float | None
    chart: TradeoffChart
    rows: tuple[UnchangedRow, ...]
    weighting: str
    left_out: int
    seconds: str


def unchanged_part(curve: UnchangedCurve, budget: float) -> UnchangedPart:
    """The section of a curve; ``budget`` is that of the spec (nats)."""
    return UnchangedPart(
        curve,
        curve.share_at(budget),
        unchanged_chart(curve, budget),
        tuple(_rows(curve)),
        WEIGHTED[curve.weights],
        max(0, len(curve.secrets) - _SECRETS),
        f"{SECONDS:g}",
    )


def _rows(curve: UnchangedCurve) -> Iterator[UnchangedRow]:
    def shares(of: Callable[[UnchangedPoint], float | None]) -> tuple[float | None, ...]:
        return tuple(None if point.share is None else of(point) for point in curve.points)

    yield UnchangedRow("records", "whole records", shares(lambda point: point.share))
    # A single column stays where the whole record does.
    for j, column in enumerate(curve.columns if len(curve.columns) > 1 else ()):
        yield UnchangedRow("column", column, shares(lambda point, j=j: point.columns[j]))  # type: ignore[misc]
    for s, label in enumerate(curve.secrets[:_SECRETS]):
        yield UnchangedRow("secret", label, shares(lambda point, s=s: point.secrets[s]))  # type: ignore[misc]
    yield UnchangedRow("other", "weighted share", shares(lambda point: point.weighted))
    yield UnchangedRow("other", "at most, certified", shares(lambda point: point.most))
    yield UnchangedRow("other", "information kept", shares(lambda point: point.kept))
