"""The invariant optimum: its channel, balance and bound, against the whole linear programme by another solver."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import linprog

import funnel
from funnel import Alphabet, Guarantee, Joint, Protocol, SpecError
from funnel.bounds import Bounds
from funnel.frequencies import public_counts
from funnel.guarantees.base import ConeGuarantee
from funnel.guarantees.families import Families
from funnel.joint import FloatArray
from funnel.progress import quiet
from funnel.protocol import DENOMINATOR
from funnel.recount.count_box import CountBox
from funnel.recount.levels import plain_level
from funnel.solver import invariant
from funnel.solver.budget import UNITS_A_SECOND, Budget
from funnel.solver.conditions import Conditions
from funnel.solver.integer_balance import IMBALANCE, imbalance, in_balance, proven_weights
from funnel.solver.interior import InteriorProgramme
from funnel.solver.invariant import counted
from tests.funnel.guarantees.known import noisy_tables
from tests.strategies import budgets, joints

KINDS = [funnel.LIP, funnel.LDP, funnel.PML]
WEIGHTS = st.sampled_from(["root", "share", "uniform"])
ADULT = "data/adult.parquet"


def off_balance(joint: Joint, protocol: Protocol) -> Fraction:
    """The largest ``|Σ_x p_x W(y|x) - p_y|``, straight from its definition."""
    numbers = joint.counts.sum(axis=0).tolist()
    drawn = [sum(n * w for n, w in zip(numbers, row, strict=True)) for row in protocol.weights.tolist()]
    return max(abs(Fraction(got, DENOMINATOR) - n) for got, n in zip(drawn, numbers, strict=True)) / joint.n


class Whole(NamedTuple):
    """The whole programme's optimum: what its prices prove that no channel exceeds, and its channel (n, n)."""

    most: float
    channel: FloatArray


def whole_programme(joint: Joint, guarantee: ConeGuarantee, worth: FloatArray) -> Whole | None:
    """The optimum over all pairs of values that occur, with every condition, by HiGHS through SciPy."""
    seen = joint.p_input > 0
    return whole_optimum(joint.p_input[seen], worth[seen], guarantee.cone(joint)[:, seen])


def whole_optimum(distribution: FloatArray, worth: FloatArray, cone: FloatArray) -> Whole | None:
    """The same for half-spaces (m, n) of every row.

    The value of a solution may be above the optimum by what it breaks conditions; what prices prove is not below it.
    """
    n = len(distribution)
    conditions = sp.kron(sp.eye_array(n), sp.csr_array(cone))
    sums = sp.kron(np.ones((1, n)), sp.eye_array(n))
    balance = sp.kron(sp.diags_array(1 / distribution), distribution[None])
    equations = sp.vstack([sums, balance])
    found = linprog(
        -np.diag(worth).ravel(),
        A_ub=conditions,
        b_ub=np.zeros(conditions.shape[0]),
        A_eq=equations,
        b_eq=np.ones(2 * n),
        bounds=(0, None),
        method="highs",
    )
    # In near-deterministic tables it can fail itself; there is nothing to compare with then.
    if found.status != 0:
        return None
    # Entries are between 0 and 1, so any prices of conditions, not negative, and of equations bound the optimum.
    prices, shares = np.maximum(-found.ineqlin.marginals, 0.0), -found.eqlin.marginals
    over = np.diag(worth).ravel() - conditions.T @ prices - equations.T @ shares
    return Whole(float(shares.sum() + np.maximum(over, 0.0).sum()), found.x.reshape(n, n))


@settings(max_examples=60)
@given(joints(), st.sampled_from(KINDS), budgets, WEIGHTS)
def test_it_is_the_optimum_of_the_whole_programme(
    joint: Joint, kind: type[Guarantee], epsilon: float, weights: str
) -> None:
    guarantee = kind(epsilon)  # type: ignore[call-arg]
    found = funnel.optimal(joint, guarantee, utility="unchanged", weights=weights)  # type: ignore[arg-type]
    protocol = found.protocol
    assert protocol.outputs == protocol.inputs == joint.inputs
    assert guarantee.holds(joint, protocol)
    assert off_balance(joint, protocol) <= IMBALANCE
    assert found.utility <= found.bound
    assert isinstance(guarantee, ConeGuarantee)
    worth = counted(joint, weights)  # type: ignore[arg-type]
    whole = whole_programme(joint, guarantee, worth)
    if whole is not None:
        # What the channel lacks would be an error of search, what the bound lacks one of proof.
        assert found.utility - 1e-12 <= whole.most <= found.utility + 1e-5
        other = proven_weights(joint, guarantee, whole.channel)
        # By what is lost: weights that are rounded need not sum to one.
        lost = worth @ (DENOMINATOR - np.diagonal(other)).astype(np.float64)
        assert 1 - float(lost) / DENOMINATOR <= found.bound
    assert found.utility == pytest.approx(float(worth @ np.diagonal(protocol.matrix)), abs=1e-12)


@pytest.mark.parametrize("weights", ["root", "share", "uniform"])
@pytest.mark.parametrize("text", ["lip:0.4", "ldp:0.8 & pml:0.3"])
def test_values_that_are_alike_lose_nothing_by_being_merged(text: str, weights: str) -> None:
    """Equal columns, and proportional ones, with values that nobody has between them."""
    few, many = [[5, 1], [1, 1], [0, 2]], [[60, 2], [7, 9], [3, 30]]
    columns = [many[0], *3 * [few[0]], [0, 0], many[1], *2 * [few[1]], *4 * [few[2]], many[2], [10, 2], [0, 0]]
    joint = Joint.from_counts(np.array(columns).T)
    guarantee = funnel.parse_guarantee(text)
    found = funnel.optimal(joint, guarantee, utility="unchanged", weights=weights)  # type: ignore[arg-type]
    assert guarantee.holds(joint, found.protocol)
    assert off_balance(joint, found.protocol) <= IMBALANCE
    assert isinstance(guarantee, ConeGuarantee)
    worth = counted(joint, weights)  # type: ignore[arg-type]
    whole = whole_programme(joint, guarantee, worth)
    assert whole is not None
    most = whole.most
    assert most - 1e-6 <= found.utility <= found.bound <= most + 2e-6
    # Merged values exchange records by few pairs, not each with each.
    seen = joint.p_input > 0
    assert (found.protocol.weights[:, seen] > 0).sum() < seen.sum() ** 2 / 2


@pytest.mark.parametrize("text", ["perfect", "ldp:0.0", "srlip:0.0", "attribute:0.0"])
@pytest.mark.parametrize("secrets", [2, 3])
def test_independence_is_the_optimum_of_the_whole_programme_in_whole_numbers(secrets: int, text: str) -> None:
    """Equations leave more than the constant channel wherever there are more values than secrets."""
    inputs = Alphabet(("age", "sex"), tuple(itertools.product(("young", "mid", "old"), ("f", "m"))))
    counts = np.random.default_rng(secrets).integers(1, 500, size=(secrets, 6))
    joint = Joint.from_counts(counts, [f"s{s}" for s in range(secrets)], inputs)
    if text == "attribute:0.0":
        joint = joint.with_secret()
    guarantee = funnel.parse_guarantee(text)
    found = funnel.optimal(joint, guarantee, utility="unchanged")
    assert guarantee.level(joint, found.protocol).value == 0
    assert off_balance(joint, found.protocol) <= IMBALANCE
    worth = counted(joint, "root")
    assert isinstance(guarantee, ConeGuarantee)
    whole = whole_programme(joint, guarantee, worth)
    assert whole is not None
    most = whole.most
    assert most - 1e-5 <= found.utility <= found.bound <= most + 1e-5
    assert text != "perfect" or found.utility > worth @ joint.p_input + 0.01


def test_a_search_among_values_of_hardly_any_records_ends() -> None:
    joint = Joint.from_counts([[1_000_000, 0, 0, 1], [1_000_000, 0, 1, 1]])
    found = funnel.optimal(joint, funnel.PerfectPrivacy(), utility="unchanged")
    assert funnel.PerfectPrivacy().holds(joint, found.protocol)
    assert found.utility <= found.bound


@settings(max_examples=25)
@given(joints(max_secrets=3, max_inputs=4), st.sampled_from([0.3, 1.0]))
def test_robust_bounds_hold_for_every_distribution_and_are_near_their_certificate(joint: Joint, epsilon: float) -> None:
    if (joint.counts.sum(axis=1) == 0).any():
        return
    guarantee = funnel.RLIP(epsilon, 0.05)
    found = funnel.optimal(joint, guarantee, gap=1e-4, utility="unchanged")
    assert guarantee.holds(joint, found.protocol)
    assert off_balance(joint, found.protocol) <= IMBALANCE
    nominal = funnel.optimal(joint, funnel.LIP(epsilon), utility="unchanged")
    # To hold for more distributions never leaves more unchanged; bounds are as far from the optimum as asked for.
    assert found.utility <= min(found.bound, nominal.bound + 1e-6)
    assert found.bound <= nominal.bound + 1e-4


def every_table(joint: Joint) -> list[FloatArray]:
    """All tables of counts within the bounds of a joint distribution, as seen by a channel that may read the secret."""
    bounds = joint.bounds
    assert bounds is not None
    ranges = [range(low, high + 1) for low, high in zip(bounds.lower.ravel(), bounds.upper.ravel(), strict=True)]
    tables = (np.array(table).reshape(bounds.shape) for table in itertools.product(*ranges))
    return [table for table in tables if bounds.hold(table)]


@pytest.mark.parametrize(
    "guarantee", [funnel.LIP(0.7), funnel.LDP(1.0), funnel.PML(0.8), funnel.SRLIP(0.7), funnel.Attribute(1.0)], ids=str
)
@pytest.mark.parametrize("reading", [False, True])
def test_over_noisy_counts_it_is_the_optimum_under_all_their_tables(
    guarantee: ConeGuarantee, reading: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every whole table within the bounds with all its conditions, in one linear programme by another solver."""
    inputs = Alphabet(("age", "sex"), tuple(itertools.product(("young", "old"), ("f", "m"))))
    counts = np.array([[9, 4, 2, 6], [3, 0, 5, 4]])
    lower, upper = np.maximum(counts - np.array([1, 0, 1, 0]), 0), counts + np.array([[1, 1, 0, 1], [0, 2, 1, 0]])
    bounds = Bounds(lower, upper, np.array([[20, 23], [12, 14]]), 0.01)
    plain = Joint.from_counts(counts, ["low", "high"], inputs)
    joint = Joint(counts, plain.secret, inputs, bounds)
    if reading:
        joint = joint.with_secret()
    elif guarantee.name == "attribute":
        guarantee = funnel.SRLIP(1.0)
    if reading and guarantee.name != "attribute":
        # What a published secret needs is not what is looked at here.
        monkeypatch.setattr(invariant, "check_published_secret", lambda guarantee, joint: None)
    found = funnel.optimal(joint, guarantee, gap=1e-5, utility="unchanged")
    assert guarantee.holds(joint, found.protocol)
    cones = [
        guarantee.cone(Joint(table, joint.secret, joint.inputs)) @ Conditions.of(joint, guarantee, 0.0).extension
        for table in every_table(joint)
    ]
    seen = joint.p_input > 0
    whole = whole_optimum(joint.p_input[seen], counted(joint, "root")[seen], np.unique(np.vstack(cones), axis=0))
    assert whole is not None
    assert whole.most == pytest.approx(found.bound, abs=3e-5)
    assert whole.most == pytest.approx(found.utility, abs=3e-5)


@settings(max_examples=15, deadline=None)
@given(noisy_tables(), st.sampled_from(["srlip:0.7", "lip:0.7", "rlip:1.2,0.1 & srlip:0.7", "attribute:0.7"]))
def test_no_protocol_that_holds_beats_the_bound_over_noisy_counts(joint: Joint, text: str) -> None:
    """Optima of other budgets under the counts alone, where they hold for all tables, and the second computation."""
    assert joint.bounds is not None
    assume((joint.bounds.totals[:, 1] > 0).all() and joint.bounds.upper.any(axis=1).all())
    reading = "attribute" in text
    read, guarantee = (joint.with_secret() if reading else joint), funnel.parse_guarantee(text)
    found = funnel.optimal(read, guarantee, gap=1e-3, utility="unchanged")
    box = CountBox.of(joint.bounds.lower, joint.bounds.upper, joint.bounds.totals)
    again = plain_level(
        text,
        joint.counts.tolist(),
        found.protocol.weights.tolist(),
        reads_secret=reading,
        published=joint.inputs.symbols,
        box=box,
    )
    assert again.holds
    assert again.nats == pytest.approx(guarantee.level(read, found.protocol).value, rel=1e-12, abs=1e-300)
    plain = replace(joint, bounds=None)
    plain = plain.with_secret() if reading else plain
    other = funnel.Attribute if reading else funnel.SRLIP
    worth = counted(read, "root")
    for epsilon in (0.05, 0.2, 0.5):
        protocol = funnel.optimal(plain, other(epsilon), gap=1e-3, utility="unchanged").protocol
        if guarantee.holds(read, protocol):
            assert float(worth @ np.diagonal(protocol.matrix)) <= found.bound + 1e-12


def test_several_guarantees_hold_together() -> None:
    joint = Joint.from_table(ADULT, secret=["income"], inputs=["education", "sex"])
    both = funnel.optimal(joint, [funnel.RLIP(1.0, 0.05), funnel.SRLIP(1.0)], gap=1e-4, utility="unchanged")
    for guarantee in (funnel.RLIP(1.0, 0.05), funnel.SRLIP(1.0)):
        assert guarantee.holds(joint, both.protocol)
        alone = funnel.optimal(joint, guarantee, gap=1e-4, utility="unchanged")
        assert both.utility <= alone.bound
    assert both.gap <= 1e-4


@pytest.mark.parametrize(("text", "margin"), [("lip:0.7", 1e-7), ("srlip:1.0", 0.0)])
def test_interior_points_with_all_cones_find_the_optimum_of_the_whole_programme(
    text: str, margin: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    joint = Joint.from_table(ADULT, secret=["marital-status"], inputs=["race", "sex"])
    guarantee = funnel.parse_guarantee(text)
    assert isinstance(guarantee, ConeGuarantee)
    # No simplex method: it would find the same optimum, and its bound.
    monkeypatch.setattr(invariant, "_MANY", 0)
    monkeypatch.setattr(invariant, "_MARGIN", margin)
    monkeypatch.delattr(invariant._Search, "_run_exchanging")
    found = funnel.optimal(joint, guarantee, gap=1e-5, utility="unchanged")
    worth = counted(joint, "root")
    whole = whole_programme(joint, guarantee, worth)
    assert whole is not None
    assert guarantee.holds(joint, found.protocol)
    assert found.utility - 1e-12 <= whole.most <= found.bound + 1e-9
    assert found.gap <= 1e-5
    other = proven_weights(joint, guarantee, whole.channel)
    assert float(worth @ np.diagonal(other)) / DENOMINATOR <= found.bound


def _programme_and_families() -> tuple[InteriorProgramme, Families, float]:
    """A programme solved coarsely, the families its solution breaks, and the optimum with these."""
    joint = Joint.from_counts([[40, 20, 30, 25], [10, 25, 20, 45], [5, 5, 30, 20]])
    conditions = Conditions.of(joint, funnel.RLIP(1.0, 0.05), 0.0)
    distribution = joint.p_input
    spaces = (conditions.inside * distribution, conditions.fixed * distribution)
    programme = InteriorProgramme(distribution, counted(joint, "root"), spaces, Budget.of(None))
    first = programme.solve(1e-2)
    families = conditions.families(first.flows / distribution / distribution[:, None], 1e-5)
    alone = InteriorProgramme(distribution, counted(joint, "root"), spaces, Budget.of(None))
    alone.add(families)
    return programme, families, alone.solve(1e-6).value


def test_interior_points_drop_families_that_hardly_count_and_stay_at_the_optimum() -> None:
    programme, families, optimum = _programme_and_families()
    programme.add(families)
    programme.solve(1e-4)
    before = len(programme._families)
    programme.drop_loose()
    assert 0 < len(programme._families) < before
    assert programme.solve(1e-5).value == pytest.approx(optimum, abs=1e-4)


def test_a_search_that_meets_all_conditions_early_goes_on_to_its_gap() -> None:
    """7,000 people of Census-Income: the bound of a coarse round is off by its margin, which no family mends."""
    counts = [
        [3, 68, 60, 31, 2, 81, 51, 34, 18, 1, 1, 1, 28, 0, 1, 0, 0, 24, 17, 10, 1, 23, 10, 8],
        [1, 26, 37, 51, 0, 18, 28, 39, 13, 0, 0, 1, 15, 1, 0, 4, 0, 6, 6, 22, 2, 6, 23, 13],
        [41, 556, 511, 519, 44, 468, 506, 481, 778, 2, 1, 0, 786, 0, 1, 0, 1, 221, 275, 344, 0, 224, 236, 226],
    ]
    schools, ages = ("children", "school", "other"), ("16 to 32", "33 to 49", "50 or older", "under 16")
    inputs = Alphabet(("education", "sex", "age"), tuple(itertools.product(schools, ("f", "m"), ages)))
    joint, budget = Joint.from_counts(counts, inputs=inputs), Budget.of(60)
    several = funnel.parse_guarantee("rlip:1.0,0.05 & srlip:1.0")
    found = funnel.optimal(joint, several, 1e-4, time_limit=budget, utility="unchanged")
    assert found.gap <= 1e-4
    assert budget.spent < 2 * UNITS_A_SECOND


@given(
    arrays(np.float64, (4, 4), elements=st.floats(0, 1)),
    st.lists(st.sampled_from([1e-6, 1e-3, 0.1, 1.0]), min_size=4, max_size=4),
)
def test_flows_however_far_from_balance_come_into_it(flows: FloatArray, sizes: list[float]) -> None:
    distribution = np.array(sizes) / np.sum(sizes)
    channel = in_balance((flows + 1e-9) * distribution, distribution)
    assert channel.min() >= -1e-12
    assert np.abs(channel.sum(axis=0) - 1).max() <= 1e-12
    assert np.abs(channel @ distribution - distribution).max() <= 1e-12


def test_a_search_is_not_done_by_flows_that_are_out_of_balance() -> None:
    """Rare values: flows that rounding left .3 % out of balance seemed to reach more than the proven bound."""
    joint = Joint.from_table(ADULT, secret=["income"], inputs=["education", "sex"])
    budget = Budget.of(60)
    found = funnel.optimal(joint, funnel.parse_guarantee("rsrlip:1.0,0.05"), time_limit=budget, utility="unchanged")
    assert found.gap <= 1e-6
    assert budget.spent < 10 * UNITS_A_SECOND


def test_a_search_without_a_limit_ends_where_rounding_keeps_it_from_its_gap() -> None:
    """Beliefs may hardly fall: pairs as needed went on for minutes, far behind the interior points."""
    joint, budget = Joint.from_table(ADULT, secret=["income"], inputs=["education", "sex"]), Budget.of(None)
    guarantee = funnel.parse_guarantee("ralip:1.0,0.05,0.05")
    found = funnel.optimal(joint, guarantee, time_limit=budget, utility="unchanged")
    assert guarantee.holds(joint, found.protocol)
    assert found.gap <= 1e-4
    assert budget.spent < 30 * UNITS_A_SECOND


def test_with_the_secret_published_every_pair_is_drawn_whether_it_occurs_or_not() -> None:
    counts = [[40, 0, 30], [10, 25, 20]]
    joint = Joint.from_counts(counts, secret=["ill", "well"], inputs=["a", "b", "c"]).with_secret()
    guarantee = funnel.Attribute(1.0)
    found = funnel.optimal(joint, guarantee, utility="unchanged")
    assert guarantee.holds(joint, found.protocol)
    assert off_balance(joint, found.protocol) <= IMBALANCE
    # (ill, b), which no record has, draws as (well, b) does.
    assert (found.protocol.weights[:, 1] == found.protocol.weights[:, 4]).all()
    assert not found.protocol.weights[1].any()


def test_over_noisy_counts_no_output_moves_for_an_upper_bound_on_its_level(monkeypatch: pytest.MonkeyPatch) -> None:
    """Levels over counts are upper bounds, loose in the small events here: nothing that attains them breaks a row."""
    monkeypatch.setattr(public_counts, "draw_noise", lambda size, epsilon, **_: np.zeros(size, dtype=np.int64))
    inputs = Alphabet(("education", "sex"), tuple(itertools.product(("school", "degree"), ("female", "male"))))
    counts = np.array([[970, 711, 1905, 1243], [30, 59, 215, 412]])
    joint = funnel.protect(Joint.from_counts(counts, ["low", "high"], inputs)).with_secret()
    guarantee = funnel.Attribute(1.0)
    found = funnel.optimal(joint, guarantee, gap=1e-4, utility="unchanged")
    assert guarantee.holds(joint, found.protocol)
    assert found.gap <= 1e-4


def test_values_that_no_record_has_draw_from_the_marginal() -> None:
    joint = Joint.from_counts([[30, 0, 10], [10, 0, 50]])
    protocol = funnel.fit("invariant", joint, funnel.LIP(0.5))
    assert (protocol.weights[:, 1] == protocol.marginal).all()
    assert not protocol.weights[1].any()


def test_a_protocol_balanced_for_other_counts_is_not_balanced_for_these() -> None:
    """The mutant that would give exact counts away: protocol and target are solved for the exact counts."""
    exact = Joint.from_table(ADULT, secret=["income"], inputs=["education", "sex"])
    noise = np.random.default_rng(7).integers(-6, 7, exact.counts.shape)
    protected = Joint(np.maximum(exact.counts + noise, 0), exact.secret, exact.inputs)
    protocol = funnel.fit("invariant", exact, funnel.LIP(1.0))
    assert imbalance(exact, protocol.weights) <= IMBALANCE < imbalance(protected, protocol.weights)


def test_imbalance_is_the_worst_value() -> None:
    joint = Joint.from_counts([[3, 5, 2]])
    weights = np.zeros((3, 3), dtype=np.uint64)
    weights[1, 0] = weights[1, 1] = weights[2, 2] = DENOMINATOR
    assert imbalance(joint, weights) == Fraction(3, 10)


def test_more_budget_never_leaves_less_unchanged() -> None:
    joint = Joint.from_table(ADULT, secret=["marital-status"], inputs=["education"])
    found = [funnel.optimal(joint, funnel.LIP(e), utility="unchanged") for e in (0.1, 0.3, 1.0, 3.0)]
    assert all(one.utility <= other.utility for one, other in itertools.pairwise(found))
    assert all(one.gap <= 1e-6 for one in found)


def test_weights_by_root_keep_rare_values_that_shares_give_up() -> None:
    joint = Joint.from_table(ADULT, secret=["marital-status"], inputs=["education", "sex"])
    by_root, by_share = (
        np.diagonal(funnel.optimal(joint, funnel.LIP(1.0), utility="unchanged", weights=name).protocol.matrix)
        for name in ("root", "share")
    )
    assert by_root.min() > by_share.min()
    assert by_root @ joint.p_input <= by_share @ joint.p_input


def test_without_a_bound_on_the_secret_nothing_changes() -> None:
    joint = Joint.from_counts([[5, 8, 2], [4, 1, 9]])
    found = funnel.optimal(joint, funnel.LIP(50.0), utility="unchanged")
    assert found.utility == found.bound == 1.0
    assert (np.diagonal(found.protocol.weights) == DENOMINATOR).all()


@pytest.mark.parametrize(
    ("guarantee", "message"),
    [(funnel.MutualInformation(0.1), "not linear"), (funnel.RLDP(1.0, 0.05, "chi2"), "not linear")],
)
def test_what_is_not_linear_is_refused(guarantee: Guarantee, message: str) -> None:
    joint = Joint.from_counts([[5, 8], [4, 1]])
    with pytest.raises(SpecError, match=message):
        funnel.optimal(joint, guarantee, utility="unchanged")


def test_unknown_weights_are_refused() -> None:
    joint = Joint.from_counts([[5, 8], [4, 1]])
    with pytest.raises(SpecError, match="root, share, uniform"):
        funnel.optimal(joint, funnel.LIP(1.0), utility="unchanged", weights="squares")  # type: ignore[arg-type]


def test_a_secret_that_is_read_has_to_be_published() -> None:
    joint = Joint.from_counts([[5, 8], [4, 1]])
    with pytest.raises(SpecError, match="among the inputs"):
        funnel.optimal(joint, funnel.LIP(1.0), utility="unchanged", reads_secret=True)


def test_a_limit_of_time_returns_a_protocol_that_holds() -> None:
    joint = Joint.from_table(ADULT, secret=["marital-status"], inputs=["education", "occupation"])
    found = funnel.optimal(joint, funnel.LIP(1.0), utility="unchanged", time_limit=0.05)
    assert found.status == "time limit"
    assert funnel.LIP(1.0).holds(joint, found.protocol)
    assert off_balance(joint, found.protocol) <= IMBALANCE
    assert found.utility <= found.bound


def test_conditions_that_are_learned_late_are_held_as_the_others() -> None:
    counts = np.random.default_rng(5).integers(20, 200, (2, 6))
    joint = Joint.from_counts(counts)
    search = invariant._Search(joint, funnel.RLIP(1.0, 0.05), np.ones(6) / 6, 1e-4, Budget.of(None), quiet)
    # Pairs as needed learn half-spaces of the worst distributions, and interior points may take over after that.
    learned, _ = search._conditions.beyond(np.eye(6))
    assert len(learned)
    search._spaces, search._all = (np.vstack([there, learned]) for there in (search._spaces, search._all))
    search._run_inside()
    assert 0 < float(np.trace(search._best)) <= 1
