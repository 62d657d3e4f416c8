"""Input codes against a plain loop over rows, and the counts an audit uses."""

from __future__ import annotations

import datetime
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from funnel.alphabet import Alphabet
from funnel.errors import DataError
from funnel.joint import Joint
from funnel.sampling import codes
from funnel.sampling.codes import InputEncoder, input_codes

VALUES = ("a", "b", "c", "1", "2")
Column = list[str | None]


def plain(column: Column) -> pa.Array:
    return pa.array(column, pa.string())


def coded(column: Column) -> pa.Array:
    return plain(column).dictionary_encode()


def oddly_coded(column: Column) -> pa.Array:
    """A dictionary with unused, repeated and null entries, used alternately, and a slice of a longer array."""
    entries = ["unused", *VALUES, None, *VALUES]
    indices: list[int | None] = [0, 3]
    for row, value in enumerate(column):
        if value is None:
            indices.append(6 if row % 2 else None)
        else:
            indices.append(VALUES.index(value) + (1 if row % 2 else 7))
    array = pa.DictionaryArray.from_arrays(pa.array(indices, pa.int8()), pa.array(entries, pa.string()))
    return array.slice(2)


@st.composite
def tables(draw: st.DrawFn) -> tuple[Alphabet, list[Column]]:
    width = draw(st.integers(1, 3))
    symbols = draw(st.lists(st.tuples(*[st.sampled_from(VALUES)] * width), unique=True, min_size=1, max_size=8))
    n = draw(st.integers(0, 30))
    cell = st.one_of(st.none(), st.sampled_from(VALUES))
    columns = [draw(st.lists(cell, min_size=n, max_size=n)) for _ in range(width)]
    return Alphabet(tuple(f"col{j}" for j in range(width)), tuple(symbols)), columns


@settings(max_examples=80)
@given(tables(), st.lists(st.sampled_from([plain, coded, oddly_coded]), min_size=3, max_size=3), st.booleans())
def test_codes_are_those_of_a_loop_over_rows(
    table: tuple[Alphabet, list[Column]], ways: list[Callable[[Column], pa.Array]], searched: bool
) -> None:
    alphabet, columns = table
    expected = [-1 if None in row else alphabet.get(row) for row in zip(*columns, strict=True)]
    names = ["other", *alphabet.columns]
    arrays = [way(column) for way, column in zip(ways, columns, strict=False)]
    batch = pa.RecordBatch.from_arrays([pa.nulls(len(columns[0])), *arrays], names=names)
    with pytest.MonkeyPatch.context() as patch:
        if searched:
            patch.setattr(codes, "_MAX_TABLE", 0)
        encoder = InputEncoder(alphabet)
    drawn = encoder.codes(batch)
    assert drawn.dtype == np.int64
    assert drawn.tolist() == expected
    # As a table of two chunks with dictionaries of their own.
    half = len(expected) // 2
    chunks = [
        pa.RecordBatch.from_arrays([way(column[rows]) for way, column in zip(ways, columns, strict=False)], names[1:])
        for rows in (slice(None, half), slice(half, None))
    ]
    if len({chunk.schema for chunk in chunks}) == 1:
        assert encoder.codes(pa.Table.from_batches(chunks)).tolist() == expected


@pytest.mark.parametrize(
    "values",
    [
        [3, 1, 3],
        [2.5, -0.0, 1e300],
        [True, False, True],
        [datetime.date(2020, 1, 31), datetime.date(1931, 12, 1)],
        [datetime.datetime(2020, 1, 31, 5, 6)],
        ["Zoë", "", "None"],
    ],
)
def test_values_are_compared_as_text_as_the_joint_distribution_does(values: list[object]) -> None:
    table = pa.table({"x": pa.array(values), "s": pa.array(["s"] * len(values))})
    joint = Joint.from_table(table, ["s"], ["x"])
    found = input_codes(table, joint.inputs)
    assert [joint.inputs.symbols[code] for code in found] == [(str(value),) for value in values]


def test_the_text_none_is_not_a_null() -> None:
    alphabet = Alphabet(("x",), (("None",), ("nan",)))
    assert input_codes(pa.record_batch({"x": pa.array(["None", None, "nan"])}), alphabet).tolist() == [0, -1, 1]
    coded = pa.DictionaryArray.from_arrays(pa.array([1, 0]), pa.array(["None", None]))
    assert input_codes(pa.record_batch({"x": coded}), alphabet).tolist() == [-1, 0]
    assert input_codes(pa.record_batch({"x": pa.nulls(2)}), alphabet).tolist() == [-1, -1]


def test_a_dictionary_as_long_as_its_index_type_allows() -> None:
    alphabet = Alphabet.of(range(128), 128, "x")
    indices = pa.array([*range(128), None], pa.int8())
    column = pa.DictionaryArray.from_arrays(indices, pa.array([str(i) for i in range(128)]))
    assert input_codes(pa.record_batch({"x": column}), alphabet).tolist() == [*range(128), -1]


def test_large_alphabets_over_several_columns() -> None:
    n = 3000
    symbols = tuple((f"u{i}", f"v{i}") for i in range(n))
    encoder = InputEncoder(Alphabet(("u", "v"), symbols))
    left = pa.array([f"u{i}" for i in range(n)])
    assert encoder.codes(pa.record_batch({"u": left, "v": pa.array([f"v{i}" for i in range(n)])})).tolist() == [
        *range(n)
    ]
    assert set(encoder.codes(pa.record_batch({"u": left, "v": pa.array([f"v{i + 1}" for i in range(n)])}))) == {-1}


def test_columns_that_cannot_be_read_are_refused() -> None:
    alphabet = Alphabet(("x",), (("a",),))
    with pytest.raises(DataError, match="column 'x', which the protocol reads, is not in the table"):
        input_codes(pa.record_batch({"y": pa.array(["a"])}), alphabet)
    with pytest.raises(DataError, match="more than once"):
        input_codes(pa.RecordBatch.from_arrays([pa.array(["a"])] * 2, names=["x", "x"]), alphabet)
    with pytest.raises(DataError, match="column 'x' has type list"):
        input_codes(pa.record_batch({"x": pa.array([["a"]])}), alphabet)


@pytest.mark.parametrize("indices", [[0, 2, 1], [0, -1, 1], [None, 2, 1], [None, -1, 0]])
def test_a_dictionary_that_lacks_an_entry_is_refused(indices: list[int | None]) -> None:
    """Not taken for a null, whose index is the one after the last."""
    damaged = pa.DictionaryArray.from_arrays(pa.array(indices, pa.int8()), pa.array(["a", "b"]), safe=False)
    encoder = InputEncoder(Alphabet(("x",), (("a",), ("b",))))
    with pytest.raises(DataError, match="categories that its dictionary lacks"):
        encoder.codes(pa.record_batch({"x": damaged}))
