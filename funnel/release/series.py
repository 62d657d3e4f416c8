"""The folder of a release series: one run at a time, leftovers of a killed run removed, earlier versions known."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from funnel.errors import FunnelError, LedgerError, OutputError, PipelineError
from funnel.progress import Progress
from funnel.readers.source_files import file_digest
from funnel.release.earlier import Earlier, record_in
from funnel.release.files import (
    move_version,
    open_to_all,
    private_folder,
    remove_tree,
    remove_version,
    sync_folder,
    sync_tree,
)
from funnel.release.held import HeldVersions
from funnel.release.layout import (
    INCOMING,
    INDEX,
    LATEST,
    OF_SERIES,
    ReleaseFolder,
    Version,
    internal_folder,
    place_of,
    versions,
)
from funnel.release.record import Record, Records
from funnel.release.remote import RemoteSeries
from funnel.release.series_index import index_of, write_index
from funnel.release.validated import require_listed, require_validated
from funnel.release.verdict import Verdict
from funnel.spec import ReleaseSpec
from funnel.storage import joined

# A version that was put together and not published, or not in full; its rows may have been seen.
UNFINISHED = ".unfinished-"


@dataclass(frozen=True)
class Series:
    """The versions of one release.

    Attributes
    ----------
    root : Path
        ``<output folder>/<name>``.
    records : Records
        What was ever published, in the workspace.
    workspace : Path
        Which has the key that the series index is signed with.
    remote : RemoteSeries or None
        Where the public files appear, if not here: then this folder is private and holds the records.
    """

    root: Path
    records: Records
    workspace: Path
    remote: RemoteSeries | None = None

    @classmethod
    def of(cls, spec: ReleaseSpec) -> Series:
        """The series of a spec."""
        remote = None if spec.output_url is None else RemoteSeries(joined(spec.output_url, spec.name))
        root, workspace = spec.output_folder / spec.name, spec.workspace_folder
        return cls(root, Records(workspace / spec.name / "records" / place_of(root, workspace)), workspace, remote)

    @property
    def place(self) -> str:
        """Short digest of where it is, seen from the workspace: one name may stand for several folders."""
        return self.records.folder.name

    @property
    def internal(self) -> Path:
        """The private folder of the internal evidence of all its versions."""
        return internal_folder(self.root, self.workspace)

    @property
    def published(self) -> list[Version]:
        """Versions that are there, oldest first."""
        return versions(self.root) if self.remote is None else self.remote.published

    @property
    def held(self) -> HeldVersions:
        """Versions that are or were held for approval."""
        return HeldVersions(self.root, self.internal, Records(self.records.folder / "held"))

    @property
    def unfinished(self) -> list[ReleaseFolder]:
        """Versions that did not get to their URL in full, oldest first."""
        return [self._named(path.name) for path in sorted(self.root.glob(f"{UNFINISHED}*"))]

    @property
    def earlier(self) -> tuple[Earlier, ...]:
        """All versions whose rows were published or may have been seen, those withdrawn since too, oldest first.

        Raises
        ------
        LedgerError
            If the record of one is missing, damaged or another one than was published: what was already published
            about these people is then unknown.
        """
        published, known = set(self.published), self.records.known
        found = [Earlier.of(record_in(folder), folder, published=False) for folder in self.unfinished]
        for version in sorted({*published, *known}):
            folder, kept = self.folder(version), known.get(version)
            if version in published or (kept is not None and folder.root.is_dir()):
                one = Earlier.of(record_in(folder), folder, published=True, withdrawn=version not in published)
                if kept not in (None, one.record):
                    raise LedgerError(
                        f"{folder.record} is not the record of the version {version} that was published from this "
                        "workspace; restore that one from a backup, so that what was published stays known"
                    )
                found.append(one)
            elif kept is not None:
                found.append(Earlier.of(kept, None, published=True, withdrawn=True))
        return tuple(found)

    def shown(self, version: Version) -> tuple[str, str]:
        """Where readers find a version and its report: paths, or URLs."""
        folder = self.folder(version)
        if self.remote is None:
            return str(folder.root), str(folder.report)
        return joined(self.remote.url, str(version)), joined(self.remote.url, str(version), folder.report.name)

    @property
    def newest(self) -> Version | None:
        """The newest version; None before the first release."""
        return self.published[-1] if self.published else None

    def folder(self, version: Version) -> ReleaseFolder:
        """The folder of a version."""
        return self._named(str(version))

    def _named(self, name: str) -> ReleaseFolder:
        """The public and the internal folder of one name."""
        return ReleaseFolder(self.root / name, self.internal / name)

    def record(self, version: Version) -> Record:
        """What a version was made from.

        Raises
        ------
        LedgerError
            If its record is missing or damaged.
        """
        return record_in(self.folder(version))

    def check_whole(self, version: Version) -> None:
        """Make sure that the public files of a version are those that were published, and that its evidence is there.

        They are compared with the record that the workspace keeps: one that was exchanged with its folder says nothing.

        Raises
        ------
        LedgerError
            If a public file is gone, was changed or was added since, or evidence is gone.
        """
        folder = self.folder(version)
        record = self.record(version)
        files = self.records.known.get(version, record).files
        for name, digest in files.items():
            path = folder.root / name
            if path.is_symlink() or not path.is_file() or file_digest(path) != digest:
                raise LedgerError(
                    f"{path} is gone or was changed since it was published; restore version {version} from a backup, "
                    "so that what was published stays known"
                )
        for path in (folder.joint, folder.draws, folder.findings, folder.verdict):
            if not path.is_file():
                raise LedgerError(
                    f"{path} is gone, so version {version} can no longer be audited; restore it from a backup"
                )
        for path in sorted(folder.root.rglob("*")):
            if (path.is_symlink() or not path.is_dir()) and path.relative_to(folder.root).as_posix() not in files:
                raise LedgerError(f"{path} was not published with version {version}, and readers see it; take it away")

    def publish(
        self,
        incoming: ReleaseFolder,
        version: Version,
        verdict: Verdict,
        progress: Progress,
        signature: str | None = None,
    ) -> None:
        """Put a version that is complete in its place, then the series index, then ``latest``.

        One that was held is so no longer.

        All is forced to disk before the rename: until then nothing is visible, after it everything is.

        Parameters
        ----------
        signature : str, optional
            SHA-256 (hex) of its signature; None where it is not signed.

        Raises
        ------
        ReleaseRefused
            If the verdict is negative, or its public files are not, byte for byte, those that were judged.
        OutputError
            If what is left to do fails once it is in its place; the next run does that.
        """
        place = self.folder(version)
        if (there := next((path for path in (place.root, place.internal) if path.exists()), None)) is not None:
            raise LedgerError(
                f"{there} is there already, and a version is never published twice; restore the "
                "records of this series from a backup, so that what was published stays known"
            )
        # The folder was private while it was put together; its evidence stays so.
        open_to_all(incoming.root)
        sync_tree(incoming.root)
        sync_tree(incoming.internal)
        announced = self.records.announce(_token(incoming.root), version, incoming.record.read_bytes())
        # The last thing before they are public.
        require_validated(incoming, verdict, signature)
        if signature is not None:
            known = self.records.known
            coming = index_of(
                self.root, {**known, version: Record.read(incoming.record)}, [*self.published, version], self.workspace
            )
            readable = {one: self.folder(one) for one in self.published}
            require_listed(coming, self.root / INDEX, {**readable, version: incoming}, known)
        move_version(incoming, place)
        if self.remote is not None:
            self.remote.upload(version, self.folder(version), progress)
        with _in_its_place(version):
            self.records.complete(announced)
            self.point_latest()
            if self.remote is not None:
                rows = file_digest(self.folder(version).data)
                for folder in self.unfinished:
                    if file_digest(folder.data) == rows:
                        remove_version(folder)
            if self.held.waiting is not None:
                self.held.put_right(self.records.known)

    def put_right(self) -> None:
        """Remove or finish what a killed run left behind.

        Raises
        ------
        LedgerError
            If versions were published whose records are not here.
        OutputError
            If versions are published at a URL that cannot be written, or the list of versions cannot be.
        """
        index = self.root / INDEX
        if not index.is_file() and (index.exists() or index.is_symlink()):
            raise OutputError(
                f"{index} is no file, and the list of all versions is written there; move it away, then run the "
                "release again"
            )
        leftovers = [path for name in (f"{INCOMING}*", f".{LATEST}-*", f".{INDEX}.*") for path in self.root.glob(name)]
        for leftover in leftovers:
            if leftover.is_dir() and not leftover.is_symlink():
                self._discard(self._named(leftover.name))
            else:
                leftover.unlink()
        for leftover in self.internal.glob(f"{INCOMING}*"):
            remove_tree(leftover)
        if self.remote is not None:
            self._put_right_at(self.remote)
        for announced in self.records.announced:
            # Its folder is gone, so it was renamed into its place, whatever became of it since.
            self.records.complete(announced)
        known = self.records.known
        for version in self.published:
            if version not in known and self.folder(version).record.is_file():
                self.records.learn(self.record(version))
        self.held.put_right(self.records.known)
        self.point_latest()

    def _put_right_at(self, remote: RemoteSeries) -> None:
        remote.check_writable()
        published = remote.published
        for version in published:
            self.record(version)
            remote.check_same(version, self.folder(version))
        # What was uploaded in part may have been seen: its rows are kept, to be taken over rather than redrawn. What
        # was uploaded in full and withdrawn since keeps its number.
        known = self.records.known
        for version in versions(self.root):
            if version not in published and version not in known:
                move_version(self.folder(version), self._named(f"{UNFINISHED}{version}-{secrets.token_hex(4)}"))
        for announced in self.records.announced:
            if announced.version not in published and any(self.root.glob(f"{UNFINISHED}{announced.version}-*")):
                self.records.forget(announced.token)
        remote.remove_leftovers()

    @contextmanager
    def incoming(self) -> Iterator[ReleaseFolder]:
        """A new private folder, on the same file system, to put a version together in; gone afterwards."""
        folder = self._named(f"{INCOMING}{secrets.token_hex(6)}")
        private_folder(folder.root)
        (private_folder(folder.internal.parent) / f"{OF_SERIES}{self.place}").touch()
        try:
            yield folder
        finally:
            # After publication the folder has its final name, and there is nothing left to remove.
            if folder.root.exists():
                self._discard(folder)

    def _discard(self, incoming: ReleaseFolder) -> None:
        """Remove a version that got to its place not at all or with its internal evidence alone."""
        held = self.held
        for records, place in ((self.records, self.folder), (held.records, held.folder)):
            for announced in records.announced:
                if announced.token == _token(incoming.root):
                    remove_tree(place(announced.version).internal)
            # Before the folder, which alone tells that it was not published.
            records.forget(_token(incoming.root))
        remove_version(incoming)

    def point_latest(self) -> None:
        """Bring the series index up to date, then let ``latest`` name the newest version, at once."""
        index = write_index(self.root, self.records.known, self.published, self.workspace)
        if self.remote is not None:
            self.remote.put_index(index)
            self.remote.point_latest()
        newest = self.newest
        latest = self.root / LATEST
        if newest is None:
            # All versions were withdrawn.
            latest.unlink(missing_ok=True)
        if newest is None or (latest.is_symlink() and str(latest.readlink()) == str(newest)):
            return
        fresh = self.root / f".{LATEST}-{secrets.token_hex(6)}"
        fresh.symlink_to(str(newest), target_is_directory=True)
        fresh.replace(latest)
        sync_folder(self.root)


@contextmanager
def _in_its_place(version: Version) -> Iterator[None]:
    """Say of whatever fails in this block that the version is published all the same."""
    try:
        yield
    except (FunnelError, OSError, ValueError) as error:
        reason = "a file of the series is not what it should be"
        if isinstance(error, FunnelError):
            reason = str(error)
        elif isinstance(error, OSError):
            reason = " ".join(
                filter(None, [error.filename and f"{error.filename}:", error.strerror or "it cannot be written"])
            )
        raise OutputError(
            f"version {version} is published, and what is left to do failed: {reason}; the next run of this release "
            "does it"
        ) from error


def _token(folder: Path) -> str:
    return folder.name.removeprefix(INCOMING)


@contextmanager
def open_series(spec: ReleaseSpec) -> Iterator[Series]:
    """Hold a series for one run, after putting right what a killed run left behind.

    A killed run can leave a folder of unpublished files, which is removed, and a version that ``latest`` does not
    name yet, which is whole, since it was renamed into place after everything in it was on disk.

    Raises
    ------
    PipelineError
        If another run holds it, from this workspace or another one.
    OutputError
        If the output folder or URL cannot be written.
    LedgerError
        If versions were published at a URL whose records are not in the workspace.
    """
    series = Series.of(spec)
    output, workspace = spec.output_folder, spec.workspace_folder
    with ExitStack() as holding:
        try:
            if series.remote is not None:
                private_folder(series.root)
            elif not series.root.is_dir():
                series.root.mkdir(parents=True, exist_ok=True)
                open_to_all(series.root)
            private_folder(workspace)
            # Another workspace may publish to the same folder: what is being put together there is in use.
            for place in (workspace / f"{spec.name}.lock", output / f".{spec.name}.lock"):
                holding.enter_context(FileLock(place, blocking=False))
            series.put_right()
        except Timeout as error:
            raise PipelineError(f"another run is making the release {spec.name}; wait until it has ended") from error
        except OSError as error:
            raise OutputError(
                f"cannot write to {error.filename or output}: {error.strerror or type(error).__name__}; choose another "
                "folder in [output] or change its permissions"
            ) from error
        yield series
