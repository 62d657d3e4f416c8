"""Alphabets: distinct symbols in a stable order, found by their texts."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from funnel import Alphabet, SpecError
from funnel.alphabet import natural_key, product

texts = st.text(st.sampled_from("ab·019٣ -."), max_size=6)


@given(st.lists(st.tuples(texts, texts), unique=True, max_size=8))
def test_positions_are_those_of_the_symbols(symbols: list[tuple[str, str]]) -> None:
    alphabet = Alphabet(("s", "x"), tuple(symbols))
    assert len(alphabet) == len(symbols)
    assert [alphabet.index(symbol) for symbol in symbols] == list(range(len(symbols)))
    assert list(alphabet) == [" · ".join(symbol) for symbol in symbols]
    assert all(symbol in alphabet for symbol in symbols)
    assert alphabet.get(("absent", "absent")) == -1
    assert ("absent", "absent") not in alphabet
    with pytest.raises(KeyError):
        alphabet.index(("absent", "absent"))


def test_a_single_column_is_indexed_by_plain_text() -> None:
    alphabet = Alphabet.of(["a", "b", 3], 3, "X")
    assert alphabet.columns == ("X",)
    assert [alphabet.index(text) for text in ("a", "b", "3")] == [0, 1, 2]
    assert "3" in alphabet
    assert Alphabet.of(alphabet, 3, "ignored") is alphabet
    assert Alphabet.of(None, 2, "S").labels == ("S0", "S1")


@pytest.mark.parametrize(
    ("columns", "symbols", "word"),
    [
        ((), (), "at least one column"),
        (("x", "x"), (), "columns .* distinct"),
        (("x",), (("a",), ("a",)), "symbols .* distinct"),
        (("x",), (("a", "b"),), "needs 1 texts"),
    ],
)
def test_what_is_no_alphabet(columns: tuple[str, ...], symbols: tuple[tuple[str, ...], ...], word: str) -> None:
    with pytest.raises(SpecError, match=word):
        Alphabet(columns, symbols)


def test_a_product_has_the_first_alphabet_varying_slowest() -> None:
    both = product(Alphabet.of("uv", 2, "s"), Alphabet.of("abc", 3, "x"))
    assert both.columns == ("s", "x")
    assert both.symbols == tuple(itertools.product("uv", "abc"))
    with pytest.raises(SpecError, match="distinct"):
        product(Alphabet.of("uv", 2, "x"), Alphabet.of("ab", 2, "x"))


def test_numbers_inside_texts_are_ordered_by_value() -> None:
    ordered = ["<1", "age 9", "age 10", "01", "1", "9", "10", "10-19", "20-29", "100-109"]
    assert sorted(reversed(ordered), key=natural_key) == ordered
    assert sorted(["9" * 400, "1"], key=natural_key) == ["1", "9" * 400]


@given(
    st.lists(texts, unique=True, max_size=8).flatmap(lambda values: st.tuples(st.just(values), st.permutations(values)))
)
def test_the_order_does_not_depend_on_where_it_started(orders: tuple[list[str], list[str]]) -> None:
    one, other = orders
    assert sorted(one, key=natural_key) == sorted(other, key=natural_key)
