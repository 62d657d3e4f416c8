"""Readable, distinct names for output symbols, made from the inputs they stand for."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from funnel.alphabet import Alphabet
from funnel.protocol import WeightArray
from funnel.sparse_weights import SparseWeights

OTHERS = "others"
_SHOWN = 3


def name_outputs(weights: WeightArray | SparseWeights, inputs: Alphabet, published: tuple[str, ...]) -> Alphabet:
    """Name every output by the values it comes from, one text per published column.

    A plain value, such as ``"Bachelors"``, is used only for an output that no record with another value of that
    column can ever produce. An output of two or three values names them all, ``"Bachelors or Masters"``, the one that
    produces it most readily first; an output of more names the readiest and ends in ``"or others"``. Of sparse weights
    they are named in the order of the alphabet: of a wide table, where many outputs are made of the same few values of
    a column, which comes first says nothing, and one set of values has one name.

    Parameters
    ----------
    weights : ndarray of uint64, shape (b, a), or SparseWeights
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
    is_wide = isinstance(weights, SparseWeights)
    entries = weights if isinstance(weights, SparseWeights) else SparseWeights.of(weights)
    per_column = [_column_names(entries, inputs, inputs.columns.index(column), is_wide) for column in published]
    taken: set[tuple[str, ...]] = set()
    numbers: dict[tuple[str, ...], int] = {}
    symbols = []
    for texts in zip(*per_column, strict=True):
        symbol = texts
        while symbol in taken:
            # Two outputs can mix the same values in other proportions: number them, in the last column.
            numbers[texts] = numbers.get(texts, 1) + 1
            symbol = (*texts[:-1], f"{texts[-1]} ({numbers[texts]})")
        taken.add(symbol)
        symbols.append(symbol)
    return _apart_from_true_values(symbols, per_column, inputs, published)


def _column_names(weights: SparseWeights, inputs: Alphabet, position: int, as_listed: bool) -> list[str]:
    distinct = inputs.texts[position]
    known: dict[tuple[int, ...], str] = {}
    names = []
    for order, strength in _readiest(weights, inputs.codes[:, position], len(distinct)):
        # Of wide tables most outputs are made of the same few values of a column.
        key = (*order, -1, *(code for code in order if strength[code] >= strength[order[0]] / 2))
        if key not in known:
            known[key] = _one_name(order, strength, distinct, as_listed)
        names.append(known[key])
    return names


def _readiest(
    weights: SparseWeights, codes: npt.NDArray[np.intp], number: int
) -> Iterator[tuple[list[int], dict[int, float]]]:
    """For every output the values that can produce it, the readiest first, and how readily each does.

    That is as its likeliest input symbol does, whatever else the symbol holds.
    """
    key, place = np.unique(weights.outputs * number + codes[weights.inputs], return_inverse=True)
    strength = np.zeros(len(key))
    np.maximum.at(strength, place, weights.values.astype(np.float64))
    outputs, values = key // number, key % number
    order = np.lexsort((values, -strength, outputs))
    ends = np.searchsorted(outputs, np.arange(weights.shape[0]), side="right").tolist()
    code_list, strength_list = values[order].tolist(), strength[order].tolist()
    for start, end in zip([0, *ends[:-1]], ends, strict=True):
        here = code_list[start:end]
        yield here, dict(zip(here, strength_list[start:end], strict=True))


def _one_name(order: list[int], strength: dict[int, float], distinct: tuple[str, ...], as_listed: bool) -> str:
    if len(order) == 1:
        return distinct[order[0]]
    named, rest = order, []
    if len(order) > _SHOWN:
        named, rest = [code for code in order if strength[code] >= strength[order[0]] / 2][:_SHOWN], [OTHERS]
    parts = [distinct[code] for code in (sorted(named) if as_listed else named)] + rest
    name = " or ".join(parts)
    # A source may itself hold the value "A or B".
    while name in distinct:
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
