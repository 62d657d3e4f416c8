"""Great Expectations: the custom expectations and the suite that judge a release before it is published."""

from __future__ import annotations

from funnel.pipeline.expectations.checks import Finished
from funnel.pipeline.expectations.evidence import Evidence
from funnel.pipeline.expectations.judging import announced, judge
from funnel.release.verdict import Judgement, Verdict

# Great Expectations itself takes seconds to import, so `judge` imports it, not this module.
__all__ = [
    "Evidence",
    "Finished",
    "Judgement",
    "Verdict",
    "announced",
    "judge",
]
