"""Engine: Great Expectations as it is used here, offline, silent and with nothing written."""

from __future__ import annotations

import warnings
from functools import cache

from funnel.deferred_imports import VALIDATOR, import_without

with warnings.catch_warnings():
    # It imports two modules of the standard library by names that are deprecated.
    warnings.filterwarnings("ignore", r"module 'sre_(constants|parse)' is deprecated", DeprecationWarning)
    import_without(*VALIDATOR)
    import great_expectations as gx
    from great_expectations.compatibility.pydantic import PrivateAttr
    from great_expectations.core import (
        ExpectationSuite,
        ExpectationSuiteValidationResult,
        ExpectationValidationResult,
    )
    from great_expectations.core.batch_definition import BatchDefinition
    from great_expectations.core.metric_domain_types import MetricDomainTypes
    from great_expectations.data_context.data_context.ephemeral_data_context import EphemeralDataContext
    from great_expectations.data_context.types.base import (
        DataContextConfig,
        InMemoryStoreBackendDefaults,
        ProgressBarsConfig,
    )
    from great_expectations.execution_engine.pandas_execution_engine import PandasExecutionEngine
    from great_expectations.expectations.expectation import BatchExpectation
    from great_expectations.expectations.expectation_configuration import ExpectationConfiguration
    from great_expectations.expectations.metrics.metric_provider import metric_value
    from great_expectations.expectations.metrics.table_metric_provider import TableMetricProvider
    from great_expectations.validator.v1_validator import Validator


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


__all__ = [
    "BatchExpectation",
    "ExpectationConfiguration",
    "ExpectationSuite",
    "ExpectationSuiteValidationResult",
    "ExpectationValidationResult",
    "MetricDomainTypes",
    "PandasExecutionEngine",
    "PrivateAttr",
    "TableMetricProvider",
    "Validator",
    "context",
    "metric_value",
    "whole_table",
]
