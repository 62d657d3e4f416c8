"""The release secret: where it is kept, made on first use, and never lost or exchanged without saying so."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from funnel.errors import LedgerError, SpecError
from funnel.release.files import make_secret_file, private_folder, require_secret, sync_folder
from funnel.sampling.keyed import RecordKey, scope_of_register, word_key

FILE, NEXT, NOISE = "release-secret", "release-secret.next", "noise-secret"
REGISTER_FILE = "secret"
_BYTES = 32

Reader = Callable[[str], str]
"""Gives the text of a secret, by its place."""


@dataclass(frozen=True)
class ReleaseSecret:
    """Where a secret can be read; small, and says nothing of it, so steps may hand it to each other.

    Attributes
    ----------
    place : str
        Path of a file, ``environment:NAME`` or ``prefect:BLOCK``.
    fingerprint : str
        What tells two secrets apart; stored with every version.
    series : str or None
        Name of the series, or what stands for a register; see `funnel.RecordKey`.
    """

    place: str
    fingerprint: str
    series: str | None = None

    def record_key(self, columns: tuple[str, ...], read: Reader | None = None) -> RecordKey:
        """The record key of these columns with the secret itself, read anew.

        Parameters
        ----------
        columns : tuple of str
        read : callable, optional
            As in `find_secret`.

        Raises
        ------
        LedgerError
            If the secret is no longer the one that the fingerprint is of.
        """
        key = replace(_key((read or read_secret)(self.place), columns), series=self.series)
        if key.fingerprint != self.fingerprint:
            raise LedgerError(f"the release secret in {self.place} changed during the release; run the release again")
        return key


def find_secret(
    place: str,
    workspace: Path,
    recorded: str | None,
    rotate: bool,
    read: Reader | None = None,
    waiting: str | None = None,
) -> ReleaseSecret:
    """The secret to release with; a file is made on first use.

    Parameters
    ----------
    place : str
        As ``record_secret`` in the spec.
    workspace : Path
        Private folder of the series, where the file is.
    recorded : str or None
        Fingerprint stored with the newest version that was drawn with record keys.
    rotate : bool
        Whether to take another secret knowingly: a new file, or what the environment or the block now holds.
    read : callable, optional
        Gives the text at a place; by default `read_secret`, which knows files and the environment. The pipeline gives
        one that knows the orchestrator's blocks too.
    waiting : str, optional
        Fingerprint stored with the version that waits for approval: it may have been drawn with the next secret.

    Raises
    ------
    LedgerError
        If the secret is not the one of the newest version, or is gone.
    SpecError
        If it cannot be read, is too short, or others may read its file.
    """
    read = read or read_secret

    def at(place: str) -> ReleaseSecret:
        return ReleaseSecret(place, _key(read(place), ("any",)).fingerprint)

    if place != "file":
        found = at(place)
        if waiting is not None and found.fingerprint == waiting and not rotate:
            return found
        if recorded is not None and (found.fingerprint == recorded) == rotate:
            if rotate:
                raise SpecError(
                    f"the release secret in {place} is the one used before; put a new one there to rotate it"
                )
            raise _another(place)
        return found
    current, following = private_folder(workspace) / FILE, workspace / NEXT
    if rotate and recorded is not None:
        following.unlink(missing_ok=True)
        _make(following)
        return at(str(following))
    if following.exists():
        # What a killed rotation left: taken if its release was published, kept while it waits for approval, else
        # forgotten.
        found = at(str(following))
        if recorded is not None and found.fingerprint == recorded:
            following.replace(current)
        elif found.fingerprint == waiting:
            return found
        else:
            following.unlink()
    if not current.exists():
        if recorded is not None:
            raise LedgerError(
                f"the release secret {current}, which the records of earlier versions were drawn with, is gone; "
                "restore it from a backup, or take a new one with --rotate-secret, which draws every record afresh"
            )
        _make(current)
    found = at(str(current))
    if recorded is not None and found.fingerprint != recorded:
        raise _another(str(current))
    return found


def find_register_secret(
    place: str, folder: Path, register: str, recorded: str | None, read: Reader | None = None
) -> ReleaseSecret:
    """The secret that the people of a register are known by, one for all of its series; a file is made on first use.

    It cannot be rotated: under another one everybody would be new, and what was published about them forgotten.

    Parameters
    ----------
    place : str
        As ``record_secret`` in the spec.
    folder : Path
        Of the register, where the file is.
    register : str
        Its name.
    recorded : str or None
        Fingerprint stored with its versions; None before the first one.
    read : callable, optional
        As in `find_secret`.

    Raises
    ------
    LedgerError
        If the secret is gone, or not the one that people are known by.
    SpecError
        If it cannot be read, is too short, or others may read its file.
    """
    if place == "file":
        path = private_folder(folder) / REGISTER_FILE
        place = str(path)
        if not path.exists():
            if recorded is not None:
                raise LedgerError(f"the release secret {path} is gone: {_unknown(register)}")
            _make(path)
    found = ReleaseSecret(place, _key((read or read_secret)(place), ("any",)).fingerprint, scope_of_register(register))
    if recorded not in (None, found.fingerprint):
        raise LedgerError(
            f"the release secret in {place} is not the one that the register was written with: {_unknown(register)}"
        )
    return found


def noise_root(workspace: Path, series: str) -> bytes:
    """What the noise of a series is derived from: a secret of its own, in a file that is made on first use.

    Nothing that is published depends on that file any more: published noise is used again as it is, and noise on other
    tables is unrelated to it under this secret and under the next.

    Parameters
    ----------
    workspace : Path
        Private folder of the series, where the file is.
    series : str
        Its name.

    Raises
    ------
    SpecError, OutputError
        If it cannot be read or made.
    """
    path = private_folder(workspace) / NOISE
    if not path.exists():
        _make(path)
    return word_key(replace(_key(read_secret(str(path)), (NOISE,)), series=series), "noise")


def _unknown(register: str) -> str:
    return (
        f"nobody in the register {register} could be known again, and what was published about them would be "
        "forgotten; restore that secret from a backup"
    )


def commit_secret(secret: ReleaseSecret) -> None:
    """Let the secret that a version was just published with be the one from now on."""
    path = Path(secret.place)
    if path.name == NEXT:
        path.replace(path.with_name(FILE))
        sync_folder(path.parent)


def _another(place: str) -> LedgerError:
    return LedgerError(
        f"the release secret in {place} is not the one that the newest version was drawn with; restore that one, or "
        "take this one knowingly with --rotate-secret, which draws every record afresh"
    )


def _make(path: Path) -> None:
    make_secret_file(path, fresh_text().encode(), "the release secret")


def fresh_text() -> str:
    """A new secret, of the operating system's entropy, as text."""
    return secrets.token_hex(_BYTES)


def _key(content: str, columns: tuple[str, ...]) -> RecordKey:
    text = content.strip()
    # Hexadecimal digits stand for bytes; any other text, such as a long passphrase from a vault, is taken as it is.
    is_hexadecimal = len(text) % 2 == 0 and re.fullmatch(r"[0-9a-fA-F]+", text) is not None
    return RecordKey(columns, bytes.fromhex(text) if is_hexadecimal else text.encode())


def read_secret(place: str) -> str:
    """The text of a secret in a file or in the environment.

    Raises
    ------
    SpecError
        If it cannot be read, or others may read its file.
    """
    kind, _, name = place.partition(":")
    if kind == "environment":
        if name not in os.environ:
            raise SpecError(f"record_secret names the environment variable {name}, which is not set; set it")
        return os.environ[name]
    if kind == "prefect":
        raise SpecError(f"record_secret names a block of the orchestrator, {name}, which only the pipeline can read")
    path = Path(place)
    try:
        require_secret(path, "the release secret")
        return path.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError(f"the release secret {path} cannot be read ({type(error).__name__})") from error
