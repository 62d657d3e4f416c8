"""Rare values: what records tell once it is known that some values hardly occur, and how far that can be off."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from funnel import Alphabet, Protocol, estimate
from funnel.errors import SpecError
from funnel.estimation.rare import RareValues
from funnel.protocol import DENOMINATOR

# The third value is published like a record of which nothing is known: a mixture of the others.
_COLUMNS = np.array([[0.8, 0.3, 0.55], [0.2, 0.7, 0.45]])


def _protocol(columns: np.ndarray, inputs: list[str]) -> Protocol:
    weights = np.floor(columns * 2.0**40).astype(object) * 2**23
    weights[0] += DENOMINATOR - weights.sum(axis=0)
    rows = np.array(weights.tolist(), dtype=np.uint64)
    outputs = Alphabet(("x",), tuple((f"y{k}",) for k in range(len(columns))))
    return Protocol(rows, rows[:, 0], Alphabet(("x",), tuple((one,) for one in inputs)), outputs, "given", "lip:1.0")


def test_a_value_that_hardly_occurs_leaves_nothing_told_until_it_is_known_to_be_rare() -> None:
    protocol, counts = _protocol(_COLUMNS, ["u", "v", "w"]), np.array([52_000, 48_000])
    alone = estimate(counts, protocol)
    known = estimate(counts, protocol, at_most={("w",): 0.01})
    assert np.isnan(alone.frequencies).all()
    assert (alone.upper - alone.lower).min() > 0.3
    assert np.isnan(known.frequencies).tolist() == [False, False, True]
    assert known.upper[2] == pytest.approx(0.01)
    assert known.lower[2] == 0
    # 0.8 u + 0.3 v + 0.55 w = 0.52, for every w from 0 to 0.01.
    for share in (0.0, 0.005, 0.01):
        first = (0.52 - 0.55 * share - 0.3 * (1 - share)) / 0.5
        assert known.lower[0] <= first <= known.upper[0]
    assert "a value with at most 1.00% of the records in all cannot be told" in known.about
    assert known.to_dict()["rare"] == [{"values": ["w"], "at_most": 0.01}]


def test_nothing_known_changes_nothing() -> None:
    protocol, counts = _protocol(_COLUMNS[:, :2], ["u", "v"]), np.array([5_200, 4_800])
    first, second = estimate(counts, protocol), estimate(counts, protocol, at_most={})
    assert (first.lower, first.upper, first.rare) == (
        pytest.approx(second.lower, abs=0),
        pytest.approx(second.upper, abs=0),
        (),
    )


@given(st.integers(0, 2**32 - 1), st.integers(2, 5), st.integers(1, 2))
def test_no_shares_of_rare_values_move_an_estimate_further_than_told(seed: int, others: int, k: int) -> None:
    random = np.random.default_rng(seed)
    columns = 0.6 * np.eye(others) + 0.4 * random.dirichlet(np.ones(others), size=others).T
    columns = np.hstack([columns, columns @ random.dirichlet(np.ones(others), size=k).T])
    inputs = [f"v{x}" for x in range(others + k)]
    most = random.uniform(0, 0.1, size=k)
    protocol = _protocol(columns, inputs)
    known = {(inputs[others + x],): float(most[x]) for x in range(k)}
    rare = RareValues.of(protocol, known)
    weights = np.linalg.pinv(rare.seen)
    counted = np.zeros((others, k))
    off = rare.off(weights, counted)
    # Outputs are what they are expected to be, so that nothing else moves the estimate.
    for _ in range(20):
        few = random.uniform(0, most)
        truth = random.dirichlet(np.ones(others)) * (1 - few.sum())
        outputs = columns @ np.concatenate([truth, few])
        assert (np.abs(rare.left * weights @ outputs - truth) <= off + 1e-12).all()
    corners = [np.where(np.arange(k) == x, most, 0) for x in range(k)]
    reached = max(
        float(np.abs(rare.left * weights @ (columns @ np.concatenate([truth, few])) - truth).max())
        for few in (*corners, most, np.zeros(k))
        for truth in [np.full(others, (1 - few.sum()) / others)]
    )
    assert reached >= off.max() / (2 * k) - 1e-12


def test_intervals_hold_the_truth_where_a_rare_value_is_as_common_as_it_can_be() -> None:
    random, protocol, n = np.random.default_rng(5), _protocol(_COLUMNS, ["u", "v", "w"]), 4_000
    held = 0
    for _ in range(200):
        counts = sum(random.multinomial(people, _COLUMNS[:, x]) for x, people in enumerate((1_960, 1_960, 80)))
        found = estimate(np.asarray(counts), protocol, at_most={("w",): 80 / n})
        held += int(found.lower[0] <= 0.49 <= found.upper[0])
    assert held >= 186


def test_cells_count_the_rare_values_that_are_in_them() -> None:
    columns = np.array([[0.8, 0.3, 0.55, 0.55], [0.2, 0.7, 0.45, 0.45]])
    weights = _protocol(columns, ["u", "v", "w", "z"]).weights
    inputs = Alphabet(("x", "g"), (("u", "1"), ("v", "2"), ("w", "2"), ("z", "3")))
    outputs = Alphabet(("x", "g"), (("y0", "y"), ("y1", "y")))
    protocol = Protocol(weights, weights[:, 0], inputs, outputs, "given", "lip:1.0")
    known = {("w", "2"): 0.02, ("z", "3"): 0.01}
    found = estimate(np.array([52_000, 48_000]), protocol, by="g", at_most=known, bootstrap=100, seed=1)
    assert found.cells == (("1",), ("2",), ("3",))
    assert np.isnan(found.frequencies).tolist() == [False, False, True]
    assert found.frequencies[:2].sum() == pytest.approx(1 - 0.01 / 2)
    assert found.upper[2] == pytest.approx(0.01)
    assert found.lower[1] < found.frequencies[1] < found.upper[1]


@pytest.mark.parametrize(
    ("at_most", "said"),
    [
        ({("q",): 0.1}, "'q' is no value of x"),
        ({("u",): -0.1}, "from 0 to 1"),
        ({("u",): float("nan")}, "from 0 to 1"),
        ({("u",): 0.6, ("v",): 0.5}, "leave nothing for the others"),
        ({("u",): 0.1, ("v",): 0.1, ("w",): 0.1}, "leave nothing for the others"),
    ],
)
def test_what_cannot_be_known_is_refused(at_most: dict[tuple[str, ...], float], said: str) -> None:
    with pytest.raises(SpecError, match=said):
        estimate(np.array([52, 48]), _protocol(_COLUMNS, ["u", "v", "w"]), at_most=at_most)


def test_in_a_group_rare_values_may_be_as_many_people() -> None:
    protocol = _protocol(_COLUMNS, ["u", "v", "w"])
    first, second = [520, 480], [5, 5]
    table = pa.table(
        {
            "x": [f"y{y}" for counts in (first, second) for y in (0, 1) for _ in range(counts[y])],
            "g": ["many"] * 1000 + ["few"] * 10,
        }
    )
    found = estimate(table, protocol, by=["g", "x"], at_most={("w",): 0.02})
    told = dict(zip(found.cells, zip(found.frequencies, found.upper, strict=True), strict=True))
    assert told["many", "w"][1] == pytest.approx(0.02 * 1010 / 1000)
    assert not np.isnan(told["many", "u"][0])
    # Twenty of a thousand people could be all ten.
    assert all(np.isnan(told["few", value][0]) for value in "uvw")
