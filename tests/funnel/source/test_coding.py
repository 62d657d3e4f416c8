"""Codings and coded batches: the same as counting and relabelling row by row, however the source is cut up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from funnel.errors import DataError
from funnel.joint import Joint
from funnel.readers.formats import open_source
from funnel.settings.protection_settings import FrequencySettings
from funnel.settings.recode import Recode
from funnel.source.coding import Codings, coded_batches
from funnel.source.learning import learn_codings
from funnel.source.naming import ordered
from funnel.spec import ReleaseSpec

Refusal = Callable[..., str]

EXAMPLE = Path(__file__).parents[3] / "data" / "adult-education.toml"
HOSTILE = [
    "<script>alert(1)</script>",
    'a "quoted", value',
    "new\nline",
    "tab\t\x00\x1b[31m",
    "é",
    "e\u0301",
    " a",
    "a",
]


def learn(spec: ReleaseSpec, **options: Any) -> Codings:
    return learn_codings(spec, open_source(spec), **options)


def rows(spec: ReleaseSpec, codings: Codings, batch_rows: int = 5) -> list[tuple[str | None, ...]]:
    table = pa.Table.from_batches(list(coded_batches(spec, open_source(spec), codings, batch_rows)))
    assert all(table.schema.field(name).type == pa.dictionary(pa.int32(), pa.string()) for name in spec.columns)
    return list(zip(*(table[name].to_pylist() for name in spec.columns), strict=True))


def by_hand(
    cells: list[tuple[str | None, str | None]], missing: set[str], drop: bool, least: int
) -> list[tuple[str, str]]:
    """The coded rows of (s, x), with x grouped below ``least``, one row at a time."""
    blank = [tuple(None if cell in missing else cell for cell in row) for row in cells]
    kept = [row for row in blank if not (drop and None in row)]
    named = [("(missing)" if s is None else s, "(missing)" if x is None else x) for s, x in kept]
    sizes = Counter(x for _, x in named)
    order = [*ordered(dict.fromkeys(x for x in sizes if x != "(missing)")), "(missing)"]
    rare = {x for x, size in sizes.items() if size < least}
    # A group of few people is as rare as a value of few people: the smallest next one joins.
    while rare and sum(sizes[x] for x in rare) < least and rare < set(sizes):
        rare.add(min(set(sizes) - rare, key=lambda x: (sizes[x], order.index(x))))
    return [(s, "Other" if x in rare else x) for s, x in named]


texts = st.sampled_from(["?", "", *HOSTILE, "9", "10", "Zebediah"])
tables = st.lists(st.tuples(texts | st.none(), texts | st.none()), min_size=2, max_size=40)


@given(tables, st.booleans(), st.integers(1, 4), st.sampled_from(["parquet", "csv"]), st.integers(1, 50))
def test_coding_is_counting_row_by_row(
    workshop: Any, cells: list[tuple[str | None, str | None]], drop: bool, least: int, kind: str, batch_rows: int
) -> None:
    columns = {"s": [s for s, _ in cells], "x": [x for _, x in cells]}
    if kind == "parquet":
        columns = {name: pa.array(values, pa.string()) for name, values in columns.items()}
    spec = getattr(workshop, kind)(
        columns,
        source={"missing": ["?", ""], "on_missing": "drop" if drop else "category"},
        recode={"x": {"minimum_count": least}},
    )
    expected = by_hand(cells, {"?", ""}, drop, least)
    if len(expected) < 2 or len({s for s, _ in expected}) == 1 or len({x for _, x in expected}) == 1:
        with pytest.raises(DataError):
            learn(spec, batch_rows=batch_rows)
        return
    codings = learn(spec, batch_rows=batch_rows)
    assert rows(spec, codings, batch_rows) == expected
    assert (codings.n_rows, codings.n_dropped) == (len(expected), len(cells) - len(expected))
    for column, values in zip("sx", zip(*expected, strict=True), strict=True):
        assert dict(zip(codings[column].labels, codings[column].counts, strict=True)) == Counter(values)
    assert codings["x"].n_grouped == sum(x == "Other" for _, x in expected)
    assert codings["x"].n_missing == sum(x in (None, "?", "") for _, x in cells)
    assert Codings.from_json(codings.to_json()) == codings


def example() -> ReleaseSpec:
    """The embedded release, were its exact frequencies public and its values not grouped."""
    exact = {"frequencies": FrequencySettings(protection="none"), "categories": {}, "recode": {}}
    return ReleaseSpec.load(EXAMPLE).model_copy(update=exact)


def test_the_example_has_the_counts_its_source_documents() -> None:
    spec = example()
    progress: list[tuple[int, int | None]] = []
    codings = learn(spec, progress=lambda _, done, whole: progress.append((done, whole)), batch_rows=10_000)
    assert progress[-1] == (48842, 48842)
    assert len(progress) == 5
    assert codings.n_rows == sum(codings["education"].counts) == 48842
    assert len(codings["marital-status"].labels) == 7
    assert len(codings["education"].labels) == 16
    assert codings["education"].labels[-6:] == ("1st-4th", "5th-6th", "7th-8th", "9th", "10th", "11th", "12th")[-6:]
    occupation = learn(spec.model_copy(update={"publish": ("occupation",)}))["occupation"]
    assert (occupation.n_missing, occupation.labels[-1], occupation.counts[-1]) == (2809, "(missing)", 2809)


def test_the_joint_distribution_of_the_coded_rows_is_that_of_the_source() -> None:
    spec = example()
    coded = pa.Table.from_batches(list(coded_batches(spec, open_source(spec), learn(spec), batch_rows=9_999)))
    direct = Joint.from_table(pq.read_table(spec.source_path), spec.secret, spec.publish)
    through = Joint.from_table(coded, spec.secret, spec.publish)
    assert (through.counts == direct.counts).all()
    assert through.inputs == direct.inputs


@pytest.mark.parametrize(
    ("values", "labels"),
    [
        (["10", "9", "-1", "2.5"], ("-1", "2.5", "9", "10")),
        (["10", "9", "a"], ("a", "9", "10")),
        (["01", "1", "1.0"], ("01", "1", "1.0")),
        (["9th", "10th", "1st"], ("1st", "9th", "10th")),
        (["2020-10-01", "2020-9-01"], ("2020-9-01", "2020-10-01")),
        (["b", "?", "a"], ("a", "b", "(missing)")),
        ([True, False], ("False", "True")),
        ([3, 20, 100], ("3", "20", "100")),
        ([0.5, -0.5, 1e20], ("-0.5", "0.5", "1e+20")),
    ],
)
def test_labels_are_in_natural_order(workshop: Any, values: list[object], labels: tuple[str, ...]) -> None:
    spec = workshop.parquet({"s": list("ab") * len(values), "x": values * 2}, source={"missing": ["?"]})
    assert learn(spec)["x"].labels == labels


def test_bins_are_in_their_order_and_only_those_that_occur(workshop: Any) -> None:
    spec = workshop.parquet({"s": ["a", "b", "a", "b"], "x": [70, 5, None, 70]}, recode={"x": {"bins": [10, 20, 65]}})
    coding = learn(spec)["x"]
    assert (coding.kind, coding.labels, coding.counts) == ("bins", ("under 10", "65 and over", "(missing)"), (1, 2, 1))


def test_rare_bins_are_grouped_after_the_others(workshop: Any) -> None:
    spec = workshop.parquet(
        {"s": list("abababab"), "x": [1, 11, 11, 11, 21, 21, None, None]},
        recode={"x": {"bins": [10, 20], "minimum_count": 3, "other": "rest"}},
    )
    coding = learn(spec)["x"]
    # The missing ones are as rare as the others.
    assert coding.labels == ("10 to under 20", "rest")
    assert coding.counts == (3, 5)
    assert (coding.n_grouped, coding.n_grouped_values, coding.n_missing) == (5, 3, 2)
    assert coding.code("under 10") == coding.missing_code == 1


@pytest.mark.parametrize("least", [2, 20, 50, 500, 5000])
def test_no_category_of_adult_has_fewer_records_than_the_minimum(least: int) -> None:
    """Also not the group of rare ones, nor the missing: 3 people in the army would else be a group of 3."""
    spec = example()
    columns = ("occupation", "native-country", "workclass", "education", "marital-status")
    recode = {column: Recode(minimum_count=least) for column in columns}
    spec = spec.model_copy(update={"publish": columns[:4], "secret": columns[4:], "recode": recode})
    codings = learn(spec)
    table = pq.read_table(spec.source_path, columns=list(columns))
    for column in columns:
        coding = codings[column]
        assert min(coding.counts) >= least, column
        assert sum(coding.counts) == 48842
        cells = ["(missing)" if x in (None, "?") else x for x in table[column].to_pylist()]
        rare = {x for x, size in Counter(cells).items() if x not in coding.labels}
        sizes = Counter(cells)
        assert coding.n_grouped == sum(sizes[x] for x in rare)
        # No more is grouped than has to be: the largest value joined only because the others were too few together.
        if rare and sizes[largest := max(rare, key=sizes.__getitem__)] >= least:
            assert sum(sizes[x] for x in rare) - sizes[largest] < least
            assert all(sizes[x] >= sizes[largest] for x in coding.labels if x != "Other")
    occupation = codings["occupation"]
    if least == 20:
        # The 15 people in the army are too few, and so is a group of them alone.
        assert dict(zip(occupation.labels, occupation.counts, strict=True))["Other"] == 15 + 242


def test_values_that_came_later_are_outside_or_rare(workshop: Any, tmp_path: Path) -> None:
    spec = workshop.parquet(
        {"s": list("aabb"), "x": ["u", "u", "v", "w"], "z": [1, 2, 1, 2]},
        publish=["x", "z"],
        recode={"x": {"minimum_count": 2}, "z": {"bins": [2]}},
    )
    codings = learn(spec)
    later = pa.table({"s": ["c", None, "a"], "x": ["new", "u", None], "z": [None, -7, 7]})
    pq.write_table(later, tmp_path / "later.parquet")
    source = open_source(spec, tmp_path / "later.parquet")
    (batch,) = coded_batches(spec, source, codings)
    assert batch.to_pydict() == {
        "s": [None, None, "a"],
        "x": ["Other", "u", None],
        "z": [None, "under 2", "2 and over"],
    }


def test_unused_entries_of_a_dictionary_are_no_categories(workshop: Any) -> None:
    values = pa.DictionaryArray.from_arrays(pa.array([2, 0, 2, 0]), pa.array(["b", "y" * 500, "a", ""]))
    assert learn(workshop.parquet({"s": values, "x": values}))["x"].labels == ("a", "b")


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"columns": [{}], "n_rows": 1}', '{"columns": [1]}'])
def test_damaged_codings_are_refused(text: str) -> None:
    with pytest.raises(DataError, match="damaged"):
        Codings.from_json(text)


def test_codings_are_a_mapping_with_a_digest(workshop: Any) -> None:
    codings = learn(workshop.parquet({"s": ["a", "b"], "x": ["u", "v"]}))
    assert list(codings) == ["s", "x"]
    assert len(codings) == 2
    assert "z" not in codings
    other = learn(workshop.parquet({"s": ["a", "b"], "x": ["u", "w"]}))
    assert codings.digest != other.digest


def test_columns_without_coding_are_refused(workshop: Any, refusal: Refusal) -> None:
    spec = workshop.parquet({"s": ["a", "b"], "x": ["u", "v"]})
    message = refusal(lambda: list(coded_batches(spec, open_source(spec), {})))
    assert "there is no coding of column 's'" in message
