"""Custom expectations: what Great Expectations is asked of a release, offline, silent and with nothing written.

Each expectation is on one small table of evidence.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Hashable, Iterable
from functools import cache
from typing import Any, ClassVar

from funnel.audit.check import Check
from funnel.deferred_imports import VALIDATOR, import_without
from funnel.pipeline.expectations.evidence import ROWS, Evidence
from funnel.wording import listed

with warnings.catch_warnings():
    # It imports two modules of the standard library by names that are deprecated.
    warnings.filterwarnings("ignore", r"module 'sre_(constants|parse)' is deprecated", DeprecationWarning)
    import_without(*VALIDATOR)
    import great_expectations as gx
    from great_expectations.compatibility.pydantic import PrivateAttr
    from great_expectations.core.batch_definition import BatchDefinition
    from great_expectations.core.metric_domain_types import MetricDomainTypes
    from great_expectations.data_context.data_context.ephemeral_data_context import EphemeralDataContext
    from great_expectations.data_context.types.base import (
        DataContextConfig,
        InMemoryStoreBackendDefaults,
        ProgressBarsConfig,
    )
    from great_expectations.execution_engine.execution_engine import ExecutionEngine
    from great_expectations.execution_engine.pandas_execution_engine import PandasExecutionEngine
    from great_expectations.expectations.expectation import BatchExpectation
    from great_expectations.expectations.expectation_configuration import ExpectationConfiguration
    from great_expectations.expectations.metrics.metric_provider import metric_value
    from great_expectations.expectations.metrics.table_metric_provider import TableMetricProvider
    from great_expectations.validator.validator import ValidationDependencies

_LISTED = 3
Lines = list[dict[Hashable, Any]]
"""A table of evidence, line by line."""


# By the batch and how it is validated, what expectations on a table of evidence need.
_NEEDED: dict[str, ValidationDependencies] = {}
Finding = tuple[Any, Any, str | None]
"""What was observed and what is expected, ready for JSON; and by how much it fails, as a sentence, or None."""


class ReleaseExpectation(BatchExpectation):
    """An expectation on the lines of one table of the evidence, which subclasses name.

    A file without records fails every expectation: most would hold of nothing.
    """

    evidence_table: ClassVar[str]
    metric_dependencies = ("evidence.records",)
    _written: ExpectationConfiguration | None = PrivateAttr(None)

    class Config:
        """What was declared stays as it was declared."""

        allow_mutation = False

    @property
    def configuration(self) -> ExpectationConfiguration:
        """The arguments, which the library reads twenty times in one evaluation: written once, since they stay."""
        if self._written is None:
            self._written = super().configuration
        return self._written

    def get_validation_dependencies(
        self, execution_engine: ExecutionEngine | None = None, runtime_configuration: dict[str, Any] | None = None
    ) -> ValidationDependencies:
        """The lines of the table: the same for all expectations on it, of which the library asks each of them twice."""
        asked = f"{self.configuration.kwargs.get('batch_id')} {runtime_configuration}"
        if asked not in _NEEDED:
            _NEEDED[asked] = super().get_validation_dependencies(execution_engine, runtime_configuration)
        return _NEEDED[asked]

    @property
    def check_name(self) -> str:
        """What a verdict calls it."""
        return str(self.configuration.type)

    def _validate(
        self,
        metrics: dict[str, Any],
        runtime_configuration: dict[str, Any] | None = None,
        execution_engine: Any = None,
    ) -> dict[str, Any]:
        lines: Lines = metrics["evidence.records"]
        observed, expected, failure = self.find(lines)
        # Every table states the records of the file; a table without any line has seen none.
        if not lines or min(line[ROWS] for line in lines) <= 0:
            failure = "the file holds no records"
        details = {"expected": expected, "failure": failure}
        return {"success": failure is None, "result": {"observed_value": observed, "details": details}}

    @abstractmethod
    def find(self, value: Lines) -> Finding:
        """Judge the lines of the table."""


class TableRecords(TableMetricProvider):
    """The lines of a table of evidence; registered as it is defined."""

    metric_name = "evidence.records"

    # The engine passes the class by name, so this is neither a method nor a class method.
    @staticmethod
    @metric_value(engine=PandasExecutionEngine)
    def _pandas(
        cls: type[TableRecords],
        execution_engine: PandasExecutionEngine,
        metric_domain_kwargs: dict[str, Any],
        metric_value_kwargs: dict[str, Any],
        **_: Any,
    ) -> Lines:
        table, _, _ = execution_engine.get_compute_domain(metric_domain_kwargs, domain_type=MetricDomainTypes.TABLE)
        lines: Lines = table.to_dict("records")
        return lines


class ExpectCheckToPass(ReleaseExpectation):
    """Expect the check of this name to have been made, once, and to have passed."""

    check: str

    evidence_table = "checks"
    success_keys = ("check",)

    @property
    def check_name(self) -> str:
        """The name of the check."""
        return self.check

    def find(self, value: Lines) -> Finding:
        """Look for its line."""
        mine = [line for line in value if line["check"] == self.check]
        if len(mine) != 1:
            return None, "passed", f"it was made {len(mine)} times: the release lacks what it needs"
        (line,) = mine
        # A failure that is missing comes back from the table as a number that is none.
        return line["state"], "passed", line["failure"] if isinstance(line["failure"], str) else None


class ExpectReleasedColumnsToEqualDeclared(ReleaseExpectation):
    """Expect the columns of the file to be the published columns, each once and in order, and no other ones."""

    columns: list[str]

    evidence_table = "columns"
    success_keys = ("columns",)

    def find(self, value: Lines) -> Finding:
        """Compare the names with the declared ones."""
        present = [line["name"] for line in value]
        failure = f"the columns are {named(present)} instead of {named(self.columns)}"
        return present, self.columns, failure if present != self.columns else None


class ExpectReleasedSymbolsToBeOutputs(ReleaseExpectation):
    """Expect every record, over all published columns together, to be one of the outputs of the protocol."""

    outputs: int

    evidence_table = "outputs"
    success_keys = ("outputs",)

    def find(self, value: Lines) -> Finding:
        """Count the records outside the output alphabet."""
        other = sum(int(line["records"]) for line in value if not 0 <= line["output"] < self.outputs)
        failure = f"{counted(other, 'record')} in the file that no output of the protocol stands for"
        return other, 0, failure if other else None


class ExpectReleasedCountsToEqualDrawn(ReleaseExpectation):
    """Expect the file to hold every output exactly as often as it was drawn.

    Only then do tests on what was drawn say anything about what is published.
    """

    labels: list[str]
    drawn: list[int]

    evidence_table = "outputs"
    success_keys = ("labels", "drawn")

    def find(self, value: Lines) -> Finding:
        """Compare output by output."""
        released = {int(line["output"]): int(line["records"]) for line in value}
        differences = [
            (label, released.get(y, 0) - drawn)
            for y, (label, drawn) in enumerate(zip(self.labels, self.drawn, strict=True))
            if released.get(y, 0) != drawn
        ]
        failure = None
        if differences:
            examples = ", ".join(
                f"{label!r} has {counted(abs(gap), 'record')} {'more' if gap > 0 else 'fewer'} than were drawn"
                for label, gap in differences[:_LISTED]
            )
            failure = f"{len(differences):,} of {counted(len(self.labels), 'output')} with another count: {examples}"
        return len(differences), 0, failure


def named(names: Iterable[str]) -> str:
    """Up to three names in quotation marks, and how many more there are."""
    every = list(names)
    rest = f" and {len(every) - _LISTED:,} more" if len(every) > _LISTED else ""
    return ", ".join(repr(name) for name in every[:_LISTED]) + rest


def counted(number: int, noun: str) -> str:
    """A number with its noun: ``1 record``, ``2 records``."""
    return f"{number:,} {noun if number == 1 else noun + 's'}"


def declare(evidence: Evidence, checks: Iterable[Check[Any]] = ()) -> list[ReleaseExpectation]:
    """All expectations on a release, each with a description in plain words: on its table, then one for each check.

    Parameters
    ----------
    evidence : Evidence
    checks : iterable of Check
        Those that are made of it.
    """
    outputs, columns = evidence.protocol.outputs, list(evidence.columns)
    return [
        ExpectReleasedColumnsToEqualDeclared(
            columns=columns,
            description=f"The file has exactly the columns {listed(columns)}, in this order, and no other column.",
        ),
        ExpectReleasedSymbolsToBeOutputs(
            outputs=len(outputs),
            description=f"Every record is one of the {len(outputs):,} outputs of the protocol.",
        ),
        ExpectReleasedCountsToEqualDrawn(
            labels=list(outputs.labels),
            drawn=list(evidence.drawn),
            description="An independent reader counts every published value exactly as often as it was drawn.",
        ),
        *(ExpectCheckToPass(check=one.name, description=one.says) for one in checks),
    ]


def context() -> EphemeralDataContext:
    """A context in memory: no analytics, no progress bars, no documentation site on disk."""
    return gx.get_context(
        mode="ephemeral",
        project_config=DataContextConfig(
            analytics_enabled=False,
            progress_bars=ProgressBarsConfig(globally=False),
            store_backend_defaults=InMemoryStoreBackendDefaults(init_temp_docs_sites=False),
        ),
    )


@cache
def whole_table() -> BatchDefinition:
    """What every table of evidence is validated as: whole, whichever it is.

    Made once in a process: the context writes all of itself down as text whenever something is added to it.
    """
    asset = context().data_sources.add_pandas("evidence").add_dataframe_asset("tables")
    return asset.add_batch_definition_whole_dataframe("whole")
