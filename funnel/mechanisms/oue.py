"""Optimised unary encoding: publish a random set of values, more likely to hold the true one than any other."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from itertools import combinations
from typing import ClassVar

import numpy as np

from funnel.alphabet import Alphabet
from funnel.errors import SpecError
from funnel.guarantees.base import Guarantee
from funnel.joint import Joint
from funnel.mechanisms.family import Fitted, Mechanism, strongest
from funnel.mechanisms.memory import table_memory
from funnel.progress import Progress, quiet
from funnel.protocol import DENOMINATOR, Protocol, WeightArray
from funnel.rounding import marginal_weights
from funnel.solver.budget import Budget

LARGEST_LISTED = 10
"""Most inputs whose sets are listed: 2^10 = 1,024 outputs, a protocol file of 300 kB that still opens quickly."""

_HALF = DENOMINATOR // 2


class OUE(Mechanism):
    """OUE(α) (PF equations (27)-(28)) with the largest α whose exact level meets the guarantee.

    Its outputs are sets of input symbols, written ``{Bachelors, Masters}`` (`set_labels`). All 2^a of them are listed,
    so at most 10 symbols are encoded.

    Its utility tends to H(X)/2 as α grows: half of all sets lack the true value.
    """

    name: ClassVar[str] = "oue"
    summary: ClassVar[str] = "a random set of values, more likely to hold the true one; for at most 10 values"

    def fitted(self, joint: Joint, guarantee: Guarantee, budget: Budget, progress: Progress = quiet) -> Fitted:
        """Calibrated OUE with all its outputs; always feasible, since α = 0 is pure noise.

        Raises
        ------
        SpecError
            If there are more than 10 input symbols, with what to use instead.
        """
        size = len(joint.inputs)
        sets = listed_sets(size)
        found = strongest(lambda alpha: listed_weights(size, alpha), joint, guarantee, budget)
        # Sets whose probability rounds to zero are no outputs.
        drawable = np.flatnonzero(found.weights.any(axis=1)).tolist()
        weights = found.weights[drawable]
        width = len(joint.inputs.columns)
        symbols = tuple(set_labels([joint.inputs.symbols[x] for x in sets[y]], width) for y in drawable)
        protocol = Protocol(
            weights,
            marginal_weights(joint, weights),
            joint.inputs,
            Alphabet(joint.inputs.columns, symbols),
            self.name,
            str(guarantee),
        )
        return Fitted(protocol, None, found.finished)

    def memory(self, joint: Joint, guarantee: Guarantee) -> float:
        """What a table of all sets takes; more symbols are refused without one."""
        size = min(len(joint.inputs), LARGEST_LISTED)
        return table_memory(2**size, size)


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
            f"{LARGEST_LISTED} symbols); use grr"
        )
    return [members for count in range(size + 1) for members in combinations(range(size), count)]


def listed_weights(size: int, alpha: float) -> WeightArray:
    """Integer weights (2^a, a) of OUE(α) over a = ``size`` symbols, in the order of `listed_sets`.

    A set holds the true symbol with probability 1/2 and every other one with probability ``q = 1/(e^α + 1)``, each by
    itself (PF equation (27)). So ``P(A|x)`` depends on x only through whether x is in A. It is rounded down where x is
    in A and up where it is not, so no quotient ``P(A|x)/P(A|x')`` rises; sets that round to nothing have zeros only,
    or they would exclude an input. What columns lack, the same for all, goes to the empty set, which has the same
    weight for every input and so tells nothing.

    Parameters
    ----------
    size : int
        At most 10.
    alpha : float
        Nats, >= 0; at most 43.7 are told from certainty.
    """
    lie = math.exp(-alpha)
    other = min(max(1, round(DENOMINATOR * (lie / (1 + lie)))), _HALF)
    inside, outside = zip(*(_rounded(other, size, count) for count in range(size + 1)), strict=True)
    sets = listed_sets(size)
    member = np.zeros((len(sets), size), dtype=np.bool_)
    for y, members in enumerate(sets):
        member[y, list(members)] = True
    counted = member.sum(axis=1)
    here, elsewhere = (np.array(weights, dtype=np.uint64)[counted][:, None] for weights in (inside, outside))
    weights = np.where(member, here, elsewhere)
    # Python integers: half the weights of a column alone can come close to 2^63.
    weights[0] = DENOMINATOR - sum(weights[1:, 0].tolist())
    return np.asarray(weights)


def _rounded(other: int, size: int, count: int) -> tuple[int, int]:
    """Weights of a set of ``count`` members for an input inside and for one outside; ``other`` is q·2^63."""
    scale = int(DENOMINATOR ** (size - 1))
    inside = _HALF * other ** (count - 1) * (DENOMINATOR - other) ** (size - count) // scale if count > 0 else 0
    missing = size - 1 - count
    outside = -(-_HALF * other**count * (DENOMINATOR - other) ** missing // scale) if count < size else 0
    return inside, min(inside, outside)


__all__ = [
    "LARGEST_LISTED",
    "OUE",
    "listed_sets",
    "listed_weights",
    "set_label",
    "set_labels",
]


_SPECIAL = frozenset('{},"')


def set_label(values: Sequence[str]) -> str:
    """The text of a list of values: ``"{Bachelors, Masters}"``, and ``"{}"`` for none.

    A value is written as it is, unless it could be misread: with a comma, a brace, a quote or a character that does not
    print in it, with space at an end, or empty, it is written as a JSON string. So different lists have different
    texts.
    """
    return "{" + ", ".join(value if _is_plain(value) else _quoted(value) for value in values) + "}"


def set_labels(members: Sequence[tuple[str, ...]], width: int) -> tuple[str, ...]:
    """One text per published column for a set of symbols over ``width`` columns.

    Each column lists that column's values of the members, in the same order: the k-th values of all columns belong
    together. The set of (Masters, F) and (Masters, M) is ``"{Masters, Masters}"`` and ``"{F, M}"``. So different sets,
    with members in the order of their alphabet, differ in some column.
    """
    return tuple(set_label([member[column] for member in members]) for column in range(width))


def _is_plain(value: str) -> bool:
    return value != "" and value.isprintable() and value == value.strip() and not _SPECIAL & set(value)


def _quoted(value: str) -> str:
    # Escapes where a reader would see nothing; letters of all alphabets stay as they are.
    return json.dumps(value, ensure_ascii=not value.isprintable())
