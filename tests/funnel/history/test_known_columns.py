"""Observers of a history who know published columns: all histories of two versions gone through, in fractions."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest

import funnel
from funnel.errors import DataError, SpecError
from funnel.history.step import Step
from tests.funnel.history.brute import Cell, Observer, Wave, beyond, lifts, worse

VALUES = [(x, z) for x in range(2) for z in range(2)]
ROOM = 1 + Fraction(1, 10**9)
BUDGET = 0.5
SEEDS = range(4)
GUARANTEES = (funnel.SRLIP(BUDGET), funnel.Attribute(BUDGET))

Lifts = dict[int, Fraction]
Known = tuple[int, ...]
"""Which of the two columns an observer knows."""
KNOWN: tuple[Known, ...] = tuple(known for size in range(3) for known in combinations(range(2), size))


def panel(seed: int, people: int = 60) -> list[Wave]:
    """Two versions of two columns, one of which goes with the secret; some people are in one of them alone."""
    rng = np.random.default_rng(seed)
    ill = rng.random(people) < 0.4
    x, z = (rng.random(people) < np.where(ill, 0.7, 0.3)).astype(int), rng.integers(0, 2, people)
    waves = []
    for _ in range(2):
        here = np.flatnonzero(rng.random(people) < 0.9)
        waves.append({int(i): (int(ill[i]), 2 * int(x[i]) + int(z[i])) for i in here})
        changes, again = rng.random(people) < 0.3, rng.random(people) < 0.4
        ill = np.where(changes, again, ill)
        x = np.where(changes, rng.random(people) < np.where(ill, 0.7, 0.3), x).astype(int)
        z = np.where(rng.random(people) < 0.2, 1 - z, z)
    return waves


def published(waves: list[Wave], guarantee: funnel.Guarantee) -> list[Step]:
    book = funnel.History(guarantee, observers=["transitions"])
    for number, wave in enumerate(waves):
        columns = {"ill": [], "x": [], "z": []}
        for s, cell in wave.values():
            for name, value in zip(columns, (s, *VALUES[cell]), strict=True):
                columns[name].append(f"{name}{value}")
        book.extend(
            pa.table({"id": list(wave), **columns}),
            key=["id"],
            secret=["ill"],
            inputs=["x", "z"],
            version=f"v{number}",
            secret_bytes=bytes(range(32)),
        )
    return list(book.steps)


def values_of(cell: Cell, known: Known) -> tuple[int, ...]:
    return tuple(VALUES[cell[1]][place] for place in known)


def rows(step: Step, history: tuple[tuple[str, int], ...]) -> list[list[Fraction]]:
    """R(y | x, h) of a version, by output and by the cell's number of x and z."""
    weights = step.rows_for(history)
    place = {symbol: i for i, symbol in enumerate(step.channel.inputs.symbols)}
    order = [place[f"x{x}", f"z{z}"] for x, z in VALUES]
    return [[Fraction(int(row[i]), 2**63) for i in order] for row in weights]


def believed(waves: list[Wave], steps: list[Step]) -> Iterator[tuple[str, int | None, Known, str, int, Lifts, Lifts]]:
    """Of every history and output: version, secret of, what is known and its value, people, and lifts before and after.

    All trajectories through the cells of both versions, each with the probability of what was published on the way.
    """
    observer = Observer(waves)
    first = rows(steps[0], ())
    followed = Counter(step_people(steps[1]))
    for history in ((), *((("v0", y),) for y in range(len(first)))):
        number = 1 if history else 0
        for version in {0: (0, 1), 1: (1,)}[number]:
            if not history:
                paths = {(cell,): p for cell, p in observer.distribution(version).items()}
            else:
                paths = {
                    (cell, after): p * first[history[0][1]][cell[1]] * q
                    for cell, p in observer.distribution(0).items()
                    for after, q in observer.change(0, 1, cell).items()
                }
            whole = sum(paths.values())
            if not whole:
                continue
            answers = rows(steps[version], history)
            people = followed[history] if version else len(waves[0])
            for secret_of in (None, 0) if history else (None,):
                at = -1 if secret_of is None else 0
                counted = prior_cells(waves, version, bool(history), secret_of)
                for known in KNOWN:
                    for value in sorted({values_of(cell, known) for cell in counted}):
                        prior = Counter()
                        for cell, n in counted.items():
                            if values_of(cell, known) == value:
                                prior[cell[0]] += n
                        shares = {s: Fraction(n, prior.total()) for s, n in prior.items()}
                        inside = {path: p for path, p in paths.items() if values_of(path[at], known) == value}
                        if not sum(inside.values()):
                            continue
                        before = lifts(by_secret(inside, at), shares)
                        expected = people * sum(inside.values()) / whole
                        for row in answers:
                            told = {path: p * row[path[-1][1]] for path, p in inside.items()}
                            if sum(told.values()):
                                after = lifts(by_secret(told, at), shares)
                                yield f"v{version}", secret_of, known, repr((history, value)), expected, before, after


def step_people(step: Step) -> dict[tuple[tuple[str, int], ...], int]:
    found: dict[tuple[tuple[str, int], ...], int] = {}
    for node, records in zip(step.observed.nodes.tolist(), step.observed.records.tolist(), strict=True):
        history = tuple(step.past.history(node))
        found[history] = found.get(history, 0) + records
    return found


def prior_cells(waves: list[Wave], version: int, has_history: bool, secret_of: int | None) -> Counter[Cell]:
    """Whom the prior counts: people of the version of the secret who came to it with such a history."""
    if secret_of is not None:
        return Counter(waves[secret_of].values())
    here = waves[version]
    return Counter(cell for i, cell in here.items() if not has_history or i in waves[0])


def by_secret(paths: dict[tuple[Cell, ...], Fraction], at: int) -> dict[int, Fraction]:
    found: dict[int, Fraction] = {}
    for path, p in paths.items():
        found[path[at][0]] = found.get(path[at][0], Fraction()) + p
    return found


def asked(guarantee: funnel.Guarantee, known: Known) -> funnel.Guarantee:
    if isinstance(guarantee, funnel.Attribute) and len(known) == 2:
        return funnel.LDP(BUDGET)
    return funnel.LIP(BUDGET)


@pytest.mark.parametrize("guarantee", GUARANTEES, ids=str)
@pytest.mark.parametrize("seed", SEEDS)
def test_no_answer_tells_more_to_those_who_know_columns(guarantee: funnel.Guarantee, seed: int) -> None:
    waves = panel(seed)
    steps = published(waves, guarantee)
    moved: dict[tuple[int | None, Known], dict[str, Fraction]] = {}
    outside: dict[tuple[int | None, Known], dict[str, Fraction]] = {}
    for version, secret_of, known, place, people, before, after in believed(waves, steps):
        bound = asked(guarantee, known)
        if beyond(before, bound):
            assert not worse(after, before, bound, ROOM), (version, secret_of, known, place)
        else:
            assert not beyond(after, bound), (version, secret_of, known, place)
        if version == "v1":
            for found, what in ((moved, before), (outside, after)):
                of = found.setdefault((secret_of, known), {})
                if beyond(what, bound):
                    of[place] = people
    told = {(one.observer, one.secret_of): one for one in steps[1].by_observer}
    # Movers and stayers are told of besides, and not bounded here.
    assert len(told) == 2 * len(moved) == 4 * len(KNOWN)
    for (secret_of, known), places in moved.items():
        knows = " and ".join("xz"[place] for place in known)
        one = told[f"transitions, knowing {knows}" if known else "transitions", None if secret_of is None else "v0"]
        assert one.bounded
        assert one.moved == math.ceil(sum(places.values()))
        assert one.outside == math.ceil(sum(outside[secret_of, known].values()))


def test_a_bound_for_who_knows_nothing_is_none_for_them() -> None:
    found = set()
    for seed in SEEDS:
        waves = panel(seed)
        for version, secret_of, known, _, _, before, after in believed(waves, published(waves, funnel.LIP(BUDGET))):
            if not beyond(before, funnel.LIP(BUDGET)) and beyond(after, funnel.LIP(BUDGET)):
                found.add((version, secret_of, known))
    assert all(known for _, _, known in found)
    # In a version itself, and of the secret of an earlier one.
    assert {("v0", None), ("v1", None), ("v1", 0)} <= {(version, secret_of) for version, secret_of, _ in found}


def test_what_is_not_bounded_is_refused() -> None:
    waves = panel(0)
    with pytest.raises(SpecError, match="no bound on the posterior"):
        published(waves, funnel.MutualInformation(BUDGET))
    book = funnel.History(funnel.Attribute(1.0))
    table = {"id": [1, 2, 3, 4], "ill": ["a", "b", "a", "b"], "x": ["u", "u", "v", "v"]}
    with pytest.raises((SpecError, DataError), match="publish"):
        book.extend(
            pa.table(table),
            key=["id"],
            secret=["ill"],
            inputs=["ill", "x"],
            version="v0",
            secret_bytes=bytes(range(32)),
        )
