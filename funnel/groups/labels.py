"""Labels: what outputs of a stage are called, as sets of values in one order."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

ANY = "any"
"""What is published of a column where nothing is said: the value is any of those that there are."""

# Sets that leave out so few values are named by these.
_FEW_LEFT_OUT = 2
OR, BUT = " or ", "any but "


def set_label(values: tuple[str, ...], members: npt.NDArray[np.bool_]) -> str:
    """The text for a set of values, which holds the value of every record that it is published of.

    Parameters
    ----------
    values : tuple of str
        All values of the column, in their order.
    members : ndarray of bool, shape (values,)

    Returns
    -------
    str
        The value itself; all values in their order, ``"A or B"``; ``"any but A or B"`` where that is shorter; `ANY`.
        Never the text of a value, unless it is that value alone, and no two sets have one text: in a column with a
        value that reads like a set itself, such as ``"A or B"``, sets have their values in quotes.
    """
    inside = [value for value, member in zip(values, members.tolist(), strict=True) if member]
    outside = [value for value, member in zip(values, members.tolist(), strict=True) if not member]
    if len(inside) == 1 and outside:
        return inside[0]
    if _reads_like_a_set(values):
        inside, outside = [_quoted(value) for value in inside], [_quoted(value) for value in outside]
    if not outside:
        label = ANY
    elif len(outside) <= _FEW_LEFT_OUT and len(outside) < len(inside):
        label = BUT + OR.join(outside)
    else:
        label = OR.join(inside)
    # A source may itself hold the value "A or B".
    while label in values:
        label += " (mixed)"
    return label


@lru_cache(maxsize=64)
def _reads_like_a_set(values: tuple[str, ...]) -> bool:
    """Whether a value could be taken for a set of others, or for two of its members."""
    return any(OR in f" {value} " or value.startswith((BUT, '"')) for value in values)


def _quoted(value: str) -> str:
    return '"' + value.replace('"', '""') + '"'


def stage_labels(
    values: list[tuple[str, ...]], codes: npt.NDArray[np.int64], possible: npt.NDArray[np.bool_]
) -> list[tuple[str, ...]]:
    """One text per column for every output of a channel.

    Parameters
    ----------
    values : list of tuple of str
        Of every column of the stage.
    codes : ndarray of int64, shape (a, columns)
        The values of every input.
    possible : ndarray of bool, shape (b, a)
        Which inputs an output may come from.
    """
    labels = []
    for row in possible:
        texts = []
        for j, of_column in enumerate(values):
            members = np.zeros(len(of_column), dtype=np.bool_)
            members[codes[row, j]] = True
            texts.append(set_label(of_column, members))
        labels.append(tuple(texts))
    return labels
