"""Drift: p-values that are never too small where nothing moved, faults that are found, and sentences about both."""

from __future__ import annotations

import json
from itertools import product
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from funnel import Alphabet, Joint
from funnel.errors import DataError
from funnel.history.changes import Changes
from funnel.history.drift import DRIFTED, drift_between
from tests.strategies import joints


def changed(before: Joint, after: Joint, pairs: list[tuple[int, int, int]]) -> Changes:
    return Changes(*(np.array(column, dtype=np.int64) for column in zip(*sorted(pairs), strict=True)))


def staying(joint: Joint) -> Changes:
    cells = np.flatnonzero(joint.counts.ravel())
    return Changes(cells, cells, joint.counts.ravel()[cells])


@given(joints(max_inputs=3))
@settings(max_examples=30, deadline=None)
def test_the_same_counts_are_no_drift(joint: Joint) -> None:
    for changes in (None, staying(joint)):
        drift = drift_between(joint, joint, changes)
        assert not drift.drifted
        assert drift.p_value > 0.9
        assert json.loads(json.dumps(drift.to_dict()))["drifted"] is False


def test_p_values_of_two_samples_are_at_most_as_often_small_as_they_say() -> None:
    """All ways to divide eight records of three kinds into two samples of four, with their exact probabilities."""
    totals = (3, 3, 2)
    ways = [way for way in product(*(range(n + 1) for n in totals)) if sum(way) == 4]
    masses = np.array([np.prod([comb(n, k) for n, k in zip(totals, way, strict=True)]) for way in ways]) / comb(8, 4)
    assert masses.sum() == pytest.approx(1)
    values = []
    for way in ways:
        one = Joint.from_counts([way], inputs=["a", "b", "c"])
        two = Joint.from_counts([np.subtract(totals, way)], inputs=["a", "b", "c"])
        values.append(drift_between(one, two).p_value)
    for threshold in sorted(set(values)):
        assert masses[np.array(values) <= threshold].sum() <= threshold + 1e-9


def test_p_values_of_the_same_people_are_at_most_as_often_small_as_they_say() -> None:
    """Six people who changed between two values: who came is binomial with 1/2, whoever else stayed."""
    values, masses = [], []
    for came in range(7):
        pairs = [(0, 0, 20), (1, 1, 20), *([(0, 1, came)] if came else []), *([(1, 0, 6 - came)] if came < 6 else [])]
        one = Joint.from_counts([[20 + came, 26 - came]], inputs=["a", "b"])
        two = Joint.from_counts([[26 - came, 20 + came]], inputs=["a", "b"])
        shifts = drift_between(one, two, changed(one, two, pairs)).shifts
        values.append(next(shift.p_value for shift in shifts if shift.what == "the published values"))
        masses.append(comb(6, came) / 2**6)
    for threshold in sorted(set(values)):
        assert sum(m for m, v in zip(masses, values, strict=True) if v <= threshold) <= threshold + 1e-9
    assert min(values) == pytest.approx(2 / 64, rel=1e-5)


@given(st.integers(0, 2**32))
@settings(max_examples=10, deadline=None)
def test_a_shift_that_is_there_is_found_and_named(seed: int) -> None:
    rng = np.random.default_rng(seed)
    distribution = np.array([0.2, 0.3, 0.5])
    one = Joint.from_counts([rng.multinomial(4000, distribution)], inputs=["a", "b", "c"])
    two = Joint.from_counts([rng.multinomial(4000, [0.3, 0.3, 0.4])], inputs=["a", "b", "c"])
    drift = drift_between(one, two)
    assert drift.drifted
    assert drift.p_value < DRIFTED
    clearest = drift.shifts[0]
    assert (clearest.who, clearest.category) in {("Before and now", "a"), ("Before and now", "c")}
    assert f"most clearly '{clearest.category}'" in drift.sentence


def test_the_same_people_are_judged_by_those_who_changed() -> None:
    # 60 of 10,000 moved one way and 20 the other: to two samples of strangers that is nothing.
    one = Joint.from_counts([[5000, 5000]], inputs=["a", "b"])
    two = Joint.from_counts([[4960, 5040]], inputs=["a", "b"])
    pairs = [(0, 0, 4940), (0, 1, 60), (1, 0, 20), (1, 1, 4980)]
    assert drift_between(one, two).p_value > 0.1
    drift = drift_between(one, two, changed(one, two, pairs))
    assert drift.p_value < DRIFTED
    assert drift.shifts[0].who == "Those who stayed, then and now"
    assert (drift.shifts[0].before, drift.shifts[0].after) in {(0.5, 0.496), (0.5, 0.504)}
    assert drift.same_people


def test_those_who_join_and_leave_are_compared_with_those_who_stay() -> None:
    one = Joint.from_counts([[500, 500], [100, 0]], secret=["well", "ill"], inputs=["a", "b"])
    two = Joint.from_counts([[700, 500]], secret=["well"], inputs=["a", "b"])
    stayed = changed(one, two, [(0, 0, 500), (1, 1, 500)])
    drift = drift_between(one, two, stayed)
    found = {shift.who for shift in drift.shifts if shift.adjusted < DRIFTED}
    assert found == {"Those who stayed and those who joined", "Those who stayed and those who left"}
    assert dict(drift.vanished) == {"S": ("ill",)}
    # One sentence for a value that vanished and one for each comparison.
    assert drift.sentence.count("(p = ") == 2
    assert drift.sentence.startswith("The column 'S' has 1 vanished value: 'ill'.")


def test_new_values_and_other_columns_are_drift_whatever_the_counts() -> None:
    one = Joint.from_counts([[5, 5]], inputs=["a", "b"])
    two = Joint.from_counts([[5, 5, 1]], inputs=["a", "b", "c"])
    drift = drift_between(one, two)
    assert dict(drift.new) == {"X": ("c",)}
    assert drift.drifted and drift.p_value > DRIFTED  # noqa: PT018
    other = Joint.from_counts([[5, 5]], inputs=Alphabet(("size",), (("a",), ("b",))))
    drift = drift_between(one, other)
    assert drift.drifted
    assert drift.sentence == "The published columns are now 'size', and were 'X'."
    assert drift.shifts == ()
    # A value that is listed and that nobody has is no new one.
    silent = Joint.from_counts([[5, 5, 0]], inputs=["a", "b", "c"])
    assert not drift_between(one, silent).drifted


def test_new_and_vanished_values_are_told_column_by_column() -> None:
    one = Alphabet(("size", "colour"), (("s", "red"), ("l", "red")))
    two = Alphabet(("size", "colour"), (("s", "red"), ("s", "blue")))
    drift = drift_between(Joint.from_counts([[5, 5]], inputs=one), Joint.from_counts([[5, 5]], inputs=two))
    assert drift.new == (("colour", ("blue",)),)
    assert drift.vanished == (("size", ("l",)),)


def test_alphabets_in_another_order_are_the_same_frequencies() -> None:
    one = Joint.from_counts([[900, 100], [30, 70]], secret=["ill", "well"], inputs=["a", "b"])
    two = Joint.from_counts([[70, 30], [100, 900]], secret=["well", "ill"], inputs=["b", "a"])
    pairs = [(0, 3, 900), (1, 2, 100), (2, 1, 30), (3, 0, 70)]
    for changes in (None, changed(one, two, pairs)):
        assert drift_between(one, two, changes).p_value == 1


def test_changes_of_other_people_are_refused() -> None:
    one = Joint.from_counts([[5, 5]], inputs=["a", "b"])
    with pytest.raises(DataError, match="more changes than people"):
        drift_between(one, one, changed(one, one, [(0, 0, 6)]))
