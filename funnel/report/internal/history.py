"""What all versions about the same people come to, as exact figures of the internal report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from funnel.errors import DataError
from funnel.findings.followed import FoundHistory
from funnel.findings.of_release import Findings
from funnel.history.donor_step import over_classes
from funnel.history.guesses import guesses
from funnel.history.movement import movements, new_people
from funnel.history.observed import Observed
from funnel.history.step import Step
from funnel.joint import Joint
from funnel.measures import mutual_information
from funnel.protocol import Protocol
from funnel.register.register import Register
from funnel.release.document import dump
from funnel.release.earlier import Earlier
from funnel.release.findings import FindingsDocument
from funnel.release.internal_report import AttackFigures, DriftFigures, HistoryFigures, RegisterVersion
from funnel.release.record import History


@dataclass(frozen=True, eq=False)
class Together:
    """What the internal report is told of the people of a version and of everything published about them.

    Attributes
    ----------
    register : Register
        As it was before this version.
    step : Step or None
        What was decided for this version; None where its rows are taken over.
    noted : mapping of str to History
        Of every version in the register, by its name there, what its record says; of those whose records are here.
    people : Observed or None
        Exact counts of the people of this version and of how they changed; where None, those of the step.
    """

    register: Register
    step: Step | None
    noted: Mapping[str, History]
    people: Observed | None = None


def history_figures(
    findings: Findings, together: Together | None, earlier: Iterable[Earlier], name: str
) -> HistoryFigures | None:
    """The part of the document about all versions; None where a version stands alone.

    Parameters
    ----------
    findings : Findings
    together : Together or None
    earlier : iterable of Earlier
        Earlier versions of this series.
    name : str
        Of this version in the register, ``"<series>/<version>"``.
    """
    found = findings.history
    if found is None or together is None:
        return None
    step = together.step
    versions = list(_known(together, earlier))
    if step is not None:
        versions.append(_this(findings, found, name))
    people = together.people or (None if step is None else step.opening.observed)
    return HistoryFigures(
        found=found,
        new=None if step is None else new_people(step.opening.observed),
        before=None if step is None or people is None else movements(step.opening.past, people),
        versions=tuple(versions),
    )


def drift_figures(findings: Findings) -> DriftFigures | None:
    """How frequencies differ from those of the version before; None where nobody compared them."""
    return None if findings.drift is None else DriftFigures.model_validate_json(dump(findings.drift))


def guesses_of_all(step: Step) -> tuple[AttackFigures, ...]:
    """Whoever links everything that was published about a person: before this version, and with it."""
    found = guesses(step)
    told = [("everything published about the person, this version included", found.after, found.information_after)]
    if len(step.opening.past):
        told.insert(0, ("everything published before this version", found.before, found.information_before))
    return tuple(
        AttackFigures(knows=knows, before=found.prior, after=min(1.0, max(after, found.prior)), information=information)
        for knows, after, information in told
    )


def _known(together: Together, earlier: Iterable[Earlier]) -> Iterable[RegisterVersion]:
    alone = dict(_alone(earlier))
    past = together.register.past
    for entry in together.register.entries:
        chapters = [past.chapters[number] for number in together.register.chapters_of(entry.ordinal)]
        noted = together.noted.get(entry.name)
        yield RegisterVersion(
            version=entry.name,
            guarantee=entry.guarantee,
            reserve=entry.reserve,
            people=entry.joint.n,
            histories=sum(len(chapter.followed) for chapter in chapters),
            level=None if noted is None else noted.level,
            moved=None if noted is None else noted.moved,
            outside=None if noted is None else noted.outside,
            share=_share(
                entry.joint, chapters[0].channel if entry.classes is None else over_classes(chapters[0].channel)
            ),
            share_alone=alone.get(entry.name),
        )


def _this(findings: Findings, found: FoundHistory, name: str) -> RegisterVersion:
    return RegisterVersion.like(found, version=name, guarantee=findings.guarantee, people=findings.rows)


def _share(joint: Joint, channel: Protocol) -> float:
    entropy = joint.entropy
    return mutual_information(joint, channel) / entropy if entropy > 0 else 0.0


def _alone(earlier: Iterable[Earlier]) -> Iterable[tuple[str, float]]:
    """What versions of this series would have kept alone, by their name in the register, where findings are there."""
    for one in earlier:
        history = one.record.history
        if one.folder is None or history is None or history.name is None:
            continue
        try:
            found = FindingsDocument.read(one.folder.findings).history
        except DataError:
            continue
        if found is not None:
            yield history.name, found.share_alone
