"""Events for tests of the ledger, and a clock that stands still until it is set."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from funnel.pipeline.ledger.entry import Event, Judged, Kind
from funnel.pipeline.ledger.ledger import Ledger


def event(kind: Kind = "published", version: str | None = "1.0.0", **changes: Any) -> Event:
    """An event about the series ``people``."""
    judged = Judged(passed=kind != "refused", sentence="all 41 expectations hold")
    settings = {"series": "people", "register": "panel", "verdict": judged, "started_by": "ada@host", **changes}
    return Event(kind=kind, version=version, **settings)


@dataclass
class Clock:
    """Tells the same time until it is moved."""

    time: datetime = datetime(2026, 5, 1, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.time

    def move(self, **by: int) -> None:
        self.time += timedelta(**by)


def opened(url: str | None, workspace: Path, **options: Any) -> Ledger:
    """A ledger whose clock stands still."""
    return Ledger.open(url, workspace, **{"clock": Clock(), **options})
