"""Distributions in doubles against whole numbers, and the counts they are made of."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import funnel
from funnel.errors import DataError
from funnel.history.changes import Changes
from funnel.history.distributions import Kernel, distributions_before, secrets_of
from funnel.history.exact_distribution import ExactDistributions, moved_on, published
from funnel.history.observed import Observed
from funnel.history.past import Past
from tests.funnel.history.brute import Wave, panels, table_of


@settings(max_examples=15)
@given(panels(), st.sampled_from([funnel.LIP(0.7), funnel.LDP(1.0)]))
def test_doubles_are_within_their_stated_error_of_whole_numbers(waves: list[Wave], guarantee: funnel.Guarantee) -> None:
    book = funnel.History(guarantee)
    for version, wave in enumerate(waves):
        step = book.extend(
            pa.table(table_of(wave)),
            key=["id"],
            secret=["s"],
            inputs=["x"],
            version=str(version),
            secret_bytes=bytes(range(32)),
        )
        distributions = distributions_before(step.past, step.followed, step.joint, step.observed.changes)
        exact = ExactDistributions(step.past)
        assert distributions.sound.all()
        assert 0 < distributions.error < 1e-12
        for node, distribution in zip(step.followed.tolist(), distributions.values, strict=True):
            whole = exact.before(node, step.joint, step.observed.changes)
            assert ((distribution == 0) == (whole == 0)).all()
            quotients = [Fraction(float(p)) / int(n) for p, n in zip(distribution.flat, whole.flat, strict=True) if n]
            # Equal up to a factor common to the history.
            assert max(quotients) <= min(quotients) * (1 + 2 * Fraction(distributions.error))


def test_a_distribution_near_the_smallest_double_is_not_trusted() -> None:
    joint = funnel.Joint.from_counts([[5, 5], [5, 5]])
    changes = {0: Changes(np.array([0, 1, 2, 3]), np.array([0, 1, 2, 3]), np.array([5, 5, 5, 5]))}
    rare = np.array([[[2**63 - 1, 1], [1, 2**63 - 1]]], dtype=np.uint64)
    past, node = Past(), 0
    for version in range(10):
        chapter = _chapter(past, joint, changes | {version - 1: changes[0]}, rare, node, str(version))
        past, node = past.followed_by(chapter), past.size
        distributions = distributions_before(past, np.array([node]), joint, {version: changes[0]})
        assert distributions.sound[0] == (version < 7)
    whole = ExactDistributions(past).before(node, joint, {9: changes[0]})
    assert whole[0, 0] == (2**63 - 1) ** 10
    assert whole[0, 1] == 1


def _chapter(past, joint, changes, library, node, version):  # type: ignore[no-untyped-def]
    protocol = funnel.Protocol(library[0], library[0][:, 0], joint.inputs, joint.inputs)
    from funnel.history.past import Chapter

    return Chapter(
        version,
        "lip:1.0",
        joint,
        changes,
        protocol,
        library,
        np.array([node]),
        np.array([0]),
        past.size,
        np.array([node]),
        np.array([0]),
    )


def test_what_nobody_in_both_had_follows_the_distribution_of_the_version_for_secrets_that_they_have() -> None:
    joint = funnel.Joint.from_counts([[3, 1], [2, 2], [4, 0]])
    changes = Changes(np.array([0, 0]), np.array([0, 3]), np.array([2, 1]))
    assert secrets_of(joint, changes).tolist() == [2, 1, 0]
    assert secrets_of(joint, None).tolist() == [4, 4, 4]
    after = Kernel(2, joint, changes).after(np.array([[0.5, 0.5]]))[0]
    expected = 0.5 * np.array([2 / 3, 0, 0, 1 / 3, 0, 0]) + 0.5 * np.array([3, 1, 2, 2, 0, 0]) / 8
    assert after == pytest.approx(expected, rel=1e-15)
    whole = moved_on(np.array([[1, 1]], dtype=object), joint, changes)
    assert (whole.reshape(-1) * Fraction(1, int(whole.sum()))).tolist() == pytest.approx(expected.tolist(), rel=1e-15)


def test_tables_with_few_changes_are_multiplied_as_sparse_ones_to_the_same_result() -> None:
    random = np.random.default_rng(0)
    joint = funnel.Joint.from_counts(random.integers(0, 3, size=(2, 300)))
    changes = Changes.counted(random.integers(0, 400, 200), random.integers(0, 600, 200))
    distributions = random.dirichlet(np.ones(400), size=3)
    sparse = Kernel(400, joint, changes)
    assert not isinstance(sparse._table, np.ndarray)
    dense = np.zeros((400, 600))
    dense[changes.before, changes.after] = changes.records
    leaving = dense.sum(axis=1)
    seen = secrets_of(joint, changes) > 0
    otherwise = (joint.counts * seen[:, None]).reshape(-1) / (joint.counts * seen[:, None]).sum()
    table = np.where(leaving[:, None] > 0, dense / np.maximum(leaving, 1)[:, None], otherwise)
    assert sparse.after(distributions) == pytest.approx(distributions @ table, rel=1e-12)


def test_an_output_that_never_occurs_is_no_history() -> None:
    with pytest.raises(DataError, match="no such history is possible"):
        published(np.array([[1, 0]], dtype=object), [0, 5])


@pytest.mark.parametrize(
    ("before", "after", "records"),
    [([1, 0], [0, 0], [1, 1]), ([0, 0], [1, 1], [1, 1]), ([0], [0], [0]), ([0], [0, 1], [1]), ([-1], [0], [1])],
)
def test_changes_are_distinct_sorted_and_counted(before: list[int], after: list[int], records: list[int]) -> None:
    with pytest.raises(DataError, match="counts of changes"):
        Changes(np.array(before), np.array(after), np.array(records))


@pytest.mark.parametrize(
    ("nodes", "inputs", "records"),
    [
        ([0, 0], [0, 0], [2, 2]),
        ([0], [0], [4]),
        ([0, 0], [0, 2], [4, 6]),
        ([0, 0], [0, 1], [4]),
        ([-1, 0], [0, 1], [4, 6]),
    ],
)
def test_people_by_history_are_those_of_the_joint_distribution(
    nodes: list[int], inputs: list[int], records: list[int]
) -> None:
    joint = funnel.Joint.from_counts([[1, 2], [3, 4]])
    assert Observed(joint, {}, np.array([0, 0]), np.array([0, 1]), np.array([4, 6])).records.tolist() == [4, 6]
    with pytest.raises(DataError, match="people by history and input"):
        Observed(joint, {}, np.array(nodes), np.array(inputs), np.array(records))
