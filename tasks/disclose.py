"""Disclose: the public frequencies against the rules of disclosure control, before any row is drawn from them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from funnel.disclosure import Disclosure
from funnel.disclosure.groups import broken_groups
from funnel.disclosure.words import breaches_sentence, disclosure_content, refusal
from funnel.errors import ReleaseRefused
from funnel.frequencies import Frequencies
from funnel.joint import Joint
from funnel.pipeline.tasks.step import step, tell
from funnel.progress import WARNING
from funnel.release.document import dump
from funnel.release.files import private_folder, write_whole
from funnel.spec import ReleaseSpec

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
    found = Disclosure(frequencies.joint, spec.disclosure.rules)
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


@step
def disclose_groups(spec: ReleaseSpec, joint: Joint, groups: Sequence[tuple[str, ...]], workspace: Path) -> None:
    """Hold the table of the secret and every group of columns against [disclosure]; what breaks it, as `disclose`.

    A published text may be a combination of values of a group, as rare as that is. What a record shows of several
    groups is that of many people by another setting: channels are made for no prefix of fewer than ``[groups] people``.

    Parameters
    ----------
    joint : Joint
        Of all published columns.
    groups : sequence of tuple of str
        Those that are published together, as far as it is known: where groups are chosen, columns alone at first.

    Raises
    ------
    ReleaseRefused
        If a rule is broken and the spec does not ask to report that only.
    """
    protection = spec.frequencies.protection
    broken = broken_groups(spec, joint, groups)
    place = workspace / FOUND
    if not broken:
        place.unlink(missing_ok=True)
        tell("every rule holds")
        return
    private_folder(workspace)
    found = [{"group": one.joint.inputs.columns, **disclosure_content(one, protection)} for one in broken]
    write_whole(place, dump({"groups": found}))
    others = ""
    if further := len(broken) - 1:
        others = f"; {further} further group{'s break' if further > 1 else ' breaks'} them as well"
    if spec.disclosure.refuses(protection):
        raise ReleaseRefused(refusal(broken[0], str(place)) + others)
    columns = " with ".join(broken[0].joint.inputs.columns)
    tell(f"warning: of {columns}, {breaches_sentence(broken[0])}{others}; {place} has the values")
