"""Exact presolve: inputs with the same p(S|x) are one input to the optimiser, and are split again afterwards."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

import numpy as np
import numpy.typing as npt

from funnel.alphabet import Alphabet
from funnel.guarantees.base import ConeGuarantee, PosteriorGuarantee
from funnel.joint import FloatArray, IntArray, Joint

# Relative to what is cut: as small as rounding makes a piece, far smaller than one record of any table.
_SLIVER = 1e-13


@dataclass(frozen=True, eq=False)
class MergedInputs:
    """A joint distribution whose inputs have distinct posteriors p(S|x), and how they stand for the original ones.

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


def merge_alike(joint: Joint, kinds: npt.NDArray[np.int64]) -> MergedInputs:
    """Merge the inputs that have equal posteriors and are of one kind (a,).

    An invariant channel that leaves most unchanged may treat them alike: to exchange their roles changes nothing, and
    the mean over all such exchanges is a channel too (`split_flows`).
    """
    groups: dict[tuple[int, ...], list[int]] = {}
    for x, (column, kind) in enumerate(zip(joint.counts.T.tolist(), kinds.tolist(), strict=True)):
        divisor = gcd(*column)
        if divisor:
            groups.setdefault((kind, *(count // divisor for count in column)), []).append(x)
    return _merged(joint, tuple(tuple(group) for group in groups.values()))


def split_flows(merged: MergedInputs, flows: FloatArray) -> FloatArray:
    """Flows P(x, y) at [y, x] between merged inputs as flows (n, n) between the n inputs that occur.

    What stays within a merged input stays with each of its members. What moves out of it is laid along its members one
    after the other, so that few pairs exchange anything; every output keeps its posterior.
    """
    sizes = merged.original.counts.sum(axis=0)
    place = np.cumsum(sizes > 0) - 1
    members = [place[list(group)] for group in merged.members]
    shares = [sizes[list(group)] / sizes[list(group)].sum() for group in merged.members]
    stays = np.diagonal(flows)
    fine = np.diag(np.concatenate([kept * share for kept, share in zip(stays, shares, strict=True)]))
    order = np.argsort(np.concatenate(members))
    fine = fine[np.ix_(order, order)]
    for x, (out, share) in enumerate(zip(members, shares, strict=True)):
        outputs = np.flatnonzero(flows[:, x])
        outputs = outputs[outputs != x]
        if not len(outputs):
            continue
        into = np.concatenate([members[y] for y in outputs])
        amounts = np.concatenate([flows[y, x] * shares[y] for y in outputs])
        places, sources, moved = laid_along(amounts, share * amounts.sum())
        np.add.at(fine, (into[places], out[sources]), moved)
    return fine


def laid_along(into: FloatArray, out: FloatArray) -> tuple[IntArray, IntArray, FloatArray]:
    """What moves from sources to places, each laid along one line in turn: places, sources, and amounts.

    Parameters
    ----------
    into : ndarray, shape (i,)
        Amounts that places take, >= 0, of a sum > 0.
    out : ndarray, shape (o,)
        Amounts that sources give; sums are the same but for rounding.
    """
    ends = [np.cumsum(part) / part.sum() for part in (into, out)]
    cuts = np.union1d(*ends)
    widths = np.diff(cuts, prepend=0.0)
    places, sources = (np.minimum(np.searchsorted(end, cuts - widths / 2), len(end) - 1) for end in ends)
    return places, sources, widths * float(out.sum())


def _merged(joint: Joint, members: tuple[tuple[int, ...], ...]) -> MergedInputs:
    counts = np.stack([joint.counts[:, list(group)].sum(axis=1) for group in members], axis=1)
    seen = counts.sum(axis=1) > 0
    secret = Alphabet(joint.secret.columns, tuple(t for t, s in zip(joint.secret.symbols, seen, strict=True) if s))
    return MergedInputs(Joint(counts[seen], secret, Alphabet.of(None, len(members), "M")), joint, members)


def split_rows(merged: MergedInputs, posteriors: FloatArray, mass: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Outputs over the original inputs, each with at most one member of every merged input: `split_entries` as a table.

    Parameters
    ----------
    posteriors : ndarray, shape (k, m)
        P(merged x | y) of each output.
    mass : ndarray, shape (k,)
        P(y).

    Returns
    -------
    posteriors : ndarray, shape (k', a)
        ``k' <= a - m + k``, each row with as many non-zeros as the row it comes from.
    mass : ndarray, shape (k',)
    """
    pieces = split_entries(merged, posteriors, mass)
    fine = np.zeros((len(pieces.mass), len(merged.original.inputs)))
    fine[pieces.output, pieces.input] = pieces.share
    return fine, pieces.mass


@dataclass(frozen=True, eq=False)
class Pieces:
    """Outputs over the original inputs, by their entries that are not zero.

    Attributes
    ----------
    output, input : ndarray of int, shape (number of entries,)
    share : ndarray, shape (number of entries,)
        P(x | y).
    mass : ndarray, shape (k',)
        P(y).
    """

    output: npt.NDArray[np.int64]
    input: npt.NDArray[np.int64]
    share: FloatArray
    mass: FloatArray


def split_entries(merged: MergedInputs, posteriors: FloatArray, mass: FloatArray) -> Pieces:
    """Outputs over the original inputs, each with at most one member of every merged input.

    The north-west corner rule (METHOD section 9): the members of a merged input are allotted in sequence to the outputs
    that it produces, so that few are shared by two of them. Then each output is cut into pieces: the members allotted
    to it from every merged input are laid along one unit interval, in proportion to what was allotted, and the interval
    is cut wherever one of them ends. Every piece has the posterior over merged inputs, and so the entropy, of the
    output it comes from: the optimum is kept.

    Notes
    -----
    O(a + k m + number of entries), which are at most as many for each piece as its output has.
    """
    sizes = merged.original.counts.sum(axis=0)
    allotted = [
        _allotted(sizes[list(group)] / sizes[list(group)].sum(), posteriors[:, m] * mass)
        for m, group in enumerate(merged.members)
    ]
    outputs: list[int] = []
    inputs: list[int] = []
    shares: list[float] = []
    pieces: list[float] = []
    for y, (row, weight) in enumerate(zip(posteriors, mass, strict=True)):
        used = np.flatnonzero(row > 0).tolist()
        lists = [allotted[m][y] for m in used]
        of_used = row[used].tolist()
        at = [0] * len(used)
        start = 0.0
        while start < 1.0:
            outputs += [len(pieces)] * len(used)
            inputs += [merged.members[m][ends[place][0]] for m, ends, place in zip(used, lists, at, strict=True)]
            shares += of_used
            stop = min(ends[place][1] for ends, place in zip(lists, at, strict=True))
            pieces.append(float(weight) * (stop - start))
            # Ends that differ by rounding are one: a piece of nothing else would be an output of its own.
            at = [
                place + 1 if ends[place][1] <= stop + _SLIVER and place + 1 < len(ends) else place
                for ends, place in zip(lists, at, strict=True)
            ]
            start = stop
    return Pieces(np.array(outputs), np.array(inputs), np.array(shares), np.array(pieces))


def _allotted(members: FloatArray, amounts: FloatArray) -> dict[int, list[tuple[int, float]]]:
    """For every output the members of one merged input allotted to it: (member, where it ends in the output).

    Parameters
    ----------
    members : ndarray, shape (k,)
        Shares of the members of the merged input, summing to 1.
    amounts : ndarray, shape (b,)
        What each output takes of it.

    Returns
    -------
    dict of int to list of (int, float)
        By the output; ends rise to exactly 1. An output that takes nothing is left out.
    """
    shares = amounts / amounts.sum()
    found: dict[int, list[tuple[int, float]]] = {y: [] for y in np.flatnonzero(shares > 0).tolist()}
    member, left = 0, float(members[0])
    for y in found:
        needed = whole = float(shares[y])
        while True:
            # What is left of a member or of an output by rounding is nothing.
            over = left - needed
            last = member == len(members) - 1
            if last or over > _SLIVER * min(whole, float(members[member])):
                found[y].append((member, 1.0))
                left = over
                break
            if over >= -_SLIVER * min(whole, float(members[member])):
                found[y].append((member, 1.0))
                member, left = member + 1, float(members[member + 1])
                break
            needed -= left
            found[y].append((member, 1.0 - needed / whole))
            member, left = member + 1, float(members[member + 1])
    return found
