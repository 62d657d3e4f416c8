"""Exact presolve: inputs with the same p(S|x) are one input to the optimiser, and are split again afterwards."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, pairwise
from math import gcd

import numpy as np

from funnel.alphabet import Alphabet
from funnel.guarantees.base import ConeGuarantee, PosteriorGuarantee
from funnel.joint import FloatArray, Joint


@dataclass(frozen=True, eq=False)
class MergedInputs:
    """A joint law whose inputs have distinct posteriors p(S|x), and how they stand for the original ones.

    Attributes
    ----------
    joint : Joint
        Counts of shape (c, m): every input occurs, and no two have proportional columns.
    original : Joint
        Counts of shape (c, a).
    members : tuple of tuple of int
        For each merged input the original inputs it stands for; inputs that never occur are in none.
    """

    joint: Joint
    original: Joint
    members: tuple[tuple[int, ...], ...]

    def cone(self, guarantee: ConeGuarantee) -> FloatArray:
        """The guarantee's cone on rows over the merged inputs, shape (rows, m)."""
        if isinstance(guarantee, PosteriorGuarantee):
            return guarantee.cone(self.joint)
        return np.asarray(guarantee.cone(self.original)[:, [group[0] for group in self.members]])


def merge_inputs(joint: Joint, guarantee: ConeGuarantee) -> MergedInputs:
    """Merge what the guarantee cannot tell apart: equal posteriors if it looks at nothing else, else nothing.

    Inputs and secrets that never occur are left out either way. O(a c).
    """
    if isinstance(guarantee, PosteriorGuarantee):
        return merge_equal_posteriors(joint)
    return keep_inputs(joint)


def keep_inputs(joint: Joint) -> MergedInputs:
    """Merge nothing; inputs and secrets that never occur are left out."""
    return _merged(joint, tuple((int(x),) for x in np.flatnonzero(joint.counts.sum(axis=0))))


def merge_equal_posteriors(joint: Joint) -> MergedInputs:
    """Merge the inputs that a cone cannot tell apart (METHOD section 8, "presolve that is exact").

    Counts are integers, so equality of posteriors is decided exactly. O(a c).
    """
    groups: dict[tuple[int, ...], list[int]] = {}
    for x, column in enumerate(joint.counts.T.tolist()):
        divisor = gcd(*column)
        if divisor:
            groups.setdefault(tuple(count // divisor for count in column), []).append(x)
    return _merged(joint, tuple(tuple(group) for group in groups.values()))


def _merged(joint: Joint, members: tuple[tuple[int, ...], ...]) -> MergedInputs:
    counts = np.stack([joint.counts[:, list(group)].sum(axis=1) for group in members], axis=1)
    seen = counts.sum(axis=1) > 0
    secret = Alphabet(joint.secret.columns, tuple(t for t, s in zip(joint.secret.symbols, seen, strict=True) if s))
    return MergedInputs(Joint(counts[seen], secret, Alphabet.of(None, len(members), "M")), joint, members)


def split_rows(merged: MergedInputs, posteriors: FloatArray, mass: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Outputs over the original inputs, each with at most one member of every merged input.

    The members of all merged inputs are laid along one unit interval, in proportion to their probabilities, and the
    interval is cut wherever one of them ends: each piece takes from every merged input the member that covers it.
    Every piece has the entropy of the merged output it comes from, so the optimum is kept.

    Parameters
    ----------
    posteriors : ndarray, shape (k, m)
        P(merged x | y) of each output.
    mass : ndarray, shape (k,)
        P(y).

    Returns
    -------
    posteriors : ndarray, shape (k', a)
    mass : ndarray, shape (k',)
    """
    sizes = merged.original.counts.sum(axis=0).tolist()
    # Fractions: where ends coincide, rounding must not leave a sliver between them.
    ends = []
    for group in merged.members:
        total = sum(sizes[x] for x in group)
        ends.append([Fraction(part, total) for part in accumulate(sizes[x] for x in group)])
    new_rows, new_mass = [], []
    for row, weight in zip(posteriors, mass, strict=True):
        used = np.flatnonzero(row > 0).tolist()
        cuts = sorted({Fraction(0)}.union(*(ends[m] for m in used)))
        for start, stop in pairwise(cuts):
            fine = np.zeros(len(sizes))
            for m in used:
                # A piece never straddles an end, so its start decides the member.
                fine[merged.members[m][bisect_right(ends[m], start)]] = row[m]
            new_rows.append(fine)
            new_mass.append(weight * float(stop - start))
    return np.array(new_rows), np.array(new_mass)
