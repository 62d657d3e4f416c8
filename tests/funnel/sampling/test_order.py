"""Row order: the theorem of `funnel.sampling.row_order`, exactly on small cases; ranges of tags change nothing."""

from __future__ import annotations

import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import pairwise, permutations, product
from math import factorial, prod

import numpy as np
import pyarrow as pa
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from funnel.errors import EntropyError
from funnel.sampling import row_order, spill
from funnel.sampling.answers import Answers
from funnel.sampling.row_order import in_order, order_words, released_order, sorted_pieces
from funnel.sampling.row_words import KeyedWords, WordKeys

BITS = 64
KEYS = KeyedWords(
    WordKeys(bytes(32), bytes(range(3, 35)), bytes(range(32)), bytes(range(1, 33)), bytes(range(2, 34)), None)
)


class Scripted:
    """Words to order by that are given, and for each tie what a function of tag and attempt says."""

    def __init__(self, words: list[int], parted: Callable[[int, int, int], list[int]] | None = None) -> None:
        self._words, self._parted = words, parted

    def to_draw(self, batch: pa.RecordBatch) -> np.ndarray:
        raise AssertionError("these words are not for drawing")

    def to_order(self, batch: pa.RecordBatch) -> np.ndarray:
        return np.array(self._words, dtype=np.uint64)

    def to_part(self, tag: int, attempt: int, count: int) -> np.ndarray:
        assert self._parted is not None, "no rows tie"
        return np.array(self._parted(tag, attempt, count), dtype=np.uint64)


def ordered(codes: list[int], outputs: int, words: Scripted) -> list[int]:
    """The release of some outputs, by the steps of the engine."""
    kind = np.uint8 if outputs < 256 else np.uint16 if outputs < 65536 else np.uint32
    rows = len(codes)
    outputs_drawn, drawn_with = np.array(codes, dtype=kind), np.zeros(rows, np.uint64)
    drawn = Answers(pa.record_batch({"x": codes}), np.zeros(rows, np.int64), outputs_drawn, drawn_with)
    return released_order(order_words(drawn, outputs, words), outputs, words).tolist()


@pytest.mark.parametrize(("n", "tags"), [(1, 2), (2, 3), (3, 3), (4, 2), (4, 3)])
def test_every_permutation_has_the_same_probability_exactly(n: int, tags: int) -> None:
    """All tags from a small set, so that many tie, and all orders of the words that part them."""
    shift = BITS - 2
    distribution: dict[tuple[int, ...], Fraction] = dict.fromkeys(permutations(range(n)), Fraction(0))
    for drawn in product(range(tags), repeat=n):
        tied = {tag: k for tag, k in Counter(drawn).items() if k > 1}
        ways = list(product(*(permutations(range(k)) for k in tied.values())))
        assert len(ways) == prod(factorial(k) for k in tied.values())
        for way in ways:
            parted = {tag << shift: list(words) for tag, words in zip(tied, way, strict=True)}
            words = Scripted([tag << shift for tag in drawn], lambda tag, attempt, count, by=parted: by[tag])
            distribution[tuple(ordered(list(range(n)), max(n, 2), words))] += Fraction(1, tags**n * len(ways))
    assert set(distribution.values()) == {Fraction(1, factorial(n))}


def test_words_from_a_coarse_source_still_give_every_arrangement_its_share() -> None:
    """A long scripted run, with equal outputs among the rows: tags and parting words tie often."""
    choice = np.random.default_rng(12)
    codes = [0, 0, 1, 2]

    def parted(tag: int, attempt: int, count: int) -> list[int]:
        return choice.integers(0, 12, count).tolist()

    seen = Counter(
        tuple(ordered(codes, 3, Scripted((choice.integers(0, 5, 4) << np.int64(60)).tolist(), parted)))
        for _ in range(6000)
    )
    assert len(seen) == 12
    assert 1e-4 < stats.chisquare(list(seen.values())).pvalue < 1 - 1e-4


def test_words_that_tie_again_are_drawn_again_as_a_whole() -> None:
    asked: list[tuple[int, int, int]] = []

    def parted(tag: int, attempt: int, count: int) -> list[int]:
        asked.append((tag, attempt, count))
        return [5, 7, 5] if attempt < 2 else [9, 3, 6]

    assert ordered([0, 1, 2, 3], 4, Scripted([8, 8, 8, 4], parted)) == [3, 1, 2, 0]
    assert asked == [(8, 0, 3), (8, 1, 3), (8, 2, 3)]
    with pytest.raises(EntropyError, match="not distinct in 16 tries"):
        ordered([0, 1], 2, Scripted([0, 0], lambda tag, attempt, count: [1] * count))


@pytest.mark.parametrize(("outputs", "bits"), [(1, 0), (2, 1), (3, 2), (256, 8), (257, 9), (65_537, 17)])
def test_a_tag_has_every_bit_that_the_outputs_leave(outputs: int, bits: int) -> None:
    """Rows whose tags differ in the lowest bit that is left do not tie; those that differ below it do."""
    codes = [outputs - 1, 0]
    assert ordered(codes, outputs, Scripted([1 << bits, 0])) == [0, outputs - 1]
    assert ordered(codes, outputs, Scripted([0, 1 << bits])) == [outputs - 1, 0]
    if bits:
        for words in ([[0, 1], [1, 0]], [[1, 0], [0, 1]]):
            low = [(1 << bits) - 1, 0] if words[0] == [0, 1] else [0, (1 << bits) - 1]
            expected = [0, outputs - 1] if words[0] == [0, 1] else [outputs - 1, 0]
            # The order among tied rows is that of the words that part them, smaller codes asking first.
            assert ordered(codes, outputs, Scripted(low, lambda tag, attempt, count, w=words[0]: w)) == expected


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 2**BITS - 1) | st.integers(0, 3).map(lambda t: t << 60), st.integers(0, 4))),
    st.integers(1, 30),
    st.integers(1, 40),
    st.sampled_from([0, 100, 1 << 20]),
    st.integers(0, 6),
    st.randoms(use_true_random=False),
)
def test_neither_pieces_nor_parts_nor_files_nor_the_order_of_the_source_matter(  # type: ignore[no-untyped-def]
    rows, piece_rows, part_rows, memory, part_bits, random
) -> None:
    """With words that depend on the rows alone; tied rows are parted by keyed words."""
    tagged = np.array([(word >> 3 << 3) | code for word, code in rows], dtype=np.uint64)
    expected = released_order(tagged.copy(), 5, KEYS).tolist()
    random.shuffle(rows)
    mixed = np.array([(word >> 3 << 3) | code for word, code in rows], dtype=np.uint64)
    cut = random.randint(0, len(rows))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_order, "_PIECE_ROWS", piece_rows)
        patch.setattr(row_order, "PART_ROWS", part_rows)
        patch.setattr(spill, "_MEMORY_BYTES", memory)
        streamed = list(in_order([mixed[:cut].copy(), mixed[cut:].copy()], 5, KEYS))
        assert [code for codes in streamed for code in codes.tolist()] == expected
        assert all(len(codes) for codes in streamed)
        if part_bits:
            parts: list[list[int]] = [[] for _ in range(1 << part_bits)]
            for piece, sizes in sorted_pieces([mixed[:cut].copy(), mixed[cut:].copy()], 1 << part_bits):
                for part, (start, stop) in enumerate(pairwise(np.cumsum([0, *sizes]))):
                    parts[part] += piece[start:stop].tolist()
            for part, words in enumerate(parts):
                assert {word >> BITS - part_bits for word in words} <= {part}
            arranged = [released_order(np.array(words, dtype=np.uint64), 5, KEYS).tolist() for words in parts]
            assert [code for codes in arranged for code in codes] == expected


def test_as_many_ranges_are_put_in_order_together_as_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_order, "PART_ROWS", 4)
    words = np.repeat(np.arange(8, dtype=np.uint64) << np.uint64(56), 2) + np.tile([8, 16], 8).astype(np.uint64)
    assert [len(codes) for codes in in_order([words.copy()], 2, KEYS)] == [4] * 4
    assert [len(codes) for codes in in_order([words[:-1].copy()], 2, KEYS)] == [4, 4, 4, 3]
    # More than that only where they are of one range.
    same = np.arange(7, dtype=np.uint64) << np.uint64(8)
    assert [len(codes) for codes in in_order([same], 2, KEYS)] == [7]


def test_ties_are_found_across_the_pieces_that_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    words = np.array([0, 8, 8, 16, 24, 24, 24, 32, 40, 40], dtype=np.uint64)
    for rows in range(1, 12):
        monkeypatch.setattr(row_order, "_CHECK_ROWS", rows)
        assert row_order._ties(words, np.uint64(7)) == [(1, 3), (4, 7), (8, 10)]
        assert row_order._ties(words, np.uint64(0)) == [(1, 3), (4, 7), (8, 10)]
        assert row_order._ties(words[:0], np.uint64(7)) == []
        assert row_order._ties(words[:1], np.uint64(7)) == []


def test_keyed_ties_are_aes_of_tag_and_number_under_a_key_of_their_own() -> None:
    tag, attempt = 5 << 40, 3
    blocks = b"".join(tag.to_bytes(8, "little") + (attempt << 32 | i).to_bytes(8, "little") for i in range(4))
    encrypted = Cipher(algorithms.AES(bytes(range(1, 33))), modes.ECB()).encryptor().update(blocks)
    assert KEYS.to_part(tag, attempt, 4).tolist() == np.frombuffer(encrypted, "<u8")[::2].tolist()


def test_keyed_ties_depend_on_the_tag_and_the_attempt() -> None:
    draws = [KEYS.to_part(tag, attempt, 4).tolist() for tag in (0, 1 << 40) for attempt in (0, 1)]
    assert len({word for draw in draws for word in draw}) == 16
    assert KEYS.to_part(0, 0, 9).tolist()[:4] == draws[0]


def test_rows_of_a_long_stream_land_anywhere() -> None:
    n, cells = 200_000, 20
    choice = np.random.default_rng(8)
    source = np.arange(n, dtype=np.uint64)
    tagged = choice.integers(0, 2**BITS, n, dtype=np.uint64) >> np.uint64(18) << np.uint64(18) | source
    shuffled = np.concatenate(list(in_order([tagged], n, KEYS))).astype(np.int64)
    assert sorted(shuffled.tolist()) == list(range(n))
    counts = np.zeros((cells, cells))
    np.add.at(counts, (np.arange(n) * cells // n, shuffled * cells // n), 1)
    pvalue = stats.chi2.sf(((counts - n / cells**2) ** 2 / (n / cells**2)).sum(), (cells - 1) ** 2)
    assert 1e-6 < pvalue < 1 - 1e-6
    assert abs(stats.spearmanr(shuffled[:-1], shuffled[1:]).statistic) < 5 / n**0.5


def peak_bytes(rows: int) -> int:
    choice = np.random.default_rng(1)

    def words() -> Iterator[np.ndarray]:
        for _ in range(rows // 5000):
            yield choice.integers(0, 2**BITS, 5000, dtype=np.uint64)

    tracemalloc.start()
    try:
        assert sum(len(codes) for codes in in_order(words(), 200, KEYS)) == rows
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_does_not_grow_with_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_order, "_PIECE_ROWS", 1 << 13)
    monkeypatch.setattr(row_order, "PART_ROWS", 1 << 14)
    monkeypatch.setattr(spill, "_MEMORY_BYTES", 1 << 17)
    peak_bytes(5000)
    small, large = peak_bytes(100_000), peak_bytes(1_000_000)
    # Ten times the rows; what grows is the index, by 2 kB for every 8,192 of them.
    assert large < small + 1_000_000 // 8192 * 2200 + 100_000
