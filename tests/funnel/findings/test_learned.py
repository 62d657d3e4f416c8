"""The forest as an attacker: the same every time, and better than nothing only where there is something to learn."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from funnel.findings import learned
from funnel.findings.learned import learn
from tests import forest


@pytest.fixture(autouse=True)
def all_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learned, "_TREES", forest.ALL)


def people(records: int = 2000) -> np.ndarray:
    """Secret, input that goes with it, and a column of noise."""
    generator = np.random.default_rng(5)
    secret = generator.integers(0, 2, records)
    inputs = np.where(generator.random(records) < 0.9, secret, 1 - secret)
    return np.column_stack([secret, inputs, generator.integers(0, 3, records)])


def test_the_forest_learns_from_what_is_published_and_only_from_that() -> None:
    found = learn(people(), np.eye(2))
    assert found is not None
    assert (found.trained, found.tried, found.columns) == (1000, 1000, 1)
    # Nine in ten go together; a column of noise tells nothing.
    assert found.with_release > 0.85
    assert found.without < 0.6
    silent = learn(people(), np.full((2, 2), 0.5))
    assert silent is not None
    assert silent.with_release < 0.6
    assert learn(people(), np.eye(2)) == found


def test_there_is_nothing_to_learn_of_a_few_or_of_one_secret() -> None:
    assert learn(people(20), np.eye(2)) is None
    same = people()
    same[:, 0] = 1
    assert learn(same, np.eye(2)) is None


def test_without_other_columns_only_the_record_tells() -> None:
    found = learn(people()[:, :2], np.eye(2))
    assert found is not None
    assert found.without == found.prior
    assert found.with_release > 0.85


def test_the_library_may_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.ensemble", None)
    with pytest.raises(ImportError):
        learn(people(), np.eye(2))
