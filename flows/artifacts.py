"""What runs leave in the orchestrator's interface: of a release its summary, lifts and report, of a plan its tables."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from prefect.artifacts import create_link_artifact, create_markdown_artifact, create_table_artifact

from funnel.pipeline.flows.planned import PlanAnswer
from funnel.pipeline.flows.telling import plain
from funnel.pipeline.tasks.publish import Published
from funnel.protocol import Protocol
from funnel.release.public.findings import PublicRelease
from funnel.release.public_report import Figures
from funnel.release.report_parts import nats_of
from funnel.spec import ReleaseSpec

# Of utilities, as tables of mechanisms tell them.
_UNIT = {"information": "in nats", "variance": "as a share of the variance", "estimation": "as a share of the records"}


def describe_run(spec: ReleaseSpec, published: Published, protocol: Protocol, public: PublicRelease) -> None:
    """Create the artifacts of one published release.

    The orchestrator's database is read by others than the steward, so they are made of what the public files are made
    of, and of nothing else.
    """
    distributions, findings = public.distributions, public.findings
    create_markdown_artifact(_summary(spec, published, protocol, findings.figures), key=f"{spec.name}-summary")
    lifts = [
        {
            "secret": secret,
            **{output: _number(value) for output, value in zip(protocol.outputs.labels, row, strict=True)},
        }
        for secret, row in zip(distributions.secret.labels, findings.lift, strict=True)
    ]
    create_table_artifact(lifts, key=f"{spec.name}-lift", description=f"P(secret | output) / P(secret), {spec.title}")
    create_table_artifact(
        list(public.mechanisms),
        key=f"{spec.name}-mechanisms",
        description=f"Utility of every mechanism, {_UNIT[spec.utility]}",
    )
    _link_report(spec, published)


def _link_report(spec: ReleaseSpec, published: Published) -> None:
    if (address := report_address(spec, published.version, published.report)) is not None:
        create_link_artifact(
            address,
            key=f"{spec.name}-report",
            link_text="Audit report",
            description=f"{spec.title} {published.version}",
        )


def report_address(spec: ReleaseSpec, version: str, report: str) -> str | None:
    """Where a browser opens the public report of a version; None where only a folder of this machine is known.

    A page that came over http may not link to a file, so that such a link would be dead.
    """
    if spec.output.served_at is not None:
        return f"{spec.output.served_at.rstrip('/')}/{spec.name}/{version}/report.html"
    return report if urlsplit(report).scheme in ("http", "https") else None


def describe_held(spec: ReleaseSpec, told: Mapping[str, Any]) -> None:
    """Create the artifact of a version that waits for approval: which it is, where to look, and what to do."""
    lines = [
        f"# {plain(spec.title)} {told['version']} waits for approval",
        "",
        f"- **Records**: {told['rows']:,}",
        f"- **Folder**: `{told['folder']}`",
        f"- **Report**: `{told['report']}`",
        "",
        "It passed its validation and is not published. `funnel approve SPEC --approver NAME` publishes it; with",
        "`--reject REASON` it is removed.",
    ]
    create_markdown_artifact("\n".join(lines), key=f"{spec.name}-approval", description=spec.title)


def describe_plan(told: PlanAnswer) -> list[dict[str, Any]]:
    """Create the artifacts of a plan; the comparison of mechanisms is returned too."""
    create_table_artifact(
        told.mechanisms, key="funnel-plan", description=f"Utility of every mechanism, {_UNIT[told.utility]}"
    )
    if told.history is not None:
        create_table_artifact(
            told.history,
            key="funnel-plan-history",
            description="Shares kept given everything published before, by fraction of the budget",
        )
    create_markdown_artifact(told.disclosure, key="funnel-plan-disclosure", description="Rules of disclosure control")
    if told.costs is not None:
        create_table_artifact(told.costs, key="funnel-plan-frequencies", description=told.costs_said)
    elif told.costs_said:
        create_markdown_artifact(told.costs_said, key="funnel-plan-frequencies", description="What noise costs")
    return told.mechanisms


def _together(figures: Figures) -> list[str]:
    """What is public of all versions about the same people; nothing where this one stands alone."""
    found = figures.history
    if found is None:
        return []
    versions = "this and all later versions" if found.versions == 1 else f"all {found.versions:,} versions"
    return [
        f"- **About the same people**: one bound for {versions} together; this one alone would have kept "
        f"{found.share_alone:.1%}; earlier versions take at most {found.outside_at_most:.1%} of the people out of it, "
        "as frequencies changed or as earlier values go with a later secret"
    ]


def _summary(spec: ReleaseSpec, published: Published, protocol: Protocol, figures: Figures) -> str:
    # Under noise nobody is told how many values the public counts do not have.
    outside = "" if figures.outside is None else f", of them {figures.outside:,} outside the alphabet"
    return "\n".join(
        [
            f"# {plain(spec.title)} {published.version}",
            "",
            f"- **Bound**: {spec.guarantee.canonical} on {plain(', '.join(spec.secret))}",
            f"- **Level at most**: {nats_of(figures.level):.12g} nats",
            *(
                []
                if figures.explained is None
                else [f"- **Variance explained**: {figures.explained:.1%}, what the protocol was chosen by"]
            ),
            f"- **Utility**: {figures.utility:.4g} nats, {figures.share:.1%} of what there is to know",
            *_together(figures),
            f"- **Mechanism**: {protocol.mechanism}",
            f"- **Records**: {figures.rows:,}{outside}",
            f"- **Report**: `{published.report}`",
        ]
    )


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
