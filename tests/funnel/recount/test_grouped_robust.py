"""A second judge of robust groups finds what the maker found, and finds out whoever did not do what is said."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import funnel
from funnel.errors import DataError, SpecError
from funnel.groups import GroupedSolution, Schedule
from funnel.groups.halves import SHARE, Halves
from funnel.recount.grouped_robust import Stated, robust_level
from funnel.release.grouped_proof import GroupedProof

GROUPS = [["x"], ["y"], ["z"]]
COUNTS = dict[tuple[tuple[str, ...], tuple[str, ...]], int]


def counted(joint: funnel.Joint) -> COUNTS:
    return {
        (joint.secret.symbols[s], joint.inputs.symbols[r]): int(joint.counts[s, r])
        for s, r in zip(*np.nonzero(joint.counts), strict=True)
    }


def sample(secrets: int, seed: int, n: int = 4000) -> funnel.Joint:
    random = np.random.default_rng(seed)
    laws = random.dirichlet(np.full(36, 0.7), size=secrets)
    prior = random.dirichlet(np.full(secrets, 8.0))
    counts = random.multinomial(n, (prior[:, None] * laws).ravel()).reshape(secrets, -1)
    symbols = tuple(tuple(f"{c}{i}" for c, i in zip("xyz", at, strict=True)) for at in np.ndindex(4, 3, 3))
    return funnel.Joint.from_counts(counts, inputs=funnel.Alphabet(("x", "y", "z"), symbols)).occurring


def stated(made: GroupedSolution) -> Stated:
    assert made.proven is not None
    return Stated(made.proven.seed, Fraction(str(made.proven.share)), made.proven.cells)


@pytest.fixture(scope="module")
def joint() -> funnel.Joint:
    return sample(2, seed=3)


@pytest.fixture(scope="module")
def made(joint: funnel.Joint) -> GroupedSolution:
    return funnel.publish_groups(joint, GROUPS, funnel.RLIP(0.8), people=20, schedule=Schedule(0.9, 3), seed="a")


@pytest.mark.parametrize(
    ("guarantee", "secrets"), [(funnel.RALIP(1.0, 0.6), 2), (funnel.RLDP(1.0), 2), (funnel.RLIP(1.0), 3)], ids=str
)
def test_both_find_the_same(guarantee: funnel.Guarantee, secrets: int) -> None:
    joint = sample(secrets, seed=5, n=2500)
    made = funnel.publish_groups(joint, GROUPS, guarantee, people=20, schedule=Schedule(0.9, 3), seed="b")
    found = robust_level(made.protocol.to_json(), str(guarantee), counted(joint), stated(made))
    assert made.proven is not None
    assert found.leaves == made.proven.leaves > 2
    assert found.proving == made.proven.proving
    assert found.holds
    # The maker's level is over the counts of everybody too.
    assert found.nats <= made.level <= guarantee.budget


def test_the_level_is_that_of_the_leaf_that_goes_furthest(joint: funnel.Joint, made: GroupedSolution) -> None:
    found = robust_level(made.protocol.to_json(), "rlip:0.8,0.05", counted(joint), stated(made))
    assert found.holds
    assert 0.4 < found.nats <= 0.8
    assert not robust_level(
        made.protocol.to_json(), f"rlip:{found.nats / 1.01!r},0.05", counted(joint), stated(made)
    ).holds


def many(joint: funnel.Joint) -> funnel.Joint:
    """With so many people of every record that some of them make."""
    return funnel.Joint(joint.counts + 40, joint.secret, joint.inputs)


def test_a_protocol_of_the_counts_is_not_proven(joint: funnel.Joint, made: GroupedSolution) -> None:
    """It has weights for values that nobody of those who make has where a record shows what is before."""
    nominal = funnel.publish_groups(joint, GROUPS, funnel.LIP(0.8), people=20, schedule=Schedule(0.9, 3))
    generous = replace(stated(made), cells=1000)
    with pytest.raises(DataError, match="have weights of their own"):
        robust_level(nominal.protocol.to_json(), "rlip:0.8,0.05", counted(joint), generous)


def test_an_output_that_was_not_cut_back_is_found(joint: funnel.Joint, made: GroupedSolution) -> None:
    """What nobody proved: records are published as they are."""
    text = json.loads(made.protocol.to_json())
    for number, stage in enumerate(text["stages"], 1):
        size, folds = len(stage["symbols"]), 1 if stage["ahead"] is None else 1 + max(stage["ahead"]["classes"])
        plain = {
            "labels": stage["symbols"],
            "inputs": [[x * folds + fold for fold in range(folds)] for x in range(size)],
            "weights": [[2**44] * folds for _ in range(size)],
            "marginal": [2**44, *[0] * (size - 1)],
        }
        stage["channels"], stage["classes"] = [plain], [[0, [0 if number < 3 else -1] * size]]
    generous = replace(stated(made), cells=10_000)
    assert robust_level(made.protocol.to_json(), "rlip:0.8,0.05", counted(joint), stated(made)).holds
    assert not robust_level(json.dumps(text), "rlip:0.8,0.05", counted(many(joint)), generous).holds


@pytest.mark.parametrize("said", ["made_from", "proving", "leaves", "significance"])
def test_whatever_the_proof_says_is_counted_again(joint: funnel.Joint, made: GroupedSolution, said: str) -> None:
    assert made.proven is not None
    proof, told = GroupedProof.of(made.proven).model_dump(), made.protocol.to_json()
    assert robust_level(told, "rlip:0.8,0.05", counted(joint), Stated.of(proof, "a")).holds
    other = Stated.of({**proof, said: proof[said] / 2 if said == "significance" else proof[said] + 1}, "a")
    with pytest.raises(DataError, match=f"as {said}, and it is"):
        robust_level(told, "rlip:0.8,0.05", counted(joint), other)
    for forged in ({**proof, "share": 0.5}, {**proof, "seed": "luck"}):
        with pytest.raises(DataError, match="told apart by the name of the series"):
            Stated.of(forged, "a")


def test_fewer_limits_than_any_tree_has_with_such_leaves_are_refused(
    joint: funnel.Joint, made: GroupedSolution
) -> None:
    """A number of cells that follows from what was left after people were asked."""
    assert made.proven is not None
    leaves = made.proven.leaves
    assert leaves > 2
    told, said = made.protocol.to_json(), stated(made)
    assert robust_level(told, "rlip:0.8,0.05", counted(joint), replace(said, cells=2 * leaves - 2)).holds
    for cells in (leaves, 2 * leaves - 3):
        with pytest.raises(DataError, match="limits were stated for fewer"):
            robust_level(told, "rlip:0.8,0.05", counted(joint), replace(said, cells=cells))


def test_a_protocol_that_was_made_of_those_who_prove_it_is_found_where_they_have_values_of_their_own() -> None:
    joint = sample(2, seed=3)
    inputs = funnel.Alphabet(("x", "y", "z"), (*joint.inputs.symbols, ("x9", "y0", "z0")))
    strange = funnel.Joint.from_counts(np.hstack([joint.counts, [[2], [1]]]), joint.secret, inputs)
    last = len(inputs) - 1
    seed = next(seed for seed in map(str, range(20)) if not Halves.of(strange, seed).making[:, last].any())
    settings: dict[str, Any] = {"people": 20, "schedule": Schedule(0.9, 3)}
    made = funnel.publish_groups(strange, GROUPS, funnel.RLIP(0.8), seed=seed, **settings)
    robust_level(made.protocol.to_json(), "rlip:0.8,0.05", counted(strange), stated(made))
    of_all = funnel.publish_groups(strange, GROUPS, funnel.LIP(0.8), **settings)
    with pytest.raises(DataError, match="have weights of their own"):
        robust_level(of_all.protocol.to_json(), "rlip:0.8,0.05", counted(strange), replace(stated(made), cells=1000))


def test_more_limits_than_were_stated_are_refused(joint: funnel.Joint, made: GroupedSolution) -> None:
    few = replace(stated(made), cells=1)
    with pytest.raises(DataError, match="limits were stated for fewer"):
        robust_level(made.protocol.to_json(), "rlip:0.8,0.05", counted(joint), few)


def test_limits_widen_with_their_number_and_with_fewer_people(joint: funnel.Joint, made: GroupedSolution) -> None:
    said, told = stated(made), made.protocol.to_json()
    levels = [
        robust_level(told, "rlip:0.8,0.05", counted(joint), one).nats
        for one in (said, replace(said, cells=100 * said.cells), replace(said, share=Fraction(9, 10)))
    ]
    assert levels[0] < levels[1]
    assert levels[0] < levels[2]
    assert said.share == Fraction(str(SHARE))


def test_refusals(joint: funnel.Joint, made: GroupedSolution) -> None:
    with pytest.raises(SpecError, match="is no bound in the population"):
        robust_level(made.protocol.to_json(), "lip:0.8", counted(joint), stated(made))
    with pytest.raises(DataError, match="nobody is left to prove"):
        robust_level(made.protocol.to_json(), "rlip:0.8,0.05", counted(joint), replace(stated(made), share=Fraction(1)))
