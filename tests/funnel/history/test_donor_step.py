"""The channel over classes that is published of a version of followed donors: balanced, whatever was expected."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from funnel.history.donor_step import _scaled
from funnel.joint import FloatArray
from funnel.protocol import WORD_BITS


@st.composite
def expected(draw: st.DrawFn) -> tuple[FloatArray, FloatArray]:
    """People by own class and output, most of whom go on as they are, some hardly ever; and shares of classes."""
    k = draw(st.integers(2, 5))
    change = 10.0 ** draw(st.integers(-7, 0))
    flows = draw(arrays.arrays(np.float64, (k, k), elements=st.floats(0, 1)))
    sizes = draw(arrays.arrays(np.float64, k, elements=st.floats(0.5, 2)))
    begins = draw(arrays.arrays(np.float64, (k, k), elements=st.floats(0, 1)))
    table = np.concatenate([np.diag(sizes) + change * flows * (1 - np.eye(k)), change * begins], axis=1)
    shares = sizes * draw(arrays.arrays(np.float64, k, elements=st.floats(0.9, 1.1)))
    return table, shares / shares.sum()


@given(expected())
def test_classes_are_as_common_as_they_are_counted(one: tuple[FloatArray, FloatArray]) -> None:
    table, shares = one
    weights = _scaled(table, shares)
    k = len(shares)
    assert [sum(column) for column in weights.T.tolist()] == [2**WORD_BITS] * k
    channel = np.array([[weight / 2**WORD_BITS for weight in row] for row in weights.tolist()])
    assert np.abs((channel[:k] + channel[k:]) @ shares - shares).max() <= 1e-12


def test_nobody_is_told_apart_by_what_is_put_right() -> None:
    # Of the first two classes as many go over as come, and of the last nobody: no scaling takes the flow of one away.
    table = np.array([[90.0, 0, 0, 0, 0, 0], [0.02, 50, 0, 0, 0, 0], [0, 0, 10, 0, 0, 0]])
    shares = np.array([0.59, 0.34, 0.07])
    weights = _scaled(table, shares)
    begins = np.array([[weight / 2**WORD_BITS for weight in row] for row in weights[3:].tolist()])
    assert begins.sum() > 0
    assert np.abs(begins - begins[:, :1]).max() <= 1e-15
