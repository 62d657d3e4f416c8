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


@dataclass(frozen=True)
class ReleaseFolder:
    """Paths inside the folder of one version of a release.

    Everything but `audit` is public; `audit` is for the publisher and is never published.
    """

    root: Path

    @property
    def data(self) -> Path:
        """The sanitised columns as parquet."""
        return self.root / "data" / "records.parquet"

    @property
    def csv(self) -> Path:
        """The sanitised columns as csv, where the spec asks for it."""
        return self.root / "data" / "records.csv"

    @property
    def drawn(self) -> Path:
        """The same columns with a number for each record, drawn within its interval, where the spec asks for it."""
        return self.root / "data" / "numbers.parquet"

    @property
    def drawn_csv(self) -> Path:
        """These as csv."""
        return self.root / "data" / "numbers.csv"

    @property
    def protocol(self) -> Path:
        """Alphabets, integer weights, the guarantee with its level, utility, prior and posteriors."""
        return self.root / "protocol.json"

    @property
    def classes(self) -> Path:
        """The questions that say which class a record is of, where the protocol is about classes of records."""
        return self.root / "classes.json"

    @property
    def package(self) -> Path:
        """Data Package v2."""
        return self.root / "datapackage.json"

    @property
    def frequencies(self) -> Path:
        """The public frequencies, where noise protects the exact ones."""
        return self.root / "frequencies.json"

    @property
    def report(self) -> Path:
        """The public report."""
        return self.root / "report.html"

    @property
    def annex(self) -> Path:
        """The annex of the public report for data-protection officers."""
        return self.root / "annex.html"

    @property
    def signature(self) -> Path:
        """The manifest of all other public files, signed."""
        return self.root / SIGNATURE_FILE

    @property
    def numbers(self) -> Path:
        """Every figure of the public report."""
        return self.root / "report.json"

    @property
    def readme(self) -> Path:
        """What the release is and how to estimate from it, for people."""
        return self.root / "README.md"

    @property
    def citation(self) -> Path:
        """How to cite it."""
        return self.root / "CITATION.cff"

    @property
    def catalogue(self) -> Path:
        """The entry of a data catalogue."""
        return self.root / "dcat.jsonld"

    @property
    def channel(self) -> Path:
        """The probabilities of the protocol, as a csv."""
        return self.root / "protocol.csv"

    @property
    def estimator(self) -> Path:
        """Weights that estimate shares of true values, as a csv."""
        return self.root / "estimator.csv"

    @property
    def audit(self) -> Path:
        """Internal evidence."""
        return self.root / "audit"

    @property
    def spec(self) -> Path:
        """The spec as it was when the release was made; internal."""
        return self.audit / "spec.toml"

    @property
    def hierarchies(self) -> Path:
        """What its hierarchies came to, where it names some; internal."""
        return self.audit / "hierarchies.json"

    @property
    def joint(self) -> Path:
        """Exact counts of (secret, input); internal."""
        return self.audit / "joint.json"

    @property
    def first_rows(self) -> Path:
        """Exact counts of the first rows of units, where these have several and public counts have noise."""
        return self.audit / "first-rows.json"

    @property
    def draws(self) -> Path:
        """Counts of drawn (secret, input, output); internal."""
        return self.audit / "draws.json"

    @property
    def words(self) -> Path:
        """Statistics of the random words that rows were drawn with and ordered by; internal."""
        return self.audit / "words.json"

    @property
    def drawing(self) -> Path:
        """What the rows were drawn with, where that is not the published protocol; internal."""
        return self.audit / "drawing.json"

    @property
    def findings(self) -> Path:
        """Findings of the audit; internal."""
        return self.audit / "findings.json"

    @property
    def verdict(self) -> Path:
        """What validation judged; internal."""
        return self.audit / "verdict.json"

    @property
    def internal_report(self) -> Path:
        """All evidence as a page; internal."""
        return self.audit / "report.html"

    @property
    def internal_numbers(self) -> Path:
        """Every figure of the internal report; internal."""
        return self.audit / "report.json"

    @property
    def record(self) -> Path:
        """Digests of all that the release was made from; internal."""
        return self.audit / "release.json"


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
