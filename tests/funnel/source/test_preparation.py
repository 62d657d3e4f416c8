"""Preparation that a spec asks for: which records, periods, encodings, decimal commas; both readers agree."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from funnel.errors import DataError, FunnelError, SpecError
from funnel.joint import Joint
from funnel.mechanisms.memory import largest_table
from funnel.progress import quiet
from funnel.readers.formats import open_source
from funnel.recount.source import recount
from funnel.source.counting import count_joint, require_inputs
from funnel.spec import ReleaseSpec
from tests.funnel.source.databases import sqlite_table
from tests.projects import spec_of

Refusal = Callable[..., str]


def counted_alike(spec: ReleaseSpec) -> dict[str, int]:
    """Records by published value, after making sure that both computations count the same."""
    joint = count_joint(spec, quiet)
    again = recount(spec)
    assert again.table(joint.secret.symbols, joint.inputs.symbols) == joint.counts.tolist()
    assert (again.rows, again.sha256) == (joint.n, open_source(spec.reading).digest())
    return dict(zip(joint.inputs.labels, joint.counts.sum(axis=0).tolist(), strict=True))


CONDITION = st.one_of(
    st.lists(st.sampled_from(["1", "2", "2.0", "x", "-1", ""]), max_size=3),
    st.fixed_dictionaries({"none_of": st.lists(st.sampled_from(["1", "x"]), max_size=2)}),
    st.fixed_dictionaries(
        {"at_least": st.sampled_from([0, 1.5, -1])}, optional={"under": st.sampled_from([2, 2.5, 10**20])}
    ),
    st.fixed_dictionaries({"missing": st.booleans()}, optional={"at_least": st.just(1)}),
)
CELLS: list[tuple[pa.DataType, list[Any]]] = [
    (pa.string(), ["1", "2", "x", None, "?", " 2.0 ", "2e0"]),
    (pa.string(), ["1", "2", "0.5", None, "?", "+2", "-1"]),
    (pa.int64(), [1, 2, 2**60, None, -1, 0, 2]),
    (pa.float64(), [1.0, 2.0, 0.1, None, -1.0, float("nan"), 1e19]),
    (pa.decimal128(9, 2), [1, 2, None, 3, 4, -1, 0]),
    (pa.bool_(), [True, False, None, True, True, False, True]),
]


class TestWhere:
    @settings(max_examples=40)
    @given(st.sampled_from(CELLS), CONDITION, st.none() | CONDITION)
    def test_both_readers_take_the_same_records(
        self, tmp_path_factory: pytest.TempPathFactory, cells: tuple[pa.DataType, list[Any]], first: Any, other: Any
    ) -> None:
        folder = tmp_path_factory.mktemp("where")
        kind, values = cells
        table = pa.table({"s": list("aabbaba"), "x": list("1221xx1"), "w": pa.array(values, kind)})
        pq.write_table(table, folder / "t.parquet")
        where = {"w": first, **({} if other is None else {"x": other})}
        spec = spec_of("t.parquet", folder, source={"where": where, "missing": ["", "?"]})
        try:
            count_joint(spec, quiet)
        except FunnelError:
            return
        counted_alike(spec)

    def test_what_conditions_mean(self, tmp_path: Path) -> None:
        rows = ["a,1,18,NL", "b,2,17,NL", "a,3,64.5,BE", "b,4,65,NL", "a,5,,NL", "b,6,30,DE", "a,1,40,"]
        (tmp_path / "t.csv").write_text("\n".join(["s,x,age,land", *rows]))
        kept = [
            ({"age": {"at_least": 18, "under": 65}}, {"1": 2, "3": 1, "6": 1}),
            ({"age": {"at_least": 18}, "land": ["NL", "BE"]}, {"1": 1, "3": 1, "4": 1}),
            ({"land": {"none_of": ["NL"]}}, {"3": 1, "6": 1}),
            ({"age": {"missing": False}, "s": ["b"]}, None),
            ({"s": {"one_of": ["a", "b"]}, "land": {"missing": False}, "age": {"missing": True}}, None),
        ]
        for where, expected in kept:
            spec = spec_of("t.csv", tmp_path, source={"where": where})
            if expected is None:
                with pytest.raises(DataError):
                    count_joint(spec, quiet)
            else:
                assert counted_alike(spec) == expected
        # Missing values of a column that is not published decide too.
        (tmp_path / "t.csv").write_text("s,x,age\na,1,\nb,1,\nb,2,\na,2,3\n")
        assert counted_alike(spec_of("t.csv", tmp_path, source={"where": {"age": {"missing": True}}})) == {
            "1": 2,
            "2": 1,
        }

    def test_dates(self, tmp_path: Path) -> None:
        days = [dt.date(2025, 12, 31), dt.date(2026, 1, 1), dt.date(2026, 6, 30), None]
        where = {"day": {"at_least": dt.date(2026, 1, 1), "under": dt.date(2027, 1, 1)}}
        for kind in (pa.date32(), pa.timestamp("us"), pa.string()):
            table = pa.table({"s": list("abab") * 2, "x": list("1234") * 2, "day": pa.array(days * 2).cast(kind)})
            pq.write_table(table, tmp_path / "t.parquet")
            assert counted_alike(spec_of("t.parquet", tmp_path, source={"where": where})) == {"2": 2, "3": 2}

    def test_of_databases_and_of_folders(self, tmp_path: Path) -> None:
        path = sqlite_table(tmp_path, "s text, x text, w integer", [("a", "1", 1), ("b", "2", 2), ("a", "2", 3)])
        spec = spec_of(path, tmp_path, source={"table": "people", "where": {"w": {"under": 3}}})
        assert counted_alike(spec) == {"1": 1, "2": 1}
        for year in (2025, 2026):
            (tmp_path / "d" / f"year={year}").mkdir(parents=True)
            table = pa.table({"s": ["a", "b"], "x": [str(year), "z"]})
            pq.write_table(table, tmp_path / "d" / f"year={year}" / "p.parquet")
        spec = spec_of("d", tmp_path, source={"where": {"year": ["2026"]}})
        assert counted_alike(spec) == {"2026": 1, "z": 1}

    def test_what_cannot_be_compared_is_refused(self, workshop: Any, refusal: Refusal) -> None:
        for where, told in ((1, "no numbers"), (dt.date(2026, 1, 1), "no dates")):
            spec = workshop.csv(
                {"s": ["a", "b"], "x": ["1", "2"], "w": ["5", "Zebediah"]}, source={"where": {"w": {"at_least": where}}}
            )
            assert told in refusal(lambda spec=spec: count_joint(spec, quiet))
            refusal(lambda spec=spec: recount(spec))

    @pytest.mark.parametrize(
        ("where", "told"),
        [
            ({"w": {}}, "[source] where, w says no condition"),
            ({"w": {"at_leest": 1}}, "did you mean at_least?"),
            ({"w": {"at_least": "x"}}, "must be a number, or a date"),
            ({"w": {"at_least": True}}, "must be a number, or a date"),
            ({"w": {"at_least": 1, "under": dt.date(2026, 1, 1)}}, "give two of a kind"),
            ({"w": 5}, "where, w must be a table of settings"),
        ],
    )
    def test_a_wrong_condition_is_named(self, where: Any, told: str) -> None:
        with pytest.raises(SpecError) as caught:
            spec_of("t.csv", ".", source={"where": where})
        assert told in str(caught.value)


class TestPeriods:
    @pytest.mark.parametrize(
        ("period", "expected"),
        [
            ("year", {"2025": 2, "2026": 1, "(missing)": 1}),
            ("quarter", {"2025-Q3": 1, "2025-Q4": 1, "2026-Q1": 1, "(missing)": 1}),
            ("month", {"2025-09": 1, "2025-10": 1, "2026-01": 1, "(missing)": 1}),
        ],
    )
    def test_of_dates_times_and_texts(self, tmp_path: Path, period: str, expected: dict[str, int]) -> None:
        days = [dt.date(2025, 9, 30), dt.date(2025, 10, 1), dt.date(2026, 1, 31), None]
        for kind in (pa.date32(), pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.string()):
            pq.write_table(pa.table({"s": list("abab"), "x": pa.array(days).cast(kind)}), tmp_path / "t.parquet")
            spec = spec_of("t.parquet", tmp_path, recode={"x": {"period": period}})
            assert counted_alike(spec) == expected

    def test_groups_of_them(self, tmp_path: Path) -> None:
        (tmp_path / "t.csv").write_text("s,x\na,2025-01-02\nb,2026-03-04\na,2027-05-06T07:08\n")
        recode = {"x": {"period": "year", "groups": {"before": ["2025", "2026"]}}}
        assert counted_alike(spec_of("t.csv", tmp_path, recode=recode)) == {"2027": 1, "before": 2}

    @pytest.mark.parametrize("value", ["Zebediah", "20250102", "2025-W01-1", "2025-13-01", "2025-01-02x"])
    def test_what_is_no_date_is_refused(self, workshop: Any, refusal: Refusal, value: str) -> None:
        spec = workshop.csv({"s": ["a", "b"], "x": ["2025-01-01", value]}, recode={"x": {"period": "year"}})
        assert "2026-12-31" in refusal(lambda: count_joint(spec, quiet))
        refusal(lambda: recount(spec))

    def test_bins_of_them_are_refused(self) -> None:
        with pytest.raises(SpecError, match="bins and a period"):
            spec_of("t.csv", ".", recode={"x": {"bins": [1], "period": "year"}})


class TestText:
    @pytest.mark.parametrize(
        ("encoding", "delimiter"),
        [("cp1252", ";"), ("utf-16", ","), ("utf-8-sig", ","), ("cp437", "|")],
    )
    def test_encodings(self, tmp_path: Path, encoding: str, delimiter: str) -> None:
        text = f"s{delimiter}é\na{delimiter}ü\nb{delimiter}ß\n" + f"b{delimiter}ü\n" * 60_000
        (tmp_path / "t.csv").write_bytes(text.encode(encoding))
        source = {"encoding": encoding, "delimiter": delimiter}
        assert counted_alike(spec_of("t.csv", tmp_path, publish=["é"], source=source)) == {"ß": 1, "ü": 60_001}

    def test_another_encoding_than_is_said(self, tmp_path: Path) -> None:
        (tmp_path / "t.csv").write_bytes("s,x\na,ü\nb,x\n".encode("cp1252"))
        with pytest.raises(DataError, match=r"set encoding in \[source\], for instance to cp1252"):
            count_joint(spec_of("t.csv", tmp_path), quiet)
        (tmp_path / "t.csv").write_bytes("s,x\na,ü\nb,x\n".encode() * 99 + b"\xff")
        for action in (lambda spec: count_joint(spec, quiet), recount):
            with pytest.raises(DataError, match="utf-16"):
                action(spec_of("t.csv", tmp_path, source={"encoding": "utf-16"}))

    def test_decimal_commas(self, tmp_path: Path) -> None:
        (tmp_path / "t.csv").write_text("s;x;w\na;1,5;3\nb; 2,5 ;3\na;0,99;3,5\nb;2;2,9\n")
        source = {"delimiter": ";", "decimal": ",", "where": {"w": {"at_least": 2.95}}}
        spec = spec_of("t.csv", tmp_path, source=source, recode={"x": {"bins": [1.2]}})
        assert counted_alike(spec) == {"under 1.2": 1, "1.2 and over": 2}
        (tmp_path / "t.csv").write_text("s;x;w\na;1.5;3\nb;2,5;3\n")
        for action in (lambda: count_joint(spec, quiet), lambda: recount(spec)):
            with pytest.raises(DataError, match="not numbers"):
                action()

    @pytest.mark.parametrize(
        ("path", "said", "told"),
        [
            ("t.csv", {"encoding": "klingon"}, "'klingon' is not known; give one such as utf-8"),
            ("t.csv", {"encoding": "rot13"}, "'rot13' is not known"),
            ("t.csv", {"decimal": ","}, "set delimiter"),
            ("t.csv", {"decimal": ";"}, "[source] decimal must be '.' or ','"),
            ("t.parquet", {"encoding": "cp1252"}, "is for csv files"),
        ],
    )
    def test_settings_that_do_not_fit(self, path: str, said: dict[str, str], told: str) -> None:
        with pytest.raises(SpecError) as caught:
            spec_of(path, ".", source=said)
        assert told in str(caught.value)


def test_what_nobody_sets_changes_no_digest() -> None:
    plain = spec_of("t.csv", ".")
    said = {"encoding": "UTF8", "decimal": ".", "where": {}, "delimiter": ","}
    assert spec_of("t.csv", ".", source=said).digest == plain.digest
    assert spec_of("t.csv", ".", source=said).coding_digest == plain.coding_digest
    for other in ({"encoding": "cp1252"}, {"where": {"w": ["1"]}}):
        assert spec_of("t.csv", ".", source=other).coding_digest != plain.coding_digest


def test_both_limits_of_combinations_are_named() -> None:
    joint = Joint.from_counts([[1] * 30, [2] * 30])
    with pytest.raises(DataError, match=rf"the 20 of max_inputs .* memory is the limit, .* most {largest_table():,}"):
        require_inputs(joint, 20)
    require_inputs(joint, 30)
