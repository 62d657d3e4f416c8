"""Sets of unary encoding: drawn with the right probabilities, written so that they can be read back."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from funnel import Alphabet, DataError, Joint
from funnel.mechanisms.oue import UnaryEncoding, draw_sets, parse_set, parse_sets, set_label, set_labels, to_table
from funnel.mechanisms.unary import listed_sets, listed_weights
from funnel.rounding import marginal_weights

names = st.one_of(
    st.sampled_from(
        ["", " ", "a", "b", "a, b", "{}", "{a}", "}", '"', '"a"', "\\", "a}", ", ", ",", "\n", "é, ü", "\ud800"]
    ),
    st.text(max_size=6),
)


@given(st.lists(names, max_size=4), st.lists(names, max_size=4))
def test_different_lists_have_different_texts_that_read_back(one: list[str], other: list[str]) -> None:
    assert parse_set(set_label(one)) == tuple(one)
    assert (set_label(one) == set_label(other)) == (one == other)


@given(st.lists(st.tuples(names, names), max_size=4))
def test_columns_of_a_set_read_back_together(members: list[tuple[str, str]]) -> None:
    labels = set_labels(members, 2)
    assert len(labels) == 2
    assert parse_sets(labels) == tuple(members)


def test_plain_values_are_written_as_they_are() -> None:
    assert set_label([]) == "{}"
    assert set_label(["Bachelors", "Some-college", "5th-6th"]) == "{Bachelors, Some-college, 5th-6th}"
    assert set_label(["Café", "5 o'clock", "a, b", "\u200b"]) == '{Café, 5 o\'clock, "a, b", "\\u200b"}'
    assert set_labels([("Masters", "F"), ("Masters", "M")], 2) == ("{Masters, Masters}", "{F, M}")


@given(st.text(alphabet='{}a, "\\n', max_size=12))
def test_a_text_is_a_set_or_refused(label: str) -> None:
    try:
        values = parse_set(label)
    except DataError as error:
        assert repr(label) in str(error)  # noqa: PT017
    else:
        assert set_label(values) == label


@pytest.mark.parametrize("label", ["", "{", "}", "a", "{a", "{a,b}", "{a, }", '{"a"}', '{"a}', '{"a" b}', "{a} "])
def test_what_no_set_is_written_as_is_refused(label: str) -> None:
    with pytest.raises(DataError, match="is no set of values"):
        parse_set(label)


def test_columns_that_do_not_fit_are_refused() -> None:
    with pytest.raises(DataError, match="different numbers of values"):
        parse_sets(("{a}", "{}"))


def test_sets_come_with_their_probabilities() -> None:
    """Every known input, one that never occurred, and one outside: 4 symbols, 16 sets."""
    joint = Joint.from_counts([[30, 10, 20, 0], [10, 50, 20, 0]])
    encoding = UnaryEncoding.at(joint, 0.9)
    listed = listed_weights(encoding)
    sets = listed_sets(4)
    draws = 20_000
    for code in (0, 1, 2, 3, -1):
        law = listed[:, code] if code in (0, 1, 2) else marginal_weights(joint, listed)
        rows = draw_sets(encoding, np.full(draws, code))
        seen = Counter(tuple(np.flatnonzero(row).tolist()) for row in rows)
        expected = law / law.sum(dtype=np.float64)
        result = chisquare([seen[members] for members in sets], expected / expected.sum() * draws)
        assert result.pvalue > 1e-9


def test_a_bit_is_set_by_exactly_as_many_words_as_its_weight() -> None:
    joint = Joint.from_counts([[3, 5], [4, 1]])
    encoding = UnaryEncoding.of(joint, 12345)
    for number, others, own in (
        (12344, True, True),
        (12345, False, True),
        (2**62 - 1, False, True),
        (2**62, False, False),
    ):
        for low in (0, 1):
            word = np.uint64(2 * number + low)

            def words(n: int, word: np.uint64 = word) -> npt.NDArray[np.uint64]:
                return np.full(n, word)

            assert draw_sets(encoding, np.array([0, 1]), words).tolist() == [[own, others], [others, own]]


def test_many_rows_are_drawn_in_pieces() -> None:
    joint = Joint.from_counts(np.arange(1, 401).reshape(2, 200))
    encoding = UnaryEncoding.at(joint, 3.0)
    rows = draw_sets(encoding, np.arange(20_000) % 200)
    own = rows[np.arange(20_000), np.arange(20_000) % 200]
    # Seven standard deviations either way.
    assert abs(own.mean() - 0.5) < 7 * 0.5 / 20_000**0.5
    q = encoding.other_weight / 2**63
    assert abs(rows.sum() - own.sum() - 20_000 * 199 * q) < 7 * (20_000 * 199 * q) ** 0.5


def test_codes_are_left_as_they_were_and_checked() -> None:
    encoding = UnaryEncoding.at(Joint.from_counts([[3, 5], [4, 1]]), 1.0)
    codes = np.array([-1, 0, 1])
    assert draw_sets(encoding, codes).shape == (3, 2)
    assert codes.tolist() == [-1, 0, 1]
    assert draw_sets(encoding, np.array([], dtype=np.int64)).shape == (0, 2)
    for wrong in (np.array([2]), np.array([-2]), np.array([0.0]), np.array([[0]])):
        with pytest.raises(DataError, match="input codes"):
            draw_sets(encoding, wrong)


def test_sets_as_columns_of_lists(tmp_path: Path) -> None:
    inputs = Alphabet(("level", "sex"), (("Masters", "F"), ("Masters", "M"), ("Doctorate", "F")))
    joint = Joint(np.array([[3, 5, 2], [4, 1, 9]]), Alphabet.of(None, 2, "s"), inputs)
    encoding = UnaryEncoding.at(joint, 1.0)
    table = to_table(encoding, np.array([[True, True, False], [False, False, False], [False, True, True]]))
    assert table.schema.field("level").type == pa.list_(pa.dictionary(pa.int32(), pa.string()))
    assert table.to_pydict() == {
        "level": [["Masters", "Masters"], [], ["Masters", "Doctorate"]],
        "sex": [["F", "M"], [], ["M", "F"]],
    }
    pq.write_table(table, tmp_path / "sets.parquet")
    assert pq.read_table(tmp_path / "sets.parquet").to_pydict() == table.to_pydict()
    with pytest.raises(DataError, match="no rows of bits"):
        to_table(encoding, np.zeros((2, 2), dtype=np.bool_))
