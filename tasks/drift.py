"""Drift: how frequencies differ from the version before, exact and public, and whether the spec refuses that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from funnel.errors import ReleaseRefused
from funnel.frequencies.public_counts import Frequencies
from funnel.history.changes import Changes
from funnel.history.drift import Drift, drift_between
from funnel.joint import Joint
from funnel.register.register import Register
from funnel.release.documents import JointDocument
from funnel.release.earlier import Earlier
from funnel.release.frequencies_document import FrequenciesDocument
from funnel.spec import ReleaseSpec


def drift_of_same(spec: ReleaseSpec, register: Register, joint: Joint, since: Mapping[int, Changes]) -> Drift | None:
    """Against the newest version of this series in the register, if somebody's last version it is."""
    for ordinal, entry in reversed(list(enumerate(register.entries))):
        if entry.series == spec.name:
            changes = since.get(register.chapters_of(ordinal)[0])
            return None if changes is None else drift_between(entry.joint, joint, changes)
    return None


def drift_of_units(spec: ReleaseSpec, register: Register, first: Joint) -> Drift | None:
    """The same of people with several rows: first rows are compared, one of each, as if they were other people's."""
    for entry in reversed(register.entries):
        if entry.series == spec.name:
            return drift_between(entry.first_rows or entry.joint, first)
    return None


def drift_of_others(earlier: Sequence[Earlier], joint: Joint) -> Drift | None:
    """Against the newest version that is there, whose people are others."""
    there = [one for one in earlier if one.published and one.folder is not None]
    if not there:
        return None
    path = max(there, key=lambda one: one.version).place.joint
    return drift_between(JointDocument.read(path).joint, joint) if path.is_file() else None


def public_drift(earlier: Sequence[Earlier], frequencies: Frequencies) -> Drift | None:
    """The same between public frequencies, where noise protects them: whether a version is refused is public too.

    What noise adds to counts can look like drift where they are small; it never hides any that is not of its size.
    """
    if frequencies.noise is None:
        return None
    noisy = [one for one in earlier if one.published and one.folder is not None and _has_noise(one)]
    if not noisy:
        return None
    newest = max(noisy, key=lambda one: one.version)
    before = FrequenciesDocument.read(newest.place.frequencies).frequencies
    return drift_between(before.joint.as_published, frequencies.joint.as_published)


def _has_noise(one: Earlier) -> bool:
    return one.record.frequencies.noisy is not None


def reported(spec: ReleaseSpec, drift: Drift | None, public: Drift | None = None) -> dict[str, Any] | None:
    """A drift as findings keep it.

    Parameters
    ----------
    spec : ReleaseSpec
    drift : Drift or None
        Exact, for the internal evidence.
    public : Drift or None
        Of public frequencies, where they have noise: what a refusal is decided by then, and says.

    Raises
    ------
    ReleaseRefused
        If there is one and the spec refuses that.
    """
    if drift is None:
        return None
    decided = spec.frequencies.kind.exact(drift) or public
    if decided is not None and decided.drifted and spec.history is not None and spec.history.on_drift == "fail":
        said = decided.sentence.rstrip(".").replace(". ", "; ")
        raise ReleaseRefused(
            f'nothing was drawn: the frequencies drifted since the version before, and [history] on_drift = "fail": '
            f"{said}"
        )
    return {**drift.to_dict(), "sentence": drift.sentence}
