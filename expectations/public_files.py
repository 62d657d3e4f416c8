"""Public files: what is in the folder of a coming version, held against what a release consists of."""

from __future__ import annotations

import os
from collections.abc import Iterator, Set
from pathlib import Path
from stat import S_IMODE, S_ISDIR, S_ISREG

from funnel.pipeline.expectations.claims import Claim, all_of, claim

# What a version consists of for its readers, named here once more: a file that is written and not named is refused.
DATA, PROTOCOL, PACKAGE, PAGE = "data/records.parquet", "protocol.json", "datapackage.json", "report.html"
CSV, NUMBERS, FREQUENCIES, CLASSES = "data/records.csv", "report.json", "frequencies.json", "classes.json"
DRAWN, DRAWN_CSV = "data/numbers.parquet", "data/numbers.csv"
HANDOUTS = frozenset({"README.md", "CITATION.cff", "dcat.jsonld"})
CHANNEL, ESTIMATOR = "protocol.csv", "estimator.csv"
ALWAYS = frozenset({DATA, PROTOCOL, PACKAGE, PAGE, NUMBERS}) | HANDOUTS
FOLDERS = frozenset({"data", "audit"})
INTERNAL = "audit"
CLAIMS = ("all public files", "no other file", "plain files", "rights of audit/")


def declared_files(
    csv: bool, noise: bool = False, drawn: bool = False, invariant: bool = False, by_class: bool = False
) -> frozenset[str]:
    """Paths of the public files that a version consists of; public counts are one where noise protects the others.

    So is a table of numbers where some are drawn within intervals. Where csv is asked for there is one of the protocol,
    and one of weights where these estimate shares: the records of an invariant protocol are counted as usual. So are
    the questions that classes of records follow from.
    """
    tables = ({CSV} if csv else set()) | ({DRAWN} if drawn else set()) | ({DRAWN_CSV} if drawn and csv else set())
    return (
        ALWAYS
        | ({CHANNEL} if csv else set())
        | ({ESTIMATOR} if csv and not invariant else set())
        | tables
        | ({FREQUENCIES} if noise else set())
        | ({CLASSES} if by_class else set())
    )


def files_claims(root: Path, declared: Set[str]) -> list[Claim]:
    """What holds of the files in a folder.

    Parameters
    ----------
    root : Path
        Of the coming version.
    declared : set of str
        Paths in it of the public files.

    Notes
    -----
    Links are not followed: a link is no public file, whatever it leads to.
    """
    found = dict(_entries(root))
    plain = {name for name, kind in found.items() if kind == "file"}
    further = {name for name, kind in found.items() if kind == "file" and name not in declared}
    further |= {f"{name}/" for name, kind in found.items() if kind == "folder" and name not in FOLDERS}
    mode = S_IMODE((root / INTERNAL).lstat().st_mode) if (root / INTERNAL).is_dir() else None
    return [
        all_of(CLAIMS[0], (claim(name, False, "is missing") for name in sorted(declared - plain))),
        all_of(CLAIMS[1], (claim(name, False, "is not declared") for name in sorted(further))),
        all_of(CLAIMS[2], (claim(name, kind in ("file", "folder"), f"is a {kind}") for name, kind in found.items())),
        claim(CLAIMS[3], mode == 0o700, "must let nobody but its owner in"),
    ]


def _entries(root: Path) -> Iterator[tuple[str, str]]:
    """Path and kind of everything in a folder that is not in its internal part."""
    folders = [root]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                name = Path(entry.path).relative_to(root).as_posix()
                state = entry.stat(follow_symlinks=False)
                if S_ISDIR(state.st_mode):
                    yield name, "folder"
                    if name != INTERNAL:
                        folders.append(Path(entry.path))
                elif not S_ISREG(state.st_mode):
                    yield name, "link" if entry.is_symlink() else "special file"
                elif state.st_nlink != 1:
                    # The other name of it could be written to later.
                    yield name, "file with another name elsewhere"
                else:
                    yield name, "file"
