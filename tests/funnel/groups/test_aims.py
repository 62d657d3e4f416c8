"""What stages are made to tell: sums that add up over prefixes and stages, and channels that are best for them."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import funnel
from funnel.groups import Schedule, Shown
from funnel.groups.aims import INFORMATION, Aim, Shares, aim_of, standardised
from funnel.groups.local import best_channel
from funnel.groups.purposes import explained_by, purpose_of, worth_for_estimates
from funnel.groups.reading import Reading
from funnel.groups.records import Records
from funnel.joint import FloatArray
from funnel.solver.budget import Budget
from funnel.solver.columns import ColumnGeneration
from funnel.solver.region import Region
from funnel.solver.tangents import TangentPricer, pricer_of
from tests.funnel.groups.conftest import tabled

NUMBERS = {"y": {f"y{i}": float(i * i) for i in range(4)}}


def aim(seed: int, inputs: int, numbers: int, others: int) -> Shares:
    random = np.random.default_rng(seed)
    image = np.eye(others)[:, random.integers(others, size=inputs)]
    return Shares(random.normal(size=(numbers, inputs)), image, 0.7 if others > 1 else 0.0)


aims = st.builds(aim, st.integers(0, 99), st.just(5), st.integers(1, 3), st.integers(1, 3)) | st.just(INFORMATION)


def masses(aim: Aim, table: FloatArray) -> float:
    """P(y) g(v_y) summed up, one output at a time, by the definition of g."""
    found = 0.0
    for row in table:
        if (mass := row.sum()) > 0:
            found += mass * float(aim.goal().gains(row[None] / mass)[0])
    return found


@settings(max_examples=50, deadline=None)
@given(aims, st.integers(0, 999))
def test_what_is_told_is_that_of_the_goal_of_the_solver(found: Aim, seed: int) -> None:
    random = np.random.default_rng(seed)
    rows, people = random.dirichlet(np.ones(4), size=5).T, random.gamma(1.0, size=(3, 5)) * 100
    told = [masses(found, rows * some) - masses(found, some[None]) for some in people]
    assert found.told(rows, people) == pytest.approx(told, rel=1e-9, abs=1e-9)
    # Nothing is told by an output that is the same for all, and never more than of inputs that are told apart.
    assert found.told(np.ones((1, 5)), people) == pytest.approx(0.0, abs=1e-9)
    whole = [masses(found, np.diag(some)) - masses(found, some[None]) for some in people]
    assert found.whole(people) == pytest.approx(whole, rel=1e-9, abs=1e-9)
    assert (found.told(rows, people) <= found.whole(people) + 1e-9).all()
    # What is lost by joining two outputs is what the solver says, and never less than nothing.
    assert float((found.worths(rows * people[0])).sum()) == pytest.approx(masses(found, rows * people[0]), rel=1e-9)


@settings(max_examples=30, deadline=None)
@given(aims, st.integers(0, 999))
def test_slopes_are_tangents_from_below(found: Aim, seed: int) -> None:
    goal, random = found.goal(), np.random.default_rng(seed)
    at, other = random.dirichlet(np.ones(5) * 3, size=(2, 20))
    # P(y) g(v) is homogeneous: its tangent at v, at another posterior, is slopes · other.
    assert (goal.slopes(at) * at).sum(axis=1) == pytest.approx(goal.gains(at), abs=1e-9)
    assert ((goal.slopes(at) * other).sum(axis=1) <= goal.gains(other) + 1e-9).all()
    assert (goal.gains(at) <= at @ goal.first_prices(np.ones(5)) + 1e-9).all()


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("others", [1, 3])
def test_of_two_secrets_no_mixture_of_vertices_tells_more(seed: int, others: int) -> None:
    """Brute force: the programme over all pairs is an optimum, so a search that climbs never gets above it."""
    random = np.random.default_rng(seed)
    law, found = random.gamma(1.0, size=(2, 6)) * 100, aim(seed, 6, 1 if others == 1 else 2, others)
    prior = law.sum(axis=1) / law.sum()
    cone = funnel.LIP(0.4).posterior_cone(prior)
    channel = best_channel(law, cone, Budget.of(10.0), found)
    assert channel is not None
    assert channel.sum(axis=0) == pytest.approx(np.ones(6))
    assert (cone @ (law @ channel.T) <= 1e-6 * law.sum()).all()
    p = law.sum(axis=0) / law.sum()
    region = Region.of(cone @ law / law.sum(axis=0), p, goal=found.goal())
    pricer = pricer_of(region, Budget.of(10.0))
    assert isinstance(pricer, TangentPricer) == (others > 1)
    split = ColumnGeneration(region, Budget.of(10.0), pricer).run(1e-6, proving=others == 1).split
    told = float(found.told(channel, p[None])[0])
    least = float(region.gains(p[None])[0])
    assert split.value - least <= told + 2e-6
    if others == 1:
        assert told <= split.bound - least + 1e-6


def test_more_than_two_secrets_and_mixed_groups_stay_inside() -> None:
    random = np.random.default_rng(3)
    law, found = random.gamma(1.0, size=(3, 8)) * 50, aim(1, 8, 2, 3)
    cone = funnel.LIP(0.5).posterior_cone(law.sum(axis=1) / law.sum())
    channel = best_channel(law, cone, Budget.of(10.0), found)
    assert channel is not None
    assert (cone @ (law @ channel.T) <= 1e-6 * law.sum()).all()
    informative = best_channel(law, cone, Budget.of(10.0))
    assert informative is not None
    people = law.sum(axis=0)[None]
    assert found.told(channel, people) >= found.told(informative, people) - 1e-3 * people.sum()


def test_stages_without_a_number_tell_information_and_others_both() -> None:
    records = Records.of(tabled(2, (3, 4, 2), seed=4, n=2000))

    def of(*group: str) -> Aim:
        return aim_of(records, Reading.of(records, group, [], 1), NUMBERS)

    assert of("x") is of("x", "z") is INFORMATION
    alone, mixed = of("y"), of("x", "y")
    assert isinstance(alone, Shares)
    assert isinstance(mixed, Shares)
    assert (alone.weight, alone.numbers.shape) == (0.0, (1, 4))
    shown = Shown.of(records.joint, funnel.publish_groups(records.joint, [["x"], ["y"], ["z"]], funnel.LIP(9)).protocol)
    assert mixed.weight == pytest.approx(1 / shown.channel(["x"]).entropy)
    law = records.marginal(["x", "y"]).counts.sum(axis=0) / 2000
    # Told in full, a number is all of its variance, and the rest all of its entropy.
    assert float(mixed.whole(law[None])[0]) == pytest.approx(2.0)
    # A number that is one for all is none.
    flat = {"y": dict.fromkeys(NUMBERS["y"], 7.0)}
    assert aim_of(records, Reading.of(records, ["y"], [], 1), flat) is INFORMATION


def test_a_value_without_a_number_counts_as_the_mean() -> None:
    found = standardised([1.0, None, 3.0], np.array([0.3, 0.4, 0.3]))
    assert found == pytest.approx([-1.0 / np.sqrt(0.6), 0.0, 1.0 / np.sqrt(0.6)])
    assert standardised([None, None], np.array([0.5, 0.5])).tolist() == [0.0, 0.0]
    assert standardised([5.0, None], np.array([0.5, 0.5])).tolist() == [0.0, 0.0]


def test_pools_count_alike_whoever_is_in_them() -> None:
    found = Shares(np.array([[0.0, 1.0, 5.0]]), np.eye(3), 0.5)
    pool = np.array([0, 0, 1])
    pooled, blurred = found.pooled(pool), found.blurred(pool)
    assert isinstance(pooled, Shares)
    assert isinstance(blurred, Shares)
    assert pooled.numbers.tolist() == [[0.5, 5.0]]
    assert pooled.others.T.tolist() == [[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]]
    assert blurred.numbers.tolist() == [[0.5, 0.5, 5.0]]
    rows = np.array([[0.8, 0.8, 0.1], [0.2, 0.2, 0.9]])
    first, second = np.array([[30.0, 10.0, 20.0]]), np.array([[5.0, 35.0, 20.0]])
    assert blurred.told(rows, first) == pytest.approx(blurred.told(rows, second))
    assert found.told(rows, first) != pytest.approx(found.told(rows, second))


@pytest.fixture(scope="module")
def joint() -> funnel.Joint:
    return tabled(2, (3, 4, 3), seed=11, n=4000)


def test_what_stages_explain_adds_up_to_what_records_do(joint: funnel.Joint) -> None:
    """The law of total variance: prefix by prefix, over all outputs, by brute force over everybody's ways."""
    made = funnel.publish_groups(
        joint, [["x"], ["y"], ["z"]], funnel.LIP(0.5), utility="variance", numbers=NUMBERS, people=30
    )
    number = np.array([NUMBERS["y"][symbol[1]] for symbol in joint.inputs.symbols])
    p = joint.p_input
    mean = float(number @ p)
    ways: dict[tuple[int, ...], FloatArray] = {(): np.ones(len(p))}
    told, total, places = [], float(p @ (number - mean) ** 2), {(): 0}
    for stage in made.protocol.stages:
        gained, longer, then = 0.0, {}, {}
        at = [joint.inputs.columns.index(column) for column in stage.columns]
        inputs = np.array([stage.symbols.index(tuple(s[j] for j in at)) for s in joint.inputs.symbols])
        if stage.ahead is not None:
            of = dict(zip(stage.ahead.values, stage.ahead.classes, strict=True))
            j = joint.inputs.columns.index(stage.ahead.column)
            inputs = inputs * stage.ahead.number + np.array([of[s[j]] for s in joint.inputs.symbols])
        for way, shows in ways.items():
            if places[way] < 0:
                longer[way], then[way] = shows, -1
                continue
            channel, following = stage.classes[places[way]]
            before = float((p * shows) @ number) ** 2 / float(p @ shows)
            for y, row in enumerate(stage.channels[channel].table(stage.size) / 2.0**44):
                after = shows * row[inputs]
                if (mass := float(p @ after)) > 0:
                    gained += float((p * after) @ number) ** 2 / mass
                    longer[*way, y], then[*way, y] = after, following[y]
            gained -= before
        ways, places = longer, then
        told.append(gained / total)
    # Readers of outputs know a little more than those of texts, which several outputs may have.
    shown = Shown.of(joint, made.protocol)
    assert sum(told) >= made.explained["y"] - 1e-9
    assert made.explained == explained_by(shown, NUMBERS)
    by_text = 0.0
    for code in range(len(shown.codes)):
        some = shown.published == code
        mass = float(shown.masses[some].sum())
        by_text += float(shown.masses[some] @ (number[shown.rows[some]] - mean)) ** 2 / mass
    assert made.explained["y"] == pytest.approx(by_text / total, rel=1e-9)


def test_the_number_is_explained_better_than_by_information(joint: funnel.Joint) -> None:
    groups, bound = [["x"], ["y", "z"]], funnel.LIP(0.3)
    plain = funnel.publish_groups(joint, groups, bound, people=30)
    made = funnel.publish_groups(joint, groups, bound, people=30, utility="variance", numbers=NUMBERS)
    assert made.level <= 0.3
    assert made.explained["y"] > explained_by(Shown.of(joint, plain.protocol), NUMBERS)["y"]
    assert (made.chosen_by, plain.chosen_by, made.worth, dict(plain.explained)) == ("variance", "information", None, {})
    assert max(one.worth for one in made.tried) == made.tried[0].worth
    # Rules and a robust bound are kept as ever.
    rules = funnel.publish_groups(
        joint, groups, bound, people=30, utility="variance", numbers=NUMBERS, rules=funnel.disclosure.Rules(10)
    )
    robust = funnel.publish_groups(
        joint, groups, funnel.RLIP(1.0, 0.05), utility="variance", numbers=NUMBERS, people=30, seed="a test"
    )
    assert rules.level <= 0.3
    assert robust.level <= 1.0
    assert robust.proven is not None
    assert 0 <= robust.explained["y"] <= 1


def test_ways_are_compared_by_what_estimates_are_worth(joint: funnel.Joint) -> None:
    groups, bound = [["x"], ["y"], ["z"]], funnel.LIP(0.4)
    plain = funnel.publish_groups(joint, groups, bound, people=30)
    made = funnel.publish_groups(joint, groups, bound, people=30, utility="estimation")
    assert made.worth == worth_for_estimates(Shown.of(joint, made.protocol))
    assert made.worth >= worth_for_estimates(Shown.of(joint, plain.protocol))
    assert {one.schedule for one in plain.tried} < {one.schedule for one in made.tried}
    assert [one.worth for one in made.tried] == sorted((one.worth for one in made.tried), reverse=True)
    one = funnel.publish_groups(joint, groups, bound, schedule=Schedule(0.9, 1), utility="estimation", people=30)
    assert one.tried == ()
    assert one.worth is not None
    # Published as they are, records are worth what rounding of the channels leaves of them.
    whole = funnel.publish_groups(
        joint, groups, funnel.LIP(20.0), people=1, utility="estimation", schedule=one.schedule
    )
    assert whole.worth is not None
    assert one.worth < whole.worth <= 1


@pytest.mark.parametrize(
    ("utility", "numbers", "said"),
    [
        ("variety", None, "unknown utility 'variety'; choose one of information, variance, estimation"),
        ("estimation", NUMBERS, 'numbers are for utility = "variance", not for estimation'),
        ("variance", None, "needs a column of numbers, and there is none"),
        ("variance", {}, "needs a column of numbers, and there is none"),
        ("variance", {"w": {}}, "numbers name the column 'w', which is not published"),
        ("variance", {"y": {"y0": 1.0}}, "needs a number for every value of 'y', or None; 3 have none, such as 'y1'"),
        ("variance", {"y": dict.fromkeys(NUMBERS["y"])}, "needs numbers of 'y', and no value has one"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    joint: funnel.Joint, utility: str, numbers: dict[str, dict[str, float | None]] | None, said: str
) -> None:
    with pytest.raises(funnel.SpecError, match=said):
        funnel.publish_groups(joint, [["x"], ["y"], ["z"]], funnel.LIP(1.0), utility=utility, numbers=numbers)


def test_columns_whose_values_are_numbers_are_found() -> None:
    columns = {"a": ("1", "2.5"), "b": ("1", "x"), "c": ("inf", "1")}
    assert purpose_of("variance", None, columns).numbers == {"a": {"1": 1.0, "2.5": 2.5}}
    symbols = tuple(product(("1", "2", "30"), ("u", "v")))
    counts = np.random.default_rng(0).integers(40, 400, size=(2, 6))
    joint = funnel.Joint.from_counts(counts, inputs=funnel.Alphabet(("n", "x"), symbols))
    made = funnel.publish_groups(joint, "auto", funnel.LIP(0.2), utility="variance")
    assert list(made.explained) == ["n"]
    # Where funnel chooses, what is to be explained may come first.
    assert (("n",), ("x",)) in {one.groups for one in made.tried}
