"""Every mechanism under every guarantee: a channel that holds, never above the optimum, or one clear sentence."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import funnel
from funnel import (
    ALIP,
    LDP,
    LIP,
    SRLIP,
    Alphabet,
    AlphaLift,
    Chi2Lift,
    Guarantee,
    InfeasibleGuarantee,
    Joint,
    L1Lift,
    MutualInformation,
    PerfectPrivacy,
    Protocol,
    SpecError,
    measures,
)
from funnel.guarantees import ConeGuarantee
from funnel.mechanisms import mechanism
from funnel.protocol import DENOMINATOR, exact_sums
from tests.strategies import joints

GUARANTEES = [
    LIP(0.4),
    ALIP(1.3, 0.3),
    ALIP(float("inf"), 0.5),
    LDP(0.7),
    PerfectPrivacy(),
    L1Lift(0.8, 0.4),
    Chi2Lift(0.8, 0.4),
    AlphaLift(0.8, 0.4, 3),
    MutualInformation(0.02),
]
guarantees = st.sampled_from(GUARANTEES)


@st.composite
def tables(draw: st.DrawFn) -> Joint:
    """A joint distribution over two or three published columns, some combinations of which never occur."""
    sizes = draw(st.sampled_from([(2, 2), (2, 3), (2, 2, 2)]))
    symbols = [tuple(f"{k}{v}" for k, v in enumerate(place)) for place in np.ndindex(sizes)]
    c = draw(st.integers(1, 3))
    cells = st.lists(st.one_of(st.just(0), st.integers(1, 50)), min_size=len(symbols), max_size=len(symbols))
    counts = np.array([draw(cells) for _ in range(c)])
    counts[0, 0] += 1
    return Joint.from_counts(counts, inputs=Alphabet(tuple("pqr"[: len(sizes)]), tuple(symbols)))


def check(name: str, joint: Joint, guarantee: Guarantee) -> float | None:
    """Utility of a mechanism's protocol after every check that holds for all; None where it does not apply."""
    try:
        protocol = funnel.fit(name, joint, guarantee)
    except (InfeasibleGuarantee, SpecError) as error:
        refusal = error
    else:
        return _checked(name, joint, guarantee, protocol)
    assert "\n" not in str(refusal)
    assert len(str(refusal)) > 20
    if isinstance(refusal, InfeasibleGuarantee):
        assert refusal.best_level is not None
        assert refusal.best_level > guarantee.budget
    return None


def _checked(name: str, joint: Joint, guarantee: Guarantee, protocol: Protocol) -> float:
    assert set(exact_sums(protocol.weights)) == {DENOMINATOR}
    assert guarantee.holds(joint, protocol)
    assert guarantee.level(joint, protocol).value <= guarantee.budget
    assert protocol.mechanism == name
    assert protocol.guarantee == str(guarantee)
    if not mechanism(name).reads_secret:
        assert protocol.inputs == joint.inputs
    return measures.mutual_information(joint, protocol)


@settings(max_examples=25)
@given(joints(max_secrets=3, max_inputs=4), guarantees)
def test_one_column(joint: Joint, guarantee: Guarantee) -> None:
    found = {name: check(name, joint, guarantee) for name in funnel.mechanisms.names()}
    for name in ("grr", "agglomeration"):
        assert found[name] is not None
    if isinstance(guarantee, MutualInformation):
        return
    merged, watched, uniform = (found[name] for name in ("subset-merging", "watchdog", "watchdog-uniform"))
    assert merged is not None
    assert watched is not None
    assert uniform == pytest.approx(watched, abs=1e-9)
    if not isinstance(guarantee, ConeGuarantee):
        return
    best, aware = found["optimal"], found["optimal-with-secret"]
    assert best is not None
    assert aware is not None
    bounds = {
        reads: funnel.optimal(joint, guarantee, gap=1e-4, reads_secret=reads).bound + 1e-9 for reads in (False, True)
    }
    for name, utility in found.items():
        if utility is not None:
            assert utility <= bounds[mechanism(name).reads_secret]
    response = found["subset-random-response"]
    assert response is not None
    if guarantee.budget > 0:
        assert merged <= response + 1e-6
        assert response <= best + 1e-6
    assert best <= aware + 1e-3


@settings(max_examples=12)
@given(tables(), st.sampled_from([SRLIP(0.3), SRLIP(1.5), LIP(0.5), LDP(1.0), Chi2Lift(0.5, 0.5)]))
def test_several_columns(joint: Joint, guarantee: Guarantee) -> None:
    found = {
        name: check(name, joint, guarantee)
        for name in ("side-channel-product", "grr", "watchdog", "subset-merging", "oue", "optimal", "identity")
    }
    assert found["side-channel-product"] is not None
    if isinstance(guarantee, ConeGuarantee):
        bound = funnel.optimal(joint, guarantee, gap=1e-4).bound + 1e-9
        assert all(utility is None or utility <= bound for utility in found.values())


@settings(max_examples=25)
@given(joints(max_secrets=3, max_inputs=4), st.sampled_from([LIP, LDP]))
def test_the_optimum_grows_with_its_budget_and_needs_few_outputs(joint: Joint, kind: type[LIP] | type[LDP]) -> None:
    utilities = []
    for epsilon in (0.0, 0.2, 0.6, 1.5):
        solution = funnel.optimal(joint, kind(epsilon))
        assert len(solution.protocol.outputs) <= max(1, int((joint.counts.sum(axis=0) > 0).sum()))
        utilities.append(solution.utility)
    assert all(low <= high + 2e-6 for low, high in itertools.pairwise(utilities))


def test_perfect_privacy_is_exact_and_not_trivial() -> None:
    """p(S|x) of four inputs in a plane: outputs that mix two of them in the right proportion say nothing about S."""
    joint = Joint.from_counts([[30, 10, 20, 25], [10, 30, 20, 15]])
    solution = funnel.optimal(joint, PerfectPrivacy())
    assert PerfectPrivacy().level(joint, solution.protocol).value == 0
    assert solution.status == "optimal"
    # By hand: input 2 says nothing and goes out alone; the others are paired at the prior of ½ (plus what 25:15 adds).
    assert solution.utility > 0.5
    assert solution.utility <= solution.bound <= joint.entropy
    aware = funnel.optimal(joint, PerfectPrivacy(), reads_secret=True, gap=1e-4)
    assert PerfectPrivacy().level(joint, aware.protocol).value == 0
    assert aware.utility > solution.utility


def test_perfect_privacy_of_an_independent_input_is_to_publish_it() -> None:
    joint = Joint.from_counts([[2, 4, 6], [1, 2, 3]])
    for name in ("optimal", "identity"):
        protocol = funnel.fit(name, joint, PerfectPrivacy())
        assert measures.mutual_information(joint, protocol) == pytest.approx(joint.entropy)


def test_agglomeration_stops_as_soon_as_the_average_is_within_the_bound() -> None:
    joint = Joint.from_counts([[90, 10, 50, 50], [10, 90, 50, 50]])
    exact = MutualInformation(1.0).level_for(joint, np.diag(np.full(4, DENOMINATOR, dtype=np.uint64))).value
    untouched = funnel.fit("agglomeration", joint, MutualInformation(exact))
    assert len(untouched.outputs) == 4
    merged = funnel.fit("agglomeration", joint, MutualInformation(exact * 0.999))
    # The two inputs that betray the secret hide each other; the others cost no privacy.
    assert ("X0 or X1",) in merged.outputs.symbols
    assert len(merged.outputs) == 3


@pytest.mark.parametrize("name", ["watchdog", "watchdog-uniform", "subset-merging", "side-channel-product"])
def test_what_judges_outputs_alone_refuses_an_average(name: str) -> None:
    inputs = Alphabet(("p", "q"), (("a", "b"), ("a", "c")))
    joint = Joint.from_counts([[5, 3], [1, 7]], inputs=inputs)
    with pytest.raises(SpecError, match="average"):
        funnel.fit(name, joint, MutualInformation(0.1))


def test_an_alphabet_too_large_for_any_table_is_refused() -> None:
    joint = Joint.from_counts(np.ones((2, 8193), dtype=int))
    with pytest.raises(SpecError, match="8,193 combinations of X occur"):
        funnel.fit("grr", joint, LIP(1.0))
