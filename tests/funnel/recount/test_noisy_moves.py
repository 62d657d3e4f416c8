"""Tables of changes and rows with noise: what they may look like, and how an epsilon is split for them."""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import deepcopy
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from funnel.recount.noise import scale_of
from funnel.recount.noisy_moves import (
    MOST_ROWS,
    SENSITIVITY,
    NoisyChanges,
    NoisyDepartures,
    NoisyRows,
    average_complaints,
    change_complaints,
    row_complaints,
    since_complaints,
    split_complaints,
)
from funnel.recount.reading import read

CHANGES: dict[str, Any] = {
    "epsilon": 0.25,
    "scale": 8.0,
    "since": [
        {
            "version": "people/1.0.0",
            "secrets": [[5, -1], [0, 7]],
            "stayed": [[3, 0], [4, 0]],
            "left": [[1, 2], [-3, 4]],
        },
        {"version": "people/1.1.0", "secrets": [[5, -1]], "stayed": [[3]], "left": [[1]]},
    ],
}
ROWS: dict[str, Any] = {
    "epsilon": 0.25,
    "scale": 8.0,
    "stayed": [[1, 2], [3, 4]],
    "left": [[1, 2], [3, -4]],
    "sizes": [9, 3, *[0] * (MOST_ROWS - 2)],
}


@given(st.floats(1e-3, 1e3))
def test_the_scale_is_the_least_that_costs_no_more(epsilon: float) -> None:
    scale = scale_of(epsilon, SENSITIVITY)
    assert Fraction(scale) * Fraction(epsilon) >= 2 > Fraction(math.nextafter(scale, 0.0)) * Fraction(epsilon)


def test_tables_as_they_should_be_are_read() -> None:
    changes, rows = read(NoisyChanges, CHANGES), read(NoisyRows, ROWS)
    assert changes is not None
    assert rows is not None
    assert list(change_complaints(changes, 2)) == []
    assert list(row_complaints(rows, 2, 2)) == []
    assert changes.arrived == (5 - 1 + 7, 5 - 1)
    first = changes.since[0]
    assert list(since_complaints(first, (["no", "yes"], ["a", "b"]), ["a", "c"])) == []


def spoilt(said: dict[str, Any], change: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    found = deepcopy(said)
    change(found)
    return found


@pytest.mark.parametrize(
    "change",
    [
        lambda said: said.update(exact=[[1, 2]]),
        lambda said: said.pop("scale"),
        lambda said: said.update(epsilon=0),
        lambda said: said.update(epsilon=True),
        lambda said: said.update(scale=math.inf),
        lambda said: said.update(scale="8.0"),
        lambda said: said.update(since=3),
        lambda said: said["since"][0].update(version=7),
        lambda said: said["since"][0].update(arrived=[[1]]),
        lambda said: said["since"][0].update(stayed=[[3, 0], [4]]),
        lambda said: said["since"][0].update(left=[[1.0, 2], [3, 4]]),
        lambda said: said["since"][0].update(left=[[True, 2], [3, 4]]),
        lambda said: said["since"][0].update(secrets=[]),
    ],
)
def test_changes_of_another_form_are_none(change: Callable[[dict[str, Any]], object]) -> None:
    with pytest.raises((ValueError, TypeError, KeyError, AttributeError)):
        read(NoisyChanges, spoilt(CHANGES, change))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda said: said.update(scale=4.0), "not the least one"),
        (lambda said: said.update(scale=9.0), "not the least one"),
        (lambda said: said.update(since=[]), "since no version"),
        (lambda said: said["since"][1].update(version="people/1.0.0"), "twice"),
        (lambda said: said["since"][1].update(secrets=[[5, -1, 0]]), "do not lead to its values"),
        (lambda said: said["since"][1].update(left=[[1, 2]]), "do not fit each other"),
        (lambda said: said["since"][1].update(stayed=[[1], [2]]), "do not fit each other"),
    ],
)
def test_changes_that_do_not_fit_are_told(change: Callable[[dict[str, Any]], object], said: str) -> None:
    changes = read(NoisyChanges, spoilt(CHANGES, change))
    assert changes is not None
    assert any(said in one for one in change_complaints(changes, 2))


def test_changes_since_a_version_fit_its_values() -> None:
    changes = read(NoisyChanges, CHANGES)
    assert changes is not None
    first = changes.since[0]
    (fit,) = since_complaints(first, (["no", "yes"], ["a", "b", "c"]), ["a"])
    assert "do not fit its values" in fit
    # Who had an input that there is no longer cannot have stayed.
    (stayed,) = since_complaints(first, (["no", "yes"], ["a", "b"]), ["b", "c"])
    assert "nobody can be any more" in stayed


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda said: said.update(scale=4.0), "not the least one"),
        (lambda said: said.update(stayed=[[1, 2]]), "do not fit the values"),
        (lambda said: said.update(left=[[1], [2]]), "do not fit the values"),
        (lambda said: said.update(sizes=[9, 3]), "100 rows"),
    ],
)
def test_rows_that_do_not_fit_are_told(change: Callable[[dict[str, Any]], object], said: str) -> None:
    rows = read(NoisyRows, spoilt(ROWS, change))
    assert rows is not None
    assert any(said in one for one in row_complaints(rows, 2, 2))


@pytest.mark.parametrize(
    ("told", "counts", "changes", "rows", "holds"),
    [
        (1.0, 1.0, None, None, True),
        (1.0, 0.75, 0.25, None, True),
        (1.0, 0.75, None, 0.25, True),
        (1.0, 0.5, 0.25, 0.25, True),
        # Drawn when nothing went to changes, and not again: the version costs more.
        (1.25, 1.0, 0.25, None, True),
        (1.0, 1.0, 0.25, None, False),
        (1.3, 1.0, 0.25, None, False),
        (1.0, 0.75, None, None, False),
        (1.0, 0.5, 0.5, None, False),
        (1.0, 0.7, 0.25, None, False),
        (1.0, 0.75, math.nextafter(0.25, 1.0), None, False),
        (1.0, math.nextafter(0.75, 1.0), 0.25, None, False),
        (0.9, 0.75, 0.25, None, False),
        (1.0, 0.25, 0.25, 0.25, False),
    ],
)
def test_an_epsilon_is_split_as_it_is_said(
    told: float, counts: float, changes: float | None, rows: float | None, holds: bool
) -> None:
    assert (list(split_complaints(Fraction(1), Fraction(0), told, counts, changes, rows)) == []) is holds


def test_what_learning_values_costs_is_taken_off_first() -> None:
    declared, learning = Fraction(1), Fraction(1, 4)
    parts = (0.5625, 0.1875)
    assert list(split_complaints(declared, learning, 1.0, *parts, None)) == []
    assert list(split_complaints(declared, Fraction(0), 1.0, *parts, None)) != []


@pytest.mark.parametrize(
    ("length", "scale", "counts", "said"),
    [
        (1 << 20, 2.0**22, (5, -3), None),
        (1 << 20, 2.0**21, (5, -3), "not the least one"),
        (1 << 21, 2.0**22, (5, -3), "not the least one"),
        (0, 2.0**22, (5, -3), "nobody may add anything"),
        (1 << 20, 2.0**22, (5, -3, 1), "do not fit the published values"),
        (1 << 20, 2.0**22, (), "do not fit the published values"),
    ],
)
def test_departures_that_do_not_fit_are_told(
    length: int, scale: float, counts: tuple[int, ...], said: str | None
) -> None:
    found = list(average_complaints("departures", NoisyDepartures(0.25, scale, counts, length), 2))
    assert (found == []) is (said is None)
    assert said is None or any(said in one for one in found)
