"""A run's account, with a real series: killed anywhere, ledger and folders agree after the next start."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import funnel.pipeline.ledger.ledger as ledger_room
import funnel.release.series as series_room
from funnel.errors import InfeasibleGuarantee, LedgerError, OutputError, PipelineError, ReleaseRefused, SpecError
from funnel.pipeline.ledger.account import Account, accounting, ledger_of
from funnel.pipeline.ledger.entry import Entry
from funnel.pipeline.ledger.holding import Patience
from funnel.pipeline.ledger.ledger import Ledger
from funnel.readers.source_files import file_digest
from funnel.release.files import private_folder
from funnel.release.layout import SIGNATURE_FILE, Version
from funnel.release.record import History, Record
from funnel.release.series import Series, open_series
from funnel.release.signature import sign_release
from funnel.spec import ReleaseSpec
from tests.killing import RENAMES_AND_REMOVALS, Killed, die_after
from tests.ledger.events import Clock, event
from tests.projects import spec_of
from tests.records import SHA, made_from, record_of
from tests.releases import judged

DIGEST = "0" * 64


def spec(folder: Path, url: str | None = None, name: str = "people", **output: str) -> ReleaseSpec:
    return spec_of(
        "x.parquet",
        folder,
        name=name,
        output={"folder": "out", "workspace": "work", **output},
        ledger={"url": url},
        record_key=["id"],
        history={"people": "same", "register": "panel"},
    )


def record(version: str, signature: str = DIGEST) -> Record:
    origin = made_from(spec=DIGEST, record_key=("id",), secret="0123456789abcdef", key_kinds=("text",))
    files = {"data/records.parquet": DIGEST, SIGNATURE_FILE: signature}
    software = {"funnel": "0.1.0"}
    return record_of(version, created="2026-05-01T12:00:00+00:00", origin=origin, files=files, software=software)


def put(described: ReleaseSpec, series: Series, account: Account | None, version: str) -> str | None:
    """Publish a version that consists of its record, its verdict and its signature."""
    number = Version(*map(int, version.split(".")))
    with series.incoming() as folder:
        private_folder(folder.internal)
        folder.protocol.write_text(version)
        folder.package.write_text("{}")
        verdict = judged(folder)
        folder.verdict.write_bytes(verdict.to_bytes())
        sign_release(described, folder, version, "2026-05-01T12:00:00+00:00", verdict.files)
        folder.record.write_bytes(record(version, file_digest(folder.signature)).to_bytes())
        if account is not None:
            account.publishing(folder)
        signature = file_digest(folder.signature)
        series.publish(folder, number, verdict, lambda *_: None, signature)
        return None if account is None else account.published()


@contextmanager
def running(described: ReleaseSpec, **options: Any) -> Iterator[tuple[Series, Account]]:
    """A run of a series, and its account."""
    with open_series(described) as series, accounting(described, series, clock=Clock(), **options) as account:
        yield series, account


def gone(*_: Any, **__: Any) -> Any:
    """In the place of what enters something."""
    raise LedgerError("the ledger is gone")


def release(described: ReleaseSpec, version: str) -> str | None:
    with running(described) as (series, account):
        return put(described, series, account, version)


def start(described: ReleaseSpec) -> None:
    """A run that finds everything published already."""
    with running(described):
        pass


def entries(described: ReleaseSpec) -> list[Entry]:
    with ledger_of(described, read_only=True) as ledger:
        ledger.verify()
        return list(ledger.entries())


def kinds(described: ReleaseSpec) -> list[str]:
    return [
        entry.event.kind + (f" {entry.event.version}" if entry.event.version else "") for entry in entries(described)
    ]


def test_a_version_is_announced_and_then_entered(url: str | None, tmp_path: Path) -> None:
    described = spec(tmp_path, url)
    assert release(described, "1.0.0") is None
    assert kinds(described) == ["publishing 1.0.0", "published 1.0.0"]
    announced, published = (entry.event for entry in entries(described))
    assert announced == published.model_copy(update={"kind": "publishing"})
    folder = Series.of(described).folder(Version(1, 0, 0))
    assert published.digests.model_dump(exclude_none=True) == {
        "source": SHA(6),
        "snapshot": SHA(7),
        "protocol": SHA(8),
        "record": file_digest(folder.record),
    }
    assert (published.guarantee, published.key, published.rows) == ("lip:1.0", "0123456789abcdef", 10)
    assert published.verdict.passed
    assert published.verdict.sentence == "all 1 expectations hold"
    assert (published.started, published.software) == ("2026-05-01T12:00:00+00:00", {"funnel": "0.1.0"})
    assert "@" in published.started_by
    # Another run that does nothing enters nothing.
    start(described)
    assert len(entries(described)) == 2


def test_killed_anywhere_ledger_and_folders_agree_after_the_next_start(url: str | None, tmp_path: Path) -> None:
    """Killed before each rename, removal and entry: never a version without entry, nor the reverse."""
    ends = set()
    for moment in itertools.count(step=1 if url is None else 3):
        described = spec(tmp_path / str(moment), url, name=f"people-{moment}")
        folder = tmp_path / str(moment) / "out" / described.name / "1.0.0"
        with pytest.MonkeyPatch.context() as patch, suppress(Killed), open_series(described) as series:
            points = (
                *(*RENAMES_AND_REMOVALS, (Ledger, "_entered")),
                # Between the entry and what comes next, and between the rename and what comes next.
                *((ledger_room, "write_head"), (series_room, "sync_folder")),
            )
            was_killed = die_after(patch, moment, points)
            with accounting(described, series, clock=Clock()) as account:
                put(described, series, account, "1.0.0")
        there, said = folder.is_dir(), about(described)
        # At no moment is there a version that was not announced.
        assert not there or said[0] == "publishing", moment
        withdrawn = there and moment % 2 == 1
        if withdrawn:
            # By hand, before any other run has looked.
            shutil.rmtree(folder)
        expected = ["publishing", "published"] if there else ["publishing", "unfinished"] if said else []
        for _ in range(2):
            start(described)
            assert about(described) == [*expected, *(["withdrawn"] if withdrawn else [])], moment
        ends.add(tuple(expected))
        if not was_killed():
            break
    assert ends == {(), ("publishing", "unfinished"), ("publishing", "published")}
    assert moment > 12


def about(described: ReleaseSpec) -> list[str]:
    """What the ledger says of a series, in order; none where there is no ledger."""
    with suppress(LedgerError), ledger_of(described, read_only=True) as ledger:
        return [entry.event.kind for entry in ledger.entries(series=described.name)]
    return []


def test_a_run_that_is_refused_is_entered_with_its_sentence(url: str | None, tmp_path: Path) -> None:
    described = spec(tmp_path, url)
    for number, error in enumerate((ReleaseRefused("r"), SpecError("s"), InfeasibleGuarantee("i"))):
        with pytest.raises(type(error)), running(described):
            raise error
        last = entries(described)[-1].event
        assert (last.kind, last.version, last.verdict.passed, last.verdict.sentence) == (
            "refused",
            None,
            False,
            str(error),
        )
        assert (last.series, last.register_name, last.guarantee) == ("people", "panel", "lip:1.0")
        assert len(entries(described)) == number + 1
        assert last.software["funnel"]


@pytest.mark.parametrize("error", [OutputError("full"), PipelineError("busy"), KeyboardInterrupt(), ValueError("x")])
def test_what_says_nothing_of_the_release_is_not_entered(tmp_path: Path, error: BaseException) -> None:
    described = spec(tmp_path)
    start(described)
    with pytest.raises(type(error)), running(described):
        raise error
    with ledger_of(described, read_only=True) as ledger:
        assert list(ledger.entries()) == []


def test_a_version_that_is_refused_at_the_last_moment(tmp_path: Path) -> None:
    """Announced, and then its files are not those that were judged: both are entered at once."""
    described = spec(tmp_path)

    def spoilt() -> None:
        with running(described) as (series, account), series.incoming() as folder:
            private_folder(folder.internal)
            folder.protocol.write_text("judged")
            verdict = judged(folder)
            folder.verdict.write_bytes(verdict.to_bytes())
            folder.record.write_bytes(record("1.0.0").to_bytes())
            account.publishing(folder)
            folder.protocol.write_text("another")
            series.publish(folder, Version(1, 0, 0), verdict, lambda *_: None)

    with pytest.raises(ReleaseRefused):
        spoilt()
    assert kinds(described) == ["publishing 1.0.0", "unfinished 1.0.0", "refused"]


def test_without_its_announcement_nothing_is_published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    described = spec(tmp_path)
    release(described, "1.0.0")
    with running(described) as (series, account):
        monkeypatch.setattr(Ledger, "_entered", gone)
        with pytest.raises(LedgerError, match=r"^nothing was published: the ledger is gone$"):
            put(described, series, account, "1.1.0")
        monkeypatch.undo()
        assert series.published == [Version(1, 0, 0)]
    assert kinds(described) == ["publishing 1.0.0", "published 1.0.0"]


def test_what_could_not_be_entered_is_told_and_caught_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    described, real = spec(tmp_path), Ledger._entered

    def once(self: Ledger, events: Any, *rest: Any, **options: Any) -> Any:
        if events[0].kind == "published":
            raise LedgerError("the ledger is gone")
        return real(self, events, *rest, **options)

    monkeypatch.setattr(Ledger, "_entered", once)
    assert release(described, "1.0.0") == (
        "version 1.0.0 is published, and the next run enters that, since now the ledger is gone"
    )
    monkeypatch.undo()
    assert kinds(described) == ["publishing 1.0.0"]
    start(described)
    assert kinds(described) == ["publishing 1.0.0", "published 1.0.0"]


def test_a_ledger_begun_on_an_existing_series_learns_of_it(url: str | None, tmp_path: Path) -> None:
    described = spec(tmp_path, url)
    with open_series(described) as series:
        for version in ("1.0.0", "1.1.0", "1.2.0"):
            put(described, series, None, version)
    shutil.rmtree(tmp_path / "out" / "people" / "1.1.0")
    start(described)
    assert kinds(described) == ["restored 1.0.0", "withdrawn 1.1.0", "restored 1.2.0"]
    last = entries(described)[-1].event
    assert last.digests.record == file_digest(tmp_path / "work" / "internal" / "people" / "1.2.0" / "release.json")
    assert (
        last.verdict.sentence
        == "it was published before this ledger was begun, or from elsewhere; entered from its record"
    )


def test_a_folder_that_is_removed_and_put_back(tmp_path: Path) -> None:
    described = spec(tmp_path)
    release(described, "1.0.0")
    shutil.move(tmp_path / "out" / "people" / "1.0.0", tmp_path / "aside")
    start(described)
    start(described)
    shutil.move(tmp_path / "aside", tmp_path / "out" / "people" / "1.0.0")
    start(described)
    assert kinds(described) == ["publishing 1.0.0", "published 1.0.0", "withdrawn 1.0.0", "restored 1.0.0"]


def test_an_old_backup_of_the_ledger_is_refused_with_and_without_its_head(url: str | None, tmp_path: Path) -> None:
    described = spec(tmp_path, url)
    release(described, "1.0.0")
    file, head = tmp_path / "work" / "ledger.sqlite", tmp_path / "work" / "ledger-head"
    if url is None:
        old = file.read_bytes(), head.read_bytes()
        release(described, "1.1.0")
        file.write_bytes(old[0])
        with pytest.raises(LedgerError, match="does not know entry 4"):
            start(described)
        # The head of that day beside it: what is published tells.
        head.write_bytes(old[1])
    else:
        with open_series(described) as series:
            put(described, series, None, "1.1.0")
    with pytest.raises(LedgerError, match=r"does not know version 1\.1\.0, which was published"):
        start(described)
    assert kinds(described) == ["publishing 1.0.0", "published 1.0.0"]


def test_an_old_backup_of_the_workspace_beside_a_newer_ledger_is_refused(postgres: Any, tmp_path: Path) -> None:
    described = spec(tmp_path, postgres.database())
    release(described, "1.0.0")
    shutil.copytree(tmp_path / "work", tmp_path / "backup")
    release(described, "1.1.0")
    shutil.rmtree(tmp_path / "work")
    shutil.move(tmp_path / "backup", tmp_path / "work")
    # Its folder would tell; but that is gone too.
    shutil.rmtree(tmp_path / "out" / "people" / "1.1.0")
    with pytest.raises(LedgerError, match=r"version 1\.1\.0 of people was published, and neither its folder"):
        start(described)


def test_another_machine_with_nothing_of_it_is_refused(postgres: Any, tmp_path: Path) -> None:
    url = postgres.database()
    release(spec(tmp_path / "a", url), "1.0.0")
    with pytest.raises(LedgerError, match="publish from the one that made it"):
        start(spec(tmp_path / "b", url))
    # Under another folder it is another series.
    other = spec(tmp_path / "b", url, workspace="b/work")
    release(other, "1.0.0")
    assert kinds(other) == ["publishing 1.0.0", "published 1.0.0"] * 2


def test_another_workspace_publishes_nothing_to_the_folder_of_one(tmp_path: Path) -> None:
    """As without a ledger: what was published about the same people is known where its evidence is."""
    one, other = spec(tmp_path), spec(tmp_path, workspace="other")
    release(one, "1.0.0")
    with pytest.raises(LedgerError, match="published from another workspace"):
        release(other, "1.1.0")
    release(one, "1.2.0")
    assert kinds(one)[2:] == ["publishing 1.2.0", "published 1.2.0"]


def test_a_record_that_was_exchanged_with_what_the_workspace_knows_is_refused(tmp_path: Path) -> None:
    described = spec(tmp_path)
    release(described, "1.0.0")
    path = tmp_path / "work" / "internal" / "people" / "1.0.0" / "release.json"
    kept = next((tmp_path / "work" / "people" / "records").rglob("1.0.0.json"))
    with open_series(described):
        changed = record("1.0.0").model_copy(update={"rows": 11}).to_bytes()
    path.write_bytes(changed)
    kept.write_bytes(changed)
    with pytest.raises(LedgerError, match="not the one that the ledger names"):
        start(described)


def test_a_tampered_ledger_stops_every_run_before_it_begins(tmp_path: Path) -> None:
    import sqlite3

    described = spec(tmp_path)
    release(described, "1.0.0")
    connection = sqlite3.connect(tmp_path / "work" / "ledger.sqlite")
    with connection:
        connection.execute("DROP TRIGGER funnel_ledger_keeps_content")
        connection.execute("UPDATE funnel_ledger SET content = replace(content, '\"rows\":10', '\"rows\":11')")
    connection.close()
    with pytest.raises(LedgerError, match=r"entry 1 of the ledger .* does not fit"):
        start(described)


def test_runs_about_the_same_people_wait_for_one_another(tmp_path: Path) -> None:
    """Two series of one register: the second says that it waits, and then that it does not any longer."""
    one, other, told = spec(tmp_path), spec(tmp_path, name="others"), []
    impatient = Patience(tries=2, sleep=lambda _: None)
    with (
        open_series(one) as series,
        accounting(one, series),
        open_series(other) as second,
        pytest.raises(PipelineError, match="another run is publishing about the people of panel"),
        accounting(other, second, patience=impatient, progress=lambda what, *_: told.append(what)),
    ):
        raise AssertionError("two runs hold one register")
    assert told == ["waiting for another run that publishes about the people of panel"]
    start(other)


def test_what_the_history_of_a_version_is(tmp_path: Path) -> None:
    described = spec(tmp_path)
    with running(described) as (_, account):
        told = record("1.0.0")
        history = {
            name: value
            for name, value in {
                "people": "same",
                "register": "panel",
                "ordinal": 3,
                "name": "people/1.0.0",
                "entry": "4" * 64,
                "head": "1" * 64,
                "target": "2" * 64,
                "drawing": "3" * 64,
                "histories": 17,
                "level": 0.75,
                "moved": 5,
                "outside": 2,
                "reserve": 0.9,
            }.items()
        }
        said = account._of_record(told.model_copy(update={"history": History(**history)}), _passed())
    assert (said.joint_level, said.histories, said.moved, said.outside) == (0.75, 17, 5, 2)
    assert (said.digests.target, said.digests.drawing, said.digests.register_head) == ("2" * 64, "3" * 64, "1" * 64)
    assert said.register_name == "panel"


def _passed() -> Any:
    from funnel.pipeline.ledger.entry import Judged

    return Judged(passed=True, sentence="all hold")


def test_people_who_were_forgotten(tmp_path: Path) -> None:
    described = spec(tmp_path)
    with running(described) as (_, account):
        account.forgotten(1, "e" * 64)
        account.forgotten(2, "f" * 64)
        with pytest.raises(ValueError, match="announced before"):
            account.published()
    first, second = (entry.event for entry in entries(described))
    assert (first.kind, first.digests.register_head) == ("forgotten", "e" * 64)
    assert first.verdict.sentence == "1 person was erased from the register on request"
    assert second.verdict.sentence == "2 people were erased from the register on request"


def test_erasing_that_cannot_be_entered_says_that_it_was_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    described = spec(tmp_path)
    with running(described) as (_, account):
        monkeypatch.setattr(Ledger, "_entered", gone)
        with pytest.raises(
            LedgerError, match=r"^1 person was erased from .*, but that could not be entered: the ledger"
        ):
            account.forgotten(1, "e" * 64)


def test_a_run_that_is_to_release_nothing_is_no_refusal(tmp_path: Path) -> None:
    described = spec(tmp_path)
    with pytest.raises(SpecError), running(described, releases=False):
        raise SpecError("nobody is known")
    assert entries(described) == []


@dataclass
class Heads:
    """A register as far as its heads go: the newest last."""

    heads: list[str]
    name: str = "panel"

    def require_head(self, head: str) -> None:
        if head not in self.heads:
            raise LedgerError("the register is older")


def test_an_old_backup_of_the_register_is_noticed(tmp_path: Path) -> None:
    """By the newest head that was entered, by whatever series; a version that was only announced is in no register."""
    described = spec(tmp_path)
    with running(described) as (_, account):
        account.require_register(Heads([]))  # type: ignore[arg-type]
        account.ledger.append_all(
            [
                event("published", series="others", digests={"register_head": "1" * 64}),
                event("published", series="others", register="elsewhere", digests={"register_head": "9" * 64}),
                event("forgotten", None, digests={"register_head": "2" * 64}),
                event("published", "1.1.0"),
                event("publishing", "1.2.0", series="others", digests={"register_head": "3" * 64}),
                event("refused", None),
            ]
        )
        for heads in (["1" * 64, "2" * 64], ["1" * 64, "2" * 64, "3" * 64]):
            account.require_register(Heads(heads))  # type: ignore[arg-type]
        for heads in ([], ["1" * 64]):
            with pytest.raises(LedgerError, match="older"):
                account.require_register(Heads(heads))  # type: ignore[arg-type]
