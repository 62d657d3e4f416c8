"""What becomes public: rounded, true, and the same for counts that differ by less than is told."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from funnel import ALIP, LDP, LIP, Guarantee, Joint, MutualInformation, Protocol, fit
from funnel.findings import Audited, DrawnRelease, audit_release
from funnel.findings.consistency import Consistency
from funnel.mechanisms import mechanism
from funnel.protocol import DENOMINATOR
from funnel.release.protocol_document import protocol_document
from funnel.release.public import rounding as public
from funnel.release.public.comparison import weighed
from funnel.release.public.findings import PublicFindings
from funnel.release.public.public_distributions import PublicDistributions, SparsePosterior
from funnel.release.public.rounding import RECORDS, distribution_of_rare, level_step
from funnel.release.public_report import Contact, Judged, Licence, Mechanism
from funnel.report.content import ReportContent, SourceNote
from funnel.report.public import public_report, render_public
from funnel.sparse_weights import SparseWeights
from tests.funnel.test_sparse_weights import channels
from tests.public import UNPROTECTED, counted, public_of

COUNTS = [[400_410, 150_320, 90_430], [101_240, 302_150, 251_160]]
JOINT = Joint.from_counts(COUNTS)


def moved(joint: Joint) -> Joint:
    """The same records, but one person has another secret and another value."""
    counts = joint.counts.copy()
    counts[0, 0] -= 1
    counts[1, 1] += 1
    return Joint.from_counts(counts)


def page(joint: Joint, protocol: Protocol, guarantee: Guarantee) -> str:
    pairs = np.zeros((len(joint.inputs) + 1, len(protocol.outputs)), dtype=np.int64)
    pairs[:-1] = np.round(joint.counts.sum(axis=0)[:, np.newaxis] * protocol.matrix.T)
    audited = Audited.of(counted(joint), DrawnRelease(protocol, guarantee, pairs))
    audited = dataclasses.replace(audited, rows=joint.n, consistency=Consistency(0.5, 0, 9, 0))
    # The draws are what is published anyway: only what is told of the counts is compared.
    return render_public(
        public_report(
            ReportContent(
                name="r",
                title="R",
                description="",
                version="1.0.0",
                created="2025-03-04T05:06:07Z",
                contact=Contact(),
                licence=Licence(name="CC0"),
                source=SourceNote("people.csv"),
                mechanism=Mechanism.like(mechanism("optimal")),
                protocol=protocol,
                guarantee=guarantee,
                random_source="",
                software="funnel",
                judged=(Judged(name="v", description=""),),
                joint=joint,
                findings=audit_release(joint, DrawnRelease(protocol, guarantee, pairs)),
                audited=audited,
                protection=UNPROTECTED,
            )
        )
    )


@pytest.mark.parametrize("guarantee", [LIP(1.0), LDP(1.0)])
def test_one_person_more_or_less_changes_no_byte_of_the_report_or_the_protocol(guarantee: Guarantee) -> None:
    # Not on the grid of levels, where one person more decides which step is told.
    protocol = fit("grr", JOINT, guarantee.with_budget(0.905))
    other = moved(JOINT)
    assert (
        audit(JOINT, protocol, guarantee).distribution.lift.tolist()
        != audit(other, protocol, guarantee).distribution.lift.tolist()
    )
    assert page(JOINT, protocol, guarantee) == page(other, protocol, guarantee)
    said = [
        protocol_document(protocol, guarantee, public_of(joint, protocol, guarantee), UNPROTECTED).to_bytes()
        for joint in (JOINT, other)
    ]
    assert said[0] == said[1]


def audit(joint: Joint, protocol: Protocol, guarantee: Guarantee) -> Audited:
    return Audited.of(
        counted(joint), DrawnRelease(protocol, guarantee, np.ones((4, len(protocol.outputs)), dtype=np.int64))
    )


def test_the_dots_of_the_chart_give_rounded_lifts_only() -> None:
    protocol = fit("optimal", JOINT, LIP(1.0))
    html = page(JOINT, protocol, LIP(1.0))
    # Half of the axis is 1.12 nats, the bound and an eighth.
    places = [float(place) for place in re.findall(r'class="dot" style="left:([\d.]+)%"', html)]
    distributions = PublicDistributions.of(counted(JOINT), protocol)
    told = PublicFindings.of(audit(JOINT, protocol, LIP(1.0)), LIP(1.0), distributions).lift
    drawn = {round(50 * (1 + math.log(lift) / 1.12), 1) for lift in told.ravel()}
    assert places
    assert set(places) == drawn


@given(st.floats(min_value=0, max_value=100), st.floats(min_value=0.01, max_value=100))
def test_a_level_is_never_told_below_itself_and_within_the_bound_it_is_the_bound(level: float, budget: float) -> None:
    guarantee = LIP(budget)
    told = public.public_level(level, guarantee, level <= budget)
    assert told >= level
    if level <= budget:
        assert told == budget
    else:
        # No further up than one step of the grid, or than two digits.
        assert told <= max(level + level_step(budget), level * 1.1) * (1 + 1e-12)
        assert told == public.public_level(told, guarantee, False)


@pytest.mark.parametrize(
    ("level", "guarantee", "told"),
    [
        # Nothing, what has no bound, and where there is no budget to make steps of: two digits, upwards.
        (0.0, LIP(1.0), 0.0),
        (math.inf, LIP(1.0), math.inf),
        (0.123, LIP(0.0), 0.13),
        (0.123, LIP(1.0), 0.2),
        (0.2, LIP(1.0), 0.2),
    ],
)
def test_levels_beyond_a_budget_are_on_its_grid_where_it_has_one(
    level: float, guarantee: Guarantee, told: float
) -> None:
    assert public.public_level(level, guarantee, False) == told


@given(st.lists(st.integers(0, 300), min_size=2, max_size=8).filter(lambda counts: sum(counts) > 0))
def test_shares_are_no_finer_than_ten_records_and_what_occurs_is_told(counts: list[int]) -> None:
    n = sum(counts)
    step = public.share_step(n)
    shares = public.public_shares(np.array(counts) / n, step)
    assert step * n >= RECORDS or step == 0.5
    assert ((shares > 0) == (np.array(counts) > 0)).all()
    np.testing.assert_allclose(shares / step, np.round(shares / step))
    assert (np.abs(shares - np.array(counts) / n) <= step * (1 + 1e-9)).all()


def test_shares_halfway_between_two_steps_go_to_the_even_one_exactly() -> None:
    """As fractions do: an audit computes them so."""
    for n in (5_040, 6_000, 7_000, 12_345):
        step = public.share_step(n)
        counts = np.arange(1, n)
        exact = [float(max(1, round(Fraction(count, n) / Fraction(repr(step)))) * step) for count in counts.tolist()]
        np.testing.assert_allclose(public.public_shares(counts / n, step), exact, atol=1e-12)


def test_lifts_of_few_records_are_not_told() -> None:
    joint = Joint.from_counts([[4_000, 1_500], [7, 3]])
    protocol = fit("grr", joint, LIP(1.0))
    lifts = PublicDistributions.of(counted(joint), protocol).lifts(audit_of(joint, protocol))
    assert np.isnan(lifts[1]).all()
    assert not np.isnan(lifts[0]).any()


def audit_of(joint: Joint, protocol: Protocol) -> np.ndarray:
    pairs = np.ones((len(joint.inputs) + 1, len(protocol.outputs)), dtype=np.int64)
    return audit_release(joint, DrawnRelease(protocol, LIP(1.0), pairs)).lift


@pytest.mark.parametrize("kind", [LIP, LDP])
@given(counts=st.lists(st.integers(1, 500), min_size=2, max_size=5), epsilon=st.floats(0.0, 3.0))
def test_limits_on_beliefs_hold_for_the_exact_shares_too(
    kind: Callable[[float], Guarantee], counts: list[int], epsilon: float
) -> None:
    joint = Joint.from_counts([[count] for count in counts])
    guarantee = kind(epsilon)
    exact = guarantee.posterior_limits(joint.p_secret)
    told = PublicDistributions.of(counted(joint), fit("grr", joint, LIP(1.0))).belief_limits(guarantee)
    assert (told[0] <= exact[0] + 1e-12).all()
    assert (told[1] >= exact[1] - 1e-12).all()


def test_what_is_told_in_words_is_rounded() -> None:
    words = [public.count_of_records(n) for n in (0, 3, 37, 12_345)]
    assert words == ["no", "fewer than 10", "about 40", "about 12,000"]
    said = public.public_text("keeps 0.123456 nats under lip:1.2345; reaches level 1.7182818284")
    assert said == "keeps 0.123 nats under lip:1.2345; reaches level 1.72"
    assert public.public_text("keeps 0.0878 nats", 0.005) == "keeps 0.09 nats"
    assert public.public_text("has level 1.2345, above lip:1.05", 0.005, LIP(1.05)) == "has level 1.4, above lip:1.05"


def test_no_number_of_the_public_findings_has_more_than_four_digits() -> None:
    protocol = fit("optimal", JOINT, LIP(1.0))
    distributions = PublicDistributions.of(counted(JOINT), protocol)
    found = PublicFindings.of(audit(JOINT, protocol, LIP(1.0)), LIP(1.0), distributions)
    stated = (*dict(found.figures).values(), *dict(found.estimation).values())
    numbers = [value for value in stated if isinstance(value, float)]
    numbers += [
        found.figures.consistency.p_value,
        *distributions.lifts(found.lift).ravel(),
        *distributions.p_secret,
        *distributions.p_input,
    ]
    for value in numbers:
        assert len(f"{value:.15g}".partition("e")[0].replace(".", "").lstrip("0").rstrip("0")) <= 4


def test_rows_of_the_comparison_are_rounded_and_levels_upwards() -> None:
    distributions = PublicDistributions.of(counted(JOINT), fit("grr", JOINT, LIP(1.0)))
    row = {"mechanism": "grr", "utility": 0.123456, "share": None, "bound": 0.4, "level": 0.98765, "reason": None}
    told = distributions.compared(row, LIP(1.0))
    assert told["mechanism"] == "grr"
    assert told["share"] is None
    assert abs(told["utility"] - 0.123456) <= distributions.step / 2 + 1e-12
    assert told["level"] == 1.0
    assert distributions.compared(row | {"seconds": 1.23456}, LIP(1.0))["seconds"] == 1.2
    assert "0.98765" not in distributions.compared(row | {"level": None, "reason": "level 0.98765"}, LIP(1.0))["reason"]


def test_what_a_reserve_keeps_is_told_as_shares_alone() -> None:
    def one(outside: int) -> dict[str, float]:
        return {"reserve": 0.9, "share": 0.512, "moved": 3, "outside": outside, "moved_next": 0}

    outlook = {"versions": 2, "people": 1000, "share_alone": 0.778, "reserves": [one(0), one(51), one(1000)]}
    rows = weighed({**outlook, "histories": 7}, 0.05)
    told = {"reserve": 0.9, "versions": 2, "share": 0.5, "share_alone": 0.8}
    # Upwards, and never that it is nobody.
    assert rows == [{**told, "outside_at_most": share} for share in (0.05, 0.1, 1.0)]
    assert weighed(outlook | {"reserves": [one(950)]}, 0.3)[0]["outside_at_most"] == 1.0


def test_what_rules_a_secret_out_is_told_as_it_is_and_averages_limit_no_belief() -> None:
    distributions = PublicDistributions.of(counted(JOINT), fit("grr", JOINT, LIP(1.0)))
    lifts = distributions.lifts(np.zeros((len(JOINT.secret), len(distributions.p_output))))
    assert (lifts == 0).all()
    assert distributions.belief_limits(MutualInformation(0.1)) is None
    one_sided = distributions.belief_limits(ALIP(1.0, math.inf))
    assert (one_sided[0] <= one_sided[1]).all()
    both = fit("conditional-reporting", JOINT, LIP(1.0))
    assert abs(PublicDistributions.of(counted(JOINT), both).p_output.sum() - 1) < 1e-9


@pytest.mark.parametrize(
    ("shares", "distribution"),
    [
        # Forty values of a step each are ten times what the common one leaves, and share it.
        ([0.96, *[0.01] * 40], [0.96, *[0.001] * 40]),
        # Nothing is left, more than the rare ones have, or less than nothing: all are divided by their sum.
        ([0.5, 0.25, 0.25], [0.5, 0.25, 0.25]),
        ([0.7, 0.01, 0.01], [0.7 / 0.72, 0.01 / 0.72, 0.01 / 0.72]),
        ([0.75, 0.28, 0.01], [0.75 / 1.04, 0.28 / 1.04, 0.01 / 1.04]),
    ],
)
def test_rare_values_share_what_common_ones_leave_where_that_is_less_than_a_step_each(
    shares: list[float], distribution: list[float]
) -> None:
    found = distribution_of_rare(np.array(shares), 0.01)
    np.testing.assert_allclose(found, distribution, rtol=1e-12)
    assert found.sum() == pytest.approx(1, abs=1e-12)


@given(channels())
def test_the_posterior_of_a_wide_table_is_that_of_its_weights_and_shares(channel: tuple[Joint, np.ndarray]) -> None:
    joint, weights = channel
    posterior, outputs = SparsePosterior.of(SparseWeights.of(weights), joint.p_input)
    masses = weights / DENOMINATOR * joint.p_input
    assert outputs == pytest.approx(masses.sum(axis=1))
    for y, row in enumerate(masses):
        inputs, shares = posterior.row(y)
        # Nothing is told of an output that nobody has.
        assert inputs.tolist() == np.flatnonzero(row).tolist()
        assert shares == pytest.approx(row[inputs] / max(row.sum(), 1e-300))
