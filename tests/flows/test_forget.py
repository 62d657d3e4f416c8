"""funnel forget: the register loses a person, versions go on, and whatever is asked wrongly is said in one sentence."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from funnel.errors import DataError, ReleaseRefused, SpecError
from funnel.pipeline.flows.forget import command, forget, read_keys
from funnel.pipeline.flows.pipeline import run_release
from funnel.pipeline.ledger.account import ledger_of
from funnel.register.register import Register
from funnel.spec import ReleaseSpec
from tests.projects import SPEC, adult_rows, make_project
from tests.sabotage.patching import Patch, patched

KEYED = SPEC.replace('publish = ["relationship"]', 'publish = ["relationship"]\nrecord_key = ["id"]')

FORGETFUL = (
    Patch(
        "funnel.pipeline.tasks.follow",
        "    rounded = rounded_channel(joint, found.guarantee, effective)",
        "    rounded = found.target",
    ),
    Patch(
        "funnel.register.look_up",
        "            self._silent,",
        "            None,",
    ),
    Patch("funnel.register.look_up", "nodes[among] = FORGOTTEN_NODE", "nodes[among] = nodes[among]"),
    Patch(
        "funnel.pipeline.tasks.found_history",
        "        forgotten=people.forgotten,",
        "        forgotten=people.forgotten + 1,",
    ),
)


def people(start: int, count: int) -> pa.Table:
    """Rows of people whose keys are the numbers from ``start`` on."""
    return adult_rows(start, count).append_column("id", pa.array(range(start, start + count)))


def asked(spec: Path, *arguments: str, answer: str | None = None) -> Result:
    return CliRunner().invoke(command, [str(spec), *arguments], input=answer)


def test_a_person_is_forgotten_between_versions(tmp_path: Path) -> None:
    path = make_project(tmp_path, KEYED.replace('"different"', '"same"\nregister = "adults"'), people(0, 1000))
    run_release(ReleaseSpec.load(path), False, False)
    register = Register.of(tmp_path / ".funnel", "adults")
    head = register.head_sha256
    # Whoever does not say yes changes nothing.
    assert asked(path, "--id", "id=7", answer="n\n").exit_code == 1
    assert Register.of(tmp_path / ".funnel", "adults").head_sha256 == head
    done = asked(path, "--id", "id=7", "--yes")
    assert done.exit_code == 0, done.output
    assert done.output.startswith("1 person was erased from the register: 1 answers in 1 versions; the digest of every")
    (tmp_path / "keys.csv").write_text("id\n8\n9\n5000\n")
    told = json.loads(asked(path, "--ids", str(tmp_path / "keys.csv"), "--json").output)
    assert (told["people"], told["unknown"], told["versions"]) == (2, 1, ["people/1.0.0"])
    found = Register.of(tmp_path / ".funnel", "adults")
    assert (found.head.serial, found.head.entries[0].missing, found.head_sha256) == (2, 3, told["head"])
    with ledger_of(ReleaseSpec.load(path), read_only=True) as ledger:
        ledger.verify()
        noted = [entry.event for entry in ledger.entries(register="adults")]
    assert [event.kind for event in noted] == ["publishing", "published", "forgotten", "forgotten"]
    assert noted[-1].digests.register_head == told["head"]
    # Asked for once more: nobody is there, and no release was refused.
    with pytest.raises(DataError, match="they were erased before; nothing was changed"):
        forget(ReleaseSpec.load(path), [{"id": "7"}])
    with ledger_of(ReleaseSpec.load(path), read_only=True) as ledger:
        assert len(list(ledger.entries(register="adults"))) == 4
    pq.write_table(people(5, 1000), tmp_path / "people.parquet")
    # Three who are forgotten leave no room for another channel, nor for one that nobody looked at.
    for mutant in FORGETFUL:
        with patched(mutant), pytest.raises(ReleaseRefused, match=r"^nothing was published|histories"):
            run_release(ReleaseSpec.load(path), False, False)
    second, _ = run_release(ReleaseSpec.load(path), False, False)
    assert (second["status"], second["version"]) == ("published", "1.1.0")
    found = Register.of(tmp_path / ".funnel", "adults")
    assert [entry.missing for entry in found.head.entries] == [3, 3]


def test_what_cannot_be_forgotten_is_said(tmp_path: Path) -> None:
    path = make_project(tmp_path, KEYED, people(0, 300))
    with pytest.raises(SpecError, match="nobody is known in this series"):
        forget(ReleaseSpec.load(path), [{"id": "1"}])
    for arguments in ((), ("--id", "id=1", "--ids", "keys.csv")):
        assert "say who is to be forgotten" in str(asked(path, *arguments, "--yes").exception)
    assert "COLUMN=VALUE" in str(asked(path, "--id", "17", "--yes").exception)
    assert "the option --key is called --id now" in asked(path, "--key", "id=1").output
    keys = tmp_path / "keys.csv"
    with pytest.raises(DataError, match="cannot be read"):
        read_keys(keys)
    for text in ("id\n", "", "id,name\n1\n"):
        keys.write_text(text)
        with pytest.raises(DataError, match="needs a first line with the columns of the record key"):
            read_keys(keys)
    keys.write_text('\ufeffid,name\n1,"a, b"\n')
    assert read_keys(keys) == [{"id": "1", "name": "a, b"}]
