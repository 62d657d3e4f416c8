"""Verdict: whether a release may be published, expectation by expectation, and by how much it misses."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Judgement:
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
        By how much it failed, as a sentence without its full stop; None if it passed.
    """

    name: str
    description: str
    passed: bool
    observed: Any
    expected: Any
    failure: str | None


@dataclass(frozen=True)
class Verdict:
    """The judgements on one release; it passes if there are any and all of them pass.

    Attributes
    ----------
    passed : bool
    results : tuple of Judgement
        In the order in which the expectations were declared.
    """

    passed: bool
    results: tuple[Judgement, ...]

    @classmethod
    def of(cls, results: tuple[Judgement, ...]) -> Verdict:
        """The verdict that follows from judgements; none at all is a failure."""
        return cls(bool(results) and all(result.passed for result in results), results)

    @property
    def failed(self) -> tuple[Judgement, ...]:
        """The judgements that failed."""
        return tuple(result for result in self.results if not result.passed)

    def to_dict(self) -> dict[str, Any]:
        """The verdict as JSON-ready values."""
        return {"passed": self.passed, "results": [asdict(result) for result in self.results]}

    def sentence(self) -> str:
        """One sentence: that all expectations hold, or which failed and by how much."""
        if self.passed:
            return f"all {len(self.results)} expectations hold"
        if not self.results:
            return "no expectation was evaluated, so the release is refused"
        failures = "; ".join(f"{result.name}: {result.failure}" for result in self.failed)
        return f"{len(self.failed)} of {len(self.results)} expectations failed: {failures}"
