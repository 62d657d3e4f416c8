"""Growing: the questions that tell most of the secret, as long as classes are large enough and keep the rules."""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from funnel.donors.record_classes import Question, RecordClasses
from funnel.joint import FloatArray, IntArray, Joint

BoolArray = npt.NDArray[np.bool_]
Allowed = Callable[[IntArray], BoolArray]
"""Of tables of the secret in classes, shape (c, k), which of the k classes may be."""


@dataclass(frozen=True, eq=False)
class _Cut:
    """A question about the records of a class: a column, values of it, and what it tells (nats · records)."""

    gain: float
    column: int
    values: IntArray


def record_classes(joint: Joint, least: int, most: int, possible: Allowed, allowed: Allowed) -> RecordClasses:
    """Classes of records between which the secret differs most.

    The records are cut by the question that tells most of the secret, then again the part whose best question tells
    most, until none tells more than what the Bayesian information criterion asks of a further part. Parts that may not
    be classes are put together with those that are most like them. In a class nothing is known of the secret but its
    counts: an observer who reads a record concludes what its class says. So the classes are what the bound of a wide
    release is about, and as fine as the records and the rules allow.

    Parameters
    ----------
    joint : Joint
        Counts (c, a) of the secret and of whole records.
    least : int
        Records of a class, at least.
    most : int
        Parts, at most.
    possible : callable
        Which parts may be, by their counts.
    allowed : callable
        Which of these may be classes.

    Returns
    -------
    RecordClasses

    Notes
    -----
    O(records · columns) for every question. Of two values of the secret the cut of a column that tells most is one
    along P(s | value) (Breiman et al. 1984, theorem 4.5); of more the best along each of these is taken.
    """
    records = _Records.of(joint)
    number = itertools.count()
    # Negative gains, since a heap begins with the smallest; numbers decide between equal ones.
    waiting: list[tuple[float, int, _Cut]] = []
    parts: dict[int, IntArray] = {}
    asked: dict[int, tuple[_Cut, int, int]] = {}

    def enter(members: IntArray) -> int:
        mine = next(number)
        parts[mine] = members
        if (cut := records.best_cut(members, least, possible)) is not None:
            heapq.heappush(waiting, (-cut.gain, mine, cut))
        return mine

    enter(np.arange(len(joint.inputs)))
    while waiting and len(asked) + 1 < most:
        _, mine, cut = heapq.heappop(waiting)
        members = parts.pop(mine)
        inside = np.isin(records.codes[members, cut.column], cut.values)
        asked[mine] = cut, enter(members[inside]), enter(members[~inside])
    tables = np.stack([joint.counts[:, members].sum(axis=1) for members in parts.values()], axis=1)
    class_of = dict(zip(parts, pooled(tables, allowed).tolist(), strict=True))
    return _named(records, asked, class_of, joint.inputs.columns)


def pooled(tables: IntArray, allowed: Allowed) -> IntArray:
    """Parts put together until all may be classes: of counts (c, k) of the secret in parts, the class of each (k,).

    Again and again the smallest part that may not be one is joined with that with which least is lost of what parts
    tell of the secret; everything, in the end.
    """
    of = np.arange(tables.shape[1])
    tables = tables.copy()
    while True:
        left = np.unique(of)
        refused = left[~allowed(tables[:, left])]
        if not len(refused) or len(left) == 1:
            return np.searchsorted(left, of)
        worst = refused[tables[:, refused].sum(axis=0).argmin()]
        others = left[left != worst]
        joined = tables[:, others] + tables[:, worst, np.newaxis]
        lost = _information(joined) - _information(tables[:, others])
        best = others[lost.argmin()]
        tables[:, best] += tables[:, worst]
        of[of == worst] = best


def _named(
    records: _Records, asked: dict[int, tuple[_Cut, int, int]], class_of: dict[int, int], columns: tuple[str, ...]
) -> RecordClasses:
    """Questions in the order in which they follow from each other, and names of classes in that of their questions."""
    order = list(_preorder(asked))
    numbers = {node: i for i, node in enumerate(node for node in order if node in asked)}
    classes = list(dict.fromkeys(class_of[node] for node in order if node not in asked))
    width = len(str(len(classes)))
    names = {of: f"{i:0{width}d}" for i, of in enumerate(classes, 1)}
    questions = []
    for node in numbers:
        cut, then, otherwise = asked[node]
        values = tuple(records.values[cut.column][value] for value in sorted(cut.values.tolist()))
        ends = [numbers[end] if end in numbers else names[class_of[end]] for end in (then, otherwise)]
        questions.append(Question(columns[cut.column], values, *ends))
    return RecordClasses(columns, tuple(questions), tuple(names.values()))


def _preorder(asked: dict[int, tuple[_Cut, int, int]]) -> Iterator[int]:
    waiting = [0]
    while waiting:
        node = waiting.pop()
        yield node
        if node in asked:
            waiting += [asked[node][2], asked[node][1]]


@dataclass(frozen=True, eq=False)
class _Records:
    """Whole records by numbers: counts (c, a), codes (a, columns), and the values that codes stand for."""

    counts: IntArray
    codes: IntArray
    values: tuple[tuple[str, ...], ...]

    @classmethod
    def of(cls, joint: Joint) -> _Records:
        codes = np.empty((len(joint.inputs), len(joint.inputs.columns)), dtype=np.int64)
        values = []
        for j in range(codes.shape[1]):
            numbers: dict[str, int] = {}
            codes[:, j] = [numbers.setdefault(symbol[j], len(numbers)) for symbol in joint.inputs.symbols]
            values.append(tuple(numbers))
        return cls(joint.counts, codes, tuple(values))

    def best_cut(self, members: IntArray, least: int, possible: Allowed) -> _Cut | None:
        """The question about these records that tells most; None if none tells enough."""
        counts = self.counts[:, members]
        total = counts.sum(axis=1)
        if total.sum() < 2 * least:
            return None
        best, tried = None, 0
        for j, values in enumerate(self.values):
            table = np.zeros((len(counts), len(values)), dtype=np.int64)
            for of_secret, row in zip(table, counts, strict=True):
                np.add.at(of_secret, self.codes[members, j], row)
            there = np.flatnonzero(table.sum(axis=0))
            if len(there) < 2:
                continue
            tried += len(there) - 1
            for s in range(1 if len(table) == 2 else 0, len(table)):
                order = there[np.argsort(table[s, there] / table[:, there].sum(axis=0), kind="stable")]
                inside = np.cumsum(table[:, order], axis=1)[:, :-1]
                outside = total[:, np.newaxis] - inside
                gains = _information(total[:, np.newaxis]) - _information(inside) - _information(outside)
                fit = (inside.sum(axis=0) >= least) & (outside.sum(axis=0) >= least)
                gains[~(fit & possible(inside) & possible(outside))] = -1.0
                at = int(gains.argmax())
                if gains[at] > (0.0 if best is None else best.gain):
                    best = _Cut(float(gains[at]), j, order[: at + 1])
        if best is None or 2 * best.gain < (len(counts) - 1) * math.log(self.counts.sum()) + 2 * math.log(tried):
            return None
        return best


def _information(tables: IntArray) -> FloatArray:
    """Entropy of the secret times records, of every column of a table (c, k), in nats."""
    whole = tables.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        parts = np.where(tables > 0, tables * np.log(tables / np.maximum(whole, 1)), 0.0)
    return np.asarray(-parts.sum(axis=0))
