"""Whether what a spec says of the values of a column fits them: numbers, groups, hierarchies."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from funnel.console import Console
from funnel.errors import SpecError
from funnel.progress import WARNING, quiet
from funnel.readers.formats import open_source
from funnel.source.coding import Codings
from funnel.source.columns import resolved_columns
from funnel.source.counting import recoded
from funnel.source.fitting import misfits
from funnel.source.learning import learn_codings
from funnel.spec import ReleaseSpec
from tests.projects import spec_of

AB = ["a", "b"]
Refusal = Callable[..., str]


def told(spec: ReleaseSpec) -> list[str]:
    learned = learn_codings(spec, open_source(spec), quiet)
    assert Codings.from_json(learned.to_json()) == learned
    return list(misfits(spec, learned))


class TestNumbers:
    @pytest.mark.parametrize("said", [{"unit": "years"}, {"range": [0, 9]}, {"whole": True}])
    def test_of_a_column_of_text_are_refused(self, workshop: Any, refusal: Refusal, said: dict[str, Any]) -> None:
        for columns in ({"s": AB, "x": ["Female", "Male"]}, {"s": AB, "x": [True, False]}):
            spec = workshop.parquet(columns, numbers={"x": said})
            assert "[numbers.x]" in (message := refusal(lambda spec=spec: told(spec)))
            assert "column 'x'" in message

    def test_of_the_secret_as_well(self, workshop: Any, refusal: Refusal) -> None:
        assert "[numbers.s]" in refusal(lambda: told(workshop.csv({"s": AB, "x": AB}, numbers={"s": {"unit": "m"}})))

    @pytest.mark.parametrize("values", [["1", "90+"], ["1", "2"], ["-1.5", ""]])
    def test_of_numbers_with_some_texts_among_them_are_not(self, workshop: Any, values: list[str]) -> None:
        assert told(workshop.csv({"s": AB, "x": values}, numbers={"x": {"unit": "years"}})) == []

    def test_of_groups_of_numbers_are_not(self, workshop: Any) -> None:
        recode = {"x": {"groups": {"young": ["1", "2"], "old": ["3"]}}}
        spec = workshop.csv({"s": AB * 2, "x": ["1", "2", "3", "3"]}, recode=recode, numbers={"x": {"unit": "years"}})
        assert told(spec) == []

    def test_with_a_decimal_comma(self, workshop: Any, refusal: Refusal) -> None:
        columns = {"s": AB, "x": ["1,5", "2,5"]}
        changes: dict[str, Any] = {"numbers": {"x": {"unit": "m"}}}
        assert "set decimal in [source]" in refusal(lambda: told(workshop.csv(columns, **changes)))
        source = {"decimal": ",", "delimiter": ";"}
        assert told(workshop.text("s;x\na;1,5\nb;2,5\n", source=source, **changes)) == []


class TestGroups:
    def test_values_that_do_not_occur_are_told(self, workshop: Any) -> None:
        spec = workshop.csv({"s": AB, "x": ["F", "M"]}, recode={"x": {"groups": {"Women": ["F", "2"], "Men": ["M"]}}})
        (said,) = told(spec)
        assert "[recode.x] groups names a value that no record has in column 'x': '2'" in said

    def test_and_how_the_source_writes_them(self, workshop: Any) -> None:
        columns = {"s": AB, "x": ["F", "M "]}
        (said,) = told(workshop.csv(columns, recode={"x": {"groups": {"Women": ["F"], "Men": ["m"]}}}))
        assert "(the source has 'M ', not 'm')" in said
        # As whole numbers with missing ones among them come, where pandas has had them.
        columns = {"s": AB, "x": [1.0, 2.0]}
        (said,) = told(workshop.parquet(columns, recode={"x": {"groups": {"one": ["1.0"], "two": ["2"]}}}))
        assert "(the source has '2.0', not '2')" in said

    def test_what_means_missing_is_no_value(self, workshop: Any) -> None:
        recode = {"x": {"groups": {"none": ["?"], "some": ["u"]}}}
        (said,) = told(workshop.csv({"s": AB, "x": ["u", "?"]}, source={"missing": ["?"]}, recode=recode))
        assert "'?' means missing, which groups name as '(missing)'" in said

    def test_of_many_some_are_named(self, workshop: Any) -> None:
        groups = {"all": ["u", *(f"v{k}" for k in range(9))]}
        (said,) = told(workshop.csv({"s": AB, "x": ["u", "w"]}, recode={"x": {"groups": groups}}))
        assert "9 values" in said
        assert "'v4' and 4 more" in said

    @pytest.mark.parametrize("groups", [{"Women": ["f"], "Men": ["m"]}, {"Women": ["f", "w"]}, {"Women": ["f"]}])
    def test_of_which_nothing_occurs_are_refused(self, workshop: Any, refusal: Refusal, groups: Any) -> None:
        spec = workshop.csv({"s": AB, "x": ["F", "M"]}, recode={"x": {"groups": groups}})
        message = refusal(lambda: told(spec))
        assert "[recode.x] groups names" in message
        assert "the source has 'F', not 'f'" in message
        spec = workshop.spec(spec.source_path, recode={"x": {"groups": {"Women": ["F"]}}})
        assert told(spec) == []

    def test_values_of_a_codebook_need_not_occur(self, workshop: Any) -> None:
        recode = {"x": {"groups": {"rare": ["v", "w"]}}}
        assert told(workshop.csv({"s": AB, "x": ["u", "z"]}, recode=recode, categories={"x": list("uvwz")})) == []

    def test_names_of_categories_are_no_values(self, workshop: Any) -> None:
        recode = {"x": {"groups": {"none": ["(missing)", "u"]}, "minimum_count": 1}}
        assert told(workshop.csv({"s": AB, "x": ["u", "z"]}, recode=recode)) == []
        bins = {"x": {"bins": [5, 9], "groups": {"low": ["under 5", "5 to under 9"]}}}
        assert told(workshop.csv({"s": AB, "x": ["10", "1"]}, recode=bins)) == []

    def test_of_periods(self, workshop: Any) -> None:
        recode = {"x": {"period": "year", "groups": {"before": ["2024", "2025"]}}}
        (said,) = told(workshop.csv({"s": AB, "x": ["2025-01-02", "2026-01-02"]}, recode=recode))
        assert "'2024'" in said


class TestHierarchies:
    def test_what_is_not_in_one_is_told_in_numbers(self, tmp_path: Path) -> None:
        said = told(self._spec(tmp_path, "Delft,Gouda,Zeist", "Zebediah"))
        assert said == [
            "1 value is in column 'x' and not in its hierarchy, and stays as it is; add it to the table of levels"
        ]

    def test_one_may_have_more_than_the_source(self, tmp_path: Path) -> None:
        assert told(self._spec(tmp_path, "Delft,Gouda,Zeist,Utrecht", "Delft")) == []

    def test_one_of_other_values_is_refused(self, tmp_path: Path, refusal: Refusal) -> None:
        spec = self._spec(tmp_path, "DELFT,GOUDA", "Delft")
        assert "[recode.x] hierarchy names 2 values, and column 'x' has none of them" in refusal(lambda: told(spec))

    def _spec(self, folder: Path, known: str, value: str) -> ReleaseSpec:
        (folder / "levels.csv").write_text(
            "\n".join(["x,part", *(f"{one},{one in 'Delft, DELFT'}" for one in known.split(","))])
        )
        (folder / "t.csv").write_text(f"s,x\na,Delft\nb,Gouda\na,{value}\n")
        text = """
name = "t"
title = "T"
secret = ["s"]
publish = ["x"]
guarantee = "lip:1.0"
frequencies.protection = "none"
source.path = "t.csv"
metadata.licence = "CC0-1.0"
[recode.x]
hierarchy = "levels.csv"
level = "part"
"""
        return ReleaseSpec.parse(text, folder / "t.toml")


@pytest.mark.parametrize(
    ("values", "decimal", "hint"),
    [
        (["1.234,50", "999"], ".", "thousands set apart"),
        (["1.234,50", "999,25"], ",", "thousands set apart"),
        (["47,345", "999"], ".", "thousands set apart"),
        (["1 234", "2"], ".", "thousands set apart"),
        (["1,5", "2,25"], ".", 'with decimal = "," in [source]'),
        (["1,5", "none"], ".", "list them in missing"),
    ],
)
def test_texts_that_were_meant_as_numbers(
    workshop: Any, refusal: Refusal, values: list[str], decimal: str, hint: str
) -> None:
    source = {"delimiter": ";", "decimal": decimal}
    text = "\n".join(["s;x", *(f"{s};{x}" for s, x in zip(AB, values, strict=True))])
    spec = workshop.text(text, source=source, recode={"x": {"bins": [2]}})
    assert hint in refusal(lambda: told(spec), values[0])


@pytest.mark.parametrize("name", ["", " ", "a\nb"])
def test_columns_without_a_name_are_not_published_unasked(workshop: Any, name: str) -> None:
    spec = workshop.parquet({"s": AB, "x": AB, name: AB}, publish="auto")
    with pytest.raises(SpecError, match="column 3 of the source, whose name is"):
        resolved_columns(spec)


def test_of_all_columns_one_of_a_type_without_categories_can_be_left_out(workshop: Any, refusal: Refusal) -> None:
    spec = workshop.parquet({"s": AB, "x": AB, "l": [[1], [2]]}, publish="auto")
    assert "by exclude in [groups]" in refusal(lambda: told(resolved_columns(spec)))


def test_the_first_version_of_feather_says_what_to_do(tmp_path: Path, refusal: Refusal) -> None:
    (tmp_path / "t.feather").write_bytes(b"FEA1" + bytes(100) + b"FEA1")
    spec = spec_of("t.feather", tmp_path)
    assert "is a Feather file of version 1; write it as version 2" in refusal(lambda: open_source(spec))


class TestDeclaredValues:
    def test_a_misspelt_one_is_refused_with_what_was_meant(self, workshop: Any, refusal: Refusal) -> None:
        columns = {"s": AB * 3, "x": ["Married", "Single", "Single", "Widowed", "Widowed", "Married"]}
        listing = {"x": ["Married", "single", "Widowed"]}
        message = refusal(lambda: told(workshop.csv(columns, categories=listing)))
        assert "[categories] x lists 'single', which no record has" in message
        assert "did you mean 'Single'?" in message

    @pytest.mark.parametrize("known", [["2018", "2019", "2021"], ["married", "never", "other"]])
    def test_others_that_do_not_occur_are_not(self, workshop: Any, known: list[str]) -> None:
        columns = {"s": AB * 2, "x": [known[0], known[1], "2020", known[0]]}
        assert len(told(workshop.csv(columns, categories={"x": known}, limits={"set_aside": 1.0}))) == 1

    def test_that_are_in_a_group_occur_there(self, workshop: Any) -> None:
        recode = {"x": {"groups": {"Women": ["F", "V"], "Men": ["M"]}}}
        spec = workshop.csv({"s": AB * 2, "x": ["F", "V", "M", "M"]}, recode=recode, categories={"x": ["F", "V", "M"]})
        assert told(spec) == []


class TestComplete:
    @pytest.mark.parametrize("protection", ["none", "noise"])
    @pytest.mark.parametrize(
        ("cell", "said"), [(None, "values of it are missing"), ("c", "records have other values of it")]
    )
    def test_a_record_without_a_declared_value_is_refused(
        self, workshop: Any, refusal: Refusal, protection: str, cell: str | None, said: str
    ) -> None:
        spec = workshop.parquet(
            {"s": AB * 2, "x": ["a", "b", "a", cell]},
            categories={"s": AB, "x": AB},
            complete=["x"],
            frequencies={"protection": protection},
            disclosure={"on_breach": "report"},
        )
        assert f"complete names 'x', and {said}" in refusal(lambda: told(spec))

    def test_so_is_a_missing_one_that_would_be_dropped(self, workshop: Any, refusal: Refusal) -> None:
        columns = {"s": AB * 2, "x": ["a", "b", "a", None]}
        spec = workshop.parquet(columns, categories={"x": AB}, complete=["x"], source={"on_missing": "drop"})
        assert "values of it are missing" in refusal(lambda: told(spec))

    def test_of_bins_none_is_missing(self, workshop: Any, refusal: Refusal) -> None:
        changes: dict[str, Any] = {"recode": {"x": {"bins": [5]}}, "complete": ["x"]}
        assert told(workshop.parquet({"s": AB, "x": [1, 9]}, **changes)) == []
        assert "missing" in refusal(lambda: told(workshop.parquet({"s": AB * 2, "x": [1, 9, 3, None]}, **changes)))

    def test_what_is_listed_may_occur(self, workshop: Any) -> None:
        columns = {"s": AB * 2, "x": ["a", "b", "z", None]}
        listing = {"x": ["a", "b", "Other", "(missing)"]}
        assert len(told(workshop.parquet(columns, categories=listing, complete=["x"]))) == 1

    @pytest.mark.parametrize(
        ("column", "said"), [("x", "list them in [categories]"), ("elsewhere", "neither secret nor published")]
    )
    def test_nothing_says_which_values_there_are(self, column: str, said: str) -> None:
        with pytest.raises(SpecError, match=re.escape(said)):
            spec_of("a.csv", ".", complete=[column])


ODD = {"s": AB * 50, "x": ["a", "b"] * 48 + ["y", "z", None, "a"]}


class TestSetAside:
    def test_each_is_told_with_its_column_and_reason(self, workshop: Any) -> None:
        spec = workshop.parquet(ODD, categories={"x": AB})
        (merged,) = told(spec)
        assert "2 of 100 records (2.0%) become 'Other': column 'x' has values of them that [categories]" in merged
        dropping = workshop.parquet(ODD, source={"on_missing": "drop"})
        (dropped,) = told(dropping)
        assert "1 of 100 records (1.0%) are left out: column 'x' has no value" in dropped

    def test_too_many_need_a_setting(self, workshop: Any, refusal: Refusal) -> None:
        def taken(listing: list[str], **changes: Any) -> Codings:
            spec = workshop.parquet(ODD, categories={"x": listing}, **changes)
            return recoded(spec, open_source(spec), quiet)

        assert "or write set_aside = 0.02 in [limits]" in (message := refusal(lambda: taken(AB)))
        assert "list 'Other' there to accept it" in message
        for codings in (taken(AB, limits={"set_aside": 0.02}), taken([*AB, "Other"])):
            assert codings["x"].n_grouped == 2

    def test_so_do_values_that_are_too_rare_to_be_learned_under_noise(self, workshop: Any, refusal: Refusal) -> None:
        columns = {"s": AB * 500, "x": ["a", "b"] * 480 + [f"rare {k}" for k in range(40)]}
        changes: dict[str, Any] = {"categories": {"s": AB}, "frequencies": {"protection": "noise"}}
        spec = workshop.parquet(columns, **changes)
        message = refusal(lambda: recoded(spec, open_source(spec), quiet))
        assert "40 of 1,000 records (4.0%) become 'Other': column 'x' has values of them that are too rare" in message
        assert "list them in [categories] x to keep them, list 'Other' there to accept it, or write set_as" in message
        for more in ({"limits": {"set_aside": 0.04}}, {"recode": {"x": {"other": "Other"}}}):
            kept = workshop.parquet(columns, **changes, **more)
            assert recoded(kept, open_source(kept), quiet)["x"].n_grouped == 40

    def test_listed_values_of_a_group_of_that_name_are_none_of_them(self, workshop: Any) -> None:
        columns = {"s": AB * 50, "x": ["a", "b", "c", "d"] * 24 + ["a", "b", "z", "Other"]}
        groups = {"x": {"groups": {"Other": ["c", "d", "Other"]}}}
        spec = workshop.parquet(columns, categories={"x": ["a", "b", "c", "d", "Other"]}, recode=groups)
        assert [sentence.split(": ")[1] for sentence in told(spec)] == [
            "1 of 100 records (1.0%) become 'Other'",
        ]

    def test_so_do_records_whose_secret_has_no_category(self, workshop: Any, refusal: Refusal) -> None:
        columns = {"s": ["a", "b"] * 48 + ["c"] * 4, "x": AB * 50}
        changes: dict[str, Any] = {"categories": {"s": AB, "x": AB}, "frequencies": {"protection": "noise"}}
        spec = workshop.parquet(columns, **changes)
        message = refusal(lambda: recoded(spec, open_source(spec), quiet))
        assert "4 of 100 records (4.0%) are left out: column 's' has values of them that have no category" in message
        kept = workshop.parquet(columns, **changes, limits={"set_aside": 0.04})
        assert recoded(kept, open_source(kept), quiet).n_dropped == 4


def test_json_has_what_is_left_out_and_no_value(workshop: Any, capsys: pytest.CaptureFixture[str]) -> None:
    console = Console(as_json=True)
    columns = {"s": AB * 50, "x": ["u", "v"] * 48 + ["hidden", None, "v", "v"]}
    recode = {"x": {"groups": {"some": ["u", "secret spelling"]}, "minimum_count": 2}}
    for said in told(workshop.parquet(columns, recode=recode)):
        console.progress(f"{WARNING}{said}", 0, None)
    (loss,) = console.losses
    assert "2 of 100 records (2.0%) become 'Other': column 'x' has values of them that are too rare" in loss
    assert "secret spelling" in capsys.readouterr().err


class TestOpenColumns:
    """Categories that nobody declared, of people who are followed under noise: named with what to write."""

    @pytest.mark.parametrize(
        ("changes", "named"),
        [
            ({}, ("x", "y")),
            ({"complete": ["y"]}, ("x",)),
            ({"complete": ["x", "y"]}, ()),
            ({"history": {"people": "different"}}, ()),
            ({"mechanism": "optimal"}, ()),
            ({"frequencies": {"protection": "none"}}, ()),
        ],
    )
    def test_are_named_with_the_lines_to_write(
        self, workshop: Any, changes: dict[str, Any], named: tuple[str, ...]
    ) -> None:
        asked: dict[str, Any] = {
            "publish": ["x", "y"],
            "record_key": ["id"],
            "categories": {"s": AB, "x": AB, "y": AB},
            "mechanism": "invariant",
            "frequencies": {"protection": "noise"},
            "history": {"people": "same"},
            **changes,
        }
        columns = {"s": AB * 50, "x": AB * 50, "y": AB * 50, "id": [*map(str, range(100))]}
        found = [one for one in told(workshop.csv(columns, **asked)) if "missing or other values" in one]
        assert len(found) == bool(named)
        complete = ", ".join(f'"{column}"' for column in (*changes.get("complete", ()), *named))
        for one in found:
            assert f"write complete = [{complete}] before the first section" in one
            assert one.startswith(f"under noise {' and '.join(map(repr, named))} ")
