"""Where the files of a release are, public and internal, and which versions of it exist."""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path

from funnel.errors import DataError

LATEST = "latest"
# The signed list of all versions of a series, beside them.
INDEX = "versions.json"
SIGNATURE_FILE = "signature.json"
INCOMING = ".incoming-"
# The folder of the workspace with the internal evidence of all series, and the empty file whose name tells which one is
# in a folder there.
INTERNAL = "internal"
OF_SERIES = ".series-"
_WORKSPACE = ".funnel"
_UPWARDS = 4
_SERIES = re.compile(r"[a-z0-9-]{1,100}")
# Longer numbers are no versions: Python reads none of some thousand digits.
_VERSION = re.compile(r"(0|[1-9]\d{0,17})\.(0|[1-9]\d{0,17})\.(0|[1-9]\d{0,17})")


@dataclass(frozen=True, order=True)
class Version:
    """A version of a release, ``major.minor.patch``.

    New fields raise major, new data minor, and anything else, such as a correction or another bound, patch: the
    recipe of the Data Package standard.
    """

    major: int
    minor: int
    patch: int

    @classmethod
    def parse(cls, text: str) -> Version | None:
        """The version a folder name stands for; None if it stands for none."""
        match = _VERSION.fullmatch(text)
        return None if match is None else cls(*(int(part) for part in match.groups()))

    @classmethod
    def of(cls, text: str) -> Version:
        """The version of a text that was checked to be one."""
        found = cls.parse(text)
        if found is None:
            raise ValueError(f"{text!r} is no version")
        return found

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"


def next_version(previous: Version | None, fields_changed: bool, data_changed: bool) -> Version:
    """The version after ``previous``; 1.0.0 for a first release."""
    if previous is None:
        return Version(1, 0, 0)
    if fields_changed:
        return Version(previous.major + 1, 0, 0)
    if data_changed:
        return Version(previous.major, previous.minor + 1, 0)
    return Version(previous.major, previous.minor, previous.patch + 1)


def versions(series: Path) -> list[Version]:
    """Versions in the folder of a release series, oldest first; none if the folder does not exist."""
    if not series.is_dir():
        return []
    found = (Version.parse(entry.name) for entry in series.iterdir() if entry.is_dir() and not entry.is_symlink())
    return sorted(version for version in found if version is not None)


def place_of(series: Path, workspace: Path) -> str:
    """Short digest of where a series is as seen from the workspace, so that both may be moved together."""
    return hashlib.sha256(os.path.relpath(series, workspace).encode()).hexdigest()[:16]


def internal_folder(series: Path, workspace: Path) -> Path:
    """Where the workspace keeps the internal evidence of the series in a folder: ``internal/<name>``.

    A second series of one name is apart, by its place.
    """
    first, place = workspace / INTERNAL / series.name, place_of(series, workspace)
    marks = {mark.name for mark in first.glob(f"{OF_SERIES}*")}
    return first.with_name(f"{series.name}.{place}") if marks and f"{OF_SERIES}{place}" not in marks else first


def find_workspace(folder: Path, name: str) -> Path | None:
    """The workspace that keeps the records of a series; None if there is none near a version's folder.

    A name that no series has leads nowhere: it is what a data package says, and may be a path.
    """
    if not _SERIES.fullmatch(name):
        return None
    place = folder
    for _ in range(_UPWARDS):
        place = place.parent
        for workspace in (place / _WORKSPACE, place):
            if (workspace / name / "records").is_dir():
                return workspace
    return None


class _Public:
    """A path in the folder of a version, with slashes."""

    def __init__(self, path: str) -> None:
        self._parts = path.split("/")

    def __get__(self, folder: ReleaseFolder, kind: type[ReleaseFolder]) -> Path:
        return folder.root.joinpath(*self._parts)


class _Internal:
    """A file in the folder of a version's internal evidence."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, folder: ReleaseFolder, kind: type[ReleaseFolder]) -> Path:
        return folder.internal / self._name


@dataclass(frozen=True)
class ReleaseFolder:
    """The files of one version of a release: those of its folder, all public, and its internal evidence elsewhere.

    Attributes
    ----------
    root : Path
        The folder of the version; all in it is public.
    evidence : Path, optional
        The folder of its internal evidence, where that is known; else it is looked for.
    """

    root: Path
    evidence: Path | None = None

    # The sanitised columns as parquet.
    data = _Public("data/records.parquet")
    # The sanitised columns as csv, where the spec asks for it.
    csv = _Public("data/records.csv")
    # The same columns with a number for each record, drawn within its interval, where the spec asks for it.
    drawn = _Public("data/numbers.parquet")
    # These as csv.
    drawn_csv = _Public("data/numbers.csv")
    # Alphabets, integer weights, the guarantee with its level, utility, prior and posteriors.
    protocol = _Public("protocol.json")
    # The questions that say which class a record is of, where the protocol is about classes of records.
    classes = _Public("classes.json")
    # Data Package v2.
    package = _Public("datapackage.json")
    # The public frequencies, where noise protects the exact ones.
    frequencies = _Public("frequencies.json")
    # The public report.
    report = _Public("report.html")
    # The annex of the public report for data-protection officers.
    annex = _Public("annex.html")
    # The manifest of all other public files, signed.
    signature = _Public(SIGNATURE_FILE)
    # Every figure of the public report.
    numbers = _Public("report.json")
    # What the release is and how to estimate from it, for people.
    readme = _Public("README.md")
    # How to cite it.
    citation = _Public("CITATION.cff")
    # The entry of a data catalogue.
    catalogue = _Public("dcat.jsonld")
    # The probabilities of the protocol, as a csv.
    channel = _Public("protocol.csv")
    # Weights that estimate shares of true values, as a csv.
    estimator = _Public("estimator.csv")
    # The spec as it was when the release was made; internal.
    spec = _Internal("spec.toml")
    # What its hierarchies came to, where it names some; internal.
    hierarchies = _Internal("hierarchies.json")
    # Exact counts of (secret, input); internal.
    joint = _Internal("joint.json")
    # The people with each value in every part of a class, where records are exchanged between these; internal.
    parts = _Internal("parts.json")
    # Exact counts of the first rows of units, where these have several and public counts have noise.
    first_rows = _Internal("first-rows.json")
    # Counts of drawn (secret, input, output); internal.
    draws = _Internal("draws.json")
    # Statistics of the random words that rows were drawn with and ordered by; internal.
    words = _Internal("words.json")
    # What the rows were drawn with, where that is not the published protocol; internal.
    drawing = _Internal("drawing.json")
    # Findings of the audit; internal.
    findings = _Internal("findings.json")
    # What validation judged; internal.
    verdict = _Internal("verdict.json")
    # All evidence as a page; internal.
    internal_report = _Internal("report.html")
    # Every figure of the internal report; internal.
    internal_numbers = _Internal("report.json")
    # Digests of all that the release was made from; internal.
    record = _Internal("release.json")

    @property
    def internal(self) -> Path:
        """The folder of its internal evidence, which need not be there.

        That is ``<workspace>/internal/<name>/<version>`` of the workspace near it, or else one beside the version that
        is named as it is and ``.internal``: there an auditor may put the evidence of a copy.
        """
        if self.evidence is not None:
            return self.evidence
        workspace = find_workspace(self.root, self.root.parent.name)
        if workspace is not None:
            kept = internal_folder(self.root.parent, workspace) / self.root.name
            if kept.is_dir():
                return kept
        return self.root.with_name(f"{self.root.name}.{INTERNAL}")


def last_part(path: Path) -> str:
    """The name that a path ends with, of a link as it is; of ``.`` that of the folder."""
    return path.absolute().name


def led_by_latest(path: Path, folder: ReleaseFolder) -> bool:
    """Whether the link ``latest`` of a series led from a path to the folder that `find_release` found."""
    return last_part(path) != folder.root.name and (folder.root.parent / LATEST).exists()


def find_release(path: Path) -> ReleaseFolder:
    """The release at a path: the folder of a version, or of a series, whose latest version is meant.

    Raises
    ------
    DataError
        If there is no release there.
    """
    if not path.exists():
        raise DataError(f"there is no release at {path}; name the folder of a release, such as releases/NAME/latest")
    if (path / LATEST).exists():
        path = path / LATEST
        if path.is_symlink() and path.resolve().parent != path.parent.resolve():
            raise DataError(
                f"{path} leads out of its series, and is not followed; name the folder of the version itself"
            )
    folder = ReleaseFolder(path.resolve())
    if not folder.protocol.is_file() or not folder.package.is_file():
        raise DataError(f"{path} is not a release: it lacks protocol.json or datapackage.json")
    return folder
