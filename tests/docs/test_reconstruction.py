"""What the pages say of reconstruction is what the benchmark found, and its attacks find what there is to find."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks import reconstruction
from benchmarks.attacks import Conditions, recovered, told_by_two
from funnel.joint import Joint

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results"


@pytest.fixture(scope="module")
def results() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((RESULTS / "reconstruction.json").read_text(encoding="utf-8"))
    return found


def test_the_page_of_results_is_that_of_the_results(results: dict[str, Any]) -> None:
    assert list(results) == ["small", "adult", "census"]
    page = (RESULTS / "reconstruction.md").read_text(encoding="utf-8")
    assert page == reconstruction.page_of(results)


def test_limitations_quotes_the_results(results: dict[str, Any]) -> None:
    said = " ".join((ROOT / "docs" / "limitations-figures.md").read_text(encoding="utf-8").split())
    sentences = reconstruction.quoted(results)
    assert len(sentences) >= 3
    for sentence in sentences:
        assert sentence in said, sentence


@settings(max_examples=15, deadline=None)
@given(st.lists(st.integers(0, 4), min_size=4, max_size=4).filter(any), st.integers(0, 3), st.integers(0, 3))
def test_cells_are_recovered_where_and_only_where_one_table_is_left(counts: list[int], low: int, high: int) -> None:
    """Against all tables of four cells: margins of the secret known exactly, of the values to an interval."""
    truth = np.array(counts).reshape(2, 2)
    n = int(truth.sum())
    conditions = Conditions((2, 2), n)
    conditions.secrets(truth.sum(axis=1) / n, truth.sum(axis=1) / n)
    columns = truth.sum(axis=0)
    conditions.inputs((columns - low) / n, (columns + high) / n)
    fitting = [
        table
        for table in (np.array(cells).reshape(2, 2) for cells in itertools.product(range(n + 1), repeat=4))
        if table.sum() == n
        and (table.sum(axis=1) == truth.sum(axis=1)).all()
        and (table.sum(axis=0) >= columns - low).all()
        and (table.sum(axis=0) <= columns + high).all()
    ]
    single = sum(len({int(table.ravel()[cell]) for table in fitting}) == 1 for cell in range(4))
    found = recovered(conditions, truth)
    assert found.recovered == single
    assert found.recovered + found.open <= found.cells == 4


def test_counts_that_do_not_fit_are_a_fault_of_the_attack() -> None:
    conditions = Conditions((1, 2), 5)
    with pytest.raises(ValueError, match="misread"):
        recovered(conditions, np.array([[1, 3]]))


def test_one_person_is_told_by_exact_counts_and_not_by_rough_ones() -> None:
    with_person, without = np.array([[5, 3], [2, 6]]), np.array([[5, 3], [2, 5]])
    for slack, answer in ((0, "yes"), (2, "no")):
        read = []
        for counts in (with_person, without):
            conditions = Conditions((2, 2), int(counts.sum()))
            for cell in range(4):
                row = np.eye(4)[cell].reshape(2, 2)
                conditions.between(row, counts.ravel()[cell] - slack, counts.ravel()[cell] + slack)
            read.append(conditions)
        assert told_by_two(*read, with_person, person=3) == answer


def test_what_is_read_from_figures_fits_the_counts_they_were_made_of() -> None:
    """A small table: everything is recovered of what was public before, and nothing of what is now."""
    joint = Joint.from_counts([[41, 73, 12], [19, 8, 47]])
    for mode, protocol in reconstruction.releases_of(joint).items():
        found = reconstruction.attacked(joint, protocol, reconstruction.READ[mode](joint, protocol))
        assert found["all"]["recovered"] == (6 if mode == "before" else 0)
