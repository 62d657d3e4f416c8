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
from funnel.errors import DataError, EntropyError
from funnel.protocol import Protocol
from funnel.sampling import answers, row_order, row_words, spill
from funnel.sampling.engine import release_rows
from funnel.sampling.keyed import RecordKey
from funnel.sampling.output_columns import OutputColumns
from funnel.sampling.partitions import plan_rows
from funnel.sampling.random_words import WordStream
from funnel.sampling.sanitising import sanitise
from tests import chance, snapshots
from tests.snapshots import planned, snapshot

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
    released = sanitise(tables[way](), IDENTITY, key, shuffle=False)
    mixed = sanitise(tables[way](), IDENTITY, key)
    assert mixed.schema == released.schema
    assert Counter(texts(mixed)) == Counter(texts(source))
    assert texts(mixed) != texts(source)
    assert texts(released) == texts(source)
    assert released.schema.metadata is None
    assert released.schema == pa.schema([pa.field("x", pa.dictionary(pa.int8(), pa.string()), nullable=False)])
    assert released.column("x").chunk(0).dictionary.to_pylist() == ["a", "b", "c"]


def test_without_a_key_every_release_is_fresh() -> None:
    source = people(2000)
    counts = Counter(texts(source))
    assert chance.of_equal_draws(NOISY, [counts[x] for (x,) in NOISY.inputs.symbols]) < 1e-9
    assert texts(sanitise(source, NOISY)) != texts(sanitise(source, NOISY))


def test_with_a_key_a_record_gets_its_answer_again_in_any_order_and_partition() -> None:
    source = people(5000)

    def drawn(table: pa.Table) -> dict[str, str]:
        return dict(zip(texts(table, "id"), texts(sanitise(table, NOISY, KEY, shuffle=False)), strict=True))

    answers = drawn(source)
    mixed = source.take(np.random.default_rng(1).permutation(5000))
    for part in (mixed.slice(0, 1234), mixed.slice(1234)):
        again = drawn(part)
        assert again == {record: answers[record] for record in again}
    other = RecordKey(("id",), bytes(range(1, 33)))
    assert list(answers.values()) != texts(sanitise(source, NOISY, other, shuffle=False))


def test_keyed_answers_are_independent_under_a_changed_protocol() -> None:
    """METHOD 9: one word for two protocols would tell, by the thresholds between them, more than both alone allow."""
    first = protocol([[FULL // 2] * 3, [FULL // 2] * 3], [FULL // 2] * 2, INPUTS, Alphabet(("x",), (("p",), ("q",))))
    moved = FULL // 2 + FULL // 64
    second = protocol([[moved] * 3, [FULL - moved] * 3], [FULL // 2] * 2, INPUTS, first.outputs)
    source = people(20_000, outside=False)
    drawn = (texts(sanitise(source, channel, KEY, shuffle=False)) for channel in (first, second))
    pairs = Counter(zip(*drawn, strict=True))
    # Of 20,000 pairs a quarter each, up to six times what chance explains.
    for pair, share in {("p", "q"): 31, ("q", "p"): 33, ("p", "p"): 33, ("q", "q"): 31}.items():
        assert abs(pairs[pair] - 20_000 * share / 128) < 6 * 62


def test_a_keyed_shuffle_depends_on_the_records_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    source = people(5000)
    mixed = source.take(np.random.default_rng(2).permutation(5000))
    expected = texts(sanitise(source, NOISY, KEY))
    assert texts(sanitise(mixed, NOISY, KEY)) == expected
    assert expected != texts(sanitise(source, NOISY, KEY, shuffle=False))
    # Nor on how much fits in memory.
    monkeypatch.setattr(spill, "_MEMORY_BYTES", 100)
    monkeypatch.setattr(row_order, "PART_ROWS", 300)
    monkeypatch.setattr(row_order, "_PIECE_ROWS", 700)
    assert texts(sanitise(pa.Table.from_batches(mixed.to_batches(max_chunksize=99)), NOISY, KEY)) == expected


@pytest.mark.parametrize("shuffle", [False, True])
def test_the_rows_of_a_record_key_are_those_of_the_pipeline(tmp_path: Path, shuffle: bool) -> None:
    """Same records, protocol and secret: the same rows in the same order, however many partitions and parts."""
    source = snapshot(tmp_path)
    plan = planned(source, "work", shuffle=shuffle, keyed=True)
    assert len(plan.groups) == 5
    assert plan.parts == 8
    release_rows(plan, tmp_path / "out.parquet")
    expected = pq.read_table(tmp_path / "out.parquet")
    for table in (pq.read_table(source), source):
        released = sanitise(table, snapshots.NOISY, snapshots.KEY, shuffle=shuffle)
        assert released.schema == expected.schema
        assert released.to_pydict() == expected.to_pydict()


@pytest.mark.parametrize("shuffle", [False, True])
def test_fresh_rows_are_those_of_the_pipeline_for_the_same_words(
    tmp_path: Path, shuffle: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fresh draws never repeat; with streams whose words are known they are the same, for one partition."""
    made: list[WordStream] = []

    def known() -> WordStream:
        made.append(WordStream.with_known_key_for_tests(bytes([len(made)] * 32), bytes(16)))
        return made[-1]

    monkeypatch.setattr(row_words, "WordStream", known)
    source = snapshot(tmp_path)
    plan = planned(source, "work", shuffle=shuffle, keyed=False, partition_rows=snapshots.ROWS)
    release_rows(plan, tmp_path / "out.parquet")
    assert len(made) == (2 if shuffle else 1)
    made.clear()
    released = sanitise(source, snapshots.NOISY, shuffle=shuffle)
    assert len(made) == (2 if shuffle else 1)
    assert released.to_pydict() == pq.read_table(tmp_path / "out.parquet").to_pydict()
    # Another key for every stream: the order is another one, and so are the answers.
    assert released.to_pydict() != sanitise(source, snapshots.NOISY, shuffle=shuffle).to_pydict()


def test_every_order_of_a_release_is_equally_likely(monkeypatch: pytest.MonkeyPatch) -> None:
    """From the default of the public function on, with scripted streams."""
    made: list[WordStream] = []

    def known() -> WordStream:
        made.append(WordStream.with_known_key_for_tests(len(made).to_bytes(32, "big"), bytes(16)))
        return made[-1]

    monkeypatch.setattr(row_words, "WordStream", known)
    letters = Alphabet(("x",), (("a",), ("b",), ("c",), ("d",)))
    same = protocol((np.eye(4, dtype=np.uint64) * np.uint64(FULL)).tolist(), [FULL, 0, 0, 0], letters, letters)
    source = pa.table({"x": ["a", "b", "c", "d"]})
    seen = Counter("".join(texts(sanitise(source, same))) for _ in range(1200))
    assert len(seen) == 24
    assert 1e-4 < stats.chisquare(list(seen.values())).pvalue < 1 - 1e-4


def test_a_shuffle_breaks_the_link_between_a_row_and_its_place() -> None:
    source = pa.table({"x": ["a"] * 3000 + ["b"] * 3000, "id": np.arange(6000)})
    for key in (None, KEY):
        released = texts(sanitise(source, IDENTITY, key))
        assert Counter(released) == {"a": 3000, "b": 3000}
        # Without a key the order is fresh: 7 of its standard deviations of 19.4 are passed once in 10^12 runs.
        assert abs(Counter(released[:3000])["a"] - 1500) < 7 * 20


def test_a_keyed_order_says_nothing_about_the_words() -> None:
    """Rows in the order of the words they were drawn with would show where in its range every word lies."""
    half = [FULL // 2] * 3
    coin = protocol([half, half], half[:2], INPUTS, Alphabet(("x",), (("p",), ("q",))))
    released = texts(sanitise(people(6000), coin, KEY))
    assert abs(Counter(released[:3000])["p"] - 1500) < 7 * 28
    assert abs(sum(x == y for x, y in pairwise(released)) - 3000) < 7 * 39


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
        released = pa.Table.from_batches([OutputColumns(channel).batch(np.array([count - 1, 0]))])
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
    with pytest.raises(DataError) as missing:
        sanitise(pa.Table.from_batches(source.to_batches(max_chunksize=2)), NOISY, KEY, shuffle=shuffle)
    assert "2 records have no value in the record key 'id'" in str(missing.value)
    known = source.filter(pa.compute.is_valid(source.column("id")))
    with pytest.raises(DataError) as repeated:
        sanitise(pa.Table.from_batches(known.to_batches(max_chunksize=2)), NOISY, KEY, shuffle=shuffle)
    assert "3 records repeat the record key 'id'" in str(repeated.value)
    for error in (missing, repeated):
        assert not any(name in str(error.value) for name in names if name)


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
        OutputColumns(NOISY).batch(np.array(codes))


@pytest.mark.parametrize("key", [None, KEY])
def test_a_file_is_streamed_and_few_rows_need_no_temporary_file(
    tmp_path: Path, key: RecordKey | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next batch is not read before the last one has been drawn."""
    seen: list[str] = []

    def read(*arguments: object) -> Iterator[pa.RecordBatch]:
        for batch in people(500).to_batches(max_chunksize=100):
            seen.append("read")
            yield batch

    class Noted(answers.ChannelSampler):
        def draw(self, codes, words):  # type: ignore[no-untyped-def]
            seen.append("drawn")
            return super().draw(codes, words)

    def no_file(*arguments: object, **named: object) -> None:
        raise AssertionError("a temporary file was made")

    answers._sampler.cache_clear()
    monkeypatch.setattr(answers, "ChannelSampler", Noted)
    monkeypatch.setattr("funnel.sampling.sanitising.read_batches", read)
    monkeypatch.setattr("tempfile.TemporaryFile", no_file)
    assert sanitise(tmp_path / "any.parquet", NOISY, key).num_rows == 500
    assert seen == ["read", "drawn"] * 5
    answers._sampler.cache_clear()


@pytest.mark.parametrize("shuffle", [True, False])
def test_draws_are_counted_by_secret_and_input(tmp_path: Path, shuffle: bool) -> None:
    table = people(3000)
    secret = Alphabet(("s",), (("yes",), ("no",)))
    values = ["yes", "no", "no", "not said"]
    said = [values[i] for i in np.random.default_rng(7).integers(0, 4, 3000)]
    pq.write_table(table.append_column("s", pa.array(said)), tmp_path / "source.parquet", row_group_size=1000)
    (tmp_path / "work").mkdir()
    source = tmp_path / "source.parquet"
    plan = plan_rows(
        source, "", NOISY, tmp_path / "work", shuffle=shuffle, secret=secret, partition_rows=1000, part_rows=700
    )
    drawn = release_rows(plan, tmp_path / "rows.parquet")
    expected = Counter(zip(said, texts(table), strict=True))
    symbols = ["a", "b", "c"]
    counts = np.zeros((3, 4), dtype=np.int64)
    for (s, x), count in expected.items():
        counts[values.index(s) if s in ("yes", "no") else 2, symbols.index(x) if x in symbols else 3] += count
    assert drawn.counts.shape == (3, 4, 3)
    assert drawn.counts.inputs.tolist() == counts.tolist()
    assert drawn.counts.pairs.sum(axis=1).tolist() == counts.sum(axis=0).tolist()
    written = Counter(texts(pq.read_table(tmp_path / "rows.parquet")))
    assert drawn.counts.pairs.sum(axis=0).tolist() == [written[symbol] for symbol in symbols]
