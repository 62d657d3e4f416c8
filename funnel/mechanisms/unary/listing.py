"""Unary encoding of few inputs as an ordinary channel: all sets of symbols, with integer weights."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from funnel.errors import SpecError
from funnel.mechanisms.unary.encoding import UnaryEncoding
from funnel.protocol import DENOMINATOR, WeightArray

LARGEST_LISTED = 10
"""Most inputs whose sets are listed: 2^10 = 1,024 outputs, a protocol file of 300 kB that still opens quickly."""


def listed_sets(size: int) -> list[tuple[int, ...]]:
    """All subsets of ``size`` symbols as rising positions: the empty set first, then by number of members.

    Raises
    ------
    SpecError
        For more than 10 symbols.
    """
    if size > LARGEST_LISTED:
        raise SpecError(
            f"unary encoding of {size} symbols has 2^{size} possible outputs, too many to list (at most "
            f"{LARGEST_LISTED} symbols); use grr or optimal for a table release, or draw sets row by row with "
            "funnel.mechanisms.oue.unary_encoding(joint, guarantee)"
        )
    return [members for count in range(size + 1) for members in combinations(range(size), count)]


def listed_weights(encoding: UnaryEncoding) -> WeightArray:
    """Integer weights (2^a, a) of all sets, in the order of `listed_sets`, with levels no higher than the encoding's.

    ``P(A|x)`` (PF equation (28)) depends on x only through whether x is in A. Its weight is rounded down where x is in
    A and up where it is not, so no quotient P(A|x)/P(A|x') rises above e^α; sets that round to nothing have zeros
    only. What columns lack, the same for all, goes to the empty set, which has the same weight for every input and so
    tells nothing. Every ratio ``(1 + k p(A|s))/(1 + k p(A))`` therefore is at most the exact encoding's.

    Raises
    ------
    SpecError
        For more than 10 symbols.
    """
    size = len(encoding.inputs)
    sets = listed_sets(size)
    inside, outside = zip(*(_rounded(encoding, size, count) for count in range(size + 1)), strict=True)
    weights = np.zeros((len(sets), size), dtype=np.uint64)
    for y, members in enumerate(sets):
        weights[y] = outside[len(members)]
        weights[y, list(members)] = inside[len(members)]
    # Python integers: half the weights of a column alone can come close to 2^63.
    weights[0] = DENOMINATOR - sum(weights[1:, 0].tolist())
    return weights


def _rounded(encoding: UnaryEncoding, size: int, count: int) -> tuple[int, int]:
    """Weights of a set of ``count`` members for an input inside and for one outside."""
    yes, no = encoding.other_weight, DENOMINATOR - encoding.other_weight
    scale = int(DENOMINATOR ** (size - 1))
    inside = encoding.own_weight * yes ** (count - 1) * no ** (size - count) // scale if count > 0 else 0
    outside = -(-encoding.own_weight * yes**count * no ** (size - 1 - count) // scale) if count < size else 0
    return inside, min(inside, outside)
