"""What an optimum never falls below: merging, perfect privacy, what does not read the secret; and that it ends."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import funnel
from funnel import LDP, LIP, PML, RLDP, Joint, SolverError
from funnel.alphabet import Alphabet
from funnel.guarantees import parse_guarantee
from funnel.measures import mutual_information
from funnel.solver.budget import Budget
from funnel.solver.floors import Best, propose_columns
from funnel.solver.greedy import partition_weights
from funnel.solver.merging import SymbolRisks, merged_subsets
from funnel.solver.request import Request
from funnel.solver.wide import columns_as_they_are
from tests.strategies import joints

LADDER = (0.0, 1e-16, 1e-13, 1e-10, 1e-8, 1e-6, 1e-3, 0.1, 1.0)
GAP = 1e-6
# The same protocol, read as one that reads the secret too, adds up its utility in another order.
SUMS = 1e-12


@pytest.mark.parametrize(
    "counts",
    [
        [[1, 1, 1], [1489900, 0, 4772300], [1489900, 0, 4772300]],
        [[1, 2, 1], [1489900, 0, 4772300], [2979800, 0, 9544600]],
        [[1, 0, 1, 2], [500_000_000, 1, 0, 500_000_000], [500_000_001, 1, 1, 499_999_999]],
        [[1, 1, 1, 1], [10**8, 10**8, 10**8, 10**8 + 1], [10**8 + 1, 10**8, 10**8 - 1, 10**8]],
    ],
)
def test_rows_that_are_nearly_proportional_end(counts: list[list[int]]) -> None:
    """The margin for rounding alone is more than the gap asked for: no cut of a box can do anything about it."""
    joint = Joint.from_counts(counts)
    for guarantee in (LIP(0.0), LDP(0.0), LIP(1e-12), LIP(1e-6)):
        found = funnel.optimal(joint, guarantee)
        assert found.finished
        assert guarantee.holds(joint, found.protocol)
        assert found.gap <= 1e-4


@settings(max_examples=25, deadline=None)
@given(joints(max_secrets=3, max_inputs=4), st.sampled_from(["lip:{}", "ldp:{}", "alip:{},1", "alip:1,{}"]))
def test_more_budget_is_never_worse_however_small(joint: Joint, kind: str) -> None:
    """Near 0 the region is thinner than doubles can tell; at 0 it has a lattice, which every guarantee allows."""
    found = [funnel.optimal(joint, parse_guarantee(kind.format(epsilon)), gap=GAP) for epsilon in LADDER]
    for smaller, larger in itertools.pairwise(found):
        assert larger.utility >= smaller.utility - 2 * GAP
        assert larger.bound >= smaller.utility


@pytest.mark.parametrize(
    ("counts", "kind"),
    [
        ([[1079933, 1, 1, 0, 1096174], [0, 1046239, 1, 1, 0], [0, 0, 10867, 0, 0], [1, 0, 0, 10264, 0]], "alip:{},1"),
        (
            [[235722042, 70419207, 77065309], [367317476, 312206415, 178291565], [360831781, 260706706, 150957]],
            "lip:{}",
        ),
        ([[35308, 18116, 80840, 73381], [26669, 98475, 50943, 3150], [60055, 91362, 48582, 34505]], "ldp:{}"),
    ],
)
def test_corners_of_a_region_thinner_than_what_tells_its_sides_apart(counts: list[list[int]], kind: str) -> None:
    """Both sides of a condition seem active: a corner has to be moved inside all the same."""
    joint = Joint.from_counts(counts)
    found = [funnel.optimal(joint, parse_guarantee(kind.format(epsilon))) for epsilon in (1e-13, 1e-12, 1e-10, 1e-9)]
    for smaller, larger in itertools.pairwise(found):
        assert larger.utility >= smaller.utility - GAP
    assert all(solution.gap <= 1e-5 for solution in found)


@pytest.mark.parametrize("text", ["lip:1e-16", "lip:1e-12", "lip:1e-10", "ldp:1e-14", "alip:1e-10,1e-10"])
def test_adult_keeps_at_a_tiny_budget_what_it_keeps_at_none(text: str) -> None:
    joint = Joint.from_table("data/adult.parquet", secret=["marital-status"], inputs=["education"])
    found = funnel.optimal(joint, parse_guarantee(text))
    assert found.utility >= funnel.optimal(joint, LIP(0.0)).utility - GAP
    assert found.utility > 0.6186


@pytest.mark.parametrize("counts", [[[9, 9, 3, 18, 0], [1, 1, 4, 2, 7]], [[2, 2, 1, 4, 3, 3], [1, 1, 5, 2, 7, 7]]])
@pytest.mark.parametrize("text", ["alip:1e-9,1", "alip:1,1e-9", "alip:1e-14,0.5"])
def test_duplicated_inputs_under_one_tiny_side(counts: list[list[int]], text: str) -> None:
    joint, guarantee = Joint.from_counts(counts), parse_guarantee(text)
    found = funnel.optimal(joint, guarantee)
    assert guarantee.holds(joint, found.protocol)
    assert found.utility >= funnel.optimal(joint, LIP(0.0)).utility - GAP


@pytest.mark.parametrize(
    ("counts", "text"),
    [
        ([[2, 2751, 0], [597867138, 1549613755, 1]], "ldp:1"),
        ([[2, 1, 2, 2], [0, 0, 2, 2], [2, 2, 1, 1], [1, 0, 0, 0]], "lip:1e-9"),
    ],
)
def test_reading_the_secret_loses_nothing_of_what_is_had_without(counts: list[list[int]], text: str) -> None:
    joint, guarantee = Joint.from_counts(counts), parse_guarantee(text)
    blind = funnel.optimal(joint, guarantee)
    found = funnel.optimal(joint, guarantee, reads_secret=True)
    assert guarantee.holds(joint, found.protocol)
    assert found.utility >= blind.utility - SUMS


@settings(max_examples=25, deadline=None)
@given(
    joints(max_secrets=3, max_inputs=3),
    st.sampled_from([LIP, LDP]),
    st.sampled_from([0.0, 1e-9, 0.1, 1.0]),
    st.sampled_from([1e-9, 1e-3, 1.0]),
)
def test_reading_the_secret_is_never_worse_than_not(
    joint: Joint, kind: type[funnel.Guarantee], epsilon: float, seconds: float
) -> None:
    guarantee = kind(epsilon)
    blind = funnel.optimal(joint, guarantee)
    found = funnel.optimal(joint, guarantee, reads_secret=True)
    assert guarantee.holds(joint, found.protocol)
    assert found.utility >= blind.utility - SUMS
    stopped = funnel.optimal(joint, guarantee, reads_secret=True, time_limit=Budget.of(seconds, lambda: 0.0))
    assert guarantee.holds(joint, stopped.protocol)
    assert stopped.utility <= found.bound
    assert stopped.bound >= found.utility


def counted_work(budget: Budget) -> float:
    """What was spent of a budget that began with a million seconds, in seconds."""
    whole = Budget.of(1e6).remaining
    return (whole - budget.remaining) / whole * 1e6


@pytest.mark.parametrize("reads_secret", [False, True])
def test_a_limit_binds_every_part_of_a_search(reads_secret: bool) -> None:
    """Inner searches, ascents and what is found beforehand take parts of one budget, not a whole one each."""
    joint = Joint.from_counts(np.random.default_rng(1).integers(1, 1000, (8, 40)))
    for seconds in (1e-9, 0.05, 0.3):
        budget = Budget.of(1e6, lambda: 0.0)
        part = budget.part(seconds / 1e6)
        found = funnel.optimal(joint, LIP(0.5), time_limit=part, reads_secret=reads_secret)
        assert found.status == "time limit"
        assert LIP(0.5).holds(joint, found.protocol)
        # One piece of work may end after the limit: a stack of programmes, of 1.6 million numbers each exchange here.
        assert counted_work(budget) <= seconds + 0.5


@settings(max_examples=40, deadline=None)
@given(joints(max_secrets=4, max_inputs=5, min_inputs=2), st.sampled_from([LIP, LDP]), st.sampled_from([0.3, 1.0]))
def test_merging_is_the_floor_at_once(joint: Joint, kind: type[funnel.Guarantee], epsilon: float) -> None:
    guarantee = kind(epsilon)
    stopped = funnel.optimal(joint, guarantee, method="columns", time_limit=1e-9)
    assert guarantee.holds(joint, stopped.protocol)
    subsets = merged_subsets(SymbolRisks(joint, guarantee, Budget.of(None)))
    assert sorted(x for subset in subsets for x in subset) == np.flatnonzero(joint.p_input > 0).tolist()
    weights = partition_weights(joint, subsets)
    assert len(subsets) == 1 or guarantee.holds_for(joint, weights)
    # Once the budget is spent what is left is one subset, which meets the guarantee all the same.
    at_once = merged_subsets(SymbolRisks(joint, guarantee, Budget.of(1e-9)))
    assert guarantee.holds_for(joint, partition_weights(joint, at_once))


def test_a_list_of_vertices_that_the_budget_does_not_allow_is_not_begun() -> None:
    joint = Joint.from_counts(np.random.default_rng(3).integers(1, 1000, (2, 60)))
    budget = Budget.of(1e6, lambda: 0.0)
    found = funnel.optimal(joint, LIP(0.5), time_limit=budget.part(1e-9))
    assert found.status == "time limit"
    assert found.utility > 0.9 * joint.entropy
    assert counted_work(budget) < 0.1
    assert funnel.optimal(joint, LIP(0.5), time_limit=budget).method == "vertices"


def test_a_protocol_at_once_is_as_good_as_subset_merging_on_adult() -> None:
    for secret, inputs in (("marital-status", "education"), ("occupation", "education"), ("income", "occupation")):
        joint = Joint.from_table("data/adult.parquet", secret=[secret], inputs=[inputs])
        for guarantee in (LIP(0.5), LIP(1.0), LDP(1.5)):
            merged = funnel.fit("subset-merging", joint, guarantee)
            stopped = funnel.optimal(joint, guarantee, method="columns", time_limit=1e-9)
            assert stopped.status == "time limit"
            assert stopped.utility >= mutual_information(joint, merged) - 1e-9


def test_a_protocol_at_once_is_as_good_as_subset_merging_on_small_tables() -> None:
    """Inputs with equal posteriors included, which merging may put into different classes."""
    random = np.random.default_rng(5)
    compared = 0
    for number in range(60):
        shape = random.integers(2, 6), random.integers(2, 15)
        joint = Joint.from_counts(random.integers(0, random.choice([4, 50, 1000]), size=shape) + number % 2)
        guarantee = (LIP(0.5), LIP(1.0), LDP(1.0))[number % 3]
        try:
            merged = funnel.fit("subset-merging", joint, guarantee)
        except funnel.InfeasibleGuarantee:
            continue
        stopped = funnel.optimal(joint, guarantee, method="columns", time_limit=1e-9)
        assert stopped.utility >= mutual_information(joint, merged) - 1e-9
        compared += 1
    assert compared > 30


def test_what_tells_nothing_meets_a_robust_budget_of_nothing() -> None:
    """Rounding upwards made the level of a constant channel 9e-13, so that nothing met RLDP(0, set="chi2")."""
    joint, guarantee = Joint.from_counts([[8, 13], [7, 6], [20, 10], [8, 13]]), RLDP(0.0, set="chi2")
    found = funnel.optimal(joint, guarantee)
    assert guarantee.level(joint, found.protocol).value == 0.0
    assert guarantee.holds(joint, found.protocol)


@pytest.mark.parametrize("reads_secret", [False, True])
def test_merging_is_the_floor_of_a_robust_search_too(reads_secret: bool) -> None:
    counts = np.random.default_rng(4).integers(1000, 4000, size=(2, 8))
    counts[:, 5:] = counts[:, :1]
    joint, guarantee = Joint.from_counts(counts), RLDP(0.4, set="chi2")
    stopped = funnel.optimal(joint, guarantee, time_limit=Budget.of(1e-9, lambda: 0.0), reads_secret=reads_secret)
    assert stopped.status == "time limit"
    assert guarantee.holds(joint, stopped.protocol)
    agglomerated = funnel.fit("agglomeration", joint, guarantee)
    assert stopped.utility >= mutual_information(joint, agglomerated) - SUMS > 0.5


def test_two_secrets_with_the_same_records_do_not_hide_a_missing_vertex() -> None:
    """Each condition was there twice, every vertex seemed degenerate, and the bound was below what is reached."""
    counts = [[0, 2, 77, 0, 63, 0], [165, 12, 1, 123, 1, 495], [3, 281, 0, 92, 0, 9], [0, 2, 77, 0, 63, 0]]
    joint = Joint.from_counts(counts)
    for epsilon in (1e-6, 1e-4, 1e-3):
        listed, generated = (funnel.optimal(joint, LIP(epsilon), method=method) for method in ("vertices", "columns"))
        assert listed.bound >= generated.utility
        assert listed.utility <= generated.bound


@pytest.mark.parametrize("reads_secret", [False, True])
def test_conditions_that_are_rounding_for_rare_secrets(reads_secret: bool) -> None:
    joint = Joint.from_counts([[146, 0], [0, 1335384], [4, 30197], [53, 0]])
    found = funnel.optimal(joint, LDP(0.0), reads_secret=reads_secret)
    assert LDP(0.0).holds(joint, found.protocol)


@pytest.mark.parametrize("counts", [[[4, 5, 2], [5, 2, 2]], [[335, 0, 670], [0, 8, 0], [0, 0, 0], [0, 0, 0]]])
def test_a_search_whose_end_was_cut_short_was_ended_by_the_limit(counts: list[list[int]]) -> None:
    """The vertices were listed and mixed in time, but there was nothing left to make integers of them."""
    joint = Joint.from_counts(counts)
    for seconds in (1e-5, 1e-4, 1e-3):
        found = funnel.optimal(joint, LIP(0.1), time_limit=Budget.of(seconds, lambda: 0.0))
        assert found.status in ("optimal", "time limit")


def test_a_search_of_many_inputs_is_not_below_agglomeration_and_says_if_it_gave_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    random = np.random.default_rng(6)
    joint = Joint.from_counts(random.integers(0, 12, (7, 120)) + random.integers(1, 40, (7, 1)))
    budget = Budget.of(1.0, lambda: 0.0)
    found = funnel.optimal(joint, LIP(0.1), time_limit=budget)
    assert found.status == "time limit"
    assert found.utility >= mutual_information(joint, funnel.fit("agglomeration", joint, LIP(0.1)))

    def failing(self: object, bounded: bool = False) -> None:
        raise SolverError("the linear programme over columns failed")

    monkeypatch.setattr("funnel.solver.lp.MasterProgramme.solve", failing)
    failed = funnel.optimal(joint, LIP(0.1), time_limit=1.0)
    assert failed.status == "gave up"
    assert not failed.finished
    assert failed.utility >= mutual_information(joint, funnel.fit("agglomeration", joint, LIP(0.1)))


def rare_secrets(seed: int) -> Joint:
    """Fourteen secrets, some of a few records each, over 110 combinations of two columns."""
    random = np.random.default_rng(seed)
    distribution = random.dirichlet(np.full(14, 0.3))
    columns = [random.dirichlet(np.full(110, 0.3)) for _ in range(14)]
    counts = random.multinomial(20_000, (distribution[:, None] * np.array(columns)).ravel()).reshape(14, 110)
    inputs = Alphabet(("one", "two"), tuple((str(x // 10), str(x % 10)) for x in range(110)))
    return replace(Joint.from_counts(counts[counts.any(axis=1)]), inputs=inputs)


def test_a_hundred_inputs_keep_more_by_a_larger_budget() -> None:
    """A hundred inputs and rare secrets kept nothing at ε = 0.25 and 0.5."""
    joint = rare_secrets(0)
    kept = [funnel.optimal(joint, LIP(epsilon), gap=0.02, time_limit=1.0).utility for epsilon in (0.25, 0.5, 1.0)]
    assert 0.3 * joint.entropy < kept[0] < kept[1] < kept[2]


def test_published_columns_are_a_floor() -> None:
    """The first column is independent of the secret, so that it may be published as it is."""
    random = np.random.default_rng(1)
    alone, rest = random.integers(20, 60, size=12), random.integers(0, 9, size=(5, 8)) + 1
    counts = (rest[:, None, :] * alone[None, :, None]).reshape(5, 96)
    inputs = Alphabet(("one", "two"), tuple((str(x // 8), str(x % 8)) for x in range(96)))
    joint = replace(Joint.from_counts(counts), inputs=inputs)
    request = Request(joint, LIP(0.01), 1e-3, Budget.of(1.0))
    best = Best(request)
    propose_columns(request, best, Budget.of(1.0))
    distribution = alone / alone.sum()
    assert best.utility == pytest.approx(-float(distribution @ np.log(distribution)), abs=1e-9)


def test_published_columns_are_a_floor_of_wide_tables() -> None:
    """Inputs of one posterior are one to the search, which knows no columns any more."""
    random = np.random.default_rng(1)
    alone, rest = random.integers(20, 60, size=16), random.integers(0, 9, size=(4, 65)) + 1
    counts = (rest[:, None, :] * alone[None, :, None]).reshape(4, 1040)
    inputs = Alphabet(("one", "two"), tuple((str(x // 65), str(x % 65)) for x in range(1040)))
    joint = replace(Joint.from_counts(counts), inputs=inputs)
    distribution = alone / alone.sum()
    entropy = -float(distribution @ np.log(distribution))
    weights = columns_as_they_are(joint, LIP(0.01), entropy - 1e-6, Budget.of(1.0))
    assert weights is not None
    assert weights.shape == (16, 1040)
    assert LIP(0.01).sparse_holds(joint, weights)
    assert columns_as_they_are(joint, LIP(0.01), entropy + 1e-6, Budget.of(1.0)) is None
    found = funnel.optimal(joint, LIP(0.01), gap=0.1 * joint.entropy, time_limit=Budget.of(1e-9, lambda: 0.0))
    assert found.utility >= entropy - 1e-9


@pytest.mark.parametrize("seed", range(4))
def test_what_is_known_is_a_floor_so_that_no_sweep_falls(seed: int) -> None:
    """Searches of so little work do not end: by themselves they keep less at some larger budget."""
    random = np.random.default_rng(seed)
    joint = rare_secrets(seed) if seed % 2 else Joint.from_counts(random.integers(0, 4, (6, 90)) ** 3 + 1)
    kind = (LIP, LDP)[seed // 2]
    known: list[funnel.Protocol] = []
    last = 0.0
    for epsilon in (0.2, 0.3, 0.5, 0.7, 1.0, 1.4):
        budget = Budget.of(0.1, lambda: 0.0)
        found = funnel.optimal(joint, kind(epsilon), gap=1e-3, time_limit=budget, known=known)
        assert kind(epsilon).holds(joint, found.protocol)
        assert last <= found.utility <= found.bound
        assert found.protocol.guarantee == str(kind(epsilon))
        merged = funnel.fit("agglomeration", joint, kind(epsilon))
        assert found.utility >= mutual_information(joint, merged) - 1e-6
        known, last = [found.protocol], found.utility


@pytest.mark.parametrize("kind", [LIP, LDP, PML])
def test_made_apart_utility_falls_by_the_certified_gap_at_most(kind: type[LIP | LDP | PML]) -> None:
    """What meets a smaller budget meets a larger one, so the larger one's bound is above what either keeps."""
    falls = 0
    for seed in range(6):
        random = np.random.default_rng(seed)
        shape = (int(random.integers(2, 6)), int(random.integers(5, 61)))
        counts = random.multinomial(20_000, random.dirichlet(np.full(shape[0] * shape[1], 0.3))) + 1
        joint, kept = Joint.from_counts(counts.reshape(shape)), 0.0
        for epsilon in (0.3, 0.6, 0.8, 1.0, 1.3):
            found = funnel.optimal(joint, kind(epsilon), time_limit=Budget.of(0.05, lambda: 0.0))
            assert kept - found.utility <= found.bound - found.utility == pytest.approx(found.gap)
            falls += kept > found.utility + 1e-9
            kept = max(kept, found.utility)
    # Without a fall nothing would be tested here.
    assert falls or kind is not LDP


@pytest.mark.parametrize("text", ["lip:{}", "rlip:{},0.05", "lip:{} reading the secret"])
def test_what_is_known_counts_only_where_it_meets_the_guarantee(text: str) -> None:
    joint = Joint.from_counts([[30, 10, 4], [10, 50, 9]])
    reads = text.endswith("secret")
    text = text.split()[0]
    larger = funnel.optimal(joint, parse_guarantee(text.format(1.0)), reads_secret=reads)
    smaller = funnel.optimal(joint, parse_guarantee(text.format(0.5)), reads_secret=reads)
    assert larger.utility > smaller.utility
    again = funnel.optimal(
        joint, parse_guarantee(text.format(0.5)), reads_secret=reads, known=[larger.protocol], time_limit=1e-9
    )
    assert again.utility < larger.utility
    at_once = funnel.optimal(
        joint, parse_guarantee(text.format(1.0)), reads_secret=reads, known=[larger.protocol], time_limit=1e-9
    )
    assert at_once.utility >= larger.utility


def test_an_invariant_sweep_hands_on_what_is_invariant_alone() -> None:
    joint = Joint.from_counts([[30, 10, 4], [10, 50, 9]])
    found = funnel.optimal(joint, LIP(0.5), utility="unchanged")
    informative = funnel.optimal(joint, LIP(0.5)).protocol
    known = [found.protocol, informative]
    again = funnel.optimal(joint, LIP(1.0), utility="unchanged", known=known, time_limit=1e-9)
    assert again.utility >= found.utility
    assert again.protocol.is_invariant
