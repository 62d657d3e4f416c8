"""`funnel audit` recomputes what all versions about the same people tell, or says what is missing for it."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import is_dataclass, replace
from pathlib import Path
from types import SimpleNamespace

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from funnel.audit import recheck as rechecking
from funnel.audit.check import Result, State
from funnel.audit.context import AuditContext
from funnel.audit.evidence import Evidence
from funnel.audit.protected import is_usual
from funnel.audit.recheck import Told
from funnel.cli import main
from funnel.release.document import dump
from funnel.release.layout import ReleaseFolder
from tests.audits import recheck
from tests.copies import copied
from tests.plain_registers import digest
from tests.sabotage.scenes import SECOND_YEAR, prepared, run


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = prepared(tmp_path_factory.mktemp("histories") / "project", SECOND_YEAR)
    assert run(folder, SECOND_YEAR)["status"] == "published"
    return folder


@pytest.fixture
def register(project: Path, tmp_path: Path) -> Path:
    shutil.copytree(project / ".funnel" / "registers" / "people", tmp_path / "people")
    return tmp_path / "people"


def newest(project: Path) -> ReleaseFolder:
    return ReleaseFolder(project / "releases" / "people" / "1.1.0")


def judged(
    folder: ReleaseFolder, register: Path | None, change: Callable[[Evidence], Evidence] | None = None
) -> Result:
    """What the check of all versions finds, of evidence that says something else."""
    known = AuditContext(folder, Told(register=register))
    if change is not None:
        known.__dict__["read_evidence"] = (known.read_evidence[0], change(known.evidence))
    (check,) = (one for one in rechecking.CHECKS if one.name == "histories")
    found = rechecking._verified(check, known)
    assert found is not None
    return found


def test_all_versions_are_judged_from_the_register_in_the_workspace(project: Path) -> None:
    check = judged(newest(project), None)
    assert check.passed, check.detail
    assert "6 histories of 2 versions" in check.detail
    assert [one.name for one in recheck(newest(project)) if one.failed and one.name != "labels"] == []


def test_without_the_register_that_check_could_not_be_made(project: Path, register: Path, tmp_path: Path) -> None:
    copy = copied(newest(project), tmp_path / "1.1.0")
    check = judged(copy, None)
    assert check.state is State.UNCHECKED
    assert "register people" in check.detail
    assert "--register" in check.detail
    assert judged(copy, register).passed
    assert "histories" not in {one.name for one in recheck(copy, Told(public=True))}


def test_what_probabilities_are_off_by_is_no_excuse_for_any_counts(project: Path, tmp_path: Path) -> None:
    """The publisher says that they are off by much, and publishes one value for all: not told, and never passed."""
    copy = copied(newest(project), tmp_path / "1.1.0")
    document = json.loads(copy.protocol.read_bytes())
    found = {}
    for off in (document["rounded"], 1.0, 0.3, None):
        copy.protocol.write_bytes(dump({**document, "rounded": off}))
        (found[off],) = (one for one in recheck(copy, Told(public=True)) if one.name == "frequencies")
    assert found[document["rounded"]].passed
    assert found[1.0].state is State.UNCHECKED
    assert found[0.3].failed
    assert "no whole number of steps" in found[0.3].detail
    assert found[None].failed
    assert "does not say how far" in found[None].detail


def test_weights_in_coarse_steps_excuse_no_more_than_a_rounding_does() -> None:
    """Of weights of a half each any count would fit, were probabilities off by a step of theirs."""
    entries = (((0, 1 << 62), (1, 1 << 62)),) * 2
    for off, usual in ((None, True), (0.0, True), (2.0**-8, True), (0.5, False), (0.125, False)):
        assert is_usual(SimpleNamespace(entries=entries, rounded=off)) is usual


def test_the_command_takes_the_folder_of_the_register(project: Path, register: Path, tmp_path: Path) -> None:
    copied(newest(project), tmp_path / "1.1.0")
    told = CliRunner().invoke(main, ["audit", str(tmp_path / "1.1.0"), "--json"])
    assert json.loads(told.stdout)["release"]
    named = CliRunner().invoke(main, ["audit", str(tmp_path / "1.1.0"), "--register", str(register)])
    assert "pass histories" in named.output + named.stderr


def people(register: Path, ordinal: int) -> Path:
    return next(register.glob(f"000{ordinal}-*")) / "people.parquet"


def of_before(register: Path) -> None:
    """The register as it was before the version."""
    shutil.rmtree(next(register.glob("0001-*")))
    head = json.loads((register / "head.json").read_text())
    head["entries"], head["earlier"] = head["entries"][:1], []
    (register / "head.json").write_text(json.dumps(head))


def people_of_before(register: Path) -> None:
    """The people of another version in the place of those of the last one, with a head that names them."""
    shutil.copyfile(people(register, 0), people(register, 1))
    head = json.loads((register / "head.json").read_text())
    head["entries"][1]["people"] = digest(people(register, 1))
    (register / "head.json").write_text(json.dumps(head))


def leave_out(register: Path) -> None:
    """One person is in no table any more."""
    table = pq.read_table(people(register, 1))
    pq.write_table(table.slice(1), people(register, 1))


REGISTERS: dict[str, tuple[Callable[[Path], object], str]] = {
    "an old backup": (of_before, "older than this version"),
    "no head": (lambda r: (r / "head.json").unlink(), "is gone"),
    "an entry gone": (lambda r: shutil.rmtree(next(r.glob("0000-*"))), "is not number 0"),
    "somebody left out": (leave_out, "people of 0001.* are not those that the head"),
    "people of another version": (people_of_before, "none of this version"),
    "a table changed": (
        lambda r: shutil.copyfile(next(r.glob("0000-*")) / "nodes.parquet", next(r.glob("0001-*")) / "nodes.parquet"),
        "was changed since",
    ),
}


@pytest.mark.parametrize("name", REGISTERS)
def test_a_register_that_is_not_what_it_was_is_noticed(project: Path, register: Path, name: str) -> None:
    change, complaint = REGISTERS[name]
    change(register)
    check = judged(newest(project), register)
    assert check.failed
    assert re.search(complaint, check.detail), check.detail


def other(part: str, **changes: object) -> Callable[[Evidence], Evidence]:
    """Evidence whose record or findings say something else of all versions."""

    def changed(evidence: Evidence) -> Evidence:
        document = getattr(evidence, part)
        stated = document.history
        history = replace(stated, **changes) if is_dataclass(stated) else stated.model_copy(update=changes)
        return replace(evidence, **{part: document.model_copy(update={"history": history})})

    return changed


def first_observer(**changes: object) -> Callable[[Evidence], Evidence]:
    """Evidence whose findings say something else of the first observer."""

    def changed(evidence: Evidence) -> Evidence:
        assert evidence.findings.history is not None
        first, *others = evidence.findings.history.observers
        return other("findings", observers=(replace(first, **changes), *others))(evidence)

    return changed


def asking(**changes: object) -> Callable[[Evidence], Evidence]:
    """Evidence whose spec asks for other observers, or for the secrets of other versions."""

    def changed(evidence: Evidence) -> Evidence:
        assert evidence.spec.history is not None
        history = evidence.spec.history.model_copy(update=changes)
        return replace(evidence, spec=evidence.spec.model_copy(update={"history": history}))

    return changed


STATED = {
    "level for an observer": (first_observer(level=0.1), "the level for transitions"),
    "people moved for an observer": (first_observer(moved=1), "moved for transitions"),
    "people outside for an observer": (first_observer(outside=1), "outside for transitions"),
    "level of the moved for an observer": (first_observer(moved_level=7.5), "the level of the moved for transitions"),
    "whom it is bounded for": (first_observer(bounded=False), "other observers and secrets were stated"),
    "secrets of the spec": (asking(secrets="current"), "and the spec asks for current"),
    "no observers": (other("findings", observers=()), "other observers and secrets were stated"),
    "observers of the spec": (asking(observers=("mover-stayer",)), "and the spec asks for mover-stayer"),
    "level of the record": (other("record", level=0.1), "another one was stated"),
    "level of the findings": (other("findings", level=0.1), "another one was stated"),
    "people moved": (other("findings", moved=1), "moved before it"),
    "people outside": (other("record", outside=7), "outside with it"),
    "histories": (other("record", histories=3), "another number was stated"),
    "another entry": (other("record", entry="0" * 64), "not the one that it was published with"),
    "no such version": (other("record", name="people/9.0.0"), "knows of no version"),
    "another head": (other("record", head="0" * 64), "older than this version"),
}


@pytest.mark.parametrize("name", STATED)
def test_what_was_stated_of_all_versions_is_found_again(project: Path, name: str) -> None:
    change, complaint = STATED[name]
    check = judged(newest(project), None, change)
    assert check.failed
    assert complaint in check.detail
