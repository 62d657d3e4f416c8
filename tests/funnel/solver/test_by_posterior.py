"""Interior points between outputs and sources: the same optimum, bound and balance as the whole programme."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import funnel
from funnel import Guarantee, Joint
from funnel.guarantees.base import ConeGuarantee
from funnel.joint import FloatArray
from funnel.solver import by_posterior, invariant
from funnel.solver.budget import Budget
from funnel.solver.by_posterior import PosteriorProgramme
from funnel.solver.conditions import Conditions
from funnel.solver.exchange import Exchanged, proven_bound
from funnel.solver.integer_balance import IMBALANCE, imbalance
from funnel.solver.invariant import counted
from funnel.solver.presolve import laid_along
from tests.funnel.solver.test_invariant import whole_programme
from tests.strategies import joints

ADULT = "data/adult.parquet"
GAP = 1e-5


def many_values(seed: int, values: int, secrets: int) -> Joint:
    """Values with few records each, many of which have the same posterior; every secret is not too rare."""
    generator = np.random.default_rng(seed)
    counts = generator.poisson(1.5 * generator.dirichlet(np.ones(secrets), values).T * generator.pareto(1.5, values))
    counts[:, :secrets] += 20 * np.eye(secrets, dtype=np.int64) + 3
    return Joint.from_counts(counts).occurring


def proven(joint: Joint, programme: PosteriorProgramme, found: Exchanged, spaces: FloatArray) -> float:
    asked = found.conditions @ spaces + found.balance[:, None]
    return proven_bound(joint.p_input, programme.worth, asked, found.balance)


@settings(max_examples=60)
@given(joints(), st.sampled_from([funnel.LIP, funnel.PML]), st.floats(0.2, 2.0))
def test_it_is_the_optimum_of_the_whole_programme(joint: Joint, kind: type[Guarantee], epsilon: float) -> None:
    guarantee = kind(epsilon)  # type: ignore[call-arg]
    assert isinstance(guarantee, ConeGuarantee)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(invariant, "FEW", 1)
        patched.setattr(by_posterior, "_FEATURES", range(1, 25))
        found = funnel.optimal(joint, guarantee, gap=GAP, utility="unchanged")
    assert guarantee.holds(joint, found.protocol)
    assert imbalance(joint, found.protocol.weights) <= IMBALANCE
    whole = whole_programme(joint, guarantee, counted(joint, "root"))
    if whole is not None:
        assert found.utility - 1e-12 <= whole.most <= found.bound + 1e-9
        assert whole.most <= found.utility + 2 * GAP


@pytest.mark.parametrize("seed", range(3))
def test_few_pairs_do_as_well_as_all(seed: int) -> None:
    joint = many_values(seed, 120, 4)
    spaces = Conditions.of(joint, funnel.LIP(0.7), 0.0).fixed
    programme = PosteriorProgramme(joint.p_input, counted(joint, "root"), spaces, Budget.of(None))
    assert programme.is_suited
    first = programme.solve(GAP)
    programme.keep_few(np.random.default_rng(seed))
    few = programme.solve(GAP)
    most = proven(joint, programme, first, spaces)
    assert most - first.value <= GAP
    assert most - few.value <= 2 * GAP
    assert np.count_nonzero(few.flows) < np.count_nonzero(first.flows) / 2
    for found in (first, few):
        assert found.flows.min() >= 0
        assert found.flows.sum(axis=0) == pytest.approx(joint.p_input, rel=1e-12)
        assert found.flows.sum(axis=1) == pytest.approx(joint.p_input, rel=1e-5)
        room = -(spaces @ joint.p_input)
        assert (found.flows @ spaces.T / joint.p_input[:, None] / room).max() <= 1e-5


def test_a_real_joint_is_solved_that_way_and_agrees_with_pairs_as_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    table = pd.read_parquet(ADULT, columns=["education", "occupation", "marital-status"])
    joint = Joint.from_table(table, ["marital-status"], ["education", "occupation"])
    runs: list[int] = []
    whole = PosteriorProgramme.solve
    monkeypatch.setattr(PosteriorProgramme, "solve", lambda self, gap: (runs.append(1), whole(self, gap))[1])
    found = funnel.optimal(joint, funnel.LIP(1.0), gap=1e-4, utility="unchanged")
    assert len(runs) == 2
    assert found.bound - found.utility <= 1e-4
    assert np.count_nonzero(found.protocol.weights) < 225**2 / 6
    monkeypatch.setattr(invariant, "FEW", 1_000)
    other = funnel.optimal(joint, funnel.LIP(1.0), gap=1e-4, utility="unchanged")
    assert len(runs) == 2
    assert max(found.utility, other.utility) <= min(found.bound, other.bound)


def test_without_time_for_it_pairs_are_found_as_they_are_needed() -> None:
    joint = many_values(5, 320, 4)
    found = funnel.optimal(joint, funnel.LIP(0.7), gap=1e-4, time_limit=0.05, utility="unchanged")
    assert funnel.LIP(0.7).holds(joint, found.protocol)
    assert found.status == "time limit"


@given(
    st.lists(st.floats(0.0, 1.0), min_size=1, max_size=8).filter(lambda some: sum(some) > 1e-3),
    st.lists(st.floats(0.0, 1.0), min_size=1, max_size=8).filter(lambda some: sum(some) > 1e-3),
)
def test_what_is_laid_along_keeps_both_sums_and_is_in_few_pairs(into: list[float], out: list[float]) -> None:
    places, sources, amounts = laid_along(np.array(into) / sum(into), np.array(out) / sum(out))
    assert len(amounts) <= len(into) + len(out)
    assert np.bincount(places, amounts, len(into)) == pytest.approx(np.array(into) / sum(into), abs=1e-12)
    assert np.bincount(sources, amounts, len(out)) == pytest.approx(np.array(out) / sum(out), abs=1e-12)
