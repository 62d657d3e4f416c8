"""Widening: counts over every combination of the values that columns may have, not only over those that occur."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np

from funnel.alphabet import Alphabet
from funnel.errors import DataError
from funnel.joint import Joint
from funnel.wording import listed

# Noise is drawn for each: some seconds for so many.
MAX_COMBINATIONS = 1 << 19


def widened(
    counted: Joint,
    values: Mapping[str, Sequence[str]],
    inputs: Alphabet | None = None,
    impossible: Sequence[Mapping[str, Sequence[str]]] = (),
) -> Joint:
    """The same counts over the product of the values of the columns; zero where nobody is.

    Which combinations occur is a fact about people; which values there may be is not.

    Parameters
    ----------
    counted : Joint
        Counts of combinations of these values.
    values : mapping of column to sequence of str
        The public values of every column, in order.
    inputs : Alphabet, optional
        All inputs that there may be, where these are public and not the product of values.
    impossible : sequence of mapping of column to sequence of str
        Inputs that there cannot be: whose value of every column named is one of those listed.

    Raises
    ------
    DataError
        If these are too many combinations, or the counts are of other values.
    """
    columns = counted.secret.columns + (counted.inputs.columns if inputs is None else ())
    if lacking := [column for column in columns if column not in values]:
        raise DataError(f"nobody says which values {listed(lacking)} may have; learn the categories first")
    if (size := math.prod(len(values[column]) for column in columns)) > MAX_COMBINATIONS:
        largest = sorted(columns, key=lambda column: -len(values[column]))
        has = ", ".join(f"{column} {len(values[column]):,}" for column in largest)
        raise DataError(
            f"the values that the columns may have make {size:,} combinations ({has}), and noise is drawn for at most "
            f"{MAX_COMBINATIONS:,}; list fewer values of {largest[0]!r} in [categories], group them in [recode], or "
            "publish fewer columns"
        )
    secret = _product(counted.secret.columns, values)
    inputs = possible(_product(counted.inputs.columns, values), impossible) if inputs is None else inputs
    rows, places = (
        np.array([wide.get(symbol) for symbol in narrow.symbols])
        for wide, narrow in ((secret, counted.secret), (inputs, counted.inputs))
    )
    if (rows < 0).any() or (places < 0).any():
        raise DataError("the counts are of values that are not among those the columns may have; count them again")
    counts = np.zeros((len(secret), len(inputs)), dtype=np.int64)
    counts[np.ix_(rows, places)] = counted.counts
    return Joint(counts, secret, inputs)


def n_possible(
    columns: tuple[str, ...],
    values: Mapping[str, Sequence[str]],
    impossible: Sequence[Mapping[str, Sequence[str]]] = (),
) -> int:
    """How many combinations of the values of columns there may be; all of them where these are too many to list."""
    size = math.prod(len(values[column]) for column in columns)
    return len(possible(_product(columns, values), impossible)) if impossible and size <= MAX_COMBINATIONS else size


def possible(alphabet: Alphabet, impossible: Sequence[Mapping[str, Sequence[str]]]) -> Alphabet:
    """An alphabet without the symbols whose value of every column that one of these names is one of those listed.

    Raises
    ------
    DataError
        If a value of a column is in none that is left.
    """
    if not impossible:
        return alphabet
    places = [
        [(alphabet.columns.index(column), frozenset(listed)) for column, listed in one.items()] for one in impossible
    ]
    left = tuple(
        symbol for symbol in alphabet.symbols if not any(all(symbol[k] in of for k, of in one) for one in places)
    )
    for k, column in enumerate(alphabet.columns):
        every, found = ({symbol[k] for symbol in symbols} for symbols in (alphabet.symbols, left))
        if lost := sorted(every - found):
            raise DataError(
                f"[[impossible]] leaves no combination with {lost[0]!r} of {column!r}; leave that value out of "
                "[categories], or list fewer combinations"
            )
    return Alphabet(alphabet.columns, left)


def _product(columns: tuple[str, ...], values: Mapping[str, Sequence[str]]) -> Alphabet:
    return Alphabet(columns, tuple(product(*(values[column] for column in columns))))
