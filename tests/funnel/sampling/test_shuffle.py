"""Row order: uniform permutations, bounded memory, and nothing left behind."""

from __future__ import annotations

import io
import os
import tempfile
import tracemalloc
from collections.abc import Iterator
from itertools import pairwise, permutations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from funnel.errors import DataError, EntropyError, OutputError, SpecError
from funnel.sampling import WordStream, even_chunks, order_rows, shuffle_rows
from funnel.sampling.spill import Spill, sizes_of_ranges

WORDS = st.integers(0, 2**64 - 1)
partitions = st.lists(st.integers(0, 40), max_size=8)


def split(rows: np.ndarray, sizes: list[int]) -> Iterator[np.ndarray]:
    ends = np.cumsum([0, *sizes])
    yield from (rows[start:stop] for start, stop in pairwise(ends))


def joined(pieces: Iterator[np.ndarray], like: np.ndarray) -> np.ndarray:
    return np.concatenate([like[:0], *pieces])


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@given(partitions, st.integers(1, 50))
def test_even_chunks_keep_rows_and_are_even(sizes: list[int], rows: int) -> None:
    source = np.arange(sum(sizes))
    chunks = list(even_chunks(split(source, sizes), rows))
    np.testing.assert_array_equal(joined(iter(chunks), source), source)
    assert all(len(chunk) == rows for chunk in chunks[:-1])
    assert all(0 < len(chunk) <= rows for chunk in chunks)


@settings(max_examples=60)
@given(partitions, st.integers(1, 60), st.sampled_from([2, 4, 16, 256]), st.sampled_from([0, 1, 3]))
def test_a_shuffle_permutes_whole_rows(sizes: list[int], bucket_rows: int, buckets: int, groups: int) -> None:
    source = np.arange(sum(sizes), dtype=np.uint16)
    if groups:
        source = source[:, np.newaxis] * groups + np.arange(groups, dtype=np.uint16)
    pieces = list(shuffle_rows(split(source, sizes), WordStream().words, bucket_rows=bucket_rows, buckets=buckets))
    shuffled = joined(iter(pieces), source)
    assert shuffled.dtype == source.dtype
    assert all(len(piece) <= bucket_rows for piece in pieces)
    first = shuffled if groups == 0 else shuffled[:, 0]
    np.testing.assert_array_equal(shuffled[np.argsort(first)], source)


@pytest.mark.parametrize(("bucket_rows", "buckets"), [(10, 256), (2, 2), (3, 4)])
def test_every_permutation_is_equally_likely(bucket_rows: int, buckets: int) -> None:
    words, rows = WordStream().words, np.arange(4, dtype=np.uint8)
    seen = dict.fromkeys(permutations(range(4)), 0)
    for _ in range(1200):
        pieces = shuffle_rows([rows[:3], rows[3:]], words, bucket_rows=bucket_rows, buckets=buckets)
        seen[tuple(joined(pieces, rows).tolist())] += 1
    pvalue = stats.chisquare(list(seen.values())).pvalue
    assert 1e-9 < pvalue < 1 - 1e-9


def test_rows_of_a_long_stream_land_anywhere() -> None:
    n, cells = 200_000, 20
    source = np.arange(n, dtype=np.uint32)
    shuffled = joined(shuffle_rows([source], WordStream().words, bucket_rows=1 << 12, buckets=16), source)
    counts = np.zeros((cells, cells))
    np.add.at(counts, (np.arange(n) * cells // n, shuffled.astype(np.int64) * cells // n), 1)
    pvalue = stats.chi2.sf(((counts - n / cells**2) ** 2 / (n / cells**2)).sum(), (cells - 1) ** 2)
    assert 1e-9 < pvalue < 1 - 1e-9
    assert abs(stats.spearmanr(shuffled[:-1], shuffled[1:]).statistic) < 7 / n**0.5


def peak_bytes(rows: int) -> int:
    batches = (np.full(5000, i, dtype=np.uint8) for i in range(rows // 5000))
    tracemalloc.start()
    try:
        assert sum(len(piece) for piece in shuffle_rows(batches, WordStream().words, bucket_rows=1 << 14)) == rows
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_does_not_grow_with_the_rows() -> None:
    peak_bytes(5000)
    small, large = peak_bytes(100_000), peak_bytes(1_000_000)
    assert large < 2_000_000
    # Ten times the rows; what grows is the index, by 2 kB for every 16,384 of them.
    assert large < 2 * small


def test_files_are_used_only_when_rows_do_not_fit(tmp_path: Path) -> None:
    absent = tmp_path / "absent"
    rows = np.arange(100, dtype=np.uint8)
    assert len(joined(shuffle_rows([rows], WordStream().words, bucket_rows=100, directory=absent), rows)) == 100
    with pytest.raises(OutputError, match=r"absent cannot hold .*No such file"):
        list(shuffle_rows([rows], WordStream().words, bucket_rows=99, directory=absent))


def test_nothing_is_left_behind(tmp_path: Path) -> None:
    """The spilled file has no name even while it is in use, and is closed after success, error and abandonment."""
    words, rows = WordStream().words, np.arange(1000, dtype=np.uint16)
    before = open_files()

    def failing() -> Iterator[np.ndarray]:
        yield rows
        assert open_files() == before + 1
        raise RuntimeError("the source broke")

    with pytest.raises(RuntimeError, match="the source broke"):
        list(shuffle_rows(failing(), words, bucket_rows=100, directory=tmp_path))
    assert open_files() == before

    abandoned = shuffle_rows([rows], words, bucket_rows=100, directory=tmp_path)
    next(abandoned)
    assert open_files() == before + 1
    assert list(tmp_path.iterdir()) == []
    abandoned.close()  # type: ignore[attr-defined]
    assert open_files() == before

    list(shuffle_rows([rows], words, bucket_rows=100, directory=tmp_path))
    assert open_files() == before
    assert list(tmp_path.iterdir()) == []


def test_full_disk_is_one_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    full = Path("/dev/full")
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda dir, buffering: full.open("r+b", buffering=buffering))
    with pytest.raises(OutputError, match=r"No space left on device.*set TMPDIR"):
        list(shuffle_rows([np.zeros(100, np.uint8)], WordStream().words, bucket_rows=10))


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
            spill.add(np.arange(9), np.arange(9, dtype=np.uint8) % 2)
            assert next(spill.pieces(1)).tolist() == [1, 3, 5, 7]
            assert next(spill.pieces(0)).tolist() == [0, 2, 4, 6, 8]


def test_file_cut_short_is_noticed() -> None:
    with Spill(2) as spill:
        spill.add(np.arange(10), np.zeros(10, dtype=np.uint8))
        spill._file.truncate(7)
        with pytest.raises(OutputError, match="cut short"):
            list(spill.pieces(0))


def test_spilled_file_is_private() -> None:
    with Spill(2) as spill:
        assert os.fstat(spill._file.fileno()).st_mode & 0o077 == 0


def test_spill_gives_back_each_bucket_in_order() -> None:
    choice = np.random.default_rng(3)
    rows = choice.integers(0, 1000, (5000, 2), dtype=np.int16)
    buckets = choice.integers(0, 4, 5000).astype(np.uint8)
    with Spill(4) as spill:
        for start in range(0, 5000, 700):
            spill.add(rows[start : start + 700], buckets[start : start + 700])
        for bucket in range(4):
            expected = rows[buckets == bucket]
            np.testing.assert_array_equal(np.concatenate(list(spill.pieces(bucket))), expected)
            assert spill.size(bucket) == len(expected)
        with pytest.raises(ValueError, match="cannot join"):
            spill.add(rows[:, 0], buckets)


def test_ties_are_redrawn_and_a_source_that_always_ties_is_refused() -> None:
    asked = []

    def tied_once(n: int) -> np.ndarray:
        asked.append(n)
        alike = np.zeros(n, np.uint64)
        return alike if len(asked) == 1 else np.arange(n, 0, -1).astype(np.uint64) << np.uint64(40)

    rows = np.arange(5, dtype=np.uint8)
    assert next(shuffle_rows([rows], tied_once)).tolist() == [4, 3, 2, 1, 0]
    assert asked == [5, 5]
    with pytest.raises(EntropyError, match="not distinct"):
        list(shuffle_rows([rows], lambda n: np.ones(n, np.uint64)))


@pytest.mark.parametrize(("bucket_rows", "buckets"), [(0, 2), (-1, 2), (5, 3), (5, 1), (5, 512), (5, 8)])
def test_impossible_sizes_are_refused(bucket_rows: int, buckets: int) -> None:
    with pytest.raises(SpecError, match="must be"):
        shuffle_rows([], WordStream().words, bucket_rows=bucket_rows, buckets=buckets)
    with pytest.raises(SpecError, match="must be"):
        order_rows([], bucket_rows=bucket_rows, buckets=buckets)


@settings(max_examples=60)
@given(
    st.lists(WORDS, unique_by=lambda tag: tag >> 8, max_size=60),
    st.integers(1, 30),
    st.sampled_from([2, 4, 16, 256]),
    st.randoms(use_true_random=False),
)
def test_ordered_rows_depend_on_the_tags_alone(tags, bucket_rows, buckets, random) -> None:  # type: ignore[no-untyped-def]
    """Order, partition and sizes play no part."""
    expected = np.array([i for _, i in sorted((tag, i) for i, tag in enumerate(tags))], dtype=np.uint8)
    source = list(enumerate(tags))
    random.shuffle(source)
    cut = random.randint(0, len(source))
    batches = [
        (np.array([i for i, _ in part], dtype=np.uint8), np.array([t for _, t in part], dtype=np.uint64))
        for part in (source[:cut], source[cut:])
    ]
    ordered = joined(order_rows(batches, bucket_rows=bucket_rows, buckets=buckets), expected)
    np.testing.assert_array_equal(ordered, expected)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32])
def test_rows_with_tags_alike_are_ordered_by_their_codes(dtype: type[np.unsignedinteger]) -> None:
    """So that their order, too, is the same whatever the order of the source."""
    codes, tags = np.array([9, 2, 5, 7], dtype=dtype), np.array([1, 1, 1, 0], dtype=np.uint64) << np.uint64(60)
    for order in permutations(range(4)):
        some = list(order)
        assert joined(order_rows([(codes[some], tags[some])], bucket_rows=4), codes).tolist() == [7, 2, 5, 9]


def test_more_rows_with_one_tag_than_fit_in_memory_are_refused() -> None:
    rows, tags = np.zeros(5, dtype=np.uint8), np.full(5, 7, dtype=np.uint64)
    assert len(joined(order_rows([(rows, tags)], bucket_rows=5), rows)) == 5
    with pytest.raises(DataError, match="more than 4 records"):
        list(order_rows([(rows, tags)], bucket_rows=4, buckets=16))


@pytest.mark.parametrize("codes", [np.zeros(3, np.int64), np.zeros(3, np.uint64), np.zeros(3, np.int8)])
def test_only_codes_that_leave_room_for_a_tag_are_ordered(codes: np.ndarray) -> None:
    with pytest.raises(ValueError, match="cannot be ordered"):
        list(order_rows([(codes, np.zeros(3, np.uint64))]))


@given(st.lists(st.integers(0, 2**64 - 1), max_size=50), st.integers(0, 6), st.integers(0, 64))
def test_sizes_of_ranges_are_counts_of_the_digit(words: list[int], width: int, shift: int) -> None:
    shift = min(shift, 64 - width)
    # Alike above the digit, as words of one bucket are.
    above = (words[0] if words else 0) >> (shift + width) << (shift + width)
    ordered = np.sort(np.array([above | word % (1 << (shift + width)) for word in words], dtype=np.uint64))
    expected = np.bincount([int(word) >> shift & (1 << width) - 1 for word in ordered], minlength=1 << width)
    np.testing.assert_array_equal(sizes_of_ranges(ordered, shift, 1 << width), expected)
