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

    Parameters
    ----------
    joint : Joint
        Counts of (S, X), shape (c, a): those of every version.
    versions : tuple of str
        Names of the versions so far, in order.
    histories : tuple of tuple of int
        The m paths, in lexicographic order of their path so far: places of the outputs, one a version.
    weights : ndarray of uint64, shape (m, a)
        Columns summing to exactly 2^63.

    Raises
    ------
    SpecError
        If shapes do not fit, a path is listed twice, or a column does not sum to 2^63.

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
    >>> twice = Paths.of(joint, "1", first).extended("2", [first, first])
    >>> twice.histories, round(funnel.LIP(0.25).level_for(joint, twice.weights).value, 3)
    (((0, 0), (0, 1), (1, 0), (1, 1)), 0.433)
    """

    joint: Joint
    versions: tuple[str, ...]
    histories: tuple[tuple[int, ...], ...]
    weights: WeightArray

    def __post_init__(self) -> None:
        weights = np.array(self.weights)
        if weights.dtype != np.uint64:
            raise SpecError(f"weights of paths must be unsigned 64-bit integers, not {weights.dtype}")
        if weights.shape != (len(self.histories), len(self.joint.inputs)):
            raise SpecError(
                f"weights of shape {weights.shape} do not fit {len(self.histories)} paths and "
                f"{len(self.joint.inputs)} inputs"
            )
        if any(len(history) != len(self.versions) for history in self.histories):
            raise SpecError(f"every path needs one output for each of the {len(self.versions)} versions")
        if len(set(self.histories)) != len(self.histories):
            raise SpecError("a path is listed twice")
        if (weights > np.uint64(DENOMINATOR)).any() or any(total != DENOMINATOR for total in exact_sums(weights)):
            raise SpecError("the weights of all paths must sum to exactly 2^63 for every input")
        weights.setflags(write=False)
        object.__setattr__(self, "weights", weights)

    @classmethod
    def of(cls, joint: Joint, version: str, weights: WeightArray) -> Paths:
        """The paths of a first version, drawn by these weights (b, a); outputs of weight zero everywhere are no paths.

        Raises
        ------
        SpecError
            As the class.
        """
        start = np.full((1, len(joint.inputs)), DENOMINATOR, dtype=np.uint64)
        return cls(joint, (), ((),), start).extended(version, [weights])

    def extended(self, version: str, rows: Sequence[WeightArray]) -> Paths:
        """The paths after one more version.

        Parameters
        ----------
        version : str
            Its name.
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
            If the version is there already, or the rows are not one channel for every path.

        Notes
        -----
        O(m b a) in whole numbers of any size.
        """
        if version in self.versions:
            raise SpecError(f"version {version!r} is among the paths already; give every version a name of its own")
        if len(rows) != len(self.histories):
            raise SpecError(f"{len(rows)} channels were given for {len(self.histories)} paths; give one for each")
        histories: list[tuple[int, ...]] = []
        parts: list[WeightArray] = []
        for history, weights, channel in zip(self.histories, self.weights, rows, strict=True):
            cut = _cut(weights, channel)
            kept = np.flatnonzero(cut.any(axis=1))
            histories += [(*history, y) for y in kept.tolist()]
            parts.append(cut[kept])
        return Paths(self.joint, (*self.versions, version), tuple(histories), np.concatenate(parts))

    def holds(self, guarantee: Guarantee) -> bool:
        """Whether all versions together meet the guarantee: decided on the integer weights, in exact arithmetic."""
        return guarantee.holds_for(self.joint, self.weights)

    def of_version(self, version: str, outputs: Alphabet) -> Protocol:
        """The protocol of a single version: the distribution of its output given the input, whatever came before it.

        Parameters
        ----------
        version : str
        outputs : Alphabet
            What the outputs of that version mean.

        Raises
        ------
        SpecError
            If there is no such version, or a path leads to an output beyond the alphabet.
        """
        if version not in self.versions:
            raise SpecError(f"there is no version {version!r} among the paths of {', '.join(self.versions)}")
        at = self.versions.index(version)
        weights = np.zeros((len(outputs), len(self.joint.inputs)), dtype=np.uint64)
        for history, row in zip(self.histories, self.weights, strict=True):
            if history[at] >= len(outputs):
                raise SpecError(f"version {version!r} has more outputs than the {len(outputs)} of the alphabet")
            weights[history[at]] += row
        return Protocol(weights, marginal_weights(self.joint, weights), self.joint.inputs, outputs, "paths")


def _cut(weights: WeightArray, channel: WeightArray) -> WeightArray:
    """The interval of length ``weights`` (a,) of one path, cut in the proportions of a channel (b, a); exact sums."""
    channel = np.asarray(channel)
    if channel.dtype != np.uint64 or channel.ndim != 2 or channel.shape[1] != len(weights):
        raise SpecError(
            f"a channel for {len(weights)} inputs needs unsigned 64-bit weights of shape (b, {len(weights)})"
        )
    if (channel > np.uint64(DENOMINATOR)).any() or any(total != DENOMINATOR for total in exact_sums(channel)):
        raise SpecError("every column of the weights of a version must sum to exactly 2^63")
    thresholds = np.cumsum(channel.astype(object), axis=0) * weights.astype(object) // DENOMINATOR
    return np.asarray(np.diff(thresholds, axis=0, prepend=0).astype(np.uint64))
