"""Populations that samples or noise leave open: how people change in one, and what every history is told there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import beta

import funnel
from funnel.history.past import Chapter
from funnel.history.step import Step
from funnel.history.unit_rows import UnitRows
from funnel.joint import IntArray

Limits = tuple[float, float]
Shares = list[Fraction]
Known = tuple[Shares, Shares]
"""A distribution over cells, up to a factor, and how common secrets are among those whose it is."""


def clopper_pearson(number: int, trials: int, tail: float) -> Limits:
    """As scipy has it: nothing of how funnel finds limits."""
    low = float(beta.ppf(tail, number, trials - number + 1)) if number else 0.0
    return low, float(beta.isf(tail, number + 1, trials - number)) if number < trials else 1.0


def end(limits: Iterable[float], drawn: np.random.Generator) -> Fraction:
    """One of two limits."""
    return Fraction(float(tuple(limits)[drawn.integers(0, 2)]))


def corner(limits: Iterable[Iterable[float]], drawn: np.random.Generator) -> Shares:
    """Shares between limits, the least and largest of each: some as large as all others leave them."""
    ends = [[Fraction(float(one)) for one in pair] for pair in limits]
    found, left = [low for low, _ in ends], 1 - sum(low for low, _ in ends)
    large = drawn.integers(0, 2, len(ends))
    for place in sorted(range(len(found)), key=lambda one: not large[one]):
        more = min(left, ends[place][1] - ends[place][0])
        found[place] += more
        left -= more
    assert left == 0
    return found


def carried(distribution: Shares, secrets: list[Shares], stays: Shares, inputs: list[Shares]) -> Shares:
    """By cell, once secrets changed and some with each kept their input, while all others have one as it is now."""
    c, a = len(inputs), len(inputs[0])
    found = [Fraction(0)] * (c * a)
    for (s, x), u in zip(product(range(len(stays)), range(a)), distribution, strict=True):
        for now in range(c):
            part = u * secrets[s][now]
            found[now * a + x] += part * stays[s]
            for z in range(a):
                found[now * a + z] += part * (1 - stays[s]) * inputs[now][z]
    return found


def followed(
    versions: Iterable[tuple[Step, Chapter]], before: Callable[[int, int, Known | None], Known]
) -> Iterator[tuple[int, int, IntArray, Shares, Shares]]:
    """Of every history of successive rows or versions: which, its node, its channel, distribution and prior.

    The last two are what ``before`` makes of the number, the node, and what the history was told; None of new people.
    """
    told: dict[int, Known] = {}
    for number, (step, chapter) in enumerate(versions):
        a = len(chapter.joint.inputs)
        for node, drawn in zip(step.followed.tolist(), step.drawn_from.tolist(), strict=True):
            distribution, prior = before(number, node, told.get(node))
            channel = step.library[drawn]
            yield number, node, channel, distribution, prior
            for y, row in enumerate(channel.tolist()):
                for place in np.flatnonzero((chapter.parents == node) & (chapter.outputs == y)).tolist():
                    told[chapter.first + place] = [u * row[cell % a] for cell, u in enumerate(distribution)], prior


def telling(channel: IntArray) -> list[list[int]]:
    """The rows of outputs that occur; none where all are the same whatever the input is."""
    return [row for row in channel.tolist() if any(row)] if (channel != channel[:, :1]).any() else []


def book_of(guarantee: str | funnel.Guarantee, tables: Iterable[pa.Table], **names: list[str]) -> funnel.History:
    """Versions published one after the other; a key, a secret and one input by default."""
    names = {"key": ["id"], "secret": ["ill"], "inputs": ["size"], **names}
    book = funnel.History(funnel.parse_guarantee(str(guarantee)), observers=names.pop("observers", None))
    for number, table in enumerate(tables):
        book.extend(table, version=f"v{number}", secret_bytes=bytes(range(32)), **names)
    return book


@contextmanager
def noted_orders(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[UnitRows]]:
    """The rows of units in every order that they are put in within the block."""
    orders, ordered = [], UnitRows.ordered

    def noted(numbers: IntArray, order: np.ndarray) -> UnitRows:
        orders.append(ordered(numbers, order))
        return orders[-1]

    with monkeypatch.context() as patched:
        patched.setattr(UnitRows, "ordered", noted)
        yield orders
