"""Opening and streaming a source: what fits is read as it stands, what does not is refused without quoting a row."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from funnel.errors import DataError, SpecError
from funnel.readers.formats import Source, open_source

Refusal = Callable[..., str]

ROWS = {"s": ["a", "b", "Zebediah"] * 100, "x": ["u", "v", "w"] * 100, "unused": list(range(300))}


def drained(source: Source, batch_rows: int = 7) -> pa.Table:
    table = pa.Table.from_batches(list(source.batches(["x", "s"], batch_rows)))
    return pa.table({name: table[name].cast(pa.string()) for name in table.column_names})


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_the_columns_come_in_the_order_asked_for_and_in_small_batches(workshop: Any, kind: str) -> None:
    source = open_source(getattr(workshop, kind)(ROWS))
    assert source.names == ("s", "x", "unused")
    assert source.schema.names == ["s", "x"]
    batches = list(source.batches(["x", "s"], batch_rows=7))
    assert {batch.num_rows for batch in batches} == {7, 300 % 7}
    assert all(batch.schema.names == ["x", "s"] for batch in batches)
    assert drained(source).to_pydict() == {"x": ROWS["x"], "s": ROWS["s"]}


def test_a_snapshot_can_be_read_in_place_of_the_source(workshop: Any, tmp_path: Path) -> None:
    spec = workshop.parquet(ROWS)
    pq.write_table(pa.table({"s": ["p", "q"], "x": ["1", "2"]}), tmp_path / "snapshot")
    assert drained(open_source(spec, tmp_path / "snapshot")).to_pydict() == {"x": ["1", "2"], "s": ["p", "q"]}


def test_a_parquet_source_tells_its_rows(workshop: Any) -> None:
    assert open_source(workshop.parquet(ROWS)).n_rows == 300
    assert open_source(workshop.csv(ROWS)).n_rows is None


def test_names_with_dots_are_names(workshop: Any) -> None:
    spec = workshop.parquet({"a": ["1", "2"], "a.b": ["3", "4"]}, secret=["a"], publish=["a.b"])
    (batch,) = open_source(spec).batches(["a", "a.b"])
    assert [batch.column(i).to_pylist() for i in range(2)] == [["1", "2"], ["3", "4"]]


@pytest.mark.parametrize(
    "text",
    [
        "s,x\r\na,1\r\nb,2\r\n",
        "\ufeffs,x\na,1\nb,2",
        "\n\ns,x\n\na,1\n\nb,2\n\n",
        '"s","x"\n"a","1"\n"b","2"\n',
    ],
)
def test_the_usual_spellings_of_csv_are_read(workshop: Any, text: str) -> None:
    assert drained(open_source(workshop.text(text))).to_pydict() == {"x": ["1", "2"], "s": ["a", "b"]}


def test_csv_values_stay_texts(workshop: Any) -> None:
    spec = workshop.text('s;x\n007;1.50\n;NA\ntrue;"a;""b""\nc"\n', source={"delimiter": ";"})
    assert drained(open_source(spec)).to_pydict() == {"x": ["1.50", "NA", 'a;"b"\nc'], "s": ["007", "", "true"]}


def test_a_missing_file_is_named(workshop: Any, refusal: Refusal, tmp_path: Path) -> None:
    message = refusal(lambda: open_source(workshop.spec(tmp_path / "none.parquet")))
    assert "there is no source file" in message
    assert str(tmp_path / "none.parquet") in message


def test_an_empty_folder_is_no_source(workshop: Any, refusal: Refusal, tmp_path: Path) -> None:
    (tmp_path / "a.parquet").mkdir()
    assert "holds no parquet file" in refusal(lambda: open_source(workshop.spec(tmp_path / "a.parquet")))


def test_a_pipe_is_no_source(workshop: Any, refusal: Refusal, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    assert "is not a regular file" in refusal(lambda: open_source(workshop.spec(tmp_path / "pipe.csv")))


@pytest.mark.parametrize("content", [b"", b"PAR1", b"s,x\nZebediah,1\n", b"PAR1Zebediah" * 50 + b"PAR1"])
def test_what_is_not_parquet_is_refused(workshop: Any, refusal: Refusal, content: bytes) -> None:
    assert "is not a parquet file" in refusal(lambda: open_source(workshop.text(content, "parquet")))


@pytest.mark.parametrize("kept", [0.1, 0.5, 0.9, 0.999])
def test_a_truncated_parquet_is_refused(workshop: Any, refusal: Refusal, kept: float) -> None:
    path = workshop.parquet(ROWS).source_path
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * kept)])
    assert "is not a parquet file, or it was cut short" in refusal(lambda: open_source(workshop.spec(path)))


def test_a_damaged_parquet_is_refused_while_it_is_read(workshop: Any, refusal: Refusal) -> None:
    spec = workshop.parquet(ROWS)
    content = bytearray(spec.source_path.read_bytes())
    content[4:200] = bytes(196)
    spec.source_path.write_bytes(content)
    assert "it is damaged" in refusal(lambda: drained(open_source(spec)))


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_an_unknown_column_is_answered_with_the_nearest(workshop: Any, refusal: Refusal, kind: str) -> None:
    spec = getattr(workshop, kind)(ROWS, publish=["x", "unusd"])
    message = refusal(lambda: open_source(spec))
    assert "has no column 'unusd'; did you mean 'unused'? Its columns are s, x, unused" in message


def test_a_column_that_occurs_twice_is_refused(workshop: Any, refusal: Refusal) -> None:
    spec = workshop.text("s,x,x\na,1,2\nb,1,2\n")
    assert "has 2 columns named 'x'; rename all but one" in refusal(lambda: open_source(spec))
    table = pa.Table.from_arrays([pa.array(["a"])] * 3, names=["x", "s", "x"])
    spec = workshop.parquet(ROWS)
    pq.write_table(table, spec.source_path)
    assert "has 2 columns named 'x'" in refusal(lambda: open_source(spec))


def test_a_csv_without_header_is_refused_without_quoting_its_first_row(workshop: Any, refusal: Refusal) -> None:
    spec = workshop.text("Zebediah,1\nb,2\n")
    message = refusal(lambda: open_source(spec))
    assert "names none of the columns s, x; a csv source needs a header line" in message


def test_a_header_in_other_letters_is_recognised(workshop: Any, refusal: Refusal) -> None:
    message = refusal(lambda: open_source(workshop.text("S, X\na,1\n")))
    assert "has no column 's'; did you mean 'S'?" in message


def test_another_delimiter_is_hinted_at(workshop: Any, refusal: Refusal) -> None:
    assert "set delimiter in [source]" in refusal(lambda: open_source(workshop.text("s;x\na;1\n")))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("s,x\na,1\nZebediah\nb,2\n", "row 3 (with the header as row 1) of"),
        ("s,x\na,1\nZebediah,2,Expected 9 columns\n", "has 3 values where the header has 2; correct it"),
        ('s,x\na,1\n"Zebediah,2\nb,2\n', "has 1 values where the header has 2"),
        ('s,x\na,1\nZebediah,"2\nb,2\n', "odd number of quotation marks"),
        ('s,x\na,1\nZebediah,"' + "2" * 10_000_000, "has a row of more than 4 MB"),
    ],
)
def test_a_malformed_row_is_told_but_not_quoted(workshop: Any, refusal: Refusal, text: str, expected: str) -> None:
    spec = workshop.text(text)
    assert expected in refusal(lambda: drained(open_source(spec)))


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "is empty"),
        (b"\n\n", "is empty"),
        (b"s,x\nZebediah,\xff\n", "is not UTF-8 text"),
        (b"\xff\xfes\x00,\x00x\x00", "is not UTF-8 text"),
        (b's,"x\n', "header line"),
    ],
)
def test_what_is_not_csv_is_refused(workshop: Any, refusal: Refusal, content: bytes, expected: str) -> None:
    assert expected in refusal(lambda: drained(open_source(workshop.text(content))))


def test_bad_text_far_into_a_csv_is_refused(workshop: Any, refusal: Refusal) -> None:
    spec = workshop.text(b"s,x\n" + b"a,1\n" * 2_000_000 + b"Zebediah,\xff\n")
    assert "is not UTF-8 text" in refusal(lambda: [None for _ in open_source(spec).batches(["s", "x"])])


@pytest.mark.parametrize("delimiter", [",", ";"])
def test_a_delimiter_of_typed_columns_is_refused(workshop: Any, delimiter: str) -> None:
    spec = workshop.parquet({"s": ["a", "b"], "x": [1, 2]}, source={"delimiter": delimiter})
    with pytest.raises(SpecError, match='delimiter, which is for csv files, and the format is "parquet"'):
        open_source(spec)


@pytest.mark.parametrize("said", [{}, {"format": "csv"}])
def test_tabs_are_the_delimiter_of_tsv_files_whoever_says_the_format(workshop: Any, said: dict[str, str]) -> None:
    spec = workshop.text("s\tx\na\tu\nb\tv\n", "tsv", source=said)
    assert [batch.num_rows for batch in open_source(spec).batches(["x"])] == [2]
    again = workshop.spec(spec.source_path, source={**said, "delimiter": ","})
    with pytest.raises(DataError, match="separated by ','"):
        open_source(again)
