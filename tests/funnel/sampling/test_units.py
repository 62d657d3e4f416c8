"""Several rows of a unit are found, whatever the rows and however they are cut, and no unit is named."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from funnel.errors import DataError, SpecError
from funnel.sampling.units import Units


def told(rows: list[tuple[int, str]], cut: int, bucket_rows: int) -> str | None:
    table = pa.table({"number": [one for one, _ in rows], "name": pa.array([name for _, name in rows], pa.string())})
    with Units(("number", "name"), len(rows), bucket_rows=bucket_rows) as units:
        for batch in table.to_batches(max_chunksize=cut):
            units.add(batch)
        try:
            units.check()
        except SpecError as error:
            return str(error)
    return None


@given(
    rows=st.lists(st.tuples(st.integers(-2, 6), st.sampled_from(["a", "b", ""])), min_size=1, max_size=60),
    cut=st.integers(1, 20),
    bucket_rows=st.sampled_from([1, 3, 1 << 20]),
)
def test_units_with_several_rows_are_counted(rows: list[tuple[int, str]], cut: int, bucket_rows: int) -> None:
    counts = Counter(rows)
    several = [count for count in counts.values() if count > 1]
    said = told(rows, cut, bucket_rows)
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
    with Units(("household",), 4, ("?",), tmp_path) as units:
        units.add(rows)
        units.add(rows)
        with pytest.raises(
            DataError, match=r"^4 records have no value in the unit 'household'; drop them or give every"
        ):
            units.check()
    with Units(("person",), 4) as units, pytest.raises(DataError, match="'person' is not in the table"):
        units.add(rows)
