"""Exact law: P(s, x | h) of one history in whole numbers, for what floats leave open and for whoever asks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from funnel.errors import DataError
from funnel.history.changes import Changes
from funnel.history.distributions import unseen_distribution
from funnel.history.past import Past
from funnel.joint import Joint

WholeNumbers = npt.NDArray[np.object_]


@dataclass(eq=False)
class ExactDistributions:
    """Laws of histories in whole numbers, up to a factor; what histories have in common is computed once.

    Parameters
    ----------
    past : Past
    """

    past: Past
    _after: dict[int, WholeNumbers] = field(default_factory=dict, repr=False)

    def before(self, node: int, joint: Joint, changes: Mapping[int, Changes]) -> WholeNumbers:
        """P(s, x | h) before a version, times some whole number; Python integers, shape (c, a).

        Parameters
        ----------
        node : int
        joint : Joint
            Of that version.
        changes : mapping of int to Changes
            To it, by ordinal.

        Notes
        -----
        O(cells + changes) operations a version, on numbers that grow by a few hundred digits a version.
        """
        if node == 0:
            return joint.counts.astype(object)
        number = int(self.past.versions_of(np.array([node]))[0])
        return moved_on(self.after(node), joint, changes.get(number))

    def after(self, node: int) -> WholeNumbers:
        """α of a history, times some whole number; Python integers, shape (c, a) of its last version."""
        if node not in self._after:
            chapter = self.past.chapters[int(self.past.versions_of(np.array([node]))[0])]
            place = node - chapter.first
            parent, output = int(chapter.parents[place]), int(chapter.outputs[place])
            channel = int(chapter.channels_of(np.array([parent]))[0])
            law = self.before(parent, chapter.joint, chapter.changes)
            self._after[node] = published(law, chapter.library[channel, output].tolist())
        return self._after[node]


def moved_on(law: WholeNumbers, joint: Joint, changes: Changes | None) -> WholeNumbers:
    """A law over the cells of an earlier version, (c', a'), as one over those of a version, (c, a)."""
    weights = law.reshape(-1).tolist()
    leaving = [0] * len(weights)
    rows = [] if changes is None else list(zip(*(column.tolist() for column in _columns(changes)), strict=True))
    for before, _, records in rows:
        leaving[before] += records
    otherwise = unseen_distribution(joint, changes).reshape(-1).tolist()
    total = sum(otherwise)
    unseen = sum(weight for weight, count in zip(weights, leaving, strict=True) if not count)
    sizes = [count for weight, count in zip(weights, leaving, strict=True) if weight and count]
    common = math.lcm(total, *sizes) if unseen else math.lcm(1, *sizes)
    following = [unseen * (common // total) * value for value in otherwise] if unseen else [0] * len(otherwise)
    for before, after, records in rows:
        if weights[before]:
            following[after] += weights[before] * (common // leaving[before]) * records
    return _reduced(following, joint.counts.shape)


def published(law: WholeNumbers, row: Sequence[int]) -> WholeNumbers:
    """A law (c, a) once an output with these weights (a,) is known.

    Raises
    ------
    DataError
        If the output never occurs.
    """
    after = [[value * weight for value, weight in zip(values, row, strict=True)] for values in law.tolist()]
    if not any(map(any, after)):
        raise DataError("no such history is possible: one of its outputs never occurs after those before it")
    return _reduced([value for values in after for value in values], law.shape)


def _columns(changes: Changes) -> tuple[npt.NDArray[np.int64], ...]:
    return changes.before, changes.after, changes.records


def _reduced(values: list[int], shape: tuple[int, ...]) -> WholeNumbers:
    common = math.gcd(*values) or 1
    reduced = np.empty(len(values), dtype=object)
    reduced[:] = [value // common for value in values]
    return reduced.reshape(shape)
