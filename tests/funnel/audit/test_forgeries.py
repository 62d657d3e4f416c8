"""False statements by the owner of the key: what follows from public files is computed again, the rest is named."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from funnel.audit.recheck import Told
from funnel.errors import DataError
from funnel.readers.source_files import file_digest
from funnel.recount.documentation import documentation_again
from funnel.release.layout import ReleaseFolder
from funnel.release.signature import signing_key
from tests.audits import recheck
from tests.funnel.audit.forging import Forger

Forge = Callable[[Callable[[Forger], Any]], set[str]]


@pytest.fixture
def forge(noisy: ReleaseFolder, tmp_path: Path) -> Forge:
    """Forges public files with the publisher's key; gives the names of the checks that do not pass."""
    key = signing_key(noisy.root.parents[2] / ".funnel")

    def forged(change: Callable[[Forger], Any]) -> set[str]:
        shutil.rmtree(tmp_path / "copy", ignore_errors=True)
        shutil.copytree(noisy.root, tmp_path / "copy")
        forger = Forger(ReleaseFolder(tmp_path / "copy"), key)
        folder = forger.folder
        change(forger)
        try:
            forger.pages()
            forger.cover()
            told = Told(key=key.public_key().public_bytes_raw().hex(), public=True, fetched=True)
            return {check.name for check in recheck(folder, told) if not check.passed}
        except DataError:
            return {"cannot be read"}

    return forged


def _sha256(path: Path) -> str:
    return f"sha256:{file_digest(path)}"


def test_an_honest_release_passes_with_a_sentence_on_what_it_cannot_tell(noisy: ReleaseFolder, forge: Forge) -> None:
    assert forge(lambda forger: None) == set()
    details = {check.name: check.detail for check in recheck(noisy)}
    assert "could not be checked from public files: what the publisher writes in words" in details["report figures"]


def everywhere(key: str, value: Any, forger: Forger) -> None:
    """The same number of the noise in all documents that tell it."""
    folder = forger.folder
    forger.edit(folder.frequencies, lambda said: said.update({key: value}))
    if key in ("epsilon", "delta", "beta", "spent"):
        forger.protocol(lambda said: said["frequencies"].update({key: value}))
        forger.edit(folder.numbers, lambda said: said["frequencies"].update({key: value}))
        forger.package(lambda said: said["funnel:privacy"]["frequencies"].update({key: value}))
    digest = _sha256(folder.frequencies)
    forger.package(lambda said: said["funnel:privacy"]["frequencies"].update(hash=digest))


def dated(time: str, forger: Forger) -> None:
    """Another time of publication, everywhere."""
    forger.package(lambda said: said.update(created=time))
    forger.edit(forger.folder.numbers, lambda said: said.update(created=time))


def left_out(forger: Forger, name: str) -> None:
    """A key of the public counts that says that there is nothing of a kind, left out instead."""
    frequencies = forger.folder.frequencies
    forger.edit(frequencies, lambda said: said.pop(name))
    stated = forger.read(forger.folder.package)["funnel:privacy"]["frequencies"]
    forger.privacy(frequencies={**stated, "hash": _sha256(frequencies)})


FILES: dict[str, Callable[[Forger], Any]] = {
    "created in 1970": partial(dated, "1970-01-01T00:00:00+00:00"),
    "created in 2099": partial(dated, "2099-01-01T00:00:00+00:00"),
    "limits of counts narrower than the noise": partial(everywhere, "cells_within", 3),
    "limits of totals narrower than the noise": partial(everywhere, "totals_within", 3),
    "a scale of half": partial(everywhere, "scale", 1.0),
    "less spent than this version": partial(everywhere, "spent", 0.5),
    "more spent than this version": partial(everywhere, "spent", 7.5),
    "less epsilon": partial(everywhere, "epsilon", 0.5),
    "less beta": partial(everywhere, "beta", 0.001),
    "probabilities off by 1": lambda f: f.protocol(lambda said: said.update(rounded=1.0)),
    "probabilities off by very little": lambda f: f.protocol(lambda said: said.update(rounded=1e-9)),
    "probabilities off by nothing": lambda f: f.protocol(lambda said: said.update(rounded=0.0)),
    "digits hidden in a limit": lambda f: f.privacy(
        disclosureControl={**f.read(f.folder.package)["funnel:privacy"]["disclosureControl"], "dominance": 0.95 + 1e-9}
    ),
    "people are the same": lambda f: f.privacy(people="same", versions=1),
    "versions": lambda f: f.privacy(versions=2),
    "order of rows": lambda f: f.privacy(rowOrder="as in the source"),
    "a version of one more": lambda f: f.package(lambda said: said.update(version="1.0.1")),
    "the protocol in csv beside no such table": lambda f: (f.folder.root / "protocol.csv").write_bytes(b"x"),
    "weights of estimates beside no such table": lambda f: (f.folder.root / "estimator.csv").write_bytes(b"x"),
    **{
        f"no word on {name}": partial(left_out, name=name)
        for name in ("changes", "rows", "means", "departures", "impossible")
    },
}


def test_files_that_agree_on_something_false(forge: Forge) -> None:
    found = {name: forge(change) for name, change in FILES.items()}
    assert [name for name, failed in found.items() if not failed] == []


def test_a_version_before_that_there_never_was(noisy: ReleaseFolder, tmp_path: Path) -> None:
    shutil.copytree(noisy.root, tmp_path / "copy")
    folder = ReleaseFolder(tmp_path / "copy")
    package, protocol = (json.loads(path.read_bytes()) for path in (folder.package, folder.protocol))
    folder.catalogue.write_bytes(documentation_again(package, protocol, "0.9.0")[folder.catalogue.name])
    Forger(folder, signing_key(noisy.root.parents[2] / ".funnel")).sign()
    failed = [check for check in recheck(folder, Told(public=True, fetched=True)) if not check.passed]
    assert [check.name for check in failed] == ["report figures"]
    assert "previous version is not that of the other files" in failed[0].detail


def test_another_key_and_files_that_were_not_signed(noisy: ReleaseFolder, tmp_path: Path) -> None:
    shutil.copytree(noisy.root, tmp_path / "copy")
    folder = ReleaseFolder(tmp_path / "copy")
    own = signing_key(noisy.root.parents[2] / ".funnel").public_key().public_bytes_raw().hex()
    Forger(folder, Ed25519PrivateKey.generate()).sign()
    failed = [check for check in recheck(folder, Told(key=own, public=True, fetched=True)) if not check.passed]
    assert [check.name for check in failed] == ["signature"]
    assert "not with the key that was given" in failed[0].detail
