"""Expected errors: those of simulated releases, of an identity, and of channels that cannot tell."""

from __future__ import annotations

import numpy as np
import pytest

from funnel.alphabet import Alphabet
from funnel.estimation import share_information
from funnel.estimation.expected_errors import expected_errors
from funnel.frequencies.public_counts import Frequencies
from funnel.guarantees import LIP
from funnel.joint import Joint
from funnel.planning import plan
from funnel.protocol import DENOMINATOR, Protocol
from funnel.release.public.public_distributions import PublicDistributions
from funnel.release.public_accuracy import PublicAccuracy

SYMBOLS = (("a", "1"), ("a", "2"), ("b", "1"), ("b", "2"))
JOINT = Joint(
    np.array([[40, 10, 30, 20], [10, 50, 20, 20]]),
    Alphabet(("s",), (("ill",), ("well",))),
    Alphabet(("x", "n"), SYMBOLS),
)


def protocol(matrix: list[list[float]]) -> Protocol:
    weights = np.rint(np.array(matrix) * 2.0**20).astype(np.uint64) * np.uint64(DENOMINATOR >> 20)
    b = len(matrix)
    outputs = Alphabet(("x", "n"), SYMBOLS[:b])
    return Protocol(weights, weights[:, 0], JOINT.inputs, outputs, "test", "lip:9")


def test_errors_are_those_of_the_inverse_over_many_releases() -> None:
    mixing = 0.5 * np.eye(4) + 0.125
    drawn = protocol(mixing.tolist())
    found = expected_errors(JOINT, drawn)
    assert found is not None
    rng = np.random.default_rng(7)
    inputs = JOINT.counts.sum(axis=0)
    inverse = np.linalg.inv(mixing)
    releases = np.stack([rng.multinomial(int(n), mixing[:, i], size=40_000) for i, n in enumerate(inputs)]).sum(axis=0)
    estimates = releases @ inverse.T / JOINT.n
    cells = {("x",): [[0, 1], [2, 3]], ("n",): [[0, 2], [1, 3]], ("x", "n"): [[0], [1], [2], [3]]}
    assert [table.columns for table in found.tables] == list(cells)
    for table in found.tables:
        for place, members in enumerate(cells[table.columns]):
            estimate = estimates[:, members].sum(axis=1)
            assert table.shares[place] == pytest.approx(inputs[members].sum() / JOINT.n)
            assert table.errors[place] == pytest.approx(estimate.std(), rel=0.02)


def test_what_is_published_as_it_is_has_no_error() -> None:
    found = expected_errors(JOINT, protocol(np.eye(4).tolist()))
    assert found is not None
    assert found.condition == pytest.approx(1.0)
    for table in found.tables:
        assert not table.errors.any()


def test_of_values_that_are_told_together_only_their_sum_is_known() -> None:
    found = expected_errors(JOINT, protocol([[0.75, 0.75, 0.25, 0.25], [0.25, 0.25, 0.75, 0.75]]))
    assert found is not None
    x, n, both = found.tables
    assert x.untold == 0
    assert x.largest is not None
    assert x.largest > 0
    assert (n.untold, n.typical, both.untold) == (2, None, 4)
    assert (x.sums, n.sums, both.sums) == ((), ((0, 1),), ())
    assert n.to_dict()["only_in_sum"] == [["1", "2"]]
    assert n.to_dict()["errors"] == {"1": None, "2": None}
    assert np.isinf(found.condition)
    assert found.to_dict()["condition"] is None


@pytest.mark.parametrize("name", ["grr", "subset-merging", "optimal"])
def test_errors_of_single_values_are_those_of_the_public_report(name: str) -> None:
    for counts in ([[30, 5, 9], [10, 50, 7]], [[900, 50, 0, 1], [100, 40, 30, 1]]):
        joint = Joint.from_counts(counts)
        (row,) = plan(joint, LIP(0.5), [name])
        assert row.protocol is not None
        distributions = PublicDistributions.of(Frequencies(joint, "none"), row.protocol)
        found, public = expected_errors(joint, row.protocol), PublicAccuracy.of(distributions, joint.n)
        assert found is not None
        assert public is not None
        single, there = found.tables[0].errors, public.errors[joint.p_input > 0]
        assert np.isnan(single).tolist() == np.isnan(there).tolist()
        # Those are made of rounded figures, and rounded up to two digits.
        assert single == pytest.approx(there, rel=0.12, nan_ok=True)


def test_of_too_many_values_none_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(share_information, "MOST_WORK", 100.0)
    joint = Joint.from_counts(np.ones((2, 101), dtype=int))
    weights = np.full((1, 101), DENOMINATOR, dtype=np.uint64)
    constant = Protocol(weights, weights[:, 0], joint.inputs, Alphabet.of(None, 1, "Y"), "test", "lip:1")
    assert expected_errors(joint, constant) is None
