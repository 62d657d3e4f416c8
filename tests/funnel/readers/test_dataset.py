"""Sources of many files: a fixed order, one meaning of every column, a digest over all of them, and bounded means."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from funnel.errors import DataError
from funnel.readers.formats import Source, open_source
from funnel.readers.source_files import find_files
from funnel.source.counting import count_joint
from tests.projects import spec_of

# What is released must not become a part of the source.
ELSEWHERE = {"folder": "../out", "workspace": "../work"}

Refusal = Callable[..., str]


def part(path: Path, s: Any, x: Any = None) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"s": s} if x is None else {"s": s, "x": x}), path)


def rows(source: Source, batch_rows: int = 1 << 17) -> list[tuple[Any, Any]]:
    batches = list(source.batches(["s", "x"], batch_rows))
    assert all(batch.num_rows <= batch_rows for batch in batches)
    return [(row["s"], row["x"]) for batch in batches for row in batch.to_pylist()]


@pytest.fixture
def memory() -> Iterator[Any]:
    storage = fsspec.filesystem("memory")
    yield storage
    storage.rm("/", recursive=True)


def test_files_come_in_the_order_of_their_names_and_others_are_left_out(tmp_path: Path) -> None:
    part(tmp_path / "d" / "b.parquet", ["3"], ["z"])
    part(tmp_path / "d" / "a.pq", ["1", "2"], ["x", "y"])
    part(tmp_path / "d" / "sub" / "c.parquet", ["4"], ["w"])
    for hidden in ("_SUCCESS", ".a.parquet.crc", "README.md", "_metadata.parquet", "_delta_log/0.parquet"):
        (tmp_path / "d" / hidden).parent.mkdir(exist_ok=True)
        (tmp_path / "d" / hidden).write_bytes(b"no parquet")
    expected = [("1", "x"), ("2", "y"), ("3", "z"), ("4", "w")]
    for path in ("d", "d/", f"file://{tmp_path}/d"):
        source = open_source(spec_of(path, tmp_path))
        assert source.n_rows == 4
        assert rows(source) == expected
        assert rows(source, batch_rows=1) == expected
    assert rows(open_source(spec_of("d/*.parquet", tmp_path))) == [("3", "z")]
    assert rows(open_source(spec_of("d/**/*.parquet", tmp_path))) == expected[2:]


@pytest.mark.parametrize("path", ["/**/*.csv", "/**/people.parquet", "/*/**/*.parquet", "/", "file:///"])
def test_a_pattern_over_the_whole_computer_is_refused_before_anything_is_listed(path: str) -> None:
    with mock.patch.object(Path, "glob"), mock.patch.object(Path, "rglob"):
        with pytest.raises(DataError, match="is all of the computer; name the folder"):
            find_files(path, "csv", (".csv",))
        assert not Path.glob.called  # type: ignore[attr-defined]
        assert not Path.rglob.called  # type: ignore[attr-defined]


def test_folders_of_partitions_state_a_column(tmp_path: Path) -> None:
    part(tmp_path / "d" / "x=b%2Fc" / "p.parquet", ["1", "2"])
    part(tmp_path / "d" / "x=a" / "p.parquet", ["3"])
    part(tmp_path / "d" / "x=__HIVE_DEFAULT_PARTITION__" / "p.parquet", ["4"])
    source = open_source(spec_of("d", tmp_path))
    assert source.names == ("s", "x")
    assert sorted(rows(source), key=str) == [("1", "b/c"), ("2", "b/c"), ("3", "a"), ("4", None)]
    assert count_joint(spec_of("d", tmp_path), lambda *_: None).inputs.labels == ("a", "b/c", "(missing)")


def test_other_ways_to_store_the_same_values_agree(tmp_path: Path) -> None:
    texts = [
        pa.array(["a", "b"]),
        pa.array(["b", None], pa.large_string()),
        pa.array(["c", "a"]).dictionary_encode(),
        pa.array(["a", "c"]).dictionary_encode().cast(pa.dictionary(pa.int8(), pa.large_string())),
        pa.nulls(2),
    ]
    numbers = [pa.array([1, 2], kind) for kind in (pa.int8(), pa.int64(), pa.uint16(), pa.int32(), pa.int32())]
    for number, (s, x) in enumerate(zip(texts, numbers, strict=True)):
        part(tmp_path / f"{number}.parquet", s, x)
    part(tmp_path / "5.parquet", pa.array([], pa.string()), pa.array([], pa.int32()))
    source = open_source(spec_of("./", tmp_path, output=ELSEWHERE))
    found = rows(source)
    assert [s for s, _ in found] == ["a", "b", "b", None, "c", "a", "a", "c", None, None]
    assert [x for _, x in found] == [1, 2] * 5
    whole = pa.Table.from_batches(list(source.batches(["s", "x"]))).cast(pa.schema({"s": pa.string(), "x": pa.int64()}))
    pq.write_table(whole, tmp_path / "one.file")
    one = count_joint(spec_of("one.file", tmp_path, source={"format": "parquet"}), lambda *_: None)
    many = count_joint(spec_of("[0-9].parquet", tmp_path), lambda *_: None)
    assert (one.counts == many.counts).all()
    assert one.secret == many.secret


@pytest.mark.parametrize(
    ("s", "x", "words"),
    [
        ([1, 2], ["u", "v"], "sub/b.parquet has the column 's' as int64, but a.parquet or a file after it has it as"),
        ([0.5, 1.5], ["u", "v"], "sub/b.parquet has the column 's' as double"),
        (["a", "b"], None, "sub/b.parquet has no column 'x'"),
        ([["Zebediah"], ["b"]], ["u", "v"], "sub/b.parquet has the column 's' as list"),
    ],
)
def test_a_partition_that_differs_is_named_with_its_column(
    tmp_path: Path, refusal: Refusal, s: Any, x: Any, words: str
) -> None:
    part(tmp_path / "a.parquet", ["Zebediah", "b"], ["u", "v"])
    part(tmp_path / "sub" / "b.parquet", s, x)
    assert words in refusal(lambda: open_source(spec_of("./", tmp_path, output=ELSEWHERE)))


@pytest.mark.parametrize("kept", [0, 3, 200])
def test_a_truncated_file_among_whole_ones_is_named(tmp_path: Path, refusal: Refusal, kept: int) -> None:
    part(tmp_path / "a.parquet", ["Zebediah", "b"], ["u", "v"])
    (tmp_path / "b.parquet").write_bytes((tmp_path / "a.parquet").read_bytes()[:kept])
    message = refusal(lambda: open_source(spec_of("./", tmp_path, output=ELSEWHERE)))
    assert "b.parquet is not a parquet file, or it was cut short" in message


def test_damage_inside_a_file_is_found_while_reading(tmp_path: Path, refusal: Refusal) -> None:
    part(tmp_path / "a.parquet", ["Zebediah", "b"], ["u", "v"])
    part(tmp_path / "b.parquet", [f"{n}" for n in range(5000)], ["u"] * 5000)
    content = bytearray((tmp_path / "b.parquet").read_bytes())
    content[4:2000] = bytes(1996)
    (tmp_path / "b.parquet").write_bytes(content)
    source = open_source(spec_of("./", tmp_path, output=ELSEWHERE))
    assert "b.parquet cannot be read to its end as parquet" in refusal(lambda: rows(source))


def test_folders_without_data_or_of_csv_are_refused(tmp_path: Path, refusal: Refusal) -> None:
    (tmp_path / "e").mkdir()
    (tmp_path / "e" / "_SUCCESS").write_text("")
    assert "holds no parquet file" in refusal(lambda: open_source(spec_of("e", tmp_path)))
    assert "holds no parquet file" in refusal(lambda: open_source(spec_of("e/*.parquet", tmp_path)))
    csv = spec_of("e", tmp_path, source={"format": "csv"})
    assert "is not one file; name one csv file" in refusal(lambda: open_source(csv))
    assert "there is no source file" in refusal(lambda: open_source(spec_of("none/", tmp_path)))


def test_the_digest_is_over_names_and_contents(tmp_path: Path) -> None:
    part(tmp_path / "one" / "a.parquet", ["1"], ["x"])
    part(tmp_path / "one" / "b.parquet", ["2"], ["y"])
    source = open_source(spec_of("one", tmp_path))
    seen = [source.digest()]
    (tmp_path / "one").rename(tmp_path / "two")
    assert open_source(spec_of("two", tmp_path)).digest() == seen[0]
    source = open_source(spec_of("two", tmp_path))
    (tmp_path / "two" / "_SUCCESS").write_text("")
    assert source.digest() == seen[0]
    (tmp_path / "two" / "b.parquet").rename(tmp_path / "two" / "c.parquet")
    seen.append(source.digest())
    part(tmp_path / "two" / "c.parquet", ["3"], ["y"])
    seen.append(source.digest())
    part(tmp_path / "two" / "d.parquet", ["3"], ["y"])
    seen.append(source.digest())
    assert len(set(seen)) == 4


def test_many_small_files_are_read_in_few_batches_with_one_file_open(tmp_path: Path) -> None:
    part(tmp_path / "0000.parquet", ["a", "b"], ["u", "v"])
    content = (tmp_path / "0000.parquet").read_bytes()
    for number in range(1, 400):
        (tmp_path / f"{number:04}.parquet").write_bytes(content)
    source = open_source(spec_of("./", tmp_path, output=ELSEWHERE))
    assert source.n_rows == 800
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - names alone, without opening them
    batches = source.batches(["s", "x"], 300)
    sizes = [next(batches).num_rows]
    assert len(os.listdir("/proc/self/fd")) <= before + 2  # noqa: PTH208
    sizes += [batch.num_rows for batch in batches]
    assert sizes == [300, 300, 200]


def test_sources_in_memory(memory: Any, tmp_path: Path, refusal: Refusal) -> None:
    part(tmp_path / "a.parquet", ["1", "2"], ["x", "y"])
    content = (tmp_path / "a.parquet").read_bytes()
    memory.pipe("/lake/y=1/a.parquet", content)
    memory.pipe("/lake/y=2/a.parquet", content)
    memory.pipe("/lake/_SUCCESS", b"")
    memory.pipe("/people.csv", b"s,x\n1,x\n2,y\n")
    twice = [("1", "x"), ("2", "y")] * 2
    assert rows(open_source(spec_of("memory://lake", tmp_path))) == twice
    assert rows(open_source(spec_of("memory://lake/*/a.parquet", tmp_path))) == twice
    assert rows(open_source(spec_of("memory://lake/y=1/a.parquet", tmp_path))) == twice[:2]
    assert rows(open_source(spec_of("memory://people.csv", tmp_path))) == twice[:2]
    stated = open_source(spec_of("memory://lake", tmp_path, publish=["y"]))
    assert [row["y"] for batch in stated.batches(["y"]) for row in batch.to_pylist()] == ["1", "1", "2", "2"]
    # The digest does not depend on where the files are.
    for year in ("1", "2"):
        (tmp_path / "lake" / f"y={year}").mkdir(parents=True)
        (tmp_path / "lake" / f"y={year}" / "a.parquet").write_bytes(content)
    local = open_source(spec_of("lake", tmp_path))
    assert local.digest() == open_source(spec_of("memory://lake", tmp_path)).digest()
    memory.pipe("/lake/y=2/a.parquet", content[:-9])
    assert "lake/y=2/a.parquet is not a parquet file" in refusal(
        lambda: open_source(spec_of("memory://lake", tmp_path))
    )
    assert "there is no source file memory://none.parquet" in refusal(
        lambda: open_source(spec_of("memory://none.parquet", tmp_path))
    )
