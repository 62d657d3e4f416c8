"""Distributions: what an observer of everything published expects of a person now, P(s, x | h), from how people change.

For the history h of a person whose last version was v, ``α_h(s, x) = P(s, x at v | h)``. Before version t

    P(s, x | h) = Σ_{s', x'} α_h(s', x') K_{v→t}(s, x | s', x')

and after publishing y ``α_{hy} ∝ P(s, x | h) R_t(y | x, h)`` (METHOD section 9). K, the first-order distribution of
changes, is estimated from all people in both v and t. New people have the distribution of t.

What is known of the secret of an earlier version u goes the same way (METHOD section 13): told apart by it once u
begins, ``β_u(s, z) = α(z) 1[S(z) = s]``, cells go on by K and are weighed by R as those of α are; the present secret is
u = t.

Nothing is ever subtracted, so every value is known up to a factor common to a history within a relative error that
grows by about (cells + 8) · 2^-52 a version: see `HistoryDistributions.error`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from funnel.errors import DataError
from funnel.history.changes import Changes
from funnel.history.past import Past
from funnel.joint import FloatArray, IntArray, Joint
from funnel.protocol import WORD_BITS

# The rounding of one operation, doubled: second-order terms of any length that occurs fit into the other half.
UNIT = 2.0**-52
# Operations of a version besides the sum over cells.
_OPERATIONS = 8
# A distribution with a positive entry below this, of a sum of one, is not to be trusted: their products could
# underflow.
_SMALLEST = 2.0**-500
# A table of changes is multiplied as a sparse one where so few of its entries are not zero.
_SPARSE, _LARGE = 0.05, 1 << 16

BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class HistoryDistributions:
    """P(s, x | h) of several histories.

    Attributes
    ----------
    values : ndarray of float64, shape (k, c, a)
        Each summing to 1 up to rounding.
    error : float
        Every entry is the true one times a factor of its history alone, up to this relative error; zeros are true.
    sound : ndarray of bool, shape (k,)
        Where that is so. Elsewhere numbers came near the smallest that doubles can hold.
    likely : ndarray, shape (k,)
        P(h), up to a factor of the versions of h, and with what is known besides.
    """

    values: FloatArray
    error: float
    sound: BoolArray
    likely: FloatArray

    def within(self, inside: BoolArray) -> HistoryDistributions:
        """Those of an observer who knows that the input is one of these, (a,); 0 where no input with the history is."""
        values, sums = _normed(self.values * inside)
        return replace(self, values=values, error=self.error + _OPERATIONS * UNIT, likely=self.likely * sums)

    def at(self, places: IntArray) -> HistoryDistributions:
        """Those at some places."""
        return HistoryDistributions(self.values[places], self.error, self.sound[places], self.likely[places])


def secrets_of(joint: Joint, changes: Changes | None) -> IntArray:
    """Counts of S_t, shape (c,), among the people in both versions, or of all people: the prior of the condition.

    Parameters
    ----------
    joint : Joint
        Of version t.
    changes : Changes or None
        To t from the last version of a history; None for the empty history, and where nobody is in both.
    """
    return np.asarray(cells_of(joint, changes).sum(axis=1))


def cells_of(joint: Joint, changes: Changes | None) -> IntArray:
    """Counts (c, a) of the people in both versions, or of all people; as `secrets_of`."""
    if changes is None or not len(changes.after):
        return joint.counts
    counted: IntArray = np.zeros(joint.counts.size, dtype=np.int64)
    np.add.at(counted, changes.after, changes.records)
    return counted.reshape(joint.counts.shape)


def unseen_distribution(joint: Joint, changes: Changes | None) -> IntArray:
    """Counts (c, a), to be divided by their sum: what follows a cell that nobody in both versions had.

    The distribution of t, of all its people, for the secrets that people in both have: no secret that only new people
    have may get its probability from nowhere.
    """
    return np.asarray(np.where(secrets_of(joint, changes)[:, None] > 0, joint.counts, 0))


class Kernel:
    """K_{v→t} as floats: rows of probabilities of the cells of t, one row for each cell of v.

    Parameters
    ----------
    cells : int
        c·a of version v.
    joint : Joint
        Of version t.
    changes : Changes or None
        From v to t.
    """

    def __init__(self, cells: int, joint: Joint, changes: Changes | None) -> None:
        size = joint.counts.size
        unseen = unseen_distribution(joint, changes).reshape(-1)
        self._otherwise: FloatArray = unseen / unseen.sum()
        # A restriction that leaves one cell per secret is as long a sum as any.
        self.error = (cells + _OPERATIONS) * UNIT
        if changes is None:
            before = after = records = np.zeros(0, dtype=np.int64)
        else:
            before, after, records = changes.before, changes.after, changes.records
        leaving = np.zeros(cells, dtype=np.int64)
        np.add.at(leaving, before, records)
        self._unseen = leaving == 0
        values = records / leaving[before]
        self._table: Any
        if cells * size > _LARGE and len(values) < _SPARSE * cells * size:
            from scipy.sparse import csr_array

            self._table = csr_array((values, (before, after)), shape=(cells, size))
        else:
            self._table = np.zeros((cells, size))
            self._table[before, after] = values

    def after(self, distributions: FloatArray) -> FloatArray:
        """Distributions (…, cells of v) a version later, (…, cells of t)."""
        flat = distributions.reshape(-1, distributions.shape[-1])
        unseen = flat[:, self._unseen].sum(axis=1)
        following = np.asarray(flat @ self._table) + unseen[:, None] * self._otherwise
        return np.asarray(following.reshape(*distributions.shape[:-1], len(self._otherwise)))

    def expected(self, values: FloatArray) -> FloatArray:
        """The mean of values (cells of t, k) given each cell of v, (cells of v, k)."""
        means = np.asarray(self._table @ values)
        means[self._unseen] = self._otherwise @ values
        return means


def distributions_before(
    past: Past,
    nodes: IntArray,
    joint: Joint,
    changes: Mapping[int, Changes],
    secret_of: int | None = None,
    inside: BoolArray | None = None,
) -> HistoryDistributions:
    """P(s, x | h) for the nodes of a past, before the version that comes next.

    Parameters
    ----------
    past : Past
    nodes : ndarray of int64, shape (k,)
    joint : Joint
        Of the version that comes next, counts (c, a).
    changes : mapping of int to Changes
        To that version, by ordinal.
    secret_of : int, optional
        The (first) chapter of an earlier version, in which the people of all these histories were: s is their secret
        then. By default it is that of the version that comes next.
    inside : ndarray of bool, optional
        Of an earlier version: the inputs that a person may have had then, for an observer who knows some columns of
        it; histories that none of these go with are 0.

    Returns
    -------
    HistoryDistributions
        Values (k, c, a), for the c secrets of the version asked for and the a inputs of the one that comes next.

    Raises
    ------
    DataError
        If changes from the last version of some history are missing.

    Notes
    -----
    Matrix products of O(k · cells²) for each version that the histories go through, and for each secret of the version
    asked for.
    """
    known = _after_publishing(past, nodes, secret_of, inside)
    distributions = _before(known, past, nodes, joint, changes)
    values = distributions.values.reshape(*distributions.values.shape[:2], *joint.counts.shape)
    if secret_of is None:
        return replace(distributions, values=values[:, 0])
    # Some numbers more are added up than `HistoryDistributions.error` counts: those of all secrets now.
    return replace(distributions, values=values.sum(axis=2), error=distributions.error + len(joint.secret) * UNIT)


def with_secret_to_come(
    distributions: HistoryDistributions, joint: Joint, within: Changes, rows: int, inside: BoolArray | None = None
) -> HistoryDistributions:
    """P(s, x | h) where s is the secret of a row of the unit that comes so many rows later, (k, c, a).

    Of distributions (k, c, a) by the secret of the row itself, and changes from any row of a unit to the next one.
    For an observer who knows that the later row has one of some inputs, (a,), where these are given.
    """
    kernel = Kernel(joint.counts.size, joint, within)
    secrets = np.repeat(np.eye(len(joint.secret)), len(joint.inputs), axis=0)
    if inside is not None:
        secrets *= np.tile(inside, len(joint.secret))[:, None]
    for _ in range(rows):
        secrets = kernel.expected(secrets)
    values = np.einsum("ksx,sxt->ktx", distributions.values, secrets.reshape(*joint.counts.shape, -1))
    values, sums = _normed(values)
    error = distributions.error + rows * kernel.error + (len(joint.secret) + 2 * _OPERATIONS) * UNIT
    return replace(distributions, values=values, error=error, likely=distributions.likely * sums)


@dataclass(frozen=True, eq=False)
class _After:
    """α of some histories with the same last version: sorted nodes (k,), values (k, secrets, cells).

    By an earlier secret from the version on that it is of; before, there is one of them.
    """

    nodes: IntArray
    values: FloatArray
    error: float
    sound: BoolArray
    likely: FloatArray


def _after_publishing(
    past: Past, nodes: IntArray, secret_of: int | None, inside: BoolArray | None
) -> dict[int, _After]:
    """α of these histories, and of all that they go on from, by the ordinal of their last version."""
    needed: dict[int, list[IntArray]] = {number: [] for number in range(-1, len(past))}
    _sort_in(needed, past, nodes)
    parents: dict[int, IntArray] = {}
    wanted: dict[int, IntArray] = {}
    for number in reversed(range(len(past))):
        chapter = past.chapters[number]
        wanted[number] = np.unique(np.concatenate([*needed[number], np.zeros(0, dtype=np.int64)]))
        parents[number] = chapter.parents[wanted[number] - chapter.first]
        _sort_in(needed, past, np.unique(parents[number]))
    known: dict[int, _After] = {}
    for number in range(len(past)):
        chapter, these = past.chapters[number], wanted[number]
        if not len(these):
            continue
        before, places = np.unique(parents[number], return_inverse=True)
        distributions = _before(known, past, before, chapter.joint, chapter.changes)
        channels = chapter.channels_of(before)[places]
        rows = chapter.library[channels, chapter.outputs[these - chapter.first]].astype(np.float64)
        c, a = chapter.joint.counts.shape
        by_cell = distributions.values[places].reshape(len(these), distributions.values.shape[1], c, a)
        if number == secret_of:
            by_cell = by_cell * np.eye(c)[None, :, :, None] * (True if inside is None else inside)
        values = (by_cell * rows[:, None, None, :]).reshape(len(these), by_cell.shape[1], c * a)
        if inside is None and (values.sum(axis=(1, 2)) <= 0).any():
            raise DataError(f"version {chapter.version!r} has answers that its own channel never gives")
        values, sums = _normed(values)
        smallest = np.min(values, axis=(1, 2), initial=1.0, where=values > 0)
        known[number] = _After(
            these,
            values,
            distributions.error + _OPERATIONS * UNIT,
            distributions.sound[places] & (smallest >= _SMALLEST),
            distributions.likely[places] * sums * 2.0**-WORD_BITS,
        )
    return known


def _normed(distributions: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Distributions (k, …, …) divided by their sums, and these, (k,); those that are 0 stay so."""
    sums = distributions.sum(axis=(1, 2))
    return distributions / np.where(sums > 0, sums, 1.0)[:, None, None], sums


def _sort_in(needed: dict[int, list[IntArray]], past: Past, nodes: IntArray) -> None:
    versions = past.versions_of(nodes)
    for number in np.unique(versions).tolist():
        needed[number].append(nodes[versions == number])


def _before(
    known: Mapping[int, _After], past: Past, nodes: IntArray, joint: Joint, changes: Mapping[int, Changes]
) -> HistoryDistributions:
    """The same from what is known of these histories after their last versions; values (k, secrets, cells)."""
    versions = past.versions_of(nodes)
    # Either all of them began before the version whose secret is asked for, or none did.
    secrets = max((known[number].values.shape[1] for number in np.unique(versions).tolist() if number >= 0), default=1)
    values = np.empty((len(nodes), secrets, joint.counts.size))
    sound, likely = np.ones(len(nodes), dtype=bool), np.ones(len(nodes))
    error = UNIT * _OPERATIONS
    for number in np.unique(versions).tolist():
        here = np.flatnonzero(versions == number)
        if number < 0:
            values[here] = joint.p.reshape(-1)
            continue
        if number not in changes:
            raise DataError(f"the changes since version {past.chapters[number].version!r} have not been counted")
        after = known[number]
        places = np.searchsorted(after.nodes, nodes[here])
        kernel = Kernel(past.chapters[number].joint.counts.size, joint, changes[number])
        values[here] = kernel.after(after.values[places])
        sound[here], likely[here] = after.sound[places], after.likely[places]
        error = max(error, after.error + kernel.error)
    return HistoryDistributions(values, error, sound, likely)
