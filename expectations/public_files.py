"""Public files: what is in the folder of a coming version, held against what a release consists of."""

from __future__ import annotations

from collections.abc import Set
from pathlib import Path

from funnel.audit.context import NEEDED
from funnel.audit.files import list_folder
from funnel.audit.package import TABLES
from funnel.pipeline.expectations.claims import Claim, all_of, claim


def declared_files(
    csv: bool, noise: bool = False, drawn: bool = False, invariant: bool = False, by_class: bool = False
) -> frozenset[str]:
    """Paths of the public files that a version consists of; public counts are one where noise protects the others.

    So is a table of numbers where some are drawn within intervals. Where csv is asked for there is one of the protocol,
    and one of weights where these estimate shares: the records of an invariant protocol are counted as usual. So are
    the questions that classes of records follow from.
    """
    numbers, numbers_csv = TABLES
    asked = {
        "data/records.csv": csv,
        "protocol.csv": csv,
        "estimator.csv": csv and not invariant,
        numbers: drawn,
        numbers_csv: drawn and csv,
        "frequencies.json": noise,
        "classes.json": by_class,
    }
    return frozenset(NEEDED) | {path for path, is_declared in asked.items() if is_declared}


def files_claims(root: Path, declared: Set[str]) -> list[Claim]:
    """What holds of the files in a folder by the spec; that they are plain files of a release is seen by the audit.

    Parameters
    ----------
    root : Path
        Of the coming version.
    declared : set of str
        Paths in it of the public files.
    """
    found = set(list_folder(root).public)
    # The other name of it could be written to later.
    linked = [name for name in sorted(found) if (root / name).lstat().st_nlink != 1]
    return [
        all_of("all public files", (claim(name, False, "is missing") for name in sorted(declared - found))),
        all_of("no other file", (claim(name, False, "is not declared") for name in sorted(found - declared))),
        all_of("plain files", (claim(name, False, "is a file with another name elsewhere") for name in linked)),
    ]
