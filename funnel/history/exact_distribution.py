"""Exact distribution: P(s, x | h) of one history in whole numbers, for what floats leave open and for whoever asks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from funnel.errors import DataError
from funnel.history.changes import Changes
from funnel.history.distributions import BoolArray, unseen_distribution
from funnel.history.past import Past
from funnel.joint import Joint

WholeNumbers = npt.NDArray[np.object_]


@dataclass(eq=False)
class ExactDistributions:
    """Distributions of histories in whole numbers, up to a factor; what histories have in common is computed once.

    Parameters
    ----------
    past : Past
    """

    past: Past
    _after: dict[tuple[int, int | None, bytes | None], WholeNumbers] = field(default_factory=dict, repr=False)

    def before(
        self,
        node: int,
        joint: Joint,
        changes: Mapping[int, Changes],
        secret_of: int | None = None,
        inside: BoolArray | None = None,
    ) -> WholeNumbers:
        """P(s, x | h) before a version, times some whole number; Python integers, shape (c, a).

        Parameters
        ----------
        node : int
        joint : Joint
            Of that version.
        changes : mapping of int to Changes
            To it, by ordinal.
        secret_of : int, optional
        inside : ndarray of bool, optional
            As of `funnel.history.distributions.distributions_before`.

        Notes
        -----
        O(cells + changes) operations a version, on numbers that grow by a few hundred digits a version.
        """
        distribution = self._before(node, joint, changes, secret_of, inside)
        return distribution if secret_of is None else np.asarray(distribution.sum(axis=1))

    def _before(
        self,
        node: int,
        joint: Joint,
        changes: Mapping[int, Changes],
        secret_of: int | None,
        inside: BoolArray | None,
    ) -> WholeNumbers:
        """The same with an axis of the earlier secret before the others, where one is asked for."""
        if node == 0:
            return joint.counts.astype(object)
        number = int(self.past.versions_of(np.array([node]))[0])
        return moved_on(self._published(node, number, secret_of, inside), joint, changes.get(number))

    def _published(self, node: int, number: int, secret_of: int | None, inside: BoolArray | None) -> WholeNumbers:
        """α of a history that ends in a chapter, times some whole number; (c, a) of it, with the same axis before."""
        asked = secret_of if secret_of is not None and number >= secret_of else None
        inside = None if asked is None else inside
        key = node, asked, None if inside is None else inside.tobytes()
        if key not in self._after:
            chapter = self.past.chapters[number]
            place = node - chapter.first
            parent, output = int(chapter.parents[place]), int(chapter.outputs[place])
            channel = int(chapter.channels_of(np.array([parent]))[0])
            distribution = self._before(
                parent, chapter.joint, chapter.changes, None if asked == number else asked, inside
            )
            if asked == number:
                distribution = by_own_secret(distribution if inside is None else distribution * inside)
            self._after[key] = published(distribution, chapter.library[channel, output].tolist())
        return self._after[key]


def by_own_secret(distribution: WholeNumbers) -> WholeNumbers:
    """A distribution (c, a) told apart by its secret, (c, c, a): of every secret what is of it, and else 0."""
    apart = np.zeros((len(distribution), *distribution.shape), dtype=object)
    for secret, values in enumerate(distribution):
        apart[secret, secret] = values
    return apart


def moved_on(distribution: WholeNumbers, joint: Joint, changes: Changes | None) -> WholeNumbers:
    """A distribution over the cells of an earlier version, (…, c', a'), as one over those of a version, (…, c, a)."""
    parts = distribution.reshape(-1, distribution.shape[-2] * distribution.shape[-1]).tolist()
    weights = [sum(column) for column in zip(*parts, strict=True)]
    leaving = [0] * len(weights)
    rows = [] if changes is None else list(zip(*(column.tolist() for column in _columns(changes)), strict=True))
    for before, _, records in rows:
        leaving[before] += records
    otherwise = unseen_distribution(joint, changes).reshape(-1).tolist()
    total = sum(otherwise)
    lost = any(weight and not count for weight, count in zip(weights, leaving, strict=True))
    sizes = [count for weight, count in zip(weights, leaving, strict=True) if weight and count]
    common = math.lcm(total, *sizes) if lost else math.lcm(1, *sizes)
    following: list[int] = []
    for part in parts:
        unseen = sum(weight for weight, count in zip(part, leaving, strict=True) if not count)
        found = [unseen * (common // total) * value for value in otherwise] if unseen else [0] * len(otherwise)
        for before, after, records in rows:
            if part[before]:
                found[after] += part[before] * (common // leaving[before]) * records
        following += found
    return _reduced(following, (*distribution.shape[:-2], *joint.counts.shape))


def with_exact_secret_to_come(
    distribution: WholeNumbers, joint: Joint, within: Changes, rows: int, inside: BoolArray | None = None
) -> WholeNumbers:
    """`funnel.history.distributions.with_secret_to_come` of a distribution in whole numbers, (c, a), up to a factor."""
    apart = np.zeros((distribution.shape[1], *distribution.shape), dtype=object)
    every = np.arange(distribution.shape[1])
    apart[every, :, every] = distribution.T
    for _ in range(rows):
        apart = moved_on(apart, joint, within)
    return np.asarray((apart if inside is None else apart * inside).sum(axis=2).T)


def published(distribution: WholeNumbers, row: Sequence[int]) -> WholeNumbers:
    """A distribution (…, c, a) once an output with these weights (a,) is known.

    Raises
    ------
    DataError
        If the output never occurs.
    """
    after = (distribution * np.array(row, dtype=object)).reshape(-1).tolist()
    if not any(after):
        raise DataError("no such history is possible: one of its outputs never occurs after those before it")
    return _reduced(after, distribution.shape)


def _columns(changes: Changes) -> tuple[npt.NDArray[np.int64], ...]:
    return changes.before, changes.after, changes.records


def _reduced(values: list[int], shape: tuple[int, ...]) -> WholeNumbers:
    common = math.gcd(*values) or 1
    reduced = np.empty(len(values), dtype=object)
    reduced[:] = [value // common for value in values]
    return reduced.reshape(shape)
