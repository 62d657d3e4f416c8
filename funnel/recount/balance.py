"""Whether a protocol is invariant: outputs are the inputs, and have the distribution that these are protected with.

In whole numbers, from what public files say. A protocol that is balanced for exact counts, where noisy ones are public,
gives the exact ones away: its weights are near the identity, so that ``W p = p`` can be solved for p.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from funnel.recount.channel import Symbols

Json = Mapping[str, Any]
TOLERANCE = Fraction(1, 10**12)
"""Largest ``|Σ_x p(x) W(y|x) - p(y)|``."""


def is_invariant(protocol: Json) -> bool:
    """Whether the content of a ``protocol.json`` says that it is."""
    return bool(protocol["mechanism"] == "invariant")


def alphabet_complaints(protocol: Json) -> Iterator[str]:
    """What differs between the outputs and the inputs of a protocol."""
    inputs, outputs = protocol["inputs"], protocol["outputs"]
    if list(inputs["columns"]) != list(outputs["columns"]):
        yield "the outputs are of other columns than the inputs"
    elif list(map(list, inputs["symbols"])) != list(map(list, outputs["symbols"])):
        yield "the outputs are not the inputs, in their order"


def gains(protocol: Json, counts: Sequence[int]) -> list[int]:
    """``Σ_x n(x) w(y|x) - D n(y)`` of every output y, with weights w out of D.

    Parameters
    ----------
    protocol : JSON object
        Content of ``protocol.json``, whose outputs are its inputs.
    counts : sequence of a int
        In the order of the inputs.
    """
    whole, found = int(protocol["denominator"]), []
    for y, row in enumerate(protocol["weights"]):
        entries = row.items() if isinstance(row, dict) else enumerate(row)
        found.append(sum(counts[int(x)] * int(weight) for x, weight in entries) - whole * counts[y])
    return found


def balance_complaints(protocol: Json, symbols: Symbols, counts: Sequence[int]) -> Iterator[str]:
    """Where a protocol is not balanced for counts of what it reads.

    Parameters
    ----------
    protocol : JSON object
        Content of ``protocol.json``.
    symbols : sequence of symbols
        What there are counts of; those that the protocol does not read have none.
    counts : sequence of int
    """
    wrong = list(alphabet_complaints(protocol))
    yield from wrong
    place = {tuple(symbol): x for x, symbol in enumerate(protocol["inputs"]["symbols"])}
    if any(count and symbol not in place for symbol, count in zip(symbols, counts, strict=True)):
        yield "a value has a count, and the protocol does not read it"
        return
    if wrong:
        return
    ordered = [0] * len(place)
    for symbol, count in zip(symbols, counts, strict=True):
        if count:
            ordered[place[symbol]] += count
    found, mass = gains(protocol, ordered), sum(ordered) * int(protocol["denominator"])
    far = sum(abs(gain) > TOLERANCE * mass for gain in found)
    if far:
        yield (
            f"outputs do not have the distribution of the inputs under the protected counts: {far:,} of {len(found):,} "
            f"are off, by up to {max(map(abs, found)) / mass:.3g}"
        )
