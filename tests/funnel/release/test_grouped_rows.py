"""Rows of a grouped version: drawn afresh, drawn with the answers of before, or taken over byte for byte."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import funnel
from funnel.errors import DataError
from funnel.groups import Schedule
from funnel.progress import quiet
from funnel.release.grouped_draws import GroupedDraws
from funnel.release.grouped_rows import GroupedRows, draw_grouped_rows, take_over_grouped
from funnel.release.layout import ReleaseFolder
from funnel.release.snapshot import take_snapshot
from funnel.release.words import WordsDocument
from funnel.sampling import RecordKey
from funnel.settings.work import EngineSettings
from tests.projects import spec_of

ROWS = 400
KEY = RecordKey(("id",), bytes(range(32)))
OTHER = RecordKey(("id",), bytes(range(1, 33)))
Draw = Callable[[str, RecordKey | None], GroupedRows]


@pytest.fixture
def draw(tmp_path: Path) -> Draw:
    """Draws the same records into a folder, with keys or without, in groups of one column each."""
    random = np.random.default_rng(1)
    x, y = random.integers(0, 3, ROWS), random.integers(0, 2, ROWS)
    secret = ((x + random.integers(0, 2, ROWS)) > 1).astype(int)
    columns = {name: of.astype(str) for name, of in (("s", secret), ("x", x), ("y", y))}
    table = pa.table({**columns, "id": np.arange(ROWS)})
    pq.write_table(table, tmp_path / "source.parquet")
    joint = funnel.Joint.from_table(table, "s", ["x", "y"])
    schedule = Schedule(0.8, 4)
    made = funnel.publish_groups(joint, [["x"], ["y"]], funnel.LIP(0.7), people=30, schedule=schedule)
    work = tmp_path / "work"
    published = {"publish": [["x"], ["y"]]}
    plain = take_snapshot(spec_of("source.parquet", tmp_path, **published), work, None, quiet)
    keyed = take_snapshot(spec_of("source.parquet", tmp_path, record_key=["id"], **published), work, KEY, quiet)

    def run(name: str, key: RecordKey | None) -> GroupedRows:
        return draw_grouped_rows(
            plain if key is None else keyed,
            made.protocol,
            ReleaseFolder(tmp_path / name),
            work,
            shuffle=False,
            record_key=key,
            secret=joint.secret,
            engine=EngineSettings(workers=1),
            progress=quiet,
        )

    return run


def test_every_draw_is_another_one_and_leaves_nothing_but_rows_and_counts(draw: Draw, tmp_path: Path) -> None:
    rows = [draw(name, None) for name in "ab"]
    assert rows[0].data.sha256 != rows[1].data.sha256
    for name, one in zip("ab", rows, strict=True):
        folder = ReleaseFolder(tmp_path / name)
        files = {path for path in folder.root.rglob("*") if path.is_file()}
        assert files == {folder.data, folder.draws, folder.cells, folder.words}
        assert set(folder.root.iterdir()) == {folder.data.parent, folder.audit}
        assert folder.audit.stat().st_mode & 0o777 == 0o700
        assert one.draws.n == ROWS == pq.read_metadata(folder.data).num_rows
        assert WordsDocument.read(folder.words) == one.words
    assert not (tmp_path / "work" / "rows").exists()


def test_with_record_keys_answers_stay_and_work_of_other_plans_goes(draw: Draw, tmp_path: Path) -> None:
    first = draw("a", KEY)
    # What workers finished waits for the run that follows a killed one, privately; that of another plan does not.
    waiting = tmp_path / "work" / "rows"
    (kept,) = waiting.iterdir()
    assert kept.stat().st_mode & 0o777 == waiting.stat().st_mode & 0o777 == 0o700
    done = {path.name: path.stat().st_mtime_ns for path in kept.glob("drawn-*.npz")}
    assert done
    assert set((tmp_path / "a").iterdir()) == {ReleaseFolder(tmp_path / "a").data.parent, tmp_path / "a" / "audit"}
    second = draw("b", KEY)
    assert second.data.sha256 == first.data.sha256
    assert {path.name: path.stat().st_mtime_ns for path in kept.glob("drawn-*.npz")} == done
    assert draw("c", OTHER).data.sha256 != first.data.sha256
    assert not kept.exists()
    assert len(list(waiting.iterdir())) == 1
    # Draws without keys take nothing of it, and leave it.
    assert draw("d", None).data.sha256 != first.data.sha256
    assert len(list(waiting.iterdir())) == 1


def test_rows_are_taken_over_byte_for_byte_or_not_at_all(draw: Draw, tmp_path: Path) -> None:
    rows = draw("a", None)
    earlier, later = ReleaseFolder(tmp_path / "a"), ReleaseFolder(tmp_path / "b")
    taken = take_over_grouped(earlier, rows.data.sha256, later)
    for name in ("data", "draws", "cells", "words"):
        assert getattr(later, name).read_bytes() == getattr(earlier, name).read_bytes()
    assert later.audit.stat().st_mode & 0o777 == 0o700
    assert (taken.data.path, taken.data.sha256) == (str(later.data), rows.data.sha256)
    for draws in (taken.draws, GroupedDraws.read(later)):
        assert (draws.secret, draws.probe) == (rows.draws.secret, rows.draws.probe)
        assert np.array_equal(draws.cells, rows.draws.cells)
        assert np.array_equal(draws.records, rows.draws.records)
    assert taken.words == rows.words
    earlier.data.write_bytes(earlier.data.read_bytes() + b" ")
    with pytest.raises(DataError) as caught:
        take_over_grouped(earlier, rows.data.sha256, ReleaseFolder(tmp_path / "c"))
    assert str(caught.value) == (
        f"the rows of {earlier.root} were changed since they were drawn; restore them from a backup"
    )
    assert not ReleaseFolder(tmp_path / "c").draws.exists()
