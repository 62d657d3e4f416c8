"""No secret column and no undeclared column is in a release, however its name is spelt."""

from __future__ import annotations

from typing import Any

from funnel.pipeline.expectations.custom.base import Finding, ReleaseExpectation, counted, named
from funnel.wording import same_name


class ExpectNoSecretOrUndeclaredColumn(ReleaseExpectation):
    """Expect every column of the file to be published and none to be secret, whatever case and spaces in its name."""

    published: list[str]
    secret: list[str]

    evidence_table = "columns"
    metric_dependencies = ("evidence.records",)
    success_keys = ("published", "secret")

    def find(self, value: list[dict[str, Any]]) -> Finding:
        """Find columns named like a secret one, and columns that are not published."""
        present = list(dict.fromkeys(column["name"] for column in value))
        secret = [name for name in present if any(same_name(name, hidden) for hidden in self.secret)]
        undeclared = [name for name in present if name not in self.published and name not in secret]
        parts = [
            f"{counted(len(names), f'{what} column')} in the file: {named(names)}"
            for names, what in ((secret, "secret"), (undeclared, "undeclared"))
            if names
        ]
        return Finding(secret + undeclared, [], "; ".join(parts) or None)
