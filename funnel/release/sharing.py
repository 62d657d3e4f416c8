"""A published version somewhere else too: its public files at any URL, whole or not at all, as often as one likes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from funnel.errors import DataError, OutputError
from funnel.progress import Progress
from funnel.release.layout import INDEX, SIGNATURE_FILE, ReleaseFolder, Version, find_release
from funnel.release.remote import RemoteSeries
from funnel.release.series_index import SeriesIndex
from funnel.release.signature import SignatureDocument
from funnel.release.validated import public_digests
from funnel.storage import attempt, filesystem, joined


@dataclass(frozen=True)
class Shared:
    """What became of it.

    Attributes
    ----------
    place : str
        Where readers find the version now.
    changed : bool
        Whether anything was put there, or it was there already.
    """

    place: str
    changed: bool


@dataclass(frozen=True)
class Whole:
    """A version whose public files are those that were signed, all of them and no other.

    Attributes
    ----------
    folder : ReleaseFolder
    series, version : str
    digests : dict of str to str
        SHA-256 (hex) by path in the folder, that of the signature too.
    index : SeriesIndex or None
        The list of all versions of the series, where it is beside the folder.
    """

    folder: ReleaseFolder
    series: str
    version: str
    digests: dict[str, str]
    index: SeriesIndex | None = None

    @property
    def ordered(self) -> Iterator[tuple[str, Path]]:
        """Path in the folder and file; the data package last: a version is there when that is."""
        last = self.folder.package.name
        for name in sorted(self.digests, key=lambda name: (name == last, name)):
            yield name, self.folder.root / name


def whole_release(path: Path) -> Whole:
    """A version at a path, or the latest of a series, after making sure that it is as it was published.

    Raises
    ------
    DataError
        If there is none, it is not signed, or a file is missing, was changed or came since; or if the series index
        beside it does not list it.
    """
    folder = find_release(path)
    document = SignatureDocument.read(folder.signature)
    if not document.holds():
        raise DataError(f"the signature of {folder.root} does not hold; restore the release from a backup")
    digests, manifest = public_digests(folder.root), document.manifest
    listed = {file.path: file.sha256 for file in manifest.files}
    for name in sorted({*listed, *digests} - {SIGNATURE_FILE}):
        if listed.get(name) != digests.get(name):
            what = "is missing" if name not in digests else "was changed" if name in listed else "came"
            raise DataError(
                f"{name} of {folder.root} {what} since the release was signed; restore the release from a backup"
            )
    beside = folder.root.parent / INDEX
    index = SeriesIndex.read(beside) if beside.is_file() else None
    if index is not None:
        listed_as = index.listed.find(manifest.version)
        same = (index.listed.series, index.public_key) == (manifest.series, document.public_key) and index.holds()
        if not same or listed_as is None or listed_as.signature != digests[SIGNATURE_FILE]:
            raise DataError(
                f"{beside} is no signed list with this version of {manifest.series}; restore it from a backup"
            )
    return Whole(folder, manifest.series, manifest.version, digests, index)


def share_at(release: Whole, url: str, progress: Progress) -> Shared:
    """Put the public files of a version below an fsspec URL, as ``<url>/<name>/<version>``, and let ``latest`` name it.

    The data package goes last, and a version without one is none; so whatever a killed run leaves, readers find a
    version whole or not at all, and running again finishes it.

    Parameters
    ----------
    release : Whole
    url : str
    progress : Progress

    Raises
    ------
    OutputError
        If it cannot be written, or another version of this number is there, or an index with versions that the one
        here does not list.
    """
    version = Version.parse(release.version)
    if version is None:
        raise DataError(f"{release.version} is no version; the release is damaged")
    series = RemoteSeries(joined(url, release.series))
    place = joined(series.url, release.version)
    _require_no_newer(release, series)
    changed = version not in series.published
    if changed:
        series.upload(version, release.folder, progress)
    else:
        _require_same(release, place)
    series.put_index(None if release.index is None else release.index.to_bytes())
    series.point_latest()
    return Shared(place, changed)


def _require_same(release: Whole, place: str) -> None:
    """The signature there is the one here: it has the digests of all other files."""
    storage, inside = filesystem(joined(place, SIGNATURE_FILE))

    def there() -> bytes | None:
        return bytes(storage.cat_file(inside)) if storage.exists(inside) else None

    if attempt(there, place, OutputError) != release.folder.signature.read_bytes():
        raise OutputError(f"{place} holds another release of this name and version; share under another URL")


def _require_no_newer(release: Whole, series: RemoteSeries) -> None:
    """The index there lists nothing that the one here does not: what was known of the series stays known."""
    there = None if release.index is None else series.read_index()
    if there is None or release.index is None:
        return
    known = SeriesIndex.from_json(there, joined(series.url, INDEX)).listed.versions
    unknown = [one.version for one in known if release.index.listed.find(one.version) is None]
    if unknown:
        raise OutputError(
            f"{joined(series.url, INDEX)} lists version {unknown[0]}, which the index here does not; share from the "
            "folder where that version was published"
        )
