"""Standing: the histories that people have before a version, and where each stands under today's frequencies."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from funnel.history.allowed import Allowed, lifts_of
from funnel.history.distributions import UNIT, BoolArray, Laws, secrets_of
from funnel.history.exact_distribution import WholeNumbers
from funnel.history.observed import Observed
from funnel.history.observers import Observer, observers_of
from funnel.history.past import Past
from funnel.history.possible import DistributionSet
from funnel.joint import FloatArray, IntArray, Joint


@dataclass(frozen=True, eq=False)
class Standing:
    """Every history that somebody has, before a version.

    Attributes
    ----------
    nodes : ndarray of int64, shape (h,)
        Sorted.
    people : ndarray of int64, shape (h,)
    laws : Laws
        P(s, x | h), values (h, c, a).
    priors : tuple of ndarray of int64, each (c,)
        How common secrets are: of all people, and of those who are in an earlier version too.
    prior_of : ndarray of int64, shape (h,)
        Which of them is the prior of each history. All rows of a unit within a version have one: that of the first.
    moved : ndarray of bool, shape (h,)
        Whether P(S | h) alone is outside the declared bound, decided.
    observer : Observer
        Whose beliefs these are.
    joint : Joint
    others : tuple of Standing
        Where the same histories stand for the other observers that the version is bounded for.
    reported : tuple of Standing
        The same for those that it is not bounded for.
    possible : DistributionSet or None
        Where the bound is kept under every set of tables that noise leaves open: what these are.
    """

    nodes: IntArray
    people: IntArray
    laws: Laws
    priors: tuple[IntArray, ...]
    prior_of: IntArray
    moved: BoolArray
    observer: Observer
    joint: Joint
    others: tuple[Standing, ...] = ()
    reported: tuple[Standing, ...] = ()
    possible: DistributionSet | None = None

    @property
    def everybody(self) -> tuple[Standing, ...]:
        """Where histories stand for every observer that the version is bounded for, this one first."""
        return (self, *self.others)

    @property
    def error(self) -> float:
        """Up to which P(s, y | h) is known, relatively."""
        return self.laws.error + rounding(self.joint, len(self.joint.inputs))

    def masses(self) -> FloatArray:
        """P(h, x) as an observer expects it, shape (h, a).

        Never the inputs that the people with a history really have: rows that were chosen by these would tell them,
        whatever the rows themselves say.
        """
        return np.asarray(self.laws.values.sum(axis=1) * (self.people / self.people.sum())[:, None])

    def exact_law(self, place: int) -> WholeNumbers:
        """P(s, x | h) of the history at this place, times some whole number; (c, a)."""
        return self.observer.exact_law(int(self.nodes[place]))


def stand(past: Past, observed: Observed, allowed: Allowed) -> Standing:
    """Where all histories stand before a version.

    Raises
    ------
    DataError
        If changes from the last version of some history are missing.

    Notes
    -----
    As `distributions_before`; whole numbers where floats cannot tell whether a history has been moved.
    """
    nodes, places = np.unique(observed.nodes, return_inverse=True)
    people = np.zeros(len(nodes), dtype=np.int64)
    # Of expected people, those of whom nobody knows the history are in no history.
    np.add.at(people, places, observed.records if observed.totals is None else observed.spoken)
    priors, prior_of = _priors(past, nodes, observed)
    possible = DistributionSet.of(past, observed, allowed)
    first, *others = (
        _stand(observer, nodes, people, priors, prior_of, observed.joint, allowed)
        for observer in observers_of(past, observed)
    )
    return replace(
        first,
        others=tuple(one for one in others if one.observer.bounded),
        reported=tuple(one for one in others if not one.observer.bounded),
        possible=possible,
    )


def _stand(
    observer: Observer,
    nodes: IntArray,
    people: IntArray,
    priors: tuple[IntArray, ...],
    prior_of: IntArray,
    joint: Joint,
    allowed: Allowed,
) -> Standing:
    """Where histories stand for one observer; all compare with how common secrets are."""
    laws = observer.laws(nodes)
    error = laws.error + rounding(joint, len(joint.inputs))
    moved = np.zeros(len(nodes), dtype=bool)
    for group, prior in enumerate(priors):
        here = np.flatnonzero(prior_of == group)
        lifts = lifts_of(laws.values[here].sum(axis=2)[:, :, None], prior)
        inside, outside = allowed.within(lifts, error)
        moved[here] = outside[:, 0]
        for place in here[~(inside | outside)[:, 0] | ~laws.sound[here]].tolist():
            alone = observer.exact_law(int(nodes[place])).sum(axis=1)
            moved[place] = not allowed.within_exactly(alone[:, None], prior)
    return Standing(nodes, people, laws, priors, prior_of, moved, observer, joint)


def _priors(past: Past, nodes: IntArray, observed: Observed) -> tuple[tuple[IntArray, ...], IntArray]:
    """How common secrets are, for whom a version comes as news, and which of these each history has."""
    joint, changes, begun = observed.joint, observed.changes, observed.row - 1
    if begun:
        # How common secrets are among units is what an observer starts from; another row of a unit is no news of that.
        first = past.chapters[len(past) - begun]
        joint, changes, nodes = first.joint, first.changes, past.before_rows(nodes, begun)
    versions, prior_of = np.unique(past.versions_of(nodes), return_inverse=True)
    heads = past.heads_of(versions)
    kept, group = np.unique(heads, return_inverse=True)
    last = {int(head): int(version) for head, version in zip(heads, versions, strict=True)}
    return tuple(secrets_of(joint, changes.get(last[int(head)])) for head in kept), np.asarray(group[prior_of])


def rounding(joint: Joint, terms: int) -> float:
    """What the sums of so many products add to the relative error of a law, and the sums over secrets to those."""
    return (terms + len(joint.secret) + 16) * UNIT
