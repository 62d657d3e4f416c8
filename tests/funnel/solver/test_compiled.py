"""The compiled dual simplex method against the one in arrays; bases kept for boxes."""

from __future__ import annotations

import numpy as np
import pytest

import funnel
from funnel.solver import batch, boxes
from funnel.solver.batch import Bases, BatchProgramme
from funnel.solver.region import Region


def region(c: int, a: int, seed: int) -> Region:
    counts = np.random.default_rng(seed).integers(1, 50, size=(c, a))
    joint = funnel.Joint.from_counts(counts)
    return Region.of(funnel.LIP(0.5).cone(joint) / joint.p_input, joint.p_input)


@pytest.mark.parametrize("size", [(3, 5), (12, 20)])
def test_compiled_and_array_programmes_agree(size: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    here = region(*size, 0)
    random = np.random.default_rng(1)
    number, n = 300, here.system.shape[1]
    low = random.random((number, n)) * random.choice([0.0, 0.1, 0.3], size=(number, 1))
    arguments = (random.normal(size=(number, n)), low, low + random.random((number, n)))
    monkeypatch.setattr(batch, "_LARGE_STACK", 0)
    monkeypatch.setattr(batch, "_BEGUN", 0)
    monkeypatch.setattr(batch, "_LONG", 0)
    assert batch._compiled() is not None
    answers, programme = [], BatchProgramme(here)
    for least in (0, 2**40):
        monkeypatch.setattr(batch, "_LARGE", least)
        start = programme.slack_basis()[np.zeros(number, dtype=np.intp)]
        answers.append(programme.maximise(*arguments, start, steps=1000))
    one, other = answers
    np.testing.assert_array_equal(one.solved, other.solved)
    np.testing.assert_array_equal(one.empty, other.empty)
    assert one.solved.any()
    assert one.empty.any()
    values = [(arguments[0] * answer.points).sum(axis=1)[one.solved] for answer in answers]
    np.testing.assert_allclose(*values, rtol=1e-7, atol=1e-9)


def test_a_short_run_loads_no_compiled_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loading it took a first call of .14 s 1.7 s."""
    loaded: list[int] = []
    monkeypatch.setattr(batch, "_compiled", lambda: loaded.append(1))
    joint = funnel.Joint.from_counts(np.random.default_rng(2).integers(1, 50, size=(15, 16)))
    assert funnel.optimal(joint, funnel.LIP(1.0), gap=1e-3, method="columns").status == "optimal"
    assert not loaded
    monkeypatch.setattr(batch, "_BEGUN", 0)
    monkeypatch.setattr(batch, "_LONG", 0)
    funnel.optimal(joint, funnel.LIP(1.0), gap=1e-3, method="columns")
    assert loaded


def test_both_certify_the_same_optimum(monkeypatch: pytest.MonkeyPatch) -> None:
    joint = funnel.Joint.from_counts(np.random.default_rng(2).integers(1, 50, size=(12, 18)))
    found = []
    monkeypatch.setattr(batch, "_BEGUN", 0)
    monkeypatch.setattr(batch, "_LONG", 0)
    for least in (0, 2**40):
        monkeypatch.setattr(batch, "_LARGE", least)
        found.append(funnel.optimal(joint, funnel.LIP(0.5), gap=1e-3, method="columns"))
    assert found[0].utility <= found[1].bound
    assert found[1].utility <= found[0].bound
    assert [solution.status for solution in found] == ["optimal", "optimal"]


def test_boxes_keep_their_bases_and_share_the_memory_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boxes, "_MEMORY", 0)  # room for 64
    random = np.random.default_rng(0)

    def bases(number: int, first: float) -> Bases:
        table = (first + np.arange(number))[:, None, None] * np.ones((number, 3, 2))
        return Bases(table, np.zeros((number, 3), np.int32), np.zeros((number, 2), np.int32))

    tree = boxes.OpenBoxes(bases(1, -1.0), 1)
    expected: dict[float, float] = {}
    for turn in range(40):
        number = int(random.integers(1, 12))
        of = random.integers(number, size=2 * number)
        bound = random.random(2 * number)
        tree.put(bound[:, None], bound[:, None], bound, bases(number, 100.0 * turn), of)
        expected |= dict(zip(bound.tolist(), (100.0 * turn + of).tolist(), strict=True))
        lower, upper, taken, kept = tree.take(int(random.integers(1, 16)))
        np.testing.assert_array_equal(lower, upper)
        for bound_of_one, table in zip(taken.tolist(), kept.table, strict=True):
            assert table[0, 0] in (expected.pop(bound_of_one), -1.0)
        assert len(tree) == len(expected)
        assert len(tree._users) <= 64
    _, _, left, _ = tree.take(len(tree))
    assert list(left) == sorted(expected, reverse=True)
    assert not tree._users[1:].any()
