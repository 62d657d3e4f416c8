"""History: one bound for everything published about a person, however many versions (METHOD section 9)."""

from __future__ import annotations

from funnel.history.book import History
from funnel.history.changes import Changes
from funnel.history.decisions import decision_array
from funnel.history.drawing import HISTORY_COLUMN, drawing_protocol
from funnel.history.following import follow
from funnel.history.observed import Observed
from funnel.history.past import Chapter, Past
from funnel.history.step import Step

__all__ = [
    "HISTORY_COLUMN",
    "Changes",
    "Chapter",
    "History",
    "Observed",
    "Past",
    "Step",
    "decision_array",
    "drawing_protocol",
    "follow",
]
