"""Pairing and equal means: masses are kept, and donors are as close as was asked for."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from funnel.donors.equal_means import equal_means
from funnel.donors.pairing import agreements, paired


@pytest.mark.parametrize("columns", [1, 2, 3, 5, 12, 30, 300])
def test_all_is_paired_in_the_end(columns: int) -> None:
    found = list(agreements(columns))
    sizes = [len(kept) for kept in found]
    assert found[-1] == ()
    assert sizes == sorted(sizes, reverse=True)
    assert len(found) == len(set(found)) <= 100 + columns
    # Of two columns the first is agreed on before the second.
    assert columns != 2 or found == [(0,), (1,), ()]


@st.composite
def moves(draw: st.DrawFn) -> tuple[np.ndarray, tuple[np.ndarray, ...], tuple[np.ndarray, ...]]:
    """Values of up to eight records, movers of classes 0 and 1, and as much room of each class."""
    a = draw(st.integers(2, 8))
    codes = np.array([[draw(st.integers(0, 2)) for _ in range(3)] for _ in range(a)])
    classes = np.array([draw(st.integers(0, 1)) for _ in range(a)])
    mass = np.array([draw(st.integers(1, 50)) for _ in range(a)])
    movers = (np.arange(a), classes, mass)
    into, sources, room = [], [], []
    for source in np.unique(classes).tolist():
        left = int(mass[classes == source].sum())
        while left:
            some = draw(st.integers(1, left))
            into.append(draw(st.integers(0, a - 1)))
            sources.append(source)
            room.append(some)
            left -= some
    return codes, movers, (np.array(into), np.array(sources), np.array(room))


@given(moves())
def test_masses_are_kept(given_: tuple[np.ndarray, tuple[np.ndarray, ...], tuple[np.ndarray, ...]]) -> None:
    codes, movers, places = given_
    left, taken, mass = paired(codes, movers, places)  # type: ignore[arg-type]
    a = len(codes)
    assert (mass > 0).all()
    assert len(set(zip(left.tolist(), taken.tolist(), strict=True))) == len(left) <= len(movers[0]) + len(places[0])
    assert np.bincount(left, mass, a).tolist() == movers[2].tolist()
    # By record and class of the mover, what is taken is the room there was.
    room = np.zeros((2, a))
    np.add.at(room, (places[1], places[0]), places[2])
    found = np.zeros((2, a))
    np.add.at(found, (movers[1][left], taken), mass)
    assert (room == found).all()


def test_donors_are_the_closest() -> None:
    codes = np.array([[0, 0, 0], [1, 1, 1], [0, 0, 5], [1, 4, 1], [7, 0, 0]])
    movers = (np.array([0, 1]), np.array([0, 0]), np.array([5, 5]))
    places = (np.array([2, 3, 4]), np.array([0, 0, 0]), np.array([3, 5, 2]))
    left, taken, mass = paired(codes, movers, places)
    # Record 0 agrees with 2 in its first two columns and with 4 in its last two, 1 with 3 in two.
    assert list(zip(left.tolist(), taken.tolist(), mass.tolist(), strict=True)) == [(0, 2, 3), (0, 4, 2), (1, 3, 5)]


@given(st.integers(2, 4), st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_equal_means(c: int, k: int, seed: int) -> None:
    made = np.random.default_rng(seed)
    posteriors = made.dirichlet(np.full(c, 0.4), k).T
    masses = np.floor(made.exponential(1e6, k)) + 1
    parts = equal_means(posteriors, masses)
    mean = posteriors @ masses / masses.sum()
    assert parts.sum(axis=0) == pytest.approx(masses, rel=1e-9)
    assert (parts >= 0).all()
    assert len(parts) <= k + 1
    for part in parts[:-1]:
        assert (part > 0).sum() <= c
        # Parts that are rounding of what was cut off may have any mean.
        assert posteriors @ part / masses.sum() == pytest.approx(mean * part.sum() / masses.sum(), abs=1e-10)


def test_masses_that_are_not_cut_stay_together(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise RuntimeError("Maximum number of iterations reached.")

    monkeypatch.setattr("scipy.optimize.nnls", fails)
    parts = equal_means(np.array([[1.0, 0.0, 0.5], [0.0, 1.0, 0.5]]), np.array([3.0, 3.0, 1.0]))
    assert parts.tolist() == [[3.0, 3.0, 1.0]]
