"""What one cell of a column means: missing, a category, or a number in a bin; for whole arrays at a time."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from funnel.alphabet import natural_key
from funnel.errors import DataError
from funnel.readers.days import day_of, no_day, written_day

MISSING = -1
OUTSIDE = -2

# A finite number in decimal digits, for Python's and for Arrow's regular expressions.
NUMBER = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"

_THOUSANDS = re.compile(r"[+-]?[0-9]{1,3}([.,' \u00a0\u202f])[0-9]{3}(\1[0-9]{3})*([.,][0-9]+)?")

CodeArray = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Lookup = Callable[[str], int]


@dataclass(frozen=True)
class Cells:
    """How the cells of one column are read.

    A cell is missing if it is null, is NaN in a column of floating-point numbers, or if its text is one of
    ``missing``. Otherwise its category is its bin where bins are asked for, and its text ``str(value)`` elsewhere.

    Parameters
    ----------
    column : str
    type : pyarrow.DataType
        Numbers, texts, booleans, dates, times, or a dictionary of these.
    missing : frozenset of str
    edges : tuple of numbers
        Increasing edges of the bins; empty for no bins.
    bins : tuple of str
        Labels of the bins, one more than edges.
    groups : mapping of str to str
        The group that a category belongs to, for those that belong to one.
    period : "year", "quarter", "month" or None
        What of a date, or point in time, is its category.
    form : str or None
        How dates are written, such as "%d/%m/%Y"; None as 2026-12-31.
    decimal : str
        The decimal mark of numbers that are text.

    Raises
    ------
    DataError
        If the column is of another type, or bins are asked for one that holds neither numbers nor text.
    """

    column: str
    type: pa.DataType
    missing: frozenset[str]
    edges: tuple[int | float, ...] = ()
    bins: tuple[str, ...] = ()
    groups: Mapping[str, str] = field(default_factory=dict)
    period: str | None = None
    decimal: str = "."
    form: str | None = None

    def __post_init__(self) -> None:
        if not _is_scalar(_values(self.type)):
            raise DataError(
                f"column {self.column!r} is of type {_short(self.type)}, which has no categories; publish or protect "
                "columns of text, numbers, booleans or dates"
            )
        if self.edges and not (_is_text(_values(self.type)) or is_number(_values(self.type))):
            raise DataError(
                f"column {self.column!r} is of type {_short(self.type)}, so it cannot be put into bins; in "
                "[recode] use minimum_count for it instead"
            )

    def codes(self, array: pa.Array, lookup: Lookup, met: set[str] | None = None) -> CodeArray:
        """Codes of the cells, shape (n,): ``lookup`` of their category, or `MISSING`.

        ``lookup`` is called once per distinct category of the array, so the cost is O(n + distinct). Values that are
        in groups are added to ``met`` where they occur.

        Raises
        ------
        DataError
            If a cell to put into a bin is no finite number, or a text is not UTF-8.
        """
        array = _computable(array)
        if self.groups:
            lookup = self._grouped(lookup, set() if met is None else met)
        if self.period is not None:
            lookup = self._in_periods(self.period, lookup)
        if self.edges and is_number(array.type):
            return self._bins_of(array, lookup)
        coded = array if pa.types.is_dictionary(array.type) else array.dictionary_encode()
        nowhere = len(coded.dictionary)
        positions = coded.indices.cast(pa.int64()).fill_null(nowhere).to_numpy(zero_copy_only=False)
        # A dictionary may hold values that no row has; they are no categories.
        used = np.flatnonzero(np.bincount(positions, minlength=nowhere + 1)[:nowhere])
        values = coded.dictionary.take(pa.array(used))
        table = np.full(nowhere + 1, MISSING, dtype=np.int64)
        table[used] = self._bins_of(values, lookup) if self.edges else self._categories_of(values, lookup)
        codes: CodeArray = table[positions]
        return codes

    def _grouped(self, lookup: Lookup, met: set[str]) -> Lookup:
        """Look up the group of a category that belongs to one."""
        names = set(self.groups.values()) - set(self.groups)

        def of(category: str) -> int:
            if category in names:
                raise DataError(
                    f"column {self.column!r} has a category {category!r} of its own, which is also the name of a "
                    "group; give the group another name in [recode], or list the category in it"
                )
            if category in self.groups:
                met.add(category)
            return lookup(self.groups.get(category, category))

        return of

    def _in_periods(self, period: str, lookup: Lookup) -> Lookup:
        """Look up the period that a date is in."""

        def of(text: str) -> int:
            day = day_of(text) if self.form is None else written_day(text, self.form)
            if day is None:
                raise DataError(no_day(self.column, text, self.form))
            year, quarter = f"{day.year:04}", (day.month + 2) // 3
            return lookup({"year": year, "quarter": f"{year}-Q{quarter}", "month": f"{year}-{day.month:02}"}[period])

        return of

    def _categories_of(self, values: pa.Array, lookup: Lookup) -> list[int]:
        texts = [
            None if value is None or (isinstance(value, float) and math.isnan(value)) else str(value)
            for value in self._python_values(values)
        ]
        return [MISSING if text is None or text in self.missing else lookup(text) for text in texts]

    def _python_values(self, values: pa.Array) -> list[object]:
        self._require_utf8(values)
        try:
            return list(values.to_pylist())
        except (ValueError, OverflowError, KeyError, pa.ArrowException):
            sentence = (
                f"column {self.column!r} has a date or time that has no text, as its year lies outside 1 to 9999 or "
                "its time zone is unknown; store the column as text"
            )
        raise DataError(sentence)

    def _bins_of(self, values: pa.Array, lookup: Lookup) -> CodeArray:
        if is_number(values.type):
            values = self._without(self._missing_numbers(values.type), values)
        else:
            values = self._parsed(values)
        missing = np.array(values.is_null(nan_is_null=True).to_numpy(zero_copy_only=False), dtype=np.bool_)
        exact = pa.types.is_integer(values.type)
        numbers = (values if exact else values.cast(pa.float64())).fill_null(0).to_numpy(zero_copy_only=False)
        present = numbers[~missing]
        if not exact and not np.isfinite(present).all():
            raise DataError(
                f"column {self.column!r} has infinite numbers, which belong to no bin; correct them, or list their "
                'text ("inf") in missing of [source]'
            )
        edges = _whole_edges(self.edges, numbers.dtype) if exact else np.array(self.edges, dtype=np.float64)
        bins = np.searchsorted(edges, present, side="right")
        table = np.full(len(self.bins), MISSING, dtype=np.int64)
        for index in np.flatnonzero(np.bincount(bins, minlength=len(table))):
            table[index] = lookup(self.bins[index])
        codes = np.full(len(values), MISSING, dtype=np.int64)
        codes[~missing] = table[bins]
        return codes

    def _parsed(self, texts: pa.Array) -> pa.Array:
        """Numbers from texts, null where a text means missing."""
        # Imported here, as below: a release that has not changed reads no cell, and this takes long to import.
        import pyarrow.compute as pc

        self._require_utf8(texts)
        texts = pc.utf8_trim_whitespace(self._without(pa.array(sorted(self.missing), texts.type), texts))
        if self.decimal != ".":
            # A point is then none of a number's.
            texts = pc.replace_substring(pc.replace_substring(texts, ".", "?"), self.decimal, ".")
        if not pc.all(pc.match_substring_regex(texts, f"^({NUMBER})$"), min_count=0).as_py():
            others = pc.if_else(pc.match_substring_regex(texts, f"^({NUMBER})$"), pa.scalar(None, texts.type), texts)
            hint = _as_written(others.drop_null().to_pylist(), self.decimal)
            raise DataError(
                f"column {self.column!r} has values that are not numbers, so it cannot be put into bins; {hint}"
            )
        return pc.utf8_ltrim(texts, "+").cast(pa.float64())

    @staticmethod
    def _without(missing: pa.Array, values: pa.Array) -> pa.Array:
        import pyarrow.compute as pc

        return pc.if_else(pc.is_in(values, value_set=missing), pa.scalar(None, values.type), values)

    def _require_utf8(self, values: pa.Array) -> None:
        valid = True
        try:
            values.validate(full=True)
        except pa.ArrowInvalid:
            valid = False
        if not valid:
            raise DataError(f"column {self.column!r} holds text that is not UTF-8; convert it first")

    def _missing_numbers(self, kind: pa.DataType) -> pa.Array:
        """The numbers of this type whose text means missing."""
        marks = []
        for text in self.missing:
            try:
                number = pa.scalar(_number(text, kind), type=kind)
            except (ValueError, InvalidOperation, OverflowError, pa.ArrowException):
                continue  # not a number of this type, so no cell has this text
            if str(number.as_py()) == text:
                marks.append(number.as_py())
        return pa.array(marks, type=kind)


def _whole_edges(edges: Sequence[int | float], kind: np.dtype[Any]) -> npt.NDArray[np.integer[Any]]:
    """Edges as whole numbers of a type, which divide those of this type alike: a float would round the large ones."""
    least, largest = np.iinfo(kind).min, np.iinfo(kind).max
    whole = [max(math.ceil(edge), least) for edge in edges]
    return np.array([edge for edge in whole if edge <= largest], dtype=kind)


def _as_written(texts: Sequence[str], decimal: str) -> str:
    """What to do about texts that are no numbers, the first of which tell how somebody may have meant them."""
    if decimal != ".":
        texts = [text.replace(".", decimal).replace("?", ".") for text in texts]
    first = texts[:1000]
    commas = [text.partition(",")[2] for text in first if re.fullmatch("[+-]?[0-9]+,[0-9]+", text)]
    if decimal == "." and len(commas) == len(first) and any(len(digits) != 3 for digits in commas):
        return 'they have a decimal comma: of csv files say so with decimal = "," in [source]'
    if any(_THOUSANDS.fullmatch(text) for text in first):
        return "some have thousands set apart, as in 12.345,60 or 12,345.60: write them as digits with one decimal mark"
    return "if they mean missing, list them in missing of [source]"


def number_in(text: str, decimal: str = ".") -> float | None:
    """The finite number that a text is; None if it is none."""
    text = text.strip()
    if decimal != ".":
        text = text.replace(".", "?").replace(decimal, ".")
    number = float(text) if re.fullmatch(NUMBER, text) else math.inf
    return number if math.isfinite(number) else None


def is_number(kind: pa.DataType) -> bool:
    """Whether a column type holds plain numbers."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _number(text: str, kind: pa.DataType) -> int | float | Decimal:
    if pa.types.is_integer(kind):
        return int(text)
    return float(text) if pa.types.is_floating(kind) else Decimal(text)


def _computable(array: pa.Array) -> pa.Array:
    """The same values in a type that Arrow can compute with; half floats and string views it can only store."""
    wider = {pa.float16(): pa.float32(), pa.string_view(): pa.string()}.get(_values(array.type))
    if wider is None:
        return array
    return (array.dictionary_decode() if pa.types.is_dictionary(array.type) else array).cast(wider)


def _values(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _is_scalar(kind: pa.DataType) -> bool:
    return bool(
        _is_text(kind)
        or is_number(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_null(kind)
        or pa.types.is_date(kind)
        or pa.types.is_timestamp(kind)
        or pa.types.is_time(kind)
    )


def _short(kind: pa.DataType) -> str:
    """The head of a type's name: what nested types hold can be long."""
    return str(kind).partition("<")[0].partition("[")[0]


def ordered(labels: Iterable[str]) -> list[str]:
    """Labels in order: by value if all are numbers, else naturally (``9th`` before ``10th``)."""
    known = list(labels)
    if all(re.fullmatch(NUMBER, label) for label in known):
        return sorted(known, key=lambda label: (Decimal(label), label))
    return sorted(known, key=lambda label: (natural_key(label), label))
