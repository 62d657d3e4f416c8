"""Whether a protocol is invariant: outputs are the inputs, and have the distribution that these are protected with.

In whole numbers, from what public files say. A protocol that is balanced for exact counts, where noisy ones are public,
gives the exact ones away: its weights are near the identity, so that ``W p = p`` can be solved for p.

Of a later version about the same people W is in balance, and its answers are then changed once more: of the share m of
the answers that a value has on average, by published means, ``(m - p)⁺`` goes to the values z in proportion to
``(p_z - m_z)⁺``. What is published is that product T W, so that outputs have the distribution ``T p``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

from funnel.recount.channel import Symbols, weights_of
from funnel.recount.chapters import WHOLE

Json = Mapping[str, Any]
TOLERANCE = Fraction(1, 10**12)
"""Largest ``|Σ_x p(x) W(y|x) - p(y)|``."""
CORRECTED = 10 * TOLERANCE
"""The same of ``T W`` and ``T p``."""


@dataclass(frozen=True)
class Correction:
    """T, by published means and counts: what of each answer is changed, and to which values that goes.

    Attributes
    ----------
    moved : tuple of Fraction, length a
        The share of each answer that is changed.
    taken : tuple of Fraction, length a
        How it is shared out; sums to 1.
    """

    moved: tuple[Fraction, ...]
    taken: tuple[Fraction, ...]

    @classmethod
    def of(cls, means: Sequence[int], counts: Sequence[int]) -> Self:
        """By means in any unit and counts, each of the a values.

        Parameters
        ----------
        means, counts : sequence of int, length a
            Counts are not below 0 and not all 0.
        """
        n = sum(counts)
        p = [Fraction(count, n) for count in counts]
        there = [max(0, mean) if count else 0 for mean, count in zip(means, counts, strict=True)]
        if not any(there):
            return cls((Fraction(0),) * len(p), tuple(p))
        m = [Fraction(one, sum(there)) for one in there]
        missing = [max(Fraction(0), want - have) for want, have in zip(p, m, strict=True)]
        whole = sum(missing)
        return cls(
            tuple(max(Fraction(0), 1 - want / have) if have else Fraction(0) for want, have in zip(p, m, strict=True)),
            tuple(one / whole for one in missing) if whole else tuple(p),
        )

    def after(self, numbers: Sequence[Fraction]) -> list[Fraction]:
        """T n of numbers n, length a."""
        given = sum((part * number for part, number in zip(self.moved, numbers, strict=True)), Fraction(0))
        return [
            number * (1 - part) + given * taken
            for number, part, taken in zip(numbers, self.moved, self.taken, strict=True)
        ]

    def before(self, numbers: Sequence[Fraction]) -> list[Fraction]:
        """The numbers that T makes these of, length a; what takes answers gives none away."""
        given = sum((n * part / (1 - part) for part, n in zip(self.moved, numbers, strict=True)), Fraction(0))
        return [
            (number - given * taken) / (1 - part)
            for number, part, taken in zip(numbers, self.moved, self.taken, strict=True)
        ]


def of_rounding(off: float | None, rows: int) -> Fraction:
    """How far outputs may be from the distribution of the inputs, where each probability is rounded by so much.

    An effective channel of people with histories is right to within a record, and rounded before it is published.
    """
    return Fraction(off) + Fraction(1, rows) if off else TOLERANCE


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
    found = [-int(protocol["denominator"]) * count for count in counts]
    for y, x, weight in weights_of(protocol):
        found[y] += counts[x] * weight
    return found


def average_complaints(weights: Sequence[Sequence[int]], counts: Sequence[int]) -> Iterator[str]:
    """Where an effective channel publishes a value more than a record more, or less, often than it is there on average.

    Parameters
    ----------
    weights : a × a whole numbers
        Of 2^63, of all people of a version given what was published of them before.
    counts : sequence of a int
        Their exact counts by input.
    """
    published = [sum(map(int.__mul__, row, counts)) for row in weights]
    off = [abs(one - count * WHOLE) for one, count in zip(published, counts, strict=True)]
    if wrong := sum(one > WHOLE for one in off):
        yield (
            f"is not right on average: {wrong:,} of {len(off):,} values are published more or less often than they "
            f"are there, by up to {max(off) / WHOLE:,.1f} records"
        )


def balance_complaints(
    protocol: Json,
    symbols: Symbols,
    counts: Sequence[int],
    means: Mapping[tuple[str, ...], int] | None = None,
    off: float | None = None,
) -> Iterator[str]:
    """Where a protocol is not balanced for counts of what it reads.

    Parameters
    ----------
    protocol : JSON object
        Content of ``protocol.json``.
    symbols : sequence of symbols
        What there are counts of; those that the protocol does not read have none.
    counts : sequence of int
    means : mapping of symbol to int, optional
        Published means, where answers are changed by these.
    off : float, optional
        By how much each probability may be rounded, of the effective channel of people with histories.
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
    whole, found = int(protocol["denominator"]), list(map(Fraction, gains(protocol, ordered)))
    tolerance = of_rounding(off, sum(ordered))
    if means is not None:
        if set(means) != set(place):
            yield "its means are of other values than the protocol reads"
            return
        wanted = Correction.of([means[symbol] for symbol in place], ordered).after(list(map(Fraction, ordered)))
        found = [gain - whole * (want - n) for gain, want, n in zip(found, wanted, ordered, strict=True)]
        tolerance = CORRECTED
    mass = sum(ordered) * whole
    far = sum(abs(gain) > tolerance * mass for gain in found)
    if far:
        what = "the distribution of the inputs" if means is None else "the distribution that the means ask for"
        yield (
            f"outputs do not have {what} under the protected counts: {far:,} of {len(found):,} "
            f"are off, by up to {float(max(map(abs, found)) / mass):.3g}"
        )
