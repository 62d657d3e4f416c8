"""The level of a release under every kind of guarantee, as the verdict judges it from the channel table."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from funnel import Guarantee, Joint, parse_guarantee
from funnel.pipeline.expectations import Evidence
from funnel.pipeline.expectations.custom.channel import Channel
from funnel.pipeline.expectations.custom.level import ExpectProtocolLevelToMeetBound, ProtocolLevel
from funnel.protocol import Protocol
from tests.verdicts import judge_evidence

LEVEL = "expect_protocol_level_to_meet_bound"
KINDS = ["lip:1", "ldp:1", "srlip:1", "alip:1.3,0.7", "alip:inf,0.5", "mi:0.1", "chi2-lift:1,1", "l1-lift:inf,1"]
KINDS += ["alpha-lift:1,1,3"]


def judged(evidence: Evidence, guarantee: Guarantee) -> str | None:
    """The failure of the level alone, measured on the channel table as the suite does."""
    measured = ProtocolLevel.measure(evidence.tables["channel"], {"guarantee": str(guarantee)})
    expectation = ExpectProtocolLevelToMeetBound(
        guarantee=str(guarantee), budget=guarantee.budget, protocol_digest=evidence.protocol.digest
    )
    return expectation.find(measured).failure


@pytest.fixture
def mixed(small: Evidence) -> Evidence:
    """The small release with both values of the secret among the records of every colour and size."""
    totals = small.joint.counts.sum(axis=0)
    some = totals * np.array([3, 6, 4, 8]) // 12
    return replace(small, joint=Joint(np.array([some, totals - some]), small.joint.secret, small.joint.inputs))


@pytest.mark.parametrize("text", KINDS)
def test_every_guarantee_passes_above_its_level_and_fails_below(mixed: Evidence, text: str) -> None:
    kind = parse_guarantee(text)
    level = kind.level(mixed.joint, mixed.protocol).value
    assert 0 < level < math.inf
    assert judged(mixed, kind.with_budget(level * (1 + 1e-9))) is None
    failure = judged(mixed, kind.with_budget(level / 2))
    assert failure is not None
    assert failure.startswith(
        f"level {level:.6f} exceeds the declared {level / 2!r} by {level / 2:.6f} nats, at output "
    )
    assert "secret 'yes'" in failure or "secret 'no'" in failure


def test_perfect_privacy_passes_only_where_nothing_is_told(mixed: Evidence) -> None:
    perfect = parse_guarantee("perfect")
    failure = judged(mixed, perfect)
    assert failure is not None
    assert "exceeds the declared 0.0 by" in failure
    half = np.full_like(mixed.protocol.weights, 0)
    half[:2] = 2**62
    silent = replace(mixed.protocol, weights=half, marginal=half[:, 0])
    assert judged(replace(mixed, protocol=silent), perfect) is None


def test_two_columns_are_judged_together(mixed: Evidence) -> None:
    channel = Channel.read(mixed.tables["channel"])
    guarantee = parse_guarantee("srlip:1")
    before, after = (guarantee.level(joint, mixed.protocol) for joint in (mixed.joint, channel.joint))
    assert channel.joint.inputs.columns == ("colour", "size")
    assert before == after


@pytest.mark.parametrize("text", ["alip:1.3,0.7", "srlip:1", "mi:0.1", "chi2-lift:1,1"])
def test_the_whole_verdict_follows_the_level(mixed: Evidence, text: str) -> None:
    kind = parse_guarantee(text)
    level = kind.level(mixed.joint, mixed.protocol).value
    assert judge_evidence(replace(mixed, guarantee=kind.with_budget(level * 1.01))).passed
    broken = judge_evidence(replace(mixed, guarantee=kind.with_budget(level / 2)))
    assert [judgement.name for judgement in broken.failed] == [LEVEL]


def test_a_side_channel_bound_on_one_column_is_no_release(adult: Evidence) -> None:
    """One published column has no side channel: the expectation cannot be judged, so the release is refused."""
    verdict = judge_evidence(replace(adult, guarantee=parse_guarantee("srlip:1")))
    assert not verdict.passed
    assert [judgement.name for judgement in verdict.failed] == [LEVEL]


def test_an_infinite_level_is_said_to_be_infinite(small: Evidence) -> None:
    joint = Joint.from_counts(np.diag([60, 120, 120]), inputs=small.protocol.inputs)
    for text in ("alip:1.3,0.7", "srlip:1", "chi2-lift:1,1"):
        failure = judged(replace(small, joint=joint), parse_guarantee(text))
        assert failure is not None
        assert failure.startswith("level is infinite instead of at most ")


def test_protocols_are_told_apart_before_levels(small: Evidence) -> None:
    weights, marginal = small.protocol.weights[::-1], small.protocol.marginal[::-1]
    other = Protocol(weights, marginal, small.protocol.inputs, small.protocol.outputs)
    measured = ProtocolLevel.measure(replace(small, protocol=other).tables["channel"], {"guarantee": "mi:0.0"})
    expectation = ExpectProtocolLevelToMeetBound(guarantee="mi:0.0", budget=0.0, protocol_digest=small.protocol.digest)
    assert str(expectation.find(measured).failure).startswith("the protocol has digest ")
