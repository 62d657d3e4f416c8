"""The measures against dit, a library of information theory; it counts in bits."""

from __future__ import annotations

import math

import dit
import numpy as np
import pytest
from dit.divergences import f_divergence, renyi_divergence
from dit.divergences.pmf import variational_distance
from dit.other import maximal_leakage, sibson_mutual_information_pmf
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from funnel import Joint, Protocol, measures
from funnel.joint import FloatArray
from tests.funnel.measures.channels import channels, full_law

BIT = math.log(2)
# Away from 1, where dit divides the rounding of a sum by α − 1.
orders_of_dit = st.floats(0.1, 30).filter(lambda alpha: abs(alpha - 1) > 0.01)


def distribution(law: FloatArray) -> dit.Distribution:
    return dit.Distribution.from_ndarray(law / law.sum())


def secret_law(joint: Joint, protocol: Protocol) -> FloatArray:
    law = full_law(joint, protocol).sum(axis=1)
    return np.asarray(law[law.sum(axis=1) > 0][:, law.sum(axis=0) > 0])


@settings(max_examples=40)
@given(channels())
def test_information(channel: tuple[Joint, Protocol]) -> None:
    joint, protocol = channel
    whole = distribution(full_law(joint, protocol))
    S, X, Y = [0], [1], [2]
    for counts, columns in (("inputs", X), ("secret", S), ("secret and inputs", S + X)):
        information = BIT * dit.shannon.mutual_information(whole, columns, Y)
        assert measures.mutual_information(joint, protocol, counts) == pytest.approx(information, abs=1e-8)  # type: ignore[arg-type]


@settings(max_examples=60)
@given(channels(), orders_of_dit)
def test_orders(channel: tuple[Joint, Protocol], alpha: float) -> None:
    """Arimoto information is dit's Sibson information of the tilted prior."""
    law = secret_law(*channel)
    prior = law.sum(axis=1, keepdims=True)
    sibson = BIT * sibson_mutual_information_pmf(law / law.sum(), alpha)
    assert measures.sibson_information(*channel, alpha) == pytest.approx(sibson, abs=1e-8)
    tilted = (prior / prior.max()) ** alpha
    tilted /= tilted.sum()
    # Below that, the law of the tilted prior loses its rarest secrets to dit's rounding.
    assume(tilted.min() > 1e-200)
    arimoto = BIT * sibson_mutual_information_pmf(tilted * law / prior, alpha)
    assert measures.arimoto_information(*channel, alpha) == pytest.approx(arimoto, abs=1e-8)


@settings(max_examples=40)
@given(channels())
def test_maximal_leakage(channel: tuple[Joint, Protocol]) -> None:
    leakage = BIT * maximal_leakage(distribution(secret_law(*channel)), [0], [1])
    assert measures.maximal_leakage(*channel) == pytest.approx(leakage, abs=1e-8)


@settings(max_examples=40)
@given(channels(), orders_of_dit)
def test_divergences_and_lifts(channel: tuple[Joint, Protocol], alpha: float) -> None:
    """T and χ² are f-divergences from the product law; the α-lift is a Rényi divergence per output."""
    joint, protocol = channel
    law = secret_law(joint, protocol)
    prior, marginal = law.sum(axis=1), law.sum(axis=0)
    # dit drops cells of probability zero from its f-divergences.
    assume((law > 0).all())
    from_product = distribution(law), distribution(np.outer(prior, marginal))
    total = f_divergence(*from_product, lambda t: abs(t - 1) / 2)
    assert measures.total_variation(joint, protocol) == pytest.approx(total, abs=1e-8)
    squared = f_divergence(*from_product, lambda t: (t - 1) ** 2)
    assert measures.chi_squared_divergence(joint, protocol) == pytest.approx(squared, abs=1e-8)
    outputs = np.flatnonzero(~np.isnan(measures.max_lift(joint, protocol)))
    for y, column in zip(outputs, law.T, strict=True):
        distance = variational_distance(column / column.sum(), prior)
        assert measures.l1_lift(joint, protocol)[y] / 2 == pytest.approx(distance, abs=1e-9)
        divergence = BIT * renyi_divergence(distribution(column), distribution(prior), alpha)
        lift = measures.alpha_lift(joint, protocol, alpha)[y]
        assert alpha / (alpha - 1) * math.log(lift) == pytest.approx(divergence, abs=1e-7)
