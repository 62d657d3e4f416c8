"""Fits that tests share are those that a release would make, and none that a test has put something else into."""

from __future__ import annotations

from pathlib import Path

import pytest

from funnel.joint import Joint
from funnel.measures.utilities import INFORMATION
from funnel.pipeline.tasks import optimise as optimise_module
from funnel.tradeoff import FittedRows
from tests import fits
from tests.projects import spec_of

JOINT = Joint.from_counts([[300, 200, 100], [100, 250, 350]], ["yes", "no"], ["a", "b", "c"])
SPEC = spec_of("people.parquet", ".", mechanism="grr")


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Guarantees that something was really fitted for."""
    asked: list[str] = []
    real = fits._fit

    def fit(spec, joint, useful, kept):  # type: ignore[no-untyped-def]
        asked.append(spec.guarantee.canonical)
        return real(spec, joint, useful, kept)

    monkeypatch.setattr(fits, "_fit", fit)
    monkeypatch.setattr(fits, "_made", {})
    return asked


def _fitted(folder: Path, spec=SPEC, joint=JOINT) -> tuple[dict[str, bytes], list[str]]:  # type: ignore[no-untyped-def]
    """What was fitted, and the rows of the plan that the workspace keeps then."""
    found = optimise_module._fit(spec, joint, INFORMATION, FittedRows.within(folder))
    return found, sorted(path.name for path in (folder / "fits").iterdir())


def test_the_same_is_fitted_once_and_every_workspace_keeps_it(tmp_path: Path, counted: list[str]) -> None:
    with fits.made_once():
        first, second = _fitted(tmp_path / "first"), _fitted(tmp_path / "second")
    assert first == second
    assert first[1]
    assert counted == ["lip:1.0"]


def test_other_inputs_and_functions_are_fitted_anew(
    tmp_path: Path, counted: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Joint.from_counts([[300, 200, 101], [100, 250, 350]], ["yes", "no"], ["a", "b", "c"])
    with fits.made_once():
        _fitted(tmp_path)
        _fitted(tmp_path, joint=other)
        _fitted(tmp_path, spec_of("people.parquet", ".", mechanism="grr", guarantee="lip:0.5"))
        _fitted(tmp_path, spec_of("people.parquet", ".", mechanism="optimal"))
        assert counted == ["lip:1.0", "lip:1.0", "lip:0.5", "lip:1.0"]
        real = optimise_module.coarsened
        monkeypatch.setattr(optimise_module, "coarsened", lambda *given: real(*given))
        _fitted(tmp_path)
        assert len(counted) == 5
        with fits.made_anew():
            assert optimise_module._fit is not fits._fit_once
