"""Packed: many whole numbers side by side in one, so that one product of whole numbers multiplies all of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

_BYTE = 8
BITS = 160
ONE = 1 << BITS
"""What relative errors of numbers that are rounded are parts of."""


def packed(numbers: Iterable[int], width: int) -> int:
    """Numbers >= 0 below ``256**width``, one after the other in slots of ``width`` bytes, the first one lowest.

    The packed numbers of one slot width may be added and multiplied by a whole number, slot by slot, as long as no
    result reaches ``256**width``.

    Raises
    ------
    OverflowError
        If a number does not fit into its slot.
    """
    return int.from_bytes(b"".join(number.to_bytes(width, "little") for number in numbers), "little")


def unpacked(whole: int, count: int, width: int) -> list[int]:
    """The numbers of a packed one.

    Raises
    ------
    OverflowError
        If there are more than ``count``: a sum has left its slot.
    """
    content = whole.to_bytes(count * width, "little")
    return [int.from_bytes(content[at : at + width], "little") for at in range(0, count * width, width)]


def width_for(largest: int) -> int:
    """Bytes of a slot that holds numbers up to the largest."""
    return -(-largest.bit_length() // _BYTE) or 1


def divided_up(number: int, by: int) -> int:
    """A quotient of whole numbers, rounded up; 0 of 0 alone."""
    return -(-number // by)


def scaled_up(numbers: Sequence[int], bits: int) -> list[int]:
    """Numbers >= 0 times one power of two, rounded up, so that the largest has exactly so many bits.

    What is positive stays positive, and what is 0 stays 0.

    Raises
    ------
    ValueError
        If all are 0.
    """
    largest = max(numbers)
    if largest <= 0:
        raise ValueError("no number is positive, so none can be scaled")
    shift = largest.bit_length() - bits
    if shift <= 0:
        return [number << -shift for number in numbers]
    whole = (1 << shift) - 1
    # Rounding up can carry the largest to one bit more; it is then a power of two.
    return [(number + whole) >> shift for number in numbers]
