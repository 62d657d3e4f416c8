"""Drafts of specs: of real tables and of hostile files, which load once a person chose the secret."""

from __future__ import annotations

import gzip
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from funnel.cli import main
from funnel.drafting.command import GivenSource, draft_file
from funnel.drafting.guess import guessed
from funnel.drafting.look import look_at
from funnel.errors import DataError, FunnelError, SpecError
from funnel.joint import Joint
from funnel.progress import quiet
from funnel.source.counting import count_joint
from funnel.spec import ReleaseSpec
from tests.funnel.source.databases import postgres_table, sqlite_table
from tests.ledger.servers import Server
from tests.projects import ADULT, adult_rows


def drafted(folder: Path, source: str | Path, **given: Any) -> str:
    """The text of the draft for a source."""
    output = folder / "draft.toml"
    draft_file(GivenSource(str(source), **given), output, False, quiet)
    return output.read_text(encoding="utf-8")


def chosen(folder: Path, secret: str | None = None) -> ReleaseSpec:
    """The spec after a person took the mark away before the secret."""
    path = folder / "draft.toml"
    text = path.read_text(encoding="utf-8")
    assert "secret" not in tomllib.loads(text)
    text = re.sub(r"(?m)^# secret = (.*)$", lambda found: f"secret = {secret or found[1]}", text)
    path.write_text(text, encoding="utf-8")
    return ReleaseSpec.load(path)


def counted(spec: ReleaseSpec) -> Joint:
    """The counts that a plan begins with; without noise, so that small tables will do."""
    plain = spec.model_copy(update={"frequencies": spec.frequencies.model_copy(update={"protection": "none"})})
    plain._folder = spec.folder
    return count_joint(plain, quiet)


class TestRealTables:
    def test_adult(self, tmp_path: Path) -> None:
        text = drafted(tmp_path, ADULT)
        spec = chosen(tmp_path)
        assert spec.source_path == ADULT.resolve()
        assert spec.secret[0] in ("marital-status", "race", "income")
        assert spec.source.missing == ("", "?")
        assert "# missing in occupation: 2,809" in text
        assert counted(spec).n == 48_842
        # Whatever else is chosen of the candidates does, with the marks of its section taken away.
        assert len(counted(chosen_again(tmp_path, "income")).secret) == 2

    def test_weights_are_no_column_to_begin_with(self, tmp_path: Path) -> None:
        text = drafted(tmp_path, ADULT)
        assert "# Named like survey weights, of which classes can be published for weighted estimates: fnlwgt." in text
        assert "fnlwgt" not in tomllib.loads(text)["publish"]
        # Nothing is named that is not in the clone, and the licence is seen at once.
        assert "docs/" not in text
        assert 'metadata.licence = "CC-BY-4.0"' in text.splitlines()[6]
        assert "exclude" not in text

    def test_a_plan_of_some_of_it(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        people = adult_rows(0, 4000).select(["income", "sex", "relationship"])
        pq.write_table(people, tmp_path / "people.parquet")
        monkeypatch.chdir(tmp_path)
        done = CliRunner().invoke(main, ["init", "people.parquet", "--json"])
        assert done.exit_code == 0, done.output
        assert '"rows": 4000' in done.output
        path = tmp_path / "people.toml"
        path.write_text(path.read_text().replace("# secret = ", "secret = "))
        planned = CliRunner().invoke(main, ["plan", "people.toml", "--guarantee", "lip:1.0", "--json"])
        assert planned.exit_code == 0, planned.output

    def test_a_panel(self, tmp_path: Path) -> None:
        people = pa.table(
            {
                "id": [k // 4 for k in range(4000)],
                "year": [2020 + k % 4 for k in range(4000)],
                "docvis": [(k * k) % 17 for k in range(4000)],
                "kids": [k % 3 for k in range(4000)],
            }
        )
        pq.write_table(people, tmp_path / "panel.parquet")
        text = drafted(tmp_path, tmp_path / "panel.parquet")
        assert "# id has 1,000 values in 4,000 records" in text
        assert '# unit = ["id"]' in text
        assert "id" not in chosen(tmp_path).publish
        assert counted(ReleaseSpec.load(tmp_path / "draft.toml")).n == 4000


def chosen_again(folder: Path, secret: str) -> ReleaseSpec:
    path = folder / "draft.toml"
    path.write_text(re.sub(r"(?m)^secret = .*$", f'secret = ["{secret}"]', path.read_text()))
    return ReleaseSpec.load(path)


# What breaks files, TOML and terminals.
HOSTILE = [
    *(
        "a",
        "income",
        "id",
        "",
        " ",
        "a\nb",
        'say "x"',
        "x]\nsecret = ['a']",
        "# c",
        "é",
        "\x7f",
        "\x1b[31m",
        "=1+1",
        "a.b",
    ),
    *("'''", '"""', "\\", "\\u0000", "\u2028", "ﬀ" * 30, "?", "NA"),
]


class TestHostile:
    @settings(max_examples=15)
    @given(
        st.lists(st.sampled_from(HOSTILE), min_size=1, max_size=5),
        st.lists(st.lists(st.sampled_from([*HOSTILE, "1", "3,5", "2026-01-01"]), min_size=5, max_size=5), max_size=9),
        st.sampled_from([",", ";", "\t"]),
    )
    def test_any_csv_is_drafted_or_refused_in_a_sentence(
        self, tmp_path_factory: pytest.TempPathFactory, names: list[str], rows: list[list[str]], delimiter: str
    ) -> None:
        folder = tmp_path_factory.mktemp("hostile")
        quoted = [[f'"{cell.replace(chr(34), chr(34) * 2)}"' for cell in row[: len(names)]] for row in [names, *rows]]
        (folder / "t.csv").write_bytes("\n".join(delimiter.join(row) for row in quoted).encode())
        try:
            text = drafted(folder, folder / "t.csv")
        except FunnelError as error:
            said = str(error)
            text = ""
        if not text:
            assert "\n" not in said
            return
        said = tomllib.loads(text)
        settings_drafted = {"name", "title", "publish", "mechanism", "guarantee", "complete"}
        assert set(said) <= settings_drafted | {"source", "frequencies", "categories", "recode", "output", "metadata"}
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u2028]", text)
        assert set(said.get("publish", ())) <= set(names)
        if "publish" in said and "# secret = " in text:
            chosen(folder)

    def test_a_value_of_two_lines_names_a_category_in_one(self, tmp_path: Path) -> None:
        """Missing values are too few for a category, and join one that is named after its value."""
        rows = ['"a\nb"'] * 400 + ["A"] * 600 + [""] * 8
        (tmp_path / "t.csv").write_text("\n".join(["note,secret", *(f"{row},{i % 2}" for i, row in enumerate(rows))]))
        done = CliRunner().invoke(
            main,
            ["init", str(tmp_path / "t.csv"), "--secret", "secret", "--publish", "note", "-o", str(tmp_path / "s")],
        )
        assert done.exit_code == 0, done.output
        groups = ReleaseSpec.load(tmp_path / "s").recode["note"].groups
        assert groups == {r"a\nb or missing": ("a\nb", "(missing)")}

    def test_a_file_as_it_comes_from_an_office(self, tmp_path: Path) -> None:
        header = 'Bürger-ID;Einkommen (€);Religion;PLZ;geprüft am;x;x;"mit ""Zitat""";leer'
        rows = [
            f"{k:05};{900 + k * 7 % 4000},5;{['rk', 'ev', 'k. A.', ''][k % 4]};{10115 + k % 5};"
            f"2026-0{1 + k % 9}-1{k % 8};1;2;{'=HYPERLINK(1)' if k % 2 else 'nein'};"
            for k in range(600)
        ]
        (tmp_path / "Büro 1.csv").write_bytes("\r\n".join([header, *rows]).encode("cp1252"))
        text = drafted(tmp_path, tmp_path / "Büro 1.csv")
        spec = chosen(tmp_path, '["Religion"]')
        assert (spec.source.encoding, spec.source.delimiter, spec.source.decimal) == ("cp1252", ";", ",")
        assert '# record_key = ["Bürger-ID"]' in text
        assert "Bürger-ID" not in spec.publish
        assert "# Left out: x, since several columns have this name." in text
        assert "# The same in every record: leer." in text
        assert counted(spec).n == 600
        assert re.search(r'(?m)^(# )?\[recode\."Einkommen \(€\)"\]$', text)
        assert re.search(r'(?m)^(# )?period = "month"$', text)

    def test_days_that_are_no_dates_and_a_record_as_header(self, tmp_path: Path) -> None:
        rows = [f"{1 + k % 28}.{1 + k % 12}.24,{k % 2},1" for k in range(1200)]
        (tmp_path / "t.csv").write_text("\n".join(["seen,income,17", *rows]))
        text = drafted(tmp_path, tmp_path / "t.csv")
        assert "# seen: days, of which periods are made where they are written 2026-12-31" in text
        assert "recode.seen" not in text
        assert "# 1 name of a column is a number or a date: if the file begins with a record" in text

    @pytest.mark.parametrize(
        ("day", "said"),
        [
            (lambda k: f"{1 + k % 28}/{1 + k % 12}/2024", ['\n[recode.seen]\nperiod = "month"\nformat = "%d/%m/%Y"\n']),
            (lambda k: f"{1 + k % 12}/{1 + k % 28}/2024", ['\n[recode.seen]\nperiod = "month"\nformat = "%m/%d/%Y"\n']),
            (lambda k: f"202{k % 5}{1 + k % 12:02}{1 + k % 28:02}", ['\nperiod = "year"\nformat = "%Y%m%d"\n']),
            (
                lambda k: f"{1 + k % 12}/{1 + k % 11}/2024",
                ['# format = "%d/%m/%Y"', '# or format = "%m/%d/%Y": only you know which'],
            ),
        ],
    )
    def test_days_in_other_forms(self, tmp_path: Path, day: Callable[[int], str], said: list[str]) -> None:
        (tmp_path / "t.csv").write_text("\n".join(["seen,income", *(f"{day(k)},{k % 2}" for k in range(6000))]))
        text = drafted(tmp_path, tmp_path / "t.csv").replace('publish = ["income"]', 'publish = ["seen"]')
        assert all(line in text for line in said)
        if len(said) == 1:
            (tmp_path / "draft.toml").write_text(text.replace('# secret = ["income"]', 'secret = ["income"]'), "utf-8")
            spec = ReleaseSpec.load(tmp_path / "draft.toml")
            assert 1 < len(counted(spec).inputs.labels) <= 12

    @pytest.mark.parametrize("content", [b"", b"\x00" * 50, b"a,b\n1\n", b"just a line\n", b"a,b\n"])
    def test_what_is_no_table(self, tmp_path: Path, content: bytes) -> None:
        (tmp_path / "t.csv").write_bytes(content)
        with pytest.raises(DataError):
            drafted(tmp_path, tmp_path / "t.csv")


class TestGuesses:
    @pytest.mark.parametrize(
        ("name", "content", "said"),
        [
            ("t.csv", b"a,b\n1,2\n", {}),
            ("t.csv", b"a;b\n1,5;2\n2,5;3\n", {"delimiter": ";"}),
            ("t.csv", b"a\tb\n1\t2\n", {"delimiter": "\t"}),
            ("t.tsv", b"a\tb\n1\t2\n", {}),
            ("t.csv", "a|b\nü|2\n".encode("cp1252"), {"encoding": "cp1252", "delimiter": "|"}),
            ("t.csv", "a,b\nü,2\n".encode("utf-16"), {"encoding": "utf-16"}),
            ("t.csv.gz", gzip.compress(b"a;b\n1;2\n", mtime=0), {"delimiter": ";"}),
            ("t.csv", b"", {}),
        ],
    )
    def test_of_delimiter_and_encoding(self, tmp_path: Path, name: str, content: bytes, said: dict[str, str]) -> None:
        (tmp_path / name).write_bytes(content)
        assert guessed(str(tmp_path / name)) == said

    def test_what_a_person_said_is_kept(self, tmp_path: Path) -> None:
        (tmp_path / "t.csv").write_bytes(b"a;b\n1;2\n2;1\n")
        look = look_at({"path": "t.csv", "delimiter": ","}, tmp_path, quiet)
        assert [column.name for column in look.columns] == ["a;b"]


class TestDatabases:
    def test_tables_of_both(self, postgres: Server, tmp_path: Path) -> None:
        rows = [(k, "rich" if k % 3 else "poor", k % 4, "{}") for k in range(100)]
        url = postgres_table(postgres, "person integer, income text, region integer, note json", rows)
        text = drafted(tmp_path, url, table="people")
        assert "# Left out: note, since its type has no categories" in text
        assert '# record_key = ["person"]' in text
        assert counted(chosen(tmp_path)).n == 100
        (tmp_path / "draft.toml").unlink()
        sqlite_table(tmp_path, "person integer, income text, region integer", [row[:3] for row in rows])
        drafted(tmp_path, f"sqlite:///{tmp_path}/people.sqlite", query="SELECT * FROM people WHERE region < 3")
        assert counted(chosen(tmp_path)).n == 75


class TestFiles:
    def test_a_format_that_the_name_does_not_tell(self, tmp_path: Path) -> None:
        (tmp_path / "t.txt").write_text("income;b\n" + "1;2\n2;1\n1;1\n" * 9)
        with pytest.raises(
            SpecError, match=r"^cannot tell by '\.txt' what t\.txt is written in; say it, as in --format csv"
        ):
            drafted(tmp_path, tmp_path / "t.txt")
        done = CliRunner().invoke(
            main, ["init", str(tmp_path / "t.txt"), "--format", "csv", "-o", str(tmp_path / "draft.toml")]
        )
        assert done.exit_code == 0, done.output
        spec = chosen(tmp_path)
        assert (spec.source.format, spec.source.delimiter) == ("csv", ";")
        assert counted(spec).n == 27

    def test_nothing_is_written_over_unasked(self, tmp_path: Path) -> None:
        (tmp_path / "t.csv").write_text("a,b\n" + "1,2\n2,1\n2,2\n" * 9)
        (tmp_path / "draft.toml").write_text("mine")
        with pytest.raises(SpecError, match="--force"):
            drafted(tmp_path, tmp_path / "t.csv")
        assert (tmp_path / "draft.toml").read_text() == "mine"
        draft_file(GivenSource(str(tmp_path / "t.csv")), tmp_path / "draft.toml", True, quiet)
        assert "publish" in (tmp_path / "draft.toml").read_text()

    def test_a_source_that_is_not_there_writes_nothing(self, tmp_path: Path) -> None:
        done = CliRunner().invoke(main, ["init", str(tmp_path / "none.csv"), "-o", str(tmp_path / "x.toml")])
        assert done.exit_code == 4
        assert done.stderr.splitlines()[-1].startswith("funnel: there is no source file")
        assert not (tmp_path / "x.toml").exists()

    def test_a_path_is_told_from_the_folder_of_the_spec(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "data").mkdir()
        (tmp_path / "specs").mkdir()
        (tmp_path / "data" / "t.csv").write_text("income,b\n" + "1,2\n2,1\n1,1\n" * 9)
        monkeypatch.chdir(tmp_path)
        draft_file(GivenSource("data/t.csv"), Path("specs/draft.toml"), False, quiet)
        assert chosen(tmp_path / "specs").source_path == tmp_path / "data" / "t.csv"
