"""Expected: how many people are expected to have which history, by noisy tables and the channels alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from funnel.history.changes import Changes, MoveLimits
from funnel.history.distributions import distributions_before
from funnel.history.observed import Observed, Secrets
from funnel.history.past import Past
from funnel.joint import FloatArray, IntArray, Joint
from funnel.protocol import WORD_BITS, WeightArray

LEAST: Final = 0.01
"""Histories of fewer people than that are not predicted."""

MOST: Final = 1 << 14
"""Not more histories than these are: the `likeliest`."""

# Expected people are whole numbers of this sum where effective channels are averaged: products with halves of weights
# then fit 64 bits.
_PARTS = 1 << 30


@dataclass(frozen=True, eq=False)
class Expected:
    """After some versions, how many people are expected whose last answers these are.

    Everything here follows from public tables and the channels that were made of them: who really has which history
    does not enter, so that whatever is made of it is a function of public tables too.

    Attributes
    ----------
    nodes : ndarray of int64, shape (k,)
        Predicted histories, sorted; never the empty one.
    people : ndarray of float64, shape (k,)
        How many are expected to have each, as their last one so far.
    lost : ndarray of float64, shape (versions,)
        By chapter, how many are expected whose last version it is and whose history is not predicted.
    """

    nodes: IntArray
    people: FloatArray
    lost: FloatArray

    @classmethod
    def nobody(cls) -> Expected:
        """Before the first version."""
        return cls(np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0))


@dataclass(frozen=True, eq=False)
class Attending:
    """Who is expected in a version, by history; people.

    Attributes
    ----------
    nodes : ndarray of int64, shape (k,)
        Predicted histories that are followed, sorted; the empty one is the first.
    people : ndarray of float64, shape (k,)
    others : float
        With histories that are not followed: they are drawn from what tells nothing, as far as anybody can say.
    away : Expected
        Who is expected not to be in the version, by what they were before.
    """

    nodes: IntArray
    people: FloatArray
    others: float
    away: Expected


def likeliest(people: FloatArray, most: int) -> IntArray:
    """Which histories are predicted, sorted: so many with most people, to six digits, and none of fewer than `LEAST`.

    Of those that are alike to six digits the first: whoever computes them again, by sums in another order, finds these.
    """
    alike = np.array([float(f"{one:.5e}") for one in people.tolist()])
    order = np.argsort(-alike, kind="stable")[:most]
    return np.sort(order[people[order] >= LEAST])


def attending(past: Past, expected: Expected, known: Mapping[int, float], people: float) -> Attending:
    """Who is expected in the next version.

    Of everybody whose last version is v the same share is there, whatever their history: how many there are is known
    from noisy moves, and how many there could be from the versions before. Everybody else is new.

    Parameters
    ----------
    past : Past
    expected : Expected
        After its last version.
    known : mapping of int to float
        By the number of the (first) chapter of every version: people of the next one whose last version it is.
    people : float
        In the next version. Who is not known is new.
    """
    last = past.heads_of(past.versions_of(expected.nodes))
    there, lost = np.zeros(len(expected.nodes)), np.zeros(len(past))
    others = 0.0
    came = 0.0
    for version, count in known.items():
        here = last == version
        could = float(expected.people[here].sum() + expected.lost[version])
        share = min(1.0, count / could) if could > 0 else 0.0
        there[here] = share * expected.people[here]
        lost[version] = share * expected.lost[version]
        # More than there could be are noise, and count as new.
        came += min(count, could)
        others += float(lost[version])
    new = max(0.0, people - came)
    followed = likeliest(there, MOST - 1)
    others += max(0.0, float(there.sum() - there[followed].sum()))
    left = expected.people - there
    kept = left >= LEAST
    lost = expected.lost - lost
    np.add.at(lost, last[~kept], left[~kept])
    away = Expected(expected.nodes[kept], left[kept], lost)
    return Attending(
        np.concatenate([[0], expected.nodes[followed]]), np.concatenate([[new], there[followed]]), others, away
    )


def expected_people(
    past: Past,
    who: Attending,
    joint: Joint,
    changes: Mapping[int, Changes],
    limits: Mapping[int, MoveLimits] | None = None,
    secrets: Secrets | None = None,
) -> Observed:
    """The people of a version as they are expected, for a step that is not to see the real ones.

    Parameters
    ----------
    past : Past
    who : Attending
    joint : Joint
        Published counts of the version.
    changes : mapping of int to Changes
        The distribution of changes to it, by number of the chapter before.
    limits : mapping of int to MoveLimits, optional
        What noise leaves open of the moves since then, where the bound is to hold for all of that.
    secrets : "all" or "current", optional
        Of which versions secrets are bounded; by default of all, but with limits of this one.
    """
    distributions = distributions_before(past, who.nodes, joint, changes).values
    masses = distributions * np.maximum(who.people, LEAST)[:, None, None]
    others = joint.p * who.others
    scale = _PARTS / float(masses.sum() + others.sum())
    # Whatever may be there counts, however rare it is.
    parts = np.where(masses > 0, np.maximum(np.floor(masses * scale), 1), 0).astype(np.int64)
    silent = np.floor(others * scale).astype(np.int64)
    parts[0] += silent
    records = parts.sum(axis=1)
    places, inputs = np.nonzero(records)
    return Observed(
        joint,
        changes,
        who.nodes[places],
        inputs,
        records[places, inputs],
        silent.sum(axis=0),
        totals=Joint(parts.sum(axis=0), joint.secret, joint.inputs),
        weight=joint.n / float(parts.sum()),
        limits=limits,
        secrets=secrets or ("all" if limits is None else "current"),
    )


def as_expected(past: Past, observed: Observed) -> Observed:
    """Real people by their histories alone: what each history leads one to expect of them, and not what they are."""
    nodes, places = np.unique(observed.nodes, return_inverse=True)
    people = np.bincount(places, weights=observed.spoken).astype(np.float64)
    silent = 0.0 if observed.silent is None else float(observed.silent.sum())
    who = Attending(nodes, people, silent, Expected.nobody())
    return expected_people(past, who, observed.joint, observed.changes, observed.limits, observed.secrets)


def answered(
    who: Attending, distributions: FloatArray, library: WeightArray, drawn_from: IntArray
) -> tuple[IntArray, IntArray, FloatArray, float]:
    """Which histories are predicted after a version.

    Parameters
    ----------
    who : Attending
    distributions : ndarray, shape (k, a)
        P(x | h) of those who are followed.
    library : ndarray of uint64, shape (m, b, a)
    drawn_from : ndarray of int64, shape (k,)

    Returns
    -------
    tuple
        Histories and outputs, each (l,), sorted by history and output, that `LEAST` people or more are expected to
        have; how many, (l,); and how many are expected to have one of all others.
    """
    found = np.empty((len(who.nodes), library.shape[1]))
    for place, channel in zip(range(len(who.nodes)), drawn_from.tolist(), strict=True):
        rows = np.ldexp(library[channel].astype(np.float64), -WORD_BITS)
        found[place] = who.people[place] * (rows @ distributions[place])
    places, outputs = np.nonzero(found >= LEAST)
    people = found[places, outputs]
    return who.nodes[places], outputs, people, max(0.0, float(found.sum() - people.sum())) + who.others


def expected_after(who: Attending, first: int, people: FloatArray, others: float) -> Expected:
    """Who is expected to have which history once a version is published.

    Parameters
    ----------
    who : Attending
        In the version.
    first : int
        The number of the first history that it adds; predicted ones are the first it adds.
    people : ndarray of float64, shape (l,)
        Of these.
    others : float
        Of all others whose last version it is.
    """
    nodes = np.concatenate([who.away.nodes, np.arange(first, first + len(people))])
    left = np.concatenate([who.away.people, people])
    return Expected(nodes, left, np.append(who.away.lost, others))
