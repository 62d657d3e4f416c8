"""Public files: what is in the folder of a coming version, held against what a release consists of."""

from __future__ import annotations

from funnel.audit.context import NEEDED
from funnel.audit.files import list_folder
from funnel.audit.package import TABLES
from funnel.pipeline.expectations.claims import Claim, all_of, claim
from funnel.pipeline.expectations.finished_folder import FinishedFolder
from funnel.recount.balance import is_invariant


def declared_files(finished: FinishedFolder) -> frozenset[str]:
    """Paths of the public files that a version consists of; public counts are one where noise protects the others.

    So is a table of numbers where some are drawn within intervals. Where csv is asked for there is one of the protocol,
    and one of weights where these estimate shares: the records of an invariant protocol are counted as usual. So are
    the questions that classes of records follow from.
    """
    said, (numbers, numbers_csv) = finished.spec_text, TABLES
    asked = {
        "data/records.csv": said.csv,
        "protocol.csv": said.csv,
        "estimator.csv": said.csv and not is_invariant(finished.protocol),
        numbers: bool(said.drawn),
        numbers_csv: bool(said.drawn) and said.csv,
        "frequencies.json": said.has_noise,
        "classes.json": finished.classes is not None,
    }
    return frozenset(NEEDED) | {path for path, is_declared in asked.items() if is_declared}


def files_claims(finished: FinishedFolder) -> list[Claim]:
    """The folder holds exactly the declared public files, as plain files."""
    root, declared = finished.folder.root, declared_files(finished)
    found = set(list_folder(root).public)
    # The other name of it could be written to later.
    linked = [name for name in sorted(found) if (root / name).lstat().st_nlink != 1]
    return [
        all_of("all public files", (claim(name, False, "is missing") for name in sorted(declared - found))),
        all_of("no other file", (claim(name, False, "is not declared") for name in sorted(found - declared))),
        all_of("plain files", (claim(name, False, "is a file with another name elsewhere") for name in linked)),
    ]
