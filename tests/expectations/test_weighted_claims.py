"""Weighted frequencies in a report: what the maker tells meets every claim, and whatever is changed fails one."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import funnel
from funnel.pipeline.expectations.report_claims import weighted_claims
from funnel.release.public_weighted import ClassWeights, public_weighted

MEANS = {"light": 1.5, "heavy": 40.0}
NUMBERS = {label: Fraction(mean) for label, mean in MEANS.items()}
CLASSES = ("light", "heavy", "(missing)")


def table_of(counts: list[int]) -> tuple[funnel.Joint, dict[str, dict[tuple[str, str], int]]]:
    """Records of values and classes, and their counts by value and class."""
    symbols = [(f"v{x}", k) for x in range(len(counts) // 3) for k in CLASSES]
    inputs = funnel.Alphabet(("value", "weight"), tuple(symbols))
    joint = funnel.Joint.from_counts(np.array([counts, [1] * len(counts)]), inputs=inputs)
    return joint, {"value": {symbol: count + 1 for symbol, count in zip(symbols, counts, strict=True)}}


def failures(told: Any, columns: dict[str, dict[tuple[str, str], int]]) -> list[str]:
    return [one.name for one in weighted_claims(told, "weight", NUMBERS, columns) if one.failure is not None]


@settings(max_examples=60)
@given(st.lists(st.integers(0, 3000), min_size=6, max_size=36).map(lambda c: c[: len(c) // 3 * 3]))
def test_what_is_told_is_what_follows(counts: list[int]) -> None:
    joint, columns = table_of(counts)
    found = public_weighted(joint, ClassWeights("weight", MEANS))
    assert found is not None
    assert not failures(found.model_dump(), columns)
    # No share is told finer than ten of the heaviest records.
    weighs = sum(count * MEANS.get(of_class, 0) for (_, of_class), count in columns["value"].items())
    assert found.step >= min(0.5, 10 * 40 / weighs) - 1e-12


@pytest.mark.parametrize(
    "change",
    [
        lambda told: told.update(weight="value"),
        lambda told: told.update(step=told["step"] * 2),
        lambda told: told["columns"].clear(),
        lambda told: told["columns"].append({**told["columns"][0], "column": "elsewhere"}),
        lambda told: told["columns"][0].update(total=7),
        lambda told: told["columns"][0]["rows"].pop(),
        lambda told: told["columns"][0]["rows"].reverse(),
        lambda told: told["columns"][0]["rows"][0].update(label="v9"),
        lambda told: told["columns"][0]["rows"][0].update(share=told["columns"][0]["rows"][0]["share"] + 0.005),
        lambda told: told["columns"][0]["rows"][0].update(weighted=told["columns"][0]["rows"][0]["weighted"] + 0.02),
        lambda told: told["columns"][0]["rows"][0].update(weighted=told["columns"][0]["rows"][0]["weighted"] + 1e-4),
    ],
)
def test_whatever_is_changed_fails(change: Callable[[dict[str, Any]], None]) -> None:
    joint, columns = table_of([2000, 100, 30, 900, 250, 10, 500, 10, 0])
    found = public_weighted(joint, ClassWeights("weight", MEANS))
    assert found is not None
    told: dict[str, Any] = {**found.model_dump()}
    told["columns"] = [{**one, "rows": [{**row} for row in one["rows"]]} for one in told["columns"]]
    assert not failures(told, columns)
    change(told)
    assert failures(told, columns)


def test_without_weights_nothing_is_told() -> None:
    joint, columns = table_of([5, 5, 5, 5, 5, 5])
    assert public_weighted(joint, None) is None
    assert [one.failure for one in weighted_claims(None, None, {}, {})] == [None]
    assert failures(None, columns)
