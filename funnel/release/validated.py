"""Validated: what is published is, byte for byte, what a passing verdict is about, and what is said of it is so.

What is published is judged; what is *said* of it to the publisher alone, that nothing has changed, or that nobody was
drawn again, is not in any public file. It decides what the next release does, so it is checked here.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from stat import S_IMODE, S_ISDIR, S_ISREG
from typing import Any

import pyarrow.parquet as pq
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from funnel.alphabet import CLASS_COLUMN
from funnel.errors import LedgerError, ReleaseRefused
from funnel.readers.source_files import file_digest
from funnel.recount.promise import declared_promise, read_promise
from funnel.release.earlier import Earlier
from funnel.release.layout import SIGNATURE_FILE, ReleaseFolder, Version
from funnel.release.record import Record
from funnel.release.verdict import Verdict
from funnel.spec import ReleaseSpec


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


def require_listed(
    content: bytes | None, before: Path, there: Mapping[Version, ReleaseFolder], known: Mapping[Version, Record]
) -> None:
    """Make sure that the series index lists every version, each with its own signature, and is signed with its key.

    It is read as any reader does: nothing that it was made with is called.

    Parameters
    ----------
    content : bytes or None
        Of ``versions.json`` as it will be.
    before : Path
        The index that is there now, if any is.
    there : mapping of Version to ReleaseFolder
        All versions that readers find, the coming one among them as the last.
    known : mapping of Version to Record
        Of every version that was published before.

    Raises
    ------
    ReleaseRefused
        With what is wrong.
    """
    said = json.loads(content or b"{}")
    listed = said.get("listed", {}).get("versions", [])
    found = {one["version"]: (one["signature"], one["withdrawn"]) for one in listed}
    expected = {
        str(version): (record.files[SIGNATURE_FILE], True)
        for version, record in known.items()
        if SIGNATURE_FILE in record.files
    }
    signed = {str(version): one for version, one in there.items() if one.signature.is_file()}
    expected |= {version: (file_digest(one.signature), False) for version, one in signed.items()}
    own = json.loads([*signed.values()][-1].signature.read_bytes())["public_key"]
    old = json.loads(before.read_bytes()) if before.is_file() else {}
    more = {one["version"] for one in old.get("listed", {}).get("versions", []) if old["public_key"] == own}
    wrong = None
    if said.get("public_key") != own:
        wrong = "is signed with another key than the version"
    elif not _is_signed(said):
        wrong = "is not signed with the key that it names"
    elif {version: found.get(version) for version in expected} != expected:
        wrong = "does not list every version with its signature, or says of one that is there that it was withdrawn"
    elif not found.keys() - expected.keys() <= more or len(found) != len(listed):
        wrong = "lists versions that there never were"
    if wrong is not None:
        raise ReleaseRefused(f"nothing was published: the index of all versions {wrong}; run the release again")


def _is_signed(said: Mapping[str, Any]) -> bool:
    """Whether the list is signed: the line ``funnel/series/1``, then the list as plain JSON."""
    text = json.dumps(said["listed"], sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    try:
        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(said["public_key"]))
        key.verify(bytes.fromhex(said["signature"]), b"funnel/series/1\n" + text.encode())
    except (InvalidSignature, ValueError):
        return False
    return True


def require_same_spec(spec: ReleaseSpec, record: Record) -> None:
    """Make sure that a version is of this spec, before it is said that nothing has changed.

    Parameters
    ----------
    spec : ReleaseSpec
    record : Record
        Of the version.

    Raises
    ------
    LedgerError
        If it is of another bound, other columns or another spec.
    """
    origin = record.origin
    promises = (declared_promise(spec.text), read_promise(origin.guarantee))
    # Numbers are told as the doubles they are read as.
    declared, kept = ((one.kind, {k: v and float(v) for k, v in one.numbers.items()}) for one in promises)
    # Whole records have their class besides, which no spec names.
    columns = tuple(column for column in origin.fields if column != CLASS_COLUMN)
    for what, same in (
        ("has another bound", declared == kept),
        ("has other columns", columns == spec.whole.publish),
        ("is of another spec", origin.spec == spec.digest),
    ):
        if not same:
            raise LedgerError(
                f"version {record.version} was taken for this release, but it {what}; remove the cached files in the "
                "workspace and run the release again"
            )


def require_accounted(record: Record, folder: ReleaseFolder, earlier: Sequence[Earlier]) -> None:
    """Make sure that the record of a coming version tells what is in its folder, and counts its draw.

    Parameters
    ----------
    record : Record
        About to be written.
    folder : ReleaseFolder
        Of the coming version.
    earlier : sequence of Earlier
        All versions before it.

    Raises
    ------
    LedgerError
        If its number was used, it is of other rows or of another number of them, or calls a fresh draw none.
    """
    published = [one for one in earlier if one.published]
    rows = file_digest(folder.data)
    wrong = None
    if any(one.record.version == record.version for one in published):
        wrong = "its number was used before"
    elif record.files.get(folder.data.relative_to(folder.root).as_posix()) != rows:
        wrong = "it names other rows than those in its folder"
    elif record.rows != pq.read_metadata(folder.data).num_rows:
        wrong = "it names another number of records than those in its folder"
    elif not record.fresh and not any(
        one.rows_sha256 == rows or _keeps_answers(record, one.record) for one in published
    ):
        wrong = "it says that nobody was drawn again, and no version before it holds these answers"
    if wrong is not None:
        raise LedgerError(f"the record of version {record.version} is not true, so nothing was published: {wrong}")


def _keeps_answers(record: Record, before: Record) -> bool:
    """Whether records may have had their answers before: the same columns were drawn with the same release secret."""
    secret = record.origin.secret
    return secret is not None and (before.origin.secret, before.origin.fields) == (secret, record.origin.fields)
