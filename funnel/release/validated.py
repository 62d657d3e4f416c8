"""Judged: what is published is, byte for byte and file for file, what a passing verdict is about."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from stat import S_IMODE, S_ISDIR, S_ISREG

from funnel.errors import ReleaseRefused
from funnel.release.layout import SIGNATURE_FILE, ReleaseFolder
from funnel.release.verdict import Verdict


def public_digests(root: Path) -> dict[str, str]:
    """SHA-256 (hex) of every file in a version's folder, all of which is public, by path in the folder.

    Parameters
    ----------
    root : Path

    Raises
    ------
    ReleaseRefused
        If something is neither a file nor a folder: a link could lead to other bytes the next time it is read.

    Notes
    -----
    One pass over the files in constant memory.
    """
    found: dict[str, str] = {}
    folders = [root]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                name = Path(entry.path).relative_to(root).as_posix()
                mode = entry.stat(follow_symlinks=False).st_mode
                if S_ISDIR(mode):
                    folders.append(Path(entry.path))
                elif S_ISREG(mode):
                    with Path(entry.path).open("rb") as opened:
                        found[name] = hashlib.file_digest(opened, "sha256").hexdigest()
                else:
                    raise ReleaseRefused(
                        f"{name!r} in the release is neither a file nor a folder; nothing was published"
                    )
    return dict(sorted(found.items()))


def require_validated(folder: ReleaseFolder, verdict: Verdict, signature: str | None = None) -> None:
    """Make sure that a version's folder may be published: its verdict passed and is about the files that are there.

    Parameters
    ----------
    folder : ReleaseFolder
        Of the coming version.
    verdict : Verdict
    signature : str, optional
        SHA-256 (hex) of ``signature.json`` as it was written; None where the version is not signed.

    Raises
    ------
    ReleaseRefused
        If the verdict is negative or about nothing, a public file is missing, was changed or came since, or others than
        the owner may read the internal evidence.
    """
    if not verdict.passed:
        raise ReleaseRefused(f"nothing was published: {verdict.sentence()}")
    if not verdict.files:
        raise ReleaseRefused("nothing was published: the verdict names no file that it is about")
    found = public_digests(folder.root)
    expected = {**verdict.files, **({} if signature is None else {SIGNATURE_FILE: signature})}
    for name in sorted({*expected, *found}):
        if name not in found:
            what = "is gone"
        elif name not in expected:
            what = "came"
        elif found[name] != expected[name]:
            what = "was changed"
        else:
            continue
        raise ReleaseRefused(f"nothing was published: {name!r} {what} after the release was judged; run it again")
    # What the verdict found of the rights of the evidence is so still.
    if S_IMODE(folder.internal.lstat().st_mode) & 0o077:
        raise ReleaseRefused(
            "nothing was published: others than its owner may read its internal evidence; run the release again"
        )
