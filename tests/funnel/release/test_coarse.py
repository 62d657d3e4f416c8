"""Protocols on a coarse grid: the same promise, in fewer digits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from funnel import LIP, Alphabet, Joint, MutualInformation, Protocol, fit, measures
from funnel.guarantees import parse_guarantee
from funnel.naming import name_outputs
from funnel.protocol import DENOMINATOR, WORD_BITS
from funnel.release.coarse import LARGEST_COST, _mixed, coarsened, on_grid

GENERATOR = np.random.default_rng(13)
JOINT = Joint.from_counts(GENERATOR.integers(20, 400, size=(4, 6)))


def bits(protocol: Protocol) -> int:
    """How many bits its weights and its marginal really have."""
    weights = [int(value) for value in (*protocol.weights.ravel(), *protocol.marginal) if value]
    return WORD_BITS - min((value & -value).bit_length() - 1 for value in weights)


@pytest.mark.parametrize("text", ["lip:0.2", "ldp:0.3", "alip:0.3,0.2"])
def test_the_bound_still_holds_and_next_to_nothing_is_lost(text: str) -> None:
    guarantee = parse_guarantee(text)
    protocol = fit("optimal", JOINT, guarantee)
    coarse = coarsened(JOINT, guarantee, protocol)
    assert bits(protocol) > 40
    assert bits(coarse) <= 24
    assert guarantee.holds(JOINT, coarse)
    kept = measures.mutual_information(JOINT, coarse) / measures.mutual_information(JOINT, protocol)
    assert kept >= 1 - LARGEST_COST


def test_the_marginal_follows_from_what_is_public() -> None:
    guarantee = parse_guarantee("lip:0.2")
    protocol = fit("optimal", JOINT, guarantee)
    counts = JOINT.counts.copy()
    counts[0, 0], counts[0, 1] = counts[0, 0] - 1, counts[0, 1] + 1
    other = Joint.from_counts(counts)
    one, two = (coarsened(joint, guarantee, protocol) for joint in (JOINT, other))
    assert (one.marginal == two.marginal).all()


def test_perfect_privacy_is_left_as_it_is() -> None:
    joint = Joint.from_counts([[3, 5, 7], [2, 9, 4]])
    perfect = parse_guarantee("perfect")
    protocol = fit("optimal", joint, perfect)
    assert coarsened(joint, perfect, protocol) is protocol


def test_columns_on_a_grid_sum_to_one() -> None:
    matrix = GENERATOR.dirichlet(np.ones(7), size=5).T
    weights = on_grid(matrix, 10)
    assert [sum(map(int, column)) for column in weights.T] == [DENOMINATOR] * 5
    assert np.abs(weights / DENOMINATOR - matrix).max() <= 2.0**-10


@pytest.mark.parametrize("grid", [14, 16, 20, 28])
def test_what_is_mixed_in_is_sixteen_steps_of_the_rarest_output(grid: int) -> None:
    read = Joint.from_counts([[30, 20, 50], [100, 40, 70]])
    matrix = np.array([[0.9, 0.2, 0.0], [0.1, 0.5, 0.25], [0.0, 0.3, 0.75]])
    marginal = matrix @ read.p_input
    share = 16 / 2**grid / float(marginal.min())
    mixed = _mixed(read, matrix, grid)
    if share > LARGEST_COST:
        assert mixed is None
        return
    assert (mixed[matrix == 0] == 0).all()
    # No name is changed by it: what is impossible stays so. The middle column has no zero.
    steps = mixed[:, 1] / 2.0 ** (WORD_BITS - grid)
    expected = 2.0**grid * ((1 - share) * matrix[:, 1] + share * marginal)
    assert np.abs(steps - expected).max() < 1.0
    assert np.abs(2.0**grid * matrix[:, 1] - expected).max() > 1.0


def test_grids_too_coarse_to_mix_are_known_by_the_rarest_output() -> None:
    read = Joint.from_counts([[30, 20, 50], [100, 40, 70]])
    assert [_mixed(read, np.eye(3), grid) is None for grid in (14, 16, 18)] == [True, True, False]


def test_what_no_grid_meets_or_another_distribution_is_read_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    joint = Joint.from_counts([[300, 100, 20], [100, 500, 80]])
    guarantee = LIP(1.0)
    protocol = fit("grr", joint, guarantee)
    other = replace(protocol, inputs=Alphabet(protocol.inputs.columns, (("p",), ("q",), ("r",))))
    assert coarsened(joint, guarantee, other) is other
    # Where the programme is too large, and under an average, weights are mixed and rounded.
    for bound in (guarantee, MutualInformation(0.05)):
        fitted = fit("grr", joint, bound)
        with monkeypatch.context() as patch:
            patch.setattr("funnel.release.coarse._LARGEST", 0)
            assert bound.holds(joint, coarsened(joint, bound, fitted))
    monkeypatch.setattr("funnel.release.coarse.BITS", ())
    assert coarsened(joint, guarantee, protocol) is protocol


def test_outputs_are_named_by_the_weights_on_the_grid() -> None:
    joint = Joint.from_counts(np.random.default_rng(3).integers(1, 40, size=(3, 6)))
    renamed = 0
    for epsilon in (0.3, 0.5, 0.7, 1.0):
        protocol = fit("optimal", joint, LIP(epsilon))
        coarse = coarsened(joint, LIP(epsilon), protocol)
        assert coarse.outputs == name_outputs(coarse.weights, coarse.inputs, coarse.outputs.columns)
        renamed += coarse.weights.tolist() != protocol.weights.tolist()
        other = replace(protocol, outputs=Alphabet.of(None, len(protocol.outputs), joint.inputs.columns[0]))
        assert coarsened(joint, LIP(epsilon), other).outputs == other.outputs
    assert renamed
