"""Whole records keep the bound, whatever they show; a second computation that shares no code finds the same."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import funnel
from funnel.groups import GroupedSolution, Schedule, Shown
from funnel.groups.effective import EffectiveChannel
from funnel.recount.grouped import record_level

GROUPS = [["x"], ["y"], ["z"]]


def counted(joint: funnel.Joint) -> dict[tuple[tuple[str, ...], tuple[str, ...]], int]:
    return {
        (joint.secret.symbols[s], joint.inputs.symbols[r]): int(joint.counts[s, r])
        for s, r in zip(*np.nonzero(joint.counts), strict=True)
    }


def record_law(joint: funnel.Joint, made: GroupedSolution) -> dict[tuple[str, ...], list[Fraction]]:
    """P(s, record) of every published record, by following every person through every stage, in fractions."""
    protocol, law = made.protocol, {}
    columns = joint.inputs.columns
    for r, values in enumerate(joint.inputs.symbols):
        ways = [(0, Fraction(1), ())]
        for stage in protocol.stages:
            x = stage.symbols.index(tuple(values[columns.index(column)] for column in stage.columns))
            if stage.ahead:
                place = stage.ahead.values.index(values[columns.index(stage.ahead.column)])
                x = x * stage.ahead.number + stage.ahead.classes[place]
            longer = []
            for place, likely, texts in ways:
                if place < 0:
                    longer.append((place, likely, texts + stage.nothing))
                    continue
                channel, following = stage.classes[place]
                of = stage.channels[channel]
                for label, inputs, weights, then in zip(of.labels, of.inputs, of.weights, following, strict=True):
                    if x in inputs:
                        longer.append((then, likely * Fraction(weights[inputs.index(x)], 2**44), texts + label))
            ways = longer
        assert sum(likely for _, likely, _ in ways) == 1
        for _, likely, texts in ways:
            at = law.setdefault(texts, [Fraction(0)] * len(joint.secret))
            for s in range(len(joint.secret)):
                at[s] += likely * Fraction(int(joint.counts[s, r]), joint.n)
    return law


@pytest.mark.parametrize(
    ("name", "guarantee"),
    [
        ("binary", funnel.LIP(0.7)),
        ("binary", funnel.ALIP(1.0, 0.4)),
        ("binary", funnel.LDP(0.8)),
        ("several", funnel.LIP(0.7)),
    ],
    ids=str,
)
def test_whole_records_keep_the_bound_and_a_second_computation_agrees(
    name: str, guarantee: funnel.Guarantee, request: pytest.FixtureRequest
) -> None:
    joint = request.getfixturevalue(name)
    found = funnel.publish_groups(joint, GROUPS, guarantee, people=60, schedule=Schedule(0.8, 3))
    law = record_law(joint, found)
    prior = [Fraction(int(count), joint.n) for count in joint.counts.sum(axis=1)]
    assert found.utility > 0.3 * joint.entropy
    levels = []
    for masses in law.values():
        lifts = [mass / sum(masses) / p for mass, p in zip(masses, prior, strict=True)]
        up, down = math.log(max(lifts)), -math.log(min(lifts))
        if isinstance(guarantee, funnel.ALIP):
            assert up <= 0.4
            assert down <= 1.0
        levels.append(up + down if isinstance(guarantee, funnel.LDP) else max(up, down))
    if not isinstance(guarantee, funnel.ALIP):
        assert max(levels) <= guarantee.budget
        # Readers see labels, of which several outputs may have the same one: they never know more.
        assert max(levels) <= found.level <= guarantee.budget
    again = record_level(found.protocol.to_json(), str(guarantee), counted(joint))
    assert again.holds
    assert again.records == len(law)
    if not isinstance(guarantee, funnel.ALIP):
        assert again.nats == pytest.approx(max(levels), rel=1e-12)


def test_utility_is_the_information_of_published_records(binary: funnel.Joint, made: GroupedSolution) -> None:
    law = {texts: float(sum(masses)) for texts, masses in record_law(binary, made).items()}
    shown = Shown.of(binary, made.protocol)
    assert sum(law.values()) == pytest.approx(1)
    assert len(law) == len(shown.codes)
    table = np.zeros((len(shown.codes), len(binary.inputs)))
    np.add.at(table, (shown.published, shown.rows), shown.likely)
    assert table.sum(axis=0) == pytest.approx(1)
    joint_law = table * binary.p_input
    some = joint_law > 0
    independent = joint_law.sum(axis=1, keepdims=True) * binary.p_input
    told = float((joint_law[some] * np.log(joint_law[some] / independent[some])).sum())
    assert made.utility == pytest.approx(told)
    assert made.utility <= sum(made.told) + 1e-12 <= binary.entropy


def test_effective_channels_are_averages_over_records(binary: funnel.Joint, made: GroupedSolution) -> None:
    shown = Shown.of(binary, made.protocol)
    for columns in (["x"], ["z"], ["y", "z"]):
        channel = shown.channel(columns)
        assert channel.matrix.sum(axis=0) == pytest.approx(1)
        assert 0 <= channel.information <= min(channel.entropy, made.utility) + 1e-12
        places = [binary.inputs.columns.index(column) for column in columns]
        for x, values in enumerate(channel.inputs):
            have = [tuple(symbol[j] for j in places) == values for symbol in binary.inputs.symbols]
            assert channel.law[x] == pytest.approx(binary.p_input[have].sum())


def test_plain_values_are_true(binary: funnel.Joint, made: GroupedSolution) -> None:
    shown = Shown.of(binary, made.protocol)
    for code, r in zip(shown.codes[shown.published], shown.rows, strict=True):
        for j, column in enumerate(made.protocol.columns):
            text = made.protocol.labels[column][code[j]]
            value = binary.inputs.symbols[r][j]
            values = {symbol[j] for symbol in binary.inputs.symbols}
            assert text == value or (text not in values and (text == "any" or value in text or "any but" in text))
    assert all(0 < share <= 1 for share in list(shown.plain.values())[:1])


def test_what_a_stage_knows_ahead_leaves_more_to_say(binary: funnel.Joint) -> None:
    kept = {
        classes: sum(
            funnel.publish_groups(binary, GROUPS, funnel.LIP(0.7), people=10, schedule=Schedule(0.8, classes)).told
        )
        for classes in (1, 4)
    }
    best = funnel.optimal(binary, funnel.LIP(0.7), gap=1e-3).bound
    assert kept[1] < kept[4] <= best
    assert kept[4] > 0.9 * best


def test_below_the_stated_number_of_people_prefixes_say_less(binary: funnel.Joint) -> None:
    few, many = (
        funnel.publish_groups(binary, GROUPS, funnel.LIP(0.7), people=people, schedule=Schedule(0.8, 3))
        for people in (10, 1500)
    )
    assert sum(many.told) < sum(few.told)
    assert many.prefixes[1:] < few.prefixes[1:]
    # The first stage has everybody.
    assert many.prefixes[0] == 1


def test_the_same_table_gives_the_same_protocol(binary: funnel.Joint, made: GroupedSolution) -> None:
    again = funnel.publish_groups(binary, GROUPS, funnel.LIP(0.7), people=30, schedule=made.schedule)
    assert again.protocol.digest == made.protocol.digest
    assert again.schedule == made.schedule


def test_funnel_chooses_groups_of_a_flat_list_in_its_order_and_of_auto_in_any(binary: funnel.Joint) -> None:
    flat = funnel.publish_groups(binary, ["y", "x", "z"], funnel.LIP(0.7), people=30, schedule=Schedule(0.8, 2))
    assert list(itertools.chain(*flat.groups)) == ["y", "x", "z"]
    assert flat.tried[0].kept >= flat.tried[-1].kept
    assert len(flat.tried) > 1
    # Where trials made fewer channels their share is not the one of the release, and the reason says so.
    assert "ways that were tried, this one told most" in replace(flat, utility=flat.tried[0].kept * flat.entropy).reason
    assert "ways, this one told most in short trials: " in replace(flat, utility=0.0).reason
    every = funnel.publish_groups(binary, "auto", funnel.LIP(0.7), people=30, schedule=Schedule(0.8, 2))
    assert sorted(itertools.chain(*every.groups)) == ["x", "y", "z"]
    assert every.protocol.columns == ("x", "y", "z")


@pytest.mark.parametrize("off", [1e-16, -1e-15, 3e-16])
def test_of_a_column_with_one_value_there_is_nothing_to_know(off: float) -> None:
    channel = EffectiveChannel(("x",), (("u",),), (("u",),), np.ones((1, 1)), np.array([1 + off]))
    assert channel.entropy == 0
    assert channel.information == pytest.approx(0, abs=1e-12)


def test_what_breaks_no_bound_is_published_as_it_is() -> None:
    symbols = tuple(itertools.product("ab", "uv"))
    joint = funnel.Joint.from_counts([[60, 70, 80, 90], [90, 80, 70, 60]], inputs=funnel.Alphabet(("x", "y"), symbols))
    found = funnel.publish_groups(joint, [["x"], ["y"]], funnel.LIP(1.0))
    assert found.utility == pytest.approx(joint.entropy)
    assert Shown.of(joint, found.protocol).plain == {"x": 1.0, "y": 1.0}


def test_secrets_and_records_that_nobody_has_change_nothing(binary: funnel.Joint, made: GroupedSolution) -> None:
    inputs = funnel.Alphabet(binary.inputs.columns, (*binary.inputs.symbols, ("x0", "y9", "z9")))
    counts = np.zeros((3, len(inputs)), dtype=np.int64)
    counts[:2, :-1] = binary.counts
    joint = funnel.Joint.from_counts(counts, inputs=inputs)
    found = funnel.publish_groups(joint, GROUPS, funnel.LIP(0.7), people=30, schedule=made.schedule)
    # Labels differ: who is none of the values that anybody has is not any.
    assert (found.level, *found.told) == pytest.approx((made.level, *made.told))
    assert Shown.of(joint, made.protocol).information == pytest.approx(made.utility)
    other = funnel.Joint.from_counts(counts + (counts.sum(axis=0) == 0), inputs=inputs)
    with pytest.raises(funnel.DataError, match="does not know"):
        Shown.of(other, made.protocol)


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([["x"], ["y"]], "'z', which is in no group"),
        ([["x"], ["x"], ["y"], ["z"]], "in two groups"),
        ([["x"], ["y"], ["z"], ["q"]], "'q' of a group"),
        ([["x"], "y", ["z"]], "not both"),
        ([["x"], [], ["y", "z"]], "at least one column"),
        ("every", 'or "auto"'),
    ],
)
def test_groups_that_do_not_fit_are_refused(binary: funnel.Joint, groups: object, message: str) -> None:
    with pytest.raises(funnel.SpecError, match=message):
        funnel.publish_groups(binary, groups, funnel.LIP(0.7))  # type: ignore[arg-type]


def test_bounds_that_are_none_on_the_posterior_are_refused(binary: funnel.Joint) -> None:
    with pytest.raises(funnel.SpecError, match="no bound on the posterior"):
        funnel.publish_groups(binary, GROUPS, funnel.MutualInformation(0.1))
    with pytest.raises(funnel.SpecError, match="above 0"):
        funnel.publish_groups(binary, GROUPS, funnel.LIP(0.0))
    for people in (0, 10**6):
        with pytest.raises(funnel.SpecError, match="people"):
            funnel.publish_groups(binary, GROUPS, funnel.LIP(0.7), people=people)


def test_where_all_prefixes_have_few_people_the_rest_is_any(binary: funnel.Joint) -> None:
    found = funnel.publish_groups(binary, GROUPS, funnel.LIP(0.7), people=3000, schedule=Schedule(0.8, 1))
    shown = Shown.of(binary, found.protocol)
    assert found.prefixes[0] == 1
    assert shown.plain["x"] > 0
    assert found.told[-1] <= found.told[0]


@pytest.mark.parametrize(("lower", "upper"), [(0.9, 0.5), (0.4, 1.1)])
def test_the_level_of_two_budgets_is_that_of_the_whole_records_counted_otherwise(
    binary: funnel.Joint, lower: float, upper: float
) -> None:
    guarantee = funnel.ALIP(lower, upper)
    made = funnel.publish_groups(binary, [["x"], ["y"], ["z"]], guarantee, people=30, schedule=Schedule(1.0, 1))
    # Labels tell no more than outputs do, and nothing that is within both budgets is beyond the larger one.
    level = record_level(made.protocol.to_json(), str(guarantee), counted(binary))
    assert level.nats - 1e-9 <= made.level <= guarantee.budget
