"""The channel that records were drawn with, and its draws input by input."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import permutations
from typing import Any

import numpy as np
import pandas as pd
import pytest

import funnel
from funnel.alphabet import Alphabet
from funnel.errors import SpecError
from funnel.findings import draw_consistency
from funnel.pipeline.expectations import Evidence
from funnel.pipeline.expectations import evidence as evidence_module
from funnel.pipeline.expectations.custom.channel import Channel
from funnel.pipeline.expectations.custom.drawn_inputs import (
    ExpectDrawnInputsToEqualSnapshot,
    MeasuredInputs,
    snapshot_inputs,
)
from funnel.pipeline.expectations.custom.draws import ExpectDrawsToFollowProtocol, MeasuredDraws
from funnel.pipeline.expectations.drawing import Drawing
from funnel.protocol import Protocol
from tests.verdicts import judge_evidence

INPUTS = "expect_drawn_inputs_to_equal_snapshot"
DRAWS = "expect_draws_to_follow_protocol"
COUNTS = "expect_released_counts_to_equal_drawn"


def failures(of: Evidence) -> dict[str, str]:
    return {judgement.name: str(judgement.failure) for judgement in judge_evidence(of).failed}


class Counted:
    """A function that counts its calls."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function, self.calls = function, 0

    def __call__(self, *arguments: Any) -> Any:
        self.calls += 1
        return self.function(*arguments)


def test_another_protocol_than_declared_fails() -> None:
    draws = ExpectDrawsToFollowProtocol(significance=1e-9, protocol_digest="a" * 64)
    words = "the protocol has digest bbbbbbbbbbbb… instead of aaaaaaaaaaaa…"
    assert draws.find(MeasuredDraws(1.0, 3, 0, None, "b" * 64)).failure == words


def test_a_p_value_that_is_no_number_fails() -> None:
    expectation = ExpectDrawsToFollowProtocol(significance=1e-9, protocol_digest="d")
    assert expectation.find(MeasuredDraws(float("nan"), 3, 0, None, "d")).failure is not None
    assert expectation.find(MeasuredDraws(1e-9, 3, 0, None, "d")).failure is None


def test_draws_of_two_inputs_exchanged_fail_although_the_release_is_the_same(adult: Evidence) -> None:
    pairs = adult.pair_counts.pairs.copy()
    one, other = np.argsort(pairs.sum(axis=1))[-2:]
    pairs[[one, other]] = pairs[[other, one]]
    found = failures(replace(adult, pair_counts=pairs))
    assert set(found) == {INPUTS, DRAWS}
    gap = int(abs(pairs[one].sum() - pairs[other].sum()))
    labels = adult.protocol.inputs.labels
    assert found[INPUTS].startswith(f"2 of {len(labels) + 1} inputs drew other than as often as they occur: ")
    assert f"input {labels[one]!r} has {gap:,} draws too many" in found[INPUTS]
    assert f"input {labels[other]!r} has {gap:,} draws too few" in found[INPUTS]


def test_draws_exchanged_with_both_margins_kept_fail(adult: Evidence) -> None:
    """Only a test of the outputs by input can see it: every marginal is as it was."""
    pairs, weights = adult.pair_counts.pairs.copy(), adult.protocol.weights
    choices = []
    for one, other in permutations(range(weights.shape[1]), 2):
        shared = np.flatnonzero((weights[:, one] > 0) & (weights[:, other] > 0)).tolist()
        choices += [(min(pairs[one, y], pairs[other, z]), one, other, y, z) for y, z in permutations(shared, 2)]
    count, one, other, y, z = max(choices)
    pairs[one, y] -= count
    pairs[one, z] += count
    pairs[other, y] += count
    pairs[other, z] -= count
    assert (pairs.sum(axis=0) == adult.pair_counts.by_output).all()
    assert (pairs.sum(axis=1) == adult.pair_counts.by_input).all()
    sentences = failures(replace(adult, pair_counts=pairs))
    assert set(sentences) == {DRAWS}
    p_value = draw_consistency(pairs, adult.protocol).p_value
    assert p_value < 1e-9
    assert sentences[DRAWS].startswith(f"p-value {p_value:.3g} is below 2e-09 over ")


def test_an_output_that_the_protocol_forbids_fails(adult: Evidence) -> None:
    y, x = np.argwhere(adult.protocol.weights == 0)[0]
    drawn = int(adult.pair_counts.pairs[x].argmax())
    pairs = adult.pair_counts.pairs.copy()
    pairs[x, drawn] -= 1
    pairs[x, y] += 1
    found = failures(replace(adult, pair_counts=pairs))
    label = adult.protocol.inputs.labels[x]
    assert set(found) == {DRAWS, COUNTS}
    assert found[DRAWS] == (
        f"1 record with an output that the protocol never gives for their input, most of them with input {label!r}"
    )


def test_the_significance_is_declared(adult: Evidence) -> None:
    found = failures(replace(adult, significance=1.1))
    assert set(found) == {DRAWS}
    assert "is below 1.1 over" in found[DRAWS]


def test_a_snapshot_with_other_rows_than_were_drawn_fails() -> None:
    expectation = ExpectDrawnInputsToEqualSnapshot(rows=301)
    assert expectation.find(MeasuredInputs(300, 4, {})).failure == "300 draws for a snapshot of 301"
    assert expectation.find(MeasuredInputs(301, 4, {})).failure is None
    assert expectation.find(MeasuredInputs(302, 4, {})).failure == "302 draws for a snapshot of 301"


def test_the_channel_is_handed_on_and_not_written_down(small: Evidence, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("the evidence was written down or read again")

    for name in ("to_json", "to_dict", "from_json", "from_dict"):
        monkeypatch.setattr(Protocol, name, refuse)
    monkeypatch.setattr(evidence_module, "reread", counted := Counted(evidence_module.reread))
    fresh = replace(small)
    assert failures(fresh) == {}
    assert counted.calls == 1
    channel = Channel.read(fresh.tables["channel"])
    assert (channel.protocol, channel.joint) == (small.protocol, small.joint)
    assert channel.drawn.agrees_with(small.pair_counts)


def test_a_table_that_holds_no_channel_is_not_read(small: Evidence) -> None:
    table = small.tables["channel"]
    for wrong in (table.assign(channel=["a text"]), pd.concat([table, table]), table.iloc[:0]):
        with pytest.raises(TypeError, match="holds no channel"):
            Channel.read(wrong)


def test_a_channel_that_is_lost_on_the_way_fails_all_that_rests_on_it(
    small: Evidence, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = small.tables
    monkeypatch.setitem(vars(small), "tables", tables | {"channel": tables["channel"].assign(channel=[None])})
    found = failures(small)
    assert set(found) == {INPUTS, DRAWS}
    assert set(found.values()) == {"it could not be judged because TypeError was raised"}


def test_records_of_the_snapshot_outside_the_alphabet_are_counted_apart(small: Evidence) -> None:
    assert snapshot_inputs(Channel.read(small.tables["channel"])).tolist() == [120, 60, 60, 60]


def test_histories_of_rows_that_are_taken_over_are_added_up(small: Evidence) -> None:
    """The snapshot at hand does not say which channel an earlier version drew each record from."""
    public = small.protocol
    symbols = tuple((history, *symbol) for history in "01" for symbol in public.inputs.symbols)
    inputs = Alphabet(("history channel", *public.inputs.columns), symbols)
    drawn_with = replace(public, weights=np.tile(public.weights, 2), inputs=inputs)
    pairs = small.pair_counts.pairs
    some = pairs[:-1] // 3
    evidence = replace(
        small,
        pair_counts=np.vstack([some, pairs[:-1] - some, pairs[-1:]]),
        drawn_with=drawn_with,
        drawing=Drawing(None, None, None, None, small.released.with_name("source.parquet"), False, taken_over=True),
    )
    (drawn,) = evidence.tables["order"]["drawn"]
    assert (drawn.pairs == pairs).all()
    # Records outside the alphabet are not those of an input.
    assert drawn.outside == 60


def test_a_protocol_that_reads_the_secret_is_judged_on_secret_and_input(adult: Evidence) -> None:
    protocol = funnel.fit("conditional-reporting", adult.joint, adult.guarantee)
    law = adult.joint.read_by(protocol.inputs.columns).counts.sum(axis=0)
    channel = Channel(protocol, adult.joint, np.zeros((1, 1), dtype=np.int64))
    assert len(protocol.inputs) == len(law)
    assert snapshot_inputs(channel).tolist() == [*law.tolist(), 0]


def test_evidence_that_does_not_fit_is_refused(adult: Evidence, small: Evidence) -> None:
    negative = adult.pair_counts.pairs.copy()
    negative[0, 0] = -1
    table = adult.pair_counts.pairs
    for counts in (table[:-1], negative, table.astype(float)):
        with pytest.raises(SpecError, match="pair counts must be"):
            replace(adult, pair_counts=counts)
    with pytest.raises(SpecError, match="not the published ones"):
        replace(adult, published=("education", "race"))
    with pytest.raises(SpecError, match="not the published ones"):
        replace(small, published=("size", "colour"))


def test_evidence_is_a_copy_that_cannot_be_written(small: Evidence) -> None:
    counts = small.pair_counts.pairs.astype(np.int32)
    evidence = replace(small, pair_counts=counts)
    counts[0, 0] += 1
    assert evidence.pair_counts.agrees_with(small.pair_counts)
    with pytest.raises(ValueError, match="read-only"):
        evidence.pair_counts.records[0] = 1


def test_records_that_hold_no_output_are_told_apart_from_those_that_do(small: Evidence) -> None:
    outputs = small.tables["outputs"]
    assert outputs["output"].tolist() == [0, 1, 2, -1]
    assert outputs["records"].tolist() == [*small.pair_counts.by_output.tolist(), 0]
