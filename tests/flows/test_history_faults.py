"""Odd sources, odd clocks and two schedulers at once, about people who are known: one bound, and nothing forgotten."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from funnel.release.layout import ReleaseFolder
from funnel.release.record import Record
from tests.ledger.servers import Server, running_server
from tests.panel_project import PEOPLE, PanelProject
from tests.projects import tree
from tests.stage import Stage
from tests.waves import WAVES, wave


def levels(panel: PanelProject) -> list[float]:
    """What all versions together tell, as each version's record has it."""
    records = [Record.read(ReleaseFolder(panel.series / version).record) for version in panel.in_folders()]
    return [record.history.level for record in records if record.history is not None]


@pytest.mark.parametrize(
    ("rest", "status", "why"),
    [("no rows", 4, "has no rows"), ("no bytes", 4, "panel.parquet"), ("no file", 4, "panel.parquet")],
)
def test_a_source_that_shrinks_to_nothing(panel: PanelProject, rest: str, status: int, why: str) -> None:
    before, path = tree(panel.series), panel.folder / "panel.parquet"
    if rest == "no rows":
        panel.source(wave(WAVES[2], PEOPLE).slice(0, 0))
    elif rest == "no bytes":
        path.write_bytes(b"")
    else:
        path.unlink()
    ended = panel.release()
    assert ended.status == status, ended.stderr
    assert why in ended.sentence
    assert tree(panel.series) == before
    panel.require_agreement()
    panel.source(WAVES[1])
    assert panel.release().said["status"] == "unchanged"


def test_a_source_of_a_single_person_and_one_of_strangers(panel: PanelProject) -> None:
    """The first is refused, the second are all new: neither breaks the bound, or the way on."""
    panel.source(wave(WAVES[2], PEOPLE).slice(0, 1))
    ended = panel.release()
    assert ended.status == 4, ended.stdout
    assert "has 1 row; a joint distribution" in ended.sentence
    panel.require_agreement()
    strangers = wave(WAVES[2], PEOPLE)
    ids = pa.array([10**6 + number for number in strangers["id"].to_pylist()])
    panel.source(strangers.set_column(0, "id", ids))
    said = panel.release().said
    assert (said["status"], said["history"]["people_known"], said["history"]["histories"]) == ("published", 0, 1)
    panel.require_whole(said["version"])


def test_the_same_wave_twice(panel: PanelProject) -> None:
    """The same file is unchanged; the same rows in another file, or asked for again, are drawn given all before."""
    panel.source(WAVES[1])
    before = tree(panel.series)
    assert panel.release().said["status"] == "unchanged"
    assert tree(panel.series) == before
    table = wave(WAVES[1], PEOPLE)
    panel.source(table.take(list(reversed(range(len(table))))))
    assert panel.release().said["history"]["people_known"] == len(table)
    again = panel.release("--again").said
    assert again["status"] == "published"
    assert again["history"]["people_known"] == len(table)
    assert max(levels(panel)) <= 1
    panel.require_whole(again["version"])


def test_waves_in_the_wrong_order(stage: Stage, tmp_path: Path) -> None:
    """Versions are in the order of publication, whatever the years are; the bound is on all of them."""
    panel = PanelProject(tmp_path, stage)
    panel.write_spec()
    for number, year in enumerate((WAVES[2], WAVES[0], WAVES[1])):
        panel.source(year)
        assert panel.release().said["version"] == f"1.{number}.0"
    assert panel.in_register() == ["panel/1.0.0", "panel/1.1.0", "panel/1.2.0"]
    assert max(levels(panel)) <= 1
    panel.require_whole("1.2.0")


def test_a_clock_that_is_set_back(panel: PanelProject) -> None:
    """Versions keep their order, which is that of entries; the ledger notes it."""
    said = panel.release(clock=datetime.now(UTC) - timedelta(days=30)).said
    assert said["version"] == "1.2.0"
    entries = json.loads(panel.stage.run("ledger", "show", panel.spec, "--json").stdout)["entries"]
    assert [entry["note"] is not None for entry in entries] == [False] * 4 + [True, False]
    assert entries[4]["note"].startswith("the clock went back: entry 4 is of ")
    panel.source(WAVES[3])
    # And forward again.
    assert panel.release().said["version"] == "1.3.0"
    panel.require_whole("1.3.0")


def _on_server(panel: PanelProject, server: Server) -> None:
    """Let a ledger on a server be begun on the series, in the place of the one in the workspace."""
    for name in ("ledger.sqlite", "ledger-head"):
        (panel.workspace / name).unlink()
    panel.write_spec(f'\n[ledger]\nurl = "{server.database()}"\n')


def _second_series(panel: PanelProject) -> PanelProject:
    """Another series about the same people, that publishes another column."""
    other = PanelProject(panel.folder, panel.stage, "families")
    described = panel.spec.read_text().replace('name = "panel"', 'name = "families"')
    other.spec.write_text(described.replace('"kids", "income"', '"married"'))
    return other


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    with running_server() as server:
        yield server


@pytest.mark.parametrize("where", ["sqlite", "postgresql"])
def test_two_schedulers(panel: PanelProject, where: str, request: pytest.FixtureRequest) -> None:
    """Of one series the second is told so; of two series of one register it waits, and then knows of the first."""
    if where == "postgresql":
        _on_server(panel, request.getfixturevalue("postgres"))
    other = _second_series(panel)
    first = panel.stage.start("release", panel.spec, "--json", pauses="says drawing")
    first.wait_until_there()
    same = panel.release()
    assert same.status == 12, same.stderr
    assert "another run is making the release panel; wait until it has ended" in same.sentence
    second = other.stage.start("release", other.spec, "--json", pauses="says waiting for another run")
    second.wait_until_there()
    assert other.in_register() == ["panel/1.0.0", "panel/1.1.0"]
    first.go_on()
    assert first.end().said["version"] == "1.2.0"
    second.go_on()
    assert second.end().said["history"]["versions"] == 4
    assert panel.in_register() == ["panel/1.0.0", "panel/1.1.0", "panel/1.2.0", "families/1.0.0"]
    panel.require_agreement()
    other.require_whole("1.0.0")


def test_another_scheduler_goes_on_where_one_was_killed(panel: PanelProject) -> None:
    """Of another series: nothing that the killed run may have published is forgotten, nor is what it had not."""
    other = _second_series(panel)
    # Announced, and not in its place: only a run of that series can tell.
    assert panel.release(dies="after funnel.release.record.Records.announce").status == -9
    refused = other.release()
    assert refused.status == 12, refused.stderr
    assert "run funnel release for that series first" in refused.sentence
    assert not other.in_folders()
    assert panel.release().said["version"] == "1.2.0"
    # In its place, and not yet in the register.
    assert panel.release("--again", dies="before funnel.register.register.Register.commit").status == -9
    said = other.release().said
    assert (said["version"], said["history"]["versions"]) == ("1.0.0", 5)
    assert panel.release().said["version"] == "1.2.1"
    panel.require_whole("1.2.1")
    other.require_agreement()


def test_the_database_goes_away_and_comes_back(panel: PanelProject, postgres: Server) -> None:
    """Before a version is in its place: it is not published. After: it is, and the next run says so."""
    _on_server(panel, postgres)
    run = panel.stage.start("release", panel.spec, "--json", pauses="says publishing")
    run.wait_until_there()
    assert len(list(panel.series.glob(".incoming-*"))) == 1
    postgres.stop()
    run.go_on()
    ended = run.end()
    assert ended.status == 9
    assert ended.sentence.startswith("nothing was published: the ledger ")
    assert panel.in_register() == ["panel/1.0.0", "panel/1.1.0"]
    away = panel.release()
    assert away.status == 9
    assert "see that the database is up" in away.sentence
    postgres.start()
    run = panel.stage.start(
        "release", panel.spec, "--json", pauses="before funnel.pipeline.ledger.account.Account.published"
    )
    run.wait_until_there()
    postgres.stop()
    run.go_on()
    said = run.end().said
    assert said["version"] == "1.2.0"
    assert said["warnings"][-1].startswith("version 1.2.0 is published, and the next run enters that")
    postgres.start()
    assert panel.release().said["status"] == "unchanged"
    panel.require_whole("1.2.0")
