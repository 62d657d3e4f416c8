"""Numbers that categories stand for: intervals, means, the variance that a release explains of them, and drawn ones.

Numbers within intervals are made a second time from the published records, one by one and in whole numbers. Nothing of
`funnel.release.handouts` is used here.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice, pairwise
from typing import Any

from funnel.errors import DataError
from funnel.recount.cells import bin_labels, edges_of, groups_of, is_decimal
from funnel.recount.channel import Channel, entries_of
from funnel.recount.published import in_csv
from funnel.recount.released import ReleasedProtocol
from funnel.spec import ReleaseSpec

# As documented.
_RULE = "funnel/drawn-numbers/1"
CHUNK = 1 << 16

Cells = tuple[str | None, ...]


@dataclass(frozen=True)
class PlainNumbers:
    """The column of numbers of a published column, as it has to be.

    Attributes
    ----------
    column : str
    decimals : int
    intervals : mapping of text to list of (first, last)
        In units of the last decimal, rising; of all texts that may be published, in the order of the outputs.
    """

    column: str
    decimals: int
    intervals: Mapping[str, Sequence[tuple[int, int]]]

    @property
    def name(self) -> str:
        """Of the column of numbers."""
        return self.column + " (number)"

    def number(self, step: int) -> int | float:
        """What stands in the table for so many units."""
        return float(Fraction(step, 10**self.decimals)) if self.decimals else step

    @property
    def ranges(self) -> dict[str, list[list[int | float]]]:
        """The least and the largest number of every interval of every text."""
        return {
            text: [[self.number(end) for end in ends] for ends in intervals]
            for text, intervals in self.intervals.items()
        }

    def steps(self, codes: Sequence[int], seed: bytes, chunk: int) -> list[int | None]:
        """The numbers of a chunk of records, in units of the last decimal, by the positions of their texts."""
        of_code = [
            (intervals, sum(last - first + 1 for first, last in intervals)) for intervals in self.intervals.values()
        ]
        text = hashlib.shake_256(seed + struct.pack("<Q", chunk)).digest(8 * len(codes))
        found: list[int | None] = []
        for code, word in zip(codes, struct.unpack(f"<{len(codes)}Q", text), strict=True):
            intervals, number = of_code[code]
            found.append(_of_number(intervals, word * number >> 64) if number else None)
        return found


def _of_number(intervals: Sequence[tuple[int, int]], place: int) -> int:
    for first, last in intervals:
        if place <= last - first:
            return first + place
        place -= last - first + 1
    raise AssertionError("a place is below their number")


def seed_again(column: str, codes: Iterable[int]) -> bytes:
    """SHA-256 of the rule, the column's name and the positions of the texts of all records, as 32 bits each."""
    found = hashlib.sha256(f"{_RULE}\n{column}\n".encode())
    stream = iter(codes)
    while some := list(islice(stream, CHUNK)):
        found.update(struct.pack(f"<{len(some)}I", *some))
    return found.digest()


def declared_numbers(spec: ReleaseSpec, protocol: ReleasedProtocol, columns: Iterable[str]) -> list[PlainNumbers]:
    """What the spec and the published weights say of the numbers of columns.

    A text that names a bin, or a group of bins, has its numbers; another one has those of every bin from which it can
    be published.

    Parameters
    ----------
    spec : ReleaseSpec
        With the recoding that the published values were made by.
    protocol : ReleasedProtocol
    columns : iterable of str

    Raises
    ------
    DataError
        If a bin holds no number of the declared decimals.
    """
    found = []
    for column in columns:
        named = _named(spec, column)
        behind = {text: {text} if text in named else some for text, some in sources_of(protocol, column).items()}
        found.append(
            PlainNumbers(
                column,
                spec.numbers[column].decimals or 0,
                {text: sorted({ends for one in some for ends in named.get(one, [])}) for text, some in behind.items()},
            )
        )
    return found


def _named(spec: ReleaseSpec, column: str) -> dict[str, list[tuple[int, int]]]:
    """The intervals of every category that has some, in units of the last decimal."""
    decimals = spec.numbers[column].decimals or 0
    group_of, named = groups_of(spec, column), dict[str, list[tuple[int, int]]]()
    for label, (low, top) in plain_intervals(spec, column).items():
        first, last = low * 10**decimals, top * 10**decimals
        if last < first or first.denominator != 1 or last.denominator != 1:
            raise DataError(f"a bin of {column!r} holds no number of {decimals} decimals")
        named.setdefault(group_of.get(label, label), []).append((int(first), int(last)))
    return named


def sources_of(protocol: ReleasedProtocol, column: str) -> dict[str, set[str]]:
    """Of every text the values from which it can be published."""
    read, shown = protocol.input_columns.index(column), protocol.output_columns.index(column)
    sources: dict[str, set[str]] = {}
    for symbol, row in zip(protocol.outputs, protocol.weights, strict=True):
        own = sources.setdefault(symbol[shown], set())
        own.update(protocol.inputs[x][read] for x, weight in entries_of(row) if weight)
    return sources


def parsed_numbers(field: Any, texts_of: Mapping[str, Iterable[str]]) -> PlainNumbers:
    """What a field of a data package says of the numbers of a published column, of which these are the texts.

    Raises
    ------
    DataError
        If it is not well-formed: of no such column, other texts, intervals that meet, or ends of more decimals.
    """
    try:
        told = field["funnel:drawn"]
        column, decimals, of_text = told["from"], told["decimals"], told["numbers"]
        if set(told) - {"unit"} != {"rule", "from", "decimals", "numbers"} or told["rule"] != _RULE:
            raise ValueError
        texts = list(texts_of[column])
        if type(decimals) is not int or not 0 <= decimals <= 9:
            raise ValueError
        if not isinstance(told.get("unit", ""), str) or set(of_text) != set(texts):
            raise ValueError
        intervals = {text: [_parsed(ends, decimals) for ends in of_text[text]] for text in texts}
        for of_one in intervals.values():
            bounds = [end for ends in of_one for end in ends]
            if bounds != sorted(bounds) or any(a[1] >= b[0] for a, b in pairwise(of_one)):
                raise ValueError
    except (KeyError, TypeError, ValueError, OverflowError):
        raise DataError("what the data package says of drawn numbers cannot be read") from None
    return PlainNumbers(column, decimals, intervals)


def _parsed(ends: Any, decimals: int) -> tuple[int, int]:
    found = [round(Fraction(end) * 10**decimals) for end in ends if type(end) in (int, float)]
    same = len(found) == len(ends) == 2 and all(
        float(Fraction(one, 10**decimals)) == end for one, end in zip(found, ends, strict=True)
    )
    if not same:
        raise ValueError
    return found[0], found[1]


def field_again(told: PlainNumbers, unit: str | None, written: Any) -> dict[str, Any]:
    """The field of a data package that describes the column of numbers; ``written`` is how names are."""
    ends = [end for ranges in told.ranges.values() for pair in ranges for end in pair]
    return {
        "name": written(told.name),
        "type": "number" if told.decimals else "integer",
        "description": (
            f"{told.column}, a number drawn within what the published value stands for, every one alike: it is a "
            "function of the published values alone, made without the true number, and is not that number."
        ),
        **({"constraints": {"minimum": min(ends), "maximum": max(ends)}} if ends else {}),
        "funnel:drawn": {
            "rule": _RULE,
            "from": told.column,
            "decimals": told.decimals,
            **({} if unit is None else {"unit": unit}),
            "numbers": told.ranges,
        },
    }


def csv_cells_again(texts: Cells, steps: Sequence[int | None], told: Sequence[PlainNumbers]) -> Cells:
    """The cells of a record in the csv; None of numbers that are not there."""
    return (*(in_csv(str(text)) for text in texts), *(_text(one, step) for one, step in zip(told, steps, strict=True)))


def _text(told: PlainNumbers, step: int | None) -> str | None:
    """A number with all of its decimals; None where there is none."""
    if step is None or not told.decimals:
        return None if step is None else str(step)
    digits = str(abs(step)).rjust(told.decimals + 1, "0")
    return f"{'-' * (step < 0)}{digits[: -told.decimals]}.{digits[-told.decimals :]}"


def plain_variance(channel: Channel, numbers: Sequence[Fraction | None]) -> Fraction:
    """Var E[N|Y] / Var N for the number of every published input; O(a b c).

    An input without a number counts as the mean of those that have one. 0 where numbers do not vary.

    Raises
    ------
    DataError
        If numbers are not one for each input.
    """
    if len(numbers) != channel.a:
        raise DataError(f"there are {len(numbers):,} numbers for {channel.a:,} inputs")
    known = [(number, size) for number, size in zip(numbers, channel.records, strict=True) if number is not None]
    of_known = sum(size for _, size in known)
    mean = sum((number * size for number, size in known), Fraction()) / of_known if of_known else Fraction()
    apart = [Fraction() if number is None else number - mean for number in numbers]
    whole = sum((size * gap * gap for gap, size in zip(apart, channel.records, strict=True)), Fraction())
    if not whole:
        return Fraction()
    between = Fraction()
    for y in range(len(channel.weights)):
        masses = channel.masses_by_input(y)
        if mass := sum(part for _, part in masses):
            told = sum((part * apart[u] for u, part in masses), Fraction())
            between += told * told / mass
    return between / (channel.denominator * whole)


def plain_numbers(spec: ReleaseSpec, column: str, labels: Sequence[str]) -> list[Fraction | None]:
    """What number every category of a column stands for, by the spec: itself, or the mean of its bin.

    That is as the spec has it, or the middle; of a group of values the mean of theirs, each alike.

    Bins go from an edge to the next one, the first and the last to the ends of the range; of whole numbers to the last
    one under the next edge. None for missing and other values.

    Raises
    ------
    DataError
        If a category has no number, or bins no range.
    """
    intervals = plain_intervals(spec, column)
    if edges_of(spec, column) and not intervals:
        raise DataError(f"the bins of {column!r} have no range, so they stand for no numbers")
    middles = {name: (low + top) / 2 for name, (low, top) in intervals.items()}
    said = spec.numbers.get(column)
    if said is not None and said.means is not None:
        middles = dict(zip(intervals, (Fraction(mean) for mean in said.means), strict=True))
    members: dict[str, list[str]] = {}
    for value, group in groups_of(spec, column).items():
        members.setdefault(group, []).append(value)
    none_for = {spec.source.missing_label, spec.other_label(column)}
    found: list[Fraction | None] = []
    for label in labels:
        text = label.strip() if spec.source.decimal == "." else label.strip().replace(spec.source.decimal, ".")
        if label in middles:
            found.append(middles[label])
        elif is_decimal(text):
            found.append(Fraction(float(text)))
        elif label in none_for:
            found.append(None)
        elif label in members:
            known = [number for number in plain_numbers(spec, column, members[label]) if number is not None]
            found.append(sum(known, Fraction()) / len(known) if known else None)
        else:
            raise DataError(f"a category of {column!r} stands for no number")
    return found


def plain_intervals(spec: ReleaseSpec, column: str) -> dict[str, tuple[Fraction, Fraction]]:
    """The least and the largest number of every bin of a column; empty where it has no bins, or no range."""
    edges, said = edges_of(spec, column), spec.numbers.get(column)
    if not edges or said is None or said.range is None:
        return {}
    ends = [Fraction(str(end)) for end in (said.range[0], *edges, said.range[1])]
    if said.decimals is None and not said.whole:
        return dict(zip(bin_labels(edges), pairwise(ends), strict=True))
    parts = 10 ** (said.decimals or 0)
    # In parts of one, which all numbers have whole ones of: from the first that is not below, to the last that is not
    # above; the next edge is itself no part of a bin, the end of the range is.
    firsts = [-(-end * parts // 1) for end in ends[:-1]]
    lasts = [*(-(-end * parts // 1) - 1 for end in ends[1:-1]), ends[-1] * parts // 1]
    return {
        name: (Fraction(first, parts), Fraction(last, parts))
        for name, first, last in zip(bin_labels(edges), firsts, lasts, strict=True)
    }
