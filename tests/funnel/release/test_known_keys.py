"""Strata of counts: secrets by the other columns, neighbours of few records in one."""

from __future__ import annotations

from collections import Counter

import numpy as np

from funnel.joint import IntArray
from funnel.release.known_keys import _strata
from funnel.tails import likeness

Counts = Counter[tuple[str, ...]]


def counts_of(ill: IntArray, people: int) -> Counts:
    """Of strata of so many people each."""
    return Counter(
        {(secret, f"{x:02}"): n for x, k in enumerate(ill.tolist()) for secret, n in (("ill", k), ("well", people - k))}
    )


def together(first: Counts, second: Counts) -> float:
    cells = sorted(first.keys() | second.keys())
    return likeness([(np.array([first[cell] for cell in cells]), np.array([second[cell] for cell in cells]))])


def test_other_people_of_a_stratified_sample_are_not_too_alike() -> None:
    """As many of each stratum in both samples, and few are ill: all counts together are too alike, by strata not."""
    random = np.random.default_rng(7)
    shares = random.uniform(0.005, 0.03, 80)
    first, second = (counts_of(random.binomial(400, shares), 400) for _ in range(2))
    assert together(first, second) < 1e-6
    assert likeness(_strata(first, second, 1)) > 0.01
    fewer = first.copy()
    fewer["ill", "11"] -= 1
    assert likeness(_strata(first, fewer, 1)) < 1e-6


def test_every_count_is_in_one_stratum() -> None:
    first: Counts = Counter({("ill", "a"): 60, ("well", "a"): 70, ("ill", "b"): 3, ("well", "c"): 2})
    second: Counts = Counter({("ill", "a"): 4, ("dead", "a"): 1, ("well", "c"): 5, ("ill", "c"): 1})
    found = [tuple(counts.tolist() for counts in stratum) for stratum in _strata(first, second, 1)]
    # Of those who are dead, ill and well: nobody else than in "a" is there often enough.
    assert found == [([0, 63, 72], [1, 5, 5])]
    first["ill", "b"], first["well", "b"] = 55, 90
    found = [tuple(counts.tolist() for counts in stratum) for stratum in _strata(first, second, 1)]
    assert found == [([0, 60, 70], [1, 4, 0]), ([55, 92], [1, 5])]


def test_without_a_secret_in_common_all_counts_are_one_stratum() -> None:
    first: Counts = Counter({("a",): 2, ("b",): 1})
    ((one, other),) = _strata(first, Counter({("b",): 3}), 0)
    assert (one.tolist(), other.tolist()) == ([2, 1], [0, 3])
