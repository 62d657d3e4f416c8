"""What runs leave in the orchestrator's interface: of a release its summary, lifts and report, of a plan its tables."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from prefect.artifacts import create_link_artifact, create_markdown_artifact, create_table_artifact

from funnel.disclosure.outlook import DisclosureOutlook
from funnel.disclosure.words import public_sentence
from funnel.frequencies.outlook import NO_COST, NoiseOutlook
from funnel.guarantees import Guarantee
from funnel.history.outlook import Outlook
from funnel.pipeline.flows.telling import plain
from funnel.pipeline.tasks.publish import Published
from funnel.planning import PlanRow
from funnel.protocol import Protocol
from funnel.release.public import (
    PublicFindings,
    PublicRelease,
    compared,
    costed,
    public_text,
    share_step,
    weighed,
)
from funnel.spec import ReleaseSpec


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
        "It passed its validation and is not published. `funnel approve SPEC --by NAME` publishes it; with",
        "`--reject REASON` it is removed.",
    ]
    create_markdown_artifact("\n".join(lines), key=f"{spec.name}-approval", description=spec.title)


@dataclass(frozen=True)
class Planned:
    """What a plan found, exactly as it was found.

    Attributes
    ----------
    spec : ReleaseSpec
    guarantee : Guarantee
    n : int
        Records.
    rows : sequence of PlanRow
    history : Outlook or None
        Given everything published before, where the spec is of the same people.
    disclosure : DisclosureOutlook
    costing : bool
        Whether it was asked what noise costs.
    noise : NoiseOutlook or None
        None where it was not asked, or the bound is none that covers noise.
    """

    spec: ReleaseSpec
    guarantee: Guarantee
    n: int
    rows: Sequence[PlanRow]
    history: Outlook | None
    disclosure: DisclosureOutlook
    costing: bool
    noise: NoiseOutlook | None

    @property
    def is_noisy(self) -> bool:
        """Whether all of it was made from noisy counts, so that values may be named."""
        return self.spec.frequencies.protection == "noise"


def describe_plan(planned: Planned) -> list[dict[str, Any]]:
    """Create the artifacts of a plan, as precise as public files are; the comparison of mechanisms is returned too."""
    step, guarantee = share_step(planned.n), planned.guarantee
    rows = [compared(row.to_dict(), step, guarantee) for row in planned.rows]
    create_table_artifact(rows, key="funnel-plan", description="Utility of every mechanism, in nats")
    if planned.history is not None:
        create_table_artifact(
            weighed(planned.history.to_dict(), step),
            key="funnel-plan-history",
            description="Shares kept given everything published before, by reserve",
        )
    create_markdown_artifact(
        _disclosed(planned, step), key="funnel-plan-disclosure", description="Rules of disclosure control"
    )
    if planned.noise is not None:
        create_table_artifact(
            costed(planned.noise.to_dict(), step, guarantee),
            key="funnel-plan-frequencies",
            description=_costs(planned.noise, step, guarantee, planned.is_noisy),
        )
    elif planned.costing:
        create_markdown_artifact(NO_COST, key="funnel-plan-frequencies", description="What noise costs")
    return rows


def _disclosed(planned: Planned, step: float) -> str:
    """What of the rules does not hold, what would come of it, and what mends it; values only where noise hides who."""
    found = planned.disclosure
    lines = [
        f"# {plain(planned.spec.title)}",
        "",
        plain(public_sentence(found.found, planned.spec.frequencies.protection)),
    ]
    if not found.found.passes:
        lines += ["", "A release would be refused." if found.refuses else "A release would tell of it."]
    if found.suggestion is None:
        return "\n".join(lines)
    if not planned.is_noisy:
        lines += ["", "Which values to group is told to the steward alone: `funnel plan SPEC --suggest`."]
        return "\n".join(lines)
    for said in found.suggested():
        lines += ["", plain(public_text(said, step, planned.guarantee))]
    # Indented, so that no value can end the block.
    return "\n".join([*lines, "", *(f"    {line}" for line in found.suggestion.toml.splitlines())])


def _costs(noise: NoiseOutlook, step: float, guarantee: Guarantee, is_noisy: bool) -> str:
    """What the table of costs is of, and what would help where there are too few records."""
    said = (
        f"Share of H(X) kept under {guarantee} by epsilon of the frequencies (the spec has {noise.epsilon:g}) and "
        "number of records, these having the same frequencies; and the level, for the worst counts that the noise "
        "leaves open, of the protocol that is made without noise"
    )
    if noise.sentence is None:
        return said
    # What would help names values of the secret.
    helps = public_text(noise.sentence, step, guarantee) if is_noisy else "the table is too small for it"
    return f"{said}. {helps[:1].upper()}{helps[1:]}"


def _together(findings: PublicFindings) -> list[str]:
    """What is public of all versions about the same people; nothing where this one stands alone."""
    found = findings.history
    if found is None:
        return []
    versions = "this and all later versions" if found.versions == 1 else f"all {found.versions:,} versions"
    return [
        f"- **About the same people**: one bound for {versions} together; this one alone would have kept "
        f"{found.share_alone:.1%}; frequencies alone move at most {found.outside_at_most:.1%} of the people out of it"
    ]


def _summary(spec: ReleaseSpec, published: Published, protocol: Protocol, findings: PublicFindings) -> str:
    # Under noise nobody is told how many values the public counts do not have.
    outside = "" if findings.outside is None else f", of them {findings.outside:,} outside the alphabet"
    return "\n".join(
        [
            f"# {plain(spec.title)} {published.version}",
            "",
            f"- **Bound**: {findings.guarantee} on {plain(', '.join(spec.secret))}",
            f"- **Level at most**: {findings.level:.12g} nats",
            f"- **Utility**: {findings.utility:.4g} nats, {findings.share:.1%} of what there is to know",
            *_together(findings),
            f"- **Mechanism**: {protocol.mechanism}",
            f"- **Records**: {findings.rows:,}{outside}",
            f"- **Report**: `{published.report}`",
        ]
    )


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
