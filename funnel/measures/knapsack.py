"""The 0/1 knapsack as a decision in exact integers: is there a light subset of more than a given value?"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate


def light_subset(weights: Sequence[int], values: Sequence[int], capacity: int, above: int) -> tuple[int, ...] | None:
    """Indices of items of total weight at most ``capacity`` and total value more than ``above``, or None.

    Exact for items of any number: Python integers, no solver. Undominated pairs (weight, value) are carried from item
    to item in the order of value per weight (Nemhauser and Ullmann 1969), and dropped once filling up with fractions of
    the best remaining items (Dantzig 1957) cannot bring them above the value. What filling up with whole items already
    brings above it is the answer.

    Parameters
    ----------
    weights, values : sequences of int
        Both at least 0; an item of value 0 is never chosen.
    capacity, above : int
        At least 0.

    Returns
    -------
    tuple of int or None
        Indices, ascending; None proves that no such subset exists.

    Notes
    -----
    At most min(2^k, capacity + 1) pairs are alive at a time for k items, each handled in O(log k). Most instances end
    with the first pair.
    """
    items = [i for i, value in enumerate(values) if value > 0 and weights[i] <= capacity]
    # Items without weight come first: they are free.
    items.sort(key=lambda i: (weights[i] > 0, -Fraction(values[i], weights[i] or 1)))
    weight = [weights[i] for i in items]
    value = [values[i] for i in items]
    weight_before = [0, *accumulate(weight)]
    value_before = [0, *accumulate(value)]
    # Total weight, total value, chosen positions as bits.
    pairs = [(0, 0, 0)]
    for first in range(len(items) + 1):
        alive = []
        for heavy, worth, chosen in pairs:
            end = bisect_right(weight_before, weight_before[first] + capacity - heavy, lo=first) - 1
            filled = worth + value_before[end] - value_before[first]
            if filled > above:
                chosen |= (1 << end) - (1 << first)
                return tuple(sorted(items[k] for k in range(len(items)) if chosen >> k & 1))
            if end < len(items):
                room = capacity - heavy - (weight_before[end] - weight_before[first])
                if filled + room * value[end] // weight[end] > above:
                    alive.append((heavy, worth, chosen))
        if first == len(items) or not alive:
            return None
        pairs = _with_item(alive, weight[first], value[first], 1 << first, capacity)
    return None


def _with_item(
    pairs: list[tuple[int, int, int]], weight: int, value: int, bit: int, capacity: int
) -> list[tuple[int, int, int]]:
    """The undominated pairs without and with one more item, by ascending weight and value."""
    grown = [(h + weight, w + value, chosen | bit) for h, w, chosen in pairs if h + weight <= capacity]
    undominated: list[tuple[int, int, int]] = []
    for pair in sorted(pairs + grown, key=lambda pair: (pair[0], -pair[1])):
        if not undominated or pair[1] > undominated[-1][1]:
            undominated.append(pair)
    return undominated
