"""Moves: what noisy tables tell of how people changed since an earlier version, and the distribution made of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from funnel.errors import DataError, SpecError
from funnel.frequencies.noise import NoiseSecret, draw_noise, scale_of
from funnel.history.changes import Changes, MoveLimits, counted_moves, same_inputs
from funnel.joint import IntArray, Joint, freeze

SECRET_PARTS: Final = 1 << 15
"""Of how many parts the distribution of a secret given the one before is made."""

INPUT_PARTS: Final = 1 << 20
"""Of how many parts the distribution of the published input of those who left theirs is made."""

TABLES: Final = 2
"""In how many counts one person is: one of `secrets`, and one of `stayed` and `left`, over all earlier versions."""

# Beyond it, sums of records would not fit 64 bits.
_MOST_PEOPLE = 1 << 27


@dataclass(frozen=True, eq=False)
class Moves:
    """How many people went where since the version that is the last one of theirs; exact, or with noise.

    Parameters
    ----------
    since : str
        The earlier version v, as the register names it: ``"series/1.0.0"``.
    secrets : ndarray of int64, shape (c_v, c_t)
        People whose last version is v, by their secret then and now.
    stayed, left : ndarray of int64, shape (c_v, a_v) or (c_v, 1)
        The same people by secret and published input then, or by secret alone: whose published input now has the same
        labels, and whose has not. With noise all of these may be negative.

    Raises
    ------
    SpecError
        If the tables do not fit one another.
    """

    since: str
    secrets: IntArray
    stayed: IntArray
    left: IntArray

    def __post_init__(self) -> None:
        freeze(self, "secrets", "stayed", "left")
        fits = self.secrets.ndim == self.stayed.ndim == 2 and self.stayed.shape == self.left.shape
        if not fits or len(self.secrets) != len(self.stayed):
            raise SpecError(f"the tables of the moves since {self.since} do not fit one another")

    @classmethod
    def counted(cls, since: str, changes: Changes, earlier: Joint, joint: Joint) -> Moves:
        """The exact moves of people whose last version is an earlier one.

        Parameters
        ----------
        since : str
        changes : Changes
            Of exactly these people.
        earlier, joint : Joint
            Distributions of both versions; their alphabets are what counts.
        """
        return cls(since, *counted_moves(changes, earlier, joint))

    @property
    def by_secret(self) -> Moves:
        """The same counted by secret alone: fewer counts, of more people each, under as much noise."""
        return Moves(self.since, self.secrets, *(one.sum(axis=1, keepdims=True) for one in (self.stayed, self.left)))

    def limits(self, most: int) -> MoveLimits:
        """What the true counts are between, if noise moved none of these by more.

        Parameters
        ----------
        most : int
            From `funnel.frequencies.limits.moves_limit`.

        Raises
        ------
        SpecError
            If people are not counted by secret alone.
        """
        if self.stayed.shape[1] != 1:
            raise SpecError(f"the moves since {self.since} are counted by published input, and so leave too much open")
        tables = (self.secrets, self.stayed[:, 0], self.left[:, 0])
        return MoveLimits(*(np.maximum(np.stack([one - most, one + most]), 0) for one in tables))

    def require_fitting(self, earlier: Joint, joint: Joint) -> None:
        """Make sure that these are moves from one version to the other.

        Raises
        ------
        SpecError
            If shapes differ, or somebody is said to have stayed at an input that there no longer is.
        """
        shapes = [(len(earlier.secret), a) for a in (len(earlier.inputs), 1)]
        if self.secrets.shape != (len(earlier.secret), len(joint.secret)) or self.stayed.shape not in shapes:
            raise SpecError(f"the moves since {self.since} are not between the values of these two versions")
        can_stay = _can_stay(self, earlier, joint)
        if self.stayed[:, ~can_stay].any():
            raise SpecError(
                f"the moves since {self.since} say that somebody stayed at an input that is no longer there"
            )

    def changes(self, earlier: Joint, joint: Joint) -> Changes:
        """The distribution of changes that these tables come to, in whole numbers, of which rows matter as ratios.

        Everybody with a secret changes it alike, whatever their input; who leaves an input goes where people with
        their secret of now are. Some of these are where they were: of everybody who takes an input anew, so many more
        are counted that as many end at another one as are known to (`_anew`), where people are counted by input. A
        cell that nobody seems to have had, under the noise, does what most cells do.

        Parameters
        ----------
        earlier, joint : Joint
            Published counts of both versions, clipped at 0.

        Raises
        ------
        SpecError
            If the tables do not fit the versions.
        DataError
            If there are too many people, or too many values, for whole numbers of 64 bits.

        Notes
        -----
        O(c_v a_v c_t a_t).
        """
        self.require_fitting(earlier, joint)
        into = same_inputs(earlier.inputs, joint.inputs)
        kept = _secrets_kept(self.secrets, earlier, joint)
        inputs = inputs_by_secret(joint)
        stay, leave = _weights(self.stayed, self.left, _can_stay(self, earlier, joint))
        if stay.shape[1] != len(into):
            # Of those with a secret as many stay whatever their input, where it is still there; else all leave.
            stay, leave = np.where(into >= 0, stay, 0), np.where(into >= 0, leave, stay + leave)
        else:
            chance = np.where(into >= 0, kept @ inputs[:, into], 0)
            stay, leave = _anew(stay, leave, chance)
        if int(stay.sum()) + int(leave.sum()) >= _MOST_PEOPLE:
            raise DataError(
                f"the moves since {self.since} are of more people than exact arithmetic is laid out for "
                f"({_MOST_PEOPLE:,})"
            )
        c, a = joint.counts.shape
        before, after, records = [], [], []
        for secret in range(len(earlier.secret)):
            for x in range(len(earlier.inputs)):
                to = leave[secret, x] * inputs
                if stay[secret, x]:
                    to[:, into[x]] += stay[secret, x] * INPUT_PARTS
                to *= kept[secret][:, None]
                cells = np.flatnonzero(to)
                before.append(np.full(len(cells), secret * len(earlier.inputs) + x, dtype=np.int64))
                after.append(cells)
                records.append(to.reshape(c * a)[cells])
        return Changes(np.concatenate(before), np.concatenate(after), np.concatenate(records))

    @property
    def people(self) -> int:
        """How many people these are, by the table whose noise adds up least; at least 0."""
        return max(0, int(self.secrets.sum()))


@dataclass(frozen=True, eq=False)
class NoisyMoves:
    """The moves of a version since all earlier ones about the same people, with noise.

    Attributes
    ----------
    epsilon : float
        Differential privacy of all of them together (nats), for one person more or less.
    since : tuple of Moves
        By earlier version, in the order of their publication.
    """

    epsilon: float
    since: tuple[Moves, ...]

    @property
    def scale(self) -> float:
        """Of the noise in every count: the smallest double at or above 2 / epsilon."""
        return scale_of(self.epsilon, TABLES)

    @property
    def counts(self) -> int:
        """How many counts there are."""
        return sum(one.secrets.size + one.stayed.size + one.left.size for one in self.since)


def noisy_moves(
    exact: Sequence[Moves],
    versions: Sequence[Joint],
    joint: Joint,
    epsilon: float,
    secret: NoiseSecret | None = None,
) -> NoisyMoves:
    """Add noise to exact moves, to every count of every table, whether anybody is in it or not.

    Which earlier versions are somebody's last is not to be seen, nor which cells are empty. Only where an input is no
    longer there can nobody have stayed, which alphabets alone tell: these counts are 0.

    Parameters
    ----------
    exact : sequence of Moves
        Since every version of the register.
    versions : sequence of Joint
        Published counts of these versions.
    joint : Joint
        Of this version.
    epsilon : float
        For all tables together.
    secret : NoiseSecret, optional
        What the noise is derived from; without it the noise is fresh.

    Raises
    ------
    SpecError
        If a table does not fit.
    EntropyError
        If no noise can be drawn.
    """
    where, counts = [], []
    for moves, earlier in zip(exact, versions, strict=True):
        moves.require_fitting(earlier, joint)
        where.append(np.broadcast_to(_can_stay(moves, earlier, joint), moves.stayed.shape))
        counts += [moves.secrets.ravel(), moves.stayed[where[-1]], moves.left.ravel()]
    sizes = [len(one) for one in counts]
    key = None if secret is None else secret.key("changes", epsilon, joint, counts, [one.since for one in exact])
    noise = np.split(draw_noise(sum(sizes), epsilon, TABLES, key), np.cumsum(sizes)[:-1])
    found = []
    for moves, possible, of_secrets, of_stayed, of_left in zip(
        exact, where, noise[::3], noise[1::3], noise[2::3], strict=True
    ):
        stayed = moves.stayed.copy()
        stayed[possible] += of_stayed
        found.append(
            Moves(
                moves.since,
                moves.secrets + of_secrets.reshape(moves.secrets.shape),
                stayed,
                moves.left + of_left.reshape(moves.left.shape),
            )
        )
    return NoisyMoves(epsilon, tuple(found))


def _can_stay(moves: Moves, earlier: Joint, joint: Joint) -> np.ndarray:
    """Whether anybody can have stayed, for every column of the tables of those who did and who did not."""
    kept = same_inputs(earlier.inputs, joint.inputs) >= 0
    return kept if moves.stayed.shape[1] == len(kept) else np.array([kept.any()])


def shares(counts: IntArray, parts: int) -> IntArray:
    """Counts n >= 0, not all zero, as whole numbers that sum to ``parts`` and are positive where n is; (k,).

    ``floor(parts n / N)``, or 1 where that is 0 and n is not; what is then missing to ``parts``, or too much, goes to
    the largest of these, the first one of several.

    Raises
    ------
    DataError
        If there are too many values for so few parts.
    """
    total = int(counts.sum())
    found = np.array([max(parts * count // total, 1 if count else 0) for count in counts.tolist()], dtype=np.int64)
    largest = int(found.argmax())
    found[largest] += parts - int(found.sum())
    if found[largest] < 1:
        raise DataError("a column has too many values for a distribution of changes; group its values")
    return found


def inputs_by_secret(joint: Joint) -> IntArray:
    """The distribution of the published input for every secret, in `INPUT_PARTS`; (c, a). Of all where none has it."""
    everybody = joint.counts.sum(axis=0)
    return np.stack([shares(row if row.any() else everybody, INPUT_PARTS) for row in joint.counts])


def _anew(stay: IntArray, leave: IntArray, chance: IntArray) -> tuple[IntArray, IntArray]:
    """How many keep their input and how many take one anew, so that as many as are known end at another; both (c, a).

    Of those who take an input of the distribution A, some take the one that they had: they are n where ``n (1 -
    chance)``, to the nearest number, left. Nobody is lost, and where more left than take another one of A, one who
    stayed stays.

    Parameters
    ----------
    stay, leave : ndarray of int64, shape (c, a)
        People by cell before, >= 0: with the same input now, and with another one.
    chance : ndarray of int64, shape (c, a)
        How likely an input of A is the one they had, in 2^-35.
    """
    rest = SECRET_PARTS * INPUT_PARTS - chance
    # Fewer than 2^27 people, so that products fit 63 bits.
    needed = (np.minimum(leave, _MOST_PEOPLE) * SECRET_PARTS * INPUT_PARTS + rest // 2) // np.maximum(rest, 1)
    anew = np.minimum(needed, stay + leave - (stay > 0))
    return stay + leave - anew, anew


def _secrets_kept(secrets: IntArray, earlier: Joint, joint: Joint) -> IntArray:
    """The distribution of the secret now for every secret then, in `SECRET_PARTS`; (c_v, c_t)."""
    clipped = np.maximum(secrets, 0)
    places = same_inputs(earlier.secret, joint.secret)
    everybody = joint.counts.sum(axis=1)
    rows = []
    for row, place in zip(clipped, places.tolist(), strict=True):
        if row.any():
            rows.append(shares(row, SECRET_PARTS))
        elif place >= 0:
            rows.append(np.where(np.arange(len(row)) == place, SECRET_PARTS, 0))
        else:
            rows.append(shares(everybody, SECRET_PARTS))
    return np.stack(rows)


def _weights(stayed: IntArray, left: IntArray, can_stay: np.ndarray) -> tuple[IntArray, IntArray]:
    """How much of a cell stays at its input and how much leaves it; both (c, a)."""
    stay, leave = np.maximum(stayed, 0), np.maximum(left, 0)
    empty = (stay == 0) & (leave == 0)
    stays = (stay.sum(axis=1) >= leave.sum(axis=1))[:, None] & can_stay[None, :]
    return np.where(empty & stays, 1, stay), np.where(empty & ~stays, 1, leave)
