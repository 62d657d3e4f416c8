"""The finished folder is judged from the source and the spec: what was exchanged on the way is not published."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from funnel.errors import ReleaseRefused
from funnel.guarantees import LIP
from funnel.pipeline.flows import pipeline
from funnel.pipeline.flows.look import look
from funnel.pipeline.tasks import committed
from funnel.pipeline.tasks.run import Draft
from funnel.pipeline.tasks.validate import validate
from funnel.release import publication
from funnel.release.layout import ReleaseFolder
from funnel.release.snapshot import Snapshot
from funnel.spec import ReleaseSpec
from tests.projects import PLAIN, adult_rows, make_project
from tests.releases import make_release, make_released

CSV = PLAIN + "\n[output]\ncsv = true\n"


def refused(spec: Path, words: str) -> None:
    """A release is refused with these words, and nothing of it is left."""
    with pytest.raises(ReleaseRefused, match=words):
        make_release(spec)
    assert not list((spec.parent / "releases" / "people").iterdir())


def test_a_csv_from_the_source_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = make_project(tmp_path, CSV)

    def from_the_source(folder: ReleaseFolder) -> None:
        pacsv.write_csv(pq.read_table(tmp_path / "people.parquet", columns=["relationship"]), folder.csv)

    monkeypatch.setattr(publication, "_write_csv", from_the_source)
    said = "its row [0-9]+ is not that of the parquet file, as funnel writes it"
    refused(spec, rf"csv: {said}$")


@pytest.mark.parametrize("level", [math.inf, math.nan])
def test_a_level_that_is_no_number_is_refused_and_does_not_crash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, level: float
) -> None:
    real = LIP.level_for

    def unbounded(*arguments: Any) -> Any:
        return replace(real(*arguments), value=level)

    spec = make_project(tmp_path, PLAIN)
    monkeypatch.setattr(LIP, "level_for", unbounded)
    refused(
        spec, r"^nothing was published: [a-z.]*level of a [A-Za-z]+ cannot be written: input should be a finite number"
    )


def exchange_after(step: Callable[..., Any], change: Callable[[ReleaseFolder], None]) -> Callable[..., Any]:
    def changed(*arguments: Any) -> Any:
        result = step(*arguments)
        change(next(one.folder for one in arguments if isinstance(one, Draft)))
        return result

    return changed


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda folder: folder.report.write_text("<p>Nothing to see.</p>"), "'report.html' was changed after"),
        (lambda folder: (folder.root / "joint.json").write_text("{}"), "'joint.json' came after"),
        (lambda folder: folder.package.unlink(), "'datapackage.json' is gone after"),
        (
            lambda folder: (folder.root / "more").symlink_to(folder.joint),
            "'more' in the release is neither a file nor a folder",
        ),
    ],
)
def test_what_is_exchanged_after_the_judgement_is_not_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[ReleaseFolder], None], words: str
) -> None:
    monkeypatch.setattr(pipeline, "validate", exchange_after(validate, change))
    refused(make_project(tmp_path, PLAIN), words)


def test_a_stale_snapshot_is_neither_released_nor_called_unchanged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = make_project(tmp_path, PLAIN)
    spec = ReleaseSpec.load(path)
    _, done = pipeline.run_release(spec, False, False)
    stale: Snapshot = done.snapshot
    pq.write_table(adult_rows(1000, 3000), tmp_path / "people.parquet")
    monkeypatch.setattr(pipeline, "ingest", lambda *_: stale)
    # Asked for again, the stale rows would be drawn; unasked, the version would be called unchanged.
    with pytest.raises(ReleaseRefused, match="digest of the snapshot is not that of the source"):
        pipeline.run_release(spec, True, False)
    with pytest.raises(
        ReleaseRefused, match=r"version 1\.0\.0 was made from another source than the one that is there"
    ):
        pipeline.run_release(spec, False, False)
    assert [
        one.name for one in (tmp_path / "releases" / "people").iterdir() if one.is_dir() and not one.is_symlink()
    ] == ["1.0.0"]


def test_a_look_that_takes_another_source_for_the_same_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = ReleaseSpec.load(make_released(tmp_path, PLAIN))
    told = look(spec)
    assert told["status"] == "unchanged"
    known = json.loads((tmp_path / ".funnel" / "people" / "settled.json").read_text())["source"]
    pq.write_table(adult_rows(1000, 3000), tmp_path / "people.parquet")
    monkeypatch.setattr(committed, "open_source", lambda _: _Same(known))
    with pytest.raises(ReleaseRefused, match="made from another source"):
        look(spec)


class _Same:
    """A source that always has the digest that it had."""

    def __init__(self, known: str) -> None:
        self.files, self.known = self, known

    def digest(self) -> str:
        return self.known
