"""Attacks: how often the best guess of the secret is right, from a record, with side information, over versions; pure.

Each figure is the theoretical optimum of its kind of attacker, who knows the counts of the source and the protocol: the
Bayes guess takes the likeliest secret, and no other guess is right more often (METHOD section 1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from funnel.joint import FloatArray, IntArray

if TYPE_CHECKING:
    from scipy.sparse import csc_array

# Q(y|x), shape (b, a): all of it, or of a wide table the entries that are not zero.
Channel: TypeAlias = "FloatArray | csc_array"

# Multiplications that a table of attacks is worth: about a second.
_LARGEST = 2e9


@dataclass(frozen=True)
class Attack:
    """One attacker.

    Attributes
    ----------
    before, after : float
        Probability that the Bayes guess of the secret is right without the published record, and with it.
    information : float
        What the record tells about the secret beyond what the attacker knows, I(S;Y|Z), nats.
    """

    before: float
    after: float
    information: float

    @property
    def gain(self) -> float:
        """How much more often the guess is right."""
        return self.after - self.before


def attack(counts: IntArray, channel: Channel) -> Attack | None:
    """The best guess of the secret from a published record and a column of the source.

    Parameters
    ----------
    counts : ndarray of int64, shape (c, a, k)
        Records by secret, input and value of the side column; k = 1 for an attacker who knows none.
    channel : ndarray or sparse array, shape (b, a)
        Q(y|x).

    Returns
    -------
    Attack or None
        None where the table would have to be larger than is worth it.

    Notes
    -----
    ``P(s, y, z) = Σ_x P(s, x, z) Q(y|x)``, from which ``Σ_{y,z} max_s P(s, y, z)``; O(c k) an entry of the channel.
    """
    c, _, k = counts.shape
    if float(c) * k * entries(channel) > _LARGEST:
        return None
    total = counts.sum()
    before = np.zeros(3)
    for z in range(k):
        # One value at a time, so that memory stays that of one table.
        distribution = counts[:, :, z] / total
        if distribution.any():
            before += _guesses(distribution @ channel.T)
    return Attack(float(before[0]), float(before[1]), float(before[2]))


def both_versions(distribution: FloatArray, channel: Channel, other: Channel) -> Attack | None:
    """The best guess from two records of one person that were drawn independently, one by each channel.

    Parameters
    ----------
    distribution : ndarray, shape (c, a)
        P(s, x).
    channel, other : ndarray or sparse array, shapes (b, a) and (b', a)

    Returns
    -------
    Attack or None
        None where there are too many pairs of outputs.
    """
    c, a = distribution.shape
    if float(c) * a * channel.shape[0] * other.shape[0] > _LARGEST:
        return None
    one, two = (part if isinstance(part, np.ndarray) else part.toarray() for part in (channel, other))
    prior = distribution.sum(axis=1)
    right = 0.0
    informed = _entropy(prior)
    for row in one:
        seen = (distribution * row) @ two.T
        right += float(seen.max(axis=0).sum())
        informed -= _entropy(seen) - _entropy(seen.sum(axis=0))
    return Attack(float(prior.max()), right, max(0.0, informed))


def entries(channel: Channel) -> int:
    """How many numbers a channel is made of."""
    return int(channel.size if isinstance(channel, np.ndarray) else channel.nnz)


def true_value(distribution: FloatArray) -> Attack:
    """The best guess from the true value itself, which many fresh draws come close to; (c, a)."""
    return Attack(*map(float, _guesses(distribution)))


def worst_first(attacks: Sequence[tuple[str, Attack]]) -> list[tuple[str, Attack]]:
    """Named attacks: what gains most first, then what is told most."""
    return sorted(attacks, key=lambda named: (-round(named[1].gain, 12), -named[1].information, named[0]))


def _guesses(distribution: FloatArray) -> FloatArray:
    """Of a distribution of (s, y), (c, b), that may sum to less than one: right before, right after, information."""
    known = distribution.sum(axis=1)
    return np.array([known.max(), distribution.max(axis=0).sum(), _information(distribution, known)])


def _entropy(distribution: FloatArray) -> float:
    """-Σ P ln P, also of a part of a distribution."""
    there = distribution[distribution > 0]
    return float(-(there * np.log(there)).sum())


def _information(distribution: FloatArray, prior: FloatArray) -> float:
    """Σ P(s, y) ln (P(s, y) P / (P(s) P(y))), for a distribution that sums to P; prior: shape (c,), summing to P."""
    independent = np.outer(prior, distribution.sum(axis=0)) / prior.sum()
    there = distribution > 0
    return max(0.0, float((distribution[there] * np.log(distribution[there] / independent[there])).sum()))
