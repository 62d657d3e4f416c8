"""Five waves of one panel through the whole way: one bound over all of them, whatever happens to a run in between."""

from __future__ import annotations

import json
import math
import shutil
import signal
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from funnel.audit.check import Result, State
from funnel.audit.recheck import Told, recheck
from funnel.errors import LedgerError, NotChecked, ReleaseRefused, SpecError
from funnel.guarantees import parse_guarantee
from funnel.pipeline.flows.audit import audit
from funnel.pipeline.flows.look import look
from funnel.pipeline.flows.pipeline import run_approved, run_release
from funnel.pipeline.tasks.run import Draft
from funnel.register.register import Register
from funnel.release.approval import Approval
from funnel.release.drawing_document import DrawingDocument
from funnel.release.findings import FindingsDocument
from funnel.release.layout import ReleaseFolder
from funnel.release.protocol_document import ProtocolDocument
from funnel.release.public.findings import public_history
from funnel.release.public_report import PublicReport
from funnel.release.record import Record
from funnel.rendering import figures_again, page_renderer
from funnel.spec import ReleaseSpec
from tests.copies import copied
from tests.digits import leaves, too_fine
from tests.projects import tree
from tests.stage import Stage
from tests.waves import COUNTED, WAVES, wave

SPEC = COUNTED.replace("lip:1.0", "lip:0.5")
PEOPLE = 700
ME = Approval.given("A. Okafor, data protection officer")


def project(folder: Path, text: str = SPEC, name: str = "panel") -> ReleaseSpec:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.toml"
    path.write_text(text.replace('name = "panel"', f'name = "{name}"'), encoding="utf-8")
    return ReleaseSpec.load(path)


def put(folder: Path, year: int, people: int = PEOPLE) -> None:
    pq.write_table(wave(year, people), folder / "people.parquet")


def run(spec: ReleaseSpec, again: bool = False, rotate: bool = False) -> dict[str, Any]:
    return run_release(spec, again, rotate)[0]


def rows(told: dict[str, Any]) -> bytes:
    return ReleaseFolder(Path(told["folder"])).data.read_bytes()


def register(spec: ReleaseSpec) -> Register:
    assert spec.register is not None
    return Register.of(spec.workspace_folder, spec.register)


def histories_check(told: dict[str, Any]) -> Result:
    """What the audit says of all versions together."""
    checks = recheck(ReleaseFolder(Path(told["folder"])), Told(render=page_renderer()))
    return next(one for one in checks if one.name == "histories")


@dataclass(frozen=True)
class Five:
    """Five versions, each of the next wave, and copies of the project as it was after each."""

    spec: ReleaseSpec
    told: list[dict[str, Any]]
    copies: list[Path]

    def after(self, versions: int, folder: Path) -> ReleaseSpec:
        """The project as it was after some versions, with the next wave for a source."""
        shutil.copytree(self.copies[versions - 1], folder, symlinks=True, dirs_exist_ok=True)
        put(folder, WAVES[versions])
        return ReleaseSpec.load(folder / "panel.toml")


@pytest.fixture(scope="module")
def five(tmp_path_factory: pytest.TempPathFactory) -> Five:
    folder = tmp_path_factory.mktemp("five")
    found = Five(project(folder / "project"), [], [])
    for year in WAVES:
        put(folder / "project", year)
        found.told.append(run(found.spec))
        found.copies.append(Path(shutil.copytree(folder / "project", folder / str(year), symlinks=True)))
    return found


def test_one_bound_holds_for_five_versions(five: Five) -> None:
    spec, told = five.spec, five.told
    assert [one["version"] for one in told] == [f"1.{i}.0" for i in range(5)]
    histories = [one["history"] for one in told]
    assert [one["versions"] for one in histories] == [1, 2, 3, 4, 5]
    assert [one["histories"] for one in histories] == sorted({one["histories"] for one in histories})
    for one in told:
        assert one["history"]["level"] <= 0.5
        assert one["level"] <= 0.5
        assert one["history"]["outside"] <= one["history"]["moved"]
        assert 0 < one["history"]["share"] <= one["history"]["share_alone"] + 1e-12
    # Nobody had a history before the first version, and then many have one.
    assert (histories[0]["histories"], histories[0]["people_known"]) == (1, 0)
    assert histories[-1]["people_known"] > 0
    entries = register(spec).entries
    assert [entry.name for entry in entries] == [f"panel/1.{i}.0" for i in range(5)]
    for one, entry in zip(told, entries, strict=True):
        record = Record.read(ReleaseFolder(Path(one["folder"])).record)
        assert (record.history.ordinal, record.history.name) == (entry.ordinal, entry.name)
        assert record.rows == sum(map(sum, entry.counts))
    assert look(spec) is not None


def test_the_audit_recomputes_every_version(five: Five) -> None:
    told = Told(render=page_renderer(), figures=figures_again())
    for one in five.told:
        wrong = [
            check for check in recheck(ReleaseFolder(Path(one["folder"])), told) if check.state is not State.PASSED
        ]
        assert not wrong


def test_public_files_tell_of_the_effective_channel_and_of_no_history(five: Five) -> None:
    last = five.told[-1]
    folder = ReleaseFolder(Path(last["folder"]))
    public = ProtocolDocument.read(folder.protocol).protocol
    drawing = DrawingDocument.read(folder.drawing)
    assert public.inputs.columns == ("income",)
    assert drawing.protocol.inputs.columns == ("history channel", "income")
    assert drawing.joint.n == last["rows"]
    # W(y|x) is the share of y among all channels that people with x drew from, to a step of its grid.
    counts = drawing.joint.counts.sum(axis=0)
    place = {symbol: i for i, symbol in enumerate(drawing.protocol.inputs.symbols)}
    effective = np.zeros(public.matrix.shape)
    for symbol, count in zip(drawing.joint.inputs.symbols, counts.tolist(), strict=True):
        effective[:, public.inputs.index(symbol[1:])] += count * drawing.protocol.matrix[:, place[symbol]]
    effective /= effective.sum(axis=0)
    assert np.abs(effective - public.matrix).max() < len(public.outputs) * 2.0**-8
    assert set(pq.read_table(folder.data).column("income").unique().to_pylist()) <= {
        symbol[0] for symbol in public.outputs.symbols
    }
    report = PublicReport.read(folder.numbers)
    assert report.people == "same"
    assert report.figures.history.versions == 5
    assert report.figures.consistency is None
    privacy = json.loads(folder.package.read_bytes())["funnel:privacy"]
    assert (privacy["people"], privacy["versions"]) == ("same", 5)
    assert "everything published about a person" in privacy["scope"]
    # Nothing public is as fine as the number of histories, or of people with one.
    text = folder.report.read_text() + folder.numbers.read_text() + folder.package.read_text()
    assert "history channel" not in text
    assert drawing.digest not in text
    found = FindingsDocument.read(folder.findings).history
    assert f'"{found.histories}"' not in text
    assert str(found.level) not in text


def test_no_number_of_a_public_file_is_finer_than_those_of_a_version_alone(five: Five) -> None:
    for one in five.told:
        folder = ReleaseFolder(Path(one["folder"]))
        public = {
            name: content
            for name, content in tree(folder.root).items()
            if not name.startswith("data/") and name.endswith((".json", ".html"))
        }
        assert {"protocol.json", "datapackage.json", "report.html", "report.json"} <= set(public)
        fine = {name: too_fine(name, content) for name, content in public.items()}
        assert not any(fine.values()), fine
        # Of any other precision than a step of shares the channel would tell how many people have which history.
        weights = ProtocolDocument.read(folder.protocol).protocol.weights
        assert math.gcd(*map(int, weights.ravel())) >= 2**35


def test_whole_numbers_that_are_public_are_none_of_histories(five: Five) -> None:
    """Every number of every public document is one that the version alone has, or how many versions there are."""
    told = five.told
    folder = ReleaseFolder(Path(told[-1]["folder"]))
    found = FindingsDocument.read(folder.findings).history
    internal = {found.histories, found.known, found.channels, found.moved, found.outside} - {0}
    report = json.loads(folder.numbers.read_bytes())
    plain = {len(report["judged"]), report["source"]["records"], *range(30)}
    for path in (folder.protocol, folder.package, folder.numbers):
        numbers = {value for value in leaves(json.loads(path.read_bytes())) if type(value) in (int, float)}
        assert not numbers & (internal - plain), path.name
    # Nothing of it reaches a public figure but three, whoever has which history, where nobody is moved.
    bound = parse_guarantee(FindingsDocument.read(folder.findings).guarantee)
    distributions = SimpleNamespace(n=told[-1]["rows"], step=0.05, nats=lambda share: round(share / 0.05) * 0.05)
    other = replace(
        found,
        histories=found.histories + 1,
        known=found.known - 1,
        forgotten=found.forgotten + 1,
        channels=found.channels + 1,
        level=found.level / 2,
        level_ratio=None,
        worst=(),
        worst_output="",
        worst_secret="",
        moved=found.moved + 1,
        moved_level=7.0,
        reserve=0.5,
        utility=found.utility / 2,
        bound=found.bound * 2,
        observers=tuple(replace(one, level=one.level / 2) for one in found.observers),
    )
    assert public_history(found, bound, distributions) == public_history(other, bound, distributions)
    names = {field.name for field in fields(found)} - {"register", "versions", "outside", "alone", "entropy"}
    assert {name for name in names if getattr(found, name) != getattr(other, name)} >= names - {
        "units",
        "level_ratio",
        "worst",
        # Only with noise.
        "expected",
        # Only of whole records, and of several rows of a person.
        "own",
        "rare",
        "rows",
    }


def test_a_version_is_bounded_for_both_observers_unless_the_spec_says_otherwise(tmp_path: Path) -> None:
    spec = project(tmp_path, SPEC + 'observers = ["mover-stayer", "transitions"]\n')
    assert spec.history.observers == ("transitions", "mover-stayer")
    for year in WAVES[:3]:
        put(tmp_path, year)
        told = run(spec)
    found = FindingsDocument.read(ReleaseFolder(Path(told["folder"])).findings).history
    secrets = [None, "panel/1.0.0", "panel/1.1.0"]
    stated = [(one.observer, one.secret_of, one.bounded) for one in found.observers]
    assert stated == [(name, of, True) for name in ("transitions", "mover-stayer") for of in secrets]
    assert found.level == max(one.level for one in found.observers)
    assert found.moved == max(one.moved for one in found.observers)
    page = (ReleaseFolder(Path(told["folder"])).internal_report).read_text()
    assert "who ever changed" in page
    # One that is for the first observer alone is published as such, and the register keeps what the other one needs.
    alone = project(tmp_path, SPEC + 'observers = ["transitions"]\n')
    put(tmp_path, WAVES[3])
    told = run(alone)
    # What is not bounded is told of all the same, in both reports, and held to the register.
    folder = ReleaseFolder(Path(told["folder"]))
    found = FindingsDocument.read(folder.findings).history
    public = json.loads(folder.numbers.read_bytes())["figures"]["history"]["observers"]
    secrets.append("panel/1.2.0")
    for stated in ([asdict(one) for one in found.observers], public):
        assert [(one["observer"], one["secret_of"], one["bounded"]) for one in stated] == [
            (name, of, name == "transitions") for name in ("transitions", "mover-stayer") for of in secrets
        ]
    left_out, of_public = found.observers[len(secrets)], public[len(secrets)]
    assert left_out.outside > left_out.moved
    assert of_public["outside_at_most"] >= left_out.outside / told["rows"] > public[0]["outside_at_most"]
    level = left_out.level
    assert of_public["level"] == "infinite" if level is None else of_public["level"] >= level > public[0]["level"]
    assert [len(entry.observers) for entry in register(alone).entries] == [2, 2, 2, 1]
    assert register(alone).observers(None) == ("transitions", "mover-stayer")
    assert histories_check(told).state is State.PASSED


def test_only_the_current_secret_is_bounded_where_the_spec_says_so(tmp_path: Path) -> None:
    spec = project(tmp_path, SPEC + 'secrets = "current"\n')
    for year in WAVES[:2]:
        put(tmp_path, year)
        told = run(spec)
    folder = ReleaseFolder(Path(told["folder"]))
    found = FindingsDocument.read(folder.findings).history
    assert {one.secret_of for one in found.observers if one.bounded} == {None}
    assert {one.secret_of for one in found.observers if not one.bounded} == {"panel/1.0.0"}
    privacy = json.loads(folder.package.read_bytes())["funnel:privacy"]
    assert privacy["secrets"] == "current"
    assert "as it is when it is published" in privacy["scope"]
    assert "as it is when a version is published" in " ".join(folder.report.read_text().split())
    assert histories_check(told).state is State.PASSED


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ('robust = true\nsecrets = "all"\n[frequencies]\nprotection = "noise"\n', 'write secrets = "current"'),
        ('observers = ["mover-stayer"]\n', "must list"),
        ('observers = ["transitions", "transitions"]\n', "must list"),
        ('observers = ["transitions", "mover-stayer"]\n[frequencies]\nprotection = "noise"\n', "with noise"),
        ('observers = ["transitions", "mover-stayer"]\n', "rows of a unit"),
    ],
)
def test_observers_for_whom_nothing_can_be_proven_are_refused(tmp_path: Path, settings: str, why: str) -> None:
    text = SPEC + settings
    if 'protection = "noise"' in settings:
        text = text.replace('frequencies.protection = "none"\n', "")
    if why == "rows of a unit":
        text = text.replace('record_key = ["id"]', 'unit = ["id"]')
    with pytest.raises(SpecError, match=why):
        project(tmp_path, text)


def test_a_register_with_noise_in_it_leaves_the_first_observer(tmp_path: Path) -> None:
    spec = project(tmp_path, SPEC.replace('protection = "none"', "epsilon = 20.0"))
    put(tmp_path, WAVES[0])
    run(spec)
    put(tmp_path, WAVES[1])
    asked = project(tmp_path, SPEC + 'observers = ["transitions", "mover-stayer"]\n')
    with pytest.raises(SpecError, match="published with noise"):
        run(asked)
    told = run(project(tmp_path))
    assert [entry.observers for entry in register(spec).entries] == [("transitions",), ("transitions",)]
    assert histories_check(told).state is State.PASSED


def test_a_second_series_about_the_same_people_is_one_more_version(tmp_path: Path) -> None:
    shared = SPEC + 'register = "household"\n'
    first = project(tmp_path, shared)
    second = project(tmp_path, shared.replace('["income"]', '["kids"]'), "children")
    put(tmp_path, WAVES[0])
    assert run(first)["history"]["versions"] == 1
    told = run(second)
    # Everybody has a history although this is the first version of its series.
    assert (told["version"], told["history"]["versions"]) == ("1.0.0", 2)
    assert told["history"]["people_known"] == told["rows"]
    assert told["history"]["level"] <= 0.5
    put(tmp_path, WAVES[1])
    assert run(first)["history"]["versions"] == 3
    names = [entry.name for entry in register(first).entries]
    assert names == ["panel/1.0.0", "children/1.0.0", "panel/1.1.0"]
    other = project(tmp_path, shared.replace('["outwork"]', '["married"]'), "marriages")
    with pytest.raises(SpecError, match="is about the secret outwork, not married"):
        run(other)


def test_a_run_that_is_stopped_draws_the_same_again(
    five: Five, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stage: Stage
) -> None:
    """Stopped when its rows are drawn and its entry waits, and killed right before the version gets to its place."""
    spec = five.after(1, tmp_path)
    seen: list[bytes] = []

    def stop(*arguments: object) -> None:
        folder = next(one.folder for one in arguments if isinstance(one, Draft))
        seen.append(folder.data.read_bytes())
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("funnel.pipeline.flows.pipeline.validate", stop)
        with pytest.raises(KeyboardInterrupt):
            run(spec)
    assert [entry.name for entry in register(spec).entries] == ["panel/1.0.0"]
    killed = stage.run("release", tmp_path / "panel.toml", dies="says publishing")
    assert killed.status == -signal.SIGKILL, killed.stderr
    assert list(register(spec).root.glob(".coming-*"))
    told = run(spec)
    assert (told["version"], [rows(told)]) == ("1.1.0", seen)
    assert [entry.name for entry in register(spec).entries] == ["panel/1.0.0", "panel/1.1.0"]
    assert not list(register(spec).root.glob(".coming-*"))


def test_a_version_that_got_to_its_place_is_in_the_register_whatever_came_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = project(tmp_path)
    put(tmp_path, WAVES[0])

    def stop(self: Register, prepared: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Register, "commit", stop)
        with pytest.raises(KeyboardInterrupt):
            run(spec)
    assert (tmp_path / "releases" / "panel" / "1.0.0").is_dir()
    assert register(spec).entries == ()
    put(tmp_path, WAVES[1])
    told = run(spec)
    assert (told["version"], told["history"]["versions"]) == ("1.1.0", 2)
    assert told["history"]["people_known"] > 0
    assert len(register(spec).entries) == 2


def test_what_is_held_is_in_no_register_until_it_is_approved(tmp_path: Path) -> None:
    shared = SPEC + 'register = "household"\n'
    held = project(tmp_path, shared + "\n[approval]\nrequired = true\n")
    other = project(tmp_path, shared.replace('["income"]', '["kids"]'), "children")
    put(tmp_path, WAVES[0])
    first = run(held)
    assert first["status"] == "held"
    assert register(held).entries == ()
    seen = rows(first)
    published = run_approved(held, ME)[0]
    assert (published["status"], rows(published)) == ("published", seen)
    assert [entry.name for entry in register(held).entries] == ["panel/1.0.0"]
    # The register moves on while the next one waits: what was held does not know of it.
    put(tmp_path, WAVES[1])
    assert run(held)["version"] == "1.1.0"
    run(other)
    with pytest.raises(ReleaseRefused, match="another version about the same people was published"):
        run_approved(held, ME)
    assert look(held) is None
    again = run(held)
    assert (again["status"], again["version"]) == ("held", "1.1.1")
    assert run_approved(held, ME)[0]["version"] == "1.1.1"
    assert [entry.name for entry in register(held).entries][-1] == "panel/1.1.1"


def test_rows_are_taken_over_without_another_entry(five: Five, tmp_path: Path) -> None:
    spec, second = five.after(2, tmp_path), five.told[1]
    put(tmp_path, WAVES[1])
    described = project(tmp_path, SPEC + "\n[output]\ncsv = true\n")
    third = run(described)
    assert (third["version"], third["drawn"], rows(third)) == ("1.1.1", False, rows(second))
    assert len(register(spec).entries) == 2
    record = Record.read(ReleaseFolder(Path(third["folder"])).record)
    assert record.history.name == "panel/1.1.0"
    assert ProtocolDocument.read(ReleaseFolder(Path(third["folder"])).protocol).digest == (
        ProtocolDocument.read(ReleaseFolder(Path(second["folder"])).protocol).digest
    )
    # Asked to draw again, the same people get one more version, given all before it.
    fourth = run(described, again=True)
    assert (fourth["version"], fourth["history"]["versions"]) == ("1.1.2", 3)
    assert fourth["history"]["level"] <= 0.5


@pytest.mark.parametrize("people", ["same", "different"])
def test_a_drift_is_told_and_refused_where_the_spec_says_so(tmp_path: Path, people: str) -> None:
    said = f'people = "{people}"'
    spec = project(tmp_path, SPEC.replace('people = "same"', said))
    put(tmp_path, WAVES[0], 300)
    run(spec)
    table = wave(WAVES[1], 300)
    income = table.column_names.index("income")
    moved = ["fifth 6"] * 40 + table["income"].to_pylist()[40:]
    table = table.set_column(income, "income", pa.array(moved))
    if people == "different":
        identifiers = table.column_names.index("id")
        others = [one + 10**9 for one in table["id"].to_pylist()]
        table = table.set_column(identifiers, "id", pa.array(others))
    pq.write_table(table, tmp_path / "people.parquet")
    strict = project(tmp_path, SPEC.replace('people = "same"', said + '\non_drift = "fail"'))
    with pytest.raises(ReleaseRefused, match=r"nothing was drawn: the frequencies drifted .* new value: 'fifth 6'"):
        run(strict)
    findings = FindingsDocument.read(ReleaseFolder(Path(run(spec)["folder"])).findings)
    assert findings.drift["drifted"] is True
    assert findings.drift["same_people"] is (people == "same")


def test_a_register_that_is_gone_or_old_stops_the_next_version(five: Five, tmp_path: Path) -> None:
    spec = five.after(1, tmp_path)
    place = register(spec).root
    away = place.with_name("away")
    place.rename(away)
    with pytest.raises(LedgerError):
        run(spec)
    # What is left of the attempt is no register.
    for left in place.glob("*"):
        left.unlink()
    place.rmdir()
    away.rename(place)
    assert run(spec)["version"] == "1.1.0"


def test_a_register_that_was_changed_or_restored_is_never_unchanged(five: Five, tmp_path: Path) -> None:
    spec = five.after(2, tmp_path)
    put(tmp_path, WAVES[1])
    head = register(spec).root / "head.json"
    old = (five.copies[0] / head.relative_to(tmp_path)).read_bytes()
    newest = head.read_bytes()
    assert look(spec) is not None
    for content in (newest + b" ", old):
        head.write_bytes(content)
        with pytest.raises(LedgerError):
            look(spec) or run(spec)
    head.unlink()
    with pytest.raises(LedgerError):
        look(spec)
    head.write_bytes(newest)
    (entry,) = register(spec).root.glob("0001-*/entry.json")
    content = entry.read_bytes()
    entry.write_bytes(content + b" ")
    with pytest.raises(LedgerError):
        look(spec)
    entry.write_bytes(content)
    assert look(spec) is not None


@pytest.mark.usefixtures("in_process")
def test_the_audit_flow_takes_the_folder_of_the_register(five: Five, tmp_path: Path) -> None:
    spec, told = five.spec, five.told
    copied(ReleaseFolder(Path(told[-1]["folder"])), tmp_path / "1.4.0")
    with pytest.raises(NotChecked, match="--register"):
        audit(str(tmp_path / "1.4.0"))
    with pytest.raises(NotChecked) as without:
        audit(str(tmp_path / "1.4.0"), register_folder=str(register(spec).root))
    assert "--register" not in str(without.value)


def test_what_no_bound_over_versions_is_known_for_is_no_spec(tmp_path: Path) -> None:
    put(tmp_path, WAVES[0])
    with pytest.raises(SpecError, match="is not there yet over versions") as caught:
        project(tmp_path, SPEC.replace('"lip:0.5"', '"mi:0.1"'))
    assert "\n" not in str(caught.value)
    with pytest.raises(SpecError, match="reads_secret"):
        project(tmp_path, SPEC + "\n[mechanism]\nreads_secret = true\n")
