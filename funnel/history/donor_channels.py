"""Donor channels: which people go on being published as whom, decided in whole numbers for every secret of a history.

A channel has 2k outputs, "the same person goes on, of class i" and then "another one begins, of class i", and reads one
of 2k + 1 inputs: the class of a record that is the person's own, the class of the donor's, or that the donor is gone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from funnel.errors import DataError, SolverError, SpecError
from funnel.guarantees.base import Guarantee, PosteriorGuarantee
from funnel.history.allowed import Allowed, allowed_by, exact_lifts
from funnel.history.conditions import Conditions, cone_over
from funnel.history.donor_beliefs import Belief, RowToCome
from funnel.history.donor_programme import best_rows, first_rows
from funnel.history.exact_distribution import WholeNumbers
from funnel.history.library import balanced
from funnel.joint import FloatArray, IntArray, Joint
from funnel.protocol import DENOMINATOR, WORD_BITS, Protocol, WeightArray
from funnel.solver.optimum import optimal

FEWEST = 3
"""Donors that a class needs in later versions: one who is neither the person nor who stood for them is left then."""

# Of a budget: what is solved for in floats is decided in whole numbers, of all of it.
_MOST = 1 - 1e-9


@dataclass(frozen=True)
class SecretFinding:
    """How far a channel goes for the secret of one version.

    Attributes
    ----------
    moved, outside : bool
        Whether the history alone is outside the bound, and whether some output is.
    level : float
        The largest over outputs, nats; infinite where a secret is ruled out.
    output, secret : int
        Where it is attained.
    """

    moved: bool
    outside: bool
    level: float
    output: int
    secret: int


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
    by_secret : tuple of SecretFinding
        Of the secret of every version that these people were in, and of rows to come.
    """

    weights: WeightArray
    before: Belief
    stays: Fraction
    unchanged: float
    by_secret: tuple[SecretFinding, ...]

    def published(self) -> FloatArray:
        """P(class of the person, output | h), (k, 2k)."""
        own, others = self.before.by_class()
        of_donor = self.before.donor_read(self.stays)
        rows = np.ldexp(self.weights.astype(np.float64), -WORD_BITS)
        k = len(own)
        return np.asarray(own[:, None] * rows[:, :k].T + np.outer(others, rows[:, k:] @ of_donor))


@dataclass(frozen=True, eq=False)
class Asked:
    """What a channel is decided by: of people with a history, the secret of every version or row, and what it reads.

    Attributes
    ----------
    before : Belief
    stays : Fraction
        The share of donors who are there.
    told : tuple of ndarray of Python integers, shape (c, 2k + 1)
        P(secret, what is read | h) up to a factor: of every version so far, this one last, and of rows to come.
    priors : tuple of ndarray, shape (c,)
    """

    before: Belief
    stays: Fraction
    told: tuple[WholeNumbers, ...]
    priors: tuple[IntArray | WholeNumbers, ...]

    @classmethod
    def of(cls, belief: Belief, stays: Fraction, ahead: Sequence[RowToCome]) -> Asked:
        """With some rows of units that are not drawn yet."""
        told = (*belief.read(stays), *(belief.to_come(row, stays) for row in ahead))
        return cls(belief, stays, told, (*belief.priors, *(row.prior for row in ahead)))

    @property
    def now(self) -> WholeNumbers:
        """That of the secret now."""
        return self.told[len(self.before.versions) - 1]


def nearest_classes(joint: Joint, donors: IntArray, least: int) -> IntArray:
    """The class as which records begin in the place of each, (k,): itself, or the nearest one where donors are few.

    The nearest class is the one whose lifts of the secret differ least from those of the class, at most over secrets,
    of classes with `FEWEST` donors. Which class it is reads the answer alone, so that every bound stays.

    Parameters
    ----------
    joint : Joint
        Counts (c, k) of the version by secret and class.
    donors : ndarray of int64, shape (k,)
        People of each class whose records may begin.
    least : int
        Donors that a class needs.

    Raises
    ------
    DataError
        If a class has fewer, and there is none that could take its place.
    """
    people, found = joint.counts.sum(axis=0), np.arange(len(donors))
    few = np.flatnonzero((people > 0) & (donors < least)).tolist()
    others = np.flatnonzero(donors >= FEWEST).tolist()
    if few and not others:
        raise DataError(f"no class of records has {FEWEST} people whose records may begin; use fewer, larger classes")
    by_secret = joint.counts.sum(axis=1).tolist()

    def lifts(k: int) -> list[Fraction]:
        """P(s | class) / P(s), up to a factor, of every secret that there is."""
        of_class = joint.counts[:, k].tolist()
        return [Fraction(n, sum(of_class) * all_of) for n, all_of in zip(of_class, by_secret, strict=True) if all_of]

    for k in few:
        mine = lifts(k)
        found[k] = min(others, key=lambda j: max(abs(a - b) for a, b in zip(mine, lifts(j), strict=True)))
    return found


def channel_for(
    belief: Belief,
    stays: Fraction,
    joint: Joint,
    guarantee: PosteriorGuarantee,
    budget_fraction: float,
    begins: IntArray,
    ahead: Sequence[RowToCome] = (),
) -> DonorChannel:
    """The channel of people with a history.

    Parameters
    ----------
    belief : Belief
        In this version.
    stays : Fraction
        The share of donors who are there.
    joint : Joint
        Counts (c, k) of the version by secret and class.
    guarantee : PosteriorGuarantee
        What is proven.
    budget_fraction : float
        Of a first version; the m-th of a person uses ``1 - (1 - budget_fraction) / m`` of the budget.
    begins : ndarray of int64, shape (k,)
        The class as which records begin in the place of each.
    ahead : sequence of RowToCome
        Rows of units that are bounded before they are drawn.
    """
    asked = Asked.of(belief, stays, ahead)
    fraction = 1 - (1 - budget_fraction) / len(belief.versions)
    if len(belief.versions) == 1:
        if ahead:
            return _own_records(asked, guarantee, min(fraction, _MOST), begins)
        alone = first_protocol(joint, guarantee, fraction)
        return _proven(asked, joined(_first_records(joint, alone), begins), guarantee)
    if not belief.own.any():
        return _proven(
            asked, joined(_kept_donors(belief.everybody.reshape(joint.counts.shape).sum(axis=0)), begins), guarantee
        )
    return _own_records(asked, guarantee, min(fraction, _MOST), begins)


def first_protocol(joint: Joint, guarantee: PosteriorGuarantee, budget_fraction: float) -> Protocol:
    """The protocol over classes by which most records stay, of a table of its own: for a fraction of the budget."""
    used = guarantee.with_budget(guarantee.budget * budget_fraction)
    return optimal(joint.occurring, used, utility="unchanged", weights="share").protocol


def _first_records(joint: Joint, alone: Protocol) -> WeightArray:
    """Of people of whom nothing is published: a protocol over classes; a record that stays begins as one's own."""
    weights, classes = begin_anew(joint.counts.sum(axis=0)), joint.inputs
    k = len(classes)
    weights[k:, :k] = 0
    weights[[k + classes.index(symbol) for symbol in alone.outputs.symbols], :k] = alone.weights_for(classes)
    return weights


def _own_records(asked: Asked, guarantee: PosteriorGuarantee, budget_fraction: float, begins: IntArray) -> DonorChannel:
    """Of people whose record may still be their own: as many stay so as a fraction of the budget allows."""
    belief, read = asked.before, asked.now
    k, c = read.shape[1] // 2, len(read)
    tables = [
        np.array([[mass / sum(one.ravel().tolist()) for mass in row] for row in one.tolist()]) for one in asked.told
    ]
    inner = guarantee.with_budget(guarantee.budget * budget_fraction)
    cones = [cone_over(inner, prior) for prior in asked.priors]
    cone = np.zeros((sum(len(one) for one in cones), len(tables) * c))
    row = 0
    for place, one in enumerate(cones):
        cone[row : row + len(one), place * c : place * c + c] = one
        row += len(one)
    conditions = Conditions.of(np.concatenate(tables)[None], cone, [c] * len(tables)).rows[0]
    masses = tables[len(belief.versions) - 1].sum(axis=0)
    is_first = len(belief.versions) == 1
    rows = first_rows(masses[:k], conditions[:, :k], k) if is_first else best_rows(masses, conditions, k)
    anew = begin_anew(read.sum(axis=0)[:k])
    if rows is not None:
        weights = balanced(np.ldexp(rows / rows.sum(axis=0), WORD_BITS).astype(np.uint64)[None])[0]
        if is_first:
            # A record that stays begins as one's own, and nobody had one before.
            weights, first = anew.copy(), weights
            weights[k:, :k] = first
        found = _decided(asked, joined(weights, begins), guarantee)
        if found is not None:
            return found
    # A row that is the same whatever is read tells nothing; classes are as common as those of own records would be.
    return _proven(asked, joined(anew, begins), guarantee)


def _kept_donors(people: IntArray) -> WeightArray:
    """Of people whose record is known not to be theirs: it goes on while its person is there, whatever they are."""
    k = len(people)
    weights = begin_anew(people)
    weights[:, k : 2 * k] = 0
    weights[np.arange(k), k + np.arange(k)] = DENOMINATOR
    return weights


def begin_anew(people: IntArray | WholeNumbers) -> WeightArray:
    """The channel by which anybody's record is another one's, with classes as common as these; (2k, 2k + 1)."""
    k = len(people)
    shares = people.astype(object) * DENOMINATOR // sum(people.tolist())
    weights = np.zeros((2 * k, 2 * k + 1), dtype=np.uint64)
    weights[k:] = shares.astype(np.uint64)[:, None]
    return np.asarray(balanced(weights[None])[0])


def joined(weights: WeightArray, begins: IntArray) -> WeightArray:
    """The same channel with records of other classes in the place of those that may not begin."""
    k, found = len(begins), weights.copy()
    for one in np.flatnonzero(begins != np.arange(k)).tolist():
        found[k + begins[one]] += found[k + one]
        found[k + one] = 0
    return found


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


def _proven(asked: Asked, weights: WeightArray, guarantee: PosteriorGuarantee) -> DonorChannel:
    found = _decided(asked, weights, guarantee)
    if found is None:
        raise SolverError("a channel that tells nothing is outside the bound of a history; please report it")
    return found


def _decided(asked: Asked, weights: WeightArray, guarantee: PosteriorGuarantee) -> DonorChannel | None:
    """What is proven of a channel, for the secret of every version or row; None if it is outside the bound."""
    allowed, whole = allowed_by(guarantee), weights.astype(object)
    found = []
    for told, prior in zip(asked.told, asked.priors, strict=True):
        outputs = np.asarray(told @ whole.T)
        within = allowed.within_exactly(outputs, prior)
        moved = not allowed.within_exactly(outputs.sum(axis=1, keepdims=True), prior)
        if not (allowed.no_worse_exactly(outputs, prior) if moved else within):
            return None
        found.append(_finding(moved, not within, (allowed, guarantee), outputs, prior))
    unchanged = _unchanged(asked.now.sum(axis=0), whole, asked.before)
    return DonorChannel(weights, asked.before, asked.stays, unchanged, tuple(found))


def _unchanged(read: WholeNumbers, whole: WholeNumbers, belief: Belief) -> float:
    """The probability of an own record; whole numbers, rounded once."""
    k = len(whole) // 2
    stays = whole[k : 2 * k, :k] if len(belief.versions) == 1 else whole[:k, :k]
    return float(Fraction(int(stays.diagonal() @ read[:k]), int(read.sum()) * DENOMINATOR))


def _finding(
    moved: bool,
    outside: bool,
    bound: tuple[Allowed, PosteriorGuarantee],
    outputs: WholeNumbers,
    prior: IntArray | WholeNumbers,
) -> SecretFinding:
    allowed, guarantee = bound
    lifts = np.array([[float(lift) for lift in lifts] for lifts in exact_lifts(outputs, prior)]).T[None]
    levels = allowed.nats(lifts, guarantee)[0]
    worst = int(levels.argmax())
    level = float(levels[worst]) * (1 + 1e-12)
    if not outside:
        # It is proven to be at most the budget, so rounding must not go beyond that.
        level = min(guarantee.budget, level)
    at = np.flatnonzero(outputs.sum(axis=0) > 0)
    with np.errstate(divide="ignore"):
        farthest = int(np.abs(np.log(lifts[0, :, worst])).argmax())
    return SecretFinding(moved, outside, level, int(at[worst]), int(np.flatnonzero(prior)[farthest]))
