"""Levels of LIP and LDP: equal to their definition in fractions, attained at their witness, in the proven relations."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import funnel
from funnel import ALIP, LDP, LIP, Joint, Protocol, SpecError
from funnel.alphabet import Alphabet
from funnel.guarantees.base import levels_remembered
from funnel.guarantees.exact import exp_below
from funnel.rounding import integer_weights, marginal_weights
from tests.brute import given_secret, ldp_ratio, lip_ratio
from tests.strategies import budgets, joints


@st.composite
def channels(draw: st.DrawFn) -> tuple[Joint, Protocol]:
    """A joint distribution and a random protocol, sparse or dense, over its inputs or over secret and inputs."""
    joint = draw(joints())
    read = joint.with_secret() if draw(st.booleans()) else joint
    b = draw(st.integers(1, 4))
    columns = st.lists(st.one_of(st.just(0.0), st.floats(0.01, 1)), min_size=b, max_size=b).filter(any)
    matrix = np.array([draw(columns) for _ in range(len(read.inputs))]).T
    weights = integer_weights(matrix / matrix.sum(axis=0))
    outputs = Alphabet.of(None, b, joint.inputs.columns[0])
    return joint, Protocol(weights, marginal_weights(read, weights), read.inputs, outputs)


@given(channels(), budgets)
def test_levels_are_those_of_the_definition(channel: tuple[Joint, Protocol], epsilon: float) -> None:
    joint, protocol = channel
    for guarantee, ratio in ((LIP(epsilon), lip_ratio(joint, protocol)), (LDP(epsilon), ldp_ratio(joint, protocol))):
        level = guarantee.level(joint, protocol)
        assert level.witness.ratio == ratio
        assert guarantee.holds(joint, protocol) == (ratio is not None and ratio <= exp_below(epsilon))
        if ratio is None:
            assert math.isinf(level.value)
        else:
            assert level.value == pytest.approx(math.log(ratio), abs=1e-15, rel=1e-14)
        assert not guarantee.holds(joint, protocol) or level.value <= epsilon


@given(channels())
def test_the_witness_attains_the_level(channel: tuple[Joint, Protocol]) -> None:
    joint, protocol = channel
    distribution, marginal = given_secret(joint, protocol)
    lip = LIP(1.0).level(joint, protocol).witness
    if lip.ratio is not None and lip.ratio > 1:
        value = distribution[lip.output, lip.secret] / marginal[lip.output]
        assert lip.ratio == (value if lip.upward else 1 / value)
    ldp = LDP(1.0).level(joint, protocol).witness
    if ldp.ratio is not None and ldp.ratio > 1:
        assert ldp.other_secret is not None
        assert ldp.ratio == distribution[ldp.output, ldp.secret] / distribution[ldp.output, ldp.other_secret]


@given(channels())
def test_relations_between_the_guarantees(channel: tuple[Joint, Protocol]) -> None:
    """LDP(ε) ⇒ LIP(ε) ⇒ LDP(2ε) and I(S;Y) <= ε (PF lemma 1), on the exact ratios."""
    joint, protocol = channel
    lip, ldp = lip_ratio(joint, protocol), ldp_ratio(joint, protocol)
    if lip is None:
        assert ldp is None
        return
    assert ldp is not None
    assert lip <= ldp <= lip**2
    assert funnel.measures.secret_information(joint, protocol) <= math.log(lip) + 1e-12


@given(channels())
def test_a_cone_row_holds_exactly_when_the_guarantee_does(channel: tuple[Joint, Protocol]) -> None:
    joint, protocol = channel
    assume(protocol.inputs.columns == joint.inputs.columns)
    for kind in (LIP, LDP):
        ratio = kind(1.0).level(joint, protocol).value
        assume(ratio == 0 or ratio > 1e-6)
        for epsilon, expected in ((ratio * 1.001 + 1e-9, True), (ratio * 0.999 - 1e-9, False)):
            if epsilon >= 0 and math.isfinite(epsilon):
                rows = kind(epsilon).cone(joint) @ protocol.matrix.T
                scale = np.abs(kind(epsilon).cone(joint)) @ protocol.matrix.T
                assert bool((rows <= 1e-12 * scale).all()) == expected


@pytest.mark.parametrize("epsilon", [-1, math.inf, math.nan, "1", None, True, 10**400, np.float64("nan"), 1j])
def test_what_is_no_budget_is_refused(epsilon: object) -> None:
    with pytest.raises(SpecError, match="finite epsilon"):
        LIP(epsilon)  # type: ignore[arg-type]


@pytest.mark.parametrize("epsilon", [1, np.float64(1), np.float32(1), np.int64(1), Fraction(1)])
def test_every_kind_of_real_number_is_a_budget(epsilon: float) -> None:
    assert LIP(epsilon) == LIP(1.0)
    assert str(LIP(epsilon)) == "lip:1.0"


@settings(max_examples=40)
@given(channels(), st.sampled_from([100.0, 700.0, 1e300]))
def test_a_budget_beyond_every_ratio_only_forbids_certainty(channel: tuple[Joint, Protocol], epsilon: float) -> None:
    joint, protocol = channel
    assert LIP(epsilon).holds(joint, protocol) == (lip_ratio(joint, protocol) is not None)
    assert LDP(epsilon).holds(joint, protocol) == (ldp_ratio(joint, protocol) is not None)
    for kind in (LIP, LDP):
        assert np.isfinite(kind(epsilon).cone(joint)).all()


def test_the_witness_is_something_that_occurs() -> None:
    """Also where nothing leaks: not an output of probability zero, nor a secret that no record has."""
    joint = Joint.from_counts([[0, 0], [5, 0], [5, 0]])
    weights = np.array([[0, 2**63], [2**63, 0]], dtype=np.uint64)
    protocol = Protocol(weights, weights[:, 0], joint.inputs, Alphabet.of(None, 2, "X"))
    for kind in (LIP, LDP):
        witness = kind(1.0).level(joint, protocol).witness
        assert (witness.output, witness.secret, witness.ratio) == (1, 1, 1)


def test_guarantees_are_read_from_text() -> None:
    assert funnel.parse_guarantee("lip:1.0") == LIP(1.0)
    assert funnel.parse_guarantee(" LDP: 0.5 ") == LDP(0.5)
    assert funnel.parse_guarantee(str(LDP(0.1))) == LDP(0.1)
    for text, word in (
        ("lip", "lacks its epsilon"),
        ("lip:x", "number"),
        ("lipp:1", "did you mean 'lip'"),
        ("lip:-1", "finite"),
    ):
        with pytest.raises(SpecError, match=word):
            funnel.parse_guarantee(text)


@pytest.mark.parametrize("guarantee", [LIP(1.0), LDP(2.0), ALIP(math.inf, 1.0), ALIP(0.5, 2.0)])
def test_a_tightened_guarantee_implies_the_guarantee(guarantee: LIP | LDP | ALIP) -> None:
    """By a margin of its budget, all else as it was."""
    tight = guarantee.tightened(0.25)
    assert type(tight) is type(guarantee)
    assert tight.budget == pytest.approx(0.75 * guarantee.budget)
    assert tight.tightened(0.0) == tight
    joint = Joint.from_counts([[30, 1], [1, 90]])
    holds = []
    for flip in np.linspace(0, 0.5, 101):
        weights = integer_weights(np.array([[1 - flip, flip], [flip, 1 - flip]]))
        holds.append((tight.holds_for(joint, weights), guarantee.holds_for(joint, weights)))
    assert (True, False) not in holds
    assert (False, True) in holds


@given(joints(min_inputs=4, max_inputs=4))
def test_side_channels_compare_what_leaves_something_to_learn_and_nothing_else(joint: Joint) -> None:
    """Against brute force over what may be known of one of two columns; where one secret is left, nothing is."""
    pairs = [("u0", "v0"), ("u0", "v1"), ("u1", "v0"), ("u1", "v1")]
    read = Joint.from_counts(joint.counts, joint.secret.labels, pairs)
    occurring = int(joint.counts.any(axis=1).sum())
    assume(occurring > 1)
    expected = Counter({(): occurring})
    for column, values in enumerate(("u", "v")):
        for value in (f"{values}0", f"{values}1"):
            inside = [x for x, pair in enumerate(pairs) if pair[column] == value]
            left = int(joint.counts[:, inside].any(axis=1).sum())
            if left > 1:
                expected[((read.inputs.columns[column], value),)] = left
    found = funnel.SRLIP(1.0).comparisons(read)
    assert Counter(found.given) == expected
    for part, whole in zip(found.part, found.whole, strict=True):
        assert (found.counts[part] <= found.counts[whole]).all()
        assert (found.counts[part] < found.counts[whole]).any()


def test_a_level_is_found_once_where_levels_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    joint, asked = funnel.Joint.from_counts([[30, 10], [10, 50]]), []
    protocol = funnel.fit("grr", joint, funnel.LIP(0.5))
    once = funnel.LIP.level_for
    monkeypatch.setattr(funnel.LIP, "level_for", lambda *of: asked.append(of) or once(*of))
    with levels_remembered():
        first = funnel.LIP(0.5).level(joint, protocol)
        assert funnel.LIP(0.5).level(funnel.Joint.from_counts([[30, 10], [10, 50]]), protocol) is first
        assert funnel.LIP(0.5).holds(joint, protocol)
        assert not funnel.LIP(0.4).holds(joint, protocol)
        assert funnel.LIP(0.5).level(funnel.Joint.from_counts([[30, 10], [10, 40]]), protocol) != first
    assert len(asked) == 2
    assert funnel.LIP(0.5).level(joint, protocol) == first
    assert len(asked) == 3
