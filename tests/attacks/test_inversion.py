"""The inversion attack: an observer of protocol.json solves ``W p = p`` for the counts that it was made for."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

import funnel
from funnel import Joint, Protocol
from funnel.joint import FloatArray, IntArray
from tests.projects import ADULT


def inverted(protocol: Protocol, totals: IntArray) -> FloatArray:
    """The counts (a,) that a protocol leaves as they are, scaled to totals of the sets of values that records stay in.

    Parameters
    ----------
    protocol : Protocol
        Read from its document.
    totals : ndarray of int, shape (a,)
        Counts of published records, or public ones.
    """
    channel, sets = protocol.matrix, closed_sets(protocol)
    found = np.zeros(len(channel))
    for one in range(sets.max() + 1):
        inside = np.flatnonzero(sets == one)
        # Unknown: the counts of the set. What flows out of a value flows in, and the counts sum to the total.
        flows = channel[np.ix_(inside, inside)] - np.eye(len(inside))
        conditions = np.vstack([flows, np.ones(len(inside))])
        found[inside] = np.linalg.lstsq(conditions, np.append(np.zeros(len(inside)), totals[inside].sum()))[0]
    return found


def closed_sets(protocol: Protocol) -> npt.NDArray[np.int32]:
    """The set of each value, shape (a,): no record leaves its set, so its number of records is published exactly."""
    return np.asarray(connected_components(csr_array(protocol.matrix), connection="strong")[1])


def protected(exact: Joint, seed: int) -> Joint:
    """Two-sided geometric noise of epsilon 1 on every count, clipped at zero."""
    rng, alpha = np.random.default_rng(seed), np.exp(-1.0)
    noise = rng.geometric(1 - alpha, exact.counts.shape) - rng.geometric(1 - alpha, exact.counts.shape)
    return Joint(np.maximum(exact.counts + noise, 0), exact.secret, exact.inputs)


def as_published(protocol: Protocol) -> Protocol:
    """What an observer reads of it."""
    return Protocol.from_json(protocol.to_json())


@pytest.mark.parametrize("secret", ["income", "marital-status"])
def test_a_protocol_discloses_the_counts_it_was_made_for_and_no_others(secret: str) -> None:
    exact = Joint.from_table(ADULT, secret=[secret], inputs=["education", "sex"])
    public = protected(exact, 28)
    truth, noisy = exact.counts.sum(axis=0), public.counts.sum(axis=0)
    assert (truth != noisy).mean() > 0.6

    # Solved and balanced for the exact counts: every cell is recovered, though the public counts are noisy.
    leaking = as_published(funnel.fit("invariant", exact, funnel.LIP(1.0)))
    sets = closed_sets(leaking)
    moving = np.bincount(sets)[sets] > 1
    assert moving.sum() >= 20
    # Records do not leave their set: the published table has the exact totals of sets.
    found = inverted(leaking, truth)
    assert np.abs(found - truth).max() < 1e-6
    # These are not the public counts that a reader of the release has anyway.
    assert np.abs(found - noisy).max() > 2

    # Made for the protected counts, it gives these back, which are public.
    safe = as_published(funnel.fit("invariant", public, funnel.LIP(1.0)))
    assert np.abs(inverted(safe, noisy) - noisy).max() < 1e-6
    assert np.abs(inverted(safe, noisy) - truth).max() > 2
    # With the exact totals of sets too, cells of a set have the proportions of the noisy counts.
    sets = closed_sets(safe)
    moving = np.bincount(sets)[sets] > 1
    found = inverted(safe, truth)
    assert np.allclose(found, noisy * (np.bincount(sets, truth) / np.bincount(sets, noisy))[sets], atol=1e-6)
    assert (np.rint(found) == truth)[moving].mean() < 0.4


def test_no_record_leaves_its_set() -> None:
    """The totals that the attack begins with are those of every published table, whatever is drawn."""
    exact = Joint.from_table(ADULT, secret=["income"], inputs=["education", "sex"])
    protocol = as_published(funnel.fit("invariant", exact, funnel.LIP(1.0)))
    sets = closed_sets(protocol)
    assert sets.max() > 0
    rows, columns = np.nonzero(protocol.weights)
    assert (sets[rows] == sets[columns]).all()
