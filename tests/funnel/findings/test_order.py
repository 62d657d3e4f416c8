"""The test of order: exact by counting all orders of small files, and sharp on orders that tell something."""

from __future__ import annotations

from collections import Counter
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from funnel.findings import order
from funnel.findings.order import association
from funnel.joint import IntArray


def table_of(labels: IntArray, outputs: IntArray) -> IntArray:
    table = np.zeros((int(labels.max()) + 1, int(outputs.max()) + 1), dtype=np.int64)
    np.add.at(table, (labels, outputs), 1)
    return table


@settings(max_examples=25)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=2, max_size=6), st.sampled_from([0, 1, 5]))
def test_among_all_orders_a_small_p_value_is_as_rare_as_it_says(rows: list[tuple[int, int]], rare: int) -> None:
    labels, outputs = (np.array(part) for part in zip(*rows, strict=True))
    tables: Counter[bytes] = Counter()
    for places in permutations(range(len(rows))):
        tables[table_of(labels, outputs[list(places)]).tobytes()] += 1
    shape, found = table_of(labels, outputs).shape, Counter[float]()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(order, "_RARE", rare)
        for table, ways in tables.items():
            found[association(np.frombuffer(table, dtype=np.int64).reshape(shape)).p_value] += ways
    total, below = sum(found.values()), 0
    for p_value in sorted(found):
        below += found[p_value]
        assert below / total <= p_value + 1e-12


@given(st.integers(0, 2**32 - 1), st.integers(2, 40), st.integers(1, 30), st.integers(10, 3000))
def test_random_orders_are_not_suspected(seed: int, labels: int, outputs: int, rows: int) -> None:
    random = np.random.default_rng(seed)
    drawn = random.zipf(1.5, rows) % outputs
    # By the proof, once in 10^13 examples.
    assert association(table_of(np.sort(random.integers(0, labels, rows)), drawn)).p_value > 1e-13


def test_uniform_orders_give_p_values_that_are_at_most_uniform() -> None:
    random = np.random.default_rng(5)
    labels, drawn = np.arange(600) % 7, random.integers(0, 5, 600) ** 2
    found = np.sort([association(table_of(labels, random.permutation(drawn))).p_value for _ in range(300)])
    # The largest excess of an empirical distribution over a true one: beyond 0.27 with a probability below 2e-19
    # (Massart).
    assert (np.arange(1, 301) / 300 - found).max() < 0.27


def test_orders_that_tell_something_are_found() -> None:
    random = np.random.default_rng(6)
    source = random.integers(0, 4, 3000)
    drawn = np.where(random.random(3000) < 0.5, source, random.integers(0, 4, 3000))
    blocks = np.arange(3000) // 100
    assert association(table_of(source, drawn)).p_value < 1e-50
    assert association(table_of(blocks, drawn[np.argsort(source, kind="stable")])).p_value < 1e-20
    assert association(table_of(source, random.permutation(drawn))).p_value > 1e-9


def test_the_least_likely_cell_is_named_and_rare_ones_are_one_class() -> None:
    table = np.array([[500, 500, 1], [500, 500, 0], [900, 100, 0], [1, 0, 0], [0, 0, 0]])
    found = association(table)
    assert (found.label, found.output) in {(2, 0), (2, 1)}
    rare = np.zeros((3, 12), dtype=np.int64)
    rare[:2, 0] = 1000
    rare[2, 0] = 100
    rare[0, 1:] = 4
    # Eleven outputs of four records each: none says much alone.
    assert association(rare).label == 0
    assert association(rare).p_value < 1e-9
    assert association(rare[:, 1:]).p_value == 1


@pytest.mark.parametrize("table", [np.zeros((3, 3), dtype=np.int64), np.array([[4, 5]]), np.array([[7], [9]])])
def test_where_there_is_nothing_to_compare_nothing_is_suspected(table: IntArray) -> None:
    assert association(table).p_value == 1
