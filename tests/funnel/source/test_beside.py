"""The other columns of a source: counted as a table would count them, in classes where they must be, or left out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from funnel import Joint
from funnel.errors import DataError
from funnel.readers.formats import open_source
from funnel.source.counting import count_joint
from funnel.source.learning import learn_codings
from funnel.source.side_columns import MOST_VALUES, SAMPLE, SideColumn, SideKnowledge, read_side_columns
from funnel.spec import ReleaseSpec

N = 3000


def table(n: int = N) -> pa.Table:
    generator = np.random.default_rng(11)
    return pa.table(
        {
            "id": [f"person {i}" for i in range(n)],
            "ill": generator.choice(["yes", "no"], n),
            "town": generator.choice(["north", "south", "west"], n),
            "age": generator.integers(0, 60, n),
            "income": np.where(generator.random(n) < 0.6, 0.0, generator.normal(size=n) ** 2),
            "sex": pa.array([*generator.choice(["f", "m"], n - 1).tolist(), None], pa.string()),
            "tags": [["a"]] * n,
        }
    )


def looked(path: Path, extra: str = "", **source: str) -> tuple[Joint, SideKnowledge]:
    settings = {
        "name": "t",
        "title": "T",
        "secret": ["ill"],
        "publish": ["town"],
        "guarantee": "lip:1.0",
        "source": {"path": path.name, **source},
        "metadata": {"licence": "CC0"},
        "frequencies": {"protection": "none"},
    }
    spec = ReleaseSpec.of(settings, path.parent)
    joint = count_joint(spec, lambda *told: None)
    return joint, read_side_columns(spec, joint, learn_codings(spec, open_source(spec), lambda *told: None))


def column(found: SideKnowledge, name: str) -> SideColumn:
    return next(one for one in found.columns if one.name == name)


def test_each_column_is_counted_against_secret_and_input(tmp_path: Path) -> None:
    people = table()
    pq.write_table(people, tmp_path / "p.parquet")
    joint, found = looked(tmp_path / "p.parquet")
    assert [one.name for one in found.columns] == ["id", "age", "income", "sex", "tags"]
    ages = column(found, "age")
    assert ages.counts is not None
    assert (ages.values, ages.classes) == (60, False)
    np.testing.assert_array_equal(ages.counts.sum(axis=2), joint.counts)
    frame = people.select(["ill", "town", "age"]).to_pandas()
    expected = sorted(
        tuple(
            int(((group["ill"] == s[0]) & (group["town"] == x[0])).sum())
            for s in joint.secret.symbols
            for x in joint.inputs.symbols
        )
        for _, group in frame.groupby("age")
    )
    assert sorted(map(tuple, ages.counts.reshape(-1, 60).T.tolist())) == expected


def test_many_numbers_are_put_into_classes_and_the_most_common_one_has_its_own(tmp_path: Path) -> None:
    people = table()
    pq.write_table(people, tmp_path / "p.parquet")
    _, found = looked(tmp_path / "p.parquet")
    income = column(found, "income")
    assert income.counts is not None
    assert income.classes
    assert 18 <= income.values <= 22
    sizes = np.sort(income.counts.sum(axis=(0, 1)))
    zeros = int((np.asarray(people["income"]) == 0).sum())
    assert sizes[-1] == zeros
    assert sizes[-2] < 3 * (N - zeros) / 20


def test_missing_values_are_a_value_and_what_has_no_categories_is_left_out(tmp_path: Path) -> None:
    pq.write_table(table(), tmp_path / "p.parquet")
    _, found = looked(tmp_path / "p.parquet")
    assert column(found, "sex").values == 3
    names = column(found, "id")
    assert names.counts is None
    assert names.reason == f"it has more than {MOST_VALUES} values, which are no numbers or come late"
    assert column(found, "tags").reason is not None
    assert found.sampled == ("age", "income", "sex")
    assert found.sample.shape == (min(N, SAMPLE), 5)


def test_a_csv_is_read_alike(tmp_path: Path) -> None:
    people = table().drop_columns(["tags", "sex"])
    pacsv.write_csv(people, tmp_path / "p.csv")
    pq.write_table(people, tmp_path / "p.parquet")
    _, of_csv = looked(tmp_path / "p.csv")
    _, of_parquet = looked(tmp_path / "p.parquet")
    for name in ("age", "income"):
        one, other = column(of_csv, name).counts, column(of_parquet, name).counts
        assert one is not None
        assert other is not None
        assert sorted(map(tuple, one.reshape(6, -1).T.tolist())) == sorted(map(tuple, other.reshape(6, -1).T.tolist()))


def test_records_that_are_left_out_are_not_counted(tmp_path: Path) -> None:
    people = table()
    towns = people["town"].to_pylist()
    towns[5] = towns[77] = None
    index = people.schema.get_field_index("town")
    pq.write_table(people.set_column(index, "town", pa.array(towns)), tmp_path / "p.parquet")
    joint, found = looked(tmp_path / "p.parquet", on_missing="drop")
    ages = column(found, "age").counts
    assert ages is not None
    assert ages.sum() == joint.n == N - 2


def test_a_source_that_changed_is_refused(tmp_path: Path) -> None:
    pq.write_table(table(), tmp_path / "p.parquet")
    joint, _ = looked(tmp_path / "p.parquet")
    spec = ReleaseSpec.of(
        {
            "name": "t",
            "title": "T",
            "secret": ["ill"],
            "publish": ["town"],
            "guarantee": "lip:1.0",
            "source": {"path": "p.parquet"},
            "metadata": {"licence": "CC0"},
            "frequencies": {"protection": "none"},
        },
        tmp_path,
    )
    codings = learn_codings(spec, open_source(spec), lambda *told: None)
    pq.write_table(table(N - 1), tmp_path / "p.parquet")
    with pytest.raises(DataError, match="changed while the release was made"):
        read_side_columns(spec, joint, codings)


def test_files_that_disagree_about_a_column_nobody_needs_are_no_hindrance(tmp_path: Path) -> None:
    folder = tmp_path / "parts"
    folder.mkdir()
    people = table(100).drop_columns(["tags"])
    pq.write_table(people, folder / "a.parquet")
    index = people.schema.get_field_index("age")
    pq.write_table(people.set_column(index, "age", people["sex"]), folder / "b.parquet")
    joint, found = looked(folder)
    assert joint.n == 200
    assert [one.name for one in found.columns] == ["id", "income", "sex"]


def test_a_source_of_nothing_else_has_nothing_beside(tmp_path: Path) -> None:
    pq.write_table(table().select(["ill", "town"]), tmp_path / "p.parquet")
    _, found = looked(tmp_path / "p.parquet")
    assert found.columns == ()
    assert found.sample.shape[1] == 2
