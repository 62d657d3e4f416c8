"""Committed: whether anything has changed since the last run, told without making the release again."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from contextlib import closing
from pathlib import Path

from funnel.readers.formats import open_source
from funnel.register import register_of
from funnel.release.document import dump
from funnel.release.files import private_folder, write_whole
from funnel.release.layout import Version
from funnel.release.provenance import code_digest
from funnel.release.series import Series
from funnel.spec import ReleaseSpec

_FILE = "settled.json"
# As in ledger/address.py, which takes longer to load than all of this.
LEDGER = "ledger.sqlite"


def commit_answer(spec: ReleaseSpec, workspace: Path, series: Series, source_sha256: str, secret: str | None) -> None:
    """Note what the newest version is the answer to, when a run ends that published or held it or found it unchanged.

    Parameters
    ----------
    spec : ReleaseSpec
    workspace : Path
        Private folder of the series.
    series : Series
    source_sha256 : str
        Digest of the source that was released.
    secret : str or None
        Fingerprint of the release secret.
    """
    said = {**_question(spec, series, secret), "source": source_sha256}
    write_whole(private_folder(workspace) / _FILE, dump(said))


def committed_version(spec: ReleaseSpec, workspace: Path, series: Series, secret: str | None) -> Version | None:
    """The newest version, held or published, if a run on this spec, source, secret and code ended with it; else None.

    The source is read, to be sure that it is the same; nothing is estimated or optimised.

    Raises
    ------
    LedgerError
        If a public file of that version is gone or was changed: it must not be said to be unchanged.
        Also if the register of its people is damaged, or older than that version.
    DataError
        If the source cannot be read.
    """
    newest, waiting = series.newest, series.held.waiting
    if waiting is not None:
        newest = waiting.version
    try:
        said = json.loads((workspace / _FILE).read_bytes())
        known = str(said.pop("source"))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    if newest is None or said != _question(spec, series, secret) or open_source(spec.reading).files.digest() != known:
        return None
    if waiting is None:
        series.check_whole(newest)
    return newest


def _question(spec: ReleaseSpec, series: Series, secret: str | None) -> dict[str, str | None]:
    newest, waiting = series.newest, series.held.waiting
    path, register = None if newest is None else series.folder(newest).record, register_of(spec)
    # Without a record nothing is settled: the whole way says what is missing.
    record = hashlib.sha256(path.read_bytes()).hexdigest() if path is not None and path.is_file() else None
    return {
        "spec": spec.digest,
        "code": code_digest(),
        "secret": secret,
        "newest": record,
        # Whatever happens to a register, a restored backup of it too, is looked at by the whole way.
        "register": None if register is None else register.head_sha256,
        # Nor is an old copy of the ledger beside what is published: the whole way refuses it.
        "ledger": None if newest is None else _last_entry(spec, str(newest)),
        "held": None if waiting is None else hashlib.sha256(waiting.held.record.to_bytes()).hexdigest(),
    }


def _last_entry(spec: ReleaseSpec, version: str) -> str | None:
    """Digest of the last entry about a version in the ledger in the workspace; None of a ledger elsewhere.

    Read without the library that writes it, which takes longer to load than all of this.
    """
    path = spec.workspace_folder / LEDGER
    if spec.ledger.url is not None or not path.is_file():
        return None
    asked = "SELECT digest FROM funnel_ledger WHERE series = ? AND version = ? ORDER BY serial DESC LIMIT 1"
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as ledger:
            found = ledger.execute(asked, (spec.name, version)).fetchone()
    except sqlite3.Error:
        return None
    return None if found is None else str(found[0])
