"""The row engine: the same bytes whoever works, nothing done twice, and clear errors when files are tampered with."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import stats

from funnel.errors import DataError, EntropyError, PipelineError
from funnel.protocol import Protocol
from funnel.sampling import Processes, parts, plan_rows, release_rows
from funnel.sampling.parts import draw_partition
from funnel.source import file_digest
from tests.interrupts import interrupted_after
from tests.snapshots import FULL, INPUTS, KEY, NOISY, OUTPUTS, ROWS, planned, snapshot


@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize("shuffle", [False, True])
def test_rows_follow_the_protocol(tmp_path: Path, shuffle: bool, keyed: bool) -> None:
    source = snapshot(tmp_path)
    plan = planned(source, "work", shuffle=shuffle, keyed=keyed)
    assert len(plan.groups) == 5
    assert plan.parts == 8
    told: list[tuple[str, int, int | None]] = []
    pairs = release_rows(plan, tmp_path / "out.parquet", progress=lambda *said: told.append(said))
    assert told[-1][1:] == (ROWS, ROWS)
    rows = pq.read_table(source)
    seen = Counter(zip(rows["x"].to_pylist(), rows["z"].to_pylist(), strict=True))
    expected = [seen[symbol] for symbol in INPUTS.symbols]
    assert pairs.sum(axis=1).tolist() == [*expected, ROWS - sum(expected)]
    out = pq.read_table(tmp_path / "out.parquet")
    released = Counter(zip(out["x"].to_pylist(), out["z"].to_pylist(), strict=True))
    assert pairs.sum(axis=0).tolist() == [released[symbol] for symbol in OUTPUTS.symbols]
    for observed, law in zip(pairs, np.column_stack([NOISY.weights, NOISY.marginal]).T / FULL, strict=True):
        possible = law * observed.sum() > 1e-6
        assert observed[~possible].sum() == 0
        if possible.sum() > 1:
            assert stats.chisquare(observed[possible], law[possible] * observed.sum()).pvalue > 1e-9
    assert pq.read_metadata(tmp_path / "out.parquet").num_row_groups == (8 if shuffle else 5)


@pytest.mark.parametrize("shuffle", [False, True])
def test_keyed_bytes_do_not_depend_on_the_workers(tmp_path: Path, shuffle: bool) -> None:
    source = snapshot(tmp_path)
    release_rows(planned(source, "one", shuffle=shuffle, keyed=True), tmp_path / "one.parquet")
    with Processes(2) as two:
        release_rows(planned(source, "two", shuffle=shuffle, keyed=True), tmp_path / "two.parquet", two)
    assert file_digest(tmp_path / "one.parquet") == file_digest(tmp_path / "two.parquet")


def test_a_keyed_shuffle_does_not_depend_on_the_order_of_the_source(tmp_path: Path) -> None:
    sources = [snapshot(tmp_path), snapshot(tmp_path, reverse=True, name="reverse.parquet", group_rows=3100)]
    for i, source in enumerate(sources):
        release_rows(planned(source, f"work{i}", shuffle=True, keyed=True), tmp_path / f"{i}.parquet")
    assert file_digest(tmp_path / "0.parquet") == file_digest(tmp_path / "1.parquet")
    # Nor does it keep that order.
    kept = pq.read_table(tmp_path / "0.parquet")["x"].to_pylist()
    release_rows(planned(sources[0], "order", shuffle=False, keyed=True), tmp_path / "order.parquet")
    assert kept != pq.read_table(tmp_path / "order.parquet")["x"].to_pylist()


def test_fresh_draws_differ_and_shuffled_rows_land_anywhere(tmp_path: Path) -> None:
    channel = Protocol(
        np.diag(np.full(3, FULL, dtype=np.uint64)), np.array([0, 0, FULL], dtype=np.uint64), INPUTS, OUTPUTS
    )
    n = 20_000
    values = pa.array(np.where(np.arange(n) < n // 2, "a", "b")).dictionary_encode()
    pq.write_table(pa.table({"x": values, "z": pa.array(["0"] * n).dictionary_encode()}), tmp_path / "sorted.parquet")
    seen = []
    for name in ("first", "second"):
        plan = planned(tmp_path / "sorted.parquet", name, shuffle=True, keyed=False, protocol=channel)
        release_rows(plan, tmp_path / f"{name}.parquet")
        seen.append(np.array(pq.read_table(tmp_path / f"{name}.parquet")["x"].to_pylist()) == "a")
        assert seen[-1].sum() == n // 2
        tenths = seen[-1].reshape(10, -1).sum(axis=1)
        assert stats.chisquare(tenths).pvalue > 1e-9
    assert (seen[0] != seen[1]).any()


def test_what_is_written_is_not_done_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = snapshot(tmp_path)
    plan = planned(source, "work", shuffle=True, keyed=True)
    draw_partition(plan, 0)
    draw_partition(plan, 3)
    drawn: list[int] = []
    real = parts._drawn

    def counted(plan, index):  # type: ignore[no-untyped-def]
        drawn.append(index)
        return real(plan, index)

    monkeypatch.setattr(parts, "_drawn", counted)
    release_rows(plan, tmp_path / "out.parquet")
    assert drawn == [1, 2, 4]
    release_rows(plan, tmp_path / "again.parquet")
    assert drawn == [1, 2, 4]
    # A damaged file, and the files of another plan, are made anew.
    path = tmp_path / "work" / "partition-00002.codes"
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    (tmp_path / "work" / "part-00001.parquet.json").write_text("{")
    release_rows(plan, tmp_path / "third.parquet")
    assert drawn == [1, 2, 4, 2]
    assert len({file_digest(tmp_path / f"{name}.parquet") for name in ("out", "again", "third")}) == 1
    ordered = plan_rows(
        source, file_digest(source), NOISY, tmp_path / "work", shuffle=False, record_key=KEY, partition_rows=7000
    )
    release_rows(ordered, tmp_path / "ordered.parquet")
    assert drawn == [1, 2, 4, 2, 0, 1, 2, 3, 4]


def _dies_once(path: str, number: int) -> int:
    """A task whose first worker is killed."""
    marker = Path(path) / f"tried-{number}"
    if number == 1 and not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return number * 10


def _dies(path: str) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return 0


def test_a_worker_that_dies_is_replaced(tmp_path: Path) -> None:
    tasks = [(str(tmp_path), i) for i in range(4)]
    with Processes(2) as two:
        assert dict(two.run(_dies_once, tasks)) == {i: 10 * i for i in range(4)}
    with Processes(1) as one, pytest.raises(PipelineError, match="worker processes died 3 times"):
        list(one.run(_dies, [(str(tmp_path),)]))


@pytest.mark.parametrize("seconds", [0.001, 0.02, 0.2])
def test_an_interrupt_ends_the_workers_at_any_moment(capfd: pytest.CaptureFixture[str], seconds: float) -> None:
    with pytest.raises(KeyboardInterrupt), interrupted_after(seconds), Processes(2) as two:
        list(two.run(time.sleep, [(0.3,)] * 4))
    starters = [child for child in psutil.Process().children() if "forkserver" in " ".join(child.cmdline())]
    assert [worker for starter in starters for worker in starter.children()] == []
    assert "Traceback" not in capfd.readouterr().err


def test_a_working_file_that_changes_is_noticed(tmp_path: Path) -> None:
    plan = planned(snapshot(tmp_path), "work", shuffle=False, keyed=False)
    path = tmp_path / "work" / "partition-00001.parquet"

    def tamper(what: str, done: int, total: int | None) -> None:
        if path.exists():
            path.write_bytes(path.read_bytes()[:-1] + b"?")

    with pytest.raises(DataError, match=r"working file partition-00001\.parquet was changed"):
        release_rows(plan, tmp_path / "out.parquet", progress=tamper)


def test_a_stuck_random_source_stops_the_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = planned(snapshot(tmp_path), "work", shuffle=True, keyed=False)
    monkeypatch.setattr("os.urandom", bytes)
    with pytest.raises(EntropyError, match="stuck"):
        release_rows(plan, tmp_path / "out.parquet")
    assert not (tmp_path / "out.parquet").exists()
    assert [path.name for path in (tmp_path / "work").iterdir()] == []


def test_a_plan_does_not_show_its_keys(tmp_path: Path) -> None:
    plan = planned(snapshot(tmp_path), "work", shuffle=True, keyed=True)
    assert plan.keys is not None
    for key in (plan.keys.words, plan.keys.order):
        assert repr(key)[2:-1][:12] not in repr(plan)
