"""Accuracy of frequencies: standard errors against draws of the protocol, and what records cannot tell."""

from __future__ import annotations

import math

import numpy as np
import pytest

from funnel import LIP, Joint, Protocol, estimate, fit
from funnel.alphabet import Alphabet
from funnel.estimation import share_information
from funnel.estimation.departed_shares import DepartedShares
from funnel.frequencies.averages import NoisyAverages
from funnel.frequencies.noise import discrete_laplace_variance
from funnel.history.corrected import PARTS
from funnel.protocol import DENOMINATOR
from funnel.release.public.public_distributions import PublicDistributions
from funnel.release.public_accuracy import PublicAccuracy
from funnel.rounding import integer_weights, marginal_weights
from funnel.sparse_weights import SparseWeights
from tests.public import counted

JOINT = Joint.from_counts([[30_000, 10_000, 6_000], [10_000, 50_000, 4_000]])


def _protocol(matrix: list[list[float]]) -> Protocol:
    weights = integer_weights(np.array(matrix))
    return Protocol(weights, marginal_weights(JOINT, weights), JOINT.inputs, JOINT.inputs, "optimal", "lip:1.0")


def _errors(protocol: Protocol, joint: Joint = JOINT) -> np.ndarray:
    found = PublicAccuracy.of(PublicDistributions.of(counted(joint), protocol), joint.n)
    return found.errors


def test_errors_are_those_of_estimates_from_many_draws() -> None:
    protocol = fit("grr", JOINT, LIP(0.3))
    generator = np.random.default_rng(1)
    totals = JOINT.counts.sum(axis=0)
    drawn = sum(
        generator.multinomial(total, protocol.matrix[:, x] / protocol.matrix[:, x].sum(), size=4000)
        for x, total in enumerate(totals)
    )
    estimates = np.linalg.solve(protocol.matrix, drawn.T / JOINT.n)
    np.testing.assert_allclose(_errors(protocol), estimates.std(axis=1), rtol=0.08)


@pytest.mark.parametrize("name", ["grr", "optimal"])
def test_errors_are_those_of_estimates_that_departures_are_taken_off_of(name: str) -> None:
    """Of twice as many records as there are people, as of people with several rows."""
    protocol, records = fit(name, JOINT, LIP(0.5)), 2 * JOINT.n
    told = NoisyAverages(0.25, np.zeros(len(protocol.outputs), dtype=np.int64), 40 * PARTS)
    departed = DepartedShares.of_counts(
        told.counts.astype(float), discrete_laplace_variance(told.scale), records * PARTS
    )
    answers = np.rint(records * protocol.matrix / protocol.matrix.sum(axis=0) @ JOINT.p_input).astype(np.int64)
    found = PublicAccuracy.of(PublicDistributions.of(counted(JOINT), protocol), records, departures=told)
    estimated = estimate(answers, protocol, departed=departed)
    np.testing.assert_allclose(found.errors, estimated.errors, rtol=0.1)
    assert (found.errors > 1.2 * _errors(protocol) / np.sqrt(2)).all()


def test_what_is_published_as_it_is_has_no_error() -> None:
    np.testing.assert_array_equal(_errors(_protocol(np.eye(3).tolist())), 0)


def test_values_that_share_their_outputs_cannot_be_told_and_the_others_can() -> None:
    errors = _errors(_protocol([[0.5, 0.5, 0.0], [0.5, 0.5, 0.0], [0.0, 0.0, 1.0]]))
    assert np.isnan(errors[:2]).all()
    assert errors[2] == 0


def test_errors_are_rounded_up_to_two_digits_and_follow_from_published_shares() -> None:
    protocol = fit("grr", JOINT, LIP(0.3))
    one_person_other = JOINT.counts.copy()
    one_person_other[0, 0] -= 1
    one_person_other[1, 1] += 1
    errors = _errors(protocol)
    np.testing.assert_array_equal(errors, _errors(protocol, Joint.from_counts(one_person_other)))
    for error in errors:
        assert float(f"{error:.1e}") == error


def test_a_value_that_never_occurs_has_no_error_to_tell() -> None:
    joint = Joint.from_counts([[300, 0], [100, 0]])
    weights = np.full((2, 2), DENOMINATOR // 2, dtype=np.uint64)
    protocol = Protocol(weights, weights[:, 0], joint.inputs, joint.inputs)
    assert math.isnan(_errors(protocol, joint)[1])


@pytest.mark.parametrize(("most", "told"), [(200.0, True), (199.0, False)])
def test_too_many_values_are_not_computed(most: float, told: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(share_information, "MOST_WORK", most)
    joint = Joint.from_counts(np.full((1, 200), 9))
    weights = np.full((1, 200), DENOMINATOR, dtype=np.uint64)
    protocol = Protocol(weights, weights[:, 0], joint.inputs, joint.inputs.of(["all"], 1, "Y"))
    assert (PublicAccuracy.of(PublicDistributions.of(counted(joint), protocol), joint.n) is not None) == told


def test_tables_are_of_columns_and_of_pairs_of_them() -> None:
    inputs = Alphabet(("x", "n"), tuple((x, n) for x in "ab" for n in "123"))
    joint = Joint(np.array([[300, 200, 100, 50, 400, 90], [100, 300, 100, 90, 10, 60]]), JOINT.secret, inputs)
    found = PublicAccuracy.of(PublicDistributions.of(counted(joint), fit("grr", joint, LIP(0.5))), joint.n)
    assert [table.columns for table in found.tables] == [("x",), ("n",), ("x", "n")]
    assert (found.tables[2].errors <= found.errors).all()
    np.testing.assert_allclose(found.tables[2].errors, found.errors, rtol=0.1)
    # Drawing adds the more to a margin, the more of what it is a sum of.
    assert (found.tables[0].errors > found.errors.min()).all()


def test_wide_tables_have_no_errors_to_tell() -> None:
    table = fit("grr", JOINT, LIP(0.3))
    entries = Protocol.of_sparse(SparseWeights.of(table.weights), table.marginal, table.inputs, table.outputs)
    assert PublicAccuracy.of(PublicDistributions.of(counted(JOINT), table), JOINT.n) is not None
    assert PublicAccuracy.of(PublicDistributions.of(counted(JOINT), entries), JOINT.n) is None
