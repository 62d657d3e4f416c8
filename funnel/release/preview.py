"""Preview: the exact and the public counts that the next release of a spec would be made from; nothing is released."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from funnel.frequencies.selection import NOTHING, Share
from funnel.joint import Joint
from funnel.progress import Progress
from funnel.register.register import Register
from funnel.release.decision import Earlier
from funnel.release.learned import learned_codings, recall_values, values_digest
from funnel.release.protected import Protected, public_frequencies
from funnel.release.series import Series
from funnel.source import count_joint, open_source
from funnel.spec import ReleaseSpec


@dataclass(frozen=True, eq=False)
class Preview:
    """Counts of the source as it is now.

    Attributes
    ----------
    counted : Joint
        Exact; only what follows people with histories may see them.
    protected : Protected
    learned : Share
        What learning its values cost.
    earlier : sequence of Earlier
        All versions of the series; empty without noise.
    held : Earlier or None
        One that waits for approval.
    """

    counted: Joint
    protected: Protected
    learned: Share = NOTHING
    earlier: Sequence[Earlier] = ()
    held: Earlier | None = None


def preview(spec: ReleaseSpec, progress: Progress) -> Preview:
    """Count a source, and protect its frequencies as the next release would: with the same noise.

    That is drawn if it was not before, and kept in the workspace: a release, or another preview, of the same counts
    uses it, so that looking costs nothing.

    Raises
    ------
    SpecError, DataError
        If the source does not fit the spec.
    LedgerError
        If it is not known what was published before.
    """
    source = open_source(spec)
    workspace = spec.workspace_folder / spec.name
    noisy = spec.frequencies.protection == "noise"
    series = Series.of(spec) if noisy else None
    earlier = () if series is None else series.earlier
    waiting = None if series is None else series.held.waiting
    held = None if waiting is None else waiting.held
    digest = source.files.digest() if noisy else ""
    if noisy:
        recall_values((*earlier, *([] if held is None else [held])), workspace)
    codings = learned_codings(spec, source, digest, workspace, progress)
    counted = count_joint(spec, progress, source, codings)
    values = values_digest(spec, digest)
    moving = spec.register is not None and bool(Register.of(spec.workspace_folder, spec.register).entries)
    protected = public_frequencies(spec, counted, codings.learned, earlier, workspace, values, held, moving)
    return Preview(counted, protected, codings.learned, earlier, held)
