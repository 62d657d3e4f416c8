"""Protect and disclose: from exact counts to public ones, held against the rules; later steps see no others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from funnel.disclosure import Disclosure
from funnel.disclosure.rule_texts import breaches_sentence, disclosure_content, refusal
from funnel.errors import ReleaseRefused
from funnel.frequencies.public_counts import Frequencies
from funnel.joint import IntArray
from funnel.pipeline.tasks.run import Run
from funnel.pipeline.tasks.step import step, tell
from funnel.progress import WARNING
from funnel.register.look_up import People
from funnel.register.units import Units
from funnel.release.decision import Draw, TakeOver
from funnel.release.document import dump
from funnel.release.files import private_folder, write_whole
from funnel.release.protected import Protected, require_records
from funnel.release.protected_tables import (
    Averages,
    changes_of,
    public_averages,
    public_changes,
    public_counts,
)
from funnel.spec import ReleaseSpec


@step
def protect(
    run: Run,
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
    estimated, register, context = run.estimated, run.register, run.protecting
    moving = register is not None and len(register.entries) > 0
    if register is not None:
        require_records(context, [one.name for one in register.entries])
    found = public_counts(context, estimated.joint, estimated.units, estimated.values, moving)
    tell("taken from before" if found.reused else "done")
    return found


def protect_changes(
    run: Run, decision: Draw | TakeOver, protected: Protected, people: People | Units | None
) -> Protected:
    """Make public how people changed since earlier versions, once it is decided that there will be another one.

    Rows that are taken over were drawn by changes that are public already.

    Parameters
    ----------
    people : People, Units or None
        Who has which history, where they are followed.

    Raises
    ------
    SpecError, LedgerError
        As `protect`.
    """
    register = run.register
    if register is None:
        return protected
    if people is None:
        return changes_of(run.protecting, protected, decision.rows_of) if isinstance(decision, TakeOver) else protected
    tell("protecting changes")
    return public_changes(
        run.protecting, protected, people.moves(register), [distribution for _, distribution in register.distributions]
    )


def protect_averages(
    run: Run, protected: Protected, name: Averages, exact: Callable[[float], tuple[IntArray, int]]
) -> Protected:
    """Make public means, by which answers are put right, or departures from what is expected, as `public_averages`.

    Raises
    ------
    SpecError, LedgerError
        As `protect`.
    """
    tell(f"protecting {name}")
    return public_averages(run.protecting, protected, name, exact)


FOUND = "disclosure.json"


@step
def disclose(spec: ReleaseSpec, frequencies: Frequencies, workspace: Path) -> Disclosure:
    """Hold the public counts against [disclosure]; values that break a rule are named in the workspace alone.

    Parameters
    ----------
    spec : ReleaseSpec
    frequencies : Frequencies
        The public counts: what every public document is a function of.
    workspace : Path
        Private folder of the series.

    Raises
    ------
    ReleaseRefused
        If a rule is broken and the spec does not ask to report that only.
    """
    found = Disclosure(frequencies.joint.by_class, spec.rules)
    place = workspace / FOUND
    if found.passes:
        place.unlink(missing_ok=True)
        tell("every rule holds")
        return found
    private_folder(workspace)
    write_whole(place, dump(disclosure_content(found, frequencies.protection)))
    if spec.disclosure.refuses(frequencies.protection):
        raise ReleaseRefused(refusal(found, str(place)))
    tell(f"{WARNING}{breaches_sentence(found)}; {place} has the values")
    return found
