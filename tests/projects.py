"""Small release projects for tests: a source cut from the real Adult data, its spec, and specs in memory.

Most tests are about something else than the protection of frequencies, so it is left out here.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from funnel.spec import ReleaseSpec

ROOT = Path(__file__).parents[1]
ADULT = ROOT / "data" / "adult.parquet"

SPEC = """
name = "people"
title = "People of a test"
secret = ["marital-status"]
publish = ["relationship"]
guarantee = "lip:1.0"
frequencies.protection = "none"

[source]
path = "people.parquet"

[metadata]
licence = "CC-BY-4.0"

[history]
people = "different"

# Tests are about something else, and their tables are small.
[disclosure]
on_breach = "report"
"""
# With the mechanism that is made fastest.
PLAIN = SPEC + '\n[mechanism]\nname = "grr"\n'
# With a column of survey weights.
WEIGHTED = (
    SPEC.replace('["marital-status"]', '["income"]')
    .replace('["relationship"]', '["sex", "fnlwgt"]\nweight = "fnlwgt"')
    .replace("[metadata]", '[mechanism]\nname = "grr"\n\n[metadata]')
    + """
[recode.fnlwgt]
bins = [100000, 180000, 240000]

[numbers.fnlwgt]
range = [10000, 1500000]
means = [60000, 145000, 205000, 320000]
"""
)


def spec_of(path: str, folder: str | Path, **changes: Any) -> ReleaseSpec:
    """The spec of a source that need not be there: its column ``s`` is secret, ``x`` is published."""
    settings: dict[str, Any] = {
        "name": "test",
        "title": "Test",
        "secret": ["s"],
        "publish": ["x"],
        "guarantee": "lip:1.0",
        "metadata": {"licence": "CC0-1.0"},
        "history": {"people": "different"},
        "disclosure": {"on_breach": "report"},
        "frequencies": {"protection": "none"},
        **changes,
        "source": {"path": path, **changes.get("source", {})},
    }
    return ReleaseSpec.of(settings, folder)


def adult_rows(start: int = 0, rows: int = 3000) -> pa.Table:
    """Some rows of the real data."""
    return pq.read_table(ADULT).slice(start, rows)


def make_project(folder: Path, spec: str = SPEC, table: pa.Table | None = None) -> Path:
    """Write a source and its spec into a folder; returns the path of the spec."""
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(adult_rows() if table is None else table, folder / "people.parquet")
    path = folder / "people.toml"
    path.write_text(spec, encoding="utf-8")
    return path


def funnel_command(*arguments: str | Path) -> list[str]:
    """The command line of ``funnel``, run by the interpreter of the tests."""
    return [sys.executable, "-m", "funnel", *map(str, arguments)]


def run_funnel(*arguments: str | Path, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run ``funnel`` as a user would, and return what it printed and its exit status."""
    return subprocess.run(
        funnel_command(*arguments),
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
        cwd=ROOT,
    )


def tree(folder: Path) -> dict[str, bytes]:
    """Content of every file below a folder, to tell whether anything was touched."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
