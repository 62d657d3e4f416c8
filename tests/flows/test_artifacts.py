"""What a run leaves in the orchestrator of all versions together: the public figures of them, and no others."""

from __future__ import annotations

from dataclasses import replace

from funnel import LIP, Joint, fit
from funnel.pipeline.flows.artifacts import _summary
from funnel.pipeline.tasks.publish import Published
from funnel.release.public.findings import PublicHistory
from tests.projects import spec_of
from tests.public import public_of

JOINT = Joint.from_counts([[400, 100], [100, 300]])


def test_one_line_of_the_summary_is_about_all_versions() -> None:
    protocol = fit("grr", JOINT, LIP(0.5))
    public = public_of(JOINT, protocol, LIP(0.5)).findings
    published = Published("1.4.0", "folder", "report.html", "key")
    spec = spec_of("people.parquet", ".")
    alone = _summary(spec, published, protocol, public)
    assert "same people" not in alone
    together = _summary(spec, published, protocol, replace(public, history=PublicHistory(5, 0.98, 0.02)))
    (line,) = set(together.splitlines()) - set(alone.splitlines())
    assert line == (
        "- **About the same people**: one bound for all 5 versions together; this one alone would have kept 98.0%; "
        "frequencies alone move at most 2.0% of the people out of it"
    )
    first = _summary(spec, published, protocol, replace(public, history=PublicHistory(1, 0.98, 0.02)))
    assert "one bound for this and all later versions together" in first
