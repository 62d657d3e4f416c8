"""What a run leaves in the orchestrator's interface: a summary, the lifts, the comparison, a link to the report."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from prefect.artifacts import create_link_artifact, create_markdown_artifact, create_table_artifact

from funnel.pipeline.tasks.publish import Published
from funnel.protocol import Protocol
from funnel.release.public import PublicFindings, PublicRelease
from funnel.spec import ReleaseSpec
from funnel.storage import is_url


def describe_run(spec: ReleaseSpec, published: Published, protocol: Protocol, public: PublicRelease) -> None:
    """Create the artifacts of one published release.

    The orchestrator's database is read by others than the steward, so they are made of what the public files are made
    of, and of nothing else.
    """
    laws, findings = public.laws, public.findings
    create_markdown_artifact(_summary(spec, published, protocol, findings), key=f"{spec.name}-summary")
    lifts = [
        {
            "secret": secret,
            **{output: _number(value) for output, value in zip(protocol.outputs.labels, row, strict=True)},
        }
        for secret, row in zip(laws.secret.labels, findings.lift, strict=True)
    ]
    create_table_artifact(lifts, key=f"{spec.name}-lift", description=f"P(secret | output) / P(secret), {spec.title}")
    create_table_artifact(
        list(public.mechanisms), key=f"{spec.name}-mechanisms", description="Utility of every mechanism, in nats"
    )
    create_link_artifact(
        published.report if is_url(published.report) else Path(published.report).as_uri(),
        key=f"{spec.name}-report",
        link_text="Audit report",
        description=spec.title,
    )


def describe_held(spec: ReleaseSpec, told: Mapping[str, Any]) -> None:
    """Create the artifact of a version that waits for approval: which it is, where to look, and what to do."""
    lines = [
        f"# {_plain(spec.title)} {told['version']} waits for approval",
        "",
        f"- **Records**: {told['rows']:,}",
        f"- **Folder**: `{told['folder']}`",
        f"- **Report**: `{told['report']}`",
        "",
        "It passed its validation and is not published. `funnel approve SPEC --by NAME` publishes it; with",
        "`--reject REASON` it is removed.",
    ]
    create_markdown_artifact("\n".join(lines), key=f"{spec.name}-approval", description=spec.title)


def _summary(spec: ReleaseSpec, published: Published, protocol: Protocol, findings: PublicFindings) -> str:
    return "\n".join(
        [
            f"# {_plain(spec.title)} {published.version}",
            "",
            f"- **Bound**: {findings.guarantee} on {_plain(', '.join(spec.secret))}",
            f"- **Level at most**: {findings.level:.12g} nats",
            f"- **Utility**: {findings.utility:.4g} nats, {findings.share:.1%} of what there is to know",
            f"- **Mechanism**: {protocol.mechanism}",
            f"- **Records**: {findings.rows:,}, of them {findings.outside:,} outside the alphabet",
            f"- **Folder**: `{published.folder}`",
        ]
    )


def _plain(text: str) -> str:
    """Text of a spec without what markdown would read as markup."""
    return "".join("\\" + c if c in r"\`*_{}[]<>#|!" else c for c in text)


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
