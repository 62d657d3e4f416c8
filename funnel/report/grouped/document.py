"""The documents of the reports of a grouped release."""

from __future__ import annotations

import math
import platform
from dataclasses import asdict
from functools import partial
from typing import get_args

import numpy as np

from funnel.disclosure.groups import rules_given_prefixes
from funnel.groups.labels import ANY, BUT
from funnel.joint import FloatArray
from funnel.recount.grouped import Followed
from funnel.release.channel_rows import FEWEST
from funnel.release.grouped_report import (
    GroupedFigures,
    GroupedInternalReport,
    GroupedReport,
    ReportedBelief,
    ReportedColumn,
    ReportedGroup,
    ReportedGuess,
    ReportedRules,
    ReportedStage,
    ReportedText,
    TextKind,
)
from funnel.release.provenance import software
from funnel.release.public import count_of_records
from funnel.release.public.rounding import public_shares, rounded, rounded_up, to_multiple
from funnel.release.public_report import Columns, Contact, Licence, ProtectedFrequencies, Reference, Source
from funnel.release.public_weighted import public_weighted
from funnel.release.verdict import Verdict
from funnel.report.estimated import estimated
from funnel.report.grouped.content import GroupedContent

# Digits of standard errors.
_DIGITS = 2
# Of what a channel is made for, so much has to be expected where one is used that was proven.
_THINNEST = 10


def grouped_report(content: GroupedContent) -> GroupedReport:
    """Every figure of the public report, rounded."""
    spec, public, protocol = content.spec, content.public, content.protocol
    metadata = spec.metadata
    return GroupedReport(
        name=spec.name,
        title=spec.title,
        description=spec.description,
        version=content.version,
        created=content.created,
        software=content.software,
        contact=Contact(name=metadata.contact_name, email=metadata.contact_email),
        licence=Licence(name=metadata.licence, url=metadata.licence_url),
        source=Source(
            title=spec.source_title,
            records=public.rows,
            dropped=count_of_records(content.dropped),
            references=tuple(Reference(title=one.title, url=one.path, version=one.version) for one in metadata.sources),
        ),
        recodings=content.recodings,
        random_source=content.random_source,
        shuffled=spec.output.shuffle,
        secret=Columns(columns=spec.secret, values=len(content.joint.secret)),
        guarantee=public.guarantee,
        digest=protocol.digest,
        choice=public.choice,
        groups=_groups(content),
        columns=_columns(content),
        texts=_texts(content),
        figures=GroupedFigures(
            holds=public.holds,
            level=public.level,
            level_factor=rounded_up(math.exp(public.level)),
            utility=public.utility,
            entropy=public.entropy,
            share=public.share,
            rows=public.rows,
        ),
        made_for=public.people,
        least_people=math.ceil(public.people / _THINNEST),
        error=_error(0.5, public.people),
        rules=_rules(content),
        beliefs=_beliefs(content),
        earlier_releases=content.earlier_releases,
        people=None if spec.history is None else spec.history.people,
        change=content.change,
        judged=content.judged,
        frequencies=ProtectedFrequencies(**content.protection.model_dump(), covers_noise=None),
        estimated=estimated(content.errors, partial(rounded_up, digits=_DIGITS)),
        approval=content.approval,
        weighted=public_weighted(content.joint, content.weights, max(FEWEST, public.people)),
        chosen_by=public.chosen_by,
        explained=public.explained,
        worth=public.worth,
    )


def _groups(content: GroupedContent) -> tuple[ReportedGroup, ...]:
    found = []
    for number, stage in enumerate(content.protocol.stages):
        channel = content.shown.channel(stage.columns)
        kept = min(1.0, channel.information / channel.entropy) if channel.entropy > 0 else 1.0
        found.append(
            ReportedGroup(
                columns=stage.columns,
                combinations=len(stage.symbols),
                channels=sum(len(one) > 1 for one in stage.channels),
                kept=to_multiple(kept, content.public.step),
                shared=None if content.public.shared is None else content.public.shared[number],
            )
        )
    return tuple(found)


def _rules(content: GroupedContent) -> ReportedRules | None:
    rules = rules_given_prefixes(content.spec)
    return None if rules is None else ReportedRules(**asdict(rules))


def _columns(content: GroupedContent) -> tuple[ReportedColumn, ...]:
    values = {
        column: len({symbol[j] for symbol in stage.symbols})
        for stage in content.protocol.stages
        for j, column in enumerate(stage.columns)
    }
    return tuple(
        ReportedColumn(
            column=one.column,
            group=one.group,
            values=values[one.column],
            texts=len(content.protocol.labels[one.column]),
            plain=one.plain,
            kept=one.kept,
        )
        for one in content.public.columns
    )


def _texts(content: GroupedContent) -> tuple[ReportedText, ...]:
    """One text of each kind: what the first channels that have one call an output."""
    found: dict[str, ReportedText] = {}
    for stage in content.protocol.stages:
        for channel in stage.channels:
            for label, inputs in zip(channel.labels, channel.inputs, strict=True):
                for j, (text, column) in enumerate(zip(label, stage.columns, strict=True)):
                    of_column = list(dict.fromkeys(symbol[j] for symbol in stage.symbols))
                    mixed = {stage.symbols[x // stage.folds][j] for x in inputs}
                    kind = _kind(text, len(mixed), len(of_column))
                    values = tuple(value for value in of_column if value in mixed)
                    found.setdefault(kind, ReportedText(column=column, text=text, kind=kind, values=values))
    return tuple(found[kind] for kind in get_args(TextKind) if kind in found)


def _kind(text: str, mixed: int, of_column: int) -> TextKind:
    if mixed == of_column and text.startswith(ANY):
        return "anything"
    if mixed == 1:
        return "a value"
    return "all but some" if text.startswith(BUT) else "a set"


def _beliefs(content: GroupedContent) -> tuple[ReportedBelief, ...]:
    step, n = content.public.step, content.public.rows
    prior = public_shares(content.joint.p_secret, step)
    limits = _limits(content, prior, step, n)
    found = []
    for s, label in enumerate(content.joint.secret.labels):
        share = float(prior[s])
        found.append(
            ReportedBelief(
                label=label,
                prior=share,
                least=None if limits is None else rounded(float(limits[0][s]), 3),
                most=None if limits is None else rounded(float(limits[1][s]), 3),
                error=_error(share, content.public.people),
            )
        )
    return tuple(found)


def _limits(content: GroupedContent, prior: FloatArray, step: float, n: int) -> tuple[FloatArray, FloatArray] | None:
    """Least and largest belief that the bound allows under every prior that is rounded to the published one."""
    below = np.where(prior <= step, np.minimum(1 / n, prior), np.clip(prior - step / 2, 0.0, 1.0))
    above = np.where(prior > 0, np.clip(prior + step / 2, 0.0, 1.0), 0.0)
    least, most = (content.guarantee.posterior_limits(one) for one in (below, above))
    if least is None or most is None:
        return None
    return np.clip(least[0], 0.0, 1.0), np.clip(most[1], 0.0, 1.0)


def _error(share: float, people: int) -> float:
    """Standard error of a share among so many people, to two digits."""
    return rounded(math.sqrt(share * (1 - share) / people), _DIGITS) if 0 < share < 1 else 0.0


def grouped_internal_report(content: GroupedContent, followed: Followed, verdict: Verdict) -> GroupedInternalReport:
    """Every figure of the internal report.

    Parameters
    ----------
    content : GroupedContent
    followed : Followed
        All ways of the counted people, followed once more: how many are behind every channel.
    verdict : Verdict
    """
    spec, found = content.spec, content.findings
    return GroupedInternalReport(
        name=spec.name,
        title=spec.title,
        version=content.version,
        created=content.created,
        guarantee=found.guarantee,
        secret=spec.secret,
        choice=found.choice,
        reason=found.reason,
        schedule=found.schedule,
        tried=found.tried,
        holds=found.holds,
        level=found.level,
        decided=found.decided,
        rows=found.rows,
        dropped=found.dropped,
        records=found.records,
        published=found.published,
        single=int((content.joint.counts.sum(axis=0) == 1).sum()),
        utility=found.utility,
        entropy=found.entropy,
        share=found.share,
        people=found.people,
        stages=_stages(followed),
        columns=found.columns,
        guess=_guess(followed),
        p_value=found.consistency.p_value,
        tests=found.consistency.tests,
        verdict=verdict.results,
        software={**software(), "python": platform.python_version(), "system": platform.platform()},
        estimated=estimated(content.errors),
        approval=content.approval,
        chosen_by=found.chosen_by,
        explained=found.explained,
        worth=found.worth,
    )


def _stages(followed: Followed) -> tuple[ReportedStage, ...]:
    stages = []
    for number, stage in enumerate(followed.text.stages):
        behind = [one for one in followed.people if one.stage == number]
        stages.append(
            ReportedStage(
                columns=stage.columns,
                prefixes=followed.prefixes[number],
                channels=len(behind),
                most=max((one.most for one in behind), default=None),
                fewest=min((one.fewest for one in behind), default=None),
                told=followed.told[number],
                rows=sum(len(one.masses) for one in followed.tables if one.stage == number),
                shared=sum(one.together for one in followed.tables if one.stage == number),
            )
        )
    return tuple(stages)


def _guess(followed: Followed) -> ReportedGuess:
    n = sum(followed.sizes)
    unit = followed.text.content["denominator"] ** len(followed.text.stages)
    law = np.array([[mass / unit for mass in masses] for masses in followed.masses.values()]) / n
    prior = np.array(followed.sizes) / n
    some = law > 0
    independent = law.sum(axis=1, keepdims=True) * prior
    told = float((law[some] * np.log(law[some] / independent[some])).sum())
    return ReportedGuess(
        before=float(prior.max()), after=min(1.0, float(law.max(axis=1).sum())), information=max(0.0, told)
    )
