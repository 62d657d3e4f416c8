"""Spilled rows: each bucket as it was put, in memory or in a nameless file, and nothing left behind."""

from __future__ import annotations

import io
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from funnel.errors import OutputError
from funnel.sampling import spill as spill_module
from funnel.sampling.spill import Spill, sizes_of_ranges


@pytest.fixture
def always_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spill_module, "_MEMORY_BYTES", 0)


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def put(spill: Spill, rows: np.ndarray, buckets: np.ndarray, count: int) -> None:
    spill.add(rows[np.argsort(buckets, kind="stable")], np.bincount(buckets, minlength=count))


@pytest.mark.parametrize("memory", [0, 7000, 1 << 20])
def test_each_bucket_comes_back_in_order(memory: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spill_module, "_MEMORY_BYTES", memory)
    choice = np.random.default_rng(3)
    rows = choice.integers(0, 1000, (5000, 2), dtype=np.int16)
    buckets = choice.integers(0, 4, 5000)
    with Spill(4) as spill:
        for start in range(0, 5000, 700):
            put(spill, rows[start : start + 700], buckets[start : start + 700], 4)
        assert spill.sizes().tolist() == np.bincount(buckets).tolist()
        for bucket in range(4):
            expected = rows[buckets == bucket]
            np.testing.assert_array_equal(spill.rows(bucket, bucket + 1), expected)
            np.testing.assert_array_equal(np.concatenate(list(spill.pieces(bucket))), expected)
        # Of several buckets, run by run.
        assert sorted(spill.rows(1, 3).tolist()) == sorted(rows[(buckets == 1) | (buckets == 2)].tolist())
        with pytest.raises(ValueError, match="cannot join"):
            spill.add(rows[:, 0], np.array([5000, 0, 0, 0]))


def test_few_rows_need_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    absent, rows = tmp_path / "absent", np.arange(100, dtype=np.uint64)
    monkeypatch.setattr(spill_module, "_MEMORY_BYTES", 800)
    with Spill(1, absent) as spill:
        spill.add(rows, np.array([100]))
        assert spill.rows(0, 1).tolist() == rows.tolist()
        with pytest.raises(OutputError, match=r"absent cannot hold .*No such file"):
            spill.add(rows[:1], np.array([1]))


@pytest.mark.usefixtures("always_a_file")
def test_nothing_is_left_behind(tmp_path: Path) -> None:
    """The file has no name even while it is in use, and is closed after success and after an error."""
    before = open_files()

    def used() -> Iterator[int]:
        with Spill(2, tmp_path) as spill:
            spill.add(np.arange(1000), np.array([500, 500]))
            yield open_files()
            raise RuntimeError("the source broke")

    use = used()
    assert next(use) == before + 1
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(RuntimeError, match="the source broke"):
        next(use)
    assert open_files() == before


def test_full_disk_is_one_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    full = Path("/dev/full")
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda dir, buffering: full.open("r+b", buffering=buffering))
    for memory in (0, 90):
        monkeypatch.setattr(spill_module, "_MEMORY_BYTES", memory)
        with Spill(1) as spill:
            if memory:
                spill.add(np.zeros(80, np.uint8), np.array([80]))
            with pytest.raises(OutputError, match=r"No space left on device.*set TMPDIR"):
                spill.add(np.zeros(80, np.uint8), np.array([80]))


@pytest.mark.usefixtures("always_a_file")
def test_files_that_take_and_give_a_few_bytes_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The system may write or read less than it was asked to."""

    class Halting(io.FileIO):
        def write(self, content: memoryview) -> int:  # type: ignore[override]
            return super().write(content[:5])

        def readinto(self, target: memoryview) -> int:  # type: ignore[override]
            return super().readinto(target[:3])

    with tempfile.TemporaryFile(buffering=0) as file:
        halting = Halting(os.dup(file.fileno()), "r+b")
        monkeypatch.setattr(tempfile, "TemporaryFile", lambda dir, buffering: halting)
        with Spill(2) as spill:
            put(spill, np.arange(9), np.arange(9) % 2, 2)
            assert next(spill.pieces(1)).tolist() == [1, 3, 5, 7]
            assert next(spill.pieces(0)).tolist() == [0, 2, 4, 6, 8]


@pytest.mark.usefixtures("always_a_file")
def test_file_cut_short_is_noticed_and_file_is_private() -> None:
    with Spill(2) as spill:
        spill.add(np.arange(10), np.array([10, 0]))
        assert os.fstat(spill._file.fileno()).st_mode & 0o077 == 0
        spill._file.truncate(7)  # type: ignore[attr-defined]
        for read in (lambda: spill.rows(0, 2), lambda: list(spill.pieces(0))):
            with pytest.raises(OutputError, match="cut short"):
                read()


@given(st.lists(st.integers(0, 2**64 - 1), max_size=50), st.integers(0, 6), st.integers(0, 64))
def test_sizes_of_ranges_are_counts_of_the_digit(words: list[int], width: int, shift: int) -> None:
    shift = min(shift, 64 - width)
    # Alike above the digit, as words of one bucket are.
    above = (words[0] if words else 0) >> (shift + width) << (shift + width)
    ordered = np.sort(np.array([above | word % (1 << (shift + width)) for word in words], dtype=np.uint64))
    expected = np.bincount([int(word) >> shift & (1 << width) - 1 for word in ordered], minlength=1 << width)
    np.testing.assert_array_equal(sizes_of_ranges(ordered, shift, 1 << width), expected)


@pytest.mark.usefixtures("always_a_file")
def test_a_file_that_cannot_be_read_is_one_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise OSError(5, "Input/output error")

    with Spill(1) as spill:
        spill.add(np.zeros(80, np.uint8), np.array([80]))
        monkeypatch.setattr(spill_module, "read_rows", broken)
        with pytest.raises(OutputError, match="Input/output error"):
            spill.rows(0, 1)
