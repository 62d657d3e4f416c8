"""Donor beliefs: the secrets of a person, and whether the record published for them is their own, in whole numbers.

A person is published as one person after another, who are *followed*: for whom a record stands in one version it
stands in the next, as what it is by then, until another one begins. The hidden state is the person's own cell, whether
the record is theirs, and, if it is not, the cell of the donor (METHOD section 12).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from funnel.history.changes import Changes
from funnel.history.distributions import secrets_of
from funnel.history.exact_distribution import WholeNumbers, moved_on
from funnel.joint import FloatArray, IntArray, Joint


@dataclass(frozen=True, eq=False)
class Belief:
    """What an observer believes of the people with a history, up to a factor; z are cells, secret by class.

    Attributes
    ----------
    own : ndarray of Python integers, shape (u, c, z)
        The secret of each version so far, and the cell in the last one, of people whose record is their own.
    others : ndarray of Python integers, shape (u, c, z)
        The same of people whose record is a donor's; the cell is still the person's.
    donor : ndarray of Python integers, shape (z,)
        The cell of a donor, up to a factor of its own.
    versions : tuple of int
        The u versions.
    priors : tuple of ndarray, shape (c,)
        How common each secret was in each of them, among the people who came to it from the same version.
    everybody : ndarray of Python integers, shape (z,)
        People of the last version by their cell, whatever was published of them; of rows of units up to a factor.
    """

    own: WholeNumbers
    others: WholeNumbers
    donor: WholeNumbers
    versions: tuple[int, ...]
    priors: tuple[IntArray | WholeNumbers, ...]
    everybody: WholeNumbers

    @classmethod
    def of_new(cls, people: IntArray, secrets: int, version: int) -> Belief:
        """Of people before anything is published of them: as if the record were theirs."""
        distribution = people.astype(object)
        by_secret = people.reshape(secrets, -1).sum(axis=1)
        own = _with_secret(distribution, secrets)
        return cls(own, own * 0, distribution, (version,), (by_secret,), distribution)

    def at(self, version: int, joint: Joint, changes: Changes) -> Belief:
        """Before a later version with counts (c, k), the secret of which is one more."""
        people = joint.counts.reshape(-1).astype(object)
        return self._moved(version, joint, changes, people, secrets_of(joint, changes))

    def next_row(self, version: int, joint: Joint, changes: Changes) -> Belief:
        """Before the next row of a unit, which follows the one before as in all units; its secret is one more."""
        secrets = self.own.shape[1]
        everybody = moved_on(self.everybody.reshape(secrets, -1), joint, changes)
        return self._moved(version, joint, changes, everybody.reshape(-1), everybody.sum(axis=1))

    def _moved(
        self,
        version: int,
        joint: Joint,
        changes: Changes,
        everybody: WholeNumbers,
        prior: IntArray | WholeNumbers,
    ) -> Belief:
        u, c, z = self.own.shape
        of_people = np.stack([self.own, self.others]).reshape(2, u, c, c, z // c)
        own, others = moved_on(of_people, joint, changes).reshape(2, u, c, -1)
        # Beliefs in the cell are the same whichever secret they are added up over.
        own, others = (np.concatenate([one, _with_secret(one[-1].sum(axis=0), c)]) for one in (own, others))
        return replace(
            self,
            own=own,
            others=others,
            donor=moved_on(self.donor.reshape(c, z // c), joint, changes).reshape(-1),
            versions=(*self.versions, version),
            priors=(*self.priors, prior),
            everybody=everybody,
        )

    def read(self, stays: Fraction) -> WholeNumbers:
        """P(S_u = s, what a channel reads) up to a factor, (u, c, 2k + 1).

        It reads the class of a record that is the person's own, that of the donor's, or that the donor is gone.
        """
        u, c, z = self.own.shape
        classes = z // c
        own = self.own.reshape(u, c, c, classes).sum(axis=2)
        of_donor, everywhere = self._of_donor(stays)
        others = self.others.sum(axis=2)[:, :, None]
        gone = others * (everywhere - sum(of_donor.tolist()))
        return np.concatenate([own * everywhere, others * of_donor, gone], axis=2)

    def to_come(self, row: RowToCome, stays: Fraction) -> WholeNumbers:
        """`read` of the secret of a row to come, (c, 2k + 1)."""
        c, z = self.own.shape[1:]
        of_donor, everywhere = self._of_donor(stays)
        own, others = (one[-1].sum(axis=0) for one in (self.own, self.others))
        of_class = (own[:, None] * row.given).reshape(c, z // c, c).sum(axis=0).T
        by_secret = (others @ row.given)[:, None]
        gone = by_secret * (everywhere - sum(of_donor.tolist()))
        return np.concatenate([of_class * everywhere, by_secret * of_donor, gone], axis=1)

    def by_class(self) -> tuple[FloatArray, FloatArray]:
        """P(class of the person, the record is their own | h), and of those who have a donor's; (k,) each."""
        own, others = (
            one[-1].sum(axis=0).reshape(self.own.shape[1], -1).sum(axis=0).tolist() for one in (self.own, self.others)
        )
        total = sum(own) + sum(others)
        return np.array([mass / total for mass in own]), np.array([mass / total for mass in others])

    def donor_read(self, stays: Fraction) -> FloatArray:
        """P(class of a donor who is there, and last that the donor is gone | h), (k + 1,)."""
        of_donor, everywhere = self._of_donor(stays)
        there = [mass / everywhere for mass in of_donor.tolist()]
        return np.array([*there, max(0.0, 1 - math.fsum(there))])

    def published(self, stays: Fraction, output: int, weights: list[int]) -> Belief:
        """Once an output is seen, with its weights (2k + 1,)."""
        k = len(weights) // 2
        if len(self.versions) == 1:
            return self.begun(output - k, weights[:k])
        if output >= k:
            return self.replaced(stays, output - k, weights)
        return self.after(stays, output, weights[output], weights[k + output])

    def after(self, stays: Fraction, k: int, own_weight: int, donor_weight: int) -> Belief:
        """Once the same person goes on, as one of class k, with weights for a record of one's own and a donor's."""
        of_donor, everywhere = self._of_donor(stays)
        in_class = np.arange(self.donor.size) % len(of_donor) == k
        own = self.own * in_class * (everywhere * own_weight)
        return replace(self, own=own, others=self.others * (of_donor[k] * donor_weight), donor=self.donor * in_class)

    def begun(self, k: int, weights: list[int]) -> Belief:
        """Once a first record is of class k, with weights (k,) of that for people of each class."""
        of_class = np.arange(self.donor.size) % len(weights)
        weighted = self.own * np.array(weights, dtype=object)[of_class]
        return replace(
            self,
            own=weighted * (of_class == k),
            others=weighted * (of_class != k),
            donor=self.donor * (of_class == k),
        )

    def replaced(self, stays: Fraction, k: int, weights: list[int]) -> Belief:
        """Once another record begins, of class k, with weights (2k + 1,)."""
        of_donor, everywhere = self._of_donor(stays)
        classes = len(of_donor)
        of_class = np.arange(self.donor.size) % classes
        own = self.own * (np.array(weights[:classes], dtype=object)[of_class] * everywhere)
        reads = [*of_donor.tolist(), everywhere - sum(of_donor.tolist())]
        others = self.others * sum(one * weight for one, weight in zip(reads, weights[classes:], strict=True))
        return replace(self, own=own * 0, others=own + others, donor=self.everybody * (of_class == k))

    def _of_donor(self, stays: Fraction) -> tuple[WholeNumbers, int]:
        """How likely a donor is there and of each class, (k,), and how likely anything is, up to one factor."""
        by_class = self.donor.reshape(self.own.shape[1], -1).sum(axis=0)
        return by_class * stays.numerator, sum(by_class.tolist()) * stays.denominator


@dataclass(frozen=True, eq=False)
class RowToCome:
    """A row of a unit after the one that is drawn.

    Attributes
    ----------
    given : ndarray of Python integers, shape (z, c)
        How likely each secret of it is, given the cell of the one that is drawn; up to a factor.
    prior : ndarray of Python integers, shape (c,)
        How common each is.
    """

    given: WholeNumbers
    prior: WholeNumbers


def rows_to_come(everybody: WholeNumbers, joint: Joint, within: Changes, rows: int) -> tuple[RowToCome, ...]:
    """So many rows after one in which units have the cells (z,), by how a row follows another in all units."""
    c, found = len(joint.secret), []
    apart = np.eye(everybody.size, dtype=np.int64).astype(object).reshape(-1, *joint.counts.shape)
    everybody = everybody.reshape(c, -1)
    for _ in range(rows):
        apart, everybody = moved_on(apart, joint, within), moved_on(everybody, joint, within)
        found.append(RowToCome(apart.sum(axis=2), everybody.sum(axis=1)))
    return tuple(found)


def _with_secret(distribution: WholeNumbers, secrets: int) -> WholeNumbers:
    """A distribution of cells (z,), told apart by their secret, (1, c, z)."""
    of_secret = np.arange(distribution.size) // (distribution.size // secrets)
    return np.asarray(distribution * (of_secret == np.arange(secrets)[:, None]))[None]
