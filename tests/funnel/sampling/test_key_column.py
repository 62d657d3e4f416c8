"""The column of key digests: those of `key_digests`, and a refusal if a single key is missing or repeated."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from funnel.errors import DataError, SpecError
from funnel.sampling.key_column import KEY_COLUMN, KEY_TYPE, KeyColumn, Units, stored_digests
from funnel.sampling.keyed import RecordKey, key_digests

KEY = RecordKey(("person", "year"), bytes(range(32)))


def people(persons: list[str | None], years: list[int | None]) -> pa.RecordBatch:
    return pa.record_batch({"year": pa.array(years, pa.int64()), "person": pa.array(persons, pa.string())})


def test_digests_come_back_as_they_were_stored() -> None:
    batch = people(["a", "b", "c"], [1, 1, 2])
    with KeyColumn(KEY) as keys:
        column = keys.column(batch)
        assert column.type == KEY_TYPE
        stored = batch.append_column(KEY_COLUMN, column)
        np.testing.assert_array_equal(stored_digests(stored), key_digests(batch, KEY))
        np.testing.assert_array_equal(stored_digests(stored.slice(1, 1)), key_digests(batch, KEY)[1:2])
        keys.check()


def test_people_may_have_several_rows_but_each_row_has_a_person() -> None:
    batch = people(["a", "b", "a"], [1, 1, 1])
    with KeyColumn(KEY, several=True) as keys:
        assert keys.column(batch).to_pylist() == [digest.tobytes() for digest in key_digests(batch, KEY)]
        keys.column(batch)
        keys.check()
        keys.column(people([None], [1]))
        with pytest.raises(DataError, match="1 records have no value in the record key"):
            keys.check()


def test_one_key_that_is_repeated_or_missing_is_enough() -> None:
    with KeyColumn(KEY) as keys:
        keys.column(people(["a", "b"], [1, 1]))
        keys.column(people(["b", "a"], [2, 1]))
        with pytest.raises(DataError, match="1 records repeat the record key 'person', 'year'"):
            keys.check()
    for persons, years in ((["a", None], [1, 1]), (["a", "b"], [None, 1]), (["a", "?"], [1, 1])):
        with KeyColumn(KEY, ("?", "")) as keys:
            assert keys.column(people(persons, years)).null_count == 2
            with pytest.raises(DataError, match="1 records have no value in the record key"):
                keys.check()
    # What means missing is said by the spec; to the library "?" is a name.
    with KeyColumn(KEY) as keys:
        keys.column(people(["a", "?"], [1, 1]))
        keys.check()
    coded = people(["a", "?"], [1, 1])
    coded = coded.set_column(1, "person", coded.column("person").dictionary_encode())
    with KeyColumn(KEY, ("?",)) as keys:
        keys.column(coded)
        with pytest.raises(DataError, match="1 records have no value"):
            keys.check()


def told(rows: list[tuple[int, str]], cut: int) -> str | None:
    table = pa.table({"number": [one for one, _ in rows], "name": pa.array([name for _, name in rows], pa.string())})
    with Units(("number", "name")) as units:
        for batch in table.to_batches(max_chunksize=cut):
            units.column(batch)
        try:
            units.check()
        except SpecError as error:
            return str(error)
    return None


@given(
    rows=st.lists(st.tuples(st.integers(-2, 6), st.sampled_from(["a", "b", ""])), min_size=1, max_size=60),
    cut=st.integers(1, 20),
)
def test_units_with_several_rows_are_counted(rows: list[tuple[int, str]], cut: int) -> None:
    counts = Counter(rows)
    several = [count for count in counts.values() if count > 1]
    said = told(rows, cut)
    if not several:
        assert said is None
        return
    assert said is not None
    start = f"{len(several)} of {len(counts)} units ('number', 'name') have several rows, {sum(several)} in all, and"
    assert said.startswith(start)
    assert re.search(
        r"are drawn under one bound, also where there will be no other version; or make one row of every unit$", said
    )


def test_rows_without_a_unit_are_refused(tmp_path: Path) -> None:
    rows = pa.record_batch({"household": ["a", "?", None, "b"]})
    with Units(("household",), ("?",), tmp_path) as units:
        units.column(rows)
        units.column(rows)
        with pytest.raises(
            DataError, match=r"^4 records have no value in the unit 'household'; drop them or give every"
        ):
            units.check()
    with Units(("person",)) as units, pytest.raises(DataError, match="'person' is not in the table"):
        units.column(rows)
