"""Conditions: what one or several guarantees ask of each row of a channel, as half-spaces."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from funnel.errors import SpecError
from funnel.guarantees.base import ConeGuarantee, Guarantee
from funnel.guarantees.families import Families
from funnel.guarantees.over_distributions import SetGuarantee
from funnel.guarantees.reading import reads_secret
from funnel.guarantees.rldp import RLDP
from funnel.guarantees.several import parts_of
from funnel.joint import FloatArray, Joint

Places = npt.NDArray[np.intp]

# Half-spaces that one row asks for in a round, at most; halvings of the way to the edge of a set; and the least share
# of a constant row that is tried.
_MOST, _STEPS, _LEAST_SHARE = 16, 10, 1e-11


@dataclass(frozen=True, eq=False)
class Conditions:
    """Half-spaces ``h · P(·, y) <= 0`` that every output y of a channel has to meet.

    Attributes
    ----------
    joint : Joint
        The distribution (c, a) over what the channel reads.
    extension : ndarray, shape (a, n)
        Maps a row over the n values that occur to the row over all a values; see `drawn_as`.
    fixed : ndarray, shape (m, n)
        Conditions of cones, which are all known; of masses P(x, y), a constant row being of size one.
    inside : ndarray, shape (m, n)
        The same for a budget that is smaller by a relative margin, so that rounding does not leave the bound.
    sets : tuple of SetGuarantee
        Guarantees over a set of distributions, whose conditions are found one by one.
    """

    joint: Joint
    extension: FloatArray
    fixed: FloatArray
    inside: FloatArray
    sets: tuple[SetGuarantee, ...]

    @classmethod
    def of(cls, joint: Joint, guarantee: Guarantee, margin: float) -> Conditions:
        """The conditions of a guarantee.

        Parameters
        ----------
        joint : Joint
        guarantee : Guarantee
            Or several.
        margin : float
            Of `inside`.

        Raises
        ------
        SpecError
            If it, or one of several, is not linear in the rows of a channel.
        """
        distribution = joint.p_input[joint.p_input > 0]
        source = drawn_as(joint)
        extension = np.where(source[:, None] < 0, distribution, np.arange(len(distribution)) == source[:, None])
        fixed, inside = [np.zeros((0, len(distribution)))], [np.zeros((0, len(distribution)))]
        sets: list[SetGuarantee] = []
        for part in parts_of(guarantee):
            over = _over_set(part, joint)
            if over is not None:
                sets.append(over)
                cone = tight = over.starting_cone(joint)
            elif isinstance(part, ConeGuarantee):
                cone, tight = part.cone(joint), part.tightened(margin).cone(joint)
            else:
                raise SpecError(f"{part} is not linear in what one output discloses; lip, ldp and srlip are")
            fixed.append(_of_masses(cone @ extension, distribution))
            inside.append(_of_masses(tight @ extension, distribution))
        asked, closer = np.vstack(fixed), np.vstack(inside)
        # A half-space without a positive entry holds for every row of a channel, and of equal ones each is one.
        told = np.flatnonzero((asked > 0).any(axis=1) | (closer > 0).any(axis=1))
        _, first = np.unique(np.hstack([asked, closer])[told], axis=0, return_index=True)
        told = told[np.sort(first)]
        return cls(joint, extension, asked[told], closer[told], tuple(sets))

    def families(self, rows: FloatArray, margin: float) -> Families:
        """What rows R (n, n) over the values that occur break of the sets, or nearly: see `SetGuarantee.families`.

        Returns
        -------
        Families
            Over n + 1 places: the last is that of all values that draw from the marginal.
        """
        n = rows.shape[1]
        source = drawn_as(self.joint)
        places, every = np.where(source < 0, n, source), rows @ self.extension.T
        found = [over.families(self.joint, every, margin).over(places, n + 1) for over in self.sets]
        return Families.joined([Families.none(n + 1), *found])

    def beyond(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """What rows T (n, n) over the values that occur break of the sets.

        Returns
        -------
        spaces : ndarray, shape (k, n)
            Further half-spaces. They touch the set where the way from a constant row to the broken one leaves it:
            those of the broken row alone would need several times as many rounds.
        shares : ndarray, shape (n,)
            The share of a constant row to mix into each row so that it breaks none; 0 if it does not.
        """
        distribution = self.joint.p_input[self.joint.p_input > 0]
        found, shares = [np.zeros((0, len(distribution)))], np.zeros(len(distribution))
        every = rows @ self.extension.T
        for over in self.sets:
            outside = np.flatnonzero(_outside(over, self.joint, every))
            if not len(outside):
                continue
            out = every[outside]
            constant = np.repeat(distribution[outside, None], out.shape[1], axis=1)
            # Shares of the constant row: below, a row breaks the set; above, it does not.
            below, above = np.full((len(out), 1), _LEAST_SHARE), np.ones((len(out), 1))
            for _ in range(_STEPS):
                middle = np.sqrt(below * above)
                mixed = (1 - middle) * out + middle * constant
                broken = _outside(over, self.joint, mixed)[:, None]
                below, above = np.where(broken, middle, below), np.where(broken, above, middle)
            shares[outside] = np.maximum(shares[outside], above[:, 0])
            for there in ((1 - below) * out + below * constant, out):
                spaces, _, _ = over.half_spaces(self.joint, there, _MOST)
                found.append(_of_masses(spaces @ self.extension, distribution))
        return np.vstack(found), shares


def _outside(over: SetGuarantee, joint: Joint, rows: FloatArray) -> npt.NDArray[np.bool_]:
    """Which rows (k, a) some distribution of a set puts outside, shape (k,).

    Levels are upper bounds where counts are known up to noise: a distribution decides that attains what breaks a row.
    """
    outside = np.zeros(len(rows), dtype=bool)
    suspected = np.flatnonzero(over.output_levels(joint, rows) > over.budget)
    if len(suspected):
        _, broken, _ = over.half_spaces(joint, rows[suspected], 1)
        outside[suspected[broken]] = True
    return outside


def are_linear(guarantee: Guarantee, joint: Joint) -> bool:
    """Whether a guarantee, or each of several, asks for half-spaces of every row alone."""
    parts = parts_of(guarantee)
    return all(isinstance(part, ConeGuarantee) or _over_set(part, joint) is not None for part in parts)


def _over_set(part: Guarantee, joint: Joint) -> SetGuarantee | None:
    # The χ² set has no finite description by half-spaces that is proven.
    return None if isinstance(part, RLDP) and not part.over_boxes else part.over_set(joint)


def drawn_as(joint: Joint) -> Places:
    """Which of the n values that occur every value draws as, shape (a,); -1 draws from the marginal.

    A value that no record has draws from the marginal: it discloses nothing (METHOD section 8). Where the channel reads
    the secret, a pair (s, u) that no record has draws as a pair (s', u) that some have, so that an output tells the
    secrets of a record apart no more than those that occur.
    """
    distribution = joint.p_input
    seen = np.flatnonzero(distribution > 0)
    source = np.full(len(distribution), -1)
    source[seen] = np.arange(len(seen))
    if reads_secret(joint):
        c = len(joint.secret)
        table = source.reshape(c, -1)
        likeliest = table[distribution.reshape(c, -1).argmax(axis=0), np.arange(table.shape[1])]
        source = np.where(table < 0, likeliest, table).ravel()
    return source


def _of_masses(spaces: FloatArray, distribution: FloatArray) -> FloatArray:
    """Conditions on a row T as conditions on masses P(x, y), a constant row being of size one; none that is empty."""
    sizes = np.abs(spaces).sum(axis=1)
    kept = sizes > 0
    return np.asarray(spaces[kept] / sizes[kept, None] / distribution)
