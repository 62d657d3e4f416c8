"""Verdict: whether a release may be published, expectation by expectation, and by how much it misses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal, Self

from pydantic import Field, JsonValue, model_validator

from funnel.release.document import Document, Part, Sha256


class Judgement(Part):
    """What one expectation found.

    Attributes
    ----------
    name : str
        Type of the expectation, such as ``"expect_released_rows_to_equal_snapshot"``.
    description : str
        What is expected, in plain words.
    passed : bool
    observed, expected : JSON-ready value
        What was found and what was declared; never row contents. None where there is nothing to show.
    failure : str or None
        By how much it failed, as a sentence without its full stop; None if it passed, and only then.
    """

    name: str
    description: str
    passed: bool
    observed: JsonValue = None
    expected: JsonValue = None
    failure: str | None = None

    @model_validator(mode="after")
    def _fails_for_a_reason(self) -> Self:
        if self.passed is not (self.failure is None):
            raise ValueError("has a failure and passed, or neither")
        return self


# What stands in the verdict of a release of which nothing was judged.
NOTHING = Judgement(
    name="verdict",
    description="At least one expectation was evaluated.",
    passed=False,
    observed=0,
    failure="no expectation was evaluated, so the release is refused",
)


class Verdict(Document):
    """The judgements on one release; internal. It passes if all of them do, and there is always one.

    Attributes
    ----------
    passed : bool
    results : tuple of Judgement
        In the order in which the expectations were declared.
    files : mapping of str to str
        SHA-256 (hex) of every public file that was judged, by its path in the folder of the version: nothing else is
        published. Empty in a verdict on a table alone.
    """

    described: ClassVar[str] = "the verdict"
    schema_: Literal["funnel/verdict/1"] = Field(default="funnel/verdict/1", alias="schema")
    passed: bool
    results: tuple[Judgement, ...] = Field(min_length=1)
    files: Mapping[str, Sha256] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _follows_from_its_judgements(self) -> Self:
        if self.passed is not all(result.passed for result in self.results):
            raise ValueError("does not follow from its judgements")
        return self

    @classmethod
    def of(cls, results: tuple[Judgement, ...], files: Mapping[str, str] | None = None) -> Self:
        """The verdict that follows from judgements, on these files; none at all is a failure."""
        judged = results or (NOTHING,)
        return cls(passed=all(result.passed for result in judged), results=judged, files=files or {})

    @property
    def failed(self) -> tuple[Judgement, ...]:
        """The judgements that failed; none if the verdict passed, and only then."""
        return tuple(result for result in self.results if not result.passed)

    def sentence(self) -> str:
        """One sentence: that all expectations hold, or which failed and by how much."""
        if self.passed:
            return f"all {len(self.results)} expectations hold"
        failures = "; ".join(f"{result.name}: {result.failure}" for result in self.failed)
        return f"{len(self.failed)} of {len(self.results)} expectations failed: {failures}"
