"""A release carries no metadata of its source, such as an index that pandas left behind."""

from __future__ import annotations

from typing import Any

from funnel.pipeline.expectations.custom.base import Finding, ReleaseExpectation, counted, named


class ExpectReleasedFileToCarryNoMetadata(ReleaseExpectation):
    """Expect no metadata of the file and its schema beyond the keys allowed (none)."""

    allowed: list[str]

    evidence_table = "file"
    metric_dependencies = ("evidence.records",)
    success_keys = ("allowed",)

    def find(self, value: list[dict[str, Any]]) -> Finding:
        """List the keys that are not allowed; their values are not looked at."""
        keys = [key for file in value for key in file["metadata"] if key not in self.allowed]
        failure = f"{counted(len(keys), 'metadata key')} in the file: {named(keys)}"
        return Finding(keys, self.allowed, failure if keys else None)
