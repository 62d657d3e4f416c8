"""Planning: every mechanism judged by the same measures, best first, and a choice that keeps to what is allowed."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import funnel
from funnel import LDP, LIP, Guarantee, InfeasibleGuarantee, Joint, Protocol, SolverError, SpecError
from funnel.mechanisms import mechanism
from funnel.planning import choose
from tests.strategies import joints


@settings(max_examples=30)
@given(joints(max_secrets=3, max_inputs=4), st.sampled_from([LIP, LDP]), st.sampled_from([0.1, 1.0]), st.booleans())
def test_a_plan_lists_every_mechanism_once_best_first(
    joint: Joint, kind: type[Guarantee], epsilon: float, reads_secret: bool
) -> None:
    guarantee = kind(epsilon)
    rows = funnel.plan(joint, guarantee, reads_secret=reads_secret)
    assert sorted(row.mechanism for row in rows) == sorted(funnel.mechanisms())
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
        assert row.utility == funnel.measures.mutual_information(joint, row.protocol)
        assert row.share == funnel.measures.normalised_mutual_information(joint, row.protocol)
        # Only a protocol that reads the secret may be refused although it exists.
        assert (row.reason is None) == (reads_secret or not row.reads_secret)


def test_a_mechanism_that_reads_the_secret_is_chosen_only_where_allowed() -> None:
    joint = Joint.from_counts([[30, 10, 20], [10, 30, 20]])
    names = ("conditional-reporting", "grr")
    forbidden, allowed = (funnel.plan(joint, LIP(0.5), names, reads_secret=may) for may in (False, True))
    assert choose(forbidden).mechanism == "grr"
    refused = next(row for row in forbidden if row.reads_secret)
    assert refused.protocol is not None
    assert refused.reason is not None
    assert "reads the secret" in refused.reason
    assert choose(allowed).mechanism == "conditional-reporting"


def test_what_cannot_be_used_says_why() -> None:
    joint = Joint.from_counts([[90, 10], [10, 90]])
    rows = funnel.plan(joint, LIP(0.1), ("identity",))
    # The rarer pair has P(y|s)/P(y) = 0.1 / 0.5.
    assert rows[0].level == pytest.approx(math.log(5))
    with pytest.raises(InfeasibleGuarantee, match=r"identity: .* unchanged has level"):
        choose(rows)
    certain = funnel.plan(Joint.from_counts([[1, 0], [0, 1]]), LIP(0.1), ("identity",))[0]
    assert certain.level == math.inf
    assert certain.to_dict()["level"] is None


def test_an_optimisation_out_of_time_is_still_a_protocol_that_holds() -> None:
    joint = Joint.from_table("data/adult.parquet", secret=["occupation"], inputs=["education"])
    told: list[str] = []
    rows = funnel.plan(joint, LDP(0.2), ("optimal", "grr"), time_limit=2.0, progress=told.append)
    # How far the optimum has come is told as well, once a second.
    assert [what for what in told if ":" not in what] == ["fitting optimal", "fitting grr"]
    late = next(row for row in rows if row.mechanism == "optimal")
    assert late.reason is None
    assert late.protocol is not None
    assert LDP(0.2).holds(joint, late.protocol)
    assert choose(rows) is late


def test_a_mechanism_that_fails_is_a_reason_and_no_number(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> Protocol:
        raise SolverError("the linear programme failed")

    monkeypatch.setattr(mechanism("optimal"), "fitted", fail)
    rows = funnel.plan(Joint.from_counts([[5, 2], [1, 4]]), LIP(0.5), ("optimal", "grr"))
    failed = next(row for row in rows if row.mechanism == "optimal")
    assert failed.utility is None
    assert failed.reason == "the linear programme failed"
    assert choose(rows).mechanism == "grr"


def test_an_unknown_mechanism_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(SpecError, match="did you mean 'optimal'"):
        funnel.plan(Joint.from_counts([[1, 2]]), LIP(1.0), ("optimum",))
