"""The row engine: the same bytes whoever works, nothing done twice, and clear errors when files are tampered with."""

from __future__ import annotations

import dataclasses
import os
import signal
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import stats

from funnel.errors import DataError, EntropyError, PipelineError
from funnel.protocol import Protocol
from funnel.readers.source_files import file_digest
from funnel.sampling import engine, parts, row_order
from funnel.sampling.engine import OneWorker, Processes, release_rows
from funnel.sampling.key_column import KEY_COLUMN
from funnel.sampling.keyed import RecordKey
from funnel.sampling.partitions import plan_rows
from funnel.sampling.parts import draw_partition
from funnel.sampling.row_words import KeyedWords, WordKeys
from funnel.sampling.sanitising import sanitise
from tests.funnel.sampling.worker_tasks import die, die_once, interrupt
from tests.snapshots import FULL, INPUTS, KEY, NOISY, OUTPUTS, ROWS, planned, snapshot


@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize("shuffle", [False, True])
def test_rows_follow_the_protocol(tmp_path: Path, shuffle: bool, keyed: bool) -> None:
    source = snapshot(tmp_path)
    plan = planned(source, "work", shuffle=shuffle, keyed=keyed)
    assert len(plan.groups) == 5
    assert plan.parts == 8
    told: list[tuple[str, int, int | None]] = []
    pairs = release_rows(plan, tmp_path / "out.parquet", progress=lambda *said: told.append(said)).counts.pairs
    assert told[-1][1:] == (ROWS, ROWS)
    rows = pq.read_table(source)
    seen = Counter(zip(rows["x"].to_pylist(), rows["z"].to_pylist(), strict=True))
    expected = [seen[symbol] for symbol in INPUTS.symbols]
    assert pairs.sum(axis=1).tolist() == [*expected, ROWS - sum(expected)]
    out = pq.read_table(tmp_path / "out.parquet")
    released = Counter(zip(out["x"].to_pylist(), out["z"].to_pylist(), strict=True))
    assert pairs.sum(axis=0).tolist() == [released[symbol] for symbol in OUTPUTS.symbols]
    for observed, distribution in zip(pairs, np.column_stack([NOISY.weights, NOISY.marginal]).T / FULL, strict=True):
        expected = distribution * observed.sum()
        assert observed[distribution == 0].sum() == 0
        # Where fewer than ten are expected the test would err more often than it says; a failure is one in 10^10 runs.
        common = expected >= 10
        if common.sum() > 1:
            found, mean = observed[common], expected[common]
            assert stats.chisquare(found, mean * found.sum() / mean.sum()).pvalue > 1e-12
    assert pq.read_metadata(tmp_path / "out.parquet").num_row_groups == (8 if shuffle else 5)


@pytest.mark.parametrize("shuffle", [False, True])
def test_keyed_bytes_do_not_depend_on_the_workers(tmp_path: Path, shuffle: bool) -> None:
    source = snapshot(tmp_path)
    release_rows(planned(source, "one", shuffle=shuffle, keyed=True), tmp_path / "one.parquet")
    with Processes(2) as two:
        release_rows(planned(source, "two", shuffle=shuffle, keyed=True), tmp_path / "two.parquet", two)
    assert file_digest(tmp_path / "one.parquet") == file_digest(tmp_path / "two.parquet")


def test_pieces_of_partitions_play_no_role(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = snapshot(tmp_path)
    release_rows(planned(source, "one", shuffle=True, keyed=True), tmp_path / "one.parquet")
    monkeypatch.setattr(row_order, "_PIECE_ROWS", 999)
    release_rows(planned(source, "two", shuffle=True, keyed=True), tmp_path / "two.parquet")
    assert file_digest(tmp_path / "one.parquet") == file_digest(tmp_path / "two.parquet")


def test_rows_of_record_keys_whose_tags_tie_repeat_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With tags of five bits: thousands of rows tie, and are parted by words of the secret and the tag alone."""
    real = KeyedWords.to_order
    monkeypatch.setattr(KeyedWords, "to_order", lambda self, batch: real(self, batch) >> np.uint64(59) << np.uint64(59))
    for i, source in enumerate([snapshot(tmp_path), snapshot(tmp_path, reverse=True, name="reverse.parquet")]):
        release_rows(planned(source, f"work{i}", shuffle=True, keyed=True), tmp_path / f"{i}.parquet")
    assert file_digest(tmp_path / "0.parquet") == file_digest(tmp_path / "1.parquet")
    released = pq.read_table(tmp_path / "0.parquet")["x"].to_pylist()
    assert released == sanitise(pq.read_table(source), NOISY, KEY)["x"].to_pylist()
    # Not sorted where tags tie: of 32 runs of equal outputs there would be about 100.
    assert sum(one != other for one, other in pairwise(released)) > 5000


@pytest.mark.parametrize("shuffle", [False, True])
def test_what_another_plan_left_is_not_taken(tmp_path: Path, shuffle: bool) -> None:
    """Rows drawn with another secret, in the same folder under the same names."""
    plan = planned(snapshot(tmp_path), "work", shuffle=shuffle, keyed=True)
    other = dataclasses.replace(plan, keys=WordKeys.of(RecordKey(KEY.columns, bytes(range(1, 33))), NOISY))
    release_rows(other, tmp_path / "other.parquet")
    release_rows(plan, tmp_path / "out.parquet")
    (tmp_path / "fresh").mkdir()
    release_rows(dataclasses.replace(plan, folder=str(tmp_path / "fresh")), tmp_path / "fresh.parquet")
    assert file_digest(tmp_path / "out.parquet") == file_digest(tmp_path / "fresh.parquet")
    assert file_digest(tmp_path / "out.parquet") != file_digest(tmp_path / "other.parquet")


@pytest.mark.parametrize("keyed", [False, True])
def test_only_what_is_needed_is_read(tmp_path: Path, keyed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []
    real = parts.row_groups

    def noted(snapshot, groups, columns):  # type: ignore[no-untyped-def]
        asked.append(columns)
        return real(snapshot, groups, columns)

    monkeypatch.setattr(parts, "row_groups", noted)
    release_rows(planned(snapshot(tmp_path), "work", shuffle=True, keyed=keyed), tmp_path / "out.parquet")
    assert asked == [["x", "z", *([KEY_COLUMN] if keyed else [])]] * 5


class Backwards(OneWorker):
    """Does the last task first, as some worker may."""

    def run(self, function, tasks):  # type: ignore[no-untyped-def]
        for i, result in super().run(function, tasks[::-1]):
            yield len(tasks) - 1 - i, result


@pytest.mark.parametrize("shuffle", [False, True])
def test_the_order_in_which_tasks_are_done_plays_no_role(tmp_path: Path, shuffle: bool) -> None:
    source = snapshot(tmp_path)
    release_rows(planned(source, "one", shuffle=shuffle, keyed=True), tmp_path / "one.parquet")
    release_rows(planned(source, "two", shuffle=shuffle, keyed=True), tmp_path / "two.parquet", Backwards())
    assert file_digest(tmp_path / "one.parquet") == file_digest(tmp_path / "two.parquet")


@pytest.mark.parametrize("keyed", [False, True])
def test_rows_keep_the_order_of_the_source_unless_shuffled(tmp_path: Path, keyed: bool) -> None:
    """A channel without noise shows where every row went."""
    still = Protocol(
        np.diag(np.full(3, FULL, dtype=np.uint64)), np.array([0, 0, FULL], dtype=np.uint64), INPUTS, INPUTS
    )
    source = snapshot(tmp_path)
    rows = pq.read_table(source)
    known = dict(zip(INPUTS.symbols, INPUTS.symbols, strict=True))
    expected = [
        known.get(row, INPUTS.symbols[2]) for row in zip(rows["x"].to_pylist(), rows["z"].to_pylist(), strict=True)
    ]
    released = {}
    for shuffle in (False, True):
        plan = planned(source, f"work-{shuffle}", shuffle=shuffle, keyed=keyed, protocol=still)
        release_rows(plan, tmp_path / "out.parquet")
        out = pq.read_table(tmp_path / "out.parquet")
        released[shuffle] = list(zip(out["x"].to_pylist(), out["z"].to_pylist(), strict=True))
    assert released[False] == expected
    assert released[True] != expected
    assert Counter(released[True]) == Counter(expected)


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
        # The order is fresh: at most two in 10^12 runs fail.
        assert stats.chisquare(tenths).pvalue > 1e-12
    assert (seen[0] != seen[1]).any()


def test_what_is_written_is_not_done_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = snapshot(tmp_path)
    plan = planned(source, "work", shuffle=True, keyed=True)
    draw_partition(plan, 0)
    draw_partition(plan, 3)
    drawn: list[int] = []
    real = parts._drawn

    def counted(plan, index, words):  # type: ignore[no-untyped-def]
        drawn.append(index)
        return real(plan, index, words)

    monkeypatch.setattr(parts, "_drawn", counted)
    release_rows(plan, tmp_path / "out.parquet")
    assert drawn == [1, 2, 4]
    release_rows(plan, tmp_path / "again.parquet")
    assert drawn == [1, 2, 4]
    # A damaged file, and the files of another plan, are made anew.
    path = tmp_path / "work" / "partition-00002.codes"
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    (tmp_path / "work" / "part-00001.codes.json").write_text("{")
    release_rows(plan, tmp_path / "third.parquet")
    assert drawn == [1, 2, 4, 2]
    assert len({file_digest(tmp_path / f"{name}.parquet") for name in ("out", "again", "third")}) == 1
    ordered = plan_rows(
        source, file_digest(source), NOISY, tmp_path / "work", shuffle=False, record_key=KEY, partition_rows=7000
    )
    release_rows(ordered, tmp_path / "ordered.parquet")
    assert drawn == [1, 2, 4, 2, 0, 1, 2, 3, 4]


def test_a_worker_that_dies_is_replaced(tmp_path: Path) -> None:
    tasks = [(str(tmp_path), i) for i in range(4)]
    with Processes(2) as two:
        # Once each: what was done before is not done again.
        assert sorted(two.run(die_once, tasks)) == [(i, 10 * i) for i in range(4)]
    with Processes(1) as one, pytest.raises(PipelineError, match="worker processes died 3 times"):
        list(one.run(die, [(str(tmp_path),)]))


@pytest.mark.parametrize("moment", ["first task given out", "last task given out", "task done by a worker"])
def test_an_interrupt_ends_the_workers_at_any_moment(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    tasks = [(os.getpid(), number if moment == "task done by a worker" else 1 + number) for number in range(4)]
    given: list[object] = []

    class Interrupted(ProcessPoolExecutor):
        def submit(self, *arguments, **named):  # type: ignore[no-untyped-def]
            given.append(arguments)
            if (moment, len(given)) in (("first task given out", 1), ("last task given out", 4)):
                os.kill(os.getpid(), signal.SIGINT)
            return super().submit(*arguments, **named)

    monkeypatch.setattr(engine, "ProcessPoolExecutor", Interrupted)
    with pytest.raises(KeyboardInterrupt), Processes(2) as two:
        list(two.run(interrupt, tasks))
    starters = [child for child in psutil.Process().children() if "forkserver" in " ".join(child.cmdline())]
    assert [worker for starter in starters for worker in starter.children()] == []
    assert "Traceback" not in capfd.readouterr().err


def alike(path: Path, rows: int, groups: int) -> Path:
    """A snapshot whose row groups all hold the same rows."""
    table = pa.table({"x": ["a"] * rows, "z": ["0"] * rows})
    pq.write_table(pa.concat_tables([table] * groups).combine_chunks(), path, row_group_size=rows)
    return path


@pytest.mark.parametrize("count", [1, 2])
def test_no_two_partitions_use_the_same_words(tmp_path: Path, count: int) -> None:
    """Equal rows get unrelated answers in every partition, and in every release of them."""
    rows, seen = 500, []
    source = alike(tmp_path / "alike.parquet", rows, 4)
    with Processes(count) as workers:
        for name in ("one", "two"):
            plan = planned(source, name, shuffle=False, keyed=False, partition_rows=rows)
            assert plan.groups == ((0, 1), (1, 2), (2, 3), (3, 4))
            release_rows(plan, tmp_path / f"{name}.parquet", workers if count > 1 else None)
            released = pq.read_table(tmp_path / f"{name}.parquet")["x"].to_pylist()
            seen += [tuple(released[start : start + rows]) for start in range(0, 4 * rows, rows)]
    # Of distribution (1/2, 1/4, 1/4): two of them are equal by chance once in 10^200.
    assert len(set(seen)) == 8


def test_the_order_has_words_of_its_own(tmp_path: Path) -> None:
    """Rows in the order of the words they were drawn with would come sorted by output."""
    source = alike(tmp_path / "alike.parquet", 4000, 1)
    plan = planned(source, "work", shuffle=True, keyed=False, partition_rows=4000)
    release_rows(plan, tmp_path / "out.parquet")
    released = pq.read_table(tmp_path / "out.parquet")["x"].to_pylist()
    neighbours = sum(one != other for one, other in pairwise(released))
    # Of distribution (1/2, 1/4, 1/4): 2,500 of 4,000 neighbours differ, give or take 32.
    assert abs(neighbours - 2500) < 7 * 32


@pytest.mark.parametrize("groups", [((0, 1), (2, 3)), ((0, 2), (1, 3)), ((0, 1), (1, 1), (1, 2))])
@pytest.mark.parametrize("shuffle", [False, True])
def test_a_plan_that_leaves_out_or_repeats_rows_is_refused(
    tmp_path: Path, groups: tuple[tuple[int, int], ...], shuffle: bool
) -> None:
    source = alike(tmp_path / "alike.parquet", 50, 3)
    plan = dataclasses.replace(planned(source, "work", shuffle=shuffle, keyed=False), groups=groups)
    with pytest.raises(DataError, match=r"rows were drawn and .* for 150 records"):
        release_rows(plan, tmp_path / "out.parquet")


@pytest.mark.parametrize(
    ("shuffle", "file", "cut", "said"),
    [(False, "partition-00001.parquet", 1, "was changed"), (True, "partition-00001.codes", 8, "was cut short")],
)
def test_a_working_file_that_changes_is_noticed(tmp_path: Path, shuffle: bool, file: str, cut: int, said: str) -> None:
    plan = planned(snapshot(tmp_path), "work", shuffle=shuffle, keyed=False)
    path = tmp_path / "work" / file

    def tamper(what: str, done: int, total: int | None) -> None:
        if what == "drawing" and done == total:
            path.write_bytes(path.read_bytes()[:-cut] + (b"" if shuffle else b"?"))

    with pytest.raises(DataError, match=rf"working file {file} {said}"):
        release_rows(plan, tmp_path / "out.parquet", progress=tamper)


class Forgetful(OneWorker):
    """Loses count of one row."""

    def run(self, function, tasks):  # type: ignore[no-untyped-def]
        for i, done in super().run(function, tasks):
            table = np.frombuffer(done.cells, dtype="<i8").reshape(2, -1).copy()
            if i == 0:
                table[1, :1] -= 1
            yield i, dataclasses.replace(done, cells=table.tobytes())


@pytest.mark.parametrize("lost", ["counted", "written", "both"])
def test_rows_that_are_lost_on_the_way_are_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lost: str) -> None:
    plan = planned(snapshot(tmp_path), "work", shuffle=False, keyed=False)
    if lost != "counted":
        monkeypatch.setattr(engine, "splice", lambda parts, target: ROWS - 1)
    with pytest.raises(DataError, match=r"rows were drawn and .* written for 30,000 records"):
        release_rows(plan, tmp_path / "out.parquet", OneWorker() if lost == "written" else Forgetful())


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
    for key in (plan.keys.words, plan.keys.order, plan.keys.ties):
        assert repr(key)[2:-1][:12] not in repr(plan)
