"""What a bound is estimated to be worth in the population: near the truth where that is known, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

import funnel
from funnel import LIP, RLIP, SRLIP, Joint
from funnel.findings.population import in_population, prior_weight


def drawn(n: int, a: int, weight: float, seed: int) -> tuple[np.ndarray, Joint]:
    """A distribution of (s, x) whose conditionals are from a Dirichlet distribution, and records drawn from it."""
    random = np.random.default_rng(seed)
    inputs = random.dirichlet(np.ones(a) / 2)
    distribution = random.dirichlet(weight * np.array([0.3, 0.7]), a).T * inputs
    counts = random.multinomial(n, distribution.ravel()).reshape(distribution.shape)
    return distribution, Joint.from_counts(counts)


def truly_outside(distribution: np.ndarray, joint: Joint, protocol: funnel.Protocol, epsilon: float) -> float:
    """The share of the released records whose output has a lift beyond the bound under a distribution."""
    channel = protocol.matrix
    of_output = distribution @ channel.T
    lift = of_output / of_output.sum(axis=0) / distribution.sum(axis=1)[:, np.newaxis]
    beyond = (np.abs(np.log(lift)) > epsilon + 1e-9).any(axis=0)
    return float((joint.p_input @ channel.T)[beyond].sum())


@pytest.mark.parametrize(("n", "weight"), [(1_000, 2.0), (1_000, 6.0), (8_000, 3.0)])
def test_the_estimate_is_near_the_truth(n: int, weight: float) -> None:
    guessed, true = [], []
    for seed in range(4):
        distribution, joint = drawn(n, 200, weight, seed)
        protocol = funnel.optimal(joint, LIP(0.7), gap=1e-2).protocol
        found = in_population(joint, protocol, LIP(0.7))
        assert found is not None
        assert found.least <= found.outside <= found.most
        guessed.append(found.outside)
        true.append(truly_outside(distribution, joint, protocol, 0.7))
    # It errs towards too many, by some hundredths.
    assert -0.03 < np.mean(guessed) - np.mean(true) < 0.1
    # The bound holds for all of the records: without them nobody would seem to be outside.
    assert np.mean(true) > 0.05


@pytest.mark.parametrize("weight", [0.5, 2.0, 10.0])
def test_how_alike_secrets_are_is_found_again(weight: float) -> None:
    _, joint = drawn(50_000, 2_000, weight, 1)
    found = prior_weight(joint.counts, joint.p_secret)
    assert weight * 0.85 < found < weight / 0.85


def test_the_same_counts_give_the_same_figure() -> None:
    _, joint = drawn(500, 50, 2.0, 3)
    protocol = funnel.fit("optimal", joint, LIP(1.0))
    assert in_population(joint, protocol, LIP(1.0)) == in_population(joint, protocol, LIP(1.0))


def test_what_says_nothing_leaves_no_bound_and_unseen_people_are_the_singles() -> None:
    joint = Joint.from_counts([[9, 1, 0, 3], [9, 0, 1, 3]])
    nothing = funnel.fit("optimal", joint, funnel.parse_guarantee("perfect"))
    found = in_population(joint, nothing, LIP(0.5))
    assert found is not None
    assert (found.unseen, found.unseen_cells) == (2 / 26, 2 / 26)
    constant = funnel.Protocol(
        np.full((1, 4), 2**63, dtype=np.uint64),
        np.full(1, 2**63, dtype=np.uint64),
        joint.inputs,
        funnel.Alphabet(joint.inputs.columns, (("same",),)),
    )
    for guarantee in (LIP(0.0), LIP(0.5), RLIP(0.5)):
        found = in_population(joint, constant, guarantee)
        assert found is not None
        assert (found.least, found.outside, found.most) == (0, 0, 0)


def test_what_is_about_more_than_the_posterior_has_no_such_figure() -> None:
    _, joint = drawn(500, 6, 2.0, 3)
    protocol = funnel.fit("optimal", joint, LIP(1.0))
    assert in_population(joint, protocol, SRLIP(1.0)) is None
    assert in_population(joint, protocol, funnel.MutualInformation(0.1)) is None
