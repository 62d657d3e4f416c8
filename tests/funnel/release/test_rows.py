"""Rows of a version: drawn afresh, drawn with the answers of before, or taken over byte for byte."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from funnel.alphabet import Alphabet
from funnel.drawn import DrawnCounts
from funnel.errors import DataError
from funnel.guarantees import LIP
from funnel.joint import Joint
from funnel.mechanisms import fit
from funnel.progress import quiet
from funnel.protocol import Protocol
from funnel.release.documents import DrawsDocument, drawn_pairs
from funnel.release.drawn_from import DrawnFrom
from funnel.release.layout import ReleaseFolder
from funnel.release.rows import Rows, draw_rows, forget_rows, take_over
from funnel.release.snapshot import Snapshot, take_snapshot
from funnel.sampling.keyed import RecordKey
from tests import chance
from tests.projects import spec_of
from tests.schemas import validated_file

ROWS = 400
SECRET = Alphabet(("s",), (("0",), ("1",)))
KEY = RecordKey(("id",), bytes(range(32)))


@pytest.fixture
def drawn_from(tmp_path: Path) -> tuple[Snapshot, Snapshot, Protocol]:
    """Records without and with keys, and a channel for them."""
    x = np.random.default_rng(1).integers(0, 3, ROWS)
    table = pa.table({"s": (x > 0).astype(int).astype(str), "x": x.astype(str), "id": np.arange(ROWS)})
    pq.write_table(table, tmp_path / "source.parquet")
    joint = Joint.from_table(table, "s", "x")
    work = tmp_path / "work"
    plain = take_snapshot(spec_of("source.parquet", tmp_path), work, None, quiet)
    keyed = take_snapshot(spec_of("source.parquet", tmp_path, record_key=["id"]), work, KEY, quiet)
    return plain, keyed, fit("grr", joint, LIP(0.5))


def draw(snapshot: Snapshot, protocol: Protocol, folder: Path, key: RecordKey | None, work: Path) -> Rows:
    spec = spec_of("source.parquet", folder, output={"shuffle": False}, engine={"workers": 1})
    drawn_from = DrawnFrom.alone(protocol, snapshot, None)
    return draw_rows(spec, drawn_from, ReleaseFolder(folder), work, record_key=key, secret=SECRET, progress=quiet)


def same_counts(one: DrawnCounts, other: DrawnCounts) -> bool:
    """Whether these are the same counts."""
    alike = (one.cells.tolist(), one.records.tolist()) == (other.cells.tolist(), other.records.tolist())
    return one.shape == other.shape and alike


def test_every_draw_is_another_one_and_leaves_nothing_but_rows_and_counts(
    drawn_from: tuple[Snapshot, Snapshot, Protocol], tmp_path: Path
) -> None:
    snapshot, _, protocol = drawn_from
    rows = [draw(snapshot, protocol, tmp_path / name, None, tmp_path / "work") for name in "ab"]
    assert chance.of_equal_draws(protocol, rows[0].counts.inputs.sum(axis=0)[:-1]) < 1e-9
    assert rows[0].data.sha256 != rows[1].data.sha256
    for name, one in zip("ab", rows, strict=True):
        folder = ReleaseFolder(tmp_path / name)
        assert list(folder.root.iterdir()) == [folder.data.parent]
        assert list(folder.data.parent.iterdir()) == [folder.data]
        assert set(folder.internal.iterdir()) == {folder.draws, folder.words}
        assert folder.internal.stat().st_mode & 0o777 == 0o700
        assert one.pairs.n == ROWS == pq.read_metadata(folder.data).num_rows
        assert same_counts(
            drawn_pairs(DrawsDocument.from_json(folder.draws.read_bytes(), "draws"), protocol), one.pairs
        )
    assert not (tmp_path / "work" / "rows").exists()


def test_with_record_keys_answers_stay_and_work_of_other_protocols_goes(
    drawn_from: tuple[Snapshot, Snapshot, Protocol], tmp_path: Path
) -> None:
    _, snapshot, protocol = drawn_from
    work = tmp_path / "work"
    rows = [draw(snapshot, protocol, tmp_path / name, KEY, work) for name in "ab"]
    assert rows[0].data.sha256 == rows[1].data.sha256
    # What workers finished waits for the run that follows a killed one, privately; that of another plan does not.
    (kept,) = next(path for path in work.iterdir() if path.name == "rows").iterdir()
    assert kept.stat().st_mode & 0o777 == kept.parent.stat().st_mode & 0o777 == 0o700
    other = RecordKey(("id",), bytes(range(1, 33)))
    assert draw(snapshot, protocol, tmp_path / "c", other, work).data.sha256 != rows[0].data.sha256
    assert not kept.exists()
    assert len(list(kept.parent.iterdir())) == 1
    forget_rows(work)
    assert not kept.parent.exists()
    forget_rows(work)


def test_rows_are_taken_over_byte_for_byte_or_not_at_all(
    drawn_from: tuple[Snapshot, Snapshot, Protocol], tmp_path: Path
) -> None:
    snapshot, _, protocol = drawn_from
    rows = draw(snapshot, protocol, tmp_path / "a", None, tmp_path / "work")
    earlier, later = ReleaseFolder(tmp_path / "a"), ReleaseFolder(tmp_path / "b")
    taken = take_over(earlier, rows.data.sha256, protocol, later)
    assert later.data.read_bytes() == earlier.data.read_bytes()
    assert later.draws.read_bytes() == earlier.draws.read_bytes()
    assert later.internal.stat().st_mode & 0o777 == 0o700
    assert (taken.data.path, taken.data.sha256) == (str(later.data), rows.data.sha256)
    assert same_counts(taken.pairs, rows.pairs)
    assert np.array_equal(taken.counts.inputs, rows.counts.inputs)
    assert (taken.secret, taken.probe, taken.words) == (rows.secret, rows.probe, rows.words)
    assert validated_file(later.words) == "words"
    assert not later.drawing.exists()
    # What was drawn given histories has the drawing beside it.
    earlier.drawing.write_bytes(b"histories")
    take_over(earlier, rows.data.sha256, protocol, ReleaseFolder(tmp_path / "followed"))
    assert ReleaseFolder(tmp_path / "followed").drawing.read_bytes() == b"histories"
    earlier.data.write_bytes(earlier.data.read_bytes() + b" ")
    with pytest.raises(DataError, match="were changed since they were drawn"):
        take_over(earlier, rows.data.sha256, protocol, ReleaseFolder(tmp_path / "c"))


def test_a_snapshot_that_was_changed_is_not_drawn_from(
    drawn_from: tuple[Snapshot, Snapshot, Protocol], tmp_path: Path
) -> None:
    snapshot, _, protocol = drawn_from
    path = Path(snapshot.data.path)
    path.write_bytes(path.read_bytes() + b" ")
    with pytest.raises(DataError, match="gone or was changed"):
        draw(snapshot, protocol, tmp_path / "a", None, tmp_path / "work")
    assert not (tmp_path / "a").exists()


def test_draws_are_counted_by_the_secret_of_every_record(
    drawn_from: tuple[Snapshot, Snapshot, Protocol], tmp_path: Path
) -> None:
    snapshot, _, protocol = drawn_from
    counts = draw(snapshot, protocol, tmp_path / "a", None, tmp_path / "work").counts
    assert counts is not None
    table = pq.read_table(snapshot.data.path)
    for s, secret in enumerate(SECRET.symbols):
        for x, value in enumerate(protocol.inputs.symbols):
            both = zip(table["s"].to_pylist(), table["x"].to_pylist(), strict=True)
            assert counts.inputs[s, x] == sum((one, other) == (*secret, *value) for one, other in both)
