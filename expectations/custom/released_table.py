"""Expectations on the released file: its columns, categories, rows and outputs are those declared and drawn."""

from __future__ import annotations

from typing import Any

from funnel.pipeline.expectations.custom.base import Finding, ReleaseExpectation, counted, named
from funnel.pipeline.expectations.rereading import ROWS
from funnel.wording import same_name


class ExpectReleasedColumnsToEqualDeclared(ReleaseExpectation):
    """Expect the columns of the file to be the published columns, each once and in order."""

    columns: list[str]

    evidence_table = "columns"
    metric_dependencies = ("evidence.records",)
    success_keys = ("columns",)

    def find(self, value: list[dict[str, Any]]) -> Finding:
        """Compare the names with the declared ones."""
        present = [column["name"] for column in value]
        missing = [name for name in self.columns if name not in present]
        further = [name for name in dict.fromkeys(present) if name not in self.columns]
        repeated = [name for name in self.columns if present.count(name) > 1]
        parts = [
            f"{counted(len(names), 'column')} {what}: {named(names)}"
            for names, what in (
                (missing, "missing"),
                (further, "too many"),
                (repeated, "there more than once"),
            )
            if names
        ]
        if not parts and present != self.columns:
            parts = [f"the columns are in the order {named(present)} instead of {named(self.columns)}"]
        return Finding(present, self.columns, "; ".join(parts) or None)


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


class ExpectReleasedColumnsToBeCategories(ReleaseExpectation):
    """Expect every column of the file to have the Arrow type ``dictionary<string>``, so that readers get categories."""

    columns: list[str]

    evidence_table = "columns"
    metric_dependencies = ("evidence.records",)
    success_keys = ("columns",)

    def find(self, value: list[dict[str, Any]]) -> Finding:
        """Count the published columns of another type; others are another expectation's matter."""
        present = {column["name"]: column for column in value}
        wrong = [name for name in self.columns if name in present and not present[name]["is_category"]]
        examples = ", ".join(f"{name!r} is {present[name]['type']}" for name in wrong[:3])
        failure = f"{counted(len(wrong), 'column')} of another type than dictionary<string>: {examples}"
        types = {name: present[name]["type"] for name in self.columns if name in present}
        return Finding(types, "dictionary<string>", failure if wrong else None)


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


class ExpectReleasedColumnsToHoldNoNulls(ReleaseExpectation):
    """Expect no more nulls in any column than allowed (none): a protocol always gives an output."""

    allowed: int

    evidence_table = "columns"
    metric_dependencies = ("evidence.records",)
    success_keys = ("allowed",)

    def find(self, value: list[dict[str, Any]]) -> Finding:
        """Count the nulls by column."""
        nulls = {column["name"]: int(column["nulls"]) for column in value if column["nulls"] > self.allowed}
        examples = ", ".join(f"{name!r} has {counted(count, 'null')}" for name, count in list(nulls.items())[:3])
        failure = f"{counted(len(nulls), 'column')} with nulls: {examples}"
        return Finding(sum(nulls.values()), self.allowed, failure if nulls else None)


class ExpectReleasedRowsToEqualSnapshot(ReleaseExpectation):
    """Expect the number of records in the file, as read and as its footer says, to be that of the snapshot."""

    rows: int

    evidence_table = "file"
    metric_dependencies = ("evidence.records",)
    success_keys = ("rows",)

    def find(self, value: list[dict[str, Any]]) -> Finding:
        """Compare both numbers with the snapshot's."""
        read, announced = int(value[0][ROWS]), int(value[0]["footer_rows"])
        failure = None
        if read != self.rows:
            more = "more" if read > self.rows else "fewer"
            failure = f"row count {read:,} instead of {self.rows:,}: {abs(read - self.rows):,} {more}"
        elif announced != read:
            failure = f"the file announces {counted(announced, 'record')} but holds {read:,}"
        return Finding(read, self.rows, failure)


class ExpectReleasedCategoriesToEqualDeclared(ReleaseExpectation):
    """Expect the categories of a column to be the declared ones.

    A category that the dictionary of the file declares is published, whether or not a record has it. So the
    dictionary lists all declared categories too: which of them nobody has would otherwise show in the file's types.
    """

    column: str
    categories: list[str]

    evidence_table = "categories"
    metric_dependencies = ("evidence.records",)
    success_keys = ("column", "categories")

    def find(self, value: list[dict[str, Any]]) -> Finding:
        """Compare as sets; undeclared categories are named only where they are values of the source's alphabet."""
        mine = [line for line in value if line["column"] == self.column]
        if not any(line["readable"] for line in mine):
            return Finding(None, len(self.categories), f"column {self.column!r} cannot be read as categories")
        declared = set(self.categories)
        present = {line["category"] for line in mine}
        undeclared = [line for line in mine if line["category"] not in declared]
        missing = [name for name in self.categories if name not in present]
        parts = []
        if undeclared:
            records = sum(int(line["records"]) for line in undeclared)
            known = [line["category"] for line in undeclared if isinstance(line["category"], str)]
            names = f": {named(known)}" if known else ""
            parts.append(f"{_categories(len(undeclared), 'undeclared')} on {counted(records, 'record')}{names}")
        if missing:
            parts.append(f"{_categories(len(missing), 'declared')} missing: {named(missing)}")
        failure = f"column {self.column!r}: {'; '.join(parts)}" if parts else None
        return Finding(len(mine), len(self.categories), failure)


def _categories(number: int, kind: str) -> str:
    return counted(number, f"{kind} category", f"{kind} categories")


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


class ExpectReleasedCountsToEqualDrawn(ReleaseExpectation):
    """Expect the file to hold every output exactly as often as it was drawn.

    Only then do tests on what was drawn say anything about what is published.
    """

    labels: list[str]
    drawn: list[int]

    evidence_table = "outputs"
    metric_dependencies = ("evidence.records",)
    success_keys = ("labels", "drawn")

    def find(self, value: list[dict[str, Any]]) -> Finding:
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
                for label, gap in differences[:3]
            )
            failure = f"{len(differences):,} of {counted(len(self.labels), 'output')} with another count: {examples}"
        return Finding(len(differences), 0, failure)
