"""Streams of rows cut to even or bounded sizes: the same rows in the same order."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from funnel.sampling.chunks import even_chunks, sliced


@given(st.lists(st.integers(0, 40), max_size=8), st.integers(1, 50))
def test_even_chunks_keep_rows_and_are_even(sizes: list[int], rows: int) -> None:
    source = np.arange(sum(sizes))
    arrays = (source[start:stop] for start, stop in pairwise(np.cumsum([0, *sizes])))
    chunks = list(even_chunks(arrays, rows))
    np.testing.assert_array_equal(np.concatenate([source[:0], *chunks]), source)
    assert all(len(chunk) == rows for chunk in chunks[:-1])
    assert all(0 < len(chunk) <= rows for chunk in chunks)


@given(st.lists(st.integers(0, 40), max_size=8), st.integers(1, 50))
def test_slices_keep_rows_and_are_bounded(sizes: list[int], rows: int) -> None:
    batches = [
        pa.record_batch({"x": np.arange(start, stop)}) for start, stop in pairwise(np.cumsum([0, *sizes]).tolist())
    ]
    slices = list(sliced(batches, rows))
    assert [x for batch in slices for x in batch.column("x").to_pylist()] == list(range(sum(sizes)))
    assert all(0 < batch.num_rows <= rows for batch in slices)
