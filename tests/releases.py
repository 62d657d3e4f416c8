"""A release made without the orchestrator, for tests of what is done with releases."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from funnel.pipeline.flows.pipeline import run_release
from funnel.release.layout import ReleaseFolder
from funnel.release.validated import public_digests
from funnel.release.verdict import Judgement, Verdict
from funnel.spec import ReleaseSpec


def release(spec: str | Path, again: bool = False, rotate_secret: bool = False) -> dict[str, Any]:
    """What the flow of this name does and returns."""
    return run_release(ReleaseSpec.load(Path(spec)), again, rotate_secret)[0]


def make_release(spec_path: Path) -> ReleaseFolder:
    """Go the whole way once; returns the folder of version 1.0.0."""
    told = release(spec_path)
    assert told["status"] == "published"
    return ReleaseFolder(Path(told["folder"]))


def judged(folder: ReleaseFolder) -> Verdict:
    """A verdict that passes the files that are there, for tests of what is done with judged releases."""
    passed = Judgement(name="expect_a", description="A holds.", passed=True)
    return Verdict.of((passed,), public_digests(folder.root))
