"""Observers of a history who know published columns: all histories of two versions gone through, in fractions."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest

import funnel
from funnel.errors import DataError, SpecError
from funnel.history.step import Step
from tests.funnel.history.brute import beyond, lifts, worse
from tests.funnel.history.populations import book_of
from tests.funnel.history.test_members import HouseholdReader
from tests.funnel.history.unit_brute import Cell, Version

VALUES = [(x, z) for x in range(2) for z in range(2)]
ROOM = 1 + Fraction(1, 10**9)
BUDGET = 0.5
SEEDS = range(4)
GUARANTEES = (funnel.SRLIP(BUDGET), funnel.Attribute(BUDGET))

Lifts = dict[int, Fraction]
History = tuple[tuple[str, int], ...]
Known = tuple[int, ...]
"""Which of the two columns an observer knows."""
KNOWN: tuple[Known, ...] = tuple(known for size in range(3) for known in combinations(range(2), size))


def panel(seed: int, people: int = 60) -> list[Version]:
    """Two versions of two columns, one of which goes with the secret; some people are in one of them alone."""
    rng = np.random.default_rng(seed)
    ill = rng.random(people) < 0.4
    x, z = (rng.random(people) < np.where(ill, 0.7, 0.3)).astype(int), rng.integers(0, 2, people)
    waves = []
    for _ in range(2):
        here = np.flatnonzero(rng.random(people) < 0.9)
        waves.append({int(i): [(int(ill[i]), 2 * int(x[i]) + int(z[i]))] for i in here})
        changes, again = rng.random(people) < 0.3, rng.random(people) < 0.4
        ill = np.where(changes, again, ill)
        x = np.where(changes, rng.random(people) < np.where(ill, 0.7, 0.3), x).astype(int)
        z = np.where(rng.random(people) < 0.2, 1 - z, z)
    return waves


def published(waves: list[Version], guarantee: funnel.Guarantee) -> list[Step]:
    return list(book_of(guarantee, map(table, waves), inputs=["x", "z"], observers=["transitions"]).steps)


def table(wave: Version) -> pa.Table:
    rows = [(s, *VALUES[cell]) for ((s, cell),) in wave.values()]
    columns = {name: [f"{name}{row[i]}" for row in rows] for i, name in enumerate(("ill", "x", "z"))}
    return pa.table({"id": list(wave), **columns})


def values_of(cell: Cell, known: Known) -> tuple[int, ...]:
    return tuple(VALUES[cell[1]][place] for place in known)


def by_secret(paths: dict[tuple[Cell, ...], Fraction], at: int) -> dict[int, Fraction]:
    found: dict[int, Fraction] = {}
    for path, p in paths.items():
        found[path[at][0]] = found.get(path[at][0], Fraction()) + p
    return found


class Belief(NamedTuple):
    """What is believed before and after an output: by whom, of which row, and of how many with the history."""

    version: int
    row: int
    secret_of: str | None
    place: int
    known: Known
    value: str
    history: History
    expected: Fraction
    before: Lifts
    after: Lifts


def believed(reader: HouseholdReader, steps: list[Step]) -> Iterator[Belief]:
    """Of every history, output, row that something is known of, and what that is."""
    waves = {wave.version: wave for step in steps for wave in step.waves or (step,)}
    for t, step in enumerate(steps):
        deepest = max(map(len, reader.versions[t].values()))
        for row, wave in enumerate(step.waves or (step,)):
            for node in wave.followed.tolist():
                history = tuple(wave.past.history(node))
                rows = Counter(int(name[1:].partition("#")[0]) for name, _ in history)
                rows[t] = deepest
                seen = sorted(rows.items())
                weights: dict[Any, Fraction] = {path: Fraction(n) for path, n in reader.paths(seen).items()}
                for at, (name, output) in enumerate(history):
                    drawn = numbers(waves[name], history[:at])[output]
                    weights = {path: n * drawn[path[at][1]] for path, n in weights.items()}
                now, whole = len(history), sum(weights.values())
                answers = numbers(wave, history)
                asked_of = [(None if v == t else f"v{v}", v, k) for v, count in seen for k in range(count)]
                before_of = {v: seen[i - 1][0] if i else None for i, (v, _) in enumerate(seen)}
                for place, (secret_of, v, k) in enumerate(asked_of):
                    prior = reader.cells_before(before_of[v], v, k)
                    for known in KNOWN:
                        for value in sorted({values_of(cell, known) for cell in prior}):
                            inside = {p: n for p, n in weights.items() if values_of(p[place], known) == value}
                            if not (mass := sum(inside.values())):
                                continue
                            shares = by_secret({(c,): n for c, n in prior.items() if values_of(c, known) == value}, 0)
                            total = sum(shares.values())
                            shares = {s: n / total for s, n in shares.items()}
                            before = lifts(by_secret(inside, place), shares)
                            expected = people_of(wave, node) * mass / whole
                            for answer in answers:
                                told = {path: n * answer[path[now][1]] for path, n in inside.items()}
                                if sum(told.values()):
                                    after = lifts(by_secret(told, place), shares)
                                    what = (known, str(value), history, expected)
                                    yield Belief(t, row, secret_of, place, *what, before, after)


def people_of(wave: Step, node: int) -> int:
    return int(wave.observed.records[wave.observed.nodes == node].sum())


def numbers(wave: Step, history: History) -> list[list[Fraction]]:
    """R(y | x, h), by output and by the cell's number of x and z."""
    place = {symbol: i for i, symbol in enumerate(wave.channel.inputs.symbols)}
    order = [place[f"x{x}", f"z{z}"] for x, z in VALUES]
    return [[Fraction(int(row[i]), 2**63) for i in order] for row in wave.rows_for(history)]


def asked(guarantee: funnel.Guarantee, known: Known) -> funnel.Guarantee:
    if isinstance(guarantee, funnel.Attribute) and len(known) == 2:
        return funnel.LDP(BUDGET)
    return funnel.LIP(BUDGET)


@pytest.mark.parametrize("guarantee", GUARANTEES, ids=str)
@pytest.mark.parametrize("seed", SEEDS)
def test_no_answer_tells_more_to_those_who_know_columns(guarantee: funnel.Guarantee, seed: int) -> None:
    waves = panel(seed)
    steps = published(waves, guarantee)
    moved: dict[tuple[str | None, Known], dict[tuple[History, str], Fraction]] = {}
    outside: dict[tuple[str | None, Known], dict[tuple[History, str], Fraction]] = {}
    for one in believed(HouseholdReader(waves), steps):
        bound = asked(guarantee, one.known)
        if beyond(one.before, bound):
            assert not worse(one.after, one.before, bound, ROOM), one
        else:
            assert not beyond(one.after, bound), one
        for found, what in ((moved, one.before), (outside, one.after)) if one.version else ():
            of = found.setdefault((one.secret_of, one.known), {})
            if beyond(what, bound):
                of[one.history, one.value] = one.expected
    told = {(one.observer, one.secret_of): one for one in steps[1].by_observer}
    # Movers and stayers are told of besides, and not bounded here.
    assert len(told) == 2 * len(moved) == 4 * len(KNOWN)
    for (secret_of, known), places in moved.items():
        knows = " and ".join("xz"[place] for place in known)
        one = told[f"transitions, knowing {knows}" if known else "transitions", secret_of]
        assert one.bounded
        assert one.moved == math.ceil(sum(places.values()))
        assert one.outside == math.ceil(sum(outside[secret_of, known].values()))


def test_a_bound_for_who_knows_nothing_is_none_for_them() -> None:
    found = set()
    for seed in SEEDS:
        waves = panel(seed)
        for one in believed(HouseholdReader(waves), published(waves, funnel.LIP(BUDGET))):
            if not beyond(one.before, funnel.LIP(BUDGET)) and beyond(one.after, funnel.LIP(BUDGET)):
                found.add((one.version, one.secret_of, one.known))
    assert all(known for _, _, known in found)
    # In a version itself, and of the secret of an earlier one.
    assert {(0, None), (1, None), (1, "v0")} <= {(version, secret_of) for version, secret_of, _ in found}


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
