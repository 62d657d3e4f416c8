"""The audit: what an observer learns from a release, and whether it was drawn as declared."""

from __future__ import annotations

from funnel.audit.consistency import Consistency, draw_consistency
from funnel.audit.findings import Audited, Findings, audit_release
from funnel.audit.followed import FoundHistory

__all__ = ["Audited", "Consistency", "Findings", "FoundHistory", "audit_release", "draw_consistency"]
