"""The order of a unit's rows: by the secret, the unit and the place of a row, and by nothing else."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from funnel.sampling.keyed import RecordKey
from funnel.sampling.unit_order import first_rows

KEY = RecordKey(("person",), bytes(range(32)))
UNITS = st.lists(st.one_of(st.none(), st.sampled_from(["a", "b", "c", "nobody"])), max_size=25)


def first(units: list[str | None], key: RecordKey = KEY, cut: int = 7) -> list[bool]:
    table = pa.table({"person": pa.array(units, pa.string())})
    return first_rows(table.to_batches(cut), key, ("nobody",)).tolist() if units else []


@given(UNITS)
def test_one_row_of_every_unit_is_its_first(units: list[str | None]) -> None:
    found = first(units)
    assert len(found) == len(units)
    chosen = [unit for unit, one in zip(units, found, strict=True) if one]
    assert sorted(map(str, chosen)) == sorted({unit for unit in units if unit not in (None, "nobody")})
    assert found == first(units, cut=3)


@given(UNITS)
def test_which_one_does_not_depend_on_other_units(units: list[str | None]) -> None:
    alone = [unit for unit in units if unit == "a"]
    found = [one for unit, one in zip(units, first(units), strict=True) if unit == "a"]
    assert found == first(alone)


def test_every_row_is_the_first_under_some_secret() -> None:
    secrets = [RecordKey(("person",), np.random.default_rng(seed).bytes(32)) for seed in range(60)]
    found = {first(["a", "a", "a", "b"], key).index(True) for key in secrets}
    assert found == {0, 1, 2}
