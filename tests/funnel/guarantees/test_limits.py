"""What guarantees say for reports: no reader of a protocol that holds comes to believe more than they allow."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings

import funnel
from funnel import ALIP, RLDP, Alphabet, Joint, PerfectPrivacy, SpecError
from funnel.guarantees import examples
from funnel.guarantees.chi2_ball import extreme_distribution
from funnel.guarantees.exact import log_above
from funnel.measures import lift
from tests.strategies import budgets, joints

SLACK = 1 + 1e-9
SEXES = Alphabet(("age", "sex"), (("young", "f"), ("young", "m"), ("old", "f"), ("old", "m")))
JOINT = Joint.from_counts([[300, 100, 50, 100], [100, 500, 100, 50], [10, 20, 300, 100]], inputs=SEXES)


@pytest.mark.parametrize("text", examples())
def test_beliefs_stay_within_what_is_said(text: str) -> None:
    guarantee = funnel.parse_guarantee(text)
    name = "optimal" if guarantee == PerfectPrivacy() else "grr"
    protocol = funnel.fit(name, JOINT, guarantee)
    lifts = lift(JOINT, protocol)
    posteriors = (lifts * JOINT.p_secret[:, np.newaxis]).T
    said = 0
    if (limits := guarantee.lift_limits) is not None:
        assert (lifts >= limits[0] / SLACK).all()
        assert (lifts <= limits[1] * SLACK).all()
        said += 1
    if (ranges := guarantee.posterior_limits(JOINT.p_secret)) is not None:
        assert (posteriors >= ranges[0] / SLACK).all()
        assert (posteriors <= ranges[1] * SLACK).all()
        said += 1
    if (ratio := guarantee.ratio_limit) is not None:
        assert (lifts.max(axis=0) <= ratio * lifts.min(axis=0) * SLACK).all()
        said += 1
    # A bound on an average limits no single belief.
    assert said or guarantee.name in ("mi", "l1-lift", "chi2-lift", "alpha-lift")
    assert guarantee.meaning.endswith(".")


def test_perfect_privacy_has_one_budget() -> None:
    assert PerfectPrivacy().with_budget(0.0) == PerfectPrivacy()
    with pytest.raises(SpecError, match=r"write 'lip:0\.5'"):
        PerfectPrivacy().with_budget(0.5)


@given(joints(), budgets)
@settings(max_examples=30)
def test_a_budget_of_zero_on_one_side_leaves_the_prior_alone(joint: Joint, budget: float) -> None:
    """Lifts on one side of 1 are all 1, so the cone is flat, and holds the prior however it is rounded."""
    prior = joint.p_secret[joint.p_secret > 0]
    for guarantee in (ALIP(0.0, budget), ALIP(budget, 0.0), PerfectPrivacy()):
        cone = guarantee.posterior_cone(prior)
        assert np.abs(cone @ prior).max() < 1e-12 * len(prior)
        if len(prior) > 1:
            moved = prior + 0.01 * prior[0] * np.eye(len(prior))[0]
            assert (cone @ (moved / moved.sum()) > 0).any()


def test_a_ratio_below_one_is_no_worst_ratio() -> None:
    assert log_above(Fraction(1)) == 0.0
    with pytest.raises(ValueError, match="at least 1"):
        log_above(Fraction(99, 100))


@pytest.mark.parametrize("below", [1e-3, 1e-6, 1e-9])
def test_a_budget_just_below_the_level_is_refused(below: float) -> None:
    """The last of them is near enough that ratios are computed again, more closely."""
    protocol = funnel.fit("grr", JOINT, RLDP(1.0, 0.05))
    level = RLDP(1.0, 0.05).level(JOINT, protocol).value
    assert RLDP(level * (1 + 1e-9), 0.05).holds(JOINT, protocol)
    assert not RLDP(level * (1 - below), 0.05).holds(JOINT, protocol)


def test_a_row_that_is_the_same_everywhere_is_attained_by_the_estimate() -> None:
    distribution = np.array([0.25, 0.25, 0.5])
    assert (extreme_distribution(np.full(3, 0.7), distribution, 1.0) == distribution).all()
