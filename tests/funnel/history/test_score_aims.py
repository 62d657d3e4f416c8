"""Aims of estimates and numbers: gains are slopes, what is reached is the utility, and no step makes it smaller."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import funnel
from funnel.alphabet import Alphabet
from funnel.history.changes import Changes
from funnel.history.following import VersionTerms
from funnel.history.library import integer_library
from funnel.history.observed import Observed
from funnel.history.past import Past
from funnel.history.score_aims import aim_for
from funnel.joint import FloatArray
from funnel.measures import Estimation, Information, Utility, Variance
from funnel.rounding import marginal_weights
from tests.funnel.history.test_following import second_version

PLAIN = funnel.Joint.from_counts([[30, 10, 8, 5, 0], [10, 50, 9, 20, 12]], inputs=["0", "1", "2", "3", "4"])
# Two columns, and a value of both that nobody has.
CROSSED = funnel.Joint.from_counts(
    [[30, 10, 8, 5, 0, 0], [10, 50, 9, 20, 12, 0]],
    inputs=[("a", "u"), ("a", "v"), ("b", "u"), ("b", "v"), ("c", "u"), ("c", "v")],
)
NUMBERS = Variance({str(x): float(x * x) for x in range(5)})
CASES = [(PLAIN, NUMBERS), (PLAIN, Estimation()), (CROSSED, Estimation()), (PLAIN, Information())]


def drawn_channel(seed: int, joint: funnel.Joint, b: int = 7) -> FloatArray:
    rows = np.random.default_rng(seed).dirichlet(np.ones(b), size=len(joint.inputs)).T
    return rows + 0.01 / b


def as_protocol(joint: funnel.Joint, rows: FloatArray) -> funnel.Protocol:
    weights = integer_library(rows[None] / rows.sum(axis=0))[0]
    outputs = Alphabet.of(None, len(rows), "y")
    return funnel.Protocol(weights, marginal_weights(joint, weights), joint.inputs, outputs, "test", "lip:1.0")


@pytest.mark.parametrize(("joint", "utility"), CASES)
def test_what_is_reached_is_the_utility_of_the_protocol(joint: funnel.Joint, utility: Utility) -> None:
    for seed in range(4):
        rows = drawn_channel(seed, joint)
        rows /= rows.sum(axis=0)
        reached = aim_for(utility, joint, rows).reached(rows)
        assert reached == pytest.approx(utility.told(joint, as_protocol(joint, rows)), rel=1e-6)


@pytest.mark.parametrize(("joint", "utility"), CASES)
def test_gains_are_slopes_of_what_is_reached(joint: funnel.Joint, utility: Utility) -> None:
    for seed in range(4):
        rows = drawn_channel(seed, joint)
        rows /= rows.sum(axis=0)
        aim = aim_for(utility, joint, rows)
        towards = drawn_channel(seed + 10, joint)
        towards = towards / towards.sum(axis=0) - rows
        gains, step = aim.gains(rows), 1e-5
        assert gains is not None
        expected = float((gains * towards * joint.p_input).sum())
        two = [aim.reached(rows + sign * step * towards) for sign in (1, -1)]
        # Of the worth it is that of the logarithm.
        slope = (np.log(two[0] / two[1]) if isinstance(utility, Estimation) else two[0] - two[1]) / (2 * step)
        assert expected == pytest.approx(slope, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize(("joint", "utility"), CASES[1:3])
def test_a_step_goes_as_far_as_the_worth_grows(joint: funnel.Joint, utility: Utility) -> None:
    inside = 0
    for seed in range(6):
        rows, tried = (one / one.sum(axis=0) for one in (drawn_channel(seed, joint), drawn_channel(seed + 6, joint)))
        aim = aim_for(utility, joint, rows)
        found = aim.part(rows, tried)
        worth = [aim.reached(rows + part * (tried - rows)) for part in np.linspace(0, 1, 201)]
        reached = aim.reached(rows + found * (tried - rows))
        # Between two random channels the worth may have two tops; no step makes it smaller than at either end.
        assert reached >= max(worth[0], worth[-1])
        inside += 0 < found < 1
        if np.argmax(worth) not in (0, 200):
            assert reached >= max(worth) - 1e-6
    # One that says nothing is left as far as it goes.
    silent = np.full((7, len(joint.inputs)), 1 / 7)
    best = np.eye(7)[:, : len(joint.inputs)]
    assert aim_for(utility, joint, best).part(silent, best) == 1.0
    assert aim_for(utility, joint, best).part(best, silent) == 0.0


def test_two_channels_that_leave_contrasts_untold_are_worth_something_together() -> None:
    merged, apart = (np.eye(5)[:, of] for of in ([0, 0, 2, 3, 4], [0, 1, 2, 3, 3]))
    aim = aim_for(Estimation(), PLAIN, merged)
    assert Estimation().told(PLAIN, as_protocol(PLAIN, merged)) == 0.0
    assert max(aim.reached(merged), aim.reached(apart)) < 1e-6
    part = aim.part(merged, apart)
    assert 0 < part < 1
    assert aim.reached(merged + part * (apart - merged)) > 0.1


def test_an_output_that_nobody_gets_any_more_can_still_come_back() -> None:
    target = np.array([[0.9, 0, 0, 0, 0], [0.1, 1, 0, 0, 0], [0, 0, 1, 1, 0], [0, 0, 0, 0, 1]])
    rows = np.array([[0.0, 0, 0, 0, 0], [1, 1, 0, 0, 0], [0, 0, 1, 1, 0], [0, 0, 0, 0, 1]])
    aim = aim_for(Estimation(), PLAIN, target)
    gains = aim.gains(rows)
    assert gains is not None
    # It meant the first value, and is best for that one still.
    assert gains[0, 0] > gains[1:, 0].max()
    assert (gains[0, 1:] < gains[1:, 1:].max(axis=0)).all()


def unchanged_people(bound: funnel.Guarantee) -> tuple[Past, Observed]:
    """A second version of people who do not change, and of whom the first one said nothing."""
    random = np.random.default_rng(3)
    cells = random.choice(8, size=4000, p=random.dirichlet(np.ones(8) * 3))
    joint = funnel.Joint.from_counts(np.bincount(cells, minlength=8).reshape(2, 4))
    silent = as_protocol(joint, np.ones((1, 4)))
    first = VersionTerms(bound, "a", target=silent).decide(
        Past(), Observed.counted(joint, {}, np.zeros(4000, int), cells % 4), read_alone=False
    )
    past = Past().followed_by(first.chapter(np.zeros(1, int), np.zeros(1, int)))
    return past, Observed.counted(joint, {0: Changes.counted(cells, cells)}, np.ones(4000, int), cells % 4)


@pytest.mark.parametrize("epsilon", [0.1, 0.25])
def test_where_nothing_was_said_yet_the_worth_is_that_of_the_certified_design(epsilon: float) -> None:
    past, observed = unchanged_people(funnel.LIP(epsilon))
    design = funnel.optimal(observed.joint, funnel.LIP(epsilon), utility="estimation")
    step = VersionTerms(funnel.LIP(epsilon), "b", utility=Estimation()).decide(past, observed)
    reached = Estimation().told(observed.joint, step.channel)
    assert 0.97 * design.bound <= reached <= design.bound + 1e-9
    assert step.outside == 0


@pytest.mark.parametrize("seed", range(1, 5))
def test_versions_for_estimates_are_worth_more_and_those_for_a_number_explain_more(seed: int) -> None:
    past, observed = second_version(seed, 2_000, a=4)
    numbers = Variance({symbol: float(3**x) for x, symbol in enumerate(observed.joint.inputs.symbols)})
    utilities, bound = (Information(), Estimation(), numbers), funnel.LIP(0.3)
    steps = [VersionTerms(bound, "b", utility=useful).decide(past, observed) for useful in utilities]
    told = np.array([[useful.told(observed.joint, step.channel) for useful in utilities] for step in steps])
    for step in steps:
        assert step.level.value <= 0.3 + 1e-9
    # Rows are utilities that versions are for, columns what they reach.
    assert told[1, 1] > 1.2 * told[0, 1]
    assert told[2, 2] > 1.2 * told[0, 2]


def test_a_book_is_for_what_it_is_asked_for() -> None:
    random = np.random.default_rng(5)
    x = random.integers(0, 4, 3000)
    s = np.where(random.random(3000) < 0.2 + 0.2 * x, "yes", "no")
    table = pa.table({"id": np.arange(3000), "x": x.astype(str).tolist(), "s": s.tolist()})
    book = funnel.History(funnel.LIP(0.2), utility="estimation")
    steps = [book.extend(table, key=["id"], secret=["s"], inputs=["x"], version=str(t)) for t in (1, 2)]
    most = funnel.optimal(steps[0].joint, funnel.LIP(0.2), utility="estimation")
    assert Estimation().told(steps[0].joint, steps[0].channel) == pytest.approx(most.utility, rel=1e-3)
    with pytest.raises(funnel.SpecError, match="unknown utility 'estimates'"):
        funnel.History(funnel.LIP(0.2), utility="estimates").extend(
            table, key=["id"], secret=["s"], inputs=["x"], version="1"
        )
