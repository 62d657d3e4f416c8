"""Cells: what counts as missing, as a number, as a text, for every type of column a source may have."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from funnel.readers.cells import MISSING, Cells
from funnel.settings.recode import Recode

Refusal = Callable[..., str]

DAY = datetime.date(2020, 2, 29)
NOON = datetime.datetime(2020, 2, 29, 12)


def read(array: pa.Array, missing: tuple[str, ...] = (), bins: list[float] | None = None) -> list[str | None]:
    """The category of each cell, None where it is missing."""
    labels: list[str] = []

    def lookup(category: str) -> int:
        if category not in labels:
            labels.append(category)
        return labels.index(category)

    recode = Recode.model_validate({"bins": bins}) if bins else None
    cells = Cells(
        "x",
        array.type,
        frozenset(missing),
        recode.bins or () if recode else (),
        recode.bin_labels if recode else (),
    )
    return [None if code == MISSING else labels[code] for code in cells.codes(array, lookup)]


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (pa.array(["a", None, "b", "a"]), ["a", None, "b", "a"]),
        (pa.array(["a", "b"], pa.large_string()), ["a", "b"]),
        (pa.array(["a", "b"], pa.string_view()), ["a", "b"]),
        (pa.array([3, None, -1]), ["3", None, "-1"]),
        (pa.array([2**64 - 1], pa.uint64()), ["18446744073709551615"]),
        (pa.array([1.0, 0.1, float("nan"), None, float("inf")]), ["1.0", "0.1", None, None, "inf"]),
        (pa.array([1.5], pa.float32()), ["1.5"]),
        (pa.array([1.5], pa.float16()), ["1.5"]),
        (pa.array([True, False, None]), ["True", "False", None]),
        (pa.array([Decimal("1.50")]), ["1.50"]),
        (pa.array([DAY]), ["2020-02-29"]),
        (pa.array([DAY], pa.date64()), ["2020-02-29"]),
        (pa.array([NOON], pa.timestamp("us")), ["2020-02-29 12:00:00"]),
        (pa.array([NOON], pa.timestamp("ns")), ["2020-02-29 12:00:00"]),
        (pa.array([NOON], pa.timestamp("s", "UTC")), ["2020-02-29 12:00:00+00:00"]),
        (pa.array([datetime.time(1, 2)]), ["01:02:00"]),
        (pa.array([None, None], pa.null()), [None, None]),
        (pa.array([], pa.string()), []),
        (pa.array(["a", None, "b"]).dictionary_encode(), ["a", None, "b"]),
        (pa.array([7, 8, 7]).dictionary_encode(), ["7", "8", "7"]),
        (pa.DictionaryArray.from_arrays(pa.array([0, 1, None], pa.uint8()), pa.array(["a", None])), ["a", None, None]),
        (pa.array(["a", "b", "c"]).dictionary_encode().slice(2), ["c"]),
        (pa.array(["a", "b", "c"]).slice(1, 1), ["b"]),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else "",
)
def test_a_cell_is_its_text(array: pa.Array, expected: list[str | None]) -> None:
    assert read(array) == expected


@pytest.mark.parametrize(
    ("array", "missing", "expected"),
    [
        (pa.array(["?", "", "a"]), ("?",), [None, "", "a"]),
        (pa.array(["?", "", "a"]), ("", "?"), [None, None, "a"]),
        (pa.array([-1, 5]), ("-1",), [None, "5"]),
        (pa.array([-1.0, 5.0]), ("-1",), ["-1.0", "5.0"]),
        (pa.array([-1.0, 5.0]), ("-1.0",), [None, "5.0"]),
        (pa.array([True, False]), ("False",), ["True", None]),
    ],
)
def test_listed_texts_mean_missing(array: pa.Array, missing: tuple[str, ...], expected: list[str | None]) -> None:
    assert read(array, missing) == expected


NUMBERS = [24, 25, 44, 45, 1000, -3]
IN_BINS = ["under 25", "25 to under 45", "25 to under 45", "45 and over", "45 and over", "under 25"]


@pytest.mark.parametrize(
    "array",
    [
        pa.array(NUMBERS),
        pa.array(NUMBERS, pa.int16()),
        pa.array(NUMBERS, pa.float64()),
        pa.array(NUMBERS, pa.float32()),
        pa.array(NUMBERS, pa.float16()),
        pa.array([Decimal(n) for n in NUMBERS]),
        pa.array([str(n) for n in NUMBERS]),
        pa.array([f" {n}.0 " for n in NUMBERS]),
        pa.array([f"{n}e0" for n in NUMBERS], pa.large_string()),
        pa.array(NUMBERS).dictionary_encode(),
        pa.array([str(n) for n in NUMBERS]).dictionary_encode(),
    ],
    ids=lambda array: str(array.type),
)
def test_numbers_of_any_type_fall_into_bins(array: pa.Array) -> None:
    assert read(array, bins=[25, 45]) == IN_BINS


@pytest.mark.parametrize(
    ("array", "missing"),
    [
        (pa.array([1, None, 99]), ("99",)),
        (pa.array([1.0, float("nan"), 99.0]), ("99.0",)),
        (pa.array([1.0, None, float("inf")]), ("inf",)),
        (pa.array([Decimal("1.00"), None, Decimal("99.00")]), ("99.00",)),
        (pa.array(["1", None, "?"]), ("?",)),
        (pa.array(["+1", "", "n/a"]), ("n/a", "")),
        (pa.array([1, None, 99]).dictionary_encode(), ("99",)),
    ],
)
def test_missing_numbers_are_in_no_bin(array: pa.Array, missing: tuple[str, ...]) -> None:
    assert read(array, missing, bins=[25]) == ["under 25", None, None]


@given(
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1),
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=5, unique=True).map(sorted),
)
def test_whole_numbers_are_compared_exactly(numbers: list[int], edges: list[int]) -> None:
    labels = Recode.model_validate({"bins": edges}).bin_labels
    expected = [labels[sum(edge <= number for edge in edges)] for number in numbers]
    assert read(pa.array(numbers, pa.int64()), bins=list(edges)) == expected


@given(
    st.lists(st.floats(allow_infinity=False), min_size=1),
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=5, unique=True).map(sorted),
)
def test_numbers_and_their_texts_fall_into_the_same_bins(numbers: list[float], edges: list[float]) -> None:
    labels = Recode.model_validate({"bins": edges}).bin_labels
    expected = [None if n != n else labels[sum(edge <= n for edge in edges)] for n in numbers]
    assert read(pa.array(numbers), bins=edges) == expected
    assert read(pa.array([repr(n) for n in numbers]), ("nan",), bins=edges) == expected


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (pa.array(["1", "Zebediah"]), "'x' has values that are not numbers"),
        (pa.array(["1", ""]), "'x' has values that are not numbers"),
        (pa.array(["1", "++2"]), "'x' has values that are not numbers"),
        (pa.array(["1", "1_0"]), "'x' has values that are not numbers"),
        (pa.array(["1", "nan"]), "'x' has values that are not numbers"),
        (pa.array([1.0, float("inf")]), "'x' has infinite numbers"),
        (pa.array(["1e999"]), "'x' has infinite numbers"),
        (pa.array([True]), "'x' is of type bool, so it cannot be put into bins"),
        (pa.array([DAY]), "'x' is of type date32, so it cannot be put into bins"),
    ],
)
def test_what_is_no_number_is_in_no_bin(refusal: Refusal, array: pa.Array, expected: str) -> None:
    assert expected in refusal(lambda: read(array, bins=[1]))


@pytest.mark.parametrize(
    "array",
    [
        pa.array([["Zebediah"]]),
        pa.array([{"name": "Zebediah"}]),
        pa.array([[("name", "Zebediah")]], pa.map_(pa.string(), pa.string())),
        pa.array([b"Zebediah"]),
        pa.array([datetime.timedelta(1)]),
    ],
    ids=lambda array: str(array.type),
)
def test_a_column_without_categories_is_refused(refusal: Refusal, array: pa.Array) -> None:
    message = refusal(lambda: read(array))
    assert message.startswith("column 'x' is of type ")
    assert "which has no categories" in message


def test_text_that_is_not_utf8_is_refused(refusal: Refusal) -> None:
    text = b"Zebediah\xff"
    offsets = pa.array([0, len(text)], pa.int32()).buffers()[1]
    array: Any = pa.Array.from_buffers(pa.string(), 1, [None, offsets, pa.py_buffer(text)])
    assert "holds text that is not UTF-8" in refusal(lambda: read(array))
    assert "holds text that is not UTF-8" in refusal(lambda: read(array, bins=[1]))


@pytest.mark.parametrize("kind", [pa.timestamp("s"), pa.timestamp("s", "Mars/Olympus")])
def test_a_time_without_text_is_refused(refusal: Refusal, kind: pa.DataType) -> None:
    array = pa.array([10**12], pa.int64()).cast(pa.timestamp("s")).view(kind)
    assert "has a date or time that has no text" in refusal(lambda: read(array))
