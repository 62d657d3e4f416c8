"""What is kept of the past and is old, changed, read-only or gone: said in one sentence, and nothing is published."""

from __future__ import annotations

import secrets
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from funnel.pipeline.ledger.tables import ENTRIES
from tests.panel_project import PanelProject
from tests.projects import tree
from tests.waves import WAVES

LEDGER = ("ledger.sqlite", "ledger-head")
REGISTER = "registers/panel-people"


def refused(panel: PanelProject, status: int = 9, *options: str, **how: bool) -> str:
    """Release, which has to be refused without a change to anything that is published; gives the sentence."""
    before = tree(panel.series)
    ended = panel.release(*options, **how)
    assert ended.status == status, ended.stdout
    assert tree(panel.series) == before
    return ended.sentence


def test_an_old_backup_is_noticed(panel: PanelProject, tmp_path: Path) -> None:
    """Of any part, restored beside a newer release: refused, until the newer one is there again."""
    old, newer = tmp_path / "old", tmp_path / "newer"
    shutil.copytree(panel.workspace, old)
    assert panel.release().said["version"] == "1.2.0"
    shutil.copytree(panel.workspace, newer)
    panel.source(WAVES[3])
    cases: list[tuple[tuple[str, ...], str]] = [
        (("registers",), "version 1.2.0 of panel was published, and the register panel-people has no entry of it"),
        (LEDGER, "the ledger does not know version 1.2.0, which was published"),
        (("ledger.sqlite",), "it is an old backup or another ledger, and would forget what was published"),
        (("registers", *LEDGER), "the ledger does not know version 1.2.0, which was published"),
        ((), "internal/panel/1.2.0/release.json of version 1.2.0 is missing"),
    ]
    for parts, why in cases:
        _restore(panel, old, parts)
        # What cannot be known again is not forgotten by asking twice.
        for _ in range(2):
            assert why in refused(panel), parts
        if parts == ("registers",):
            # Where nothing is to be released, too.
            panel.source(WAVES[2])
            assert why in refused(panel)
            panel.source(WAVES[3])
        _restore(panel, newer, ())
    said = panel.release().said
    assert (said["version"], said["history"]["versions"]) == ("1.3.0", 4)
    panel.require_whole("1.3.0")


def _restore(panel: PanelProject, backup: Path, parts: tuple[str, ...]) -> None:
    """Put parts of a backup of the workspace, or all of it, in the place of what is there."""
    for name in parts or ("",):
        place = panel.workspace / name
        if (backup / name).is_dir():
            shutil.rmtree(place, ignore_errors=True)
            shutil.copytree(backup / name, place)
        else:
            shutil.copy2(backup / name, place)


def test_what_is_gone_is_noticed(panel: PanelProject, tmp_path: Path) -> None:
    """Lost, beside releases that are there: nothing begins anew, and a backup makes it whole."""
    backup = tmp_path / "backup"
    shutil.copytree(panel.workspace, backup)
    for gone, why in (
        ("", "internal/panel/1.0.0/release.json of version 1.0.0 is missing"),
        ("internal", "internal/panel/1.0.0/release.json of version 1.0.0 is missing"),
        ("registers", "the register panel-people has no entry of it"),
        (f"{REGISTER}/head.json", "head.json is gone, and the register has entries"),
        (f"{REGISTER}/0000-panel-1.0.0", "0000-panel-1.0.0 of the register panel-people is gone"),
        (f"{REGISTER}/secret", "secret is gone: nobody in the register panel-people could be known again"),
        ("ledger.sqlite", "ledger.sqlite is gone"),
    ):
        path = panel.workspace / gone
        shutil.rmtree(path) if path.is_dir() else path.unlink()
        for _ in range(2):
            assert why in refused(panel), gone
        _restore(panel, backup, ())
    assert panel.release().said["version"] == "1.2.0"
    panel.require_agreement()


def _flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def _forge(path: Path) -> None:
    """Remove an entry from the ledger."""
    with closing(sqlite3.connect(path)) as database, database:
        for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            database.execute(f"DROP TRIGGER {name}")
        assert database.execute(f"DELETE FROM {ENTRIES.name} WHERE serial = 2").rowcount == 1


def test_what_was_changed_is_noticed(panel: PanelProject) -> None:
    """A single bit of the register, an entry of the ledger, another secret: nothing is drawn from it."""
    changes: list[tuple[str, Callable[[Path], object], str]] = [
        (f"{REGISTER}/0001-panel-1.1.0/people.parquet", _flip, "people.parquet"),
        (f"{REGISTER}/0000-panel-1.0.0/channels.parquet", _flip, "channels.parquet"),
        (f"{REGISTER}/0001-panel-1.1.0/entry.json", _flip, "entry.json"),
        (f"{REGISTER}/head.json", _flip, "head"),
        (f"{REGISTER}/secret", lambda path: path.write_text(secrets.token_hex()), "is not the one that the register"),
        ("ledger.sqlite", _forge, "does not fit"),
        ("ledger-head", _flip, "the head of the ledger"),
    ]
    for name, change, why in changes:
        path = panel.workspace / name
        before = path.read_bytes()
        change(path)
        assert why in refused(panel), name
        path.write_bytes(before)
    assert "cannot be rotated" in refused(panel, 3, "--rotate-secret")
    assert panel.release().said["version"] == "1.2.0"
    panel.require_agreement()


@contextmanager
def _read_only(path: Path) -> Iterator[None]:
    rights = path.stat().st_mode
    path.chmod(0o500 if path.is_dir() else 0o400)
    try:
        yield
    finally:
        path.chmod(rights)


def test_what_may_only_be_read(panel: PanelProject) -> None:
    """Refused, and the same is released once it may be written."""
    for name, status, why in (
        ("ledger.sqlite", 9, "ledger.sqlite cannot be written"),
        ("", 9, "give permission"),
        (REGISTER, 10, "registers/panel-people cannot be written"),
    ):
        with _read_only(panel.workspace / name):
            assert why in refused(panel, status, unprivileged=True), name
        assert panel.in_register() == ["panel/1.0.0", "panel/1.1.0"]
    assert panel.release(unprivileged=True).said["version"] == "1.2.0"
    panel.require_agreement()


def test_a_release_folder_that_is_deleted_by_hand(panel: PanelProject) -> None:
    """Its rows were seen: it is withdrawn, not forgotten, and the next version is drawn given it."""
    shutil.rmtree(panel.series / "1.1.0")
    said = panel.release().said
    assert (said["version"], said["history"]["versions"]) == ("1.2.0", 3)
    panel.require_whole("1.2.0", withdrawn=("1.1.0",))
    shutil.rmtree(panel.folder / "releases")
    # The same people and values again: another draw about them, given all three.
    said = panel.release().said
    assert said["status"] == "published"
    assert said["history"]["versions"] == 4
    panel.require_whole(said["version"], withdrawn=("1.0.0", "1.1.0", "1.2.0"))
