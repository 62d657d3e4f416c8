"""History: one bound for everything published about a person, however many versions (METHOD section 9)."""

from __future__ import annotations

from funnel.history.book import History
from funnel.history.changes import Changes
from funnel.history.decisions import (
    DECISION_PURPOSE,
    channel_digest,
    decision_array,
    decision_digest,
    decision_keys,
    history_digest,
)
from funnel.history.drawing import HISTORY_COLUMN, drawing_protocol
from funnel.history.following import follow
from funnel.history.observed import Observed
from funnel.history.past import Chapter, Past
from funnel.history.step import Step

__all__ = [
    "DECISION_PURPOSE",
    "HISTORY_COLUMN",
    "Changes",
    "Chapter",
    "History",
    "Observed",
    "Past",
    "Step",
    "channel_digest",
    "decision_array",
    "decision_digest",
    "decision_keys",
    "drawing_protocol",
    "follow",
    "history_digest",
]
