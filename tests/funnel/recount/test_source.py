"""A source counted again: the same as the release is made from, whatever the source holds and the spec says."""

from __future__ import annotations

import csv
import datetime as dt
import hashlib
import io
import math
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from funnel import DataError, FunnelError
from funnel.progress import quiet
from funnel.recount import Recount, recount
from funnel.source import count_joint, open_source
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
        "output": {"folder": str(folder / "out" / "releases")},
        **said,
    }
    return ReleaseSpec.of(settings, folder=folder)


def same(spec: ReleaseSpec) -> Recount | None:
    """The recount, after making sure that it says what the joint law does; None where there is no joint law."""
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
RECODES = st.sampled_from(
    [
        {},
        {"minimum_count": 2},
        {"minimum_count": 3, "other": "rest"},
        {"bins": [0, 25]},
        {"bins": [0.1, 25.0, 40]},
        {"bins": [10], "minimum_count": 4},
    ]
)
SOURCES = st.fixed_dictionaries(
    {
        "missing": st.sampled_from([[""], [], ["?", ""], ["nan", "1.0", "0"]]),
        "on_missing": st.sampled_from(["category", "drop"]),
    }
)


def _recode(said: dict[str, Any], *columns: str) -> dict[str, Any]:
    return {column: said for column in columns} if said else {}


class TestCsv:
    @settings(max_examples=120, deadline=None)
    @given(
        st.lists(st.tuples(CATEGORY, CATEGORY | NUMBER), min_size=2, max_size=14),
        SOURCES,
        RECODES,
        st.sampled_from([",", ";", "\t"]),
        st.sampled_from(["\n", "\r\n", "\r"]),
        st.booleans(),
    )
    def test_written_by_anybody(
        self,
        tmp_path_factory: pytest.TempPathFactory,
        rows: list[tuple[str, str]],
        source: dict[str, Any],
        recode: dict[str, Any],
        delimiter: str,
        end: str,
        marked: bool,
    ) -> None:
        folder = tmp_path_factory.mktemp("csv")
        text = io.StringIO()
        writer = csv.writer(text, delimiter=delimiter, lineterminator=end)
        writer.writerow(["s", "u", "unused"])
        writer.writerows((s, u, "x") for s, u in rows * 2)
        (folder / "t.csv").write_bytes((b"\xef\xbb\xbf" if marked else b"") + text.getvalue().encode())
        same(spec_of(folder, "t.csv", source={**source, "delimiter": delimiter}, recode=_recode(recode, "u")))

    @settings(max_examples=150, deadline=None)
    @given(st.text(st.sampled_from(['"', '"', ",", ",", "\n", "\r", "a", "b", " ", "é", "\x00"]), max_size=24))
    def test_written_by_hand(self, tmp_path_factory: pytest.TempPathFactory, body: str) -> None:
        folder = tmp_path_factory.mktemp("csv")
        (folder / "t.csv").write_bytes(f"s,u\na,a\nb,b\n{body}\n".encode())
        same(spec_of(folder, "t.csv"))

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
    (pa.null(), st.none()),
]


@st.composite
def columns(draw: st.DrawFn) -> pa.Array:
    kind, values = draw(st.sampled_from(COLUMNS))
    few = draw(st.lists(st.none() | values, min_size=1, max_size=5))
    cells = draw(st.lists(st.sampled_from(few), min_size=9, max_size=9))
    if pa.types.is_dictionary(kind):
        return pa.array(cells, kind.value_type).dictionary_encode().cast(kind)
    return pa.array(cells, kind)


class TestParquet:
    @settings(max_examples=250, deadline=None)
    @given(columns(), SOURCES, RECODES)
    def test_of_any_type(
        self, tmp_path_factory: pytest.TempPathFactory, values: pa.Array, source: dict[str, Any], recode: dict[str, Any]
    ) -> None:
        folder = tmp_path_factory.mktemp("parquet")
        table = pa.table({"unused": [[1]] * 9, "U": ["x"] * 9, "u": values, "s": list("aabbbbccc")})
        pq.write_table(table, folder / "t.parquet", row_group_size=4)
        same(spec_of(folder, "t.parquet", source=source, recode=_recode(recode, "u")))

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
        pq.write_table(pa.table({"s": ["a", "b"], "u": wide}), tmp_path / "t.parquet")
        with pytest.raises(DataError, match="'u'"):
            recount(spec_of(tmp_path, "t.parquet"))

    @pytest.mark.parametrize("content", [b"", b"PAR1 no", b"s,u\n1,2\n"])
    def test_what_is_no_parquet_file_is_refused(self, tmp_path: Path, content: bytes) -> None:
        (tmp_path / "t.parquet").write_bytes(content)
        with pytest.raises(DataError):
            recount(spec_of(tmp_path, "t.parquet"))

    def test_a_file_cut_short_is_refused(self, tmp_path: Path) -> None:
        table = pa.table({"s": ["a", "b"] * 5000, "u": [str(k) for k in range(10_000)]})
        pq.write_table(table, tmp_path / "t.parquet")
        whole = (tmp_path / "t.parquet").read_bytes()
        (tmp_path / "t.parquet").write_bytes(whole[:3000] + bytes(1000) + whole[4000:])
        with pytest.raises(DataError):
            recount(spec_of(tmp_path, "t.parquet", limits={"max_symbols": 20_000}))


def _dataset(folder: Path, files: dict[str, Sequence[tuple[str, str]]], drop: Sequence[str] = ()) -> None:
    for name, rows in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        table = pa.table({"s": [s for s, _ in rows], "u": [u for _, u in rows]})
        pq.write_table(table.drop_columns(list(drop)), path)


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
        import fsspec

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
