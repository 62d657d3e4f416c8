"""Donor channels: which people go on being published as whom, decided in whole numbers for every secret of a history.

A channel has 2k outputs, "the same person goes on, of class i" and then "another one begins, of class i", and reads one
of 2k + 1 inputs: the class of a record that is the person's own, the class of the donor's, or that the donor is gone.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from funnel.errors import SolverError, SpecError
from funnel.guarantees.base import Guarantee, PosteriorGuarantee
from funnel.history.allowed import Allowed, allowed_by, exact_lifts
from funnel.history.conditions import Conditions, cone_over
from funnel.history.donor_beliefs import Belief
from funnel.history.donor_programme import best_rows
from funnel.history.exact_distribution import WholeNumbers
from funnel.history.library import balanced
from funnel.joint import FloatArray, IntArray, Joint
from funnel.protocol import DENOMINATOR, WORD_BITS, WeightArray
from funnel.solver.optimum import optimal


@dataclass(frozen=True, eq=False)
class DonorChannel:
    """The channel of a history, and what is proven of it.

    Attributes
    ----------
    weights : ndarray of uint64, shape (2k, 2k + 1)
        Columns sum to 2^63.
    before : Belief
        Of the people with the history in this version.
    stays : Fraction
        The share of donors who are there.
    unchanged : float
        P(the record stays, or begins as, the person's own | h).
    level : float
        The largest level over outputs and the secrets for which the history alone is within the bound, nats.
    moved, outside : bool
        Whether the history alone is outside the bound for a secret, and whether some output is.
    off : ndarray, shape (k,)
        By how much the probability of a record of each class differs from that of own records.
    """

    weights: WeightArray
    before: Belief
    stays: Fraction
    unchanged: float
    level: float
    moved: bool
    outside: bool
    off: FloatArray

    def after(self, output: int, people: IntArray) -> Belief:
        """The belief once an output is seen; people are counts (z,) of the version."""
        k = len(self.weights) // 2
        weights: list[int] = self.weights[output].tolist()
        if len(self.before.versions) == 1:
            return self.before.begun(output - k, weights[:k])
        if output >= k:
            return self.before.replaced(self.stays, people, output - k, weights)
        return self.before.after(self.stays, output, weights[output], weights[k + output])


def begin(belief: Belief, joint: Joint, guarantee: PosteriorGuarantee, budget_fraction: float) -> DonorChannel:
    """The channel of people of whom nothing is published: the protocol of a table of its own, over classes.

    Parameters
    ----------
    belief : Belief
    joint : Joint
        Counts (c, k) of the version by secret and class.
    guarantee : PosteriorGuarantee
    budget_fraction : float
    """
    k, occurring = len(joint.inputs), joint.occurring
    used = guarantee.with_budget(guarantee.budget * budget_fraction)
    protocol = optimal(occurring, used, utility="unchanged", weights="share").protocol
    at = [joint.inputs.index(symbol) for symbol in protocol.outputs.symbols]
    people = joint.counts.sum(axis=0)
    weights = begin_anew(people)
    weights[np.ix_([k + i for i in at], at)] = protocol.weights_for(protocol.outputs)
    return _proven(belief, Fraction(1), weights, guarantee)


def go_on(
    belief: Belief, stays: Fraction, people: IntArray, guarantee: PosteriorGuarantee, budget_fraction: float
) -> DonorChannel:
    """The channel of people whose record may still be their own: as many stay so as the bound allows.

    Parameters
    ----------
    belief : Belief
        In this version.
    stays : Fraction
        The share of donors who are there.
    people : ndarray of int64, shape (k,)
        Of the version, by class.
    guarantee : PosteriorGuarantee
    budget_fraction : float
        What is used of the budget; what is proven is the bound itself.
    """
    read, k = belief.read(stays), len(people)
    total = sum(read[-1].reshape(-1).tolist())
    beliefs = np.array([[value / total for value in row] for row in read.reshape(-1, 2 * k + 1).tolist()])
    inner = guarantee.with_budget(guarantee.budget * budget_fraction)
    u, c = read.shape[:2]
    cones = [cone_over(inner, prior) for prior in belief.priors]
    cone = np.zeros((sum(len(one) for one in cones), u * c))
    row = 0
    for place, one in enumerate(cones):
        cone[row : row + len(one), place * c : place * c + c] = one
        row += len(one)
    conditions = Conditions.of(beliefs[None], cone, [c] * u)
    rows = best_rows(beliefs[-c:].sum(axis=0), conditions.rows[0], k)
    if rows is not None:
        weights = balanced(np.ldexp(rows / rows.sum(axis=0), WORD_BITS).astype(np.uint64)[None])[0]
        found = _decided(belief, stays, weights, guarantee)
        if found is not None:
            return found
    # A row that is the same whatever is read tells nothing.
    return _proven(belief, stays, begin_anew(people), guarantee)


def keep_donor(belief: Belief, stays: Fraction, people: IntArray, guarantee: PosteriorGuarantee) -> DonorChannel:
    """The channel of people whose record is known not to be theirs: it goes on while its person is there.

    It reads nothing of the person that it stands for.
    """
    k = len(people)
    weights = begin_anew(people)
    weights[:, k : 2 * k] = 0
    weights[np.arange(k), k + np.arange(k)] = DENOMINATOR
    return _proven(belief, stays, weights, guarantee)


def begin_anew(people: IntArray) -> WeightArray:
    """The channel by which anybody's record is another one's, as common as records of the version are; (2k, 2k + 1)."""
    k = len(people)
    shares = people.astype(object) * DENOMINATOR // int(people.sum())
    weights = np.zeros((2 * k, 2 * k + 1), dtype=np.uint64)
    weights[k:] = shares.astype(np.uint64)[:, None]
    return np.asarray(balanced(weights[None])[0])


def require_kept(guarantee: Guarantee) -> PosteriorGuarantee:
    """The guarantee, if it can be kept by followed donors.

    Raises
    ------
    SpecError
        If it is no bound on the posterior of the secret for the counted frequencies.
    """
    if not isinstance(guarantee, PosteriorGuarantee) or guarantee.is_perfect:
        raise SpecError(
            f"{guarantee} cannot be kept by followed donors; choose lip, alip, ldp or pml with a budget above 0"
        )
    return guarantee


def _proven(belief: Belief, stays: Fraction, weights: WeightArray, guarantee: PosteriorGuarantee) -> DonorChannel:
    found = _decided(belief, stays, weights, guarantee)
    if found is None:
        raise SolverError("a channel that tells nothing is outside the bound of a history; please report it")
    return found


def _decided(
    belief: Belief, stays: Fraction, weights: WeightArray, guarantee: PosteriorGuarantee
) -> DonorChannel | None:
    """What is proven of a channel, for the secret of every version; None if it is outside the bound."""
    allowed, whole, read = allowed_by(guarantee), weights.astype(object), belief.read(stays)
    moved, outside, level = False, False, 0.0
    for told, prior in zip(read, belief.priors, strict=True):
        outputs = np.asarray(told @ whole.T)
        within = allowed.within_exactly(outputs, prior)
        if allowed.within_exactly(outputs.sum(axis=1, keepdims=True), prior):
            if not within:
                return None
            level = max(level, _level(allowed, outputs, prior, guarantee))
        else:
            if not allowed.no_worse_exactly(outputs, prior):
                return None
            moved, outside = True, outside or not within
    unchanged, off = _kept(read[-1].sum(axis=0), whole, len(belief.versions) == 1)
    return DonorChannel(weights, belief, stays, unchanged, level, moved, outside, off)


def _kept(read: WholeNumbers, whole: WholeNumbers, is_first: bool) -> tuple[float, FloatArray]:
    """The probability of an own record, and by how much that of each class is off; whole numbers, rounded once."""
    k, total = len(whole) // 2, sum(read.tolist()) * DENOMINATOR
    published = whole @ read
    published = published[:k] + published[k:]
    target = read[:k]
    target_total = sum(target.tolist())
    if not target_total:
        # The record is known not to be the person's own: nothing is owed for it.
        return 0.0, np.zeros(k)
    off = [
        (has * target_total - due * total) / (total * target_total)
        for has, due in zip(published.tolist(), target.tolist(), strict=True)
    ]
    own = whole[k : 2 * k, :k].diagonal() if is_first else whole[:k, :k].diagonal()
    return sum((own * read[:k]).tolist()) / total, np.array(off)


def _level(allowed: Allowed, outputs: WholeNumbers, prior: IntArray, guarantee: PosteriorGuarantee) -> float:
    lifts = np.array([[float(lift) for lift in lifts] for lifts in exact_lifts(outputs, prior)]).T[None]
    # It is proven to be at most the budget, so rounding must not go beyond that.
    return min(guarantee.budget, float(allowed.nats(lifts, guarantee).max()) * (1 + 1e-12))
