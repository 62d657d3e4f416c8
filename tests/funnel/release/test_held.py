"""Held versions: never public, never lost, one at a time, and each with an outcome in the end; killed anywhere."""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from funnel.errors import LedgerError, ReleaseRefused
from funnel.progress import quiet
from funnel.release.approval import Approval, Outcome
from funnel.release.files import private_folder
from funnel.release.layout import ReleaseFolder, Version
from funnel.release.record import Record
from funnel.release.series import Series, open_series
from funnel.release.verdict import Judgement, Verdict
from funnel.spec import ReleaseSpec
from tests.funnel.release.test_series import put, record
from tests.killing import RENAMES_AND_REMOVALS, Killed, die_after
from tests.projects import spec_of
from tests.releases import judged

ONE, TWO, THREE = Version(1, 0, 0), Version(1, 1, 0), Version(1, 2, 0)
AT = "2026-11-21T10:00:00+00:00"
BY = Approval(by="A. Okafor, DPO", at=AT, note="seen")
REJECTED = Outcome(version="1.1.0", outcome="rejected", at=AT, by="A. Okafor, DPO", reason="too much")


def spec(folder: Path, workspace: str = "work") -> ReleaseSpec:
    return spec_of("x.parquet", folder, name="x", output={"folder": "out", "workspace": workspace})


@contextmanager
def put_together(series: Series, version: Version, approval: Approval | None = None) -> Iterator[ReleaseFolder]:
    """A version of one public file, with its verdict and its record."""
    with series.incoming() as folder:
        private_folder(folder.internal)
        folder.protocol.write_text(str(version))
        verdict = judged(folder)
        folder.verdict.write_bytes(verdict.to_bytes())
        made = record(str(version)).model_copy(update={"files": dict(verdict.files), "approval": approval})
        folder.record.write_bytes(made.to_bytes())
        yield folder


def hold(series: Series, version: Version) -> None:
    with put_together(series, version) as folder:
        series.held.hold(folder, version, judged(folder))


def publish(series: Series, version: Version, approval: Approval | None) -> None:
    with put_together(series, version, approval) as folder:
        series.publish(folder, version, judged(folder), quiet)


def outcomes(folder: Path) -> dict[str, str | None]:
    """What became of every version that was ever held, once a further run has put things right."""
    with open_series(spec(folder)) as series:
        held = series.held
        found = {str(one): held.outcome(one) for one in held.records.known}
        assert [one.version for one in held.all if one.waiting] == [
            Version.parse(version) for version, outcome in found.items() if outcome is None
        ]
        for version, outcome in found.items():
            number = Version.parse(version)
            assert number is not None
            assert held.folder(number).root.is_dir() is (outcome is None)
    return {version: None if outcome is None else outcome.outcome for version, outcome in found.items()}


def test_a_held_version_is_there_and_nobody_sees_it(tmp_path: Path) -> None:
    with open_series(spec(tmp_path)) as series:
        put(series, "1.0.0")
        hold(series, TWO)
    root = tmp_path / "out" / "x"
    assert (root / ".held-1.1.0").stat().st_mode & 0o777 == 0o700
    for _ in range(2):
        with open_series(spec(tmp_path)) as series:
            assert series.published == [ONE]
            assert [one.version for one in series.earlier] == [ONE]
            assert series.held.require_waiting() == series.held.require_waiting(TWO) == TWO
            series.held.check(TWO)
        assert (root / "latest").readlink() == Path("1.0.0")
        assert sorted(path.name for path in root.iterdir()) == [".held-1.1.0", "1.0.0", "latest", "versions.json"]


def test_only_what_passed_and_is_as_it_was_judged_is_held(tmp_path: Path) -> None:
    failed = Judgement(name="expect_a", description="A holds.", passed=False, failure="A does not hold")
    with open_series(spec(tmp_path)) as series:
        for change, words in ((Verdict.of((failed,)), "A does not hold"), (None, "was changed after")):
            with put_together(series, TWO) as folder:
                verdict = judged(folder) if change is None else change
                folder.protocol.write_text("another")
                with pytest.raises(ReleaseRefused, match=words):
                    series.held.hold(folder, TWO, verdict)
        assert series.held.all == ()
    assert outcomes(tmp_path) == {}


@pytest.mark.parametrize(
    "tamper",
    [
        lambda folder: folder.protocol.write_text("1.1.1"),
        lambda folder: folder.protocol.unlink(),
        lambda folder: folder.csv.parent.mkdir() or folder.csv.write_text("a\n1\n"),
        lambda folder: folder.verdict.write_text("{}"),
        lambda folder: folder.verdict.unlink(),
        lambda folder: folder.verdict.write_bytes(judged(folder).of((), {}).to_bytes()),
        lambda folder: folder.record.write_bytes(record("1.1.0", rows=11).to_bytes()),
        lambda folder: folder.record.unlink(),
    ],
)
def test_a_held_version_that_was_tampered_with_is_not_what_was_judged(
    tmp_path: Path, tamper: Callable[[ReleaseFolder], Any]
) -> None:
    with open_series(spec(tmp_path)) as series:
        hold(series, TWO)
        tamper(series.held.folder(TWO))
        with pytest.raises(LedgerError) as caught:
            series.held.check(TWO)
        assert "is not what was judged: " in str(caught.value)
        assert "--reject REASON" in str(caught.value)
        assert "\n" not in str(caught.value)
        # It can still be got rid of.
        series.held.close(REJECTED)
    assert outcomes(tmp_path) == {"1.1.0": "rejected"}


def test_a_file_and_the_verdict_that_were_both_exchanged_are_noticed(tmp_path: Path) -> None:
    with open_series(spec(tmp_path)) as series:
        hold(series, TWO)
        folder = series.held.folder(TWO)
        folder.protocol.write_text("another")
        verdict = judged(folder)
        folder.verdict.write_bytes(verdict.to_bytes())
        known = Record.read(folder.record)
        folder.record.write_bytes(known.model_copy(update={"files": dict(verdict.files)}).to_bytes())
        with pytest.raises(LedgerError, match="its record or its verdict is another one"):
            series.held.check(TWO)


def test_one_waits_at_a_time_and_each_has_an_outcome(tmp_path: Path) -> None:
    with open_series(spec(tmp_path)) as series:
        hold(series, ONE)
        hold(series, TWO)
    assert outcomes(tmp_path) == {"1.0.0": "superseded", "1.1.0": None}
    with open_series(spec(tmp_path)) as series:
        with pytest.raises(LedgerError, match=r"version 1\.0\.0 does not wait for approval, but version 1\.1\.0 does"):
            series.held.require_waiting(ONE)
        publish(series, TWO, BY)
        with pytest.raises(
            LedgerError, match=r"1\.1\.0 was published on .* with the approval of A\. Okafor, DPO: seen"
        ):
            series.held.require_waiting()
        assert series.records.known[TWO].approval == BY
        hold(series, THREE)
        # The spec no longer asks for approval, or another workspace published.
        publish(series, Version(2, 0, 0), None)
    assert outcomes(tmp_path) == {"1.0.0": "superseded", "1.1.0": "published", "1.2.0": "superseded"}
    with open_series(spec(tmp_path)) as series:
        hold(series, Version(2, 1, 0))
    shutil.rmtree(tmp_path / "out" / "x" / ".held-2.1.0")
    assert outcomes(tmp_path)["2.1.0"] == "gone"


def test_a_held_version_that_was_published_without_approval_is_published(tmp_path: Path) -> None:
    """The spec no longer asks for approval."""
    with open_series(spec(tmp_path)) as series:
        hold(series, TWO)
        publish(series, TWO, None)
        outcome = series.held.outcome(TWO)
        assert (outcome.outcome, outcome.by, outcome.reason) == (
            "published",
            None,
            "the spec asked for no approval",
        )
    assert outcomes(tmp_path) == {"1.1.0": "published"}


def test_what_is_held_from_another_workspace_is_left_alone_and_stops_the_series(tmp_path: Path) -> None:
    with open_series(spec(tmp_path)) as series:
        hold(series, TWO)
    with pytest.raises(LedgerError, match="was held from another workspace"), open_series(spec(tmp_path, "other")):
        pass
    with open_series(spec(tmp_path)) as series:
        assert series.held.require_waiting() == TWO


@pytest.mark.parametrize("content", [b"{", b"{}", b'{"schema": "funnel/outcome/1"}'])
def test_a_damaged_outcome_stops_the_series(tmp_path: Path, content: bytes) -> None:
    with open_series(spec(tmp_path)) as series:
        hold(series, TWO)
        series.held.close(REJECTED)
    (path,) = (tmp_path / "work").rglob("1.1.0-outcome.json")
    path.write_bytes(content)
    with pytest.raises(LedgerError, match="restore it from a backup"), open_series(spec(tmp_path)):
        pass


def reject(series: Series) -> None:
    series.held.close(REJECTED)


@pytest.mark.parametrize(
    ("act", "before", "after"),
    [
        (lambda series: hold(series, THREE), {"1.1.0": None}, {"1.1.0": "superseded", "1.2.0": None}),
        (lambda series: publish(series, TWO, BY), {"1.1.0": None}, {"1.1.0": "published"}),
        (reject, {"1.1.0": None}, {"1.1.0": "rejected"}),
    ],
    ids=["held anew", "approved", "rejected"],
)
def test_a_kill_anywhere_leaves_it_held_or_closed_whole(
    tmp_path: Path, act: Callable[[Series], None], before: dict[str, str | None], after: dict[str, str | None]
) -> None:
    """Killed before each write, rename and removal: a further run finds what was before, or all that is after."""
    seen = []
    for moment in itertools.count():
        folder = tmp_path / str(moment)
        with open_series(spec(folder)) as series:
            put(series, "1.0.0")
            hold(series, TWO)
        with pytest.MonkeyPatch.context() as patch, suppress(Killed), open_series(spec(folder)) as series:
            was_killed = die_after(patch, moment, (*RENAMES_AND_REMOVALS, (os, "fsync")))
            act(series)
        found = outcomes(folder)
        assert found in (before, after), moment
        seen.append(found == after)
        assert outcomes(folder) == found
        root = folder / "out" / "x"
        published = found["1.1.0"] == "published"
        assert (root / "1.1.0").is_dir() is published
        assert (root / "latest").readlink() == Path("1.1.0" if published else "1.0.0")
        assert not list((folder / "work").rglob(".coming-*"))
        assert not list(root.glob(".incoming-*"))
        if not was_killed():
            break
    # First nothing of it was done, then all.
    assert seen == sorted(seen)
    assert set(seen) == {False, True}
