"""Paths: what several versions say together about values that do not change, as integer weights of whole histories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from funnel.alphabet import Alphabet
from funnel.errors import SpecError
from funnel.guarantees.base import Guarantee
from funnel.joint import Joint
from funnel.protocol import DENOMINATOR, Protocol, WeightArray, exact_sums
from funnel.rounding import marginal_weights


@dataclass(frozen=True, eq=False)
class Paths:
    """The exact distribution of everything published so far about people whose secret and input never change.

    A *path* is the tuple of outputs published about a person, one for every version. ``W[h, x] / 2^63`` is the
    probability of path h given the input x, and the weights of a path's continuations add up to its own:
    ``Σ_y W_t[hy, x] = W_{t-1}[h, x]``. So the next version is drawn by ``W_t[hy, x] / W_{t-1}[h, x]``, all versions
    together are one ordinary protocol whose outputs are paths, and the ordinary exact decision on its weights decides
    what everybody knows who keeps every version (METHOD section 9, "Bookkeeping that is exact").

    Attributes
    ----------
    joint : Joint
        Counts of (S, X), shape (c, a): those of every version.
    histories : tuple of tuple of int
        The m paths, in lexicographic order of their path so far: places of the outputs, one a version.
    weights : ndarray of uint64, shape (m, a)
        Columns summing to exactly 2^63.

    Notes
    -----
    Children of a path stand where the path stood, so that the thresholds of W_t on [0, 2^63) refine those of W_{t-1}:
    one word of 63 bits that belongs to a person draws all versions by exactly these weights.

    Examples
    --------
    >>> import funnel
    >>> from funnel.history.paths import Paths
    >>> joint = funnel.Joint.from_counts([[30, 10], [10, 50]])
    >>> first = funnel.fit("grr", joint, funnel.LIP(0.25)).weights
    >>> twice = Paths.of(joint, first).extended([first, first])
    >>> twice.histories, round(funnel.LIP(0.25).level_for(joint, twice.weights).value, 3)
    (((0, 0), (0, 1), (1, 0), (1, 1)), 0.475)
    """

    joint: Joint
    histories: tuple[tuple[int, ...], ...]
    weights: WeightArray

    @classmethod
    def of(cls, joint: Joint, weights: WeightArray) -> Paths:
        """The paths of a first version, drawn by these weights (b, a); outputs of weight zero everywhere are no paths.

        Raises
        ------
        SpecError
            As of `extended`.
        """
        return cls(joint, ((),), np.full((1, len(joint.inputs)), DENOMINATOR, dtype=np.uint64)).extended([weights])

    def extended(self, rows: Sequence[WeightArray]) -> Paths:
        """The paths after one more version.

        Parameters
        ----------
        rows : sequence of ndarray of uint64, each (b, a)
            For every path, in the order of ``histories``, the weights ``R(y|x, h)`` of the next output, each column
            summing to 2^63. They may differ in b.

        Returns
        -------
        Paths
            The interval of a path is cut where R's thresholds fall in it, rounded down: every weight is within one unit
            of ``W[h, x] R[y, x] / 2^63``, zeros stay zeros, and the sums are exact.

        Raises
        ------
        SpecError
            If a column of a channel does not sum to 2^63.

        Notes
        -----
        O(m b a) in whole numbers of any size.
        """
        histories: list[tuple[int, ...]] = []
        parts: list[WeightArray] = []
        for history, weights, channel in zip(self.histories, self.weights, rows, strict=True):
            if any(total != DENOMINATOR for total in exact_sums(channel)):
                raise SpecError("every column of the weights of a version must sum to exactly 2^63")
            # The interval of the path, cut in the proportions of the channel.
            thresholds = np.cumsum(channel.astype(object), axis=0) * weights.astype(object) // DENOMINATOR
            cut = np.diff(thresholds, axis=0, prepend=0).astype(np.uint64)
            kept = np.flatnonzero(cut.any(axis=1))
            histories += [(*history, y) for y in kept.tolist()]
            parts.append(cut[kept])
        return Paths(self.joint, tuple(histories), np.concatenate(parts))

    def holds(self, guarantee: Guarantee) -> bool:
        """Whether all versions together meet the guarantee: decided on the integer weights, in exact arithmetic."""
        return guarantee.holds_for(self.joint, self.weights)

    @property
    def last(self) -> Protocol:
        """The protocol of the last version: the distribution of its output given the input, whatever came before."""
        of_path = np.array([history[-1] for history in self.histories])
        weights = np.zeros((int(of_path.max()) + 1, len(self.joint.inputs)), dtype=np.uint64)
        np.add.at(weights, of_path, self.weights)
        outputs = Alphabet.of(None, len(weights), "Y")
        return Protocol(weights, marginal_weights(self.joint, weights), self.joint.inputs, outputs, "paths")
