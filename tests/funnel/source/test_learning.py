"""What a source may not be: too small, too varied, not varied at all, or ambiguous after recoding."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from typing import Any

import pytest

from funnel.readers.formats import open_source
from funnel.source.coding import Codings
from funnel.source.learning import learn_codings
from funnel.spec import ReleaseSpec

Refusal = Callable[..., str]

AB = ["a", "b"]


def learn(spec: ReleaseSpec) -> Codings:
    return learn_codings(spec, open_source(spec), batch_rows=1000)


@pytest.mark.parametrize("kind", ["parquet", "csv"])
@pytest.mark.parametrize(("values", "expected"), [([], "has no rows"), (["Zebediah"], "has 1 row")])
def test_a_table_of_no_row_or_one_is_refused(
    workshop: Any, refusal: Refusal, kind: str, values: list[str], expected: str
) -> None:
    spec = getattr(workshop, kind)({"s": values, "x": values})
    message = refusal(lambda: learn(spec))
    assert f"{expected}; a joint distribution" in message
    assert spec.source_path.name in message


@pytest.mark.parametrize(("least", "met"), [(9, "no row"), (3, "only 1 row")])
def test_conditions_that_leave_nothing_are_named(workshop: Any, refusal: Refusal, least: int, met: str) -> None:
    table = {"s": ["a", "b", "c"], "x": ["u", "v", "u"], "age": [1, 2, 3]}
    spec = workshop.parquet(table, secret=["s"], publish=["x"], source={"where": {"age": {"at_least": least}}})
    message = refusal(lambda: learn(spec))
    assert message.startswith(met)
    assert "meets the conditions of [source.where], on age;" in message


@pytest.mark.parametrize(("x", "left"), [([None, None, None], "no row is left"), (["u", None, None], "1 row is left")])
def test_a_table_of_which_missing_values_leave_nothing_is_refused(
    workshop: Any, refusal: Refusal, x: list[str | None], left: str
) -> None:
    spec = workshop.parquet({"s": ["a", "b", "c"], "x": x}, source={"on_missing": "drop"})
    message = refusal(lambda: learn(spec))
    assert left in message
    assert 'set on_missing = "category" in [source]' in message


def test_a_constant_secret_is_refused(workshop: Any, refusal: Refusal) -> None:
    spec = workshop.parquet({"s": ["a", "a"], "x": AB})
    assert "the secret column 's' has the same category in every row" in refusal(lambda: learn(spec))


def test_a_secret_that_recoding_makes_constant_is_refused(workshop: Any, refusal: Refusal) -> None:
    spec = workshop.parquet({"s": [1, 2], "x": AB}, recode={"s": {"bins": [50]}})
    assert "the secret column 's' has the same category in every row" in refusal(lambda: learn(spec))


def test_publishing_nothing_but_constants_is_refused(workshop: Any, refusal: Refusal) -> None:
    spec = workshop.parquet({"s": AB, "x": [1, 1], "z": [2, 2]}, publish=["x", "z"])
    assert "x, z has the same category in every row" in refusal(lambda: learn(spec))


def test_a_constant_beside_another_published_column_is_released(workshop: Any) -> None:
    spec = workshop.parquet({"s": AB, "x": [1, 1], "z": [2, 3]}, publish=["x", "z"])
    assert learn(spec)["x"].labels == ("1",)


def mended(message: str, spec: ReleaseSpec, workshop: Any) -> ReleaseSpec:
    """The spec with the lines that the message tells to add."""
    header, setting = re.findall(r'"(\[recode.*?\]|\w+ = .*?)"(?= and| into)', message)
    return workshop.spec(spec.source_path, publish=spec.publish, **tomllib.loads(f"{header}\n{setting}"))  # type: ignore[no-any-return]


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_many_numbers_call_for_bins(workshop: Any, refusal: Refusal, kind: str) -> None:
    n = 50_000
    spec = getattr(workshop, kind)({"s": AB * (n // 2), "x": range(n)})
    message = refusal(lambda: learn(spec))
    assert "column 'x' has 50,000 distinct values, and max_symbols in [limits] allows 1,000" in message
    assert 'put the lines "[recode.x]" and "bins = [10000, 20000, 30000, 40000]" into the spec' in message
    assert len(learn(mended(message, spec, workshop))["x"].labels) == 5


def test_many_texts_call_for_a_minimum_count(workshop: Any, refusal: Refusal) -> None:
    values = [f"v{i}" for i in range(2000) for _ in range(1 + i // 100)]
    spec = workshop.parquet({"s": (AB * len(values))[: len(values)], "a.x": values}, publish=["a.x"])
    message = refusal(lambda: learn(spec))
    assert "has 2,000 distinct values" in message
    assert '[recode."a.x"]' in message
    assert 1 < len(learn(mended(message, spec, workshop))["a.x"].labels) <= 1000


def test_identifiers_are_told_from_categories(workshop: Any, refusal: Refusal) -> None:
    spec = workshop.parquet({"s": AB * 25_000, "x": [f"Zebediah {i}" for i in range(50_000)]})
    message = refusal(lambda: learn(spec))
    assert "50,000 distinct values" in message
    assert '"minimum_count = 2"' in message
    assert "leave the column out if it identifies people" in message


@pytest.mark.parametrize(
    "values",
    [
        [10**6 + i for i in range(1500)],
        [*[0] * 20_000, *range(1, 1501)],
        [-i / 7 for i in range(1500)],
        [(i - 750) * 2e305 for i in range(1500)],
        [i * 1e-300 for i in range(1500)],
        [str(1900 + i / 10) for i in range(1500)],
        [f"1e{i}" for i in range(1500)],
        [f"1.{'0' * (i % 190)}{'0' * (i // 190)}e{i % 9}" for i in range(1500)],
    ],
)
def test_what_is_proposed_for_many_values_is_accepted(workshop: Any, refusal: Refusal, values: list[object]) -> None:
    spec = workshop.parquet({"s": (AB * len(values))[: len(values)], "x": values}, limits={"max_symbols": 50})
    message = refusal(lambda: learn(spec))
    if "identifies people" not in message:
        assert 1 < len(learn(mended(message, spec, workshop))["x"].labels) <= 50


def test_counting_stops_at_some_point(workshop: Any, refusal: Refusal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("funnel.source.learning.COUNTED", 3000)
    spec = workshop.parquet({"s": AB * 2500, "x": [f"v{i}" for i in range(5000)]})
    message = refusal(lambda: learn(spec))
    assert "'x' has more than 3,000 distinct values" in message
    spec = workshop.parquet({"s": AB * 2500, "x": range(5000)})
    message = refusal(lambda: learn_codings(spec, open_source(spec)))
    assert "'x' has more than 3,000 distinct values" in message
    assert '"bins = [600, 1200, 1800, 2400]"' in message
    monkeypatch.setattr("funnel.source.learning.COUNTED_FOR_GROUPING", 4000)
    spec = workshop.spec(spec.source_path, recode={"x": {"minimum_count": 2}})
    assert "'x' has more than 4,000 distinct values" in refusal(lambda: learn(spec))


def test_a_limit_of_the_spec_is_kept_to_the_letter(workshop: Any, refusal: Refusal) -> None:
    columns = {"s": AB * 5, "x": ["u", "v", "w", "z", None] * 2}
    assert len(learn(workshop.parquet(columns, limits={"max_symbols": 5}))["x"].labels) == 5
    spec = workshop.parquet(columns, limits={"max_symbols": 4})
    assert "max_symbols in [limits] allows 4" in refusal(lambda: learn(spec))
    spec = workshop.parquet({"s": AB * 3, "x": range(6)}, recode={"x": {"bins": [1, 2, 3]}}, limits={"max_symbols": 3})
    assert "give fewer bins in [recode.x]" in refusal(lambda: learn(spec))


def test_a_category_may_not_bear_the_name_of_the_missing_ones(workshop: Any, refusal: Refusal) -> None:
    columns = {"s": ["a", "b", "a"], "x": ["(missing)", "u", None]}
    spec = workshop.parquet(columns)
    assert "'x' has a category '(missing)' of its own" in (message := refusal(lambda: learn(spec)))
    assert "set missing_label in [source]" in message
    assert learn(workshop.parquet(columns, source={"missing_label": "none"}))["x"].labels == ("(missing)", "u", "none")


def test_a_category_may_not_bear_the_name_of_the_rare_ones(workshop: Any, refusal: Refusal) -> None:
    columns = {"s": AB * 3, "x": ["Other", "Other", "u", "u", "v", "w"]}
    spec = workshop.parquet(columns, recode={"x": {"minimum_count": 2}})
    assert "'x' has a category 'Other' of its own" in (message := refusal(lambda: learn(spec)))
    assert "set other in [recode.x]" in message
    labels = learn(workshop.parquet(columns, recode={"x": {"minimum_count": 2, "other": "rest"}}))["x"].labels
    assert labels == ("Other", "u", "rest")


@pytest.mark.parametrize("blank", ["", "  ", "\n"])
def test_a_category_without_text_is_refused(workshop: Any, refusal: Refusal, blank: str) -> None:
    spec = workshop.parquet({"s": AB, "x": ["u", blank]}, source={"missing": []})
    message = refusal(lambda: learn(spec))
    assert "'x' has cells without any text" in message
    assert "in missing of [source]" in message


def test_a_very_long_value_is_refused(workshop: Any, refusal: Refusal) -> None:
    assert learn(workshop.parquet({"s": AB, "x": ["u", "v" * 200]}))["x"].counts == (1, 1)
    spec = workshop.parquet({"s": AB, "x": ["u", "Zebediah" * 1000]})
    assert "'x' has a value of 8,000 characters" in refusal(lambda: learn(spec))


def test_bins_of_a_column_of_words_are_refused(workshop: Any, refusal: Refusal) -> None:
    spec = workshop.csv({"s": AB, "x": ["1", "Zebediah"]}, recode={"x": {"bins": [3]}})
    assert "'x' has values that are not numbers" in refusal(lambda: learn(spec))
