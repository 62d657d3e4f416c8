"""A table of three columns and a binary secret that goes with all of them, and one of four secrets."""

from __future__ import annotations

import numpy as np
import pytest

import funnel


def tabled(secrets: int, sizes: tuple[int, ...], seed: int, n: int = 3000) -> funnel.Joint:
    """Counts of records whose columns depend on the secret and on each other."""
    random = np.random.default_rng(seed)
    laws = random.dirichlet(np.full(int(np.prod(sizes)), 0.4), size=secrets)
    prior = random.dirichlet(np.full(secrets, 4.0))
    counts = random.multinomial(n, (prior[:, None] * laws).ravel()).reshape(secrets, -1)
    names = ("x", "y", "z", "w")[: len(sizes)]
    symbols = [tuple(f"{c}{i}" for c, i in zip(names, at, strict=True)) for at in np.ndindex(*sizes)]
    seen = counts.sum(axis=0) > 0
    inputs = funnel.Alphabet(names, tuple(symbol for symbol, there in zip(symbols, seen, strict=True) if there))
    return funnel.Joint.from_counts(counts[:, seen], inputs=inputs)


@pytest.fixture(scope="session")
def binary() -> funnel.Joint:
    return tabled(2, (5, 3, 4), seed=3)


@pytest.fixture(scope="session")
def several() -> funnel.Joint:
    return tabled(4, (4, 3, 2), seed=5, n=4000)


@pytest.fixture(scope="session")
def made(binary: funnel.Joint) -> funnel.groups.GroupedSolution:
    schedule = funnel.groups.Schedule(0.8, 4)
    return funnel.publish_groups(binary, [["x"], ["y"], ["z"]], funnel.LIP(0.7), people=30, schedule=schedule)
