"""Disclose: the public frequencies against the rules of disclosure control, before any row is drawn from them."""

from __future__ import annotations

from pathlib import Path

from funnel.disclosure import Disclosure
from funnel.disclosure.rule_texts import breaches_sentence, disclosure_content, refusal
from funnel.errors import ReleaseRefused
from funnel.frequencies import Frequencies
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
    found = Disclosure(frequencies.joint, spec.rules)
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
