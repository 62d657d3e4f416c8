"""Figures of what stays unchanged, computed once more: the same as those that are published are made of."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from funnel.alphabet import Alphabet
from funnel.audit.unchanged import UnchangedShares
from funnel.joint import Joint
from funnel.measures.unchanged_shares import unchanged
from funnel.protocol import Protocol
from funnel.recount.source import Recount
from funnel.recount.unchanged import PlainUnchanged
from funnel.release.public_unchanged import _concluded, _most_spread
from tests.invariant import IntTable, counts_of, flows, protocol_of_flow

SECRET = Alphabet(("s",), (("a",), ("b",)))


def columns(a: int) -> Alphabet:
    return Alphabet(("x", "z"), tuple((str(i // 2), str(i % 2)) for i in range(a)))


def recount_of(joint: Joint) -> Recount:
    counts = {
        (s, x): int(joint.counts[i, j])
        for i, s in enumerate(joint.secret.symbols)
        for j, x in enumerate(joint.inputs.symbols)
    }
    return Recount(
        joint.secret.columns, joint.inputs.columns, joint.secret.symbols, joint.inputs.symbols, counts, joint.n, 0, ""
    )


def shares_of(protocol: Protocol, joint: Joint) -> UnchangedShares:
    return UnchangedShares.counted(PlainUnchanged(protocol.to_dict(), recount_of(joint)))


def mean(shares: UnchangedShares, values: np.ndarray) -> float:
    """That of all records, which counts leave no room for."""
    found = shares.mean(values)
    assert found.high - found.low < 1e-11
    return (found.low + found.high) / 2


def by_secret(shares: UnchangedShares, values: np.ndarray) -> list[float]:
    """The same of the records with each secret."""
    assert shares.secrets is not None
    found = [shares.mean_of(some, values) for some in shares.secrets.values()]
    assert all(one.high - one.low < 1e-11 for one in found)
    return [one.low for one in found]


@st.composite
def scenes(draw: st.DrawFn) -> tuple[Joint, Protocol]:
    flow: IntTable = draw(flows())
    totals = counts_of(flow)
    first = np.array([draw(st.integers(0, int(total))) for total in totals])
    inputs = columns(len(flow))
    return Joint(np.stack([first, totals - first]), SECRET, inputs), protocol_of_flow(flow, inputs)


@given(scenes())
def test_shares_are_those_of_the_measure(scene: tuple[Joint, Protocol]) -> None:
    joint, protocol = scene
    found, measured = shares_of(protocol, joint), unchanged(joint, protocol)
    assert mean(found, found.stays) == pytest.approx(measured.share)
    by_column = [mean(found, found.keeps(slice(j, j + 1))) for j in range(2)]
    assert by_column == pytest.approx(measured.by_column.tolist())
    assert by_secret(found, found.stays) == pytest.approx(np.nan_to_num(measured.by_secret).tolist())
    assert mean(found, found.exact) == pytest.approx(measured.exact_share)


@given(scenes(), st.sampled_from([(), (0,), (1,), (0, 1)]), st.floats(0.01, 1.0))
def test_observers_conclude_the_same(scene: tuple[Joint, Protocol], some: tuple[int, ...], budget: float) -> None:
    joint, protocol = scene
    weights = protocol.matrix
    level, outside = _concluded(joint, weights, list(some), budget)
    found = PlainUnchanged(protocol.to_dict(), recount_of(joint))._observed(some, budget)
    assert found[0] == pytest.approx(level, abs=1e-9)
    if not math.isclose(found[0], budget, rel_tol=1e-6):
        assert found[1] == pytest.approx(outside, abs=1e-9)


def test_the_secret_among_the_published_columns() -> None:
    joint = Joint.from_counts([[30, 10], [20, 40]], SECRET, Alphabet(("x",), (("u",), ("v",)))).with_secret()
    half = np.eye(4) / 2 + np.outer(joint.p_input, np.ones(4)) / 2
    weights = (half * 2.0**63).astype(np.uint64)
    weights[0] += np.uint64(2**63) - weights.sum(axis=0)
    protocol = Protocol(weights, weights[:, 0], joint.inputs, joint.inputs, "invariant")
    found = PlainUnchanged(protocol.to_dict(), recount_of(joint))
    assert found.publishes_secret
    assert found.others == (1,)
    # Half of those who do not stay draw the same secret by chance.
    shares = shares_of(protocol, joint)
    assert by_secret(shares, shares.keeps(slice(1))) == pytest.approx([0.5 + 0.5 * 0.4, 0.5 + 0.5 * 0.6])
    assert mean(shares, shares.stays) == pytest.approx(0.5 + 0.5 * float((joint.p_input**2).sum()))
    assert [size for size, _, _ in found.observers(1.0)] == [0, 1]


@given(st.integers(0, 2**32))
def test_no_count_of_any_values_varies_by_more(seed: int) -> None:
    """Of any set of values, whatever the channel is; and of some set of two values as much, if more records stay."""
    random = np.random.default_rng(seed)
    a = int(random.integers(2, 6))
    p, mix = random.dirichlet(np.ones(a)), random.random()
    channel = mix * np.eye(a) + (1 - mix) * random.dirichlet(np.ones(a), a).T
    most = float(_most_spread(np.diag(channel)) @ p)
    spread = []
    for chosen in itertools.product((0.0, 1.0), repeat=a):
        counted = np.array(chosen) @ channel
        spread.append(float((counted * (1 - counted)) @ p))
    assert max(spread) <= most * (1 + 1e-12)
    if a == 2 and np.diag(channel).min() >= 0.5:
        assert max(spread) == pytest.approx(most, rel=1e-9)
