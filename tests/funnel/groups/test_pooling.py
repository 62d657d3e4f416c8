"""Rows of weights are about as many people as the rules ask for, given what a record shows; a second reader agrees."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import funnel
from funnel.audit.grouped.rules import AskedRules, row_complaints
from funnel.disclosure import Rules
from funnel.groups import GroupedSolution, Schedule, library
from funnel.groups.pooling import ClassRules, rows_of, shared_rows
from funnel.recount.grouped import Followed, follow
from funnel.recount.grouped_text import GroupedText
from tests.funnel.groups.conftest import tabled

GROUPS = [["x"], ["y"], ["z"]]
RULES = Rules(12, 0.9, 0.0)
ASKED = AskedRules(12, Fraction(9, 10), Fraction(0))


def of_people(joint: funnel.Joint, rules: Rules | None, people: int = 30) -> GroupedSolution:
    return funnel.publish_groups(joint, GROUPS, funnel.LIP(0.7), people=people, schedule=Schedule(0.6, 3), rules=rules)


def followed(joint: funnel.Joint, made: GroupedSolution) -> Followed:
    counts = {
        (joint.secret.symbols[s], joint.inputs.symbols[r]): int(joint.counts[s, r])
        for s, r in zip(*np.nonzero(joint.counts), strict=True)
    }
    return follow(made.protocol.to_json(), "lip:0.7", counts)


@pytest.fixture(scope="module")
def joint() -> funnel.Joint:
    return tabled(3, (5, 2, 3), seed=7, n=2500)


@pytest.fixture(scope="module")
def made(joint: funnel.Joint) -> GroupedSolution:
    return of_people(joint, RULES)


def test_no_row_is_about_fewer_people_than_the_rules_ask_for(joint: funnel.Joint, made: GroupedSolution) -> None:
    found = followed(joint, made)
    assert list(row_complaints(found, ASKED)) == []
    assert found.outputs.holds
    assert not found.strangers
    assert made.utility > 0.2 * joint.entropy
    # Rows that several combinations share are there, and told as many people as draw by them.
    assert max(made.shared) > 0.01
    assert np.allclose(made.shared, found.shared, rtol=1e-9)


def test_without_rules_weights_follow_from_few_people(joint: funnel.Joint) -> None:
    said = list(row_complaints(followed(joint, of_people(joint, None, 300)), ASKED))
    assert any("cells of fewer than 12 people" in one for one in said)
    assert any("one secret is above the rule" in one for one in said)


def test_rules_are_kept_by_who_draws_from_a_channel_and_not_by_whom_it_was_made_from(
    joint: funnel.Joint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(library, "_kept", lambda chosen, *_: chosen)
    assert list(row_complaints(followed(joint, of_people(joint, RULES)), ASKED))


def test_tables_of_rows_are_those_of_following_everybody_in_fractions(
    joint: funnel.Joint, made: GroupedSolution
) -> None:
    """Everybody is followed one by one, and met at every channel by the weights of their input."""
    protocol, columns = made.protocol, joint.inputs.columns
    expected: dict[tuple[int, int, bytes], list[Fraction]] = {}
    for r, values in enumerate(joint.inputs.symbols):
        ways = [(0, Fraction(1))]
        for number, stage in enumerate(protocol.stages):
            x = stage.symbols.index(tuple(values[columns.index(column)] for column in stage.columns))
            if stage.ahead:
                place = stage.ahead.values.index(values[columns.index(stage.ahead.column)])
                x = x * stage.ahead.number + stage.ahead.classes[place]
            longer = []
            for place, likely in ways:
                if place < 0:
                    continue
                channel, following = stage.classes[place]
                weights = stage.channels[channel].table(stage.size)[:, x]
                if len(weights) > 1:
                    at = expected.setdefault((number, channel, weights.tobytes()), [Fraction(0)] * len(joint.secret))
                    for s in range(len(joint.secret)):
                        at[s] += likely * int(joint.counts[s, r])
                longer += [
                    (then, likely * Fraction(int(weight), 2**44))
                    for then, weight in zip(following, weights.tolist(), strict=True)
                    if weight
                ]
            ways = longer
    tables = followed(joint, made).tables
    found = [
        (one.stage, one.channel, tuple(Fraction(mass, one.unit) for mass in masses))
        for one in tables
        for masses in one.masses
    ]
    assert sorted(found) == sorted((k, c, tuple(row)) for (k, c, _), row in expected.items() if any(row))
    # What is asked holds of them, by the definition of the rules.
    common = [Fraction(int(n), joint.n) > ASKED.share for n in joint.counts.sum(axis=1)]
    for _, _, row in found:
        assert all(cell == 0 or cell >= ASKED.least for cell in row)
        assert all(cell <= ASKED.share * sum(row) or known for cell, known in zip(row, common, strict=True))


def test_nothing_depends_on_how_people_are_spread_over_what_shares_a_row() -> None:
    """Some few people change their rare values among each other: the protocol is the same to the byte."""
    random = np.random.default_rng(2)
    counts = random.integers(60, 200, size=(2, 4, 3)).astype(np.int64)
    few = np.zeros((2, 2, 3), dtype=np.int64)
    few[:, 0], few[:, 1] = [[1, 2, 0], [2, 0, 1]], [[0, 3, 1], [1, 2, 2]]
    swapped = few[:, ::-1]
    symbols = tuple((f"x{i}", f"y{j}") for i in range(6) for j in range(3))
    inputs = funnel.Alphabet(("x", "y"), symbols)
    protocols = []
    for rare in (few, swapped):
        joint = funnel.Joint.from_counts(np.concatenate([counts, rare], axis=1).reshape(2, 18), inputs=inputs)
        found = funnel.publish_groups(
            joint, [["x"], ["y"]], funnel.LIP(0.3), people=30, schedule=Schedule(0.8, 1), rules=Rules(10)
        )
        protocols.append(found.protocol)
        assert found.utility > 0
    first = protocols[0].stages[0].channels[0]
    rows = rows_of(first.table(6))
    assert rows[4] == rows[5]
    assert protocols[0].stages[0] == protocols[1].stages[0]
    assert protocols[0].to_json() == protocols[1].to_json()


def test_what_nobody_can_show_has_no_name() -> None:
    """Two stages look ahead at one column: what they leave of it may rule each other out."""
    joint = tabled(2, (3, 3, 6), seed=0, n=1500)
    made = funnel.publish_groups(joint, GROUPS, funnel.LIP(0.7), people=12, schedule=Schedule(0.9, 4), rules=Rules(3))
    text = GroupedText.parse(made.protocol.to_json())
    assert list(text.misnamed()) == []
    assert list(text.unused()) == []


cells = st.one_of(st.just(0.0), st.floats(0.01, 60.0), st.integers(1, 60).map(float))


@settings(max_examples=50)
@given(
    st.integers(2, 3).flatmap(lambda c: st.lists(st.lists(cells, min_size=c, max_size=c), min_size=4, max_size=12)),
    st.integers(1, 20),
    st.sampled_from([0.6, 0.9, 1.0]),
    st.sampled_from([1, 2]),
)
def test_pools_keep_the_rules_and_hold_every_input(
    columns: list[list[float]], least: int, dominance: float, folds: int
) -> None:
    table = np.array(columns[: len(columns) // folds * folds]).T
    rules = ClassRules.of(Rules(least, dominance, 1.0), np.ones(len(table)), folds)
    pool = rules.pools(table)
    if pool is None:
        return
    assert pool.shape == (table.shape[1],)
    assert sorted(set(pool.tolist())) == list(range(int(pool.max()) + 1))
    assert pool.max() > 0
    for number in range(int(pool.max()) + 1):
        row = table[:, pool == number].sum(axis=1)
        assert row.any()
        assert all(cell == 0 or cell >= least * (1 - 1e-12) for cell in row.tolist())
        assert row.max() <= dominance * row.sum() * (1 + 1e-12)
    assert rules.holds(table, pool)


def test_what_keeps_the_rules_is_not_pooled() -> None:
    table = np.array([[20.0, 30, 40, 0], [25, 3, 30, 0]])
    pool = ClassRules.of(Rules(10), table.sum(axis=1), 1).pools(table)
    assert pool is not None
    # The second breaks a rule and joins where least is lost; the last, which nobody has, goes with those two.
    assert len({pool[0], pool[2]}) == 2
    assert pool[1] == pool[0] == pool[3]


def test_shared_rows_are_those_of_several_combinations() -> None:
    weights = np.array([[4, 4, 1, 1, 1, 2], [0, 0, 3, 3, 3, 2]])
    assert shared_rows(weights, 2).tolist() == [False, False, True, True, True, False]
    assert shared_rows(weights, 1).tolist() == [True, True, True, True, True, False]


def test_counts_that_are_whole_keep_a_rule_at_its_edge_whatever_else_is_in_the_table() -> None:
    table = np.array([[0.0, 0.0, 0.0], [0.0, 6.0, 7.0], [1.0, 5.0, 6.5]])
    rules = ClassRules.of(Rules(6, 0.6, 1.0), np.ones(3), 1)
    assert rules.breaking(table).tolist() == [True, True, False]
    pool = rules.pools(table)
    assert pool is not None
    assert pool.tolist() == [0, 0, 1]
    assert rules.holds(table, pool)
