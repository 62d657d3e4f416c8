"""What all expectations on a release share: a small table to judge, and the rule that no records are a failure."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from typing import Any, ClassVar

import pandas as pd

from funnel.pipeline.expectations.engine import (
    BatchExpectation,
    ExpectationValidationResult,
    LegacyDiagnosticRendererType,
    MetricDomainTypes,
    PandasExecutionEngine,
    TableMetricProvider,
    metric_value,
    renderer,
)
from funnel.pipeline.expectations.rereading import ROWS

_LISTED = 3


@dataclass(frozen=True)
class Finding:
    """What an expectation found.

    Attributes
    ----------
    observed, expected : JSON-ready value
    failure : str or None
        By how much it fails, as a sentence without its full stop; None if it holds.
    """

    observed: Any
    expected: Any
    failure: str | None


@dataclass(frozen=True)
class Measured:
    """A metric with the number of records in the file that it was measured on."""

    rows: int
    value: Any


class ReleaseExpectation(BatchExpectation):
    """An expectation on one table of the evidence, through one metric.

    Subclasses name the table and, as their one metric dependency, the metric, and judge its value. A file without
    records fails every expectation: most would hold of nothing.
    """

    evidence_table: ClassVar[str]

    @property
    def judged_name(self) -> str:
        """What a verdict calls it."""
        return str(self.configuration.type)

    def _validate(
        self,
        metrics: dict[str, Any],
        runtime_configuration: dict[str, Any] | None = None,
        execution_engine: Any = None,
    ) -> dict[str, Any]:
        (metric,) = self.metric_dependencies
        measured: Measured = metrics[metric]
        finding = self.find(measured.value)
        failure = "the file holds no records" if measured.rows <= 0 else finding.failure
        return {
            "success": failure is None,
            "result": {
                "observed_value": finding.observed,
                "details": {"expected": finding.expected, "failure": failure},
            },
        }

    @classmethod
    @renderer(renderer_type=LegacyDiagnosticRendererType.OBSERVED_VALUE)
    def _diagnostic_observed_value_renderer(
        cls,
        configuration: Any = None,
        result: ExpectationValidationResult | None = None,
        runtime_configuration: dict[str, Any] | None = None,
        **_: Any,
    ) -> str:
        """What pages say was observed: by how much it fails, or what was found."""
        found = (result.result if result is not None else None) or {}
        failure = found.get("details", {}).get("failure")
        # Pages take it for markup, and names in a file may be anything.
        return escape(str(failure if failure is not None else found.get("observed_value")))

    @abstractmethod
    def find(self, value: Any) -> Finding:
        """Judge the value of the metric."""


class EvidenceMetric(TableMetricProvider):
    """A metric of one table of the evidence; subclasses with a ``metric_name`` are registered as they are defined."""

    # The engine passes the class by name, so this is neither a method nor a class method.
    @staticmethod
    @metric_value(engine=PandasExecutionEngine)
    def _pandas(
        cls: type[EvidenceMetric],
        execution_engine: PandasExecutionEngine,
        metric_domain_kwargs: dict[str, Any],
        metric_value_kwargs: dict[str, Any],
        **_: Any,
    ) -> Measured:
        table, _, _ = execution_engine.get_compute_domain(metric_domain_kwargs, domain_type=MetricDomainTypes.TABLE)
        # Every table states the records of the file; a table without any line has seen none.
        rows = int(table[ROWS].min()) if len(table) else 0
        return Measured(rows, cls.measure(table, metric_value_kwargs))

    @classmethod
    def measure(cls, table: pd.DataFrame, arguments: dict[str, Any]) -> Any:
        """The value of the metric on the table."""
        return table.to_dict("records")


class TableRecords(EvidenceMetric):
    """The lines of a table that is judged as it is."""

    metric_name = "evidence.records"


def named(names: Iterable[str]) -> str:
    """Up to three names in quotation marks, and how many more there are."""
    every = list(names)
    rest = f" and {len(every) - _LISTED:,} more" if len(every) > _LISTED else ""
    return ", ".join(repr(name) for name in every[:_LISTED]) + rest


def counted(number: int, noun: str, nouns: str | None = None) -> str:
    """A number with its noun: ``1 record``, ``2 records``."""
    return f"{number:,} {noun if number == 1 else nouns or noun + 's'}"
