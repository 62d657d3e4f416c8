"""Addresses: a release audited where it is, in a folder or at a URL."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from funnel.audit.check import Result
from funnel.audit.files import read_document
from funnel.audit.recheck import Told, recheck
from funnel.errors import SpecError
from funnel.progress import Progress
from funnel.release.fetch import fetch_index, fetch_release
from funnel.release.layout import find_release, last_part, led_by_latest
from funnel.storage import base_name, check_address, local_path


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
