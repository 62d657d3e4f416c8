"""Drawn numbers: their distribution counted exactly, made alike by both computations, and what a spec may ask for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import funnel
from funnel.audit.drawn_numbers import _difference
from funnel.errors import DataError, SpecError
from funnel.numbers import intervals_of
from funnel.recount.drawn_numbers import (
    PlainNumbers,
    declared_numbers,
    field_again,
    parsed_numbers,
    plain_intervals,
    seed_again,
)
from funnel.recount.released import ReleasedProtocol
from funnel.release.csv_cells import guarded
from funnel.release.handouts import number_table
from funnel.release.handouts.number_table import (
    CHUNK,
    DrawnColumn,
    NumbersOf,
    drawn_columns,
    seed_of,
    write_drawn_numbers,
)
from funnel.release.layout import ReleaseFolder
from tests.projects import spec_of

ASKED: dict[str, Any] = {
    "recode": {"x": {"bins": [10, 20]}},
    "numbers": {"x": {"range": [0, 30], "whole": True, "draw": "within"}},
}


@st.composite
def columns(draw: st.DrawFn) -> DrawnColumn:
    """Texts with rising intervals that do not meet, some of them with none."""
    steps = {}
    for k in range(draw(st.integers(1, 4))):
        gaps = draw(st.lists(st.integers(1, 2**40), min_size=0, max_size=6).map(lambda g: g[: len(g) // 2 * 2]))
        ends = (np.cumsum([draw(st.integers(-(2**42), 2**42)), *gaps]) if gaps else np.array([])).tolist()[1:]
        steps[f"t{k}"] = tuple(zip(ends[::2], ends[1::2], strict=True))
    return DrawnColumn("x", draw(st.integers(0, 9)), steps)


def told(column: DrawnColumn) -> PlainNumbers:
    return PlainNumbers(column.column, column.decimals, {text: list(steps) for text, steps in column.steps.items()})


@settings(max_examples=60)
@given(columns(), st.data())
def test_both_computations_make_the_same_numbers(column: DrawnColumn, data: st.DataObject) -> None:
    codes = data.draw(st.lists(st.integers(0, len(column.steps) - 1), min_size=1, max_size=50))
    array = np.array(codes)
    seed = seed_of("x", iter([array[:7], array[7:]]))
    assert seed == seed_again("x", codes)
    maker = NumbersOf(column, seed)
    for chunk in range(2):
        steps, none = maker.next(array)
        mine = [None if nothing else step for step, nothing in zip(steps.tolist(), none.tolist(), strict=True)]
        assert mine == told(column).steps(codes, seed, chunk)
        for step, code in zip(mine, codes, strict=True):
            within = [low <= step <= high for low, high in column.steps[f"t{code}"]] if step is not None else []
            assert sum(within) == (step is not None)
            assert (step is None) == (not column.steps[f"t{code}"])


@pytest.mark.parametrize("number", [1, 2, 3, 7, 10, 64])
def test_all_numbers_have_as_many_words_but_for_one(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # Words of so few bits that all can be tried: the distribution of 64 bits is the same function of a finer grid.
    column = DrawnColumn(
        "x", 0, {"t": ((5, 4 + number - number // 2), (100, 99 + number // 2))} if number > 1 else {"t": ((5, 5),)}
    )
    words = [w << 52 for w in range(1 << 12)]
    monkeypatch.setattr(number_table, "_words", lambda *_: np.array(words, dtype="<u8").tobytes())
    steps, _ = NumbersOf(column, b"").next(np.zeros(len(words), dtype=np.int64))
    counts = Counter(steps.tolist())
    assert len(counts) == number
    assert max(counts.values()) - min(counts.values()) <= 1


def test_a_known_answer() -> None:
    """Whoever makes numbers by the rule in the manual gets these."""
    column = DrawnColumn("age", 0, {"under 25": ((17, 24),), "25 and over": ((25, 90),)})
    codes = np.array([0, 1, 1, 0, 1])
    seed = seed_of("age", iter([codes]))
    assert seed.hex().startswith("24d151ac3860f0f1")
    assert NumbersOf(column, seed).next(codes)[0].tolist() == [20, 33, 31, 19, 25]


def protocol_of(labels: Sequence[str], bound: float = 0.5) -> funnel.Protocol:
    counts = [[300, 100, 50], [100, 300, 200]]
    return funnel.fit("optimal", funnel.Joint.from_counts(counts, inputs=list(labels)), funnel.LIP(bound))


def test_a_mixed_text_stands_for_the_numbers_of_all_that_it_can_come_from() -> None:
    spec = spec_of("t.csv", ".", publish=["X"], **_of("X"))
    protocol = protocol_of(spec.recode["X"].bin_labels)
    (found,) = drawn_columns(spec, protocol)
    released = ReleasedProtocol.parse(protocol.to_json())
    (again,) = declared_numbers(spec, released, ["X"])
    assert again == told(found).__class__("X", 0, {text: list(steps) for text, steps in found.steps.items()})
    mixed = next(text for text in found.steps if " or " in text)
    assert len(found.steps[mixed]) > 1
    field = field_again(again, "years", str)
    assert parsed_numbers(field, {"X": found.steps}) == again


def _of(column: str) -> dict[str, Any]:
    return {section: {column: of["x"]} for section, of in ASKED.items()}


@pytest.mark.parametrize(
    "spoilt",
    [
        {"rule": "another"},
        {"from": 3},
        {"from": "y"},
        {"decimals": -1},
        {"decimals": True},
        {"unit": 4},
        {"more": 1},
        {"numbers": {"a": [[1, 2]]}},
        {"numbers": {"a": [[1, 2]], "b": [[3, 2]]}},
        {"numbers": {"a": [[1, 2]], "b": [[3, 5], [5, 6]]}},
        {"numbers": {"a": [[1, 2]], "b": [[0.123, 2]]}},
        {"numbers": {"a": [[1, 2]], "b": [["1", 2]]}},
    ],
)
def test_what_is_not_well_formed_is_not_read(spoilt: Mapping[str, Any]) -> None:
    right = {"rule": "funnel/drawn-numbers/1", "from": "x", "decimals": 2, "numbers": {"a": [[1, 2]], "b": []}}
    assert parsed_numbers({"funnel:drawn": right}, {"x": ["a", "b"]}).intervals == {"a": [(100, 200)], "b": []}
    with pytest.raises(DataError, match="drawn numbers cannot be read"):
        parsed_numbers({"funnel:drawn": {**right, **spoilt}}, {"x": ["a", "b"]})


@settings(max_examples=40)
@given(st.lists(st.integers(1, 999), min_size=1, max_size=5, unique=True).map(sorted), st.integers(0, 2))
def test_intervals_of_decimals_end_at_the_last_number_below(edges: list[int], decimals: int) -> None:
    spec = spec_of(
        "t.csv",
        ".",
        recode={"x": {"bins": [edge / 10 for edge in edges]}},
        numbers={"x": {"range": [0, 100], "decimals": decimals}},
    )
    found = intervals_of(spec, "x")
    assert {label: tuple(map(float, ends)) for label, ends in plain_intervals(spec, "x").items()} == found
    pairs = list(found.values())
    parts = 10**decimals
    assert pairs[0][0] == 0
    assert pairs[-1][1] == 100
    for (_, last), (first, _), edge in zip(pairs, pairs[1:], edges, strict=False):
        assert round(first * parts) - round(last * parts) == 1
        assert last < edge / 10 <= first


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"numbers": {"x": {"draw": "within", "range": [0, 30]}}}, "needs to know which numbers there are"),
        ({"numbers": {"x": {"draw": "within", "whole": True}}}, "needs to know which numbers there are"),
        ({"numbers": {"x": {"whole": True, "decimals": 2}}}, "whole numbers with 2 decimals"),
        ({"numbers": {"x": {"draw": "within", "range": [0, 1e12], "decimals": 9}}}, "more numbers than can be drawn"),
        ({"recode": {}}, "draws within the bins of a column, and it has none"),
        ({"publish": ["x", "x (number)"]}, "makes a column 'x \\(number\\)', and there is one already"),
        ({"publish": ["z"], "secret": ["x"]}, "that column is secret"),
    ],
)
def test_what_a_spec_cannot_ask_for_is_one_sentence(change: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        spec_of("t.csv", ".", **{**ASKED, **change})


def test_a_bin_without_a_number_is_refused() -> None:
    spec = spec_of(
        "t.csv",
        ".",
        **{
            **ASKED,
            "publish": ["X"],
            "recode": {"X": {"bins": [10.2, 10.7]}},
            **{"numbers": {"X": ASKED["numbers"]["x"]}},
        },
    )
    protocol = protocol_of(spec.recode["X"].bin_labels)
    with pytest.raises(SpecError, match=r"no number with the declared decimals is in the bin '10\.2 to under 10\.7'"):
        drawn_columns(spec, protocol)


def test_a_table_of_many_records_is_made_again_from_its_files(tmp_path: Path) -> None:
    folder = ReleaseFolder(tmp_path)
    folder.data.parent.mkdir(parents=True)
    texts = ["low", "none", "=high"]
    codes = np.arange(CHUNK + 5000) * 7919 % 3
    column = pa.DictionaryArray.from_arrays(pa.array(codes, pa.int8()), pa.array(texts))
    schema = pa.schema([pa.field("x", column.type, nullable=False)])
    pq.write_table(pa.Table.from_arrays([column], schema=schema), folder.data, row_group_size=50_000)
    drawn = DrawnColumn("x", 2, {"low": ((-105, 7),), "none": (), "=high": ((1000, 1000), (2000, 2009))})
    write_drawn_numbers([drawn], folder, csv=True)
    tables = folder, ["x"], [told(drawn)]
    assert _difference(*tables)[1] is None
    numbers = pq.read_table(folder.drawn)["x (number)"].to_pylist()
    assert [number is None for number in numbers] == (codes == 1).tolist()
    shown = folder.drawn_csv.read_text().splitlines()
    assert shown[0] == '"x","x (number)"'
    for line, code, number in zip(shown[1:2000], codes.tolist(), numbers, strict=False):
        cell = "" if number is None else f'"{number:.2f}"'
        assert line == f'"{guarded(texts[code])}",{cell}'
    # One number, or one cell of the csv, is enough.
    numbers[-1] = 0.05 if numbers[-1] != 0.05 else 0.06
    table = pq.read_table(folder.drawn)
    pq.write_table(table.set_column(1, "x (number)", pa.array(numbers)), folder.drawn)
    assert str(_difference(*tables)[1]).startswith(f"from record {CHUNK + 1:,} on numbers are others")
    write_drawn_numbers([drawn], folder, csv=True)
    folder.drawn_csv.write_text("\n".join([*shown[:-1], '"low","0.07"', ""]))
    assert str(_difference(*tables)[1]).startswith(f"from record {CHUNK + 1:,} on the csv is not")


@pytest.mark.parametrize("rows", [8, 9])
def test_without_a_csv_only_one_table_is_written_and_every_record_is_in_it(
    rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(number_table, "CHUNK", 4)
    folder = ReleaseFolder(tmp_path)
    folder.data.parent.mkdir(parents=True)
    pq.write_table(pa.table({"x": pa.array(["a"] * rows).dictionary_encode()}), folder.data)
    write_drawn_numbers([DrawnColumn("x", 0, {"a": ((1, 9),)})], folder, csv=False)
    assert len(pq.read_table(folder.drawn)) == rows
    assert not folder.drawn_csv.exists()
