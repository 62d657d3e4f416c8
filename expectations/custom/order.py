"""The order of the released rows tells nothing; or, where the spec does not shuffle, it is that of the source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pandas as pd

from funnel.findings.order import association
from funnel.pipeline.expectations import ordering
from funnel.pipeline.expectations.custom.base import EvidenceMetric, Finding, ReleaseExpectation, counted

_FAILURES = {
    ordering.BY_BLOCK: "the file is not the same everywhere",
    ordering.BY_INPUT: "rows follow the order of the source",
    ordering.BY_SECRET: "rows follow the order of the secrets in the source",
    ordering.SORTED_BY_INPUT: "rows are sorted by the input",
    ordering.SORTED_BY_SECRET: "rows are sorted by the secret",
    ordering.BY_ROW_BEFORE: "rows depend on the row before them",
}


@dataclass(frozen=True)
class MeasuredOrder:
    """P-value of every kind of label, each for itself."""

    p_values: dict[str, float]

    @property
    def worst(self) -> str:
        """The label that outputs are least likely to have nothing to do with."""
        return min(self.p_values, key=lambda labels: self.p_values[labels])

    @property
    def p_value(self) -> float:
        """The smallest, corrected for their number."""
        return min(1.0, len(self.p_values) * self.p_values[self.worst])


class OrderOfRows(EvidenceMetric):
    """P-values of the labels of places and the outputs there, under a random order."""

    metric_name = "order.association"

    @classmethod
    def measure(cls, table: pd.DataFrame, arguments: dict[str, Any]) -> MeasuredOrder:
        """Measure it on the tables of labels and outputs."""
        tables = zip(table["labels"], table["table"], strict=True)
        return MeasuredOrder({labels: association(counts).p_value for labels, counts in tables})


class ExpectRowOrderToTellNothing(ReleaseExpectation):
    """Expect the order of the rows to look like one that was drawn at random, whatever the source.

    Whoever knows where a person stands in the source must not know where they stand in the release, and no part of the
    file may be about other people than the rest. A random order fails with a probability of at most the significance:
    see `funnel.findings.order`.
    """

    significance: float
    labels: list[str]

    evidence_table = "order"
    metric_dependencies = ("order.association",)
    success_keys = ("significance", "labels")

    def find(self, value: MeasuredOrder) -> Finding:
        """Compare the p-value, corrected for the number of kinds of labels, with the significance."""
        if list(value.p_values) != self.labels:
            return Finding(None, self.significance, "the order was judged by other labels than declared")
        failure = None
        if not value.p_value >= self.significance:
            failure = (
                f"{_FAILURES[value.worst]}: outputs and the {value.worst} have to do with each other, p-value "
                f"{value.p_value:.3g} is below {self.significance:.3g}"
            )
        return Finding(value.p_value, self.significance, failure)


class OrderOfSource(EvidenceMetric):
    """Records whose output is not one that was drawn for the input at their place of the source."""

    metric_name = "order.source"

    @classmethod
    def measure(cls, table: pd.DataFrame, arguments: dict[str, Any]) -> int:
        """Measure it on the tables of what stands where, and of what was drawn."""
        found, drawn = table["table"].iloc[0], table["drawn"].iloc[0]
        b = drawn.shape[2]
        # What stands there has one more column, of rows that hold no output.
        expected = dict(
            zip((drawn.cells // b * (b + 1) + drawn.cells % b).tolist(), drawn.records.tolist(), strict=True)
        )
        stands = dict(zip(found.cells.tolist(), found.records.tolist(), strict=True))
        return sum(abs(stands.get(cell, 0) - expected.get(cell, 0)) for cell in {*stands, *expected})


class ExpectRowsInSourceOrder(ReleaseExpectation):
    """Expect every row at the place of its record in the source, where the spec asks for that; its order is known.

    Where rows are not shuffled, input and output stand side by side: they meet exactly as often as they were drawn.
    """

    rows: int

    evidence_table = "order"
    metric_dependencies = ("order.source",)
    success_keys = ("rows",)

    def find(self, value: int) -> Finding:
        """No record may stand elsewhere."""
        failure = None
        if value:
            failure = (
                "rows are not in the order of the source, though the spec does not shuffle: inputs and outputs at the "
                f"same place differ from the drawn ones in {counted(value, 'count')}"
            )
        return Finding(value, 0, failure)
