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

from funnel.audit.context import AuditContext
from funnel.audit.page import check_followed, check_numbers
from funnel.audit.recheck import Told
from funnel.errors import DataError
from funnel.pipeline.flows.pipeline import run_release
from funnel.readers.source_files import file_digest
from funnel.recount.documentation import documentation_again
from funnel.release.document import dump
from funnel.release.layout import ReleaseFolder
from funnel.release.signature import signing_key
from funnel.rendering import figures_again, page_renderer
from funnel.spec import ReleaseSpec
from tests.audits import recheck
from tests.copies import copied
from tests.funnel.audit.forging import Forger
from tests.projects import SPEC, make_project

TEXT = (
    SPEC.replace('protection = "none"', 'protection = "noise"')
    + '\n[limits]\nset_aside = 0.1\n\n[mechanism]\nname = "grr"\n\n[categories]\n'
    + 'marital-status = ["Divorced", "Married-civ-spouse", '
    + '"Never-married", "Separated", "Widowed", "Other"]\n'
)
Path_ = tuple[str | int, ...]
Change = Callable[[Any], Any]


def half(value: float) -> float:
    return round(value / 2, 12)


def hidden(value: float) -> float:
    return value * (1 + 1e-9)


def more(value: int) -> int:
    return value + 1


def other(value: bool) -> bool:
    return not value


def to(value: Any) -> Change:
    return lambda _: value


# What is changed in report.json, of whose page, digests and signature all are made to fit.
REPORT: dict[str, tuple[Path_, Change]] = {
    "a lift": (("lifts", "table", "rows", 0, "cells", 0, "lift"), half),
    "how strong a lift is": (("lifts", "table", "rows", 0, "cells", 0, "strength"), half),
    "the spread of lifts": (("lifts", "spreads", 0, "values", 3), half),
    "the largest belief": (("beliefs", "rows", 0, "highest"), half),
    "the limit of a belief": (("beliefs", "rows", 0, "most"), half),
    "the belief of the example": (("example", "highest"), half),
    "a belief before": (("beliefs", "rows", 0, "prior"), half),
    "the error of a share": (("accuracy", "rows", 0, "error"), half),
    "a share": (("accuracy", "rows", 0, "share"), half),
    "the error of a table": (("estimated", 0, "rows", 0, "error"), half),
    "the typical error": (("estimated", 0, "typical"), half),
    "a chance of a true value": (("outputs", "rows", 0, "sources", 0, "chance"), half),
    "the name of an output": (("outputs", "rows", 0, "label"), to("Jane Doe")),
    "a probability": (("heat", "shares", 0, 0), half),
    "what guesses get right": (("figures", "guess_accuracy"), half),
    "what guesses got right before": (("figures", "prior_guess_accuracy"), half),
    "information about the secret": (("figures", "secret_information"), half),
    "the factor of the level": (("figures", "level_factor"), half),
    "values that are ruled out": (("figures", "rules_out"), other),
    "the level under all distributions": (("estimation", "robust_level"), half),
    "whether the estimate is doubtful": (("estimation", "doubtful"), other),
    "alpha": (("estimation", "alpha"), half),
    "digits hidden in beta": (("frequencies", "beta"), hidden),
    "digits hidden in epsilon": (("frequencies", "epsilon"), hidden),
    "records of the estimate": (("estimation", "records"), more),
    "rare values": (("rarity", "inputs"), more),
    "values of the secret": (("secret", "values"), more),
    "the mechanism in words": (("mechanism", "summary"), to("nothing is changed at all")),
    "whether the secret is read": (("mechanism", "reads_secret"), other),
    "the random source": (("random_source",), to("dice")),
    "the order of rows": (("shuffled",), other),
    "versions without noise before": (("frequencies", "unprotected"), more),
    "the people": (("people",), to(None)),
    "whether the bound covers the noise": (("frequencies", "covers_noise"), other),
    "whether it covers versions": (("frequencies", "covers_versions"), to(True)),
    "what the mechanism keeps, compared": (("compared", 0, "share"), half),
    "the level, compared": (("compared", 0, "level"), half),
    "a mechanism that was not chosen": (("compared",), lambda rows: [*rows, {**rows[0], "mechanism": "grr"}]),
    "nothing that was checked": (("judged",), to([])),
    "a check less": (("judged",), lambda rows: rows[:-1]),
    "a check twice": (("judged",), lambda rows: [*rows, rows[0]]),
    "no check of the source": (
        ("judged",),
        lambda rows: rows[[one["name"] for one in rows].index("files") :],
    ),
    "another sentence on a check": (("judged", -1, "description"), to("all is well")),
    "the licence": (("licence", "name"), to("CC0-1.0")),
    "the contact": (("contact", "name"), to("Jane Doe")),
    "a version before": (
        ("change",),
        to(
            {
                "version": "0.9.0",
                "created": "2026-01-01T00:00:00+00:00",
                "guarantee": "lip:1.0",
                "columns": ["relationship"],
                "records": 3000,
                "rows": "a fresh draw",
                "new_data": True,
                "withdrawn": [],
            }
        ),
    ),
}
# Of these no public file says anything else: `report figures` says that they could not be checked.
UNTOLD: dict[str, tuple[Path_, Change]] = {
    "draws before": (("earlier_releases",), more),
    "what was recoded": (("recodings", 0), to("nothing was recoded")),
    "the source": (("source", "title"), to("a census")),
}


RENDER, COMPARE = page_renderer(), figures_again()


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> ReleaseFolder:
    spec = make_project(tmp_path_factory.mktemp("forged"), TEXT)
    return ReleaseFolder(Path(run_release(ReleaseSpec.load(spec), False, False)[0]["folder"]))


def put(content: Any, path: Path_, change: Change) -> bool:
    """Change one place of a document; returns whether it is there and was changed."""
    try:
        for key in path[:-1]:
            content = content[key]
        before = content[path[-1]]
        content[path[-1]] = change(before)
    except (KeyError, IndexError, TypeError):
        return False
    return bool(content[path[-1]] != before)


Forge = Callable[[Callable[[Forger], Any]], set[str]]


@pytest.fixture
def forge(released: ReleaseFolder, tmp_path: Path) -> Forge:
    """Forges public files with the publisher's key; gives the names of the checks that do not pass."""
    key = signing_key(released.root.parents[2] / ".funnel")

    def forged(change: Callable[[Forger], Any]) -> set[str]:
        shutil.rmtree(tmp_path / "copy", ignore_errors=True)
        shutil.copytree(released.root, tmp_path / "copy")
        forger = Forger(ReleaseFolder(tmp_path / "copy"), key)
        folder = forger.folder
        change(forger)
        try:
            for page, text in RENDER(folder.numbers.read_bytes(), folder.protocol.read_bytes()).items():
                (folder.root / page).write_text(text, encoding="utf-8")
            report = {**forger.read(folder.package)["funnel:privacy"]["report"], "hash": _sha256(folder.numbers)}
            forger.privacy(report=report)
            forger.cover()
            told = Told(key=key.public_key().public_bytes_raw().hex(), public=True, fetched=True)
            return {check.name for check in recheck(folder, told) if not check.passed}
        except DataError:
            return {"cannot be read"}

    return forged


def _sha256(path: Path) -> str:
    return f"sha256:{file_digest(path)}"


def test_an_honest_release_passes_with_a_sentence_on_what_it_cannot_tell(released: ReleaseFolder, forge: Forge) -> None:
    assert forge(lambda forger: None) == set()
    details = {check.name: check.detail for check in recheck(released)}
    assert "could not be checked from public files: what the publisher writes in words" in details["report figures"]


def test_what_follows_from_public_files_cannot_be_stated_otherwise(released: ReleaseFolder, tmp_path: Path) -> None:
    """The two checks that compute a report again, each on a report whose digests and page would be made to fit."""
    folder = copied(released, tmp_path / "copy")
    honest = folder.numbers.read_bytes()

    def passes(path: Path_, change: Change) -> bool | None:
        content = json.loads(honest)
        if not put(content, path, change):
            return None
        folder.numbers.write_bytes(dump(content))
        known = AuditContext(folder, Told(figures=COMPARE))
        try:
            return check_numbers(known).passed and check_followed(known).passed
        except DataError:
            return False

    found = {name: passes(*one) for name, one in REPORT.items()}
    assert [name for name, passed in found.items() if passed] == []
    assert [name for name, passed in found.items() if passed is None] == []
    untold = {name: passes(*one) for name, one in UNTOLD.items()}
    assert [name for name, passed in untold.items() if not passed] == []


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
    **{f"no word on {name}": partial(left_out, name=name) for name in ("changes", "rows", "means")},
}


def test_files_that_agree_on_something_false(forge: Forge) -> None:
    found = {name: forge(change) for name, change in FILES.items()}
    assert [name for name, failed in found.items() if not failed] == []


def test_a_version_before_that_there_never_was(released: ReleaseFolder, tmp_path: Path) -> None:
    shutil.copytree(released.root, tmp_path / "copy")
    folder = ReleaseFolder(tmp_path / "copy")
    package, protocol = (json.loads(path.read_bytes()) for path in (folder.package, folder.protocol))
    folder.catalogue.write_bytes(documentation_again(package, protocol, "0.9.0")[folder.catalogue.name])
    Forger(folder, signing_key(released.root.parents[2] / ".funnel")).sign()
    failed = [check for check in recheck(folder, Told(public=True, fetched=True)) if not check.passed]
    assert [check.name for check in failed] == ["report figures"]
    assert "previous version is not that of the other files" in failed[0].detail


def test_another_key_and_files_that_were_not_signed(released: ReleaseFolder, tmp_path: Path) -> None:
    shutil.copytree(released.root, tmp_path / "copy")
    folder = ReleaseFolder(tmp_path / "copy")
    own = signing_key(released.root.parents[2] / ".funnel").public_key().public_bytes_raw().hex()
    Forger(folder, Ed25519PrivateKey.generate()).sign()
    failed = [check for check in recheck(folder, Told(key=own, public=True, fetched=True)) if not check.passed]
    assert [check.name for check in failed] == ["signature"]
    assert "not with the key that was given" in failed[0].detail
