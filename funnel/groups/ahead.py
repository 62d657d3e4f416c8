"""Ahead: what a stage knows of a column that is published later, as classes of its values.

A stage that reads its own columns alone mixes values without knowing which mixtures leave later stages anything to
say. A few classes of the values of the column that tells most of the secret are enough for that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from funnel.groups.records import Records
from funnel.joint import FloatArray, IntArray


@dataclass(frozen=True)
class Ahead:
    """Classes of the values of a column.

    Attributes
    ----------
    column : str
    values : tuple of str
    classes : tuple of int
        The class of every value, 0 to ``number - 1``.
    """

    column: str
    values: tuple[str, ...]
    classes: tuple[int, ...]

    @property
    def number(self) -> int:
        """How many classes there are."""
        return max(self.classes) + 1


def look_ahead(records: Records, later: Sequence[str], number: int) -> tuple[Ahead, IntArray] | None:
    """Classes of the later column that tells most of the secret, and that of every record, (r,).

    None where there is no later column, or one class would be all.

    Parameters
    ----------
    records : Records
    later : sequence of str
    number : int
        Classes at most.
    """
    if number < 2 or not later:
        return None
    laws = []
    for column in later:
        place = records.place(column)
        laws.append(records.law(records.codes[:, place], len(records.values[place])))
    chosen = int(np.argmax([_information(law) for law in laws]))
    classes = classes_of(laws[chosen], number)
    if classes.max() == 0:
        return None
    column = later[chosen]
    place = records.place(column)
    ahead = Ahead(column, records.values[place], tuple(classes.tolist()))
    return ahead, classes[records.codes[:, place]]


def classes_of(law: FloatArray, number: int) -> IntArray:
    """Values in classes whose posteriors of the secret are close; law (c, a), classes (a,).

    Agglomerative information bottleneck (Slonim and Tishby 1999): the two classes are joined that lose least of
    I(S; class), until there are so many. O(a³ c).
    """
    members = [[x] for x in range(law.shape[1])]
    sums = [law[:, x] for x in range(law.shape[1])]
    while len(sums) > number:
        stack = np.array(sums)
        own = _against(stack)
        joined = _against((stack[:, None] + stack[None]).reshape(-1, stack.shape[1])).reshape(len(stack), -1)
        loss = own[:, None] + own[None] - joined
        np.fill_diagonal(loss, np.inf)
        first, second = sorted(np.unravel_index(int(loss.argmin()), loss.shape))
        sums[first] = sums[first] + sums.pop(second)
        members[first] = members[first] + members.pop(second)
    classes = np.empty(law.shape[1], dtype=np.int64)
    for place, group in enumerate(members):
        classes[group] = place
    return classes


def _against(sums: FloatArray) -> FloatArray:
    """Σ_s v_s ln(v_s / Σ v) of every row."""
    totals = sums.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(sums > 0, sums * np.log(sums / totals), 0.0).sum(axis=1))


def _information(law: FloatArray) -> float:
    """I(S; X) of a law (c, a), nats."""
    return float(_against(law.T).sum() - _against(law.sum(axis=1)[None])[0])
