"""A source counted again: the same as the release is made from, whatever the source holds and the spec says."""

from __future__ import annotations

import base64
import contextlib
import csv
import datetime as dt
import gzip
import hashlib
import io
import math
import os
import sys
import zipfile
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pyarrow import feather, ipc, orc

from funnel import DataError, FunnelError
from funnel.errors import PipelineError
from funnel.progress import quiet
from funnel.readers import formats
from funnel.readers.formats import open_source
from funnel.readers.formats.parquet import Parquet
from funnel.recount import rows as recount_rows
from funnel.recount.arrow_files import zones_of
from funnel.recount.rows import CsvReader
from funnel.recount.source import Recount, recount, source_columns
from funnel.source.counting import count_joint
from funnel.spec import ReleaseSpec

DATA = Path(__file__).parents[3] / "data"


def spec_of(folder: Path, path: str, **said: Any) -> ReleaseSpec:
    source = {"path": path, **said.pop("source", {})}
    settings = {
        "name": "x",
        "title": "x",
        "secret": ["s"],
        "publish": ["u"],
        "source": source,
        "guarantee": "lip:1.0",
        "metadata": {"licence": "CC0-1.0"},
        "frequencies": {"protection": "none"},
        "output": {"folder": str(folder / "out" / "releases")},
        **said,
    }
    return ReleaseSpec.of(settings, folder=folder)


def parquet_of(folder: Path, s: Any, u: Any, **said: Any) -> ReleaseSpec:
    """A spec of a file t.parquet with two columns."""
    pq.write_table(pa.table({"s": s, "u": u}), folder / "t.parquet")
    return spec_of(folder, "t.parquet", **said)


def same(spec: ReleaseSpec) -> Recount | None:
    """The recount, after making sure that it says what the joint distribution does; None where there is none."""
    try:
        joint = count_joint(spec, quiet)
    except FunnelError:
        return None
    counted = recount(spec)
    assert set(counted.secret) == set(joint.secret.symbols)
    assert set(counted.inputs) == set(joint.inputs.symbols)
    assert counted.table(joint.secret.symbols, joint.inputs.symbols) == joint.counts.tolist()
    assert counted.rows == joint.n
    assert counted.sha256 == open_source(spec).digest()
    return counted


# Few symbols, so that values repeat; and those that readers of csv stumble over.
TEXT = st.text(st.sampled_from([*list("ab,;\"\n\r\t ?'\x00é1.9-"), "\u2028", "\xa0", "𝔘", "٣"]), max_size=4)
CATEGORY = st.one_of(st.sampled_from(["a", "b", "9th", "10th", "?", "", "Other", "nan", "1", "1.0", " 1", "-0"]), TEXT)
NUMBER = st.one_of(
    st.sampled_from(["0", "-0.0", "+1", "1.", ".5", "1e3", "25", "24.999999999999999", "0.1", "1e-400", ""]),
    st.integers(-5, 70).map(str),
    st.floats(-50, 50).map(repr),
)
GROUPS: list[dict[str, Any]] = [
    {},
    {},
    {"minimum_count": 2},
    {"minimum_count": 3, "other": "rest"},
    {"groups": {"a or 1": ["a", "1"], "9th": ["9th", "10th", "(missing)"]}},
    {"groups": {"most": ["a", "b", "Other", "nan"], "1": ["1", "1.0"]}, "minimum_count": 2},
]
BINS: list[dict[str, Any]] = [
    {"bins": [0, 25]},
    {"bins": [0.1, 25.0, 40]},
    {"bins": [10], "minimum_count": 4},
    {"bins": [0, 25], "groups": {"old or unknown": ["25 and over", "(missing)"]}, "minimum_count": 3},
]
SOURCES = st.fixed_dictionaries(
    {
        "missing": st.sampled_from([[""], [], ["?", ""], ["nan", "1.0", "0"]]),
        "on_missing": st.sampled_from(["category", "drop"]),
    }
)


@st.composite
def recoded(
    draw: st.DrawFn, values: st.SearchStrategy[Any], size: int, numeric: bool
) -> tuple[list[Any], dict[str, Any]]:
    """Cells of few values, and a recoding that they may have."""
    few = draw(st.lists(st.none() | values, min_size=2, max_size=5, unique_by=repr))
    cells = [*few, *draw(st.lists(st.sampled_from(few), min_size=size - len(few), max_size=size - len(few)))]
    return draw(st.permutations(cells)), draw(st.sampled_from([*GROUPS, *(BINS if numeric else [])]))


# How a field may be written, by programs and by people; what it says is for the readers to agree on.
FIELDS = st.sampled_from(
    [
        "a",
        "b",
        "",
        " ",
        '"a"',
        '"b, c"',
        '"a""b"',
        '"d\ne"',
        '"d\r\ne"',
        '""',
        '"a"b',
        'a"b"',
        'a""b',
        ' "a"',
        "é",
        "\x00",
    ]
)
LINES = st.sampled_from(["\n", "\n", "\r\n", "\r", "\n\n", "\r\n\n"])


class TestCsv:
    @settings(max_examples=60, deadline=None)
    @given(
        recoded(CATEGORY, 12, numeric=False) | recoded(NUMBER, 12, numeric=True),
        SOURCES,
        st.sampled_from([",", ";", "\t"]),
        st.sampled_from(["\n", "\r\n", "\r"]),
        st.booleans(),
    )
    def test_written_by_a_program(
        self,
        tmp_path_factory: pytest.TempPathFactory,
        column: tuple[list[str | None], dict[str, Any]],
        source: dict[str, Any],
        delimiter: str,
        end: str,
        marked: bool,
    ) -> None:
        folder = tmp_path_factory.mktemp("csv")
        cells, recode = column
        text = io.StringIO()
        writer = csv.writer(text, delimiter=delimiter, lineterminator=end)
        writer.writerow(["s", "u", "unused"])
        writer.writerows((s, u or "", "x") for s, u in zip("aabbbccaabbc", cells, strict=True))
        (folder / "t.csv").write_bytes((b"\xef\xbb\xbf" if marked else b"") + text.getvalue().encode())
        recodes = {"u": recode} if recode else {}
        same(spec_of(folder, "t.csv", source={**source, "delimiter": delimiter}, recode=recodes))

    @settings(max_examples=80, deadline=None)
    @given(st.lists(st.tuples(FIELDS, FIELDS, LINES), max_size=8), st.text(st.sampled_from('",\n\ra'), max_size=2))
    def test_written_by_hand(
        self, tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str, str]], slip: str
    ) -> None:
        folder = tmp_path_factory.mktemp("csv")
        body = "".join(f"{s},{u}{end}" for s, u, end in rows)
        (folder / "t.csv").write_bytes(f"s,u\na,a\nb,b\n{body}{slip}".encode())
        same(spec_of(folder, "t.csv", source={"missing": ["", " "]}))

    def test_one_column_and_blank_lines(self, tmp_path: Path) -> None:
        (tmp_path / "t.csv").write_text("\n\ns,u\n\na,1\r\n\rb,2\n,\n")
        counted = same(spec_of(tmp_path, "t.csv"))
        assert counted is not None
        assert counted.counts[(("(missing)",), ("(missing)",))] == 1

    def test_cells_longer_than_the_reader_allows_by_itself(self, tmp_path: Path) -> None:
        before = csv.field_size_limit()
        (tmp_path / "t.csv").write_text(f"s,u,note\na,1,{'x' * 300_000}\nb,2,y\n")
        assert same(spec_of(tmp_path, "t.csv")) is not None
        assert csv.field_size_limit() == before

    @pytest.mark.parametrize("content", [b"s,u\na\n", b"s,u\n\xff,1\n", b"", b"s,s,u\na,b,c\n", b"x,y\na,b\n"])
    def test_what_cannot_be_counted_is_refused(self, tmp_path: Path, content: bytes) -> None:
        (tmp_path / "t.csv").write_bytes(content)
        with pytest.raises(DataError):
            recount(spec_of(tmp_path, "t.csv"))


TIMES = st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2100, 1, 1))
COLUMNS: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.string(), CATEGORY),
    (pa.large_string(), CATEGORY),
    (pa.string_view(), CATEGORY),
    (pa.dictionary(pa.int8(), pa.string()), CATEGORY),
    (pa.dictionary(pa.int32(), pa.int64()), st.integers(-2, 60)),
    (pa.int8(), st.integers(-128, 127)),
    (pa.int64(), st.sampled_from([0, -1, 25, 2**53 + 1, 2**63 - 1, -(2**63)])),
    (pa.uint64(), st.sampled_from([0, 2**64 - 1, 2**63, 7])),
    (pa.float16(), st.sampled_from([0.0, -0.0, 0.1, math.nan, 2.5])),
    (pa.float32(), st.sampled_from([0.0, -0.0, 0.1, 1e-45, 3e38, math.nan, 25.0])),
    (pa.float64(), st.sampled_from([0.0, -0.0, 0.1, 0.1 + 2**-56, 5e-324, 1e300, 1e16, 1e-5, math.nan, 25.0])),
    (pa.decimal128(12, 3), st.decimals(-99, 99, places=3)),
    (pa.decimal128(38, 10), st.sampled_from([Decimal("1E-10"), Decimal(0), Decimal("123456789012345678901234567.1")])),
    (pa.bool_(), st.booleans()),
    (pa.date32(), st.dates()),
    (pa.date64(), st.dates()),
    (pa.timestamp("s"), TIMES.map(lambda time: time.replace(microsecond=0))),
    (pa.timestamp("ms"), TIMES.map(lambda time: time.replace(microsecond=time.microsecond // 1000 * 1000))),
    (pa.timestamp("us"), TIMES),
    (pa.timestamp("ns"), st.integers(-(2**60), 2**62)),
    (pa.timestamp("us", "UTC"), TIMES),
    (pa.timestamp("ns", "UTC"), st.integers(-(2**60), 2**62)),
    (pa.timestamp("ms", "+05:30"), TIMES.map(lambda time: time.replace(microsecond=0))),
    (pa.timestamp("us", "Europe/Amsterdam"), TIMES),
    (pa.time32("ms"), st.times().map(lambda time: time.replace(microsecond=1000))),
    (pa.time64("us"), st.times()),
    (pa.time64("ns"), st.integers(0, 86_399_999_999_999)),
]


@st.composite
def columns(draw: st.DrawFn) -> tuple[pa.Array, dict[str, Any]]:
    kind, values = draw(st.sampled_from(COLUMNS))
    numeric = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    cells, recode = draw(recoded(values, 9, numeric))
    if pa.types.is_dictionary(kind):
        return pa.array(cells, kind.value_type).dictionary_encode().cast(kind), recode
    return pa.array(cells, kind), recode


# What ORC has no type for, or keeps otherwise than it was given.
NOT_IN_ORC = (
    *(pa.uint64(), pa.float16(), pa.date64(), pa.null()),
    *(pa.time32("ms"), pa.time64("us"), pa.time64("ns"), pa.string_view()),
    *(pa.dictionary(pa.int8(), pa.string()), pa.dictionary(pa.int32(), pa.int64())),
)


def write(table: pa.Table, path: Path) -> None:
    """A file of the format that its name ends in, in parts of four rows where it has any."""
    if path.suffix == ".parquet":
        pq.write_table(table, path, row_group_size=4)
    elif path.suffix == ".orc":
        orc.write_table(table, path)
    elif path.suffix == ".feather":
        feather.write_feather(table, path, compression="zstd", chunksize=4)
    else:
        made = ipc.new_stream if path.suffix == ".arrows" else ipc.new_file
        with made(path, table.schema) as writer:
            writer.write_table(table, max_chunksize=4)


@settings(max_examples=160, deadline=None)
@given(
    columns(),
    SOURCES,
    st.sampled_from([*["t.parquet"] * 3, *["t.orc"] * 2, "t.arrow", "t.feather", "t.arrows"]),
)
def test_columns_of_any_type(
    tmp_path_factory: pytest.TempPathFactory, column: tuple[pa.Array, dict[str, Any]], source: dict[str, Any], name: str
) -> None:
    values, recode = column
    assume(name != "t.orc" or values.type not in NOT_IN_ORC)
    folder = tmp_path_factory.mktemp("typed")
    table = pa.table({"unused": [[1]] * 9, "U": ["x"] * 9, "u": values, "s": list("aabbbbccc")})
    # Feather has neither lists nor half floats as other programs know them.
    write(table.drop_columns(["unused"]) if name == "t.feather" else table, folder / name)
    same(spec_of(folder, name, source=source, recode={"u": recode} if recode else {}))


class TestArrowAndOrc:
    @pytest.mark.parametrize("name", ["t.arrow", "t.orc", "t.arrows"])
    @pytest.mark.parametrize("content", [b"", b"ARROW1 no", b"ORC", b"s,u\n1,2\n"])
    def test_what_is_none_is_refused(self, tmp_path: Path, name: str, content: bytes) -> None:
        (tmp_path / name).write_bytes(content)
        for reads in (recount, open_source):
            with pytest.raises(DataError):
                reads(spec_of(tmp_path, name))

    def test_folders(self, tmp_path: Path) -> None:
        table = pa.table({"u": ["x", "y", "y"]})
        for kind in ("orc", "arrow"):
            for name in ("s=a/1", "s=b/2"):
                (tmp_path / kind / name).parent.mkdir(parents=True, exist_ok=True)
                path = tmp_path / kind / f"{name}.{kind}"
                write(table, path)
            counted = same(spec_of(tmp_path, kind, source={"format": kind}))
            assert counted is not None
            assert counted.rows == 6

    def test_a_format_without_a_second_reader_cannot_be_judged(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        class Other(Parquet):
            name = "other"
            suffixes = (".other",)

        monkeypatch.setitem(formats._FORMATS, "other", Other())
        pq.write_table(pa.table({"s": ["a", "b"], "u": ["x", "y"]}), tmp_path / "t.other")
        spec = spec_of(tmp_path, "t.other")
        assert count_joint(spec, quiet).n == 2
        with pytest.raises(DataError, match="no second reader"):
            recount(spec)


def packed(folder: Path, content: bytes, name: str) -> ReleaseSpec:
    if name.lower().endswith(".gz"):
        # Some programs write one part after another.
        (folder / name).write_bytes(gzip.compress(content[:9]) + gzip.compress(content[9:]))
    elif name.endswith(".zip"):
        with zipfile.ZipFile(folder / name, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("folder/", "")
            archive.writestr("folder/people.csv", content)
            archive.writestr("__MACOSX/folder/._people.csv", b"\x00\x05")
    else:
        (folder / name).write_bytes(content)
    return spec_of(folder, name)


class TestPacked:
    CSV = b"\xef\xbb\xbfs,u\na,1\nb,2\r\n" + b"c,3\n" * 100_000

    @pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".csv.zip", ".CSV.GZ", ".tsv", ".tsv.gz", ".tsv.zip"])
    def test_is_read_as_what_is_in_it(self, tmp_path: Path, ending: str) -> None:
        is_tabbed = ".tsv" in ending
        counted = same(packed(tmp_path, self.CSV.replace(b",", b"\t") if is_tabbed else self.CSV, f"t{ending}"))
        assert counted is not None
        assert counted.rows == 100_002

    @pytest.mark.parametrize("name", ["t.csv.gz", "t.csv.zip"])
    @pytest.mark.parametrize("kept", [0.2, 0.7, 0.99])
    def test_a_file_cut_short_is_refused(self, tmp_path: Path, name: str, kept: float) -> None:
        spec = packed(tmp_path, self.CSV, name)
        content = (tmp_path / name).read_bytes()
        (tmp_path / name).write_bytes(content[: int(len(content) * kept)])
        with pytest.raises(DataError, match="cannot be unpacked"):
            count_joint(spec, quiet)
        with pytest.raises(DataError):
            recount(spec)

    @pytest.mark.parametrize("name", ["t.csv.gz", "t.csv.zip"])
    def test_a_damaged_file_is_refused(self, tmp_path: Path, name: str) -> None:
        spec = packed(tmp_path, b"s,u\n" + b"".join(b"%d,%d\n" % (k % 7, k % 11) for k in range(9999)), name)
        content = bytearray((tmp_path / name).read_bytes())
        content[len(content) // 2] ^= 0xFF
        (tmp_path / name).write_bytes(content)
        for reads in (lambda spec: count_joint(spec, quiet), recount):
            with pytest.raises(DataError):
                reads(spec)

    def test_several_files_in_one_are_refused(self, tmp_path: Path) -> None:
        with zipfile.ZipFile(tmp_path / "t.csv.zip", "w") as archive:
            archive.writestr("a.csv", self.CSV)
            archive.writestr("b.csv", self.CSV)
        spec = spec_of(tmp_path, "t.csv.zip")
        with pytest.raises(DataError, match="holds 2 files; pack one csv file"):
            open_source(spec)
        with pytest.raises(DataError, match="holds 2 files"):
            recount(spec)

    def test_at_a_url(self, tmp_path: Path) -> None:
        storage = fsspec.filesystem("memory")
        packed(tmp_path, self.CSV, "t.csv.gz")
        packed(tmp_path, self.CSV, "t.csv.zip")
        try:
            for name in ("t.csv.gz", "t.csv.zip"):
                storage.pipe_file(f"/packed/{name}", (tmp_path / name).read_bytes())
                assert same(spec_of(tmp_path, f"memory://packed/{name}")) is not None
        finally:
            storage.rm("/packed", recursive=True)


class TestParquet:
    def test_points_in_time_as_older_programs_store_them(self, tmp_path: Path) -> None:
        times = pa.array([dt.datetime(2020, 1, 2, 3, 4, 5, 6), dt.datetime(1969, 1, 1), None], pa.timestamp("ns"))
        table = pa.table({"s": ["a", "b", "a"], "u": times})
        pq.write_table(table, tmp_path / "t.parquet", use_deprecated_int96_timestamps=True, store_schema=False)
        assert same(spec_of(tmp_path, "t.parquet")) is not None

    @pytest.mark.parametrize(
        ("kind", "edges"),
        [
            (pa.int64(), [2**53 + 1]),
            (pa.int64(), [0.5, 2**53 + 1]),
            (pa.int64(), [-(2**70), 2**53 + 1, 2**70]),
            (pa.uint64(), [2**53 + 1]),
            (pa.uint64(), [-7, 2**53 + 1, 2**63 + 1]),
        ],
    )
    def test_whole_numbers_that_no_float_holds(self, tmp_path: Path, kind: pa.DataType, edges: list[float]) -> None:
        largest = 2**63 if pa.types.is_uint64(kind) else 2**62
        values = pa.array([2**53, 2**53 + 1, 0, largest, largest + 1], kind)
        assert same(parquet_of(tmp_path, list("aabbb"), values, recode={"u": {"bins": edges}})) is not None

    @pytest.mark.parametrize("name", ["a[1].parquet", "it's.parquet", "b*.parquet", "ü ?.parquet"])
    def test_names_that_are_patterns_elsewhere(self, tmp_path: Path, name: str) -> None:
        pq.write_table(pa.table({"s": ["a", "b"], "u": ["x", "y"]}), tmp_path / name)
        pq.write_table(pa.table({"s": ["c", "d"], "u": ["x", "y"]}), tmp_path / "a1.parquet")
        assert same(spec_of(tmp_path, name)) is not None

    def test_names_of_columns_that_differ_in_case_alone(self, tmp_path: Path) -> None:
        table = pa.table({"U": ["x", "y", "x"], "u": ["1", "2", "2"], "S": ["p", "p", "q"], "s": ["a", "b", "a"]})
        pq.write_table(table, tmp_path / "t.parquet")
        assert same(spec_of(tmp_path, "t.parquet")) is not None
        assert same(spec_of(tmp_path, "t.parquet", secret=["S"], publish=["U"])) is not None

    def test_a_decimal_too_wide_for_the_second_reader_is_refused(self, tmp_path: Path) -> None:
        wide = pa.array([Decimal("1.5"), Decimal("2.5")], pa.decimal256(60, 5))
        with pytest.raises(DataError, match="'u'"):
            recount(parquet_of(tmp_path, ["a", "b"], wide))

    @pytest.mark.parametrize("content", [b"", b"PAR1 no", b"s,u\n1,2\n"])
    def test_what_is_no_parquet_file_is_refused(self, tmp_path: Path, content: bytes) -> None:
        (tmp_path / "t.parquet").write_bytes(content)
        with pytest.raises(DataError):
            recount(spec_of(tmp_path, "t.parquet"))

    def test_a_file_cut_short_is_refused(self, tmp_path: Path) -> None:
        numbers = [str(k) for k in range(10_000)]
        spec = parquet_of(tmp_path, ["a", "b"] * 5000, numbers, limits={"max_symbols": 20_000})
        whole = (tmp_path / "t.parquet").read_bytes()
        (tmp_path / "t.parquet").write_bytes(whole[:3000] + bytes(1000) + whole[4000:])
        with pytest.raises(DataError):
            recount(spec)


def _dataset(folder: Path, files: dict[str, Sequence[tuple[str, str]]], drop: Sequence[str] = ()) -> None:
    for name, rows in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        table = pa.table({"s": [s for s, _ in rows], "u": [u for _, u in rows]})
        pq.write_table(table.drop_columns(list(drop)), path)


class TestDamage:
    @settings(max_examples=12, deadline=None)
    @given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 255)), min_size=1, max_size=4))
    def test_ends_in_a_sentence(self, tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[int, int]]) -> None:
        folder = tmp_path_factory.mktemp("damaged")
        times = pa.array([dt.datetime(2020, 1, day) for day in (1, 2, 3)], pa.timestamp("us", "Europe/Amsterdam"))
        spec = parquet_of(folder, ["a", "b", "a"], times)
        content = bytearray((folder / "t.parquet").read_bytes())
        for place, value in changes:
            content[place % len(content)] = value
        (folder / "t.parquet").write_bytes(content)
        with contextlib.suppress(FunnelError):
            recount(spec)

    @pytest.mark.parametrize("stored", [b"", b"!", base64.b64encode(b"\xff\xff\xff\xff"), base64.b64encode(bytes(6))])
    def test_of_the_stored_schema(self, stored: bytes) -> None:
        with pytest.raises(DataError, match="damaged"):
            zones_of([(stored,)], "t.parquet")

    def test_an_unknown_zone_is_refused(self, tmp_path: Path) -> None:
        times = pa.array([1, 2], pa.timestamp("us", "Nowhere/Atall"))
        with pytest.raises(DataError, match="Nowhere/Atall"):
            recount(parquet_of(tmp_path, ["a", "b"], times))

    def test_without_the_second_reader(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        spec = parquet_of(tmp_path, ["a", "b"], ["x", "y"])
        monkeypatch.setitem(sys.modules, "duckdb", None)
        # A test before may have opened the database of the process.
        monkeypatch.setattr(recount_rows, "_database", recount_rows._database.__wrapped__)
        with pytest.raises(PipelineError, match="funnel\\[pipeline\\]"):
            recount(spec)

    def test_a_database_that_has_ended_is_opened_again(self, tmp_path: Path) -> None:
        spec = parquet_of(tmp_path, ["a", "b"], ["x", "y"])
        before = recount(spec)
        # As after an error that is fatal to it.
        recount_rows._database(os.getpid()).close()
        assert recount(spec) == before


class TestManyFiles:
    FILES = {  # noqa: RUF012
        "2026/b.parquet": [("a", "x"), ("b", "y")],
        "2025/a.pq": [("a", "x"), ("a", "y")],
        "2025/A.PARQUET": [("c", "y")],
        "2025/deep/er/c.parquet": [("c", "z")],
        ".hidden.parquet": [("no", "no")],
        "_tmp/d.parquet": [("no", "no")],
        "2025/note.txt": [("no", "no")],
    }

    @pytest.mark.parametrize(
        "path", ["people", "people/", "people/*/*.parquet", "people/**/*.parquet", "people/202?/*"]
    )
    def test_of_a_folder_or_a_pattern(self, tmp_path: Path, path: str) -> None:
        _dataset(tmp_path / "people", self.FILES)
        (tmp_path / "people" / "link").symlink_to(tmp_path / "people" / "2025")
        counted = same(spec_of(tmp_path, path, source={"format": "parquet"}))
        assert counted is not None
        assert ("no",) not in counted.secret

    def test_columns_that_folders_state(self, tmp_path: Path) -> None:
        files = {"s=a%20b/1.parquet": [("", "x"), ("", "y")], "s=__HIVE_DEFAULT_PARTITION__/1.parquet": [("", "y")]}
        _dataset(tmp_path / "people", files, drop=["s"])
        counted = same(spec_of(tmp_path, "people"))
        assert counted is not None
        assert set(counted.secret) == {("a b",), ("(missing)",)}

    def test_whole_numbers_of_other_widths(self, tmp_path: Path) -> None:
        (tmp_path / "people").mkdir()
        for name, kind, value in (("a", pa.int8(), 5), ("b", pa.int64(), 2**40), ("c", pa.null(), None)):
            table = pa.table({"s": ["a", "b"], "u": pa.array([value, value], kind)})
            pq.write_table(table, tmp_path / "people" / f"{name}.parquet")
        assert same(spec_of(tmp_path, "people")) is not None

    def test_at_a_url(self, tmp_path: Path) -> None:
        storage = fsspec.filesystem("memory")
        _dataset(tmp_path, {"a.parquet": [("a", "x"), ("b", "y")], "b.parquet": [("b", "x"), ("b", "x")]})
        (tmp_path / "t.csv").write_text("s,u\na,1\nb,2\n")
        try:
            for name in ("a.parquet", "b.parquet", "t.csv"):
                storage.pipe_file(f"/recount/{name}", (tmp_path / name).read_bytes())
            for path in ("memory://recount/a.parquet", "memory://recount/", "memory://recount/t.csv"):
                said = {} if path.endswith("csv") else {"format": "parquet"}
                assert same(spec_of(tmp_path, path, source=said)) is not None
        finally:
            storage.rm("/recount", recursive=True)

    def test_a_source_that_changed_has_another_digest(self, tmp_path: Path) -> None:
        _dataset(tmp_path / "people", {"a.parquet": [("a", "x"), ("b", "y")]})
        before = recount(spec_of(tmp_path, "people"))
        _dataset(tmp_path / "people", {"b.parquet": [("a", "x")]})
        after = recount(spec_of(tmp_path, "people"))
        assert before.sha256 != after.sha256
        assert after.rows == 3

    def test_digest_of_one_file_is_that_of_its_content(self, tmp_path: Path) -> None:
        (tmp_path / "t.csv").write_text("s,u\na,1\nb,2\n")
        assert recount(spec_of(tmp_path, "t.csv")).sha256 == hashlib.sha256(b"s,u\na,1\nb,2\n").hexdigest()


@pytest.mark.parametrize(
    ("secret", "publish", "said"),
    [
        (["income"], ["education", "sex"], {}),
        (["marital-status", "sex"], ["occupation"], {"source": {"missing": ["?"], "on_missing": "drop"}}),
        (
            ["relationship"],
            ["native-country", "age"],
            {"recode": {"age": {"bins": [25, 45.5, 65]}, "native-country": {"minimum_count": 300}}},
        ),
    ],
)
def test_adult(tmp_path: Path, secret: list[str], publish: list[str], said: dict[str, Any]) -> None:
    counted = same(spec_of(tmp_path, str(DATA / "adult.parquet"), secret=secret, publish=publish, **said))
    assert counted is not None
    assert counted.rows + counted.dropped == 48_842


@pytest.mark.parametrize(
    ("values", "joins"),
    [
        (["10th", "9th"], "9th"),
        (["b", "a"], "a"),
        (["10", "9.5"], "9.5"),
        (["x", "(missing)"], "x"),
        (["a1b", "a1"], "a1"),
    ],
)
def test_of_rare_values_of_one_size_the_first_in_order_joins(tmp_path: Path, values: list[str], joins: str) -> None:
    # The value of one record needs another to be two together.
    rows = ["7" if values[0] == "10" else "z", *values, *values, *["many"] * (values[0] != "10") * 9]
    cells = ["" if value == "(missing)" else value for value in rows]
    (tmp_path / "t.csv").write_text("s,u\n" + "".join(f"{'ab'[k % 2]},{cell}\n" for k, cell in enumerate(cells)))
    counted = same(spec_of(tmp_path, "t.csv", recode={"u": {"minimum_count": 2}}))
    assert counted is not None
    assert (joins,) not in counted.inputs
    assert ("Other",) in counted.inputs


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_more_combinations_than_are_remembered(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table({"s": list("aabbbcc"), "u": list("xyxyzzx")})
    pq.write_table(table, tmp_path / "t.parquet")
    (tmp_path / "t.csv").write_text("s,u\n" + "".join(f"{row['s']},{row['u']}\n" for row in table.to_pylist()))
    monkeypatch.setattr("funnel.recount.source._REMEMBERED", 3)
    recode = {"u": {"minimum_count": 3}}
    assert same(spec_of(tmp_path, name, recode=recode)) is not None


@pytest.mark.parametrize("remembered", [0, 1 << 18])
def test_a_source_that_changes_meanwhile_is_refused(
    tmp_path: Path, remembered: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "t.csv").write_text("s,u\na,1\nb,2\n")
    monkeypatch.setattr("funnel.recount.source._REMEMBERED", remembered)
    reads = CsvReader.cells

    def changing(reader: CsvReader, file: Path, *rest: Any) -> Iterator[Any]:
        yield from reads(reader, file, *rest)
        file.write_text(file.read_text() + "b,1\n")

    monkeypatch.setattr(CsvReader, "cells", changing)
    with pytest.raises(DataError, match="changed"):
        recount(spec_of(tmp_path, "t.csv"))


class TestTables:
    def test_of_another_order(self, tmp_path: Path) -> None:
        (tmp_path / "t.csv").write_text("s,u\na,1\nb,2\nb,2\n")
        counted = recount(spec_of(tmp_path, "t.csv"))
        assert counted.table([("b",), ("never",), ("a",)], [("2",), ("1",)]) == [[2, 0], [0, 0], [0, 1]]

    @pytest.mark.parametrize("secret", [[("a",)], [("a",), ("b",), ("a",)]])
    def test_that_would_leave_records_out_or_count_them_twice(
        self, tmp_path: Path, secret: list[tuple[str, ...]]
    ) -> None:
        (tmp_path / "t.csv").write_text("s,u\na,1\nb,2\n")
        with pytest.raises(DataError):
            recount(spec_of(tmp_path, "t.csv")).table(secret, [("1",), ("2",)])


@pytest.mark.parametrize("name", ["x.parquet", "x.csv", "x.csv.gz", "x.feather", "x.orc", "year=1990/x.parquet"])
def test_the_second_reader_names_all_columns_as_the_first_does(tmp_path: Path, name: str) -> None:
    table = pa.table({"u": ["a", "b"], "s": ["c", "d"], "Ä 'x'": ["1", "2"]})
    path = tmp_path / "data" / name
    path.parent.mkdir(parents=True)
    written = io.StringIO()
    csv.writer(written).writerows([table.column_names, *zip(*table.to_pydict().values(), strict=True)])
    if name.endswith((".csv", ".gz")):
        text = written.getvalue().encode()
        path.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    else:
        write(table, path)
    folder = "year" in name
    spec = spec_of(tmp_path, "data" if folder else f"data/{name}")
    names = (*table.column_names, *(["year"] if folder else []))
    assert source_columns(spec) == open_source(spec).names == names
    path.write_bytes(b"")
    with pytest.raises(DataError):
        source_columns(spec)
