"""A published version is in the register and an unpublished one is not, and whatever is lost or old is noticed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from funnel.errors import DataError, LedgerError, OutputError, PipelineError, SpecError
from funnel.readers.source_files import file_digest
from funnel.recount.histories import recount_histories
from funnel.register.entry import CHANGES, ENTRY, HEAD, PEOPLE, TABLES
from funnel.register.look_up import observe
from funnel.register.register import LOCK, Register, open_register
from tests.killing import killed_after
from tests.panels import KEY, REGISTER, SECRET, draw, prepare, publish, waves

WAVES = waves(11, 4, 60)


def contents(root: Path) -> list[str]:
    return sorted(path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file() and path.name != LOCK)


def test_a_register_is_read_back(tmp_path: Path) -> None:
    with open_register(tmp_path, REGISTER) as register:
        assert (register.head, register.head_sha256, register.entries, register.fingerprint) == (None, None, (), None)
        assert len(register.past) == 0
        heads = []
        for number, series in enumerate(("panel", "other", "panel")):
            version = f"1.{number}.0"
            prepared, _ = publish(register, WAVES[number], number, version, tmp_path, series=series)
            heads.append(prepared.head_sha256)
            assert register.head_sha256 == prepared.head_sha256
            assert file_digest(register.root / f"{number:04d}-{series}-{version}" / ENTRY) == prepared.entry_sha256
        again = Register.of(tmp_path, REGISTER)
        assert [entry.name for entry in again.entries] == ["panel/1.0.0", "other/1.1.0", "panel/1.2.0"]
        assert again.entries == register.entries
        assert again.head is not None
        assert [*again.head.earlier, again.head_sha256] == heads
        assert (again.head.serial, again.fingerprint) == (2, KEY.fingerprint)
        for one, other in zip(again.past.chapters, register.past.chapters, strict=True):
            for name in ("library", "followed", "drawn_from", "parents", "outputs"):
                np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
            assert (one.version, one.guarantee, one.first) == (other.version, other.guarantee, other.first)
            assert one.channel.digest == other.channel.digest
        assert register.root.stat().st_mode & 0o077 == 0
        again.check()
        for head in heads:
            again.require_head(head)
        again.require_published("panel", {"1.0.0": again.head.entries[0].entry})


def test_one_run_at_a_time(tmp_path: Path) -> None:
    with (
        open_register(tmp_path, REGISTER),
        pytest.raises(PipelineError, match="another run publishes about the people of the register panel-people"),
        open_register(tmp_path, REGISTER),
    ):
        pass
    with open_register(tmp_path, REGISTER):
        pass
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match=r"cannot|cannot be written"), open_register(tmp_path / "file", REGISTER):
        pass


def test_killed_at_every_change_on_disk(tmp_path: Path) -> None:
    """Between preparing and settling the version appears, or it does not: the register says the same."""
    base = tmp_path / "base"
    with open_register(base, REGISTER) as register:
        first, _ = publish(register, WAVES[0], 1, "1.0.0", base)
    seen = set()
    for changes in range(1000):
        workspace = tmp_path / str(changes)
        shutil.copytree(base, workspace)
        known = {("panel", "1.0.0"): first.entry_sha256}
        drawn, _ = draw(Register.of(workspace, REGISTER), WAVES[1], 2, "1.1.0", workspace)
        with killed_after(changes) as was_killed, open_register(workspace, REGISTER) as register:
            prepared = prepare(register, drawn, "1.1.0")
            known["panel", "1.1.0"] = prepared.entry_sha256
            register.commit(prepared)
        published = lambda series, version, known=known: known.get((series, version))  # noqa: E731
        # Killed while it is put right, too.
        for more in range(0, 12, 3):
            with killed_after(more), open_register(workspace, REGISTER) as register:
                register.reconcile(published)
        with open_register(workspace, REGISTER) as register:
            register.reconcile(published)
            assert [entry.name for entry in register.entries] == [f"panel/{version}" for _, version in known]
            register.require_published("panel", {version: digest for (_, version), digest in known.items()})
            assert len(register.past) == len(known)
            expected = [
                HEAD,
                *(f"{entry.folder}/{name}" for entry in register.entries for name in (ENTRY, PEOPLE, *TABLES)),
            ]
            assert contents(register.root) == sorted(expected)
            if len(known) == 1:
                publish(register, WAVES[1], 2, "1.1.0", workspace / "again")
                assert len(register.entries) == 2
        seen.add((was_killed(), len(known)))
        shutil.rmtree(workspace)
        if not was_killed():
            break
    assert seen == {(True, 1), (True, 2), (False, 2)}


def test_an_entry_that_waits_is_not_written_over(tmp_path: Path) -> None:
    with open_register(tmp_path, REGISTER) as register:
        prepared = prepare(register, draw(register, WAVES[0], 1, "1.0.0", tmp_path)[0], "1.0.0")
        with pytest.raises(LedgerError, match="another entry of the register panel-people waits"):
            publish(register, WAVES[1], 1, "1.1.0", tmp_path)
        register.discard(prepared)
        assert contents(register.root) == []
        publish(register, WAVES[1], 1, "1.2.0", tmp_path)
        assert [entry.version for entry in register.entries] == ["1.2.0"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    workspace = tmp_path_factory.mktemp("whole")
    with open_register(workspace, REGISTER) as register:
        for number in range(3):
            publish(register, WAVES[number], number, f"1.{number}.0", workspace)
    return workspace


def check(workspace: Path) -> None:
    register = Register.of(workspace, REGISTER)
    known = {(entry.series, entry.version): digest for entry, digest in register.with_digests()}
    register.reconcile(lambda series, version: known.get((series, version)))
    assert len(register.past) == 3


@pytest.mark.parametrize("name", [ENTRY, *TABLES])
def test_files_that_were_changed_or_are_gone_are_noticed(whole: Path, tmp_path: Path, name: str) -> None:
    workspace = tmp_path / "workspace"
    shutil.copytree(whole, workspace)
    check(workspace)
    path = workspace / "registers" / REGISTER / "0001-panel-1.1.0" / name
    content = path.read_bytes()
    path.write_bytes(content.replace(b"1", b"2", 1) if name == ENTRY else content + b"\n")
    with pytest.raises(LedgerError, match="restore the register from a backup"):
        check(workspace)
    path.unlink()
    with pytest.raises(LedgerError, match=r"is gone.* would be forgotten: restore the register from a backup"):
        check(workspace)
    path.write_bytes(content)
    check(workspace)


def test_entries_and_heads_that_do_not_fit_are_noticed(whole: Path, tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    shutil.copytree(whole, workspace)
    root = workspace / "registers" / REGISTER
    last = root / "0002-panel-1.2.0"
    # A folder of an entry, removed by hand.
    last.rename(tmp_path / "aside")
    with pytest.raises(
        LedgerError, match=r"the entry 0002-panel-1\.2\.0 of the register panel-people is gone; what was"
    ):
        check(workspace)
    (tmp_path / "aside").rename(last)
    # The head of an old backup, alone.
    head = json.loads((root / HEAD).read_text())
    old = {**head, "entries": head["entries"][:2], "earlier": head["earlier"][:1], "serial": 1}
    newest = (root / HEAD).read_bytes()
    (root / HEAD).write_text(json.dumps(old))
    with pytest.raises(
        LedgerError, match=r"head\.json is older than the entry 0002-panel-1\.2\.0, as an old backup is"
    ):
        check(workspace)
    # Or none, or what is none, or that of another register.
    (root / HEAD).unlink()
    with pytest.raises(
        LedgerError, match=r"head\.json is gone, and the register has entries such as 0000-panel-1\.0\.0"
    ):
        check(workspace)
    for said in ("{", json.dumps({**head, "serial": 7}), json.dumps({**head, "register": "others"})):
        (root / HEAD).write_text(said)
        with pytest.raises(LedgerError, match=r"head\.json .*restore the register from a backup"):
            check(workspace)
    (root / HEAD).write_bytes(newest)
    check(workspace)


OLDER = {
    PEOPLE: ("changed",),
    CHANGES: ("changed_before", "changed_after"),
    ENTRY: ("observers",),
}


def as_older(root: Path, name: str) -> None:
    """The first entry as a funnel wrote it that did not know some columns or keys, with digests that fit."""
    folder = next(path.parent for path in sorted(root.rglob(ENTRY)))
    entry, head = (json.loads((place / what).read_bytes()) for place, what in ((folder, ENTRY), (root, HEAD)))
    if name == ENTRY:
        entry["of_old"] = [entry.pop(key) for key in OLDER[name]]
    else:
        pq.write_table(pq.read_table(folder / name).drop_columns(list(OLDER[name])), folder / name)
        if name in entry["files"]:
            entry["files"][name] = file_digest(folder / name)
    (folder / ENTRY).write_text(json.dumps(entry))
    head["entries"][0] |= {"entry": file_digest(folder / ENTRY), "people": file_digest(folder / PEOPLE)}
    (root / HEAD).write_text(json.dumps(head))


@pytest.mark.parametrize("name", OLDER)
def test_a_register_of_another_funnel_is_said_to_be_one(name: str, tmp_path: Path) -> None:
    with open_register(tmp_path, REGISTER) as register:
        publish(register, WAVES[0], 0, "1.0.0", tmp_path)
    as_older(register.root, name)
    wanted = f"{name} was written by another version of funnel, .* name another register"
    with pytest.raises(LedgerError, match=wanted):
        observe(Register.of(tmp_path, REGISTER), WAVES[1].snapshot(tmp_path / "now"), WAVES[1].joint(), tmp_path / "w")
    # The independent recomputation says it of tables, and needs no key of the entry that it does not read.
    if name == ENTRY:
        return
    with pytest.raises(DataError, match=f"{name} has other columns than this version of funnel reads; check it with"):
        recount_histories(register.root)


def test_an_old_backup_of_a_whole_register_is_noticed(whole: Path, tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    shutil.copytree(whole, workspace)
    newest = Register.of(workspace, REGISTER)
    assert newest.head is not None
    assert newest.head_sha256 is not None
    published = {entry.version: known.entry for entry, known in zip(newest.entries, newest.head.entries, strict=True)}
    root = newest.root
    shutil.rmtree(root / "0002-panel-1.2.0")
    head = json.loads((root / HEAD).read_text())
    old = {**head, "entries": head["entries"][:2], "earlier": head["earlier"][:1], "serial": 1}
    (root / HEAD).write_text(json.dumps(old))
    register = Register.of(workspace, REGISTER)
    register.check()
    register.require_published("panel", {version: published[version] for version in ("1.0.0", "1.1.0")})
    with pytest.raises(
        LedgerError, match=r"version 1\.2\.0 of panel was published, and the register panel-people has no"
    ):
        register.require_published("panel", published)
    with pytest.raises(LedgerError, match=r"is not the one it was published with; what was published .* forgotten"):
        register.require_published("panel", {**published, "1.1.0": "0" * 64})
    with pytest.raises(LedgerError, match=r"is not the one it was published with"):
        register.reconcile(lambda series, version: "0" * 64)
    with pytest.raises(LedgerError, match="is older than what was published or forgotten since, as an old backup is"):
        register.require_head(newest.head_sha256)
    with pytest.raises(LedgerError, match="is older than"):
        Register.of(tmp_path / "empty", REGISTER).require_head(newest.head_sha256)
    Register.of(tmp_path / "empty", REGISTER).reconcile(lambda series, version: None)


def test_a_series_that_does_not_fit_is_refused(whole: Path) -> None:
    register = Register.of(whole, REGISTER)
    register.require_fitting(SECRET, ("id",), ("number",))
    with pytest.raises(SpecError, match="is about the secret ill, poor, not ill: one bound holds for one secret"):
        register.require_fitting(("ill",), ("id",))
    with pytest.raises(SpecError, match="are known by id, not by person, so that nobody would be known again"):
        register.require_fitting(SECRET, ("person",))
    with pytest.raises(SpecError, match="was whole numbers, and is now text"):
        register.require_fitting(SECRET, ("id",), ("text",))
    Register.of(whole, "empty").require_fitting(("any",), ("key",), ("text",))
