"""Mechanisms at their limits: budgets that end too soon, tiny ε, and what they say to use instead where they refuse."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import funnel
from funnel import LIP, Alphabet, FunnelError, Guarantee, InfeasibleGuarantee, Joint, SpecError, parse_guarantee
from funnel.guarantees import names as kinds
from funnel.guarantees.base import ConeGuarantee
from funnel.measures import mutual_information
from funnel.mechanisms import mechanism, names
from funnel.mechanisms.memory import LARGEST, check_size, largest_table
from funnel.solver.budget import Budget
from funnel.solver.greedy import _merged, partition_weights
from tests.strategies import joints

ONE = Joint.from_counts(np.random.default_rng(1).integers(1, 90, (2, 11)))
TWO = Joint(
    np.random.default_rng(2).integers(1, 90, (2, 12)),
    Alphabet.of(None, 2, "s"),
    Alphabet(("p", "q"), tuple((f"p{x % 3}", f"q{x // 3}") for x in range(12))),
)
EXAMPLES = ["lip:0.5", "alip:1.3,0.7", "ldp:0.5", "srlip:0.5", "rldp:2.0,0.05,chi2", "perfect"]
EXAMPLES += ["pml:0.5", "rlip:2.0", "ralip:2.0,1.5,0.1", "rldp:2.0", "rpml:2.0"]
EXAMPLES += ["attribute:0.5", "rsrlip:2.0", "rattribute:2.0", "lip:0.5 & ldp:0.8", "rlip:2.0 & srlip:0.8"]
EXAMPLES += ["l1-lift:0.5,0.5", "chi2-lift:0.5,0.5", "alpha-lift:0.5,0.5,3", "mi:0.05"]


def test_every_kind_of_guarantee_has_an_example_here() -> None:
    assert {parse_guarantee(text).name for text in EXAMPLES} == set(kinds())


def tried(name: str, joint: Joint, guarantee: Guarantee, limit: float | None = 1.0) -> FunnelError | None:
    """Why a mechanism does not give a protocol; None if it does."""
    try:
        protocol = funnel.fit(name, joint, guarantee, limit)
    except (SpecError, InfeasibleGuarantee) as error:
        return error
    assert guarantee.holds(joint, protocol)
    return None


@pytest.mark.parametrize("joint", [ONE, TWO], ids=["one column", "two columns"])
@pytest.mark.parametrize("text", EXAMPLES)
def test_what_a_refusal_names_instead_applies(text: str, joint: Joint) -> None:
    guarantee = parse_guarantee(text)
    if "srlip" in text and joint is ONE:
        with pytest.raises(SpecError, match="publish two columns"):
            funnel.plan(joint, guarantee)
        return
    if text.startswith("r"):
        # Worst cases over a confidence set take long; a few values show the same.
        joint = Joint(joint.counts[:, :4], joint.secret, Alphabet(joint.inputs.columns, joint.inputs.symbols[:4]))
    errors = {name: tried(name, joint, guarantee, 0.05) for name in names()}
    for name, error in errors.items():
        if not isinstance(error, SpecError):
            continue
        _, _, hint = str(error).rpartition("use ")
        named = [word for word in re.findall(r"[a-z0-9-]+", hint) if word in names()]
        assert named, str(error)
        for other in named:
            assert not isinstance(errors[other], SpecError), f"{name}: {error}"


@settings(max_examples=30)
@given(
    joints(max_secrets=3, max_inputs=5),
    st.sampled_from([parse_guarantee(text) for text in EXAMPLES if not text.startswith(("srlip", "r", "attribute"))]),
    st.sampled_from([1e-9, 1e-4, 1e-3]),
)
def test_whatever_the_budget_a_protocol_holds_and_says_whether_it_is_the_last_word(
    joint: Joint, guarantee: Guarantee, limit: float
) -> None:
    for name in names():
        if name in ("optimal", "optimal-with-secret"):
            continue
        try:
            found = mechanism(name).fitted(joint, guarantee, Budget.of(limit))
        except FunnelError:
            continue
        assert guarantee.holds(joint, found.protocol)
        if found.finished:
            assert found.protocol.digest == mechanism(name).fit(joint, guarantee).digest, name


@pytest.mark.parametrize("name", ["subset-random-response", "subset-merging", "agglomeration", "grr"])
def test_a_budget_binds(name: str) -> None:
    """The work charged ends near the limit, however large the table; nothing waits for a clock."""
    joint = Joint.from_counts(np.random.default_rng(3).integers(1, 40, (3, 120)))
    budget = Budget.of(0.02, lambda: 0.0)
    found = mechanism(name).fitted(joint, LIP(0.3), budget)
    assert not found.finished
    assert LIP(0.3).holds(joint, found.protocol)
    assert budget.remaining > -0.05e9


@pytest.mark.parametrize("epsilon", [1e-16, 1e-12, 1e-9, 1e-6])
def test_random_response_is_never_less_than_merging(epsilon: float) -> None:
    for counts in ([[30, 20, 5], [10, 40, 7]], [[4, 1, 4, 1, 5], [1, 4, 1, 4, 5]]):
        joint = Joint.from_counts(counts)
        merged, response = (
            mutual_information(joint, funnel.fit(name, joint, LIP(epsilon)))
            for name in ("subset-merging", "subset-random-response")
        )
        assert response >= merged


@pytest.mark.parametrize("name", ["watchdog", "watchdog-uniform", "subset-merging", "subset-random-response"])
def test_over_a_set_of_distributions_somebody_may_have_inputs_that_never_occurred(name: str) -> None:
    """The last input never occurred: floats must judge what it is published as, or the exact decision refuses."""
    joint = Joint.from_counts([[241, 78, 95, 134, 54, 56, 0], [598, 236, 242, 154, 22, 48, 0]])
    guarantee = parse_guarantee("rldp:1.0,0.05")
    protocol = funnel.fit(name, joint, guarantee)
    assert guarantee.holds(joint, protocol)
    assert mutual_information(joint, protocol) > 0.86


@settings(max_examples=40)
@given(joints(max_secrets=3, max_inputs=6, min_inputs=2))
def test_the_greedy_way_merges_what_hides_most_for_what_it_costs(joint: Joint) -> None:
    """Each step against all pairs, weighed by their definition."""
    seen = joint.counts.any(axis=0)
    groups = {place: [x] for place, x in enumerate(np.flatnonzero(seen))}

    def told(subsets: list[list[int]]) -> tuple[float, float]:
        distribution = np.stack([joint.p[:, subset].sum(axis=1) for subset in subsets], axis=1)
        mass, prior = distribution.sum(axis=0), distribution.sum(axis=1)
        ratio = np.divide(distribution, prior[:, None] * mass, out=np.ones_like(distribution), where=distribution > 0)
        return float((distribution * np.log(ratio)).sum()), float(-(mass * np.log(mass)).sum())

    for first, second in _merged(joint.counts[:, seen].astype(np.float64), Budget.of(None))[0]:
        now = told(list(groups.values()))
        gains = {}
        for one in groups:
            for other in groups:
                if one < other:
                    rest = [subset for place, subset in groups.items() if place not in (one, other)]
                    after = told([*rest, groups[one] + groups[other]])
                    gains[one, other] = (now[0] - after[0]) / max(now[1] - after[1], 1e-300)
        assert gains[first, second] >= max(gains.values()) - 1e-6 * (1 + max(map(abs, gains.values())))
        groups[first] = groups[first] + groups.pop(second)
    assert len(groups) == 1


def test_a_way_cut_short_still_ends_at_one_output() -> None:
    joint = Joint.from_counts(np.random.default_rng(3).integers(1, 40, (3, 120)))
    for limit in (1e-9, 3e-3):
        way, whole = _merged(joint.counts.astype(np.float64), Budget.of(limit))
        assert not whole
        assert sorted(second for _, second in way) == sorted(set(range(120)) - {way[-1][0]})
    short = mechanism("agglomeration").fitted(joint, LIP(0.3), Budget.of(0.03))
    assert not short.finished
    assert mutual_information(joint, short.protocol) > 0.1


@settings(max_examples=25)
@given(joints(max_secrets=3, max_inputs=5), st.sampled_from([parse_guarantee(text) for text in EXAMPLES[-4:]]))
def test_agglomeration_stops_at_the_first_partition_on_the_way_that_holds(joint: Joint, guarantee: Guarantee) -> None:
    seen = [int(x) for x in np.flatnonzero(joint.counts.any(axis=0))]
    subsets = [(x,) for x in seen]
    table = dict(enumerate(subsets))
    way, whole = _merged(joint.counts[:, seen].astype(np.float64), Budget.of(None))
    assert whole
    number = len(seen)
    for first, second in [(0, 0), *way]:
        if first != second:
            table[first] += table.pop(second)
        number = len(table)
        if guarantee.holds_for(joint, partition_weights(joint, tuple(table.values()))):
            break
    assert len(funnel.fit("agglomeration", joint, guarantee).outputs) == number


def test_the_largest_table_is_the_largest_that_is_not_refused() -> None:
    size = largest_table()
    check_size(Joint.from_counts(np.ones((2, size), dtype=int)), funnel.SRLIP(1.0))
    too_many = Joint.from_counts(np.ones((2, size + 1), dtype=int))
    # What is about the posterior under known counts needs no table.
    check_size(too_many, LIP(1.0))
    for text in ("srlip:1.0", "rlip:1.0,0.05", "perfect"):
        with pytest.raises(SpecError, match=rf"{size + 1:,} combinations of X occur.* at most {size:,} of them"):
            check_size(too_many, parse_guarantee(text))


@pytest.mark.parametrize("name", [name for name in names() if mechanism(name).reads_secret])
def test_what_reads_the_secret_needs_more_memory(name: str) -> None:
    guarantee = parse_guarantee(
        "rldp:1.0,0.05,chi2" if "robust" in name or name in ("polyopt", "independent-reporting") else "lip:1"
    )
    joint = Joint.from_counts(np.ones((20, 2000), dtype=int))
    assert mechanism(name).memory(joint, guarantee) > LARGEST
    with pytest.raises(SpecError, match=rf"2,000 combinations of X occur, for which {name} would need about [\d,]+ GB"):
        funnel.fit(name, joint, guarantee)
    assert isinstance(guarantee, ConeGuarantee) or mechanism(name).memory(joint, LIP(1.0)) <= LARGEST


def test_a_wide_table_needs_no_memory_for_a_table() -> None:
    size = largest_table() + 1
    joint = Joint.from_counts(np.stack([np.arange(size) % 3 + 1, np.arange(size) % 5 + 1]))
    assert mechanism("optimal").memory(joint, LIP(1.0)) < LARGEST / 50
    protocol = funnel.fit("optimal", joint, LIP(0.2))
    assert protocol.is_sparse
    assert LIP(0.2).holds(joint, protocol)
    # Every other mechanism makes a table, and one that reads the secret a larger one.
    for name in ("grr", "optimal-with-secret", "watchdog"):
        with pytest.raises(SpecError, match=rf"{size:,} combinations of X occur.*use optimal, which needs no table"):
            funnel.fit(name, joint, LIP(0.2))
