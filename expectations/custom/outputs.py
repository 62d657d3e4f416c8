"""Every record of a release is an output of its protocol."""

from __future__ import annotations

from typing import Any

from funnel.pipeline.expectations.custom.base import Finding, ReleaseExpectation, counted


class ExpectReleasedSymbolsToBeOutputs(ReleaseExpectation):
    """Expect every record, over all published columns together, to be one of the outputs of the protocol.

    Categories that are declared one by one can still stand in a combination that the protocol cannot give.
    """

    outputs: int

    evidence_table = "outputs"
    metric_dependencies = ("evidence.records",)
    success_keys = ("outputs",)

    def find(self, value: list[dict[str, Any]]) -> Finding:
        """Count the records outside the output alphabet."""
        other = sum(int(line["records"]) for line in value if not 0 <= line["output"] < self.outputs)
        failure = f"{counted(other, 'record')} in the file that no output of the protocol stands for"
        return Finding(other, 0, failure if other else None)
