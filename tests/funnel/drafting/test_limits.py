"""How many categories each column gets: against all choices there are, and what stays by its name."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks.unprepared_tables import codes, survey, visits
from funnel.drafting.coarse import Coarse, coarse
from funnel.drafting.limits import SHARE, by_category, columns_within, mostly_others
from funnel.drafting.look import Column, look_at
from funnel.progress import quiet

WARDS = ("surgery", "medicine", "eye", "skin", "ear", "heart", "lung", "bone")


def columns_of(folder: Path, table: pd.DataFrame, *names: str) -> list[Column]:
    table.to_csv(folder / "t.csv", index=False)
    found = {one.name: one for one in look_at({"path": "t.csv"}, folder, quiet).columns}
    return [found[name] for name in names]


def texts(*shares: tuple[float, ...], n: int = 4000) -> pd.DataFrame:
    """Unordered columns, whose values have such shares of the records."""
    rng = np.random.default_rng(7)
    return pd.DataFrame(
        {f"c{k}": rng.choice(WARDS[: len(one)], n, p=np.array(one) / sum(one)) for k, one in enumerate(shares)}
    )


def others(one: Coarse, column: Column) -> float:
    """The share of the records that are Other, counted by hand."""
    values = {value: name for name, members in one.groups.items() for value in members}
    unnamed = sum(n for value, n in column.counts.items() if values.get(value, value) == "Other")
    return unnamed / sum(column.counts.values())


def worth(made: list[Coarse], columns: list[Column]) -> tuple[int, float]:
    found = [(others(one, column), by_category(one, column)) for one, column in zip(made, columns, strict=True)]
    entropy = sum(-sum(n / c.total() * math.log(n / c.total()) for n in c.values() if n) for _, c in found)
    return -sum(share > 0.5 for share, _ in found), entropy - sum(share for share, _ in found)


@pytest.mark.parametrize("most", [8, 12, 16, 24, 40])
def test_no_other_limits_are_worth_more(tmp_path: Path, most: int) -> None:
    table = texts((9, 8, 8, 7, 7, 6), (50, 20, 10, 5, 5, 5, 5), (3, 2))
    columns = columns_of(tmp_path, table, "c0", "c1", "c2")
    made = columns_within(columns, len(table), most)
    assert made is not None
    assert math.prod(one.size for one in made) <= most
    every = [
        [coarse(column, len(table), level, SHARE) for column, level in zip(columns, levels, strict=True)]
        for levels in itertools.product(range(2, 13), range(2, 13), (2,))
    ]
    best = max(worth(some, columns) for some in every if math.prod(one.size for one in some) <= most)
    assert worth(made, columns) == pytest.approx(best, abs=1e-12)


def test_the_most_common_values_keep_their_names(tmp_path: Path) -> None:
    table = texts((30, 20, 15, 12, 8, 6, 5, 4), (1, 1))
    columns = columns_of(tmp_path, table, "c0", "c1")
    made = columns_within(columns, len(table), 10)
    assert made is not None
    (joined,) = made[0].groups.values()
    named = set(table["c0"]) - set(joined)
    assert named == set(table["c0"].value_counts().index[:4])


def test_no_column_is_other_for_most_where_fewer_categories_of_another_avoid_it(tmp_path: Path) -> None:
    # Without that one would take three ages and two wards, one of them Other.
    columns = columns_of(tmp_path, visits(), "ward", "age", "sex")
    made = columns_within(columns, 9820, 16, 2)
    assert made is not None
    assert [one.size for one in made] == [4, 2, 2]
    assert not any(mostly_others(one, column) for one, column in zip(made, columns, strict=True))
    # And more values than usual are named for it.
    table = survey()
    columns = columns_of(tmp_path, table, "region", "age")
    made = columns_within(columns, len(table), 24, 2)
    assert made is not None
    assert others(made[0], columns[0]) < 0.5
    assert math.prod(one.size for one in made) <= 24


def test_where_nothing_avoids_it_there_are_limits_all_the_same(tmp_path: Path) -> None:
    columns = columns_of(tmp_path, visits(), "ward", "age", "sex")
    made = columns_within(columns, 9820, 8)
    assert made is not None
    assert [one.size for one in made] == [2, 2, 2]
    # A few combinations more, of few columns; of many columns there are none.
    assert [one.size for one in columns_within(columns, 9820, 4) or []] == [2, 2, 2]
    many = columns_of(tmp_path, texts(*[(1,) * 8] * 5), *(f"c{k}" for k in range(5)))
    assert columns_within(many, 4000, 200) is None
    assert columns_within(many, 4000, 243) is not None


def test_values_in_order_have_no_more_categories_than_before(tmp_path: Path) -> None:
    columns = columns_of(tmp_path, codes(), "postcode", "born")
    made = columns_within(columns, 20_000, 96)
    assert made is not None
    assert [one.size for one in made] == [6, 5]


def test_of_hundreds_of_columns_no_category_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def counted(column: Column, *more: float) -> Coarse:
        made.append(column.name)
        return coarse(column, 100, 2, SHARE)

    monkeypatch.setattr("funnel.drafting.limits.coarse", counted)
    column = Column("a", counts=Counter({"x": 60, "y": 40}))
    assert columns_within([column] * 7, 100, 100) is None
    assert not made
    assert columns_within([column] * 6, 100, 64) is not None
    assert made
