"""A release whose groups are levels of a table in a database: judged, and audited when that table is gone."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from funnel.audit.check import State, overall
from funnel.release.layout import ReleaseFolder
from tests.audits import recheck
from tests.projects import SPEC, make_project
from tests.releases import release

LEVELS = {
    "Husband": "family",
    "Wife": "family",
    "Own-child": "family",
    "Other-relative": "family",
    "Not-in-family": "other",
    "Unmarried": "other",
}


def test_an_audit_needs_no_table_of_levels(tmp_path: Path) -> None:
    database = tmp_path / "levels.db"
    with closing(sqlite3.connect(database)) as opened, opened:
        opened.execute("CREATE TABLE levels (value TEXT, level TEXT)")
        opened.executemany("INSERT INTO levels VALUES (?, ?)", LEVELS.items())
    asked = (
        f'\n[recode.relationship]\nhierarchy = {{path = "sqlite:///{database}", table = "levels"}}\nlevel = "level"\n'
    )
    spec = make_project(tmp_path, SPEC + asked)
    release(str(spec))
    folder = ReleaseFolder((tmp_path / "releases" / "people" / "latest").resolve())
    assert folder.spec.read_text() == spec.read_text()
    database.unlink()
    assert overall(recheck(folder)) == State.PASSED
    folder.hierarchies.write_text("[")
    (failed,) = [check for check in recheck(folder) if check.state is State.FAILED and check.name == "evidence"]
    assert "hierarchies.json cannot be read" in failed.detail
