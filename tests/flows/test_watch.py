"""Watching a folder: files that come, go or cannot be read for a while, as events of a real server."""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pyarrow.parquet as pq
import pytest

from funnel.errors import DataError
from funnel.pipeline.flows.watch import watch_source
from tests.projects import SPEC, adult_rows, make_project


def test_a_folder_is_watched_through_changes_and_absences(
    tmp_path: Path, in_process: None, server: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PREFECT_API_URL", server["PREFECT_API_URL"])
    spec = make_project(tmp_path, SPEC.replace('"people"', '"watched"').replace('"people.parquet"', '"people/"'))
    folder = tmp_path / "people"
    with pytest.raises(DataError, match="there is no source file"):
        next(watch_source(spec, 0.01, False, lambda *said: None))
    folder.mkdir()
    pq.write_table(adult_rows(0, 100), folder / "a.parquet")
    waits = iter(range(1000))

    def meanwhile(what: str, done: int, total: int | None) -> None:
        """What happens to the folder between looks; there are looks without change among them."""
        match next(waits):
            case 1:
                pq.write_table(adult_rows(100, 100), folder / "b.parquet")
            case 3:
                folder.rename(tmp_path / "elsewhere")
            case 5:
                (tmp_path / "elsewhere").rename(folder)
            case 7:
                (folder / "b.parquet").unlink()
            case 8:
                raise KeyboardInterrupt

    looks: list[dict[str, Any]] = []
    with pytest.raises(KeyboardInterrupt):
        looks.extend(watch_source(spec, 0.01, False, meanwhile))
    assert [look["status"] for look in looks] == ["noted", "changed", "unreadable", "unchanged", "changed"]
    assert looks[2]["message"].startswith(f"there is no source file {folder}")
    assert looks[1]["sha256"] == looks[3]["sha256"]
    assert looks[0]["sha256"] == looks[4]["sha256"]
    sent = sorted((looks[1]["sha256"], looks[4]["sha256"]))
    # The server stores events by and by.
    while len(stored := events(server)) < len(sent):
        time.sleep(0.2)
    assert stored == sent


@pytest.mark.usefixtures("in_process")
def test_a_server_that_is_down_is_watched_on_and_told_once_it_is_back(
    tmp_path: Path, server: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The change that nobody could be told of is told when the server is back, and only then taken note of."""
    from prefect.settings import PREFECT_API_URL, temporary_settings

    spec = make_project(tmp_path, SPEC.replace('"people"', '"outage"'))
    nobody = "http://127.0.0.1:9/api"
    monkeypatch.setenv("PREFECT_API_URL", nobody)
    # What the client waits before it tries again: a second and a half at every look.
    monkeypatch.setattr("httpcore.NetworkBackend.sleep", lambda *_: None)
    waits = iter(range(1000))

    def meanwhile(what: str, done: int, total: int | None) -> None:
        match next(waits):
            case 1:
                pq.write_table(adult_rows(0, 100), tmp_path / "people.parquet")
            case 4:
                monkeypatch.setenv("PREFECT_API_URL", server["PREFECT_API_URL"])
                stack.enter_context(temporary_settings({PREFECT_API_URL: server["PREFECT_API_URL"]}))
            case 6:
                (tmp_path / "people.toml").write_text("name = ")
            case 8:
                (tmp_path / "people.toml").write_text(SPEC.replace('"people"', '"outage"'))
            case 10:
                raise KeyboardInterrupt

    looks: list[dict[str, Any]] = []
    with ExitStack() as stack:
        stack.enter_context(temporary_settings({PREFECT_API_URL: nobody}))
        with pytest.raises(KeyboardInterrupt):
            looks.extend(watch_source(spec, 0.01, False, meanwhile))
    assert [look["status"] for look in looks] == ["noted", "undelivered", "changed", "unreadable", "unchanged"]
    assert "did not take the event" in looks[1]["message"]
    assert "not valid TOML" in looks[3]["message"]
    while not (stored := events(server, "outage")):
        time.sleep(0.2)
    assert stored == [looks[2]["sha256"]]


@pytest.mark.usefixtures("in_process")
def test_one_look_as_a_run_says_what_it_saw(
    tmp_path: Path, server: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from funnel.pipeline.flows.watching import watch

    spec = make_project(tmp_path, SPEC.replace('"people"', '"looked-at"'))
    monkeypatch.setenv("PREFECT_API_URL", server["PREFECT_API_URL"])
    states = [watch(str(spec), return_state=True)]
    pq.write_table(adult_rows(0, 100), tmp_path / "people.parquet")
    states += [watch(str(spec), return_state=True) for _ in range(2)]
    assert [state.name for state in states] == ["Noted", "Changed", "Unchanged"]
    assert all(str(tmp_path / "people.parquet") in str(state.message) for state in states)


def events(server: dict[str, str], name: str = "watched") -> list[str]:
    query = {"filter": {"event": {"name": ["funnel.source.changed"]}, "resource": {"id": [f"funnel.source.{name}"]}}}
    found = httpx.post(f"{server['PREFECT_API_URL']}/events/filter", json=query, timeout=None).json()["events"]
    return sorted(event["payload"]["sha256"] for event in found)
