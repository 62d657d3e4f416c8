"""Names of outputs: distinct, readable, and never a true value unless nothing else can produce them."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from funnel.alphabet import Alphabet
from funnel.naming import name_outputs

hostile = st.sampled_from(
    ["A", "B", "A or B", "B or A", "others", "A or others", "A (2)", "A or B (2)", "A or B (mixed)", "", " · ", "<b>"]
)


@st.composite
def channels(draw: st.DrawFn) -> tuple[np.ndarray, Alphabet]:
    width = draw(st.integers(1, 2))
    symbols = draw(st.lists(st.tuples(*(hostile,) * width), min_size=1, max_size=6, unique=True))
    cells = st.lists(st.sampled_from([0, 1, 5, 2**60]), min_size=len(symbols), max_size=len(symbols)).filter(any)
    weights = np.array(draw(st.lists(cells, min_size=1, max_size=6)), dtype=np.uint64)
    return weights, Alphabet(tuple("xz"[:width]), tuple(symbols))


@given(channels())
def test_nobody_can_take_a_name_for_a_true_value(channel: tuple[np.ndarray, Alphabet]) -> None:
    weights, inputs = channel
    outputs = name_outputs(weights, inputs, inputs.columns)
    assert len(set(outputs.symbols)) == len(weights)
    for symbol, row in zip(outputs.symbols, weights, strict=True):
        sources = [inputs.symbols[x] for x in np.flatnonzero(row)]
        for j, text in enumerate(symbol):
            if text in {source[j] for source in inputs.symbols}:
                assert {source[j] for source in sources} == {text}


def test_names_read_well() -> None:
    inputs = Alphabet(("x",), (("A",), ("B",), ("C",), ("D",)))
    rows = [[9, 0, 0, 0], [1, 5, 0, 0], [1, 1, 9, 1], [6, 5, 4, 4], [5, 1, 0, 0], [1, 4, 0, 0]]
    names = name_outputs(np.array(rows, dtype=np.uint64), inputs, ("x",)).labels
    assert names == ("A", "B or A", "C or others", "A or B or C or others", "A or B", "B or A (2)")


def test_of_a_protocol_that_reads_the_secret_only_the_published_part_is_named() -> None:
    inputs = Alphabet(("s", "x"), (("u", "A"), ("u", "B"), ("v", "A"), ("v", "B")))
    rows = np.array([[9, 0, 3, 0], [0, 9, 6, 9]], dtype=np.uint64)
    assert name_outputs(rows, inputs, ("x",)).symbols == (("A",), ("B or A",))
