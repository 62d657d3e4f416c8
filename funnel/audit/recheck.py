"""Checking a release again, from its files alone: the table of checks, and what they amount to."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from funnel.audit import (  # noqa: F401 - each notes the checks that it makes
    arithmetic,
    documentation,
    encoding,
    history,
    labels,
    page,
    protected,
    signing,
    told_secrets,
    unchanged,
)
from funnel.audit.check import NOTED, Check, Result, State, judged, overall
from funnel.audit.context import AuditContext, Coming, Told
from funnel.audit.files import read_document
from funnel.audit.protected import OF_EXPECTED_PEOPLE
from funnel.errors import DataError, FunnelError, ReleaseRefused, SpecError
from funnel.progress import Progress
from funnel.release.fetch import fetch_index, fetch_release
from funnel.release.layout import ReleaseFolder, find_release, last_part, led_by_latest
from funnel.storage import base_name, check_address, local_path

__all__ = ["CHECKS", "Check", "Coming", "Result", "State", "Told", "overall", "recheck", "require_audited"]

# What computing with forged documents ends in: numbers beyond floats, texts for numbers, keys that are not there.
_NONSENSE = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
OF_WRITERS = ("parquet", "drawn numbers table")
"""Checks that another version of pyarrow leaves open, of tables that it wrote."""
# What checks need of public files alone. Two of those are about a signature too, which comes after the validation.
_PUBLIC_FILES = {"public", "table", "counted", "csv", "numbers", "figures", "classes", "invariant", "noise", "exact"}
_PUBLIC_FILES |= {"shuffled"}
_OF_SIGNED_FILES = ("files", "documents")

# In the order of a reader's questions. Are these the files, and do they say what they hold? May they be believed, and
# does the bound hold, as far as public files tell it? The same from the internal evidence, where there is no noise.
_ORDER = """files, signature, documents, values, parquet, csv, drawn numbers, drawn numbers table, package, handouts,
versions, newest version, guarantee, labels, classes, balance, protected frequencies, leakage, distribution, prior,
marginal, utility, frequencies, order, report, report figures, report page, annex, followed figures, secrets, version
before, unchanged, whole records, evidence, leakage, distribution, exact balance, noise, findings, internal report,
verdict, records,
counts, drawing, draws, exact unchanged, texts, record, kept record, histories, spent"""


def _ordered() -> Iterator[Check[AuditContext]]:
    by_name: dict[str, list[Check[AuditContext]]] = {}
    for one in NOTED:
        by_name.setdefault(one.name, []).append(one)
    for name in " ".join(_ORDER.split()).split(", "):
        yield by_name[name].pop(0)
    if left := [name for name, checks in by_name.items() if checks]:
        raise ValueError(f"checks without a place in the order of an audit: {', '.join(left)}")


CHECKS = list(_ordered())
"""Every check of an audit with what it needs, in the order of a reader's questions."""


def recheck(folder: ReleaseFolder, told: Told | None = None) -> list[Result]:
    """Check all of a release that its files tell.

    Parameters
    ----------
    folder : ReleaseFolder
    told : Told, optional
        What is known beside them.

    Returns
    -------
    list of Result
        In the order of a reader's questions: are these the files, do they say what they hold, may they be believed,
        and does the bound hold. What needs internal evidence could not be checked where that is not there.

    Raises
    ------
    DataError
        If a public document of the release cannot be read at all.
    """
    return list(_results(AuditContext(folder, told or Told())))


def _results(known: AuditContext, validated: Collection[str] = ()) -> Iterator[Result]:
    """What all checks find, but those of public files alone that are validated, by their names."""
    try:
        has = known.has
    except _NONSENSE as error:
        raise DataError(f"the documents of the release say what no release says ({type(error).__name__})") from error
    for check in CHECKS:
        if check.name in validated and set(check.needs.split()) <= _PUBLIC_FILES:
            continue
        if check.applies(has) and (found := _verified(check, known)) is not None:
            yield found


def _validated(known: AuditContext) -> set[str]:
    """The checks that the verdict says are passed; that public files are still those of it is a check itself."""
    evidence = known.read_evidence[1]
    if evidence is None or evidence.verdict is None:
        return set()
    return {one.name for one in evidence.verdict.results if one.passed} - {*_OF_SIGNED_FILES, *OF_WRITERS}


def _verified(check: Check[AuditContext], known: AuditContext) -> Result | None:
    """What a check finds; a document that it cannot even compute with, whoever wrote it, does not pass."""
    try:
        return check.verify(known)
    except FunnelError as error:
        if not check.contained:
            raise
        return judged(check.name, [str(error)], "")
    except _NONSENSE as error:
        return judged(check.name, [f"a document says what no release says ({type(error).__name__})"], "")


def is_excused(found: Result, taken_over: bool) -> bool:
    """Whether a version may be published of which a check could not be made; rows may be taken over."""
    if found.failed:
        return False
    return found.detail == OF_EXPECTED_PEOPLE or (taken_over and found.name in OF_WRITERS)


def require_audited(folder: ReleaseFolder, told: Told) -> list[str]:
    """Make sure that a version which is about to be published, or held, passes every check of an audit.

    Checks of public files alone were made when it was validated: the verdict has what they found, and the check of the
    record compares these files with those that the verdict is about. All others are made here.

    Parameters
    ----------
    folder : ReleaseFolder
        Where it was put together, with its verdict, its record, and its signature unless it is held.
    told : Told
        With what is coming. The public checks are among those of the internal audit, so one run is both.

    Returns
    -------
    list of str
        What could not be checked: how rows that are taken over were written, by another version of pyarrow; whether
        the people of a later version are those that its noisy tables lead one to expect.

    Raises
    ------
    ReleaseRefused
        If a check did not pass, or a document cannot be read.
    """
    try:
        known = AuditContext(folder, told)
        checks = list(_results(known, _validated(known)))
    except DataError as error:
        raise ReleaseRefused(f"nothing was published: its own audit failed: {error}") from error
    taken_over = told.coming is not None and told.coming.taken_over
    for check in checks:
        if not check.passed and not is_excused(check, taken_over):
            raise ReleaseRefused(f"nothing was published: its own audit failed: {check.name}: {check.detail}")
    return [f"{check.name} could not be checked: {check.detail}" for check in checks if not check.passed]


def recheck_address(
    address: str, index: str | None, told: Told, progress: Progress, evidence: Path | None = None
) -> tuple[str, list[Result]]:
    """Check the release at an address, and say which folder or URL it was found at.

    Parameters
    ----------
    address : str
        A folder or a URL, of a version or of a series.
    index : str or None
        The series index, a file or a URL, where it is not beside the release.
    told : Told
        What else is known.
    progress : Progress
    evidence : Path, optional
        The folder of the internal evidence, where it is not near the release.

    Raises
    ------
    SpecError
        If an address is none that can be read.
    DataError
        If there is no release, or a public document cannot be read at all.
    """
    place, listed = _local("release", address), None if index is None else _local("index", index)
    with TemporaryDirectory() as folder:
        if index is not None:
            content = fetch_index(index, Path(folder)) if listed is None else read_document(listed)
            told = replace(told, index=content)
        if place is None:
            progress("fetching the release", 0, None)
            fetched = fetch_release(address, Path(folder))
            root, found = fetched.url, fetched.folder
            told = replace(
                told,
                fetched=True,
                unlisted=fetched.unlisted,
                asked=base_name(address.rstrip("/")),
                by_latest=fetched.by_latest,
                index=told.index or fetched.index,
            )
        else:
            found = find_release(place)
            root = str(found.root)
            told = replace(told, asked=last_part(place), by_latest=led_by_latest(place, found))
        if evidence is not None:
            found = replace(found, evidence=evidence.resolve())
        progress("checking the release", 0, None)
        return root, recheck(found, told)


def _local(what: str, address: str) -> Path | None:
    try:
        return local_path(check_address(address))
    except ValueError as error:
        raise SpecError(f"the address of the {what} {error}") from None
