"""Where the files of a release are, and which versions of it exist."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from funnel.errors import DataError

LATEST = "latest"
# The signed list of all versions of a series, beside them.
INDEX = "versions.json"
SIGNATURE_FILE = "signature.json"
INCOMING = ".incoming-"
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


class _Place:
    """A path inside a release folder, with slashes."""

    def __init__(self, path: str) -> None:
        self._parts = path.split("/")

    def __get__(self, folder: ReleaseFolder, kind: type[ReleaseFolder]) -> Path:
        return folder.root.joinpath(*self._parts)


@dataclass(frozen=True)
class ReleaseFolder:
    """Paths inside the folder of one version of a release.

    Everything but `audit` is public; `audit` is for the publisher and is never published.
    """

    root: Path

    # The sanitised columns as parquet.
    data = _Place("data/records.parquet")
    # The sanitised columns as csv, where the spec asks for it.
    csv = _Place("data/records.csv")
    # The same columns with a number for each record, drawn within its interval, where the spec asks for it.
    drawn = _Place("data/numbers.parquet")
    # These as csv.
    drawn_csv = _Place("data/numbers.csv")
    # Alphabets, integer weights, the guarantee with its level, utility, prior and posteriors.
    protocol = _Place("protocol.json")
    # The questions that say which class a record is of, where the protocol is about classes of records.
    classes = _Place("classes.json")
    # Data Package v2.
    package = _Place("datapackage.json")
    # The public frequencies, where noise protects the exact ones.
    frequencies = _Place("frequencies.json")
    # The public report.
    report = _Place("report.html")
    # The annex of the public report for data-protection officers.
    annex = _Place("annex.html")
    # The manifest of all other public files, signed.
    signature = _Place(SIGNATURE_FILE)
    # Every figure of the public report.
    numbers = _Place("report.json")
    # What the release is and how to estimate from it, for people.
    readme = _Place("README.md")
    # How to cite it.
    citation = _Place("CITATION.cff")
    # The entry of a data catalogue.
    catalogue = _Place("dcat.jsonld")
    # The probabilities of the protocol, as a csv.
    channel = _Place("protocol.csv")
    # Weights that estimate shares of true values, as a csv.
    estimator = _Place("estimator.csv")
    # Internal evidence.
    audit = _Place("audit")
    # The spec as it was when the release was made; internal.
    spec = _Place("audit/spec.toml")
    # What its hierarchies came to, where it names some; internal.
    hierarchies = _Place("audit/hierarchies.json")
    # Exact counts of (secret, input); internal.
    joint = _Place("audit/joint.json")
    # Exact counts of the first rows of units, where these have several and public counts have noise.
    first_rows = _Place("audit/first-rows.json")
    # Counts of drawn (secret, input, output); internal.
    draws = _Place("audit/draws.json")
    # Statistics of the random words that rows were drawn with and ordered by; internal.
    words = _Place("audit/words.json")
    # What the rows were drawn with, where that is not the published protocol; internal.
    drawing = _Place("audit/drawing.json")
    # Findings of the audit; internal.
    findings = _Place("audit/findings.json")
    # What validation judged; internal.
    verdict = _Place("audit/verdict.json")
    # All evidence as a page; internal.
    internal_report = _Place("audit/report.html")
    # Every figure of the internal report; internal.
    internal_numbers = _Place("audit/report.json")
    # Digests of all that the release was made from; internal.
    record = _Place("audit/release.json")


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
