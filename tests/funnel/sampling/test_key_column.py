"""The column of key digests: those of `key_digests`, and a refusal if a single key is missing or repeated."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from funnel.errors import DataError
from funnel.sampling.key_column import KEY_COLUMN, KEY_TYPE, KeyColumn, stored_digests
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
