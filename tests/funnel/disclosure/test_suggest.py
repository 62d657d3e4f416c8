"""Suggestions: a spec with the suggested lines meets its rules, counted from the source again."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from funnel.alphabet import Alphabet
from funnel.disclosure import Disclosure
from funnel.disclosure.suggest import Suggestion, group_names, made_one, suggest
from funnel.disclosure.value_order import in_order
from funnel.joint import Joint
from funnel.progress import quiet
from funnel.source.counting import count_joint
from tests.projects import adult_rows, spec_of


def suggested(folder: Path, table: pd.DataFrame, **changes: Any) -> tuple[Suggestion, Joint]:
    """What is suggested for a table, and its counts with the lines pasted in place of those of the same name.

    They are those that the suggestion tells, and meet the rules.
    """
    table.to_parquet(folder / "t.parquet", index=False)
    spec = spec_of("t.parquet", folder, **changes)
    before = count_joint(spec, quiet)
    found = suggest(spec, before, spec.disclosure.rules)
    pasted = {**changes, "recode": {**changes.get("recode", {}), **tomllib.loads(found.toml)["recode"]}}
    after = count_joint(spec_of("t.parquet", folder, **pasted), quiet)
    assert same_counts(found.joint, after)
    assert Disclosure(after, spec.disclosure.rules).passes
    return found, after


def same_counts(one: Joint, other: Joint) -> bool:
    """Whether two joint distributions give every combination the same count, in whatever order."""

    def cells(joint: Joint) -> dict[Any, int]:
        pairs = ((s, x) for s in range(len(joint.secret)) for x in range(len(joint.inputs)))
        return {
            (joint.secret.symbols[s], joint.inputs.symbols[x]): int(joint.counts[s, x])
            for s, x in pairs
            if joint.counts[s, x]
        }

    return cells(one) == cells(other)


def table(rows: dict[tuple[str, Any], int]) -> pd.DataFrame:
    """A table of the columns ``s`` and ``x`` with so many rows of each kind."""
    cells = [pair for pair, count in rows.items() for _ in range(count)]
    return pd.DataFrame(cells, columns=["s", "x"])


def test_texts_become_groups(tmp_path: Path) -> None:
    rows = {("ill", "a"): 40, ("well", "a"): 60, ("ill", "b"): 4, ("well", "b"): 30, ("ill", "c"): 9, ("well", "c"): 15}
    found, _ = suggested(tmp_path, table(rows))
    assert found.toml == '[recode.x.groups]\n"b or c" = ["b", "c"]\n'


def test_numbers_become_bins_and_missing_ones_stay_apart(tmp_path: Path) -> None:
    rows: dict[tuple[str, Any], int] = {(s, k): 4 + k for s in ("ill", "well") for k in range(1, 10)}
    rows |= {("ill", None): 20, ("well", None): 20}
    found, after = suggested(tmp_path, table(rows), source={"missing": [""]})
    bins = found.recode["x"].bins
    assert bins is not None
    assert found.recode["x"].groups is None
    assert "(missing)" in {symbol[0] for symbol in after.inputs.symbols}


def test_bins_become_fewer_bins(tmp_path: Path) -> None:
    rows: dict[tuple[str, Any], int] = {("ill", 1): 30, ("well", 1): 30, ("ill", 2): 3, ("well", 2): 40}
    rows |= {("ill", 30): 30, ("well", 30): 40}
    found, _ = suggested(tmp_path, table(rows), recode={"x": {"bins": [2, 3, 20]}})
    assert found.recode["x"].bins in ((2,), (3,), (20,))


@pytest.mark.parametrize("form", [None, "%d/%m/%Y"])
def test_periods_stay_periods(tmp_path: Path, form: str | None) -> None:
    """Years are numbers to look at, and yet no bins are made of them."""
    day = "{}-03-02" if form is None else "02/03/{}"
    counts = {2020: (30, 30), 2021: (3, 40), 2022: (30, 40)}
    rows: dict[tuple[str, Any], int] = {}
    for year, (ill, well) in counts.items():
        rows |= {("ill", day.format(year)): ill, ("well", day.format(year)): well}
    said = {"period": "year", **({} if form is None else {"format": form})}
    found, _ = suggested(tmp_path, table(rows), recode={"x": said})
    assert found.recode["x"].model_dump(exclude_unset=True).items() >= said.items()


def test_groups_that_are_there_are_taken_apart(tmp_path: Path) -> None:
    rows = {("ill", "a"): 40, ("well", "a"): 60, ("ill", "b"): 1, ("well", "b"): 20, ("ill", "c"): 4, ("well", "c"): 15}
    rows |= {("ill", "d"): 7, ("well", "d"): 15, ("ill", "e"): 80, ("well", "e"): 90}
    changes = {"recode": {"x": {"groups": {"low": ["b", "c"]}}}}
    found, _ = suggested(tmp_path, table(rows), **changes)
    assert found.recode["x"].groups == {"d or low": ("d", "b", "c")}


def test_rarer_values_join_a_group_by_their_common_name(tmp_path: Path) -> None:
    rows = {("ill", "a"): 40, ("well", "a"): 60, ("ill", "b"): 1, ("well", "b"): 4, ("ill", "c"): 2, ("well", "c"): 5}
    rows |= {("ill", "d"): 30, ("well", "d"): 25}
    found, _ = suggested(tmp_path, table(rows), recode={"x": {"minimum_count": 10}})
    assert found.recode["x"].minimum_count == 10
    assert found.recode["x"].groups == {"d or Other": ("d", "Other")}


def test_numbers_of_which_some_have_no_name_become_a_group_and_no_bins(tmp_path: Path) -> None:
    """Under noise rare values are told together: those are no interval, so there is no edge beside them."""
    spec = spec_of("t.parquet", tmp_path, frequencies={"protection": "noise"}, disclosure={})
    inputs = ["1", "2", "3", "Other"]
    joint = Joint.from_counts(
        [[40, 30, 9, 20], [30, 40, 8, 30]], Alphabet(("s",), (("a",), ("b",))), Alphabet(("x",), tuple(zip(inputs)))
    )
    found = made_one(spec, joint, "x", ["3", "Other"])
    assert found.toml == '[recode.x.groups]\n"3 or Other" = ["3", "Other"]\n'
    assert found.joint.counts.tolist() == [[40, 30, 29], [30, 40, 38]]
    # Without them, numbers are put into bins.
    plain = Joint(joint.counts[:, :3], joint.secret, Alphabet(("x",), tuple(zip(inputs[:3]))))
    assert made_one(spec, plain, "x", ["2", "3"]).recode["x"].bins == (2,)


def test_nothing_to_group(tmp_path: Path) -> None:
    joint = Joint.from_counts([[40, 30], [30, 40]])
    assert suggest(spec_of("t.parquet", tmp_path), joint, spec_of("t.parquet", tmp_path).disclosure.rules) is None


def test_adult_with_numbers_texts_and_missing_values(tmp_path: Path) -> None:
    changes = {
        "secret": ["marital-status"],
        "publish": ["age", "workclass"],
        "source": {"missing": ["?"]},
        "recode": {"age": {"bins": [20, 25, 30, 35, 40, 50, 60, 70]}},
    }
    found, _ = suggested(tmp_path, adult_rows().to_pandas(), **changes)
    assert found.to_dict()["kept"] <= found.to_dict()["bound"] <= found.to_dict()["before"]


@given(st.lists(st.lists(st.text(max_size=90), min_size=2, max_size=4), min_size=1, max_size=4))
def test_names_differ_from_all_others(groups: list[list[str]]) -> None:
    taken = {value for group in groups for value in group}
    names = group_names(groups, taken, 100)
    assert len(set(names)) == len(groups)
    assert not taken & set(names)
    assert all(len(name) <= 80 for name in names)


def test_the_name_of_all_values() -> None:
    assert group_names([["a", "b"]], {"a", "b"}, 2) == ("any value",)
    assert group_names([["a", "b"], ["a or b", "c"]], {"a", "b", "c", "a or b"}, 9) == ("a or b (2)", "a or b or c")


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"minimum_cells": 5}, "[disclosure] minimum_cells: unknown setting; did you mean minimum_cell?"),
        ({"minimum_cell": 0}, "[disclosure] minimum_cell must be at least 1"),
        ({"minimum_cell": 2.5}, "[disclosure] minimum_cell must be a whole number"),
        ({"dominance": 0.0}, "[disclosure] dominance must be above 0"),
        ({"dominance": 95}, "[disclosure] dominance must be at most 1"),
        ({"unique_share": -0.1}, "[disclosure] unique_share must be at least 0"),
        ({"on_breach": "warn"}, "[disclosure] on_breach must be 'refuse' or 'report'"),
    ],
)
def test_a_wrong_rule_is_named_in_one_sentence(settings: dict[str, Any], expected: str, tmp_path: Path) -> None:
    from funnel.errors import SpecError

    with pytest.raises(SpecError) as error:
        spec_of("t.parquet", tmp_path, disclosure=settings)
    assert expected in str(error.value)


def test_noise_is_only_told_of(tmp_path: Path) -> None:
    from funnel.errors import SpecError

    noise = {"frequencies": {"protection": "noise"}}
    rules = spec_of("t.parquet", tmp_path, **noise, disclosure={}).disclosure
    assert not rules.refuses("noise")
    assert rules.refuses("none")
    assert rules.refuses("threshold")
    with pytest.raises(SpecError, match='on_breach = "refuse" is for frequencies without noise'):
        spec_of("t.parquet", tmp_path, **noise, disclosure={"on_breach": "refuse"})


def test_a_threshold_groups_before_anything_is_counted(tmp_path: Path) -> None:
    rows = {("ill", "a"): 40, ("well", "a"): 60, ("ill", "b"): 4, ("well", "b"): 30, ("ill", "c"): 9, ("well", "c"): 15}
    rows |= {("ill", "rare"): 1, ("ill", "zone"): 60, ("well", "zone"): 70}
    table(rows).to_parquet(tmp_path / "t.parquet", index=False)
    spec = spec_of("t.parquet", tmp_path, frequencies={"protection": "threshold", "threshold": 12})
    counted = count_joint(spec, quiet)
    assert counted.counts[counted.counts > 0].min() >= 12
    assert counted.n == sum(rows.values())
    # A value that one person has is in a group, but in no name.
    assert not any("rare" in symbol[0] for symbol in counted.inputs.symbols)
    assert any("others" in symbol[0] for symbol in counted.inputs.symbols)


def test_a_threshold_that_no_grouping_meets_is_refused(tmp_path: Path) -> None:
    from funnel.errors import DataError

    table({("ill", "a"): 5, ("well", "b"): 5}).to_parquet(tmp_path / "t.parquet", index=False)
    with pytest.raises(DataError, match="take more records, publish fewer columns, or loosen both"):
        count_joint(spec_of("t.parquet", tmp_path, frequencies={"protection": "threshold"}), quiet)


def test_values_in_the_order_of_the_categories_are_grouped_with_neighbours(tmp_path: Path) -> None:
    rows = {(s, x): 40 for s in ("ill", "well") for x in ("low", "middle", "high", "top")}
    rows |= {("ill", "low"): 3, ("ill", "top"): 8}
    changes: dict[str, Any] = {"categories": {"x": ["low", "middle", "high", "top"]}}
    free, _ = suggested(tmp_path, table(rows), **changes)
    assert free.recode["x"].groups == {"low or top": ("low", "top")}
    found, _ = suggested(tmp_path, table(rows), **changes, disclosure={"ordered": ["x"]})
    assert found.recode["x"].groups == {"low or middle": ("low", "middle"), "high or top": ("high", "top")}


def test_an_order_that_nobody_gave(tmp_path: Path) -> None:
    from funnel.errors import SpecError

    with pytest.raises(SpecError, match="ordered names 'x', whose values"):
        spec_of("t.parquet", tmp_path, disclosure={"ordered": ["x"]})


class TestOrder:
    @pytest.mark.parametrize(
        "values",
        [
            ["under 20", "20-44", "45-49", "80 or older"],
            ["[0–10)", "[10–20)", "[90–100)"],
            ["<5", "5-9", "10+"],
            ["0", "1", "2", "3 or more"],
            ["2025-Q4", "2026-Q1"],
            ["2025-12-31", "2026-01-01"],
            ["-5 to 0", "0 to 5"],
            ["low", "Mid", "HIGH"],
            ["Never", "sometimes", "always"],
            ["very_poor", "fair", "Good", "excellent"],
            ["Jan", "Feb", "Dec"],
            ["under 5", "5-9", "75+"],
            ["< 500 €", "500 - 999 €", "1.000 - 1.999 €", "2.000 € und mehr"],
            ["LT $1000", "$1000 to 2999", "$3,000 to 3,999", "$25000 or more"],
            ["900", "1,500", "12,000"],
            ["1.125", "1.25", "10.5"],
            ["[100,200)", "[200,300)"],
            ["< 1 year", "1 year", "2 years", "10+ years"],
            ["unter 5 Jahre", "5 bis unter 10", "10 und älter"],
        ],
    )
    def test_is_read_from_texts_that_have_one(self, values: list[str]) -> None:
        assert in_order(values[::-1]) == values
        assert in_order(sorted(values)) == values

    @pytest.mark.parametrize(
        "values",
        [
            ["no", "yes"],
            ["9th", "10th"],
            ["30-39", "unknown"],
            ["9-5", "5-6"],
            ["7"],
            ["low", "red"],
            ["often", "frequently"],
        ],
    )
    def test_is_of_no_others(self, values: list[str]) -> None:
        assert in_order(values) is None

    def test_only_neighbours_of_labels_are_grouped(self, tmp_path: Path) -> None:
        # The two rare ages are the first and the last: as texts without an order they would be one.
        ages = ["15-19", "20-29", "30-39", "40-49", "80 or older"]
        rows = {(s, x): n for s in ("ill", "well") for x, n in zip(ages, (3, 60, 60, 60, 4), strict=True)}
        found, _ = suggested(tmp_path, table(rows))
        assert found.recode["x"].groups == {
            "15-19 or 20-29": ("15-19", "20-29"),
            "40-49 or 80 or older": ("40-49", "80 or older"),
        }
