"""Interior steps: Mehrotra's predictor and corrector with corrections by Gondzio (1996), whatever the programme is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, Self, TypeVar

import numpy as np

from funnel.joint import FloatArray

# How near to the edge a step goes; how much further a correction reaches out, and how much further it has to get;
# how far products may be from their goal.
_NEARLY, _REACH, _GAIN, _SPREAD = 0.99, 0.3, 0.03, 10.0

Arrays = tuple[FloatArray, ...]


class Point(Protocol):
    """Where the method is, or a change of it: variables that have to stay positive, and the price of each.

    A variable that is left out is 0, and so is its price.
    """

    @property
    def variables(self) -> Arrays:
        """All that has to stay positive."""

    @property
    def duals(self) -> Arrays:
        """The price of each of them."""

    def moved(self, change: Self, primal: float, dual: float) -> Self:
        """After so much of a change of variables, and of prices."""


AnyPoint = TypeVar("AnyPoint", bound=Point)


def next_point(
    point: AnyPoint, change_to: Callable[[list[FloatArray], float], AnyPoint], corrections: int, shortest: float
) -> AnyPoint | None:
    """Where a step leads; None where it leads nowhere.

    Parameters
    ----------
    point : Point
    change_to : callable
        By how much every price is to change where its variable stays, and the share of what is off that is met: to the
        change of the point that does so.
    corrections : int
        At most.
    shortest : float
        What a step has to be longer than.
    """
    pairs = list(zip(point.variables, point.duals, strict=True))
    number = sum(int(np.count_nonzero(one)) for one, _ in pairs)
    product = sum(float((one * two).sum()) for one, two in pairs) / number
    change = change_to([-two for _, two in pairs], 1.0)
    ahead = _products(point.moved(change, *_lengths(point, change)))
    goal = (sum(float(one.sum()) for one in ahead) / number / product) ** 3 * product
    changes = zip(change.variables, change.duals, strict=True)
    wanted = [np.where(one != 0, goal, 0.0) - by * to for (one, _), (by, to) in zip(pairs, changes, strict=True)]
    change = change_to([over(by, one) - two for by, (one, two) in zip(wanted, pairs, strict=True)], 1.0)
    lengths = _lengths(point, change)
    for _ in range(corrections):
        ahead = _products(point.moved(change, *(min(1.0, length + _REACH) for length in lengths)))
        lacking = [np.maximum(np.clip(one, goal / _SPREAD, goal * _SPREAD) - one, -goal * _SPREAD) for one in ahead]
        goals = [over(by, one) for by, one in zip(lacking, point.variables, strict=True)]
        corrected = change.moved(change_to(goals, 0.0), 1.0, 1.0)
        further = _lengths(point, corrected)
        if sum(further) < sum(lengths) + _GAIN:
            break
        change, lengths = corrected, further
    primal, dual = (min(1.0, _NEARLY * length) for length in lengths)
    return point.moved(change, primal, dual) if max(primal, dual) > shortest else None


def over(one: FloatArray, other: FloatArray) -> FloatArray:
    """Quotients; zero where the other is."""
    return np.divide(one, other, out=np.zeros_like(other), where=other != 0)


def _products(point: Point) -> list[FloatArray]:
    return [one * two for one, two in zip(point.variables, point.duals, strict=True)]


def _lengths(point: Point, change: Point) -> tuple[float, float]:
    """How far variables, and prices, can go until one of them is zero; at most 1."""
    return _length(point.variables, change.variables), _length(point.duals, change.duals)


def _length(values: Arrays, changes: Arrays) -> float:
    fastest = min(float(over(change, value).min(initial=0.0)) for value, change in zip(values, changes, strict=True))
    return 1.0 if fastest >= -1.0 else -1.0 / fastest
