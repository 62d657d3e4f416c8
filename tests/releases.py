"""A release made without the orchestrator, for tests of what is done with releases."""

from __future__ import annotations

import functools
import hashlib
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa

from funnel.pipeline.flows.pipeline import run_release
from funnel.release.layout import ReleaseFolder
from funnel.release.validated import public_digests
from funnel.release.verdict import Judgement, Verdict
from funnel.spec import ReleaseSpec
from tests.projects import SPEC, make_project


def release(spec: str | Path, again: bool = False, rotate_secret: bool = False) -> dict[str, Any]:
    """What the flow of this name does and returns."""
    return run_release(ReleaseSpec.load(Path(spec)), again, rotate_secret)[0]


def make_release(spec_path: Path) -> ReleaseFolder:
    """Go the whole way once; returns the folder of version 1.0.0."""
    told = release(spec_path)
    assert told["status"] == "published"
    return ReleaseFolder(Path(told["folder"]))


@functools.cache
def _kept() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="released-")


def make_released(folder: Path, spec: str = SPEC, table: pa.Table | None = None) -> Path:
    """The spec of a project that was released once: the first test of a process makes it, the others get a copy."""
    content = [] if table is None else [column.to_pylist() for column in table.columns]
    kept = Path(_kept().name) / hashlib.sha256(repr((spec, content)).encode()).hexdigest()
    if not kept.exists():
        making = kept.with_suffix(".making")
        assert release(make_project(making, spec, table))["version"] == "1.0.0"
        making.rename(kept)
    shutil.copytree(kept, folder, symlinks=True, dirs_exist_ok=True)
    return folder / "people.toml"


def judged(folder: ReleaseFolder) -> Verdict:
    """A verdict that passes the files that are there, for tests of what is done with judged releases."""
    passed = Judgement(name="expect_a", description="A holds.", passed=True)
    return Verdict.of((passed,), public_digests(folder.root))
