"""``funnel reproduce``: a paper's figures by the command, killed and run again, and as a flow of a real server."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner

from tests.stage import Stage

TINY = ("reproduce", "pf", "3", "--distributions", "3")


def test_a_killed_run_goes_on_where_it_was(stage: Stage, tmp_path: Path) -> None:
    output = tmp_path / "reproduced"
    killed = stage.run(*TINY, "--output", output, dies="says figure 3: 4 of 6")
    assert killed.status == -9
    points = {path.name: path.stat().st_ino for path in (output / ".points").glob("[0-9a-f]*")}
    assert len(points) == 4
    assert not (output / "pf").exists()

    again = stage.run(*TINY, "--output", output, "--docs", tmp_path / "docs", "--json")
    told = again.said
    assert "figure 3: 4 of 6 points" in again.stderr
    assert "figure 3: 0 of 6 points" not in again.stderr
    assert {name: (output / ".points" / name).stat().st_ino for name in points} == points
    assert (told["paper"], told["figures"]) == ("pf", ["3"])
    assert told["orders"] > 0
    assert sorted(path.name for path in (output / "pf").iterdir()) == ["numbers.json", "pf-3.svg", "pf.html", "pf.md"]

    # A folder of documentation has the same, and an index whose links lead somewhere.
    assert told["docs"] == ["index.md", "pf-3.svg", "pf-numbers.json", "pf.md"]
    docs = tmp_path / "docs"
    assert (docs / "pf.md").read_text() == (output / "pf" / "pf.md").read_text()
    assert "](pf.md)" in (docs / "index.md").read_text()
    numbers = json.loads((docs / "pf-numbers.json").read_text())
    assert numbers["figures"]["3"]["cases"]["a = 5"]["LIP(ε)"]["distributions"] == 3


def test_another_figure_joins_the_page(stage: Stage, tmp_path: Path) -> None:
    first = stage.run("reproduce", "pf", "theorem-4", "--output", tmp_path)
    assert first.status == 0, first.stderr
    assert "Of what the text says 0 agree, 1 do not" in first.stdout
    second = stage.run("reproduce", "pf", "7", "--distributions", "1", "--output", tmp_path)
    assert second.status == 0, second.stderr
    # One distribution is the same distribution of figure theorem-4, whatever the number of distributions.
    text = (tmp_path / "pf" / "pf.md").read_text()
    assert "(pf-theorem-4.svg)" in text
    assert "(pf-7.svg)" in text


def test_an_interrupted_run_says_that_it_can_go_on(stage: Stage, tmp_path: Path) -> None:
    ended = stage.run(*TINY, "--output", tmp_path, dies="says figure 3: 2 of 6", by=signal.SIGINT)
    assert ended.status == 130
    assert "what was measured is kept, and the same command goes on from there" in ended.stderr


def test_wrong_names_say_what_there_is(stage: Stage, tmp_path: Path) -> None:
    unknown = stage.run("reproduce", "ldp", "--output", tmp_path / "none", "--json")
    assert unknown.status == 3
    assert "pf, alip, rldp" in unknown.sentence
    figure = stage.run("reproduce", "rldp", "1", "--output", tmp_path / "none", "--json")
    assert (figure.status, "it has 2, 3" in figure.sentence) == (3, True)
    missing = stage.run("reproduce", "pf", "8", "--adult", tmp_path / "gone", "--output", tmp_path / "x", "--json")
    assert (missing.status, "--adult" in missing.sentence) == (4, True)
    assert not (tmp_path / "none").exists()


@pytest.mark.usefixtures("in_process")
def test_as_a_flow_of_a_server(server: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from funnel_papers import command

    monkeypatch.setenv("PREFECT_API_URL", server["PREFECT_API_URL"])
    # These processes have their settings already, which would stay after this test.
    monkeypatch.setattr(command, "quiet_environment", lambda workspace: None)
    ended = CliRunner().invoke(command.command, ["pf", "theorem-4", "--output", str(tmp_path), "--json"])
    assert ended.exit_code == 0, ended.output
    told = json.loads(ended.stdout)
    assert (told["figures"], told["disagree"]) == (["theorem-4"], 1)
    assert (tmp_path / "pf" / "pf-theorem-4.svg").exists()
    runs = httpx.post(
        f"{server['PREFECT_API_URL']}/flow_runs/filter", json={"flows": {"name": {"any_": ["reproduce"]}}}
    ).json()
    assert [run["state_type"] for run in runs] == ["COMPLETED"]
