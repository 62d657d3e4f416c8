"""What a plan has fitted a release takes, and the other way round: once for counts, guarantee, work and purpose."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from funnel import LIP, Joint
from funnel.history.kept_rows import FoundRows, digest_of
from funnel.measures.utilities import INFORMATION
from funnel.mechanisms.family import Mechanism
from funnel.mechanisms.invariant import Invariant
from funnel.mechanisms.optimal import Optimal
from funnel.planning import COMPARED, MechanismChoice, PlanRow, contenders, plan
from funnel.solver.budget import UNITS_A_SECOND
from funnel.tradeoff.fitted import FittedRows

JOINT = Joint.from_counts([[30, 10, 5], [10, 50, 20]])


def forbid(monkeypatch: pytest.MonkeyPatch, kind: type[Mechanism]) -> None:
    monkeypatch.setattr(kind, "fitted_to", lambda *_args, **_more: pytest.fail("it was fitted again"))


@pytest.mark.parametrize("name", ["optimal", "invariant"])
def test_a_release_takes_what_the_plan_has_fitted(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = FittedRows.within(tmp_path)
    planned = plan(JOINT, LIP(0.5), ["optimal", "invariant"], time_limit=60.0, named=name, kept=kept)
    for kind in (Optimal, Invariant):
        forbid(monkeypatch, kind)
    released = contenders(JOINT, LIP(0.5), MechanismChoice(name, time_limit=60.0), kept=kept)
    found, before = (next(row for row in rows if row.mechanism == name) for rows in (released, planned))
    assert found.protocol is not None
    assert before.protocol is not None
    assert found.protocol.digest == before.protocol.digest
    assert {**vars(found), "protocol": None} == {**vars(before), "protocol": None}


def test_a_plan_takes_what_a_release_has_fitted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = FittedRows.within(tmp_path)
    contenders(JOINT, LIP(0.5), MechanismChoice("invariant", time_limit=60.0), kept=kept)
    forbid(monkeypatch, Invariant)
    (row,) = plan(JOINT, LIP(0.5), ["invariant"], time_limit=60.0, named="invariant", kept=kept)
    assert row.unchanged is not None


def test_nothing_else_is_taken_for_the_same(tmp_path: Path) -> None:
    kept = FittedRows.within(tmp_path)
    (row,) = plan(JOINT, LIP(0.5), ["optimal"], time_limit=60.0, kept=kept)
    asked = (*INFORMATION.content, "root")
    work = 60.0 * UNITS_A_SECOND
    found = kept.find(JOINT, LIP(0.5), "optimal", work, *asked)
    assert isinstance(found, PlanRow)
    assert found.utility == row.utility
    other = Joint.from_counts([[30, 10, 6], [10, 50, 20]])
    assert kept.find(other, LIP(0.5), "optimal", work, *asked) is None
    assert kept.find(JOINT, LIP(0.6), "optimal", work, *asked) is None
    assert kept.find(JOINT, LIP(0.5), "invariant", work, *asked) is None
    assert kept.find(JOINT, LIP(0.5), "optimal", work / 2, *asked) is None
    assert kept.find(JOINT, LIP(0.5), "optimal", work, *INFORMATION.content, "share") is None


def test_what_a_spec_does_not_name_is_only_compared(tmp_path: Path) -> None:
    kept = FittedRows.within(tmp_path)
    plan(JOINT, LIP(0.5), ["optimal", "invariant"], time_limit=60.0, named="invariant", kept=kept)
    asked = (*INFORMATION.content, "root")
    assert kept.find(JOINT, LIP(0.5), "optimal", COMPARED * UNITS_A_SECOND, *asked) is not None
    assert kept.find(JOINT, LIP(0.5), "invariant", 60.0 * UNITS_A_SECOND, *asked) is not None


def test_rows_of_versions_are_found_by_all_that_they_were_searched_for(tmp_path: Path) -> None:
    kept = FittedRows.within(tmp_path)
    asked = digest_of(JOINT, {1: np.arange(3)}, "lip:1.0", 0.9)
    rows = FoundRows(np.array([[[0.1, 1 / 3]]]), np.array([0]), 7e8 / 3)
    kept.keep_rows(asked, rows)
    found = kept.find_rows(digest_of(JOINT, {1: np.arange(3)}, "lip:1.0", 0.9))
    assert found is not None
    assert (found.library.tolist(), found.assigned.tolist(), found.work) == ([[[0.1, 1 / 3]]], [0], 7e8 / 3)
    other = Joint.from_counts([[30, 10, 6], [10, 50, 20]])
    for content in [
        (other, {1: np.arange(3)}, "lip:1.0", 0.9),
        (JOINT, {2: np.arange(3)}, "lip:1.0", 0.9),
        (JOINT, {1: np.arange(3.0)}, "lip:1.0", 0.9),
        (JOINT, {1: np.arange(3)[::-1]}, "lip:1.0", 0.9),
        (JOINT, {1: np.arange(3)}, "lip:1.0", 0.8),
        (JOINT, ({1: np.arange(3)}, "lip:1.0"), 0.9),
    ]:
        assert kept.find_rows(digest_of(*content)) is None


def test_whole_numbers_of_any_size_are_told_apart() -> None:
    big = np.array([[2**80, 1]], dtype=object)
    assert digest_of(big) == digest_of(big.copy())
    assert digest_of(big) != digest_of(np.array([[2**80 + 1, 1]], dtype=object))
    with pytest.raises(TypeError, match="set is not known"):
        digest_of({1, 2})
