"""The ``funnel`` command as its users meet it: tables, JSON, and one clear sentence for every mistake."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from io import StringIO
from itertools import pairwise
from pathlib import Path
from typing import TextIO

import click
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result
from rich.console import Console as RichConsole

from funnel import LIP, Joint, estimate, fit
from funnel.cli import main
from funnel.console import Console, frequencies_line, unchanged_lines
from funnel.estimation.means import estimate_numbers
from funnel.frequencies.public_counts import Frequencies
from funnel.history.following import VersionTerms
from funnel.history.version_forecast import forecast_version
from funnel.planning import plan
from funnel.preview.spec_plan import BoundPlan, SpecPlan
from funnel.release.layout import ReleaseFolder
from funnel.spec import ReleaseSpec
from tests.funnel.history.test_reserve import second_version
from tests.projects import SPEC, adult_rows, make_project
from tests.public import UNPROTECTED, protection_of

SPEC_OF_ANY = {
    "name": "any",
    "title": "Any",
    "secret": ["s"],
    "publish": ["x"],
    "guarantee": "lip:0.4",
    "metadata": {"licence": "CC0-1.0"},
    "frequencies": {"protection": "none"},
}


def funnel(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments], catch_exceptions=False)


def test_plan_shows_every_mechanism_and_why_some_are_not_used(tmp_path: Path) -> None:
    spec = make_project(tmp_path)
    shown = funnel("plan", spec, "--no-page")
    assert shown.exit_code == 0
    for word in ("optimal", "grr", "conditional-reporting is not used: reads the secret", "identity is not used: "):
        assert word in shown.stdout
    # Sentences are not broken where there is no terminal: scripts read them line by line.
    reasons = [line for line in shown.stdout.splitlines() if " is not used: " in line]
    assert any(len(line) > 80 for line in reasons)
    after = f"{reasons[-1]}\nstandard errors of estimated shares that drawing adds, in percentage points: relationship "
    assert after in shown.stdout
    assert "\ndisclosure control: 8 of 26 combinations" in shown.stdout
    assert set(path.name for path in tmp_path.iterdir()) == {".funnel", "people.parquet", "people.toml"}


def test_plan_fits_what_the_spec_does_not_allow_only_where_asked(tmp_path: Path) -> None:
    spec = make_project(tmp_path)
    for options, fitted in (((), False), (("--all",), True)):
        rows = json.loads(funnel("plan", spec, "--json", *options).stdout)["mechanisms"]
        row = next(row for row in rows if row["mechanism"] == "conditional-reporting")
        assert not row["usable"]
        assert (row["utility"] is not None) is fitted
        both = funnel("plan", spec, "--guarantee", "lip:0.5", "--guarantee", "lip:2", "--no-page", *options).stdout
        assert ("(" in both[both.index("conditional-reporting") :].split("\n")[0]) is fitted


def test_what_does_not_protect_frequencies_is_said_in_capitals_and_in_words_of_its_own() -> None:
    none, threshold = (
        frequencies_line(protection_of(Frequencies(Joint.from_counts([[30, 10], [10, 30]]), kind)))
        for kind in ("none", "threshold")
    )
    assert none.startswith("FREQUENCIES ARE NOT PROTECTED: nothing but rounding")
    assert threshold.startswith("FREQUENCIES ARE GROUPED, BUT EXACT")
    assert "differ by one person" in threshold
    assert all('protection = "noise"' in line for line in (none, threshold))


def test_rows_of_a_plan_are_shown_as_they_come_on_a_terminal(tmp_path: Path) -> None:
    described = ReleaseSpec.load(make_project(tmp_path))
    joint = Joint.from_counts([[30, 10, 20], [10, 30, 20]])
    shown = StringIO()
    console = Console(False, RichConsole(file=shown, force_terminal=True, width=200))
    with console.comparing(described, joint, ["lip:0.5"], UNPROTECTED) as told:
        rows = plan(joint, LIP(0.5), ["grr", "watchdog"], told=partial(told, "lip:0.5"))
        # The head of the table is there before the last row.
        assert "H(X)" in shown.getvalue()
    console.print_plan(SpecPlan(described, joint, UNPROTECTED, [BoundPlan("lip:0.5", rows, ["few records"])]))
    text = shown.getvalue()
    assert text.count("bound lip:0.5") == 1
    last = text[text.rindex("mechanism") :]
    assert last.index("watchdog") < last.index("grr")
    assert last.rstrip().endswith("warning: few records")


def test_without_a_terminal_rows_come_once_and_in_order(tmp_path: Path) -> None:
    described = ReleaseSpec.load(make_project(tmp_path))
    joint = Joint.from_counts([[30, 10, 20], [10, 30, 20]])
    shown = StringIO()
    console = Console(False, RichConsole(file=shown, width=200))
    with console.comparing(described, joint, ["lip:0.5"], UNPROTECTED) as told:
        rows = plan(joint, LIP(0.5), ["grr", "watchdog"], told=partial(told, "lip:0.5"))
        assert shown.getvalue() == ""
    console.print_plan(SpecPlan(described, joint, UNPROTECTED, [BoundPlan("lip:0.5", rows)]))
    assert [line.split()[0] for line in shown.getvalue().splitlines()[5:]] == ["watchdog", "grr"]


def test_steps_of_one_thing_are_told_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    with Console(False) as console:
        for number in range(1000):
            console.progress(f"fitting optimal: {number} nats", 0, None)
        console.progress("fitting grr", 0, None)
    lines = capsys.readouterr().err.splitlines()
    assert "fitting optimal: 0 nats" in lines[0]
    assert "fitting grr" in lines[-1]
    assert len(lines) < 1000


def test_without_a_terminal_it_is_told_how_far_long_work_is(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter(range(10_000))
    monkeypatch.setattr("funnel.console.time.perf_counter", lambda: float(next(clock)))
    with Console(False) as console:
        for done in range(61):
            console.progress("comparing budgets", done, 60)
        console.progress("writing", 0, None)
    lines = capsys.readouterr().err.splitlines()
    times = [float(line.split()[0]) for line in lines]
    assert [line.split("  ")[-1] for line in lines[:2]] == ["comparing budgets", "comparing budgets: 5 of 60"]
    assert all(later - earlier >= 5 for earlier, later in pairwise(times[:-1]))
    assert len(lines) > 10


def test_how_far_work_is_is_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    with Console(False) as console:
        console.progress("figure 2: 1,200 of 2,580 points", 1200, 2580)
        console.progress("counting", 3, 4)
    lines = [line.split("s  ")[1] for line in capsys.readouterr().err.splitlines()]
    assert lines == ["figure 2: 1,200 of 2,580 points", "counting: 3 of 4"]


@pytest.mark.parametrize("terminal", [True, False])
def test_warnings_stay_to_be_read(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, terminal: bool
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: terminal)
    with Console(False) as console:
        console.progress("counting", 0, None)
        console.progress("warning: two values do not occur", 0, None)
        console.progress("warning: \x1b[2J", 0, None)
        console.progress("counting", 1, None)
    said = capsys.readouterr().err
    assert "warning: two values do not occur\n" in said
    assert "\\x1b[2J" in said


def test_a_plan_about_the_same_people_weighs_reserves_and_beginnings(tmp_path: Path) -> None:
    spec = SPEC.replace('people = "different"', 'people = "same"\nbudget_fraction = 0.9') + "\n"
    spec = spec.replace('guarantee = "lip:1.0"', 'guarantee = "lip:0.5"\nrecord_key = ["id"]')
    table = adult_rows(0, 500)
    project = make_project(tmp_path, spec, table.append_column("id", pa.array(range(500))))
    shown = funnel("plan", project, "--no-page")
    assert shown.exit_code == 0
    assert "the first version about these people: " in shown.stdout
    assert "at a reserve of 0.9" in shown.stdout
    lines = [" ".join(line.split()) for line in shown.stdout.splitlines()]
    assert "reserve kept of H(X)" in lines
    assert any(line.startswith("0.9 * ") for line in lines)
    # Nothing but what was fitted, for the release, in the private workspace.
    assert {path.name for path in tmp_path.iterdir()} == {".funnel", "people.parquet", "people.toml"}
    assert {path.name for path in (tmp_path / ".funnel" / "people").iterdir()} == {"fits"}
    told = json.loads(funnel("plan", project, "--json").stdout)["history"]
    assert [row["reserve"] for row in told["reserves"]] == [1.0, 0.95, 0.9, 0.8]
    assert told["share"] == told["reserves"][2]["share"] < told["reserves"][0]["share"]
    others = json.loads(funnel("plan", make_project(tmp_path / "others", table=table), "--json").stdout)
    assert others["history"] is None


def test_a_plan_given_histories_says_how_many_and_who_is_moved() -> None:
    past, observed = second_version()
    target = fit("optimal", observed.joint, LIP(0.4))
    found = forecast_version(past, observed, VersionTerms(LIP(0.4), "planned", target), (0.8,))
    shown = StringIO()
    console = Console(False, RichConsole(file=shown, width=200))
    described = ReleaseSpec.of({**SPEC_OF_ANY, "source": {"path": "people.parquet"}})
    rows = plan(observed.joint, LIP(0.4), ["optimal"])
    bound = BoundPlan("lip:0.4", rows, forecast=found)
    console.print_plan(SpecPlan(described, observed.joint, UNPROTECTED, [bound]))
    text = " ".join(shown.getvalue().split())
    assert f"in 1 version: {found.histories} histories, 0 of 200 people new" in text
    assert f"{found.declared.moved} people out of the bound by what was published before" in text
    assert "reserve kept of H(X) moved outside moved next 1 * " in text


def test_plan_as_json_lists_the_best_usable_mechanism_first(tmp_path: Path) -> None:
    said = json.loads(funnel("plan", make_project(tmp_path), "--json").stdout)
    rows = said["mechanisms"]
    assert said["records"] == 3000
    assert rows[0]["usable"]
    assert rows[0]["utility"] == max(row["utility"] for row in rows if row["usable"])
    assert all(row["level"] <= 1.0 for row in rows if row["usable"])
    assert {row["mechanism"] for row in rows if not row["usable"]} >= {"identity"}


def test_help_names_every_command_and_every_exit_status() -> None:
    shown = funnel("--help").stdout
    for word in ("plan", "release", "audit", "watch", "Exit status"):
        assert word in shown


def test_a_misspelt_command_is_answered_with_the_nearest() -> None:
    failed = funnel("relase", "x")
    assert failed.exit_code == 2
    assert "did you mean" in failed.stderr
    assert "release" in failed.stderr


def test_a_plan_refuses_rows_of_units_and_repeated_keys_before_anything_is_fitted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("funnel.planning.plan", lambda *_args, **_more: pytest.fail("something was fitted"))
    rows = adult_rows(rows=300)
    table = rows.append_column("person", pa.array([f"p{k // 2}" for k in range(rows.num_rows)]))
    for said, words in (("unit", "150 of 150 units ('person') have several rows"), ("record_key", "record key")):
        make_project(tmp_path, SPEC.replace("[source]", f'{said} = ["person"]\n[source]', 1), table)
        result = funnel("plan", tmp_path / "people.toml", "--no-page")
        assert (result.exit_code, words in result.stderr) == (3 if said == "unit" else 4, True), result.stderr


def test_a_plan_says_which_values_of_groups_do_not_occur(tmp_path: Path) -> None:
    spec = SPEC + '[recode.relationship.groups]\nfamily = ["Husband", "wife"]\n'
    result = funnel("plan", make_project(tmp_path, spec), "--no-page", "--json")
    assert "warning: [recode.relationship] groups names a value that no record has" in result.stderr
    assert "(the source has 'Wife', not 'wife')" in result.stderr
    assert "wife" not in result.stdout


def table(**columns: object) -> pa.Table:
    return pa.table({"marital-status": ["a", "b"] * 50, "relationship": ["x", "y", "z", "w"] * 25, **columns})


def many() -> pa.Table:
    n = 50_000
    return pa.table({"marital-status": ["a", "b"] * (n // 2), "relationship": pa.array(np.arange(n).astype(str))})


BAD_SOURCES = {
    "empty": (table().slice(0, 0), 4, ["row"]),
    "one row": (table().slice(0, 1), 4, ["1 row"]),
    "constant secret": (table(**{"marital-status": ["a"] * 100}), 4, ["marital-status"]),
    "constant published column": (table(relationship=["x"] * 100), 4, ["relationship", "same category"]),
    "many values": (many(), 4, ["relationship", "50,000", "recode"]),
    "no such column": (
        table().rename_columns(["marital_status", "relationship"]),
        4,
        ["marital-status", "marital_status"],
    ),
}


@pytest.mark.parametrize("case", BAD_SOURCES)
def test_a_bad_source_gives_one_sentence_and_its_exit_status(tmp_path: Path, case: str) -> None:
    source, status, words = BAD_SOURCES[case]
    failed(funnel("plan", make_project(tmp_path, table=source)), status, *words)


def failed(result: Result, status: int, *words: str) -> None:
    assert result.exit_code == status, result.output
    sentence = [line for line in result.stderr.splitlines() if line.startswith("funnel: ")]
    assert len(sentence) == 1
    assert "Traceback" not in result.output
    assert all(word in sentence[0] for word in words), sentence[0]


BAD_SPECS = {
    "negative epsilon": ('"lip:1.0"', '"lip:-1"', 3, ["epsilon", "-1"]),
    "zero epsilon": ('"lip:1.0"', '{ kind = "lip", epsilon = 0.0 }', 3, ["epsilon", "zero"]),
    "infinite epsilon": ('"lip:1.0"', '{ kind = "lip", epsilon = inf }', 3, ["epsilon", "finite"]),
    "epsilon is no number": ('"lip:1.0"', '{ kind = "lip", epsilon = nan }', 3, ["epsilon", "finite"]),
    "unknown guarantee": ('"lip:1.0"', '"lipp:1.0"', 3, ["lipp", "lip"]),
    "unknown mechanism": ("guarantee =", 'mechanism = "optmal"\nguarantee =', 3, ["optmal", "optimal"]),
    "unknown key": ("[source]\npath", "[source]\npth = 1\npath", 3, ["pth", "path"]),
    "secret is published": (
        'publish = ["relationship"]',
        'publish = ["marital-status"]',
        3,
        ["marital-status", "secret"],
    ),
    "missing file": ("people.parquet", "gone.parquet", 4, ["gone.parquet"]),
    "a mechanism that cannot": ("[source]", "", 3, []),
}


@pytest.mark.parametrize("case", BAD_SPECS)
def test_a_bad_spec_gives_one_sentence_and_its_exit_status(tmp_path: Path, case: str) -> None:
    old, new, status, words = BAD_SPECS[case]
    assert old in SPEC
    failed(funnel("plan", make_project(tmp_path, SPEC.replace(old, new))), status, *words)


def test_a_bad_spec_is_refused_by_release_before_the_orchestrator_starts(tmp_path: Path) -> None:
    spec = make_project(tmp_path, SPEC.replace("lip:1.0", "lip:-1"))
    failed(funnel("release", spec), 3, "epsilon")
    assert not (tmp_path / ".funnel").exists()


def test_not_a_parquet_file(tmp_path: Path) -> None:
    spec = make_project(tmp_path)
    (tmp_path / "people.parquet").write_text("marital-status,relationship\nsecretive,person\n")
    result = funnel("plan", spec)
    failed(result, 4, "people.parquet", "parquet")
    assert "secretive" not in result.output


def test_nulls_become_a_category_or_their_records_are_left_out(tmp_path: Path) -> None:
    nulls = table(relationship=["x", None, "z", "w"] * 25)
    said = json.loads(funnel("plan", make_project(tmp_path / "2", table=nulls), "--json").stdout)
    assert said["records"] == 100
    dropped = SPEC.replace('path = "people.parquet"', 'path = "people.parquet"\non_missing = "drop"')
    said = json.loads(funnel("plan", make_project(tmp_path / "3", dropped, table=nulls), "--json").stdout)
    assert said["records"] == 75


def test_errors_as_json_name_their_class_and_status(tmp_path: Path) -> None:
    result = funnel("plan", tmp_path / "none.toml", "--json")
    said = json.loads(result.stdout)
    assert (said["error"], said["exit_code"]) == ("SpecError", 3)
    assert result.exit_code == 3
    assert "none.toml" in said["message"]


def test_audit_of_something_that_is_no_release(tmp_path: Path) -> None:
    failed(funnel("audit", tmp_path), 4, "not a release")
    failed(funnel("audit", tmp_path / "gone"), 4, "no release at")


def test_estimate_reads_the_records_and_the_protocol_of_a_release(tmp_path: Path) -> None:
    joint = Joint.from_counts([[300, 100], [100, 500]], secret=["ill", "well"], inputs=["u", "v"])
    protocol = fit("grr", joint, LIP(0.5))
    release = ReleaseFolder(tmp_path)
    release.data.parent.mkdir()
    texts = [protocol.outputs.symbols[i][0] for i in (0, 1) for _ in range((430, 570)[i])]
    pq.write_table(pa.table({protocol.outputs.columns[0]: texts}), release.data)
    release.protocol.write_text(protocol.to_json())
    release.package.write_text("{}")
    expected = estimate(np.array([430, 570]), protocol)
    assert json.loads(funnel("estimate", tmp_path, "--json").stdout) == expected.to_dict()
    assert str(expected) in funnel("estimate", tmp_path).stdout
    sampled = json.loads(funnel("estimate", tmp_path, "--sampling", "--method", "inverse", "--json").stdout)
    assert (sampled["sampling"], sampled["method"]) == (True, "inverse")
    numbers = estimate_numbers(np.array([430, 570]), protocol, "X", numbers={"u": 1.0, "v": 3.0}, quantiles=[0.5])
    asked = ("estimate", tmp_path, "--of", "X", "--quantile", "0.5", "--json")
    failed(funnel(*asked[:-1]), 3, "with --number 'u=10' of funnel estimate")
    assert (
        json.loads(funnel(*asked, "--number", "u=1", "--number", "v= 2..4").stdout)
        == estimate_numbers(
            np.array([430, 570]), protocol, "X", numbers={"u": 1.0, "v": (2.0, 4.0)}, quantiles=[0.5]
        ).to_dict()
    )
    for wrong in ("u", "=1", "u=one", "u=1..2..3", "u=1.."):
        failed(funnel(*asked[:-1], "--number", wrong), 3, f"--number '{wrong}' is no VALUE=NUMBER")
    release.package.write_text(
        '{"resources": [{"schema": {"fields": [{"name": "X", "funnel:numbers": '
        '{"whole": false, "intervals": {"u": [1, 1], "v": [3, 3]}}}]}}]}'
    )
    assert json.loads(funnel(*asked).stdout) == numbers.to_dict()
    # What is said goes before what the release tells.
    assert json.loads(funnel(*asked, "--number", "v=5").stdout)["cells"][0]["mean"]["upper"] > 3
    failed(funnel("estimate", tmp_path, "--quantile", "0.5"), 3, "go with --of")
    failed(funnel("estimate", tmp_path, "--number", "u=1"), 3, "go with --of")
    failed(funnel("estimate", tmp_path, "--of", "X", "--within", "X"), 3, "named with --by")
    failed(funnel("estimate", tmp_path, "--by", "X,age"), 3, "'age' is no column")
    failed(funnel("estimate", tmp_path / "gone"), 4, "no release at")


def test_a_guarantee_that_no_allowed_mechanism_meets(tmp_path: Path) -> None:
    rows = json.loads(funnel("plan", make_project(tmp_path, table=adult_rows(0, 500)), "--json").stdout)["mechanisms"]
    identity = next(row for row in rows if row["mechanism"] == "identity")
    assert "level" in identity["reason"]
    assert pq.read_table(tmp_path / "people.parquet").num_rows == 500


def test_a_defect_shows_its_place_but_no_message_and_no_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("row: Jane Doe, divorced")

    monkeypatch.setattr("funnel.preview.counted.count_joint", broken)
    result = funnel("plan", make_project(tmp_path))
    failed(result, 1, "ZeroDivisionError", "test_cli.py", "FUNNEL_TRACEBACK")
    assert "Jane" not in result.output


def test_a_plan_proposes_groups_that_meet_the_rules(tmp_path: Path) -> None:
    spec = make_project(tmp_path)
    shown = funnel("plan", spec, "--suggest", "--no-page")
    assert shown.exit_code == 0
    assert "; a release would tell of it\n" in shown.stdout
    assert "published combinations are left" in shown.stdout
    assert "[recode.marital-status.groups]\n" in shown.stdout
    told = json.loads(funnel("plan", spec, "--suggest", "--json").stdout)["disclosure"]
    assert told["passes"] is False
    assert told["suggestion"]["toml"] in shown.stdout
    assert told["kept"]["mechanism"] == "optimal"
    pasted = make_project(tmp_path / "pasted", f"{SPEC}\n{told['suggestion']['toml']}")
    after = json.loads(funnel("plan", pasted, "--json").stdout)
    assert after["disclosure"]["passes"] is True
    assert after["entropy"] == pytest.approx(told["suggestion"]["entropy"])
    best = max(row["utility"] or 0.0 for row in after["mechanisms"] if row["reason"] is None)
    assert best == pytest.approx(told["kept"]["after"], abs=1e-6)


@contextmanager
def unread() -> Iterator[TextIO]:
    """Inside, standard output is a pipe that nobody reads any more."""
    reader, writer = os.pipe()
    os.close(reader)
    before = sys.stdout
    with os.fdopen(writer, "w") as out:
        sys.stdout = out
        try:
            yield out
        finally:
            sys.stdout = before
            # What is still in the buffer would fail when it is closed.
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, out.fileno())
            os.close(nowhere)


def test_help_that_nobody_reads_ends_quietly(capfd: pytest.CaptureFixture[str]) -> None:
    with unread(), pytest.raises(SystemExit) as ended:
        main(["plan", "--help"])
    assert ended.value.code == 141
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("flush", [True, False], ids=["in the middle", "at the end"])
def test_results_that_nobody_reads_end_quietly(
    flush: bool, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("funnel.planning.plan", lambda *_, **__: print("x", flush=flush) or [])
    spec = make_project(tmp_path)
    with unread(), pytest.raises(SystemExit) as ended:
        main(["plan", str(spec), "--json"])
    assert ended.value.code == 141
    assert "unexpected" not in capfd.readouterr().err


def test_results_of_which_the_first_are_read_end_quietly(capfd: pytest.CaptureFixture[str]) -> None:
    @click.command("told")
    def told() -> None:
        click.echo("first")
        assert os.read(reader, 100) == b"first\n"
        os.close(reader)
        click.echo("second")

    reader, writer = os.pipe()
    before, sys.stdout = sys.stdout, os.fdopen(writer, "w")
    main.add_command(told)
    try:
        with pytest.raises(SystemExit) as ended:
            main(["told"])
        sys.stdout.close()
    finally:
        sys.stdout = before
        main.commands.pop("told")
    assert ended.value.code == 141
    assert capfd.readouterr().err == ""


def test_an_error_is_an_error_whether_anybody_reads_or_not(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with unread() as out:
        print("before it", file=out)
        with pytest.raises(SystemExit) as ended:
            main(["plan", str(tmp_path / "none.toml")])
    assert ended.value.code == 3
    assert "none.toml" in capfd.readouterr().err


def test_progress_that_nobody_reads_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with unread() as out, monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", out)
        console = Console(True)
        console.progress("fitting grr", 0, None)
        console.progress("fitting optimal", 0, None)
        with pytest.raises(BrokenPipeError):
            out.flush()


@pytest.mark.parametrize(
    ("unique", "said"), [(1, "; 1 published record like no other,"), (2, "; 2 published records ")]
)
def test_one_record_is_not_several(unique: int, said: str) -> None:
    told = {
        "columns": [{"column": "x", "share": 0.5}],
        "whole": None,
        "share": 0.5,
        "error": 0.0,
        "any_error": 0.0,
        "secrets": [],
        "rare_unchanged": None,
        "unique": unique,
        "unique_unchanged": 0.0,
        "exact_records": 0.0,
        "observers": [],
    }
    assert any(said in line for line in unchanged_lines(told))
