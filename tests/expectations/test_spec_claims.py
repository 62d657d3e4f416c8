"""A protocol states the bound of the spec, a level not below its own, and the distribution of its weights."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from funnel.alphabet import Alphabet
from funnel.joint import Joint
from funnel.pipeline.expectations import spec_claims
from funnel.pipeline.expectations.spec_text import SpecText
from funnel.protocol import DENOMINATOR, Protocol
from funnel.recount import protocol_figures as figures
from funnel.recount.plain_distributions import Distributions
from tests.expectations.test_distributions import distributions_of

JOINT = Joint.from_counts(
    [[3000, 1000], [1000, 5000]], Alphabet(("s",), (("a",), ("b",))), Alphabet(("x",), (("u",), ("v",)))
)
SAID = SpecText.of('guarantee = "lip:1.0"')
QUARTER = DENOMINATOR // 4
PRIOR = {"columns": ["x"], "symbols": [["u"], ["v"]], "probabilities": [0.4, 0.6]}


def distributions(*, reads_secret: bool) -> Distributions:
    """A value is kept with probability three quarters; records outside draw from the distribution of the others."""
    inputs = JOINT.read_by(("s", "x")).inputs if reads_secret else JOINT.inputs
    keeps = [symbol[-1] == "u" for symbol in inputs.symbols]
    first = [3 * QUARTER if kept else QUARTER for kept in keeps]
    # 0.4 of them by three quarters, and 0.6 by one.
    outside = DENOMINATOR * 9 // 20
    weights = np.array([first, [DENOMINATOR - weight for weight in first]], dtype=np.uint64)
    marginal = np.array([outside, DENOMINATOR - outside], dtype=np.uint64)
    return distributions_of(JOINT, Protocol(weights, marginal, inputs, JOINT.inputs))


@pytest.mark.parametrize(
    ("stated", "failure"),
    [
        ("lip:1.0", None),
        ("lip:1", None),
        ("lip:0.5", "is 'lip:0.5', which is not the bound of the spec"),
        ("ldp:1.0", "is 'ldp:1.0', which is not the bound of the spec"),
        ("none at all", "is no guarantee"),
        (1.0, "is no guarantee"),
    ],
)
def test_the_stated_bound_is_the_one_of_the_spec(stated: Any, failure: str | None) -> None:
    assert spec_claims.guarantee_claim("guarantee", stated, SAID).failure == failure


@pytest.mark.parametrize("reads_secret", [False, True])
def test_records_outside_the_alphabet_draw_from_the_distribution_of_the_others(reads_secret: bool) -> None:
    held = distributions(reads_secret=reads_secret)
    assert held.reads_secret is reads_secret
    assert figures._is_marginal(held, PRIOR, 0.001)
    moved = DENOMINATOR // 1000
    other = replace(held.released, marginal=(held.released.marginal[0] - moved, held.released.marginal[1] + moved))
    assert not figures._is_marginal(Distributions(held.recount, other), PRIOR, 0.001)


def test_posteriors_that_follow_from_the_prior_are_not_told() -> None:
    held = distributions(reads_secret=False)
    assert list(figures._posteriors({"prior": PRIOR, "posterior": None}, held, 0.001)) == []
    ((part, _, _),) = figures._posteriors({"prior": PRIOR, "posterior": []}, held, 0.001)
    assert part == "posteriors"


def test_posteriors_follow_from_weights_and_shares_of_what_is_read() -> None:
    held = distributions(reads_secret=True)

    def found(**changes: Any) -> dict[str, str]:
        # 0.3 of 0.45 and 0.1 of 0.55, and the rest of each.
        first = {"output": ["u"], "probability": 0.45, "inputs": {"0": 0.6667, "1": 0.3333}, **changes}
        second = {"output": ["v"], "probability": 0.55, "inputs": {"0": 0.1818, "1": 0.8182}}
        complaints = figures._posteriors({"prior": PRIOR, "posterior": [first, second]}, held, 0.001)
        return {part: f"{where} {why}" for part, where, why in complaints}

    assert found() == {}
    assert found(inputs={"0": 0.6667, "1": 0.3333, "2": 0.1}) == {
        "posteriors": "'u' may come from a value that does not occur"
    }
    assert set(found(inputs={"0": 0.6669, "1": 0.3333})) == {"posteriors"}
    assert set(found(inputs={"0": 0.6667})) == {"posteriors"}
    assert set(found(probability=0.4502)) == {"probabilities of outputs"}
    assert set(found(probability="0.45")) == {"probabilities of outputs"}


@pytest.mark.parametrize(
    ("share", "noise", "told"),
    [
        (0.0, 1e-9, 0.0),
        (0.0001, 0.0, 0.005),
        (0.0124, 1e-9, 0.01),
        (0.0126, -1e-9, 0.015),
        # A tie may have gone either way.
        (0.0125, -1e-9, 0.01),
        (0.0125, 1e-9, 0.015),
    ],
)
def test_shares_are_told_as_multiples_of_a_step_and_none_that_occurs_as_nothing(
    share: float, noise: float, told: float
) -> None:
    assert math.isclose(figures._rounded(share, 0.005, noise), told)
