"""What stays unchanged by budget, as the page of a plan shows it: a chart, and the same as a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from funnel.certificate import WEIGHTED
from funnel.report.figures.curves import unchanged_chart
from funnel.tradeoff.unchanged_by_budget import SECONDS, UnchangedCurve, UnchangedPoint

_SECRETS = 6


@dataclass(frozen=True)
class UnchangedRow:
    """A line of the table: whose share, and the share at every budget; None where there is no protocol."""

    kind: Literal["records", "column", "secret", "other"]
    label: str
    shares: tuple[float | None, ...]


def unchanged_part(curve: UnchangedCurve, budget: float) -> dict[str, Any]:
    """The section of a curve as the template takes it; ``budget`` is that of the spec (nats)."""
    return {
        "curve": curve,
        "chosen": curve.share_at(budget),
        "chart": unchanged_chart(curve, budget),
        "rows": tuple(_rows(curve)),
        # What counts how much, as a part of a sentence.
        "weighting": WEIGHTED[curve.weights],
        # Values of the secret that have no line.
        "left_out": max(0, len(curve.secrets) - _SECRETS),
        # Of work for each point.
        "seconds": f"{SECONDS:g}",
    }


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
