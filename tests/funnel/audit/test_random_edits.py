"""Random edits of public documents, signed anew: each ends in a sentence or in checks, and none in another error."""

from __future__ import annotations

import itertools
import json
import random
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from funnel.audit.check import State, error_of, overall
from funnel.audit.recheck import Told
from funnel.errors import DataError, FunnelError
from funnel.release.document import dump
from funnel.release.layout import ReleaseFolder
from tests.audits import recheck
from tests.funnel.audit.forging import Forger
from tests.projects import SPEC, adult_rows, make_project
from tests.releases import make_release

NOISY = (
    SPEC.replace('protection = "none"', 'protection = "noise"')
    + "\n[limits]\nset_aside = 0.6\n\n[output]\ncsv = true\n"
)
DOCUMENTS = ("protocol.json", "datapackage.json", "signature.json", "frequencies.json", "report.json")
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 2, 0.5, -0.0, 1e308, 1e-320, 2**63, -(2**63), 10**400, float("nan"), float("inf")),
    *("", "x", "1", "-1", "1e5", "0" * 50, "9" * 5000, "1.0.0", "\0"),
    *([], {}, [[]], [None], {"a": 1}, [1, 2, 3], ["a", "a"], [[1], [2, 3]]),
)
EDITS = 30


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> ReleaseFolder:
    return make_release(make_project(tmp_path_factory.mktemp("edited"), NOISY, adult_rows(0, 1000)))


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every object or list in a JSON value, with one of its keys."""
    for key, part in list(value.items() if isinstance(value, dict) else enumerate(value)):
        yield value, key
        if isinstance(part, dict | list):
            yield from places(part)


def edit(content: Any, chance: random.Random) -> None:
    """Change, delete, repeat or turn around something somewhere."""
    inner, key = chance.choice(list(places(content)))
    old, kind = inner[key], chance.randrange(6)
    if kind == 0:
        del inner[key]
    elif kind == 1 and isinstance(old, list) and old:
        chance.choice([old.clear, old.pop, old.reverse, lambda: old.append(old[0])])()
    elif kind == 2 and isinstance(old, int | float) and not isinstance(old, bool):
        inner[key] = chance.choice([old + 1, -old, old * 10**9, str(old), [old]])
    elif kind == 3 and isinstance(old, str):
        inner[key] = chance.choice([old + "x", old[:-1], "-" + old, old + "9" * 400, [old]])
    else:
        inner[key] = chance.choice(VALUES)


def audited(folder: ReleaseFolder) -> State:
    """What an audit of the public files finds; a document that cannot be read at all is an error of its own."""
    try:
        checks = recheck(folder, Told(public=True))
    except DataError as error:
        return State.FAILED if str(error).isprintable() else State.PASSED
    assert all(check.detail.isprintable() for check in checks)
    complaint = error_of("here", checks)
    assert complaint is None or isinstance(complaint, FunnelError)
    return overall(checks)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_any_edit_ends_in_a_failed_check_or_one_sentence(honest: ReleaseFolder, tmp_path: Path, name: str) -> None:
    chance = random.Random(name)
    folder, edited = ReleaseFolder(tmp_path / "1.0.0"), 0
    for _ in range(EDITS):
        shutil.rmtree(folder.root, ignore_errors=True)
        shutil.copytree(honest.root, folder.root)
        path = folder.root / name
        content = json.loads(path.read_bytes())
        edit(content, chance)
        try:
            path.write_bytes(dump(content))
        except ValueError:
            # What is no number in JSON.
            path.write_text(json.dumps(content))
        changed = path.read_bytes()
        if chance.random() < 0.7 and path != folder.signature:
            # Whoever has the key signs what was edited, as far as there is anything to sign.
            with suppress(Exception):
                Forger(folder).sign()
        if changed != (honest.root / name).read_bytes():
            edited += 1
            assert audited(folder) is not State.PASSED, changed
    assert edited > EDITS / 2


@pytest.mark.parametrize("name", ["../../elsewhere", "/", "9" * 400, "a\0b", ""])
def test_the_name_of_a_series_leads_nowhere(honest: ReleaseFolder, tmp_path: Path, name: str) -> None:
    folder = ReleaseFolder(tmp_path / "1.0.0")
    shutil.copytree(honest.root, folder.root)
    Forger(folder).package(lambda content: content.update(name=name))
    assert audited(folder) is State.FAILED


def test_numbers_beyond_all_releases_neither_fail_an_audit_nor_keep_it_busy(
    honest: ReleaseFolder, tmp_path: Path
) -> None:
    """Counts that no float holds, noise so wide that its limits would take hours, and what is no number of these."""
    ways = [("noisy", 0, 0), ("epsilon",), ("epsilon_counts",), ("scale",), ("beta",), ("cells_within",)]
    for number, (way, value) in enumerate(itertools.product(ways, (10**400, 10**18, 10**11, 1e18, 1e-9, -1))):
        folder = ReleaseFolder(tmp_path / f"{number}" / "1.0.0")
        shutil.copytree(honest.root, folder.root)
        content = inner = json.loads(folder.frequencies.read_bytes())
        *path, last = way
        for key in path:
            inner = inner[key]
        assert isinstance(inner, list) or last in inner
        inner[last] = value
        folder.frequencies.write_bytes(dump(content))
        Forger(folder).sign()
        assert audited(folder) is State.FAILED


def test_a_release_has_one_licence(honest: ReleaseFolder, tmp_path: Path) -> None:
    folder = ReleaseFolder(tmp_path / "1.0.0")
    shutil.copytree(honest.root, folder.root)
    Forger(folder).package(lambda content: content.update(licenses=2 * content["licenses"]))
    assert audited(folder) is State.FAILED
