"""Watching a folder: files that come, go or cannot be read for a while, as events of a real server."""

from __future__ import annotations

import time
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


def events(server: dict[str, str]) -> list[str]:
    query = {"filter": {"event": {"name": ["funnel.source.changed"]}, "resource": {"id": ["funnel.source.watched"]}}}
    found = httpx.post(f"{server['PREFECT_API_URL']}/events/filter", json=query, timeout=None).json()["events"]
    return sorted(event["payload"]["sha256"] for event in found)
