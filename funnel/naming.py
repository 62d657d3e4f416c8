"""Readable, distinct names for output symbols, made from the inputs they stand for."""

from __future__ import annotations

import numpy as np

from funnel.alphabet import Alphabet
from funnel.protocol import FloatArray, WeightArray

OTHERS = "others"
_SHOWN = 3


def name_outputs(weights: WeightArray, inputs: Alphabet, published: tuple[str, ...]) -> Alphabet:
    """Name every output by the values it comes from, one text per published column.

    A plain value, such as ``"Bachelors"``, is used only for an output that no record with another value of that
    column can ever produce. An output of two or three values names them all, ``"Bachelors or Masters"``, the one that
    produces it most readily first; an output of more names the readiest and ends in ``"or others"``.

    Parameters
    ----------
    weights : ndarray of uint64, shape (b, a)
        Channel weights.
    inputs : Alphabet
        What the protocol reads; contains the published columns.
    published : tuple of str
        Columns to name.

    Returns
    -------
    Alphabet
        b distinct symbols over the published columns; none equals a true value unless it can only mean that value.
    """
    rows = weights.astype(np.float64)
    per_column = [_column_names(rows, inputs, inputs.columns.index(column)) for column in published]
    taken: set[tuple[str, ...]] = set()
    symbols = []
    for texts in zip(*per_column, strict=True):
        symbol, number = texts, 2
        while symbol in taken:
            # Two outputs can mix the same values in other proportions: number them, in the last column.
            symbol = (*texts[:-1], f"{texts[-1]} ({number})")
            number += 1
        taken.add(symbol)
        symbols.append(symbol)
    return _apart_from_true_values(symbols, per_column, inputs, published)


def _column_names(rows: FloatArray, inputs: Alphabet, position: int) -> list[str]:
    values = [symbol[position] for symbol in inputs.symbols]
    distinct = list(dict.fromkeys(values))
    place = {value: code for code, value in enumerate(distinct)}
    codes = np.array([place[value] for value in values])
    # How readily a value produces the output: its likeliest input symbol, whatever else the symbol holds.
    strength = np.zeros((len(rows), len(distinct)))
    for code in range(len(distinct)):
        strength[:, code] = rows[:, codes == code].max(axis=1)
    true_values = set(distinct)
    return [_one_name(row, distinct, true_values) for row in strength]


def _one_name(strength: FloatArray, distinct: list[str], true_values: set[str]) -> str:
    order: list[int] = np.argsort(-strength, kind="stable")[: np.count_nonzero(strength > 0)].tolist()
    if len(order) == 1:
        return distinct[order[0]]
    if len(order) <= _SHOWN:
        parts = [distinct[code] for code in order]
    else:
        strong = [code for code in order if strength[code] >= strength[order[0]] / 2][:_SHOWN]
        parts = [distinct[code] for code in strong] + [OTHERS]
    name = " or ".join(parts)
    # A source may itself hold the value "A or B".
    while name in true_values:
        name += " (mixed)"
    return name


def _apart_from_true_values(
    symbols: list[tuple[str, ...]], per_column: list[list[str]], inputs: Alphabet, published: tuple[str, ...]
) -> Alphabet:
    """Keep the numbered names from coinciding with a true value or another name."""
    last = inputs.columns.index(published[-1])
    true_values = {symbol[last] for symbol in inputs.symbols}
    taken = set(symbols)
    final = []
    for symbol, plain in zip(symbols, per_column[-1], strict=True):
        adjusted = symbol
        while (adjusted[-1] != plain and adjusted[-1] in true_values) or (adjusted != symbol and adjusted in taken):
            adjusted = (*adjusted[:-1], f"{adjusted[-1]} (mixed)")
        final.append(adjusted)
    return Alphabet(published, tuple(final))
