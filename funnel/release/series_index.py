"""Series index: the signed list of all versions of a series beside them, by which readers know an old copy as one."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import Field, model_validator

from funnel.errors import DataError
from funnel.release.document import Part, Sha256, VersionText
from funnel.release.files import open_to_all, sync_folder, write_whole
from funnel.release.layout import INDEX, SIGNATURE_FILE, Version
from funnel.release.record import Record
from funnel.release.signature import SignedDocument, public_key_of, signing_key


class ListedVersion(Part):
    """One version of a series.

    Attributes
    ----------
    version : str
    signature : str
        SHA-256 (hex) of its ``signature.json``, which has the digests of all its other public files.
    withdrawn : bool
        Whether the publisher took it away again.
    """

    version: VersionText
    signature: Sha256
    withdrawn: bool


class VersionList(Part):
    """All versions of a series that were ever published, withdrawn ones too.

    Attributes
    ----------
    series : str
    versions : tuple of ListedVersion
        Oldest first, each once.
    """

    series: str = Field(min_length=1)
    versions: tuple[ListedVersion, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _in_order(self) -> VersionList:
        numbers = [Version.parse(one.version) for one in self.versions]
        if numbers != sorted({number for number in numbers if number is not None}):
            raise ValueError("does not list every version once, oldest first")
        return self

    @property
    def newest(self) -> str | None:
        """The newest version that was not withdrawn; None where all were."""
        return next((one.version for one in reversed(self.versions) if not one.withdrawn), None)

    def find(self, version: str) -> ListedVersion | None:
        """What is listed of a version; None where nothing is."""
        return next((one for one in self.versions if one.version == version), None)


class SeriesIndex(SignedDocument):
    """The versions of a series, signed with the publisher's key; public, as ``versions.json`` beside the versions.

    The signature is of the line ``funnel/series/1`` and the list as JSON with sorted keys, in ASCII, without spaces.

    Attributes
    ----------
    listed : VersionList
    """

    described: ClassVar[str] = "the series index"
    signs, line = "listed", b"funnel/series/1\n"
    schema_: Literal["funnel/versions/1"] = Field(default="funnel/versions/1", alias="schema")
    listed: VersionList


def list_versions(
    series: str, known: Mapping[Version, Record], published: Collection[Version], listed: Iterable[ListedVersion] = ()
) -> VersionList | None:
    """The list of a series, from the records of its workspace and the versions that are there.

    Parameters
    ----------
    series : str
    known : mapping of Version to Record
        Of every version that was ever published.
    published : collection of Version
        Those that are there now.
    listed : iterable of ListedVersion
        What was listed before: a version that was ever listed stays so, whatever became of its record.

    Returns
    -------
    VersionList or None
        None where no version was ever signed.
    """
    digests = {Version.parse(one.version): one.signature for one in listed}
    for version, record in known.items():
        if (digest := record.files.get(SIGNATURE_FILE)) is not None:
            digests[version] = digest
    found = tuple(
        ListedVersion(version=str(version), signature=digests[version], withdrawn=version not in published)
        for version in sorted(version for version in digests if version is not None)
    )
    return VersionList(series=series, versions=found) if found else None


def index_of(
    root: Path, known: Mapping[Version, Record], published: Collection[Version], workspace: Path
) -> bytes | None:
    """What ``versions.json`` in the folder of a series has to hold, signed with the key of the workspace.

    Parameters
    ----------
    root : Path
        Folder of the series, by whose name it is known.
    known, published
        As `list_versions` takes them.
    workspace : Path

    Returns
    -------
    bytes or None
        None where there is nothing to list.

    Raises
    ------
    SpecError
        If others may read the signing key, or it is damaged.
    """
    path, key = root / INDEX, public_key_of(workspace)
    if key is None and path.is_file():
        # Where the workspace is lost, no other key takes the place of the one that readers know.
        return path.read_bytes()
    versions = list_versions(root.name, known, published, _listed(path, key))
    # A signature by Ed25519 is a function of the key and of what is signed.
    return None if versions is None else SeriesIndex.signed(versions, signing_key(workspace)).to_bytes()


def write_index(
    root: Path, known: Mapping[Version, Record], published: Collection[Version], workspace: Path
) -> bytes | None:
    """Bring ``versions.json`` up to date; what it holds, as `index_of` has it."""
    path, content = root / INDEX, index_of(root, known, published, workspace)
    if content is None:
        return None
    if not path.is_file() or path.read_bytes() != content:
        write_whole(path, content)
        sync_folder(root)
    open_to_all(path)
    return content


def _listed(path: Path, key: str | None) -> tuple[ListedVersion, ...]:
    """What the index that is there lists, if it was signed with this key."""
    try:
        index = SeriesIndex.read(path)
    except DataError:
        return ()
    return index.listed.versions if index.public_key == key and index.holds() else ()
