"""What a public report tells of observers who keep all versions, made by the library and held by the gate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from funnel import LIP
from funnel.findings.followed import ExpectedObserver, FoundHistory, FoundObserver
from funnel.pipeline.expectations import report_claims
from funnel.recount.plain_distributions import share_step
from funnel.release.public.findings import public_history
from funnel.release.public.rounding import in_digits

ROWS = 12_900
STEP = share_step(ROWS)
LEVELS = (0.0, 0.3, 0.5, 0.5000001, 0.55, 0.7123, 0.95, 1.0, 3.14159, 12.3456, None)


def found(*observers: FoundObserver) -> FoundHistory:
    most = max(one.outside for one in observers if one.bounded)
    return FoundHistory(
        "panel", 3, 9, 40, 0, 2, 0.5, "3/2", (), "a", "ill", 0, most, 1.0, 0.7, 0.8, 0.8, 0.9, observers=observers
    )


def told(history: FoundHistory, budget: float) -> dict[str, Any]:
    """As ``report.json`` has it."""
    distributions = SimpleNamespace(n=ROWS, step=STEP, nats=lambda share: round(round(share / STEP) * STEP, 12))
    public = public_history(history, LIP(budget), distributions)
    content: dict[str, Any] = in_digits(public.model_dump())
    return content


def failures(stated: Mapping[str, Any], history: FoundHistory, budget: float) -> list[str]:
    exact = [
        ExpectedObserver(one.observer, one.secret_of, one.bounded, one.level, one.of_all, one.outside / ROWS)
        for one in history.observers
    ]
    alone = SimpleNamespace(share=history.share_alone, entropy=history.entropy)
    public = SimpleNamespace(rows=ROWS)
    finished = SimpleNamespace(
        versions=history.versions, alone=alone, observers=exact, public=public, stated_history={}
    )
    promise = SimpleNamespace(budget=Fraction(str(budget)))
    claims = report_claims._history({"history": stated}, finished, promise)
    return [one.name for one in claims if one.failure is not None]


@pytest.mark.parametrize("budget", [0.5, 1.0, 0.0])
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("moved", [None, 0.4, 0.7001, 2.5, 9.99])
def test_figures_of_observers_are_those_that_the_gate_computes(
    level: float | None, moved: float | None, budget: float
) -> None:
    bounded = FoundObserver("transitions", None, True, min(budget, 0.4), 120, 110, moved)
    other = FoundObserver("mover-stayer", None, False, level, 137, 900, moved)
    history = found(bounded, other)
    stated = told(history, budget)
    assert failures(stated, history, budget) == []
    first, second = stated["observers"]
    # Never below what was found, and within the bound never less than that.
    assert first["level"] == budget
    for name, exact in (("level", level), ("level_of_all", other.of_all)):
        assert second[name] == "infinite" if exact is None else second[name] >= max(exact, budget) * (1 - 1e-3)
    assert first["outside_at_most"] == stated["outside_at_most"] >= 110 / ROWS
    assert second["outside_at_most"] >= 900 / ROWS


CHANGES: dict[str, dict[str, Any]] = {
    "level of mover-stayer": {"level": 0.6},
    "level_of_all of mover-stayer": {"level_of_all": 0.85},
    "outside_at_most of mover-stayer": {"outside_at_most": 0.05},
    "observers": {"bounded": True},
}


@pytest.mark.parametrize("name", CHANGES)
def test_another_figure_of_an_observer_is_noticed(name: str) -> None:
    history = found(
        FoundObserver("transitions", None, True, 0.4, 120, 110, 0.6),
        FoundObserver("mover-stayer", None, False, 0.8, 137, 900, 0.9),
    )
    stated = told(history, 0.5)
    assert failures(stated, history, 0.5) == []
    first, second = stated["observers"]
    assert failures({**stated, "observers": [first, {**second, **CHANGES[name]}]}, history, 0.5) == [name]
    # Who is left out is told of; that nobody is would be another sentence.
    assert "observers" in failures({**stated, "observers": [first]}, history, 0.5)


def test_where_nobody_is_outside_one_step_is_told() -> None:
    history = found(FoundObserver("transitions", None, True, 0.4, 0, 0, None))
    stated = told(history, 0.5)
    assert stated["observers"][0]["outside_at_most"] == STEP
    moved = found(replace(history.observers[0], moved=1, outside=1, moved_level=0.5000001))
    assert told(moved, 0.5)["observers"][0]["outside_at_most"] == STEP
    assert not np.isclose(told(moved, 0.5)["observers"][0]["level_of_all"], 0.5)
