"""Distributions computed once more from recounted records are those of the code that makes releases."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from funnel import measures
from funnel.alphabet import Alphabet
from funnel.errors import DataError
from funnel.guarantees import LDP
from funnel.joint import Joint
from funnel.pipeline.expectations.claims import near, same
from funnel.protocol import Protocol
from funnel.recount.plain_distributions import (
    Distributions,
    is_level_of_ratio,
    least_level,
    prior_distribution,
    share_step,
    step_above,
)
from funnel.recount.released import ReleasedProtocol
from funnel.recount.source import Recount
from funnel.release.public import rounding as public
from funnel.release.public.findings import _rounded_ratio
from funnel.release.public.rounding import distribution_of_rare
from tests.strategies import joints


def recounted(joint: Joint) -> Recount:
    counts = {
        (s, x): int(count)
        for s, row in zip(joint.secret.symbols, joint.counts.tolist(), strict=True)
        for x, count in zip(joint.inputs.symbols, row, strict=True)
        if count
    }
    return Recount(
        secret_columns=joint.secret.columns,
        published_columns=joint.inputs.columns,
        secret=tuple(sorted({s for s, _ in counts})),
        inputs=tuple(sorted({x for _, x in counts})),
        counts=counts,
        rows=joint.n,
        dropped=0,
        sha256="0" * 64,
    )


def distributions_of(joint: Joint, protocol: Protocol) -> Distributions:
    return Distributions(recounted(joint), ReleasedProtocol.parse(protocol.to_json()))


@st.composite
def channels(draw: st.DrawFn, joint: Joint) -> Protocol:
    """Any protocol that reads the inputs, whose outputs are two or three."""
    b, a = draw(st.integers(2, 3)), len(joint.inputs)
    columns = []
    for _ in range(a + 1):
        parts = draw(st.lists(st.integers(0, 5), min_size=b, max_size=b).filter(any))
        weights = [part * (2**63 // sum(parts)) for part in parts]
        weights[parts.index(max(parts))] += 2**63 - sum(weights)
        columns.append(weights)
    table = np.array(columns, dtype=np.uint64).T
    outputs = Alphabet(joint.inputs.columns, tuple((f"y{y}",) * len(joint.inputs.columns) for y in range(b)))
    return Protocol(table[:, :a], table[:, a], joint.inputs, outputs)


@given(st.integers(1, 10**9))
def test_steps_are_the_documented_ones(n: int) -> None:
    assert share_step(n) == public.share_step(n)


@given(st.floats(1e-12, 1e12))
def test_a_step_is_the_least_above(least: float) -> None:
    step = step_above(least)
    assert step >= least * (1 - 1e-9)
    assert step < 2.5 * least * (1 + 1e-9)
    assert round(step / 10 ** math.floor(math.log10(step * (1 + 1e-9)))) in (1, 2, 5)


@given(st.lists(st.integers(2, 90), max_size=3), st.integers(0, 150), st.integers(0, 2))
@example([60], 150, 1)
def test_the_distribution_of_public_shares_is_what_common_ones_leave_to_the_rare(
    common: list[int], rare: int, never: int
) -> None:
    told = np.array([*common, *[1] * rare, *[0] * never, 1]) * 0.005
    shares = {(str(x),): float(share) for x, share in enumerate(told)}
    distribution = distribution_of_rare(told, 0.005)
    assert list(prior_distribution(shares, 0.005, wide=True).values()) == pytest.approx(
        list(distribution / distribution.sum()), abs=1e-12
    )
    assert list(prior_distribution(shares, 0.005, wide=False).values()) == pytest.approx(
        list(told / told.sum()), abs=1e-12
    )


@pytest.mark.parametrize(
    ("stated", "exact", "fine"),
    [
        (0.35, 0.3512, True),
        (0.351, 0.3512, False),
        (0.36, 0.3512, False),
        (0.01, 0.0003, True),
        (0.0, 0.0003, True),
        (0.01, 0.0, False),
        (0.0, 0.0, True),
        (math.nan, 0.35, False),
        (math.inf, 0.35, False),
        (True, 1.0, False),
        ("0.35", 0.35, False),
        (None, 0.0, False),
    ],
)
def test_a_figure_is_a_multiple_of_its_step_next_to_the_exact_one(stated: Any, exact: float, fine: bool) -> None:
    assert (near("a figure", stated, exact, 0.01).failure is None) is fine


def test_what_is_the_same_is_of_the_same_kind() -> None:
    assert same("a", 1, 1).failure is None
    assert same("a", True, 1).failure == "is True instead of 1"


@given(st.data(), joints(max_secrets=3, max_inputs=4))
def test_distributions_are_those_of_the_library(data: st.DataObject, joint: Joint) -> None:
    protocol = data.draw(channels(joint))
    distributions = distributions_of(joint, protocol)
    assert distributions.outside == 0
    assert math.isclose(distributions.information.utility, measures.mutual_information(joint, protocol), abs_tol=1e-9)
    assert math.isclose(distributions.information.entropy, joint.entropy, abs_tol=1e-9)
    assert math.isclose(distributions.share, measures.normalised_mutual_information(joint, protocol), abs_tol=1e-6)
    assert math.isclose(distributions.guess, measures.guess_accuracy(joint, protocol), abs_tol=1e-9)
    assert math.isclose(distributions.prior_guess, float(joint.p_input.max()), abs_tol=1e-9)
    lifts = measures.lift(joint, protocol)
    for s, symbol in enumerate(joint.secret.symbols):
        for y in range(len(protocol.outputs)):
            if symbol in distributions.secrets:
                found = distributions.lift(symbol, y)
                assert math.isnan(lifts[s, y]) if found is None else math.isclose(found, lifts[s, y], rel_tol=1e-9)


def test_a_protocol_of_other_columns_has_no_distribution() -> None:
    joint = Joint.from_counts([[3, 1], [1, 3]])
    half = np.full((2, 2), 2**62, dtype=np.uint64)
    other = Alphabet(("another",), joint.inputs.symbols)
    with pytest.raises(DataError, match="not those of the spec"):
        assert distributions_of(joint, Protocol(half, half[:, 0], other, other)).information


@given(st.sampled_from([0.1, 0.25, 0.7, 1.0, 2.0, 3.0]), st.floats(0.01, 6), st.floats(0, 3))
def test_a_level_is_that_of_the_largest_ratio_or_above_that_of_one(budget: float, level: float, more: float) -> None:
    """As they are told: rounded up to the grid of levels, and to digits."""
    told = public.public_level(level, LDP(budget), True)
    ratio = _rounded_ratio(math.exp(level), public.level_step(budget))
    assert is_level_of_ratio(told, ratio, budget, None)
    least = least_level(ratio, budget, None)
    assert least <= told + 1e-9 <= public.public_level(level + more, LDP(budget), True) + 2e-9
    # Two digits of the ratio, and of the level, are less than a tenth each.
    assert least == budget or told - least < public.level_step(budget) + 0.2
