"""Protect: from exact counts to public ones; what comes after it sees no others."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from funnel.pipeline.tasks.estimate import Estimated
from funnel.pipeline.tasks.step import step, tell
from funnel.release.decision import Earlier
from funnel.release.protected import Protected, public_frequencies
from funnel.release.protected_rows import public_rows
from funnel.spec import ReleaseSpec


@step
def protect(
    spec: ReleaseSpec,
    estimated: Estimated,
    earlier: Sequence[Earlier],
    workspace: Path,
    held: Earlier | None = None,
) -> Protected:
    """Make the counts public as the spec asks, or find what was made of the same counts before.

    The one place of the way where counts become public ones. Noise is drawn once for a counted table and its settings,
    and kept: a rerun, a plan and a version of the same counts have the same, and spend nothing again. Where units have
    several rows these are counts of their first rows, with other noise for how the next ones follow.

    Raises
    ------
    SpecError
        If noise would be drawn and more spent than the spec allows in all.
    LedgerError
        If the published frequencies of an earlier version are gone or were changed.
    """
    tell("protecting the frequencies")
    units = estimated.units
    counted = estimated.joint if units is None else units.first
    found = public_frequencies(
        spec, counted, estimated.learned, earlier, workspace, estimated.values, held, several=units is not None
    )
    if units is not None:
        found = public_rows(spec, found, units, estimated.learned, earlier, workspace, held)
    tell("taken from before" if found.reused else "done")
    return found
