"""Joint distributions: the same counts from every kind of table, and clear refusals."""

from __future__ import annotations

import collections
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from funnel import DataError, Joint, SpecError
from tests.strategies import joints

rows = st.lists(st.tuples(st.sampled_from(["a", "b", "ä"]), st.integers(0, 12), st.booleans()), min_size=1, max_size=60)


@given(rows, st.integers(1, 20))
def test_every_kind_of_table_gives_the_same_counts(content: list[tuple[str, int, bool]], group: int) -> None:
    columns = {name: [row[j] for row in content] for j, name in enumerate(("s", "x", "z"))}
    expected = collections.Counter((row[0], (str(row[1]), str(row[2]))) for row in content)
    table = pa.table(columns)
    coded = pa.table(
        {name: table[name].cast(pa.string()).dictionary_encode() for name in ("s", "x")} | {"z": table["z"]}
    )
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, row_group_size=group)
    batches = pq.ParquetFile(pa.BufferReader(sink.getvalue())).iter_batches(batch_size=group)
    for joint in (
        Joint.from_table(table, ["s"], ["x", "z"]),
        Joint.from_table(pd.DataFrame(columns), ["s"], ["x", "z"]),
        Joint.from_table(pd.DataFrame(columns).astype({"s": "category"}), "s", ["x", "z"]),
        Joint.from_batches(batches, ["s"], ["x", "z"]),
    ):
        counted = {
            (s[0], x): int(joint.counts[i, j])
            for i, s in enumerate(joint.secret.symbols)
            for j, x in enumerate(joint.inputs.symbols)
            if joint.counts[i, j]
        }
        assert counted == expected
        assert joint.n == len(content)
    # Booleans of a dictionary are spelt by arrow, so only the other columns are compared there.
    assert Joint.from_table(coded, ["s"], ["x"]).n == len(content)


def test_a_parquet_file_is_streamed_and_numbers_are_ordered_by_value(tmp_path: Path) -> None:
    pq.write_table(pa.table({"s": ["u", "v"] * 6, "x": list(range(12))}), tmp_path / "t.parquet", row_group_size=3)
    joint = Joint.from_table(tmp_path / "t.parquet", ["s"], ["x"])
    assert joint.inputs.labels == tuple(map(str, range(12)))
    assert Joint.from_table(str(tmp_path / "t.parquet"), ["s"], ["x"]).counts.tolist() == joint.counts.tolist()


@given(joints())
def test_probabilities_fit_together(joint: Joint) -> None:
    assert joint.p.sum() == pytest.approx(1)
    assert joint.p_secret == pytest.approx(joint.p.sum(axis=1))
    assert joint.p_input == pytest.approx(joint.p.sum(axis=0))
    assert joint.input_given_secret * joint.p_secret[:, None] == pytest.approx(joint.p)
    assert joint.secret_given_input * joint.p_input == pytest.approx(joint.p)
    wide = joint.with_secret()
    c, a = joint.counts.shape
    assert wide.counts.shape == (c, c * a)
    assert wide.counts.reshape(c, c, a).sum(axis=1).tolist() == joint.counts.tolist()
    assert wide.n == joint.n


@pytest.mark.parametrize(
    ("counts", "error", "word"),
    [
        ([[1, -1]], SpecError, "negative"),
        ([[0.5, 1]], SpecError, "whole numbers"),
        ([[1, 2], [3]], SpecError, "rectangular"),
        ([1, 2], SpecError, "shape"),
        ([[]], SpecError, "shape"),
        ([["a"]], SpecError, "whole numbers"),
        ([[float("nan")]], SpecError, "whole numbers"),
        ([[float("inf"), 1.0]], SpecError, "whole numbers"),
        ([[True]], SpecError, "whole numbers"),
        ([[0, 0]], DataError, "zero"),
        ([[2**31, 1]], DataError, "more than"),
        ([[2**63, 2**63]], DataError, "more than"),
    ],
)
def test_counts_that_are_none(counts: object, error: type[Exception], word: str) -> None:
    with pytest.raises(error, match=word):
        Joint.from_counts(counts)  # type: ignore[arg-type]


def test_tables_that_do_not_fit(tmp_path: Path) -> None:
    table = pa.table({"s": ["a", None], "x": ["b", "c"]})
    with pytest.raises(DataError, match="'s' holds nulls"):
        Joint.from_table(table, ["s"], ["x"])
    with pytest.raises(DataError, match="'y' is not in"):
        Joint.from_table(table, ["x"], ["y"])
    with pytest.raises(SpecError, match="named twice"):
        Joint.from_table(table, ["x"], ["s", "s"])
    with pytest.raises(SpecError, match="the secret alone"):
        Joint.from_table(table, ["x"], ["x"])
    with pytest.raises(SpecError, match="some columns of the secret"):
        Joint.from_table(table, ["x", "s"], ["x", "y"])
    with pytest.raises(SpecError, match="at least one"):
        Joint.from_table(table, [], ["x"])
    with pytest.raises(DataError, match="no rows"):
        Joint.from_table(table.slice(0, 0), ["s"], ["x"])
    with pytest.raises(DataError, match="no file"):
        Joint.from_table(tmp_path / "gone.parquet", ["s"], ["x"])
    (tmp_path / "text.parquet").write_text("Jane,divorced")
    with pytest.raises(DataError, match="cannot be read as parquet"):
        Joint.from_table(tmp_path / "text.parquet", ["s"], ["x"])
    with pytest.raises(DataError, match="mixes types") as caught:
        Joint.from_table(pd.DataFrame({"s": ["Jane", 1], "x": [1, 2]}), ["s"], ["x"])
    assert "Jane" not in str(caught.value)


def test_labels_that_do_not_fit() -> None:
    with pytest.raises(SpecError, match="1 labels were given for the 2 symbols"):
        Joint.from_counts([[1, 2]], inputs=["a"])
    with pytest.raises(SpecError, match="distinct"):
        Joint.from_counts([[1, 2]], inputs=["a", "a"])
    joint = Joint.from_counts(np.array([[1, 2]]), secret=["s"], inputs=[("a", "b"), ("a", "c")])
    assert joint.inputs.labels == ("a · b", "a · c")
    with pytest.raises(DataError, match="the protocol reads"):
        joint.read_by(("other",))


def test_row_groups_with_different_dictionaries_are_counted_alike(tmp_path: Path) -> None:
    """Every batch brings its own dictionary: codes mean different values, some of which never occur."""
    parts = [(["b", "c", "a"], [0, 0, 2]), (["a", "never", "b"], [0, 2, 2]), (["d", "b"], [1, 0, 1])]
    schema = pa.schema([("s", pa.string()), ("x", pa.dictionary(pa.int8(), pa.string()))])
    tables = [
        pa.table(
            {"s": ["u", "v", "u"], "x": pa.DictionaryArray.from_arrays(pa.array(codes, pa.int8()), values)}, schema
        )
        for values, codes in parts
    ]
    with pq.ParquetWriter(tmp_path / "t.parquet", schema) as writer:
        for table in tables:
            writer.write_table(table)
    whole = pa.concat_tables(tables)
    for source in (whole, tmp_path / "t.parquet"):
        joint = Joint.from_table(source, ["s"], ["x"])
        counts = {(s, x): joint.counts[joint.secret.index(s), joint.inputs.index(x)] for s in "uv" for x in "abd"}
        assert counts == {("u", "a"): 2, ("v", "a"): 0, ("u", "b"): 2, ("v", "b"): 1, ("u", "d"): 0, ("v", "d"): 1} | {
            key: value for key, value in counts.items() if key[1] == "b" or key == ("u", "d")
        }
        assert sorted(joint.inputs.labels) == ["a", "b", "d"]
        assert joint.n == 9
    # A declared order is kept; a value that only the dictionary knows is no symbol.
    assert Joint.from_table(tables[1], ["s"], ["x"]).inputs.labels == ("a", "b")


def test_the_order_of_symbols_does_not_depend_on_the_order_of_rows() -> None:
    frame = pd.DataFrame({"s": ["u"] * 4, "x": ["1", "01", "10", "9"]})
    one, other = (Joint.from_table(rows, ["s"], ["x"]) for rows in (frame, frame[::-1]))
    assert one.inputs == other.inputs
    assert one.inputs.labels == ("01", "1", "9", "10")


def test_more_combinations_than_64_bits_can_number() -> None:
    """Five columns of 10,000 values each: a mixed-radix code of 67 bits would wrap around without a word."""
    rng = np.random.default_rng(0)
    columns = {name: rng.permutation(10_000) for name in "abcde"}
    joint = Joint.from_table(pa.table({"s": ["u"] * 10_000, **columns}), ["s"], list("abcde"))
    assert set(joint.inputs.symbols) == set(
        zip(*(map(str, values.tolist()) for values in columns.values()), strict=True)
    )
    assert joint.counts.tolist() == [[1] * 10_000]


def test_columns_that_are_no_categories() -> None:
    ids = pa.table({"s": list(range(5000)), "x": list(range(5000))})
    with pytest.raises(DataError, match="5,000 values of s by 5,000 values of x are too many"):
        Joint.from_table(ids, ["s"], ["x"])
    lists = pa.table({"s": [[1], [2]], "x": ["a", "b"]})
    with pytest.raises(DataError, match="'s' is of type list"):
        Joint.from_table(lists, ["s"], ["x"])
    for gap in (
        pa.table({"s": [1.0, float("nan")], "x": ["a", "b"]}),
        pd.DataFrame({"s": [1.0, None], "x": ["a", "b"]}),
    ):
        with pytest.raises(DataError, match="'s' holds nulls"):
            Joint.from_table(gap, ["s"], ["x"])
    twice = pa.table([["a"], ["b"], ["c"]], names=["x", "x", "s"])
    with pytest.raises(DataError, match="'x' is more than once in the table"):
        Joint.from_table(twice, ["s"], ["x"])
    with pytest.raises(DataError, match="'x' is more than once in the table"):
        Joint.from_table(twice.select([0, 2]).to_pandas().loc[:, ["x", "x", "s"]], ["s"], ["x"])
    with pytest.raises(DataError, match="'0' is not in the table"):
        Joint.from_table(pd.DataFrame({0: ["a"], "s": ["b"]}), ["s"], ["0"])


def test_dictionary_codes_of_every_width() -> None:
    for width in (pa.int8(), pa.uint8(), pa.int64(), pa.uint64()):
        coded = pa.DictionaryArray.from_arrays(pa.array([1, 0, 1], width), ["no", "yes"])
        joint = Joint.from_table(pa.table({"s": coded, "x": [1, 2, 2]}), ["s"], ["x"])
        assert joint.secret.labels == ("no", "yes")
        assert joint.counts.tolist() == [[0, 1], [1, 1]]


def test_counts_of_partitions_add_up_to_those_of_the_table() -> None:
    choice = np.random.default_rng(4)
    table = pa.table({name: [f"{name}{i}" for i in choice.integers(0, k, 500)] for name, k in (("s", 3), ("x", 4))})
    order = {name: sorted(set(table[name].to_pylist()), reverse=True) for name in ("s", "x")}
    whole = Joint.from_batches(table.to_batches(), ["s"], ["x"], order)
    parts = [Joint.from_batches(part.to_batches(), ["s"], ["x"]) for part in (table.slice(0, 7), table.slice(7))]
    added = Joint.from_parts(parts, order)
    np.testing.assert_array_equal(added.counts, whole.counts)
    assert (added.secret, added.inputs) == (whole.secret, whole.inputs)
    with pytest.raises(DataError, match="no counts"):
        Joint.from_parts([], order)
    other = Joint.from_batches(table.to_batches(), ["x"], ["s"])
    with pytest.raises(DataError, match="different columns"):
        Joint.from_parts([whole, other], order)


@settings(max_examples=30)
@given(st.integers(1, 4), st.integers(1, 5), st.integers(0, 3), st.integers(0, 2**32))
def test_counting_rows_in_pairs_misses_none(c: int, a: int, extra: int, seed: int) -> None:
    rows = 4 * 256 * c * a + extra
    draws = np.random.default_rng(seed)
    codes = [draws.integers(0, size, rows) for size in (c, a)]
    columns = [
        pa.DictionaryArray.from_arrays(pa.array(code, pa.int32()), [f"{name}{i}" for i in range(size)])
        for name, code, size in zip("sx", codes, (c, a), strict=True)
    ]
    joint = Joint.from_table(pa.table(columns, names=["s", "x"]), "s", "x")
    for i, (s,) in enumerate(joint.secret.symbols):
        for j, (x,) in enumerate(joint.inputs.symbols):
            assert joint.counts[i, j] == np.count_nonzero((codes[0] == int(s[1:])) & (codes[1] == int(x[1:])))
    assert joint.n == rows
