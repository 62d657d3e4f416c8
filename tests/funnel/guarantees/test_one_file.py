"""A new guarantee is one class in one file: the library decides, calibrates and optimises for it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
import pytest

import funnel
from funnel import guarantees
from funnel.guarantees.base import Level, PosteriorGuarantee, Witness
from funnel.joint import FloatArray, Joint
from funnel.protocol import WeightArray

JOINT = Joint.from_counts([[30, 10, 4], [10, 50, 9], [5, 5, 20]])


@dataclass(frozen=True)
class Gain(PosteriorGuarantee):
    """No belief in a value of the secret rises by more than a factor e^ε; what `funnel.PML` is, without any of it."""

    name: ClassVar[str] = "gain"
    title: ClassVar[str] = "a bound on gains"
    example: ClassVar[str] = "gain:1.0"

    epsilon: float

    @property
    def budget(self) -> float:
        return self.epsilon

    def with_budget(self, budget: float) -> Gain:
        return Gain(budget)

    def posterior_cone(self, prior: FloatArray) -> FloatArray:
        """Rows of ``π_s <= e^ε p_s Σ_t π_t``."""
        return np.asarray(np.eye(len(prior)) - math.exp(self.epsilon) * prior[:, np.newaxis])

    def level_for(self, joint: Joint, weights: WeightArray) -> Level:
        counts, best = [[int(n) for n in row] for row in joint.counts], (Fraction(0), 0, 0)
        for y, row in enumerate(weights.tolist()):
            drawn = [sum(n * w for n, w in zip(of, row, strict=True)) for of in counts]
            for s, of in enumerate(counts):
                if sum(drawn):
                    best = max(best, (Fraction(drawn[s] * joint.n, sum(drawn) * sum(of)), y, s))
        ratio, y, s = best
        # Never below the exact level.
        return Level(max(0.0, math.log(ratio) * (1 + 1e-15)), Witness(y, s, None, ratio, True))

    def output_levels(self, joint: Joint, rows: FloatArray) -> FloatArray:
        drawn = rows @ joint.p.T
        return np.asarray(np.log((drawn / drawn.sum(axis=1, keepdims=True) / joint.p_secret).max(axis=1)))


@pytest.fixture(autouse=True)
def named(monkeypatch: pytest.MonkeyPatch) -> None:
    """As its name in guarantees/__init__.py would register it."""
    monkeypatch.setitem(guarantees._KINDS, "gain", Gain)


def test_it_is_read_by_its_name() -> None:
    assert funnel.parse_guarantee("gain:0.5") == Gain(0.5)
    assert "gain" in guarantees.names()


@pytest.mark.parametrize("epsilon", [0.1, 0.3, 0.6])
def test_the_optimum_is_that_of_the_same_bound_by_another_name(epsilon: float) -> None:
    mine, theirs = (funnel.optimal(JOINT, kind(epsilon)) for kind in (Gain, funnel.PML))
    assert Gain(epsilon).holds(JOINT, mine.protocol)
    assert funnel.PML(epsilon).holds(JOINT, mine.protocol)
    assert mine.utility <= mine.bound
    # Each is within its certified gap of the optimum, which is one and the same.
    assert mine.utility <= theirs.bound + 1e-9
    assert theirs.utility <= mine.bound + 1e-9


@pytest.mark.parametrize("name", ["grr", "oue", "watchdog", "agglomeration", "conditional-reporting"])
def test_mechanisms_are_calibrated_to_it(name: str) -> None:
    protocol = funnel.fit(name, JOINT, Gain(0.4))
    assert Gain(0.4).holds(JOINT, protocol)
    # As far as the mechanism uses the same bound by its other name.
    level = funnel.PML(0.4).level(JOINT, funnel.fit(name, JOINT, funnel.PML(0.4))).value
    assert Gain(0.4).level(JOINT, protocol).value == pytest.approx(level, abs=1e-6)


def test_a_plan_compares_mechanisms_under_it() -> None:
    rows = {row.mechanism: row for row in funnel.plan(JOINT, Gain(0.4))}
    assert {"grr", "optimal"} <= set(rows)
    assert all(Gain(0.4).holds(JOINT, row.protocol) for row in rows.values() if row.reason is None)
