"""Planning: every mechanism judged by the same measures, best first, and a choice that keeps to what is allowed."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import funnel
from funnel import ALIP, LDP, LIP, RLIP, Guarantee, InfeasibleGuarantee, Joint, PerfectPrivacy, SolverError, SpecError
from funnel.measures import mutual_information, normalised_mutual_information
from funnel.mechanisms import mechanism, names
from funnel.planning import WORTHWHILE, MechanismChoice, PlanRow, choose, contenders, drawn_over_versions, plan
from funnel.tradeoff.fitted import FittedRows
from tests.strategies import joints

SIXTEEN = Joint.from_counts(np.random.default_rng(4).integers(1, 900, (5, 16)))


@settings(max_examples=30)
@given(joints(max_secrets=3, max_inputs=4), st.sampled_from([LIP, LDP]), st.sampled_from([0.1, 1.0]), st.booleans())
def test_a_plan_lists_every_mechanism_once_best_first(
    joint: Joint, kind: type[Guarantee], epsilon: float, reads_secret: bool
) -> None:
    guarantee = kind(epsilon)
    told: list[PlanRow] = []
    rows = plan(joint, guarantee, reads_secret=reads_secret, forbidden=True, told=told.append)
    assert [row.mechanism for row in told] == list(names())
    assert sorted(told, key=id) == sorted(rows, key=id)
    usable = [row for row in rows if row.reason is None]
    assert usable == list(rows[: len(usable)])
    utilities = [row.utility for row in usable]
    assert utilities == sorted(utilities, key=lambda value: -(value or 0))
    assert choose(rows) is max(usable, key=lambda row: row.utility or 0.0)
    for row in rows:
        assert row.seconds >= 0
        json.dumps(row.to_dict(), allow_nan=False)
        if row.protocol is None:
            assert row.utility is None
            assert row.level is None or row.level > epsilon
            continue
        assert guarantee.holds(joint, row.protocol)
        assert row.level == guarantee.level(joint, row.protocol).value
        assert row.utility == mutual_information(joint, row.protocol)
        assert row.share == normalised_mutual_information(joint, row.protocol)
        # Only a protocol that reads the secret may be refused although it exists.
        assert (row.reason is None) == (reads_secret or not row.reads_secret)


def test_a_mechanism_that_reads_the_secret_is_chosen_only_where_allowed() -> None:
    joint = Joint.from_counts([[30, 10, 20], [10, 30, 20]])
    pair = ("conditional-reporting", "grr")
    hidden, shown, allowed = (
        plan(joint, LIP(0.5), pair, reads_secret=may, forbidden=see)
        for may, see in ((False, False), (False, True), (True, False))
    )
    assert choose(hidden).mechanism == choose(shown).mechanism == "grr"
    for rows, fitted in ((hidden, False), (shown, True)):
        refused = next(row for row in rows if row.reads_secret)
        assert (refused.protocol is not None) is fitted
        assert refused.tried is fitted
        assert refused.reason is not None
        assert "reads the secret" in refused.reason
    assert choose(allowed).mechanism == "conditional-reporting"


def test_what_cannot_be_used_says_why() -> None:
    joint = Joint.from_counts([[90, 10], [10, 90]])
    rows = plan(joint, LIP(0.1), ("identity",))
    # The rarer pair has P(y|s)/P(y) = 0.1 / 0.5.
    assert rows[0].level == pytest.approx(math.log(5))
    with pytest.raises(InfeasibleGuarantee, match=r"identity: .* unchanged has level"):
        choose(rows)
    certain = plan(Joint.from_counts([[1, 0], [0, 1]]), LIP(0.1), ("identity",))[0]
    assert certain.level == math.inf
    assert certain.to_dict()["level"] is None


def test_an_optimisation_out_of_time_is_still_a_protocol_that_holds() -> None:
    joint = Joint.from_table("data/adult.parquet", secret=["occupation"], inputs=["education"])
    told: list[str] = []
    rows = plan(
        joint,
        LDP(0.2),
        ("optimal", "grr"),
        time_limit=0.2,
        progress=lambda what, done, total: told.append(what),
    )
    # How far the optimum has come is told as well.
    assert [what for what in told if ":" not in what] == ["fitting optimal", "fitting grr"]
    assert any(what.startswith("fitting optimal: ") and "at most" in what for what in told)
    late = next(row for row in rows if row.mechanism == "optimal")
    assert not late.finished
    assert late.reason is None
    assert late.protocol is not None
    assert late.bound is not None
    assert late.utility is not None
    assert late.bound > late.utility
    assert LDP(0.2).holds(joint, late.protocol)


def test_a_mechanism_that_fails_is_a_reason_and_no_number(monkeypatch: pytest.MonkeyPatch) -> None:
    for error, reason in (
        (SolverError("the linear programme failed"), "the linear programme failed"),
        (MemoryError(), "optimal needs more memory than there is for 2 combinations of X; publish fewer columns"),
    ):

        def fail(*_: object, error: Exception = error) -> None:
            raise error

        monkeypatch.setattr(mechanism("optimal"), "fitted_to", fail)
        for rows in (
            plan(Joint.from_counts([[5, 2], [1, 4]]), LIP(0.5), ("optimal", "grr")),
            contenders(Joint.from_counts([[5, 2], [1, 4]]), LIP(0.5)),
        ):
            failed = next(row for row in rows if row.mechanism == "optimal")
            assert failed.utility is None
            assert failed.reason is not None
            assert failed.reason.startswith(reason)
            assert choose(rows).reason is None


def test_an_unknown_mechanism_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(SpecError, match="did you mean 'optimal'"):
        plan(Joint.from_counts([[1, 2]]), LIP(1.0), ("optimum",))


def test_a_named_mechanism_is_fitted_alone() -> None:
    rows = contenders(SIXTEEN, LIP(0.5), MechanismChoice("grr"))
    assert sorted(row.mechanism for row in rows) == sorted(names())
    assert [row.mechanism for row in rows if row.tried] == ["grr"]
    assert {row.reason for row in rows if not row.tried} == {"not fitted: the spec asks for grr"}
    assert choose(rows).mechanism == "grr"
    refused = contenders(SIXTEEN, LIP(0.5), MechanismChoice("oue"))
    with pytest.raises(InfeasibleGuarantee, match=r"no mechanism can be used \(oue: [^:]*; use grr\)$"):
        choose(refused)
    forbidden = contenders(SIXTEEN, LIP(0.5), MechanismChoice("conditional-reporting"))
    with pytest.raises(InfeasibleGuarantee, match="conditional-reporting: reads the secret"):
        choose(forbidden)


KINDS = [
    LIP(0.4),
    ALIP(1.3, 0.3),
    LDP(0.7),
    PerfectPrivacy(),
    funnel.Chi2Lift(0.8, 0.4),
    funnel.MutualInformation(0.05),
]


@settings(max_examples=40)
@given(joints(max_secrets=3, max_inputs=4), st.sampled_from(KINDS), st.booleans())
def test_what_is_not_fitted_could_not_have_won(joint: Joint, guarantee: Guarantee, reads_secret: bool) -> None:
    rows = contenders(joint, guarantee, MechanismChoice(reads_secret=reads_secret))
    assert sorted(row.mechanism for row in rows) == sorted(names())
    chosen = choose(rows)
    assert chosen.utility is not None
    every = {row.mechanism: row for row in plan(joint, guarantee, reads_secret=reads_secret)}
    for row in rows:
        whole = every[row.mechanism]
        if row.tried or whole.reason is not None:
            assert (row.reason is None) == (whole.reason is None)
            continue
        assert row.protocol is None
        assert row.bound is not None
        assert whole.utility is not None
        assert whole.utility <= row.bound + 1e-9
        assert row.bound <= chosen.utility + WORTHWHILE * joint.entropy + 1e-12
        assert row.reason is not None
        assert f"{row.bound:.5f}" in row.reason


def test_a_certified_optimum_leaves_nothing_else_to_fit() -> None:
    joint = Joint.from_table("data/adult.parquet", secret=["marital-status"], inputs=["education"])
    rows = contenders(joint, LIP(1.0), MechanismChoice(time_limit=60.0))
    assert [row.mechanism for row in rows if row.tried] == ["optimal"]
    grr = next(row for row in rows if row.mechanism == "grr")
    assert grr.reason is not None
    assert grr.reason.startswith("not fitted: optimal keeps 1.92304 nats, and no protocol of this kind can keep more")


def test_what_meets_the_bound_as_it_is_leaves_nothing_else_to_fit() -> None:
    rows = contenders(Joint.from_counts([[5, 2], [4, 3]]), funnel.MutualInformation(0.5))
    assert [row.mechanism for row in rows if row.tried] == ["identity"]


def test_without_a_certificate_the_others_are_fitted() -> None:
    rows = contenders(SIXTEEN, LDP(0.2), MechanismChoice(time_limit=0.05))
    assert {row.mechanism for row in rows if row.tried} >= {"optimal", "subset-merging", "grr", "agglomeration"}
    assert LDP(0.2).holds(SIXTEEN, choose(rows).protocol)  # type: ignore[arg-type]


def ticking(step: float) -> Callable[[], float]:
    """A clock on which every look takes so many seconds, until just before budgets lose their patience."""
    looks = itertools.count()
    return lambda: min(step * next(looks), 30.0)


@pytest.mark.parametrize(
    "guarantee", [LIP(0.3), LDP(0.5), funnel.MutualInformation(0.02), funnel.RLDP(3.0, set="chi2")]
)
@pytest.mark.parametrize("limit", [0.002, 0.1])
def test_the_same_spec_gives_the_same_table_on_a_loaded_machine(guarantee: Guarantee, limit: float) -> None:
    joint = Joint.from_counts(np.random.default_rng(1).integers(20, 900, (2, 5)))
    idle, loaded = (
        {row.mechanism: row for row in plan(joint, guarantee, reads_secret=True, time_limit=limit, clock=ticking(step))}
        for step in (0.0, 0.5)
    )
    for name in names():
        one, other = idle[name], loaded[name]
        assert (one.finished, one.utility, one.bound, one.level) == (
            other.finished,
            other.utility,
            other.bound,
            other.level,
        )
        assert one.reason == other.reason
        if one.protocol is not None and other.protocol is not None:
            assert one.protocol.digest == other.protocol.digest
    choice = MechanismChoice(reads_secret=True, time_limit=limit)
    picked = [choose(contenders(joint, guarantee, choice, clock=ticking(step))) for step in (0.0, 0.5)]
    assert picked[0].mechanism == picked[1].mechanism
    assert picked[0].utility == picked[1].utility


def test_what_does_not_fit_the_memory_is_refused_before_it_is_made() -> None:
    """A column of 801 dates and seven secrets: 5,607 cells for what reads the secret."""
    joint = Joint.from_counts(np.random.default_rng(2).integers(1, 30, (7, 801)))
    (refused,) = plan(joint, LIP(1.0), ["optimal-with-secret"], reads_secret=True)
    assert refused.reason is not None
    assert refused.reason.startswith("801 combinations of X occur, for which optimal-with-secret would need about ")
    assert "GB of memory" in refused.reason
    large = Joint.from_counts(np.ones((2, 5800), dtype=int))
    for make in (plan, contenders):
        with pytest.raises(SpecError, match=r"5,800 combinations of X occur.*recode to at most"):
            make(large, RLIP(1.0))
    # What needs no table is made all the same, and what does says what it would take.
    found = {row.mechanism: row for row in plan(large, LIP(1.0), ["optimal", "grr"])}
    assert found["optimal"].reason is None
    assert found["grr"].reason is not None
    assert "GB of memory" in found["grr"].reason


def test_weights_decide_which_records_an_invariant_protocol_leaves_unchanged() -> None:
    """By share most records are unchanged, by root and alike the rarest values are more often."""
    joint = Joint.from_table("data/adult.parquet", secret=["marital-status"], inputs=["education", "sex"])
    unchanged, rarest = {}, {}
    for weights in ("root", "share", "uniform"):
        (row,) = plan(joint, LIP(1.0), ["invariant"], weights=weights)
        assert row.protocol is not None
        chosen = choose(contenders(joint, LIP(1.0), MechanismChoice("invariant", weights=weights))).protocol
        assert chosen is not None
        assert chosen.digest == row.protocol.digest
        stays = np.diagonal(row.protocol.matrix)
        unchanged[weights], rarest[weights] = float(stays @ joint.p_input), float(stays.min())
    assert unchanged["share"] > unchanged["root"] > unchanged["uniform"]
    assert rarest["share"] < min(rarest["root"], rarest["uniform"])
    assert mechanism("grr", "share") is mechanism("grr")


def test_what_is_ruled_out_is_not_fitted_and_says_why() -> None:
    joint = Joint.from_counts([[30, 10], [10, 50]])
    rows = plan(joint, LIP(0.5), ["grr", "invariant"], ruled_out={"invariant": "not there yet"})
    ruled_out = next(row for row in rows if row.mechanism == "invariant")
    assert (ruled_out.tried, ruled_out.protocol, ruled_out.reason) == (False, None, "not there yet")
    assert rows[0].mechanism == "grr"


def test_values_as_they_are_follow_people_only_where_they_are_asked_for() -> None:
    joint = Joint.from_counts([[30, 10], [10, 50]])
    rows = plan(joint, LIP(5.0), ["invariant", "identity"])
    assert [row.mechanism for row in drawn_over_versions(rows, "auto")] == ["identity"]
    assert drawn_over_versions(rows, "invariant") == list(rows)


def test_a_search_that_its_limit_ended_takes_what_a_smaller_bound_keeps(tmp_path: Path) -> None:
    """So the bounds of one plan never fall, and a release takes what the plan found."""
    random = np.random.default_rng(3)
    counts = random.multinomial(9000, random.dirichlet(np.full(1400, 0.2))).reshape(10, 140)
    joint, kept = Joint.from_counts(counts[:, counts.any(axis=0)]), FittedRows.within(tmp_path)

    def fitted(bound: Guarantee, **more: Any) -> PlanRow:
        (row,) = plan(joint, bound, ["optimal"], time_limit=1e-3, **more)
        return row

    smaller, ended = fitted(LIP(0.78)), fitted(LIP(0.8))
    assert not ended.finished
    assert (ended.utility or 0) < (smaller.utility or 0)
    taken = fitted(LIP(0.8), others=[ended, smaller], kept=kept)
    assert (taken.utility, taken.level, taken.bound) == (smaller.utility, smaller.level, ended.bound)
    assert not taken.finished
    assert taken.protocol is not None
    assert taken.protocol.guarantee == "lip:0.8"
    assert LIP(0.8).holds(joint, taken.protocol)
    # What does not meet a bound, or is of another mechanism, is not taken over.
    assert fitted(LIP(0.6), others=[smaller]).utility == fitted(LIP(0.6)).utility
    assert fitted(LIP(0.8), others=[replace(smaller, mechanism="grr")]).utility == ended.utility
    choice = MechanismChoice("optimal", time_limit=1e-3)
    released = choose(contenders(joint, LIP(0.8), choice, kept=kept))
    assert released.utility == taken.utility
