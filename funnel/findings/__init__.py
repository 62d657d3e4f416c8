"""Findings: what an observer learns from a release, in exact figures, and whether it was drawn as declared."""

from __future__ import annotations

from funnel.findings.of_release import Audited, DrawnRelease, Findings, audit_release

__all__ = ["Audited", "DrawnRelease", "Findings", "audit_release"]
