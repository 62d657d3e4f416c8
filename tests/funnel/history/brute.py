"""Brute force: distributions of histories over all trajectories, with fractions, from the rows of a panel alone."""

from __future__ import annotations

import decimal
from fractions import Fraction

import numpy as np
from hypothesis import strategies as st

import funnel
from tests.funnel.history.unit_brute import Cell, UnitReader

Wave = dict[int, Cell]
"""What everybody in a version is: (secret, input) by person."""


@st.composite
def panels(draw: st.DrawFn, most: int = 30) -> list[Wave]:
    """Three or four small versions: people join, leave and come back, and change with some probability."""
    c, a = draw(st.integers(2, 3)), draw(st.integers(2, 3))
    people = draw(st.integers(6, most))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    staying, present = draw(st.sampled_from([0.0, 0.6, 0.9, 1.0])), draw(st.sampled_from([0.5, 0.8, 1.0]))
    distribution = random.dirichlet(np.ones(c * a) * 2)
    now = random.choice(c * a, size=people, p=distribution)
    waves = []
    for _ in range(draw(st.integers(3, 4))):
        here = np.flatnonzero(random.random(people) < present)
        if not len(here):
            here = np.arange(people)
        waves.append({int(i): (int(now[i]) // a, int(now[i]) % a) for i in here})
        again = random.choice(c * a, size=people, p=distribution)
        now = np.where(random.random(people) < staying, now, again)
    return waves


def table_of(wave: Wave) -> dict[str, list[object]]:
    """A version as columns."""
    return {
        "id": list(wave),
        "s": [f"s{cell[0]}" for cell in wave.values()],
        "x": [f"x{cell[1]}" for cell in wave.values()],
    }


Distribution = dict[Cell, Fraction]


class Observer(UnitReader):
    """Knows the frequencies of every version and of every change between two, the rows, and what was published."""

    def __init__(self, waves: list[Wave]) -> None:
        super().__init__([{person: [cell] for person, cell in wave.items()} for wave in waves])

    def before(
        self, history: list[tuple[int, dict[int, Fraction]]], version: int, secret_of: int | None = None
    ) -> Distribution:
        """P(s, x | h) before a version: histories as (version, probability of what was published by input).

        Sums over every trajectory through the cells of all versions of the history; s is the secret at the end of it,
        or in the version of the history with the place ``secret_of``.
        """
        paths = [((cell,), p) for cell, p in self.first(history[0][0] if history else version).items()]
        for place, (number, given) in enumerate(history):
            told = [(path, p * given.get(path[-1][1], Fraction(0))) for path, p in paths]
            following = history[place + 1][0] if place + 1 < len(history) else version
            paths = [
                ((*path, after), p * q)
                for path, p in told
                if p
                for after, q in self.next_version(number, following, path[-1]).items()
            ]
        total: Distribution = {}
        for path, p in paths:
            cell = path[-1 if secret_of is None else secret_of][0], path[-1][1]
            total[cell] = total.get(cell, Fraction(0)) + p
        mass = sum(total.values())
        return {cell: p / mass for cell, p in total.items()}


def factor(epsilon: float) -> Fraction:
    """e^ε, from below."""
    with decimal.localcontext(decimal.Context(prec=50, rounding=decimal.ROUND_FLOOR)) as context:
        return Fraction(context.exp(decimal.Decimal(repr(epsilon))))


def limits(guarantee: funnel.Guarantee) -> tuple[Fraction | None, Fraction | None, Fraction | None]:
    """Largest lift, largest inverse lift, largest ratio of two; None where it is free."""
    if isinstance(guarantee, funnel.LDP):
        return None, None, factor(guarantee.epsilon)
    if isinstance(guarantee, funnel.LIP):
        return factor(guarantee.epsilon), factor(guarantee.epsilon), None
    if isinstance(guarantee, funnel.ALIP):
        return factor(guarantee.upper), factor(guarantee.lower), None
    if isinstance(guarantee, funnel.PML):
        return factor(guarantee.epsilon), None, None
    assert isinstance(guarantee, funnel.PerfectPrivacy)
    return Fraction(1), Fraction(1), None


def lifts(distribution: dict[int, Fraction], prior: dict[int, Fraction]) -> dict[int, Fraction]:
    """P(s | …)/P(s) of the secrets in the prior."""
    total = sum(distribution.values())
    return {s: distribution.get(s, Fraction(0)) / total / p for s, p in prior.items()}


def beyond(some: dict[int, Fraction], guarantee: funnel.Guarantee) -> bool:
    """Whether lifts are beyond the bound."""
    up, down, apart = limits(guarantee)
    most, least = max(some.values()), min(some.values())
    return bool(
        (up is not None and most > up)
        or (down is not None and least * down < 1)
        or (apart is not None and most > apart * least)
    )


def worse(some: dict[int, Fraction], before: dict[int, Fraction], guarantee: funnel.Guarantee, room: Fraction) -> bool:
    """Whether lifts are worse, in some respect, than the bound and than they were, by more than the room."""
    up, down, apart = limits(guarantee)
    for s, lift in some.items():
        if up is not None and lift > max(up, before[s]) * room:
            return True
        if down is not None and lift * room < min(1 / down, before[s]):
            return True
        for t, other in some.items():
            if apart is not None and lift > room * (apart * other + max(Fraction(0), before[s] - apart * before[t])):
                return True
    return False
