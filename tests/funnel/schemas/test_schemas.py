"""The published JSON Schemas are those of the code, and never those of something else."""

from __future__ import annotations

import hashlib
import json
import runpy
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest

from funnel.release.document import Document
from funnel.schemas import DOCUMENTS, FOLDER, renew, schema_file, schema_text

PUBLISHED = Path(__file__).with_name("schemas.sha256")


@pytest.mark.parametrize("document", DOCUMENTS)
def test_the_published_schema_is_that_of_the_code(document: type[Document]) -> None:
    said = schema_file(document).read_bytes()
    assert said == schema_text(document), "run python -m funnel.schemas, or raise the version"
    schema = json.loads(said)
    jsonschema.Draft202012Validator.check_schema(schema)
    name, version = document.identity()
    assert schema["properties"]["schema"]["const"] == f"funnel/{name}/{version}"
    # What is written has every key, and no other.
    assert sorted(schema["required"]) == sorted(schema["properties"])
    assert schema["additionalProperties"] is False


def test_no_published_schema_was_changed_afterwards() -> None:
    """Releases name these: whoever changes a document raises its version, and adds the digest of the new file."""
    kept = dict(line.split("  ")[::-1] for line in PUBLISHED.read_text(encoding="utf-8").splitlines())
    there = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in FOLDER.glob("*.json")}
    assert there == kept


def test_documents_have_names_of_their_own() -> None:
    assert len({schema_file(document) for document in DOCUMENTS}) == len(DOCUMENTS)


def test_schemas_are_installed_with_the_package() -> None:
    installed = {entry.name for entry in files("funnel.schemas").iterdir() if entry.name.endswith(".json")}
    assert installed >= {schema_file(document).name for document in DOCUMENTS}


def test_schemas_are_renewed_where_they_changed(tmp_path: Path) -> None:
    written = renew(tmp_path)
    assert [path.read_bytes() for path in written] == [schema_file(document).read_bytes() for document in DOCUMENTS]
    assert renew(tmp_path) == []
    written[0].write_text("{}")
    assert renew(tmp_path) == [written[0]]


def test_the_command_says_what_it_renewed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for renewed in ([], [Path("a-1.json"), Path("b-2.json")]):
        monkeypatch.setattr("funnel.schemas.renew", lambda renewed=renewed: renewed)
        runpy.run_module("funnel.schemas", run_name="__main__", alter_sys=True)
        assert capsys.readouterr().out == "".join(f"renewed {path.name}\n" for path in renewed)
    # Whoever only imports it renews nothing.
    runpy.run_module("funnel.schemas.__main__")
    assert capsys.readouterr().out == ""
