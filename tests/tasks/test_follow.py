"""What is drawn given everything published before: what each step refuses, and what it leaves for later versions."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from funnel.errors import ReleaseRefused, SpecError
from funnel.guarantees import LIP
from funnel.history.drift import drift_between
from funnel.joint import Joint
from funnel.measures.utilities import INFORMATION
from funnel.pipeline.flows import look
from funnel.pipeline.tasks import drift, explain, follow, optimise
from funnel.protocol import Protocol
from funnel.register import register_of
from funnel.release.record import History
from funnel.spec import ReleaseSpec
from funnel.tradeoff.fitted import FittedRows
from tests.funnel.release.test_decision import earlier, expected_origin
from tests.funnel.release.test_decision_people import followed
from tests.projects import spec_of

JOINT = Joint.from_counts([[300, 200, 100], [100, 250, 350]], ["yes", "no"], ["a", "b", "c"])
SAME = {"people": "same", "register": "panel"}


def test_rows_that_were_held_are_published_given_the_register_they_were_drawn_from() -> None:
    held = followed()

    def require(before: History | None, now: History) -> None:
        rows_of: Any = SimpleNamespace(record=SimpleNamespace(history=before), version="1.1.0")
        follow._require_same(cast("Any", SimpleNamespace(rows_of=rows_of)), now)

    require(held, held)
    for other in (None, held.model_copy(update={"given": "0" * 64}), held.model_copy(update={"drawing": "0" * 64})):
        with pytest.raises(ReleaseRefused, match=r"version 1\.1\.0 was held, .* run funnel release --again"):
            require(other, held)


def test_a_version_without_counts_tells_of_no_drift() -> None:
    one = earlier(expected_origin(False), "1.0.0")
    assert drift.drift_of_others([one], JOINT) is None
    assert drift.drift_of_others([], JOINT) is None


def test_first_rows_are_compared_with_those_of_the_newest_version_of_the_same_name(tmp_path: Path) -> None:
    other = Joint.from_counts([[30, 900, 10], [800, 25, 35]], ["yes", "no"], ["a", "b", "c"])
    entries = [
        SimpleNamespace(series="test", joint=other, first_rows=other),
        SimpleNamespace(series="test", joint=other, first_rows=JOINT),
        SimpleNamespace(series="another", joint=other, first_rows=other),
    ]
    register, spec = cast("Any", SimpleNamespace(entries=entries)), spec_of("x.parquet", tmp_path)
    assert drift.drift_of_units(spec, register, JOINT) == drift_between(JOINT, JOINT)
    # Of a version whose units had one row each, that is all there is.
    entries[1].first_rows = None
    assert drift.drift_of_units(spec, register, JOINT) == drift_between(other, JOINT)
    assert drift_between(other, JOINT) != drift_between(JOINT, JOINT)
    del entries[:2]
    assert drift.drift_of_units(spec, register, JOINT) is None


def test_the_first_version_leaves_the_reserve_to_later_ones(tmp_path: Path) -> None:
    for reserve in (1.0, 0.5):
        history = {**SAME, "budget_fraction": reserve}
        spec = spec_of("x.parquet", tmp_path, record_key=["id"], history=history, guarantee="lip:0.6")
        protocol = Protocol.from_json(_fitted(spec, tmp_path)[optimise.PROTOCOL].decode())
        assert protocol.guarantee == "lip:0.6"
        assert 0.9 * 0.6 * reserve < LIP(0.6).level(JOINT, protocol).value <= 0.6 * reserve


def _fitted(spec: ReleaseSpec, folder: Path) -> dict[str, bytes]:
    return optimise._fit(spec, JOINT, INFORMATION, FittedRows.within(folder))


def test_the_secret_of_a_register_is_not_rotated(tmp_path: Path) -> None:
    spec = spec_of("x.parquet", tmp_path, record_key=["id"], history=SAME)
    register = register_of(spec)
    assert register is not None
    with pytest.raises(SpecError, match="the release secret of the register panel cannot be rotated"):
        look._register_secret(register, spec, True)


def test_records_of_versions_that_are_in_no_register_say_nothing_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    histories = (followed(), None, History(people="different"))
    known = {place: SimpleNamespace(history=one) for place, one in enumerate(histories)}
    monkeypatch.setattr(explain, "Records", lambda _: SimpleNamespace(known=known))
    (tmp_path / "test" / "records" / "here").mkdir(parents=True)
    spec: Any = SimpleNamespace(workspace_folder=tmp_path)
    register: Any = SimpleNamespace(entries=[SimpleNamespace(series="test")])
    assert explain._noted(spec, register) == {"test/1.0.0": followed()}
