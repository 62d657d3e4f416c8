"""Great Expectations: the custom expectations and the suite that judge a release before it is published."""

from __future__ import annotations

from expectations.evidence import Evidence
from expectations.judging import judge
from expectations.verdict import Judgement, Verdict

# Great Expectations itself takes seconds to import, so `judge` imports it, not this module.
__all__ = ["Evidence", "Judgement", "Verdict", "judge"]
