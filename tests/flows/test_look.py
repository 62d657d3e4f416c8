"""Whether anything has changed is told without making the release again, and never where something has."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from funnel.cli import main
from funnel.errors import LedgerError
from funnel.pipeline.flows.look import look
from funnel.pipeline.flows.pipeline import run_release
from funnel.pipeline.tasks.step import listening
from funnel.release.layout import ReleaseFolder
from funnel.spec import ReleaseSpec
from tests.projects import PLAIN, ROOT, adult_rows, make_project
from tests.releases import make_released

# The command, which then says what it has imported.
LOOKS = """
import sys
from funnel.cli import main
try:
    main(prog_name="funnel")
finally:
    slow = {"flint", "great_expectations", "highspy", "prefect", "pyarrow.compute", "scipy", "sqlalchemy"}
    makers = {"funnel.history", "funnel.register.register", "funnel.sampling.parts", "funnel.solver.optimum"}
    print("imported:", sorted((slow | makers) & set(sys.modules)))
"""


def other_rows() -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(adult_rows(100), sink)
    return bytes(sink.getvalue())


def looked(spec: Path) -> str | None:
    found = look(ReleaseSpec.load(spec))
    return None if found is None else str(found["version"])


def test_nothing_or_everything_that_may_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = make_project(tmp_path, PLAIN)
    assert looked(spec) is None
    told, done = run_release(ReleaseSpec.load(spec), False, False)
    assert done is not None
    assert (told["status"], told["version"]) == ("published", "1.0.0")
    assert looked(spec) == "1.0.0"

    settled = tmp_path / ".funnel" / "people" / "settled.json"
    record = ReleaseFolder(tmp_path / "releases" / "people" / "1.0.0").record
    source = tmp_path / "people.parquet"
    changes: list[tuple[Path, Callable[[bytes], bytes]]] = [
        (spec, lambda content: content.replace(b"People of a test", b"Better title")),
        (spec, lambda content: content.replace(b"lip:1.0", b"lip:0.9")),
        (source, lambda content: other_rows()),
        (settled, lambda content: b"{"),
        (settled, lambda content: b"[]"),
        (record, lambda content: content.replace(b'"fresh": true', b'"fresh": false')),
    ]
    for path, change in changes:
        content = path.read_bytes()
        path.write_bytes(change(content))
        assert path.read_bytes() != content
        assert looked(spec) is None
        path.write_bytes(content)
        assert looked(spec) == "1.0.0"
    # Who does the work, and a setting that says what is so anyway, change nothing.
    spec.write_text(PLAIN + "[engine]\nworkers = 2\n[output]\nshuffle = true\ncsv = false\n")
    assert looked(spec) == "1.0.0"
    # Other code may give something else.
    with monkeypatch.context() as patch:
        patch.setattr("funnel.pipeline.tasks.committed.code_digest", lambda: "other")
        assert looked(spec) is None
    # Of files that were changed or are gone it is never said that nothing has changed.
    released = ReleaseFolder(tmp_path / "releases" / "people" / "1.0.0")
    for path in (released.data, released.report, released.protocol, released.package):
        content = path.read_bytes()
        path.write_bytes(content + b" ")
        with pytest.raises(LedgerError, match=f"{path.name} is gone or was changed since it was published"):
            look(ReleaseSpec.load(spec))
        with pytest.raises(LedgerError, match="gone or was changed"):
            run_release(ReleaseSpec.load(spec), False, False)
        path.write_bytes(content)
    assert run_release(ReleaseSpec.load(spec), False, False)[0] == look(ReleaseSpec.load(spec))


def test_the_command_says_so_without_loading_what_makes_releases(tmp_path: Path) -> None:
    spec = make_released(tmp_path, PLAIN)
    said = subprocess.run(
        [sys.executable, "-c", LOOKS, "release", str(spec)],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
    )
    assert said.stdout.startswith("Nothing has changed since version 1.0.0")
    assert "imported: []" in said.stdout


def test_an_old_copy_of_the_ledger_beside_what_was_published_since(tmp_path: Path) -> None:
    spec, source = make_released(tmp_path, PLAIN), tmp_path / "people.parquet"
    kept = {name: (tmp_path / ".funnel" / name).read_bytes() for name in ("ledger.sqlite", "ledger-head")}
    source.write_bytes(other_rows())
    assert run_release(ReleaseSpec.load(spec), False, False)[0]["version"] == "1.1.0"
    assert looked(spec) == "1.1.0"
    now = {name: (tmp_path / ".funnel" / name).read_bytes() for name in kept}
    for files in (kept, {"ledger.sqlite": kept["ledger.sqlite"]}, {"ledger-head": kept["ledger-head"]}):
        for name, content in {**now, **files}.items():
            (tmp_path / ".funnel" / name).write_bytes(content)
        verified = CliRunner().invoke(main, ["ledger", "verify", str(spec)])
        if "ledger.sqlite" in files:
            assert looked(spec) is None
            with pytest.raises(LedgerError, match="old backup"):
                run_release(ReleaseSpec.load(spec), False, False)
            assert verified.exit_code == 9, verified.output
        else:
            # The ledger itself is the newest.
            assert looked(spec) == "1.1.0"
            assert verified.exit_code == 0, verified.output


def test_a_spec_that_changes_during_a_run_is_for_the_next_one(tmp_path: Path) -> None:
    spec = make_project(tmp_path, PLAIN)
    changed = PLAIN + "[output]\nshuffle = false\ncsv = true\n"

    def edit(what: str, done: int, total: int | None) -> None:
        spec.write_text(changed)

    with listening(edit):
        told, _ = run_release(ReleaseSpec.load(spec), False, False)
    folder = ReleaseFolder(Path(told["folder"]))
    assert folder.spec.read_text() == PLAIN
    assert not folder.csv.exists()
    assert b'"rowOrder": "random"' in folder.package.read_bytes()
    assert looked(spec) is None
    told, _ = run_release(ReleaseSpec.load(spec), True, False)
    assert told["drawn"]
    folder = ReleaseFolder(Path(told["folder"]))
    assert folder.spec.read_text() == changed
    assert b'"rowOrder": "as in the source"' in folder.package.read_bytes()


def test_a_run_reads_its_spec_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = make_project(tmp_path, PLAIN)
    read: list[Path] = []
    real = Path.open

    def counted(path: Path, *how: Any, **options: Any) -> Any:
        if path == spec:
            read.append(path)
        return real(path, *how, **options)

    monkeypatch.setattr(Path, "open", counted)
    described = ReleaseSpec.load(spec)
    assert look(described) is None
    run_release(described, False, False)
    assert len(read) == 1


def test_another_column_of_the_source_takes_the_rows_over(tmp_path: Path) -> None:
    spec = make_released(tmp_path, PLAIN)
    pq.write_table(adult_rows().append_column("new", adult_rows().column("sex")), tmp_path / "people.parquet")
    assert looked(spec) is None
    told, _ = run_release(ReleaseSpec.load(spec), False, False)
    assert (told["version"], told["drawn"], told["fresh"]) == ("1.0.1", False, False)
