"""Groups under robust guarantees: whoever proves did not make, and what is proven holds in the population."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import funnel
from funnel.audit.grouped.rules import AskedRules, row_complaints
from funnel.disclosure.rules import Rules
from funnel.errors import DataError, SpecError
from funnel.groups import GroupedSolution, Schedule
from funnel.groups.foreseen import Foreseen
from funnel.groups.growing import Tree, grow
from funnel.groups.halves import Halves
from funnel.groups.posteriors import Bound, Limits, statements
from funnel.groups.proving import Provers, cells_of, members
from funnel.groups.records import Records
from funnel.groups.robust import made_by_some
from funnel.guarantees.binomial_limits import UNIT, lower_limit, upper_limit
from funnel.guarantees.over_laws import Sides
from funnel.joint import Joint
from funnel.progress import quiet
from funnel.recount.grouped import follow
from funnel.solver.budget import Budget

GROUPS = (("x",), ("y",), ("z",))
ONE_WAY = Schedule(0.9, 3)


def population(secrets: int, sizes: tuple[int, ...], seed: int, even: float = 1.0) -> Joint:
    """A law of people whose columns go with a secret, as counts of very many."""
    random = np.random.default_rng(seed)
    laws = random.dirichlet(np.full(int(np.prod(sizes)), even), size=secrets)
    prior = random.dirichlet(np.full(secrets, 8.0))
    counts = np.ceil(prior[:, None] * laws * 1e9).astype(np.int64)
    names = ("x", "y", "z", "w")[: len(sizes)]
    symbols = [tuple(f"{c}{i}" for c, i in zip(names, at, strict=True)) for at in np.ndindex(*sizes)]
    return Joint.from_counts(counts, inputs=funnel.Alphabet(names, tuple(symbols)))


def sampled(law: Joint, n: int, seed: int) -> Joint:
    random = np.random.default_rng(seed)
    counts = random.multinomial(n, (law.counts / law.n).ravel()).reshape(law.counts.shape)
    return Joint(counts, law.secret, law.inputs).occurring


def told_in(law: Joint, made: GroupedSolution | funnel.GroupedProtocol, guarantee: str) -> float:
    """The level in the population, by a computation that shares no code: strangers are drawn by the marginal."""
    protocol = made.protocol if isinstance(made, GroupedSolution) else made
    counts = {
        (law.secret.symbols[s], law.inputs.symbols[r]): int(law.counts[s, r])
        for s, r in zip(*np.nonzero(law.counts), strict=True)
    }
    return follow(protocol.to_json(), guarantee, counts).outputs.nats


def grown(joint: Joint, halves: Halves, rules: Rules | None = None) -> Tree:
    bound = Bound.of(funnel.RLIP(0.8).sides, [900, 1100], Fraction(1, 4000))
    foreseen = Foreseen(bound, 3.0, 1 / 4000)
    some = made_by_some(joint, halves)
    return grow(Records.of(joint), halves.making, some, GROUPS, foreseen, ONE_WAY, 20, Budget.of(30), quiet, rules)


@pytest.mark.parametrize(
    ("guarantee", "nominal", "secrets"),
    [
        (funnel.RLIP(0.7), "lip:0.7", 2),
        (funnel.RLDP(0.9), "ldp:0.9", 2),
        (funnel.RALIP(0.9, 0.5), "alip:0.9,0.5", 2),
        (funnel.RLDP(1.2), "ldp:1.2", 3),
    ],
    ids=str,
)
def test_the_bound_holds_in_the_population_and_for_the_counts(
    guarantee: funnel.Guarantee, nominal: str, secrets: int
) -> None:
    law = population(secrets, (5, 3, 3), seed=7)
    joint = sampled(law, 6000, seed=1)
    made = funnel.publish_groups(joint, GROUPS, guarantee, people=20, schedule=ONE_WAY, seed="one")
    assert made.utility > 0.2 * joint.entropy
    assert made.level <= guarantee.budget
    assert told_in(law, made, nominal) <= made.level
    assert told_in(joint, made, nominal) <= made.level
    again = funnel.publish_groups(joint, GROUPS, guarantee, people=20, schedule=ONE_WAY, seed="one")
    assert again.protocol == made.protocol
    assert again.proven == made.proven
    assert made.proven is not None
    assert made.proven.made_from + made.proven.proving == joint.n


def test_what_is_made_from_a_sample_leaves_the_bound_in_the_population_and_what_is_proven_does_not() -> None:
    law = population(2, (5, 3, 3), seed=2, even=0.5)
    counted, proven = [], []
    for seed in range(4):
        joint = sampled(law, 3000, seed)
        groups = {"people": 20, "schedule": ONE_WAY}
        counted.append(told_in(law, funnel.publish_groups(joint, GROUPS, funnel.LIP(0.6), **groups), "lip:0.6"))
        made = funnel.publish_groups(joint, GROUPS, funnel.RLIP(0.6, 0.05), seed=str(seed), **groups)
        assert made.utility > 0.15 * joint.entropy
        proven.append(told_in(law, made, "lip:0.6"))
    assert min(counted) > 0.6 >= max(proven)


@pytest.mark.parametrize("rules", [None, Rules(5, 0.95, 0.0)], ids=["free", "under rules"])
def test_a_tree_is_made_without_those_who_prove_it(rules: Rules | None) -> None:
    """Whoever else there is: the weights of what makers have are the same, and all others have one output."""
    law = population(2, (5, 3, 3), seed=4)
    joint = sampled(law, 2000, seed=3)
    halves = Halves.of(joint, "a")
    there = halves.making.any(axis=0)
    alone = Joint(
        halves.making[:, there],
        joint.secret,
        funnel.Alphabet(
            joint.inputs.columns, tuple(symbol for symbol, one in zip(joint.inputs.symbols, there, strict=True) if one)
        ),
    )
    strange = Joint.from_counts(
        np.hstack([halves.making, [[3], [4]]]),
        joint.secret,
        funnel.Alphabet(joint.inputs.columns, (*joint.inputs.symbols, ("x9", "y0", "z9"))),
    )
    first = grown(alone, replace(halves, making=alone.counts), rules)
    second = grown(strange, replace(halves, making=np.hstack([halves.making, [[0], [0]]])), rules)
    one, other = first.root.weights, second.root.weights
    assert one is not None
    assert other is not None
    assert first.cells == second.cells
    assert first.root.joins == second.root.joins
    assert first.root.rare is not None
    assert second.root.rare is not None
    assert np.array_equal(first.root.rare, second.root.rare)
    inputs = second.readings[0].inputs[: len(there)][there]
    assert np.array_equal(one[:, first.readings[0].inputs], other[:, inputs])
    stranger = second.readings[0].inputs[-1]
    assert np.array_equal(other[:, stranger], second.root.rare)


def test_whoever_stands_for_an_output_is_who_the_word_says() -> None:
    law = population(2, (4, 3, 2), seed=9)
    joint = sampled(law, 1500, seed=5)
    halves = Halves.of(joint, "b")
    tree = grown(joint, halves)
    bound = Bound.of(funnel.RLIP(0.8).sides, joint.counts.sum(axis=1).tolist(), Fraction(1, 5000))
    found = cells_of(tree, Provers(halves, joint.counts, bound))
    ways: dict[int, tuple[int, list[int], int]] = {id(tree.root): (0, [1] * len(joint.inputs), 1)}
    judged = 0
    for prefix in tree.root.below():
        number, weights, most = ways[id(prefix)]
        inputs = tree.readings[number].inputs
        if prefix.weights is None:
            for one in prefix.after:
                if one is not None:
                    ways[id(one)] = number + 1, [2**44 * weight for weight in weights], most * 2**44
            continue
        for cell in range(prefix.cells):
            of_cell = members(prefix, cell)
            row = [sum(int(prefix.weights[y, x]) for y in of_cell) for x in range(prefix.weights.shape[1])]
            assert prefix.rare is not None
            largest = most * max(*row, sum(int(prefix.rare[y]) for y in of_cell))
            shown = [weight * row[x] for weight, x in zip(weights, inputs.tolist(), strict=True)]
            people = [0] * len(joint.secret)
            for s, r, word in zip(halves.secret.tolist(), halves.record.tolist(), halves.word.tolist(), strict=True):
                people[s] += Fraction(word, 2**64) < Fraction(shown[r], largest)
            assert found[id(prefix)][cell].people == tuple(people)
            judged += 1
            if cell < len(prefix.after) and (after := prefix.after[cell]) is not None:
                ways[id(after)] = number + 1, shown, largest
    assert judged == tree.cells > 4


@given(
    counts=st.lists(st.integers(0, 60), min_size=2, max_size=4).filter(any),
    seed=st.integers(0, 2**32 - 1),
    kind=st.sampled_from(["lifts", "pairs"]),
)
@settings(max_examples=60, deadline=None)
def test_no_law_within_the_limits_goes_further_than_is_said(counts: list[int], seed: int, kind: str) -> None:
    random = np.random.default_rng(seed)
    tail = Fraction(1, 50)
    sizes = random.integers(5, 200, size=len(counts)).tolist()
    sides = Sides(pairs=1.0) if kind == "pairs" else Sides(up=1.0, down=0.5)
    bound = Bound.of(sides, sizes, tail)
    posterior = Limits(tuple(counts), tail)
    ratios = dict(bound.over(posterior))
    for _ in range(50):
        after, before = (random.dirichlet(np.array(of) + 1.0) for of in (counts, sizes))
        pairs = [(s, t) for s in range(len(counts)) for t in range(len(counts)) if s != t]
        if kind == "pairs":
            if all(
                limits.among(s, t)[0] <= law[s] / (law[s] + law[t]) <= limits.among(s, t)[1]
                for limits, law in ((posterior, after), (bound.prior, before))
                for s, t in pairs
            ):
                worst = max(after[s] / after[t] * before[t] / before[s] for s, t in pairs)
                assert ratios["pairs"] is None or worst <= float(ratios["pairs"]) * (1 + 1e-12)
        elif all(
            limits.share(s)[0] <= law[s] <= limits.share(s)[1]
            for limits, law in ((posterior, after), (bound.prior, before))
            for s in range(len(counts))
        ):
            assert ratios["up"] is None or (after / before).max() <= float(ratios["up"]) * (1 + 1e-12)
            assert ratios["down"] is None or (before / after).max() <= float(ratios["down"]) * (1 + 1e-12)


def test_limits_are_those_of_clopper_and_pearson_of_whole_people() -> None:
    tail = Fraction(1, 1000)
    limits = Limits((7, 3, 20), tail)
    assert limits.share(0) == (Fraction(lower_limit(7, 30, tail), UNIT), Fraction(upper_limit(7, 30, tail), UNIT))
    assert limits.among(0, 1) == (Fraction(lower_limit(7, 10, tail), UNIT), Fraction(upper_limit(7, 10, tail), UNIT))
    assert Limits((0, 0), tail).share(1) == (0, 1)
    assert [statements(Sides(up=1.0), 2), statements(Sides(up=1.0), 3), statements(Sides(pairs=1.0), 3)] == [2, 6, 6]


def test_parts_follow_from_the_seed_and_not_from_the_order_of_the_table() -> None:
    joint = sampled(population(2, (3, 2, 2), seed=1), 400, seed=2)
    halves = Halves.of(joint, "a")
    turned = Joint(
        joint.counts[:, ::-1], joint.secret, funnel.Alphabet(joint.inputs.columns, joint.inputs.symbols[::-1])
    )
    assert np.array_equal(Halves.of(turned, "a").making[:, ::-1], halves.making)
    assert not np.array_equal(Halves.of(joint, "b").making, halves.making)
    proving = np.zeros_like(joint.counts)
    np.add.at(proving, (halves.secret, halves.record), 1)
    assert np.array_equal(halves.making + proving, joint.counts)
    assert halves.making.sum() == 100
    assert (np.diff(halves.record) >= 0).all()


def test_rules_hold_for_all_who_draw_from_a_channel() -> None:
    law = population(2, (5, 3, 3), seed=7, even=0.6)
    joint = sampled(law, 6000, seed=1)
    made = funnel.publish_groups(
        joint, GROUPS, funnel.RLIP(0.9), people=40, schedule=ONE_WAY, seed="one", rules=Rules(10, 0.95, 0.0)
    )
    assert made.utility > 0.1 * joint.entropy
    counts = {
        (joint.secret.symbols[s], joint.inputs.symbols[r]): int(joint.counts[s, r])
        for s, r in zip(*np.nonzero(joint.counts), strict=True)
    }
    followed = follow(made.protocol.to_json(), "rlip:0.9,0.05", counts)
    assert not [*row_complaints(followed, AskedRules(10, Fraction(95, 100), Fraction(0)))]
    assert made.prefixes == followed.prefixes
    assert made.decided == followed.decided
    assert made.told == pytest.approx(followed.told)
    assert made.shared == pytest.approx(followed.shared)
    assert told_in(law, made, "lip:0.9") <= made.level <= 0.9


def test_where_nobody_proves_anything_nothing_is_said() -> None:
    joint = sampled(population(2, (3, 2, 2), seed=1), 60, seed=2)
    made = funnel.publish_groups(joint, GROUPS, funnel.RLIP(0.1), people=5, seed="a")
    assert (made.level, made.utility) == (0.0, 0.0)
    assert {label for texts in made.protocol.labels.values() for label in texts} == {"any"}


def test_refusals_name_what_to_do() -> None:
    joint = sampled(population(2, (3, 2, 2), seed=1), 60, seed=2)
    with pytest.raises(SpecError, match="rlip, ralip or rldp over boxes"):
        funnel.publish_groups(joint, GROUPS, funnel.RLDP(1.0, 0.05, "chi2"))
    rare = Joint.from_counts(
        np.vstack([joint.counts, np.eye(1, len(joint.inputs), dtype=np.int64)]), inputs=joint.inputs
    )
    seed = next(seed for seed in "abcdefgh" if not Halves.of(rare, seed).making[2].any())
    with pytest.raises(DataError, match="too few records have"):
        funnel.publish_groups(rare, GROUPS, funnel.RLIP(1.0), people=5, schedule=ONE_WAY, seed=seed)


def test_a_seed_is_drawn_where_none_is_given() -> None:
    joint = sampled(population(2, (3, 2, 2), seed=1), 200, seed=2)
    made = [funnel.publish_groups(joint, GROUPS, funnel.RLIP(1.0), schedule=ONE_WAY, people=20) for _ in range(2)]
    seeds = [one.proven.seed for one in made if one.proven is not None]
    assert len(set(seeds)) == 2
    assert all(len(seed) == 32 and math.isfinite(int(seed, 16)) for seed in seeds)
