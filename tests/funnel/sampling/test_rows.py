"""From rows of a table to rows of a release."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import stats

from funnel.alphabet import Alphabet
from funnel.errors import DataError, EntropyError, SpecError
from funnel.protocol import Protocol
from funnel.sampling import (
    PairCounts,
    RecordKey,
    WordStream,
    release_table,
    rows,
    sanitise,
    sanitise_batches,
    sanitised_codes,
)

FULL = 2**63
KEY = RecordKey(("id",), bytes(range(32)))
INPUTS = Alphabet(("x",), (("a",), ("b",), ("c",)))


def protocol(weights: list[list[int]], marginal: list[int], inputs: Alphabet, outputs: Alphabet) -> Protocol:
    return Protocol(np.array(weights, dtype=np.uint64), np.array(marginal, dtype=np.uint64), inputs, outputs)


IDENTITY = protocol([[FULL, 0, 0], [0, FULL, 0], [0, 0, FULL]], [FULL // 2, FULL // 2, 0], INPUTS, INPUTS)
NOISY = protocol(
    [[FULL // 2, FULL // 4, 0], [FULL // 4, FULL // 2, 1], [FULL // 4, FULL // 4, FULL - 1]],
    [FULL // 4, FULL // 4, FULL // 2],
    INPUTS,
    INPUTS,
)


def people(n: int, outside: bool = True) -> pa.Table:
    choice = np.random.default_rng(n)
    values = ["a", "b", "c", "elsewhere", None] if outside else ["a", "b", "c"]
    return pa.table(
        {
            "name": pa.array([f"person {i}" for i in range(n)]),
            "x": pa.array([values[i] for i in choice.integers(0, len(values), n)]),
            "id": pa.array(choice.permutation(n) * 7 - n),
        },
        metadata={"origin": "the register"},
    )


def texts(table: pa.Table, column: str = "x") -> list[str]:
    return table.column(column).to_pylist()


def parquet(table: pa.Table, folder: Path) -> str:
    path = folder / "people.parquet"
    pq.write_table(table, path, row_group_size=1000)
    return str(path)


@pytest.mark.parametrize("way", ["pyarrow", "pandas", "categorical", "parquet", "path"])
@pytest.mark.parametrize("key", [None, KEY])
def test_every_kind_of_table_is_released_in_order(way: str, key: RecordKey | None, tmp_path: Path) -> None:
    source = people(3000, outside=False)
    tables = {
        "pyarrow": lambda: source,
        "pandas": lambda: source.to_pandas().set_index("name"),
        "categorical": lambda: source.to_pandas().astype({"x": "category"}),
        "parquet": lambda: parquet(source, tmp_path),
        "path": lambda: Path(parquet(source, tmp_path)),
    }
    released = sanitise(tables[way](), IDENTITY, key)
    assert texts(released) == texts(source)
    assert released.schema.metadata is None
    assert released.schema == pa.schema([pa.field("x", pa.dictionary(pa.int8(), pa.string()), nullable=False)])
    assert released.column("x").chunk(0).dictionary.to_pylist() == ["a", "b", "c"]


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("key", [None, KEY])
def test_rows_follow_the_protocol_and_outsiders_the_marginal(key: RecordKey | None, shuffle: bool) -> None:
    n = 60_000
    source = people(n)
    pairs = PairCounts(3, 3)
    batches = source.to_batches(max_chunksize=7000)
    codes = np.concatenate(list(sanitised_codes(batches, NOISY, key, shuffle=shuffle, observe=pairs.add)))
    counts = pairs.table()
    occurrences = Counter(texts(source))
    expected = [occurrences["a"], occurrences["b"], occurrences["c"], occurrences["elsewhere"] + occurrences[None]]
    assert counts.sum(axis=1).tolist() == expected
    np.testing.assert_array_equal(counts.sum(axis=0), np.bincount(codes, minlength=3))
    laws = np.column_stack([NOISY.weights, NOISY.marginal]).T / FULL
    for observed, law in zip(counts, laws, strict=True):
        possible = law * observed.sum() > 1e-6
        assert observed[~possible].sum() == 0
        if possible.sum() > 1:
            assert stats.chisquare(observed[possible], law[possible] * observed.sum()).pvalue > 1e-9


def test_without_a_key_every_release_is_fresh() -> None:
    source = people(2000)
    assert texts(sanitise(source, NOISY)) != texts(sanitise(source, NOISY))


def test_with_a_key_a_record_gets_its_answer_again_in_any_order_and_partition() -> None:
    source = people(5000)
    answers = dict(zip(texts(source, "id"), texts(sanitise(source, NOISY, KEY)), strict=True))
    mixed = source.take(np.random.default_rng(1).permutation(5000))
    for part in (mixed.slice(0, 1234), mixed.slice(1234)):
        again = dict(zip(texts(part, "id"), texts(sanitise(part, NOISY, KEY)), strict=True))
        assert again == {record: answers[record] for record in again}
    other = RecordKey(("id",), bytes(range(1, 33)))
    assert texts(sanitise(source, NOISY, other)) != texts(sanitise(source, NOISY, KEY))


def test_keyed_answers_are_coupled_under_a_changed_protocol() -> None:
    """METHOD 9: a record's outputs differ only where its word falls between the old and the new threshold."""
    first = protocol([[FULL // 2] * 3, [FULL // 2] * 3], [FULL // 2] * 2, INPUTS, Alphabet(("x",), (("p",), ("q",))))
    moved = FULL // 2 + FULL // 64
    second = protocol([[moved] * 3, [FULL - moved] * 3], [FULL // 2] * 2, INPUTS, first.outputs)
    source = people(20_000, outside=False)
    pairs = Counter(zip(texts(sanitise(source, first, KEY)), texts(sanitise(source, second, KEY)), strict=True))
    assert pairs["p", "q"] == 0
    assert 20_000 / 64 - 130 < pairs["q", "p"] < 20_000 / 64 + 130


def test_a_keyed_shuffle_depends_on_the_records_alone() -> None:
    source = people(5000)
    mixed = source.take(np.random.default_rng(2).permutation(5000))

    def released(table: pa.Table, batch: int, chunk: int) -> list[int]:
        codes = sanitised_codes(table.to_batches(max_chunksize=batch), NOISY, KEY, chunk_rows=chunk)
        return np.concatenate(list(codes)).tolist()

    expected = released(source, 5000, 1 << 20)
    assert released(mixed, 999, 100) == expected
    assert texts(sanitise(mixed, NOISY, KEY, shuffle=True)) == texts(release_table(np.array(expected), NOISY))
    assert expected != released(source, 5000, 1 << 20)[::-1]


def test_a_shuffle_breaks_the_link_between_a_row_and_its_place() -> None:
    source = pa.table({"x": ["a"] * 3000 + ["b"] * 3000, "id": np.arange(6000)})
    for key in (None, KEY):
        released = texts(sanitise(source, IDENTITY, key, shuffle=True))
        assert Counter(released) == {"a": 3000, "b": 3000}
        assert abs(Counter(released[:3000])["a"] - 1500) < 7 * 20


def test_a_keyed_order_says_nothing_about_the_words() -> None:
    """Rows in the order of the words they were drawn with would show where in its range every word lies."""
    half = [FULL // 2] * 3
    coin = protocol([half, half], half[:2], INPUTS, Alphabet(("x",), (("p",), ("q",))))
    released = texts(sanitise(people(6000), coin, KEY, shuffle=True))
    assert abs(Counter(released[:3000])["p"] - 1500) < 7 * 28
    assert abs(sum(x == y for x, y in pairwise(released)) - 3000) < 7 * 39


def test_chunks_are_even_and_batches_bounded() -> None:
    source = people(rows.BATCH_ROWS + 1000)
    sizes = [len(outputs) for outputs, _ in sanitise_batches([source.combine_chunks().to_batches()[0]], NOISY)]
    assert sizes == [rows.BATCH_ROWS, 1000]
    chunks = sanitised_codes(source.to_batches(max_chunksize=3333), NOISY, shuffle=False, chunk_rows=10_000)
    assert [len(chunk) for chunk in chunks] == [10_000] * 6 + [6536]


def test_outputs_of_a_batch_match_its_inputs() -> None:
    source = people(500)
    for outputs, inputs in sanitise_batches(source.to_batches(max_chunksize=100), IDENTITY, words=WordStream().words):
        known = inputs >= 0
        np.testing.assert_array_equal(outputs[known], inputs[known])
        assert set(outputs[~known].tolist()) <= {0, 1}


@pytest.mark.parametrize("shuffle", [False, True])
def test_protocols_may_read_the_secret_and_publish_several_columns(shuffle: bool) -> None:
    inputs = Alphabet(("s", "u", "v"), (("1", "x", "y"), ("2", "x", "z")))
    outputs = Alphabet(("u", "v"), (("x", "z"), ("w", "y"), ("x", "y")))
    channel = protocol([[0, FULL], [0, 0], [FULL, 0]], [0, FULL, 0], inputs, outputs)
    source = pa.table({"v": ["y", "z", "y"], "u": ["x", "x", "x"], "s": [1, 2, 2], "name": ["A", "B", "C"]})
    released = sanitise(source, channel, shuffle=shuffle)
    assert released.column_names == ["u", "v"]
    pairs = list(zip(texts(released, "u"), texts(released, "v"), strict=True))
    expected = [("x", "y"), ("x", "z"), ("w", "y")]
    assert sorted(pairs) == sorted(expected) if shuffle else pairs == expected
    assert released.column("u").chunk(0).dictionary.to_pylist() == ["x", "w"]
    assert released.column("v").chunk(0).dictionary.to_pylist() == ["z", "y"]


def test_the_smallest_index_type_that_fits_is_used() -> None:
    for count, kind in ((128, pa.int8()), (129, pa.int16()), (32769, pa.int32())):
        outputs = Alphabet.of(None, count, "x")
        column = [FULL] + [0] * (count - 1)
        channel = protocol([[w] for w in column], column, Alphabet(("x",), (("a",),)), outputs)
        released = release_table(np.array([count - 1, 0]), channel)
        assert released.schema.field("x").type == pa.dictionary(kind, pa.string())
        assert texts(released) == [outputs.symbols[-1][0], outputs.symbols[0][0]]


def test_release_survives_parquet(tmp_path: Path) -> None:
    released = sanitise(people(100), NOISY)
    pq.write_table(released, tmp_path / "release.parquet")
    assert pq.read_table(tmp_path / "release.parquet").to_pydict() == released.to_pydict()


def test_a_table_without_rows_gives_a_release_without_rows() -> None:
    empty = people(10).slice(0, 0)
    for key in (None, KEY):
        for shuffle in (False, True):
            released = sanitise(empty, NOISY, key, shuffle=shuffle)
            assert released.num_rows == 0
            assert released.schema == sanitise(people(3), NOISY).schema


@pytest.mark.parametrize("shuffle", [False, True])
def test_missing_and_repeated_keys_are_counted_over_all_batches_and_not_shown(shuffle: bool) -> None:
    names = ["Anna", "Bert", None, "Cleo", "Anna", "Dora", None, "Bert", "Anna"]
    source = pa.table({"x": ["a"] * 9, "id": names})
    batches = source.to_batches(max_chunksize=2)
    with pytest.raises(DataError) as missing:
        list(sanitised_codes(batches, NOISY, KEY, shuffle=shuffle))
    assert "2 records have no value in the record key 'id'" in str(missing.value)
    known = source.filter(pa.compute.is_valid(source.column("id")))
    with pytest.raises(DataError) as repeated:
        list(sanitised_codes(known.to_batches(max_chunksize=2), NOISY, KEY, shuffle=shuffle))
    assert "3 records repeat the record key 'id'" in str(repeated.value)
    for error in (missing, repeated):
        assert not any(name in str(error.value) for name in names if name)


def test_a_key_and_words_together_are_refused() -> None:
    for draw in (sanitise_batches, sanitised_codes):
        with pytest.raises(SpecError, match="not both"):
            draw([], NOISY, KEY, words=WordStream().words)


def test_the_stream_is_made_when_the_first_row_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that forks after planning still gets a stream of its own."""
    made: list[WordStream] = []

    class Counted(WordStream):
        def __init__(self) -> None:
            super().__init__()
            made.append(self)

    monkeypatch.setattr(rows, "WordStream", Counted)
    stream = sanitise_batches(people(300).to_batches(max_chunksize=100), NOISY)
    assert made == []
    assert len(list(stream)) == 3
    assert len(made) == 1


def test_a_stuck_system_source_stops_the_release(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.urandom", bytes)
    with pytest.raises(EntropyError, match="stuck"):
        sanitise(people(10), NOISY)


def test_sources_that_cannot_be_read_are_one_clear_error(tmp_path: Path) -> None:
    broken = tmp_path / "broken.parquet"
    broken.write_text("x,y\n1,2\n")
    truncated = tmp_path / "truncated.parquet"
    truncated.write_bytes(Path(parquet(people(5000), tmp_path)).read_bytes()[:-100])
    cases: list[tuple[object, str]] = [
        (tmp_path / "absent.parquet", "there is no file"),
        (broken, "cannot be read as parquet"),
        (truncated, "cannot be read as parquet"),
        (tmp_path, "cannot be read as parquet"),
        (pa.table({"y": ["a"]}), "column 'x' is not in the table, which has y"),
        (pd.DataFrame({"y": ["a"]}), "column 'x' is not in the table, which has y"),
        (parquet(pa.table({"y": ["a"]}), tmp_path), "column 'x' is not in the table, which has y"),
        (pd.DataFrame([["a", "b"]], columns=["x", "x"]), "column 'x' is more than once in the table"),
        ([1, 2], "not list"),
    ]
    for table, message in cases:
        with pytest.raises(DataError, match=message):
            sanitise(table, NOISY)  # type: ignore[arg-type]


def test_values_of_a_mixed_column_are_not_shown() -> None:
    mixed = pd.DataFrame({"x": ["a", 4711, "Anna"]}, dtype=object)
    with pytest.raises(DataError, match="column 'x' mixes types") as caught:
        sanitise(mixed, NOISY)
    assert caught.value.__suppress_context__
    assert "Anna" not in str(caught.value)
    assert "4711" not in str(caught.value)


@pytest.mark.parametrize("codes", [[3], [-1], [0, 200]])
def test_output_codes_outside_the_alphabet_are_refused(codes: list[int]) -> None:
    with pytest.raises(DataError, match="there are 3 outputs"):
        release_table(np.array(codes), NOISY)


def test_source_is_streamed() -> None:
    """The next batch is not read before the outputs of the last one have been taken."""
    read: list[int] = []

    def batches() -> Iterator[pa.RecordBatch]:
        for i, batch in enumerate(people(500).to_batches(max_chunksize=100)):
            read.append(i)
            yield batch

    stream = sanitise_batches(batches(), NOISY)
    for expected in range(3):
        next(stream)
        assert read == [*range(expected + 1)]
