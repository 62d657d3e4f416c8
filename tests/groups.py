"""A small release of groups, made once in a process, and what its protocol is as text."""

from __future__ import annotations

import functools
import hashlib
import json
import tempfile
from pathlib import Path
from typing import Any
from unittest import mock

from funnel.errors import FunnelError
from funnel.pipeline.expectations import finished_groups
from funnel.pipeline.expectations.finished_groups import FinishedGroups
from funnel.release.layout import ReleaseFolder
from funnel.release.verdict import Judgement, Verdict
from tests.projects import make_project
from tests.sabotage.scenes import GROUPS, Scene, run, source

_KEPT: list[tempfile.TemporaryDirectory[str]] = []


def asked(finished: FinishedGroups, named: str | None = None) -> Verdict:
    """The verdict of one expectation on a release of groups, or of all.

    What Great Expectations adds takes longer than all claims of a small release. There whatever is raised refuses the
    release; here only what says in a sentence that evidence is wrong does, so that no test takes a crash for a refusal.

    Raises
    ------
    ValueError
        If nothing of this name is expected of the release.
    """
    declared = finished.declared()
    chosen = [one for one in declared if named in (None, one.configuration.type)]
    if not chosen:
        raise ValueError(f"nothing called {named} is expected of this release")
    results = []
    for one in chosen:
        try:
            failure = one.find(finished.table(one.evidence_table).to_dict("records")).failure
        except FunnelError as error:
            failure = f"its evidence could not be gathered: {error}"
        kind, description = str(one.configuration.type), str(one.description)
        results.append(Judgement(name=kind, description=description, passed=failure is None, failure=failure))
    return Verdict.of(tuple(results))


@functools.cache
def grouped_release() -> ReleaseFolder:
    """An honest release of groups of some rows of Adult, in its project."""
    keeper = tempfile.TemporaryDirectory()
    _KEPT.append(keeper)
    folder = Path(keeper.name) / "project"
    make_project(folder, GROUPS, source())
    with mock.patch.object(finished_groups, "judge_groups", asked):
        told = run(folder, Scene("honest", GROUPS))
    assert told["status"] == "published"
    return ReleaseFolder(folder / "releases" / "people" / "1.0.0")


def redigested(content: dict[str, Any]) -> bytes:
    """A protocol of groups as the bytes of its file, under the digest that fits."""
    drawn = {key: content[key] for key in ("format", "denominator", "columns", "stages")}
    text = json.dumps(drawn, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    whole = {**content, "digest": hashlib.sha256(text.encode()).hexdigest()}
    return (json.dumps(whole, ensure_ascii=False, sort_keys=True, separators=(",", ":")) + "\n").encode()
