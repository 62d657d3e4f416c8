"""Bounds of true counts: which tables they hold, and that no joint distribution loses them on the way."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import funnel
from funnel import Joint, SpecError
from funnel.bounds import Bounds, spread
from tests.strategies import joints


@st.composite
def bounded(draw: st.DrawFn) -> Joint:
    """A joint distribution with bounds around its counts."""
    joint = draw(joints())
    shape = joint.counts.shape
    below, above = (draw(arrays.arrays(np.int64, shape, elements=st.integers(0, 9))) for _ in range(2))
    lower, upper = np.maximum(joint.counts - below, 0), joint.counts + above
    slack = draw(arrays.arrays(np.int64, (shape[0], 2), elements=st.integers(0, 9)))
    sums = joint.counts.sum(axis=1)
    totals = np.stack([np.maximum(sums - slack[:, 0], 0), sums + slack[:, 1]], axis=1)
    return Joint(joint.counts, joint.secret, joint.inputs, Bounds(lower, upper, totals, 0.01))


@given(bounded())
def test_what_reads_the_secret_keeps_the_bounds(joint: Joint) -> None:
    bounds = joint.bounds
    assert bounds is not None
    assert joint.read_by(joint.inputs.columns) is joint
    wide = joint.read_by(joint.secret.columns + joint.inputs.columns)
    assert wide.bounds is not None
    assert wide.bounds.beta == bounds.beta
    assert wide.bounds.totals.tolist() == bounds.totals.tolist()
    c, a = joint.counts.shape
    for s in range(c):
        for t in range(c):
            part = slice(t * a, (t + 1) * a)
            expected = (bounds.lower[s], bounds.upper[s]) if s == t else (np.zeros(a), np.zeros(a))
            assert wide.bounds.lower[s, part].tolist() == expected[0].tolist()
            assert wide.bounds.upper[s, part].tolist() == expected[1].tolist()


@given(bounded())
def test_as_published_is_the_same_distribution_without_bounds(joint: Joint) -> None:
    published = joint.as_published
    assert published.bounds is None
    assert published.counts.tolist() == joint.counts.tolist()
    assert (published.secret, published.inputs) == (joint.secret, joint.inputs)
    assert published.as_published is published


@given(bounded(), st.data())
def test_a_table_is_within_the_bounds_if_every_cell_and_total_is(joint: Joint, data: st.DataObject) -> None:
    bounds = joint.bounds
    assert bounds is not None
    assert bounds.hold(joint.counts)
    s = data.draw(st.integers(0, len(joint.secret) - 1))
    x = data.draw(st.integers(0, len(joint.inputs) - 1))
    for outside in (bounds.lower[s, x] - 1, bounds.upper[s, x] + 1):
        moved = joint.counts.copy()
        moved[s, x] = outside
        assert not bounds.hold(moved)
    assert not bounds.hold(joint.counts[:, :-1])


def test_totals_bind_where_cells_do_not() -> None:
    bounds = Bounds(np.array([[0, 0]]), np.array([[9, 9]]), np.array([[5, 12]]), 0.0)
    assert [bounds.hold(np.array([row])) for row in ([0, 4], [0, 5], [3, 9], [4, 9])] == [False, True, True, False]


@pytest.mark.parametrize(
    ("lower", "upper", "totals", "beta", "said"),
    [
        ([[1]], [[0]], [[0, 1]], 0.1, "exceed"),
        ([[-1]], [[0]], [[0, 1]], 0.1, "negative"),
        ([[0]], [[1]], [[2, 3]], 0.1, "no table"),
        ([[4]], [[5]], [[2, 3]], 0.1, "no table"),
        ([[0]], [[1]], [[1, 0]], 0.1, "no table"),
        ([[0]], [[1, 2]], [[0, 1]], 0.1, "do not fit"),
        ([[0]], [[1]], [[0, 1], [0, 1]], 0.1, "do not fit"),
        ([[0]], [[1]], [[0, 1]], 1.0, "probability"),
        ([[0.5]], [[1]], [[0, 1]], 0.1, "whole numbers"),
    ],
)
def test_bounds_that_make_no_sense_are_refused(
    lower: list[list[float]], upper: list[list[int]], totals: list[list[int]], beta: float, said: str
) -> None:
    with pytest.raises(SpecError, match=said):
        Bounds(np.array(lower), np.array(upper), np.array(totals), beta)


def test_counts_outside_their_bounds_and_parts_with_bounds_are_refused() -> None:
    joint = Joint.from_counts([[3, 4], [5, 6]])
    bounds = Bounds(joint.counts, joint.counts, np.array([[7, 7], [11, 11]]), 0.01)
    known = Joint(joint.counts, joint.secret, joint.inputs, bounds)
    with pytest.raises(SpecError, match="within its own bounds"):
        Joint(joint.counts + 1, joint.secret, joint.inputs, bounds)
    with pytest.raises(SpecError, match="whole table"):
        Joint.from_parts([known], {})
    with pytest.raises(ValueError, match="read-only"):
        bounds.lower[0, 0] = 0


def test_a_table_is_spread_over_its_secrets() -> None:
    assert spread(np.array([[1, 2], [3, 4]])).tolist() == [[1, 2, 0, 0], [0, 0, 3, 4]]


# Where a joint distribution is made by hand, and why its bounds are not lost there.
_MADE_BY_HAND = {
    "joint.py": "counted, or with its bounds",
    "frequencies/public_counts.py": "made with them",
    "frequencies/widening.py": "exact counts, before noise",
    "frequencies/helping.py": "the same frequencies in other numbers of records, and with expected bounds",
    "disclosure/suggest.py": "counts that a suggestion is weighed by; no protocol is made for them",
    "history/expected.py": "what expected people add up to; distributions are those of published counts",
    "history/expected_waves.py": "what real rows of units add up to; distributions are those of published counts",
    "history/unit_rows.py": "exact counts of rows, before noise",
    "history/followed_donors.py": "exact counts of people by secret and class, which observers are taken to know",
    "register/truth.py": "exact counts, for the internal report",
    "tradeoff/alternatives.py": "public counts of what else could be published, with the bounds expected of them",
    "sample_size.py": "with bounds, or as many times the published counts",
    "solver/presolve.py": "the nominal programme: what it finds is decided for the joint distribution it was made from",
    "guarantees/base.py": "the counts a few outputs of a sparse protocol look at, of one without bounds alone",
    "guarantees/known_columns.py": "the records of an event, whose bounds are those of the box it is made with",
    "donors/wide_tables.py": "refuses counts that are known up to noise",
    "donors/record_classes.py": "exact counts, before they are protected",
    "donors/composition.py": "exact counts by class and part, before they are protected",
    "disclosure/threshold.py": "exact counts, for the grouping of values",
    "mechanisms/conditional_reporting.py": "refuses a distribution known up to noise where it would leave a secret out",
}


def test_no_other_place_makes_a_joint_distribution_from_parts_of_one() -> None:
    root = Path(funnel.__file__).parent
    made = set()
    for file in root.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Joint":
                made.add(file.relative_to(root).as_posix())
    assert made <= _MADE_BY_HAND.keys()
