"""The random words that rows were drawn with look like random ones, and were never used before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pandas as pd

from funnel.findings.words import WordFinding, check_randomness, runs_in_common, runs_of_before
from funnel.pipeline.expectations.custom.base import EvidenceMetric, Finding, ReleaseExpectation, counted
from funnel.pipeline.expectations.drawing import JudgedDrawing, not_left

_WHAT = "statistics of its random words"
_USES = {"draw": "rows were drawn with", "order": "rows were ordered by"}


@dataclass(frozen=True)
class MeasuredWords:
    """What was found of the words, by purpose.

    Attributes
    ----------
    found : mapping of str to WordFinding, or None
    counts : mapping of str to int
        Words by purpose.
    shared : int
        Runs that words of different purposes have in common.
    before : mapping of str to int
        Runs that were there in earlier versions.
    """

    found: dict[str, WordFinding] | None
    counts: dict[str, int]
    shared: int
    before: dict[str, int]


class RandomWords(EvidenceMetric):
    """What the statistics of random words say."""

    metric_name = "draws.words"

    @classmethod
    def measure(cls, table: pd.DataFrame, arguments: dict[str, Any]) -> MeasuredWords:
        """Measure it on the drawing."""
        drawing = JudgedDrawing.read(table).drawing
        words = drawing.words
        if words is None:
            return MeasuredWords(None, {}, 0, {})
        return MeasuredWords(
            {purpose: check_randomness(stream) for purpose, stream in words.items()},
            {purpose: stream.words for purpose, stream in words.items()},
            runs_in_common(words),
            {purpose: runs_of_before(stream, drawing.earlier) for purpose, stream in words.items()},
        )


class ExpectRandomWordsToBeUniform(ReleaseExpectation):
    """Expect a word for every record and purpose, each bit of them as often one as zero, and none to come again.

    Uniform independent words fail with a probability of at most the significance: see `funnel.findings.words`.
    """

    significance: float
    rows: int
    purposes: list[str]

    evidence_table = "drawing"
    metric_dependencies = ("draws.words",)
    success_keys = ("significance", "rows", "purposes")

    def find(self, value: MeasuredWords) -> Finding:
        """Compare the smallest p-value, corrected for the number of purposes, with the significance."""
        if value.found is None:
            observed, failure = not_left(_WHAT)
            return Finding(observed, self.significance, failure)
        for purpose in self.purposes:
            if value.counts.get(purpose, 0) != self.rows:
                words = counted(value.counts.get(purpose, 0), "word")
                failure = f"{words} for {counted(self.rows, 'record')} that {_USES[purpose].removeprefix('rows ')}"
                return Finding(value.counts.get(purpose, 0), self.rows, failure)
        purpose = min(value.found, key=lambda one: value.found[one].p_value if value.found else 1.0)
        found = value.found[purpose]
        p_value = min(1.0, len(value.found) * found.p_value)
        failure = None
        if not p_value >= self.significance:
            what = f"{counted(found.repeated_words, 'word')} of those compared had been there before"
            if found.bit is not None:
                what = f"bit {found.bit} of them is one in {100 * found.ones:.3g} % of cases"
            failure = (
                f"the words that {_USES[purpose]} are not random: {what}, p-value {p_value:.3g} is below "
                f"{self.significance:.3g}"
            )
        return Finding(p_value, self.significance, failure)


class ExpectRandomWordsNeverToRepeat(ReleaseExpectation):
    """Expect no run of words to be used twice: in two partitions, for two purposes, or in two versions of the series.

    Words that a release secret gives a record again, in a version of the same columns, are meant to come again.
    """

    allowed: int

    evidence_table = "drawing"
    metric_dependencies = ("draws.words",)
    success_keys = ("allowed",)

    def find(self, value: MeasuredWords) -> Finding:
        """Count the runs that come again."""
        if value.found is None:
            observed, failure = not_left(_WHAT)
            return Finding(observed, self.allowed, failure)
        within = {purpose: found.repeated_runs for purpose, found in value.found.items()}
        again = sum(within.values()) + value.shared + sum(value.before.values())
        failure = None
        if again > self.allowed:
            told = [
                f"{counted(runs, 'run')} of words that {_USES[purpose]} {what}"
                for counts, what in (
                    (within, "are there twice in this release"),
                    (value.before, "were used in an earlier version"),
                )
                for purpose, runs in counts.items()
                if runs
            ]
            if value.shared:
                told.append(f"{counted(value.shared, 'run')} of words are used both to draw and to order rows")
            failure = "; ".join(told)
        return Finding(again, self.allowed, failure)
