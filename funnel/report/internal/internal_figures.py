"""The document of the internal report, made of the exact evidence on a release."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence

import numpy as np

from funnel.estimation.expected_errors import expected_errors
from funnel.findings import Audited, Findings
from funnel.findings.population import in_population
from funnel.joint import Joint
from funnel.measures import secret_output_distribution
from funnel.release.comparison import ComparedMechanism
from funnel.release.internal_report import (
    DisclosureFigures,
    DriftFigures,
    ExactFigures,
    ExactLift,
    ExactWitness,
    HistoryFigures,
    InternalReport,
    RareCombination,
    Sparse,
)
from funnel.release.provenance import installed
from funnel.release.public_accuracy import estimated
from funnel.release.report_parts import EstimatedTable
from funnel.release.verdict import Verdict
from funnel.report.content import ReportContent, protected_frequencies
from funnel.report.internal.attacks import Attacks
from funnel.report.public.report_tables import furthest

# What judges and attacks, beside the libraries that compute.
_JUDGES = ("great-expectations", "scikit-learn", "duckdb", "prefect")
MAX_LIFTS = 30
MAX_RARE = 30


def internal_report(
    content: ReportContent,
    verdict: Verdict,
    compared: Sequence[ComparedMechanism],
    attacks: Attacks,
    *,
    software: Mapping[str, str],
    history: HistoryFigures | None = None,
    drift: DriftFigures | None = None,
    set_aside: tuple[str, ...] = (),
) -> InternalReport:
    """Every figure of the internal report.

    What all versions come to is of `funnel.report.internal.history`.
    """
    joint = content.joint
    return InternalReport.like(
        content,
        guarantee=str(content.guarantee),
        mechanism=content.protocol.mechanism,
        secret=joint.secret.columns,
        published=joint.over_published(content.protocol.outputs.columns).inputs.columns,
        figures=_figures(content.findings, content.audited),
        lifts=_lifts(content),
        lifts_total=int((~np.isnan(content.findings.lift)).sum()),
        sparse=_sparse(joint),
        population=in_population(joint, content.protocol, content.guarantee),
        **vars(attacks),
        history=history,
        drift=drift,
        verdict=verdict.results,
        compared=tuple(compared),
        frequencies=protected_frequencies(content),
        set_aside=set_aside,
        within=_within(content),
        software={**software, **_other_software(), "python": platform.python_version(), "system": platform.platform()},
        estimated=_estimated(content),
        disclosure=None if content.disclosure is None else DisclosureFigures.model_validate(content.disclosure),
    )


def _other_software() -> dict[str, str]:
    return {name: found for name in _JUDGES if (found := installed(name)) is not None}


def _figures(found: Findings, audited: Audited) -> ExactFigures:
    return ExactFigures.like(
        found,
        holds=audited.distribution.holds,
        witness=ExactWitness(
            output=found.witness_output,
            secret=found.witness_secret,
            other_secret=found.witness_other_secret,
            upward=found.witness_upward,
            given=found.witness_given,
            ratio=found.level_ratio,
        ),
        guess_accuracy=found.guess_accuracy,
        explained=None if found.explained is None else found.explained.share,
    )


def _estimated(content: ReportContent) -> tuple[EstimatedTable, ...]:
    """Of the exact counts; empty where there are too many values."""
    published = content.joint.over_published(content.protocol.outputs.columns)
    errors = expected_errors(published, content.protocol)
    return () if errors is None else estimated(errors.tables)


def _within(content: ReportContent) -> bool | None:
    """Whether the exact counts are what the noise leaves open: it fails with probability beta."""
    bounds = content.audited.frequencies.joint.bounds
    return None if bounds is None else bounds.hold(content.joint.counts)


def _lifts(content: ReportContent) -> tuple[ExactLift, ...]:
    """The lifts furthest from 1, one that excludes a secret first."""
    joint, lift = content.joint, content.findings.lift
    # Records expected of each (secret, output), from the exact counts.
    both = secret_output_distribution(joint, content.protocol) * joint.n
    size = np.abs(np.log(lift, out=np.full(lift.shape, -np.inf), where=lift != 0)).ravel()
    return tuple(
        ExactLift(
            secret=joint.secret.labels[s],
            output=content.protocol.outputs.labels[y],
            lift=float(lift[s, y]),
            secret_records=int(joint.counts[s].sum()),
            output_expected=float(both[:, y].sum()),
            both_expected=float(both[s, y]),
        )
        for s, y in furthest(size, lift.shape[1], MAX_LIFTS)
    )


def _sparse(joint: Joint) -> Sparse:
    counts = joint.counts
    flat = counts.ravel()
    there = np.flatnonzero(flat)
    rarest = there[np.argsort(flat[there], kind="stable")[:MAX_RARE]]
    return Sparse(
        combinations=int(flat.size),
        empty=int((flat == 0).sum()),
        single=int((flat == 1).sum()),
        below_five=int(((flat > 0) & (flat < 5)).sum()),
        below_ten=int(((flat > 0) & (flat < 10)).sum()),
        single_inputs=int((counts.sum(axis=0) == 1).sum()),
        rarest=tuple(
            RareCombination(
                secret=joint.secret.labels[i // counts.shape[1]],
                input=joint.inputs.labels[i % counts.shape[1]],
                records=int(flat[i]),
            )
            for i in rarest
        ),
    )
