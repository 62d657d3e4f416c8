"""Specs that `funnel init` writes from a few answers: what they choose and why, and that they are released so."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import pandas as pd
import pyarrow.parquet as pq
import pyreadstat
import pytest
from click.testing import CliRunner

from benchmarks.unprepared_tables import codes, missing, panel, survey, visits
from funnel.audit.check import State, overall
from funnel.cli import main
from funnel.donors import column_sets
from funnel.drafting import observers
from funnel.drafting.asking import ask
from funnel.drafting.choice import Answers
from funnel.drafting.command import GivenSource, draft_file
from funnel.drafting.look import look_at
from funnel.drafting.people import RowsOfPeople, records_of_class
from funnel.drafting.roles import roles_of
from funnel.errors import DataError, SpecError
from funnel.progress import quiet
from funnel.release.public_report import PublicReport
from funnel.settings.agreement import conflicts
from funnel.source.counting import count_joint
from funnel.spec import ReleaseSpec
from tests.audits import recheck
from tests.projects import ADULT
from tests.releases import make_release


def notes(folder: Path, source: pd.DataFrame | Path, answers: Answers | None = None) -> str:
    """What `funnel init` says of a table, for which it writes the spec, or a draft without answers."""
    path = source if isinstance(source, Path) else folder / "table.csv"
    if isinstance(source, pd.DataFrame):
        source.to_csv(path, index=False)
    return " ".join(draft_file(GivenSource(str(path)), folder / "spec.toml", True, quiet, answers=answers)["notes"])


def written(folder: Path, source: pd.DataFrame | Path, secret: str, publish: str, **more: Any) -> ReleaseSpec:
    """The spec for a table, as `funnel init` writes it; its text says why."""
    notes(folder, source, Answers(tuple(secret.split(",")), tuple(publish.split(",")), **more))
    return ReleaseSpec.load(folder / "spec.toml")


def text_of(folder: Path) -> str:
    return " ".join((folder / "spec.toml").read_text(encoding="utf-8").replace("\n#", "").split())


class TestTablesOfCounts:
    """Rows of a frequency table are no people: the table is refused, and what to write instead is said."""

    def table(self, name: str = "count") -> pd.DataFrame:
        ages, ill = ("0-17", "18-39", "40-64", "65+"), ("yes", "no")
        cells = [(age, sex, sick) for age in ages for sex in "fm" for sick in ill]
        return pd.DataFrame(cells, columns=["age", "sex", "ill"]).assign(**{name: [3 + k // 2 for k in range(16)]})

    @pytest.mark.parametrize("name", ["count", "n", "Anzahl", "patient_count"])
    @pytest.mark.parametrize("publish", ["age,sex", "all"])
    def test_it_is_refused_with_what_to_do(self, tmp_path: Path, name: str, publish: str | None) -> None:
        with pytest.raises(SpecError, match=f"'{name}' seems to say how many people.*index.repeat"):
            written(tmp_path, self.table(name), "ill", publish)
        assert not (tmp_path / "spec.toml").exists()

    def test_a_draft_says_so(self, tmp_path: Path) -> None:
        assert "'count' seems to say how many people" in notes(tmp_path, self.table())

    def test_a_person_may_say_that_it_is_a_value_of_one_record(self, tmp_path: Path) -> None:
        assert written(tmp_path, self.table(), "ill", "sex,count").publish == ("sex", "count")

    def test_a_count_of_each_of_several_people_is_none(self, tmp_path: Path) -> None:
        table = pd.concat([self.table()] * 3).assign(n=[k % 7 for k in range(48)])
        assert written(tmp_path, table.drop(columns="count"), "ill", "age,sex").publish == ("age", "sex")

    def test_nor_is_one_of_people_who_differ_in_many_columns(self, tmp_path: Path) -> None:
        many = {f"q{k}": [str((row * (k + 3) + row // (k + 1)) % 5) for row in range(60)] for k in range(9)}
        table = pd.DataFrame({"ill": ["yes", "no", "no"] * 20, **many, "n": range(60)})
        assert written(tmp_path, table, "ill", "q0,q1").publish == ("q0", "q1")


class TestNumbersOfPeopleThatRepeat:
    """A bound about one row is no bound about a person: that is said wherever a column looks like one of people."""

    def table(self, name: str) -> pd.DataFrame:
        who = [k * 97 + 5 for k in range(300) for _ in range(1 + k % 3)]
        return pd.DataFrame(
            {name: who, "sex": ["f", "m"] * (len(who) // 2), "ill": [k % 5 < 1 for k in range(len(who))]}
        )

    @pytest.mark.parametrize("name", ["fallnr", "pnr", "Patientennummer", "Kunden-Nr", "case_id"])
    def test_by_their_name(self, tmp_path: Path, name: str) -> None:
        said = notes(tmp_path, self.table(name), Answers(("ill",), ("sex",)))
        assert f"people by {name}, so this bound is about one row" in said

    def test_by_their_values(self, tmp_path: Path) -> None:
        table = self.table("x").assign(x=lambda one: (one["x"] - 5) // 97)
        said = notes(tmp_path, table, Answers(("ill",), ("sex",)))
        assert "x may say whose record it is, of people who have several" in said


@pytest.mark.parametrize("suffix", ["csv", "xlsx"])
def test_a_title_above_the_names_of_columns_is_told(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"source.{suffix}"
    table = pd.DataFrame({"age": [30, 40, 50], "sex": ["f", "m", "f"], "ill": ["yes", "no", "no"]})
    if suffix == "csv":
        path.write_text(f"Survey of 2024\n{table.to_csv(index=False)}", encoding="utf-8")
    else:
        table.to_excel(path, index=False, startrow=1)
        book = openpyxl.load_workbook(path)
        book.active["A1"] = "Survey of 2024"
        book.save(path)
    with pytest.raises(DataError, match=r"(take lines|a title is) above the names of the columns"):
        written(tmp_path, path, "ill", "age,sex")


class TestCodesOfMissingAnswers:
    """-9 among numbers that are 0 or more is no number: left as one, it made a sixth of the people under 22."""

    def table(self, **more: Any) -> pd.DataFrame:
        rows = range(900)
        ages = [-9 if k % 6 == 0 else 18 + k % 60 for k in rows]
        return pd.DataFrame({"age": ages, "ill": ["yes" if k % 4 == 0 else "no" for k in rows], **more})

    @pytest.mark.parametrize("suffix", ["csv", "parquet"])
    def test_they_are_missing_values(self, tmp_path: Path, suffix: str) -> None:
        path = tmp_path / f"source.{suffix}"
        table = self.table(children=[-8 if k % 9 == 0 else k % 3 for k in range(900)])
        table.to_csv(path, index=False) if suffix == "csv" else table.to_parquet(path)
        spec = written(tmp_path, path, "ill", "age,children")
        assert {"-8", "-9"} <= {*spec.source.missing}
        joint = count_joint(spec, quiet)
        assert int(joint.counts[:, [x[0] == "(missing)" for x in joint.inputs.symbols]].sum()) == 150
        assert int(joint.counts[:, [x[1] == "(missing)" for x in joint.inputs.symbols]].sum()) == 100

    @pytest.mark.parametrize(
        "balance",
        [
            [-9 if k % 3 else k for k in range(-400, 500)],
            [k % 5 - 9 for k in range(900)],
            [-1 + k % 4 for k in range(900)],
        ],
        ids=["other negative numbers, too", "most are negative", "a score"],
    )
    def test_numbers_are_not(self, tmp_path: Path, balance: list[int]) -> None:
        spec = written(tmp_path, self.table(balance=balance), "ill", "age,balance")
        assert ("-9" in spec.source.missing) == (-9 not in balance)

    def test_nor_is_the_same_code_a_value_of_a_column_of_texts(self, tmp_path: Path) -> None:
        parties = ["-9" if k % 3 == 1 else "red" if k % 3 else "blue" for k in range(1_800)]
        table = pd.concat([self.table()] * 2, ignore_index=True).assign(party=parties)
        spec = written(tmp_path, table, "party", "age")
        assert count_joint(spec, quiet).secret.symbols == (("blue",), ("red",), ("(missing)",))


class TestDatesOfFewRecords:
    """Years that few records have each were all "Other" under noise: 400 members, and a column that tells nothing."""

    @pytest.mark.parametrize("form", ["{year}-0{month}-15", "15.0{month}.{year}"])
    def test_neighbouring_years_are_one_category(self, tmp_path: Path, form: str) -> None:
        rows = range(400)
        joined = [form.format(year=1990 + k * k % 31, month=1 + k % 9) if k % 80 else None for k in rows]
        table = pd.DataFrame({"joined": joined, "ill": ["yes" if k % 4 == 0 else "no" for k in rows]})
        spec = written(tmp_path, table, "ill", "joined")
        found = count_joint(spec, quiet).inputs.symbols
        names = [name for (name,) in found]
        assert 3 <= len(names) <= 6
        assert names[0].endswith("or earlier")
        assert re.fullmatch("[0-9]{4} or later or missing", names[-1])
        years = [tuple(map(int, re.findall("[0-9]{4}", name))) for name in names]
        assert years == sorted(years)

    def test_months_of_a_year_that_many_records_have_stay(self, tmp_path: Path) -> None:
        days = [f"2024-{1 + k % 12:02}-{1 + k % 28:02}" for k in range(6_000)]
        table = pd.DataFrame({"seen": days, "ill": ["yes" if k % 4 == 0 else "no" for k in range(6_000)]})
        spec = written(tmp_path, table, "ill", "seen")
        assert [name for (name,) in count_joint(spec, quiet).inputs.symbols] == [f"2024-{k:02}" for k in range(1, 13)]


class TestColumnsOfRareValues:
    """A column that would be "Other" for most records tells nothing: it is refused, or left out of all columns."""

    def table(self) -> pd.DataFrame:
        rows = range(600)
        return pd.DataFrame(
            {
                "pay": [f"1.{k // 2:03d},50" for k in rows],
                "street": [f"lane {k // 3}" if k % 10 else "market" for k in rows],
                "sex": ["f" if k % 2 else "m" for k in rows],
                "ill": ["yes" if k % 4 == 0 else "no" for k in rows],
            }
        )

    def test_numbers_with_marks_between_thousands_are_named_as_what_they_are(self, tmp_path: Path) -> None:
        with pytest.raises(SpecError, match=r"'pay', of which most records would be 'Other'.*marks between thousands"):
            written(tmp_path, self.table(), "ill", "sex,pay")

    @pytest.mark.parametrize("form", ["{:,.2f}", "€{:,.2f}", "{:.1f} %", "{:,.0f} USD"])
    def test_amounts_of_which_none_comes_twice_tell_nobody_apart(self, tmp_path: Path, form: str) -> None:
        table = self.table().assign(pay=[form.format(20.5 + 7 * k) for k in range(600)])
        with pytest.raises(SpecError, match=r"'pay', of which most records would be 'Other'.*signs such as €"):
            written(tmp_path, table, "ill", "sex,pay")

    def test_codes_of_one_length_tell_people_apart_whatever_their_marks(self, tmp_path: Path) -> None:
        table = self.table().assign(code=[f"{100 + k}.{k:03d}" for k in range(600)])
        with pytest.raises(SpecError, match=r"'code', which tells whose record it is"):
            written(tmp_path, table.assign(code=table["code"] + ".001"), "ill", "sex,code")

    def test_whole_amounts_that_differ_in_every_record_can_be_rounded(self, tmp_path: Path) -> None:
        table = self.table().assign(pay=[2000 + 7 * k for k in range(600)])
        with pytest.raises(SpecError, match=r"'pay', which tells whose record.*if its values are amounts, round them"):
            written(tmp_path, table, "ill", "sex,pay")

    @pytest.mark.parametrize(
        ("secret", "publish", "option"), [("ill", "street", "publish"), ("street", "sex", "secret")]
    )
    def test_texts_that_hardly_anybody_has_are_refused(
        self, tmp_path: Path, secret: str, publish: str, option: str
    ) -> None:
        with pytest.raises(SpecError, match=f"--{option} names 'street'.*fewer than 10 records.*into groups") as caught:
            written(tmp_path, self.table(), secret, publish)
        assert "lane" not in str(caught.value)

    def test_all_columns_are_all_but_these(self, tmp_path: Path) -> None:
        assert written(tmp_path, self.table(), "ill", "all").publish == ("sex",)
        assert written(tmp_path, self.table(), "ill", "all,ill").publish == ("ill", "sex")
        with pytest.raises(SpecError, match="--publish names 'street'"):
            written(tmp_path, self.table(), "ill", "all,street")

    def test_a_column_may_be_named_all(self, tmp_path: Path) -> None:
        table = self.table().rename(columns={"street": "lane"}).assign(all=lambda one: one["sex"])
        assert written(tmp_path, table, "ill", "all").publish == ("all",)

    def test_half_of_the_records_with_named_values_is_enough(self, tmp_path: Path) -> None:
        table = self.table().assign(street=[f"lane {k // 3}" if k % 2 else "market" for k in range(600)])
        assert "market" in written(tmp_path, table, "ill", "street,sex").categories["street"]

    def test_a_draft_proposes_none_of_them(self, tmp_path: Path) -> None:
        notes(tmp_path, self.table())
        assert "Other" not in text_of(tmp_path).partition("[categories]")[2]


class TestGuarantees:
    def test_few_combinations_have_both_bounds_and_say_for_whom(self, tmp_path: Path) -> None:
        spec = written(tmp_path, ADULT, "income", "education,sex,age")
        assert spec.guarantee.parts == ("rlip:1.0,0.05", "srlip:1.0")
        assert (spec.mechanism.name, spec.frequencies.protection) == ("invariant", "noise")
        assert spec.complete == ("income", "education", "sex", "age")
        assert len(count_joint(spec, quiet).inputs) <= 72
        assert "those who know some of its columns (srlip): 60 combinations of published values and 2" in text_of(
            tmp_path
        )

    def test_a_secret_of_several_values_has_both_too(self, tmp_path: Path) -> None:
        spec = written(tmp_path, ADULT, "marital-status", "education,sex,age")
        assert spec.guarantee.parts == ("rlip:1.0,0.05", "srlip:1.0")
        assert len(count_joint(spec, quiet).inputs) <= 36

    def test_many_have_the_first_and_say_for_whom_not(self, tmp_path: Path) -> None:
        """Three secrets of two values each have eight together."""
        table = pd.read_parquet(ADULT)[["income", "sex", "race", "education", "workclass"]]
        spec = written(tmp_path, table, "income,sex,race", "education,workclass")
        assert spec.guarantee.canonical == "rlip:1.0,0.05"
        assert "Not for those who know some of its columns, which srlip:1.0 is for" in text_of(tmp_path)

    def test_one_column_has_no_others_to_know(self, tmp_path: Path) -> None:
        assert written(tmp_path, ADULT, "income", "education").guarantee.canonical == "rlip:1.0,0.05"

    def test_a_published_secret_has_attribute_protection(self, tmp_path: Path) -> None:
        spec = written(tmp_path, ADULT, "income", "sex,income,education")
        assert (spec.guarantee.canonical, spec.publish) == ("attribute:1.0", ("income", "sex", "education"))

    def test_all_columns_are_whole_records(self, tmp_path: Path) -> None:
        spec = written(tmp_path, ADULT, "income", "all")
        # For observers of any two columns, with the least budget under which most stay; and in the population.
        assert (spec.guarantee.parts, spec.mechanism.name) == (("rlip:1.0,0.05", "srlip:3.0"), "invariant")
        assert (spec.groups.known, spec.groups.held_out) == ("pairs", 0.3)
        assert (spec.frequencies.protection, spec.groups.min_records) == ("threshold", 50)
        # Named one by one, so that a column that comes later is not published unasked.
        assert not spec.groups.auto
        assert len(spec.publish) == 14
        assert "fnlwgt" not in spec.publish
        assert {"age", "capital-gain", "hours-per-week"} <= set(spec.recode)
        assert spec.not_by_class is None
        draft = text_of(tmp_path)
        whom = "none of its 14 columns (rlip, in the population too), and for those who know any one or any two"
        assert whom in " ".join(draft.replace("\n#", "").split())
        assert "Not for observers of three columns" in draft

    def test_where_pairs_have_too_many_values_the_bound_is_for_observers_of_one_column(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(column_sets, "_MOST", 1_000)
        spec = written(tmp_path, ADULT, "income", "all")
        assert (spec.groups.known, spec.guarantee.parts) == ("single", ("rlip:1.0,0.05", "srlip:3.0"))
        assert "for those who know any one, whichever it is (srlip):" in text_of(tmp_path)

    def test_where_few_are_held_out_the_bound_is_for_these_records(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(observers, "_HELD_OUT", 0.01)
        spec = written(tmp_path, ADULT, "income", "all")
        assert (spec.groups.held_out, spec.guarantee.parts) == (0.0, ("lip:1.0", "srlip:3.0"))
        assert "none of its 14 columns (lip), and for those" in text_of(tmp_path)

    def test_of_up_to_eight_columns_with_their_secret_some_may_be_known_together(self, tmp_path: Path) -> None:
        published = "income,age,workclass,education,occupation,relationship,race,sex"
        spec = written(tmp_path, ADULT, "income", published)
        assert (spec.groups.known, spec.guarantee.canonical) == (("sex", "age"), "attribute:1.0")

    def test_columns_that_observers_know_have_as_many_categories_as_there_are_records_for(self, tmp_path: Path) -> None:
        spec = written(tmp_path, ADULT, "income", "all", known=("sex", "age"))
        assert (spec.groups.known, spec.guarantee.parts) == (("sex", "age"), ("lip:1.0", "srlip:1.0"))
        assert spec.recode["age"].edges == (28, 37, 48)
        published = "income,education,sex,race,occupation,relationship,workclass"
        spec = written(tmp_path, ADULT, "income", published, known=("race",))
        assert (spec.groups.known, spec.guarantee.canonical) == (("race",), "attribute:1.0")
        assert "who know all other columns, or none, or any of race" in text_of(tmp_path)

    def test_columns_that_nobody_could_be_protected_from_knowing_are_refused(self, tmp_path: Path) -> None:
        table = pd.read_parquet(ADULT)
        rich = table.index[table["income"] == ">50K"][:60]
        table["sex"] = np.where(table.index.isin(rich), "a", "b")
        with pytest.raises(SpecError, match=r"some values of sex together .* name fewer with --known"):
            written(tmp_path, table, "income", "all", known=("sex",))
        assert not (tmp_path / "spec.toml").exists()

    def test_few_columns_are_all_known_where_one_is_said_to_be(self, tmp_path: Path) -> None:
        spec = written(tmp_path, ADULT, "marital-status", "education,sex,age", known=("sex",))
        assert spec.guarantee.parts == ("rlip:1.0,0.05", "srlip:1.0")
        spec = written(tmp_path, ADULT, "income", "education,sex,age", known=("sex",))
        assert spec.guarantee.parts == ("rlip:1.0,0.05", "srlip:1.0")
        with pytest.raises(SpecError, match="the only published column"):
            written(tmp_path, ADULT, "income", "education", known=("education",))
        with pytest.raises(SpecError, match="'rase', which the source does not have; did you mean race"):
            written(tmp_path, ADULT, "income", "sex,race", known=("rase",))
        with pytest.raises(SpecError, match="--known names 'income'"):
            written(tmp_path, ADULT, "income", "income,race", known=("income",))


class TestPeople:
    def test_several_rows_of_a_person_are_under_one_bound(self, tmp_path: Path) -> None:
        spec = written(tmp_path, visits(600), "chronic", "ward,age,sex", unit=("patient",))
        assert (spec.unit, spec.record_key, spec.register) == (("patient",), ("patient",), "table")
        assert (spec.guarantee.canonical, spec.mechanism.name) == ("lip:1.0", "auto")
        assert "rows of one person are drawn under one bound" in text_of(tmp_path)
        # Nobody named the column: its name says it.
        assert written(tmp_path, visits(600), "chronic", "ward,age,sex").unit == ("patient",)

    def test_a_secret_that_changes_between_rows(self, tmp_path: Path) -> None:
        spec = written(tmp_path, visits(600), "diagnosis", "ward,age", unit=("patient",))
        assert (spec.unit, spec.frequencies.protection) == (("patient",), "none")
        assert (spec.one_secret, spec.disclosure.on_breach) == (None, "report")
        assert "diagnosis changes between the rows of" in text_of(tmp_path)
        spec = written(tmp_path, visits(600), "diagnosis", "ward,age")
        assert spec.unit is None
        assert "so this bound is about one row" in text_of(tmp_path)

    def test_of_a_panel_one_wave_at_a_time(self, tmp_path: Path) -> None:
        spec = written(tmp_path, panel(500), "unemployed", "born,region,children", unit=("pid",))
        assert (spec.record_key, spec.unit) == (("pid",), None)
        assert spec.source.where["year"].one_of == ("2022",)
        assert spec.history is not None
        assert spec.history.people == "same"
        assert count_joint(spec, quiet).n == 500

    def test_a_wave_is_not_published(self, tmp_path: Path) -> None:
        """Of the rows of one wave its column has one value."""
        spec = written(tmp_path, panel(500), "unemployed", "all", unit=("pid",))
        assert "year" in spec.source.where
        assert "year" not in spec.publish

    def test_a_column_that_is_published_or_has_few_rows_at_its_end_is_no_wave(self, tmp_path: Path) -> None:
        """Rows of a person are told apart by them too; but all are asked for, or next to none would be left."""
        alternatives = written(tmp_path, panel(500), "unemployed", "year,region", unit=("pid",))
        assert (alternatives.unit, alternatives.source.where) == (("pid",), {})
        late = panel(500)
        late.loc[(late["year"] == 2022) & (late["pid"] > 20), "year"] = 2019
        few = written(tmp_path, late, "unemployed", "region,children", unit=("pid",))
        assert (few.unit, few.source.where) == (("pid",), {})

    def test_a_key_is_known_again_unless_nobody_comes_again(self, tmp_path: Path) -> None:
        spec = written(tmp_path, survey(900), "smoker", "age,region", key=("interview",))
        assert (spec.record_key, spec.register, spec.guarantee.kind) == (("interview",), "table", "lip")
        spec = written(tmp_path, survey(900), "smoker", "age,region", key=("interview",), people="different")
        assert (spec.record_key, spec.register, spec.mechanism.name) == (("interview",), None, "invariant")
        assert written(tmp_path, survey(900), "smoker", "age,region").history is None

    @pytest.mark.parametrize("publish", ["age,region,party,number_of_children,visits_to_doctor", "smoker,age", "all"])
    def test_what_cannot_be_kept_over_versions_is_one_version(self, tmp_path: Path, publish: str) -> None:
        spec = written(tmp_path, survey(900), "smoker", publish, key=("interview",))
        # A second version is refused until it is said who the people are.
        assert (spec.record_key, spec.history) == (("interview",), None)
        assert conflicts(spec) == ()
        if publish != "all":
            assert spec.columns == tuple(dict.fromkeys(("smoker", *publish.split(","))))

    def test_many_columns_of_the_same_people_are_whole_records(self, tmp_path: Path) -> None:
        publish = "age,region,party,number_of_children,visits_to_doctor"
        spec = written(tmp_path, survey(900), "smoker", publish, key=("interview",), people="same")
        assert spec.publish == tuple(publish.split(","))
        assert spec.history is not None
        assert (spec.history.people, spec.history.budget_fraction) == ("same", 0.8)
        assert (spec.guarantee.kind, spec.frequencies.protection, spec.groups.known) == ("lip", "threshold", ())
        assert conflicts(spec) == ()

    def test_many_columns_of_several_rows_are_whole_records(self, tmp_path: Path) -> None:
        spec = written(tmp_path, visits(1500), "diagnosis", "all", unit=("patient",))
        assert {*spec.publish} == {"day", "ward", "age", "sex", "chronic", "no_of_tests"}
        assert (spec.unit, spec.mechanism.name, spec.frequencies.protection) == (("patient",), "invariant", "threshold")
        assert spec.history is not None
        assert spec.history.budget_fraction == 0.8
        assert "one bound holds for all rows." in text_of(tmp_path)
        folder = make_release(tmp_path / "spec.toml")
        assert overall(recheck(folder)) == State.PASSED
        told = PublicReport.read(folder.numbers).figures.history
        assert told is not None
        assert told.rare is not None
        assert told.rare < 0.1

    def test_donors_of_every_class_are_there_for_nine_rows_of_ten(self) -> None:
        """Those with the rarest number of rows that nine of ten rows need, 8 of them in the smallest class."""
        sizes = {1: 160, 2: 120, 3: 40, 4: 20}
        assert records_of_class(RowsOfPeople(("id",), 340, False, 0, None, 4, sizes)) is None
        assert (
            records_of_class(RowsOfPeople(("id",), 3400, False, 0, None, 4, {m: 10 * n for m, n in sizes.items()}))
            == 240
        )
        more = {1: 1600, 2: 1200, 3: 400, 4: 100}
        assert records_of_class(RowsOfPeople(("id",), 3300, False, 0, None, 4, more)) == 112
        assert records_of_class(RowsOfPeople(("id",), 3300, False, 0, None, 25, {**more, 25: 1})) is None
        assert records_of_class(RowsOfPeople(("id",), 10, True, 0, None)) is None

    def test_of_several_rows_the_first_columns_that_fit_are_published(self, tmp_path: Path) -> None:
        columns = ("ward", "age", "sex", "no_of_tests", "diagnosis")
        said = notes(tmp_path, visits(600), Answers(("chronic",), columns, unit=("patient",)))
        spec = ReleaseSpec.load(tmp_path / "spec.toml")
        left = columns[len(spec.publish) :]
        assert spec.publish == columns[: len(spec.publish)]
        assert left
        assert f"these are left out: {', '.join(left)};" in said
        assert conflicts(spec) == ()

    @pytest.mark.parametrize(
        ("answers", "said"),
        [
            ({"secret": "smokr"}, "--secret names 'smokr', which the source does not have; did you mean smoker"),
            ({"publish": "interview,age"}, "--publish names 'interview', which tells whose record it is"),
            ({"people": "same"}, "name it with --key"),
            (
                {"key": ("interview",), "publish": "smoker,age", "people": "same"},
                "'smoker' is secret and published, which is not there yet",
            ),
        ],
    )
    def test_answers_that_cannot_be(self, tmp_path: Path, answers: dict[str, Any], said: str) -> None:
        with pytest.raises(SpecError) as caught:
            written(tmp_path, survey(300), **{"secret": "smoker", "publish": "age,region", **answers})
        assert said in str(caught.value)


class TestColumns:
    def test_what_columns_are_for(self, tmp_path: Path) -> None:
        survey(2000).to_csv(tmp_path / "t.csv", index=False)
        roles = roles_of(look_at({"path": "t.csv"}, tmp_path, quiet))
        assert [one.name for one in roles.keys] == ["interview"]
        # A number of children is no identifier, and an outcome with two values may be the secret.
        assert "number_of_children" in [one.name for one in roles.free]
        assert {"party", "smoker"} <= {one.name for one in roles.secrets}
        assert [one.name for one in roles.weights] == ["weight"]

    @pytest.mark.parametrize("name", ["height", "BMI", "lowbirthweight"])
    def test_nor_is_it_beside_other_measures_of_a_body(self, tmp_path: Path, name: str) -> None:
        survey(2000).assign(**{name: [*range(150, 200)] * 40}).to_csv(tmp_path / "t.csv", index=False)
        assert not roles_of(look_at({"path": "t.csv"}, tmp_path, quiet)).weights

    @pytest.mark.parametrize("name", ["weight_kg", "Body weight", "birthweight", "weight (g)", "weight in lbs"])
    def test_what_somebody_weighs_is_no_survey_weight(self, tmp_path: Path, name: str) -> None:
        survey(2000).rename(columns={"weight": name}).to_csv(tmp_path / "t.csv", index=False)
        assert not roles_of(look_at({"path": "t.csv"}, tmp_path, quiet)).weights

    @pytest.mark.parametrize("name", ["patient", "pid", "number"])
    def test_a_number_that_repeats_says_whose_record_it_is(self, tmp_path: Path, name: str) -> None:
        visits(800).rename(columns={"patient": name}).to_csv(tmp_path / "t.csv", index=False)
        roles = roles_of(look_at({"path": "t.csv"}, tmp_path, quiet))
        assert [one.name for one in roles.people] == [name]
        assert "no_of_tests" in [one.name for one in roles.free]
        assert name not in [one.name for one in roles.published]

    def test_neighbours_are_joined_and_rare_texts_are_others(self, tmp_path: Path) -> None:
        spec = written(tmp_path, survey(3000), "party", "age_group,region,number_of_children")
        assert spec.categories["age_group"] == ("18-29", "30-39", "40-49", "50-59", "60-69", "70+")
        groups = spec.recode["number_of_children"].groups or {}
        assert "2 or more" in groups
        ((region, joined),) = (spec.recode["region"].groups or {}).items()
        assert region == (" or ".join(joined) if len(joined) <= 3 else "Other")
        # A rare value of the secret would have to be protected like any other, and few are named.
        ((party, members),) = (spec.recode["party"].groups or {}).items()
        assert "E" in members
        assert party == " or ".join(members)
        joint = count_joint(spec, quiet)
        assert joint.n == 3000
        assert joint.counts.sum(axis=1).min() >= 30

    def test_neighbours_of_a_scale_are_joined(self, tmp_path: Path) -> None:
        table = pd.DataFrame({"stress": ["low"] * 900 + ["mid"] * 11 + ["high"] * 12 + ["very high"] * 277})
        spec = written(tmp_path, table.assign(ill=["yes", "no", "no"] * 400), "ill", "stress")
        assert spec.categories["stress"] == ("low", "mid", "high", "very high")
        assert spec.recode["stress"].groups == {"mid or high": ("mid", "high")}

    def test_codes_with_leading_zeros_stay_texts(self, tmp_path: Path) -> None:
        table = codes(3000)
        spec = written(tmp_path, table, "benefit", "postcode,born")
        assert set(spec.categories["postcode"]) <= {*table["postcode"], "Other"}
        assert all(name.split()[0].isdigit() for name in spec.recode["postcode"].groups or {})
        # What fewer than ten people have is not named, but in a category that says so, and no record is an error.
        (name, members), *_ = (spec.recode["benefit"].groups or {}).items()
        assert members[-1] == "Other"
        assert "war" not in spec.categories["benefit"]
        joint = count_joint(spec, quiet)
        assert joint.n == 3000
        assert (name,) in joint.secret.symbols

    def test_a_group_of_declared_values_lets_no_other_in(self, tmp_path: Path) -> None:
        table = missing(2000).assign(ward=[f"ward {k % 7}" for k in range(2000)])
        spec = written(tmp_path, table, "disabled", "ward,education")
        assert list(spec.recode["ward"].groups or {}) == ["Other"]
        assert "Other" not in (*spec.categories["ward"], *spec.recode["ward"].group_of)
        table.loc[table["ward"] == "ward 6", "ward"] = "word 6"
        table.to_csv(tmp_path / "table.csv", index=False)
        with pytest.raises(DataError, match=r"'?ward'?"):
            count_joint(spec, quiet)

    def test_few_people_with_a_value_of_the_secret_allow_few_combinations(self, tmp_path: Path) -> None:
        table = survey(4_000)
        spec = written(tmp_path, table, "smoker", "age,region")
        assert len(count_joint(spec, quiet).inputs) > 8
        table["smoker"] = (table.index < 60).astype(int)
        assert len(count_joint(written(tmp_path, table, "smoker", "age,region"), quiet).inputs) <= 6

    def test_whole_records_say_which_values_of_the_secret_share_a_bound(self, tmp_path: Path) -> None:
        rows = range(3_000)
        table = pd.DataFrame({f"place {k}": [f"{one * (k + 3) % 61} way" for one in rows] for k in range(9)})
        table["code"] = [f"rare {k % 7}" if k % 10 == 0 else f"code {k % 3}" for k in rows]
        said = notes(tmp_path, table, Answers(("code",), tuple(f"place {k}" for k in range(9))))
        assert "[groups]" in text_of(tmp_path)
        assert "of code is protected as one value" in said

    def test_values_that_few_have_share_a_bound_where_it_holds_in_the_population(self, tmp_path: Path) -> None:
        rows = range(5_000)
        table = pd.DataFrame(
            {
                "sex": ["f" if k % 2 else "m" for k in rows],
                "region": [f"R{k % 5}" for k in rows],
                "pain": [("severe", "refused")[k % 4 == 0] if k % 10 == 0 else "none" for k in rows],
            }
        )
        spec = written(tmp_path, table, "pain", "sex,region")
        assert spec.guarantee.parts[0] == "rlip:1.0,0.05"
        counts = count_joint(spec, quiet).counts
        assert len(counts) == 2
        assert counts.sum(axis=1).min() >= 300
        assert "is protected as one value" in notes(tmp_path, table, Answers(("pain",), ("sex",)))
        # With the secret published each of them is published, too.
        assert len(count_joint(written(tmp_path, table, "pain", "pain,sex"), quiet).secret) == 3

    def test_a_secret_that_hardly_anybody_has_is_announced(self, tmp_path: Path) -> None:
        table = survey(2_000).assign(smoker=[int(k < 12) for k in range(2_000)])
        said = notes(tmp_path, table, Answers(("smoker",), ("age", "region")))
        assert "12 records with the rarest value of smoker are few" in said

    @pytest.mark.parametrize(("each", "apart"), [(20, None), (60, 50)])
    def test_texts_of_whole_records_are_not_all_made_one_category(
        self, tmp_path: Path, each: int, apart: int | None
    ) -> None:
        rows = range(300 * each)
        columns = {f"q{k}": [f"{k}{(row * (k + 3) + row // (k + 2)) % 9}" for row in rows] for k in range(6)}
        often = np.where(np.array(columns["q0"]) < "06", 0.6, 0.2)
        ill = np.random.default_rng(8).random(len(rows)) < often
        table = pd.DataFrame({"lane": [f"lane {k % 300}" for k in rows], **columns, "ill": ill})
        spec = written(tmp_path, table, "ill", "all")
        assert spec.publish[0] == "lane"
        assert spec.frequencies.protection == "threshold"
        assert (spec.recode["lane"].minimum_count if "lane" in spec.recode else None) == apart

    def test_missing_values_stay_or_are_left_out_openly(self, tmp_path: Path) -> None:
        table = missing(3000)
        spec = written(tmp_path, table, "disabled", "sex,education,income")
        assert spec.source.where["disabled"].missing is False
        assert "left out: too few to protect" in text_of(tmp_path)
        assert "(missing)" in spec.categories["education"]
        joint = count_joint(spec, quiet)
        assert joint.n == int((table["disabled"] != "?").sum())

    def test_labels_of_values_become_categories_in_their_order(self, tmp_path: Path) -> None:
        table = pd.DataFrame({"ill": [0, 1, 0, 0] * 50, "health": [1, 2, 3, 2] * 50})
        labels = {"ill": {0: "no", 1: "yes"}, "health": {1: "very good", 2: "fair", 3: "bad"}}
        pyreadstat.write_sav(table, tmp_path / "t.sav", variable_value_labels=labels)
        spec = written(tmp_path, tmp_path / "t.sav", "ill", "health")
        assert spec.categories["health"] == ("very good", "fair", "bad")
        assert count_joint(spec, quiet).inputs.labels == ("very good", "fair", "bad")

    def test_codes_without_a_label_are_categories_beside_those_that_have_one(self, tmp_path: Path) -> None:
        table = pd.DataFrame({"ill": [0, 1, 0, 0] * 50, "health": [1, 2, 3, 4] * 50, "visits": [-1, 0, 7, 10] * 50})
        labels = {"health": {1: "good", 2: "fair"}, "visits": {-2: "n/a", -1: "none"}}
        pyreadstat.write_sav(table, tmp_path / "t.sav", variable_value_labels=labels)
        spec = written(tmp_path, tmp_path / "t.sav", "ill", "health,visits")
        assert spec.categories["health"] == ("good", "fair", "3", "4")
        assert count_joint(spec, quiet).n == 200


class TestCommands:
    def test_one_command_line_and_the_release(self, tmp_path: Path) -> None:
        pq.write_table(pq.read_table(ADULT).slice(0, 8000), tmp_path / "people.parquet")
        given = ["init", str(tmp_path / "people.parquet"), "--secret", "income", "--publish", "sex,relationship"]
        done = CliRunner().invoke(main, [*given, "-o", str(tmp_path / "spec.toml")])
        assert done.exit_code == 0, done.output
        assert "choose its licence, then funnel release" in done.output
        release = make_release(tmp_path / "spec.toml")
        assert overall(recheck(release)) == State.PASSED
        records = pq.read_table(release.data)
        assert records.num_rows == 8000
        # No value that nobody has.
        assert set(records["sex"].to_pylist()) == {"Female", "Male"}

    def test_half_an_answer(self, tmp_path: Path) -> None:
        done = CliRunner().invoke(main, ["init", str(ADULT), "--secret", "income", "-o", str(tmp_path / "s.toml")])
        assert done.exit_code == 3
        assert "needs --secret and --publish" in done.output

    @pytest.mark.parametrize("empty", [("--secret", "income", "--publish", ""), ("--secret", ",", "--publish", "sex")])
    def test_a_name_of_nothing_is_no_answer(self, tmp_path: Path, empty: tuple[str, ...]) -> None:
        done = CliRunner().invoke(main, ["init", str(ADULT), *empty, "-o", str(tmp_path / "s.toml")])
        assert done.exit_code == 3
        assert "needs --secret and --publish" in done.output
        assert not (tmp_path / "s.toml").exists()

    def test_five_questions(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        survey(500).to_csv(tmp_path / "t.csv", index=False)
        look = look_at({"path": "t.csv"}, tmp_path, quiet)
        answers = iter(["smoker", "age,region", "interview", False, True])

        def prompt(question: str, value_proc: Any = None, **_: Any) -> Any:
            return value_proc(next(answers))

        monkeypatch.setattr("click.prompt", prompt)
        monkeypatch.setattr("click.confirm", lambda question, default, **_: next(answers))
        found = ask(look, roles_of(look))
        assert found == Answers(("smoker",), ("age", "region"), ("interview",), (), "same")
        assert list(answers) == []

    @pytest.mark.parametrize(
        ("said", "expected"),
        [
            # Enter takes the number of the patient, who has several rows, and not that of the visit.
            (
                ["chronic", "ward,age", None, "y"],
                Answers(("chronic",), ("ward", "age"), unit=("patient",)),
            ),
            # Nobody says that a patient has one row where the table has several, nor why --people does not go with it.
            (
                ["chronic", "ward,age", "patient", "n", None],
                Answers(("chronic",), ("ward", "age"), unit=("patient",)),
            ),
            (
                ["chronic", "ward", "-", "y", "visit", "n"],
                Answers(("chronic",), ("ward",), key=("visit",), people="same"),
            ),
            (["chronic", "ward", "-", "y", "-"], Answers(("chronic",), ("ward",))),
            (["chronic", "all", "-", "n"], Answers(("chronic",), ("all",))),
            (["chronic", None, "-", None], Answers(("chronic",), ("ward", "age"))),
            ([""], None),
        ],
    )
    def test_every_kind_of_answer_gives_a_spec(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: list[str | None], expected: Answers | None
    ) -> None:
        """None is Enter."""
        table = visits(600)
        table.insert(0, "visit", [f"V{k:05}" for k in range(len(table))])
        table.to_csv(tmp_path / "visits.csv", index=False)
        look = look_at({"path": "visits.csv"}, tmp_path, quiet)
        answers = iter(said)

        def prompt(question: str, default: str, value_proc: Any, **_: Any) -> Any:
            answer = next(answers)
            return value_proc(default if answer is None else answer)

        def confirm(question: str, default: bool, **_: Any) -> bool:
            answer = next(answers)
            return default if answer is None else answer == "y"

        monkeypatch.setattr("click.prompt", prompt)
        monkeypatch.setattr("click.confirm", confirm)
        found = ask(look, roles_of(look))
        assert (found, list(answers)) == (expected, [])
        if found is not None:
            notes(tmp_path, tmp_path / "visits.csv", found)
            assert ReleaseSpec.load(tmp_path / "spec.toml").secret == ("chronic",)


class TestFewRecords:
    """Of some hundred records with many columns there may be no classes: then fewer columns are published, and said."""

    def table(self, rows: int) -> pd.DataFrame:
        rng = np.random.default_rng(5)
        hidden = rng.normal(size=(rows, 4))
        found = {f"v{k:02}": np.digitize(hidden[:, k % 4] + rng.normal(size=rows), [-1, 0, 1]) for k in range(12)}
        ill = np.where(hidden[:, 0] + rng.normal(size=rows) > 1.6, "pos", "neg")
        return pd.DataFrame({**found, "ill": ill})

    def test_three_columns_are_published_where_there_are_no_classes(self, tmp_path: Path) -> None:
        spec = written(tmp_path, self.table(80), "ill", "all")
        assert spec.publish == ("v00", "v01", "v02")
        assert spec.frequencies.protection == "noise"
        assert count_joint(spec, quiet).n == 80
        said = notes(tmp_path, tmp_path / "table.csv", Answers(("ill",), ("v11", "v03", "v05", "v00")))
        assert re.search("80 records are too few.*v11, v03, v05", said)
        assert ReleaseSpec.load(tmp_path / "spec.toml").publish == ("v11", "v03", "v05")

    def test_all_are_where_there_are(self, tmp_path: Path) -> None:
        spec = written(tmp_path, self.table(1500), "ill", "all")
        assert len(spec.publish) == 12
        assert spec.groups.min_records == 20


class TestWhatNoSpecIsFor:
    """What cannot be released is said by `funnel init`, and not by the release of the spec that it wrote."""

    def test_a_secret_that_is_published_alone(self, tmp_path: Path) -> None:
        table = pd.DataFrame({"vote": ["a", "b", "b", "c"] * 100})
        with pytest.raises(SpecError, match=r"--publish names vote, which is secret, and no other column.*one more"):
            written(tmp_path, table, "vote", "vote")

    def test_a_table_of_one_column(self, tmp_path: Path) -> None:
        (tmp_path / "table.csv").write_text("a,a,vote\n" + "x,y,a\nz,y,b\n" * 100)
        with pytest.raises(DataError, match="it has vote; a is left out, since several columns have this name"):
            notes(tmp_path, tmp_path / "table.csv")

    def test_columns_that_tell_nothing_of_the_secret_have_no_classes(self, tmp_path: Path) -> None:
        parts = {"a": 1, "b": 30, "c": 7, "d": 11, "e": 13}
        table = pd.DataFrame({name: [f"{k // 4 // m % 30}x" for k in range(3_600)] for name, m in parts.items()})
        table["ill"] = ["yes", "no", "no", "no"] * 900
        spec = written(tmp_path, table, "ill", "all")
        assert (spec.publish, spec.frequencies.protection) == (("a", "b", "c"), "noise")

    def test_where_all_combinations_can_be_published_no_classes_are_needed(self, tmp_path: Path) -> None:
        parts = {"a": 1, "b": 2, "c": 4, "d": 8, "e": 16, "f": 32}
        table = pd.DataFrame({name: [f"{k // 4 // m % 2}x" for k in range(7_680)] for name, m in parts.items()})
        table["ill"] = ["yes", "no", "no", "no"] * 1_920
        spec = written(tmp_path, table, "ill", "all")
        assert (len(spec.publish), spec.frequencies.protection) == (6, "threshold")
        assert len(count_joint(spec, quiet).inputs) == 64


def test_columns_that_are_left_out_of_all_are_told(tmp_path: Path) -> None:
    rows = "".join(f"{k % 3},{k % 5},{k % 7},{k % 2}\n" for k in range(300))
    (tmp_path / "table.csv").write_text(f"region,size,size,ill\n{rows}")
    said = notes(tmp_path, tmp_path / "table.csv", Answers(("ill",), ("all",)))
    assert "size is left out, since several columns have this name" in said


def test_where_columns_decide_the_secret_together_half_of_them_are_published(tmp_path: Path) -> None:
    """No cut of records that points tell apart wholly leaves two classes which disclosure control allows."""
    rng = np.random.default_rng(7)
    ill = rng.random(600) < 0.4
    marks = {f"mark {j:02}": np.round(rng.normal(0, 1, 600) + (0.8 if j < 8 else 2.0) * ill, 2) for j in range(24)}
    table = pd.DataFrame(marks | {"ill": np.where(ill, "yes", "no")})
    said = notes(tmp_path, table, Answers(("ill",), tuple(marks)))
    spec = ReleaseSpec.load(tmp_path / "spec.toml")
    assert 3 <= len(spec.publish) < 24
    assert spec.publish == tuple(marks)[: len(spec.publish)]
    assert "24 columns make no two classes" in said


class TestWhatStrangersTablesHold:
    """Tables as strangers have them: what is released is useful, and what is left out is told with the reason."""

    def table(self, **more: Any) -> pd.DataFrame:
        rows = range(1_200)
        plain = {"ill": ["yes" if k % 5 == 0 else "no" for k in rows], "sex": ["fm"[k // 5 % 2] for k in rows]}
        return pd.DataFrame(plain | {name: [made(k) for k in rows] for name, made in more.items()})

    def symbols(self, spec: ReleaseSpec, column: str) -> set[str]:
        inputs = count_joint(spec, quiet).inputs
        return {symbol[inputs.columns.index(column)] for symbol in inputs.symbols}

    @pytest.mark.parametrize("rare", [(), ("r",), ("r", "s")])
    @pytest.mark.parametrize("name", ["Other", "other"])
    def test_values_that_are_called_other(self, tmp_path: Path, rare: tuple[str, ...], name: str) -> None:
        def seen(k: int) -> str:
            return rare[k % len(rare)] if rare and k < 8 else (name, "Other", "a", "b")[k // 10 % 4]

        spec = written(tmp_path, self.table(seen=seen), "ill", "seen")
        joint = count_joint(spec, quiet)
        assert joint.n == 1_200
        assert {"a", "b"} < self.symbols(spec, "seen") <= {"a", "b", "Other", "other"}

    def test_texts_that_say_missing_as_releases_do(self, tmp_path: Path) -> None:
        spec = written(tmp_path, self.table(seen=lambda k: ("(missing)", None, "a", "b")[k // 10 % 4]), "ill", "seen")
        assert self.symbols(spec, "seen") == {"(missing)", "a", "b"}

    def test_one_value_or_none_are_two(self, tmp_path: Path) -> None:
        spec = written(tmp_path, self.table(flag=lambda k: "X" if k // 10 % 3 else None), "ill", "flag")
        assert self.symbols(spec, "flag") == {"X", "(missing)"}
        spec = written(tmp_path, self.table(flag=lambda k: "X" if k // 10 % 3 else None), "flag", "sex")
        assert {name for (name,) in count_joint(spec, quiet).secret.symbols} == {"X", "(missing)"}

    @pytest.mark.parametrize(("option", "secret", "publish"), [("secret", "flag", "sex"), ("publish", "ill", "flag")])
    def test_one_value_or_hardly_ever_none_are_one(
        self, tmp_path: Path, option: str, secret: str, publish: str
    ) -> None:
        table = self.table(flag=lambda k: "X" if k > 5 else None)
        with pytest.raises(SpecError, match=f"--{option} names 'flag', which is the same in every record"):
            written(tmp_path, table, secret, publish)

    def test_columns_that_are_the_same_everywhere_are_told(self, tmp_path: Path) -> None:
        said = notes(tmp_path, self.table(land=lambda k: "here", empty=lambda k: None), Answers(("ill",), ("all",)))
        assert "left out of all columns, since every record has the same value: land, empty" in said

    def test_where_no_column_is_left_the_reason_is_that_of_the_columns(self, tmp_path: Path) -> None:
        (tmp_path / "table.csv").write_text("ill,a,a\n" + "yes,x,y\nno,y,z\n" * 50)
        with pytest.raises(SpecError, match=r"no column is left to publish.*a is left out, since several columns have"):
            notes(tmp_path, tmp_path / "table.csv", Answers(("ill",), ("all",)))

    def test_long_texts_are_named_as_what_they_are(self, tmp_path: Path) -> None:
        said = notes(tmp_path, self.table(text=lambda k: "xyz"[k % 3] * 1000), Answers(("ill",), ("all",)))
        assert "text is left out, since some of its values have more than 200 characters" in said

    def test_days_of_many_values_in_the_form_of_their_country(self, tmp_path: Path) -> None:
        day = pd.Timestamp("2015-01-01")
        table = self.table(seen=lambda k: (day + pd.Timedelta(days=k // 2)).strftime("%d/%m/%Y"))
        spec = written(tmp_path, table, "ill", "all")
        assert spec.publish == ("sex", "seen")
        assert spec.recode["seen"].format == "%d/%m/%Y"

    def test_records_without_a_secret_are_announced(self, tmp_path: Path) -> None:
        table = self.table().assign(ill=[None if k < 15 else "yn"[k % 2] for k in range(1_200)])
        assert "15 of 1,200 records have no value of ill, too few to be protected apart" in notes(
            tmp_path, table, Answers(("ill",), ("all",))
        )
        path = tmp_path / "spec.toml"
        path.write_text(path.read_text().replace('protection = "noise"\nepsilon = 1.0', 'protection = "none"'))
        folder = make_release(path)
        # The report does not say that nobody was left out.
        assert json.loads((folder.root / "report.json").read_text())["source"]["dropped"] is None
        assert "left out because a value was missing" not in (folder.root / "report.html").read_text()

    @pytest.mark.parametrize("none", [None, "NA"])
    @pytest.mark.parametrize("which", ["key", "unit"])
    def test_rows_of_nobody_are_left_out_and_announced(self, tmp_path: Path, which: str, none: str | None) -> None:
        every = 1 if which == "key" else 5
        table = self.table(who=lambda k: none if k < 30 else f"p{k // every}")
        said = notes(tmp_path, table, Answers(("sex",), ("ill",), **{which: ("who",)}))
        assert "30 of 1,200 records have no value of who, so nobody knows whose they are" in said
        if none is None:
            make_release(tmp_path / "spec.toml")

    def test_a_measurement_tells_nobody_apart(self, tmp_path: Path) -> None:
        rng = np.random.default_rng(3)
        pressure = np.rint(rng.normal(130, 25, 3_000)).astype(int)
        table = pd.DataFrame({"ill": ["yes", "no"] * 1_500, "sbp": pressure, "sex": ["f", "f", "m"] * 1_000})
        assert written(tmp_path, table, "ill", "all").publish == ("sbp", "sex")

    def test_ages_in_months_tell_nobody_apart(self, tmp_path: Path) -> None:
        table = self.table(age=lambda k: 200 + k // 4)
        assert written(tmp_path, table, "ill", "all").publish == ("sex", "age")

    @pytest.mark.parametrize("texts", [("1.0", "2.0", "3.0", "4.0"), ("1-2", "3-4", "5-6", "7-8")])
    def test_rare_values_of_an_order_are_no_category_apart(self, tmp_path: Path, texts: tuple[str, ...]) -> None:
        def kept(k: int) -> str:
            return texts[2] if k < 5 else texts[(0, 1, 3)[k // 10 % 3]]

        for secret, publish in (("kept", "sex"), ("ill", "kept")):
            joint = count_joint(written(tmp_path, self.table(kept=kept), secret, publish), quiet)
            assert joint.n == 1_200
            assert joint.counts.sum(axis=0 if publish == "kept" else 1).min() > 300

    def test_a_first_line_that_is_a_record_is_not_quoted(self, tmp_path: Path) -> None:
        self.table(age=lambda k: k % 70).to_csv(tmp_path / "people.csv", index=False, header=False)
        with pytest.raises(SpecError, match="if the file begins with a record, write a line of names") as failed:
            notes(tmp_path, tmp_path / "people.csv", Answers(("ill",), ("sex",)))
        assert not re.search(r"yes|'f'|, f\b", str(failed.value))

    def test_one_whole_number_in_few_records_is_a_value_like_others(self, tmp_path: Path) -> None:
        table = self.table(attempt=lambda k: "0" if k % 300 == 0 else None)
        spec = written(tmp_path, table, "ill", "sex,attempt")
        assert spec.categories["attempt"] == ("0", "(missing)")
        assert count_joint(spec, quiet).n == 1_200

    def test_amounts_that_are_texts_are_told_apart(self, tmp_path: Path) -> None:
        said = notes(tmp_path, self.table(rent=lambda k: f"{500 + 7 * k:,} €"), Answers(("ill",), ("all",)))
        assert "since they hold amounts written as texts: rent; write these without marks" in said

    def test_a_column_named_as_one_of_funnel_is_left_out(self, tmp_path: Path) -> None:
        table = self.table(record_class=lambda k: "abc"[k % 3])
        said = notes(tmp_path, table, Answers(("ill",), ("all",)))
        assert "record_class is left out, since funnel names the classes of whole records so" in said
        assert ReleaseSpec.load(tmp_path / "spec.toml").publish == ("sex",)

    def test_codes_with_leading_zeros_are_no_amounts(self, tmp_path: Path) -> None:
        table = self.table(code=lambda k: f"{1_000 * (k % 12):05}")
        assert "amounts" not in notes(tmp_path, table, Answers(("ill",), ("code",)))

    @pytest.mark.parametrize("typed", [True, False])
    def test_infinite_numbers_are_missing(self, tmp_path: Path, typed: bool) -> None:
        path = tmp_path / f"people.{'parquet' if typed else 'csv'}"
        table = self.table(score=lambda k: float("-inf") if k % 30 == 0 else k / 7)
        table.to_parquet(path) if typed else table.to_csv(path, index=False)
        spec = written(tmp_path, path, "ill", "score")
        assert "-inf" in spec.source.missing
        assert spec.recode["score"].bins
        joint = count_joint(spec, quiet)
        assert joint.n == 1_200
        assert [label for (label,) in joint.inputs.symbols if "missing" in label]

    @pytest.mark.parametrize(
        ("texts", "lowest"),
        [
            (("under 5", "5-9", "10-14", "15-17", "18-24", "25-64", "65+"), "under 5 or 5-9"),
            (("<5", "5-9", "10-14", "15-24", "25-64", "65+", "unknown"), "unknown or <5"),
            (("< 500 €", "500 - 999 €", "1.000 - 1.999 €", "2.000 - 3.999 €", "4.000 € +"), "< 500 € or 500 - 999 €"),
        ],
    )
    def test_labels_are_joined_with_their_neighbours(self, tmp_path: Path, texts: tuple[str, ...], lowest: str) -> None:
        low = lowest.split(" or ")

        def band(k: int) -> str:
            return low[k // 60 % 2] if k % 60 == 0 else [one for one in texts if one not in low][k % (len(texts) - 2)]

        groups = written(tmp_path, self.table(band=band), "ill", "band").recode["band"].groups
        assert groups[lowest] == tuple(low)

    def test_a_text_among_numbers_is_no_end_of_a_range(self, tmp_path: Path) -> None:
        table = self.table(age=lambda k: "unknown" if k % 40 == 1 else f"{k % 60}" if k % 60 else "60+")
        groups = written(tmp_path, table, "ill", "age").recode["age"].groups
        ((name, values),) = ((name, values) for name, values in groups.items() if "unknown" in values)
        assert name.startswith("unknown or ")
        assert name.endswith(f"{values[1]} to {values[-1]}")

    def test_numbers_with_gaps_that_are_named_as_of_people(self, tmp_path: Path) -> None:
        people = np.random.default_rng(4).choice(90_000, 400, replace=False)
        table = pd.DataFrame({"nr": np.repeat(people, 8), "year": [*range(8)] * 400, "sex": ["f", "m"] * 1_600})
        said = notes(tmp_path, table.assign(ill=["yes", *["no"] * 4] * 640), Answers(("ill",), ("sex",)))
        assert "nr may say whose record it is, of people who have several: if so, name it with --unit" in said

    def test_a_wave_is_where_most_people_are_last(self, tmp_path: Path) -> None:
        # The years of experience of a person tell rows apart as well, and few people have most.
        table = self.table(who=lambda k: f"p{k % 300}", year=lambda k: 2020 + k // 300).assign(
            experience=[1 + k % 300 % 7 + k // 300 for k in range(1_200)], ill=["yes", "no", "no"] * 400
        )
        table.loc[table.index % 7 == 0, "ill"] = "yes"
        spec = written(tmp_path, table[["experience", "who", "sex", "ill", "year"]], "ill", "sex", unit=("who",))
        assert spec.source.where["year"].one_of == ("2023",)

    @pytest.mark.parametrize(("changes", "most"), [(True, 24), (False, 100)])
    def test_more_rows_of_a_person_than_are_bounded_together(self, tmp_path: Path, changes: bool, most: int) -> None:
        table = self.table(who=lambda k: "p" if k <= most else f"q{k // 4}")
        table["ill"] = [f"{(k if changes else len(who)) % 2 == 0}" for k, who in enumerate(table["who"])]
        with pytest.raises(SpecError, match=f"up to {most + 1} of one person, and at most {most} are bounded together"):
            notes(tmp_path, table, Answers(("ill",), ("sex",), unit=("who",)))

    def test_so_many_rows_of_one_that_nobody_named_are_bounded_one_by_one(self, tmp_path: Path) -> None:
        table = self.table(patient=lambda k: "p" if k <= 100 else f"q{k // 4}")
        table["ill"] = [f"{len(who) % 2 == 0}" for who in table["patient"]]
        said = notes(tmp_path, table, Answers(("ill",), ("sex",)))
        assert "too many of one person: this bound is about one row" in said
        assert not ReleaseSpec.load(tmp_path / "spec.toml").unit

    def test_few_people_of_several_rows_are_told_to_be_few(self, tmp_path: Path) -> None:
        table = self.table(who=lambda k: f"p{k // 12}").assign(ill=[f"{k // 12 % 3 == 0}" for k in range(1_200)])
        said = notes(tmp_path, table, Answers(("ill",), ("sex",), unit=("who",)))
        assert "records with the rarest value of ill are few" not in said
        few = table.head(400)
        assert "11 records with the rarest value of ill are few for 2 combinations" in notes(
            tmp_path, few, Answers(("ill",), ("sex",), unit=("who",))
        )


def test_of_many_columns_those_are_left_out_that_no_class_can_have(tmp_path: Path) -> None:
    """Not half of all columns, because one is of five records, and another one is the secret by another name."""
    rng = np.random.default_rng(8)
    ill = rng.random(3_000) < 0.3
    table = pd.DataFrame({f"sign {j}": np.where(rng.random(3_000) < 0.3 + 0.3 * ill, "+", "-") for j in range(8)})
    table["rare"] = np.where(np.arange(3_000) < 5, "+", "-")
    table["died in"] = np.where(ill, rng.choice(["May", "June"], 3_000), None)
    table["ill"] = np.where(ill, "yes", "no")
    said = notes(tmp_path, table, Answers(("ill",), ("all",)))
    assert ReleaseSpec.load(tmp_path / "spec.toml").publish == tuple(f"sign {j}" for j in range(8))
    assert "left out, since too few records with some value of ill have other values than most: rare" in said
    assert "left out, since each tells most of ill by itself: died in" in said


def test_columns_that_have_no_value_where_the_secret_has_none_are_told(tmp_path: Path) -> None:
    rng, n = np.random.default_rng(8), 3_000
    asked = rng.random(n) < 0.85
    table = pd.DataFrame(
        {
            "race": np.where(asked, rng.choice(["A", "B", "C"], n), "NA"),
            "sex": np.where(asked | (rng.random(n) < 0.1), rng.choice(["f", "m"], n), "NA"),
            "town": np.where(rng.random(n) < 0.9, rng.choice(["X", "Y"], n), "NA"),
        }
    )
    answers = Answers(("race",), ("sex", "town"))
    told = notes(tmp_path, table, answers)
    assert f"{(~asked).sum()} of 3,000 records have no value of race, and in these sex has none more often" in told
    # Without these records there is no such note, nor where values are missing here and there.
    assert "have no value of race" not in notes(tmp_path, table[table.race != "NA"], answers)
    assert "have no value of race" not in notes(tmp_path, table.assign(sex=table.town), answers)
    # What the note says to write is a spec of the other records.
    notes(tmp_path, table, answers)
    text = (tmp_path / "spec.toml").read_text(encoding="utf-8")
    text = text.replace("[source]", "[source.where]\nrace = { missing = false }\n\n[source]", 1)
    text = text.replace('race = ["A", "B", "C", "(missing)"]', 'race = ["A", "B", "C"]')
    joint = count_joint(ReleaseSpec.parse(text, tmp_path / "spec.toml"), quiet)
    assert (joint.n, len(joint.secret)) == (asked.sum(), 3)


@pytest.mark.parametrize("texts", [False, True])
@pytest.mark.parametrize("rare", [18, 60])
def test_values_of_the_secret_that_few_people_have_share_a_bound_whatever_their_rows(
    tmp_path: Path, rare: int, texts: bool
) -> None:
    rng, people = np.random.default_rng(9), 312
    status = np.repeat([0, 1, 2], [people // 2, rare, people - people // 2 - rare]).astype(str)
    who = np.repeat(np.arange(people), 6)
    table = pd.DataFrame(
        {
            "id": who + 1,
            "status": np.char.add("s" if texts else "", status)[who],
            "stage": rng.choice(["low", "high"], len(who)),
        }
    )
    told = notes(tmp_path, table, Answers(("status",), ("stage",), unit=("id",)))
    joint = count_joint(ReleaseSpec.load(tmp_path / "spec.toml"), quiet)
    assert len(joint.secret) == (3 if rare == 60 else 2)
    assert ("is protected as one value" in told) is (rare == 18)
