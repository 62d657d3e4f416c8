"""`funnel ledger show` and `funnel ledger verify`, run as a steward runs them."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from funnel.cli import main
from tests.ledger.events import Clock, event, opened
from tests.projects import make_project, run_funnel, tree


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    return make_project(tmp_path)


def filled(tmp_path: Path) -> str:
    """Enter a refusal and two versions, the last of them by a clock that went back; returns the head."""
    clock = Clock()
    with opened(None, tmp_path / ".funnel", clock=clock) as ledger:
        ledger.append(event("refused", None, verdict={"passed": False, "sentence": "too \x1b[31mred"}))
        ledger.append(event(guarantee="lip:1.0", level=0.98765432, joint_level=1.0, histories=1304, moved=7, outside=0))
        clock.move(days=-1)
        ledger.append(event(series="others", register=None))
        return ledger.head


def ran(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["ledger", *map(str, arguments)])


def test_shown_as_a_table(spec: Path, tmp_path: Path) -> None:
    head = filled(tmp_path)
    said = ran("show", spec)
    assert said.exit_code == 0, said.output
    lines = said.stdout.splitlines()
    assert lines[0] == str(tmp_path / ".funnel" / "ledger.sqlite")
    titles = "entry time (UTC) what series version register guarantee level all versions histories moved outside"
    assert lines[1].split() == [*titles.split(), "started", "by"]
    row = "2 2026-05-01 12:00:00 published people 1.0.0 panel lip:1.0 0.987654 1 1,304 7 0 ada@host"
    assert " ".join(lines[3].split()) == row
    assert "\x1b" not in said.output
    assert lines[5:] == [
        "entry 1: too \\x1b[31mred",
        "entry 3: the clock went back: entry 2 is of 2026-05-01T12:00:00+00:00",
        f"3 entries; head {head}",
    ]


def test_shown_for_machines(spec: Path, tmp_path: Path) -> None:
    head = filled(tmp_path)
    said = json.loads(ran("show", spec, "--json").stdout)
    assert (said["ledger"], said["head"]) == (str(tmp_path / ".funnel" / "ledger.sqlite"), head)
    assert [entry["event"]["kind"] for entry in said["entries"]] == ["refused", "published", "published"]
    first = said["entries"][0]
    assert (first["schema"], first["serial"], first["at"]) == ("funnel/ledger/1", 1, "2026-05-01T12:00:00+00:00")
    assert first["event"]["register"] == "panel"
    for option, value, serials in (("--series", "people", [1, 2]), ("--register", "panel", [1, 2])):
        chosen = json.loads(ran("show", spec, "--json", option, value).stdout)
        assert [entry["serial"] for entry in chosen["entries"]] == serials
    assert ran("show", spec, "--series", "others").stdout.splitlines()[-1] == f"1 entry; head {head}"


def test_verified(spec: Path, tmp_path: Path) -> None:
    head, before = filled(tmp_path), tree(tmp_path)
    said = ran("verify", spec)
    assert said.exit_code == 0, said.output
    place = tmp_path / ".funnel" / "ledger.sqlite"
    assert said.stdout == f"The ledger {place} is whole: 3 entries.\nHead: {head}\n"
    told = json.loads(ran("verify", spec, "--json").stdout)
    assert told == {"ledger": str(place), "status": "whole", "entries": 3, "head": head}
    assert tree(tmp_path) == before


def test_a_tampered_ledger_ends_with_the_status_of_ledgers(spec: Path, tmp_path: Path) -> None:
    """In a process of its own: the command is found by its entry point, and says one sentence."""
    filled(tmp_path)
    connection = sqlite3.connect(tmp_path / ".funnel" / "ledger.sqlite")
    with connection:
        connection.execute("DROP TRIGGER funnel_ledger_keeps_content")
        connection.execute("UPDATE funnel_ledger SET content = replace(content, '1304', '1303') WHERE serial = 2")
    connection.close()
    done = run_funnel("ledger", "verify", spec)
    assert done.returncode == 9
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert "entry 2 of the ledger" in line
    assert "(published people/1.0.0) does not fit: its content is not what its SHA-256 was taken of" in line
    told = json.loads(ran("verify", spec, "--json").stdout)
    assert (told["status"], told["exit_code"]) == ("failed", 9)


def test_where_there_is_no_ledger_yet(spec: Path, tmp_path: Path) -> None:
    before = tree(tmp_path)
    for command in ("show", "verify"):
        said = ran(command, spec)
        assert said.exit_code == 9
        assert "there is no ledger" in said.output
        assert "funnel release begins one" in said.output
    assert tree(tmp_path) == before
