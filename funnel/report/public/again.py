"""The figures of a public report made again from frequencies.json and protocol.json, for audits of public files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from funnel.findings.of_release import Audited, distribution_findings
from funnel.frequencies.public_counts import Frequencies
from funnel.guarantees import parse_guarantee
from funnel.mechanisms import mechanism
from funnel.protocol import Protocol
from funnel.release.protection import Protection
from funnel.release.public import PublicDistributions, PublicFindings
from funnel.release.public.public_distributions import PublicRarity
from funnel.release.public_accuracy import PublicAccuracy
from funnel.release.public_report import Mechanism, PublicReport
from funnel.release.published_values import published_values
from funnel.report.content import Described, PublicContent, SourceNote
from funnel.report.public.public_figures import report_of

# What a report tells of public counts and protocol alone.
COMPUTED = (
    "secret",
    "published",
    "channel",
    "mechanism",
    "figures",
    "beliefs",
    "example",
    "strongest",
    "outputs",
    "heat",
    "lifts",
    "estimation",
    "accuracy",
    "estimated",
    "rarity",
    "frequencies",
)
# Figures of the versions before it and of the numbers that a spec declares, which are checked elsewhere if at all.
_TAKEN = ("history", "explained")


def other_figures(told: PublicReport, frequencies: Frequencies, protocol: Protocol) -> list[str]:
    """The parts of a report that do not follow from public counts and protocol; of `COMPUTED`.

    Parameters
    ----------
    told : PublicReport
        What ``report.json`` tells; whatever is not computed here is taken from it.
    frequencies : Frequencies
        With noise, as ``frequencies.json`` has them.
    protocol : Protocol
        As ``protocol.json`` has it.

    Raises
    ------
    FunnelError
        If the protocol is not one of these counts.
    """
    again, stated = report_of(_content(told, frequencies, protocol)).content(), told.content()
    return [key for key in COMPUTED if _computed(again, key) != _computed(stated, key)]


def _computed(report: Mapping[str, Any], key: str) -> Any:
    found = report[key]
    return {name: value for name, value in found.items() if name not in _TAKEN} if key == "figures" else found


def _content(told: PublicReport, frequencies: Frequencies, protocol: Protocol) -> PublicContent:
    guarantee = parse_guarantee(told.guarantee)
    law = distribution_findings(frequencies.joint, protocol, guarantee, told.estimation.alpha)
    drawn = np.zeros(len(protocol.outputs), dtype=np.int64)
    audited = Audited(frequencies, law, told.figures.rows, None, None, None, drawn)
    laws = PublicDistributions.of(frequencies, protocol)
    described = {part.name: getattr(told, part.name) for part in fields(Described) if hasattr(told, part.name)}
    described |= {
        "source": SourceNote(told.source.title, None, told.source.references),
        "mechanism": Mechanism.like(mechanism(protocol.mechanism)),
        "guarantee": guarantee,
        "covers_versions": bool(told.frequencies.covers_versions),
    }
    return PublicContent(
        **described,
        protocol=protocol,
        protection=Protection.like(told.frequencies),
        released=told.published.columns,
        laws=laws,
        findings=PublicFindings.of(audited, guarantee, laws),
        rarity=PublicRarity.of(frequencies, laws),
        accuracy=PublicAccuracy.of(laws, not published_values(protocol.mechanism).estimator),
        weighted=told.weighted,
        unchanged=told.unchanged,
        alone=told.alone,
        absent=told.absent,
    )
