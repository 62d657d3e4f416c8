"""Nearest known records: known ones stay, others agree in as many columns as any known record does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import funnel
from funnel import DataError
from funnel.donors import fit_columns, nearest_known

ADULT = Path(__file__).parents[3] / "data" / "adult.parquet"
COLUMNS = ["education", "sex", "race", "relationship", "occupation", "workclass"]
record = st.tuples(*(st.integers(0, 3).map(str) for _ in range(3)))


@given(st.lists(record, min_size=2, max_size=8, unique=True), st.lists(record, min_size=1, max_size=12))
def test_no_known_record_is_nearer(known: list[tuple[str, ...]], asked: list[tuple[str, ...]]) -> None:
    names = ("a", "b", "c")
    joint = funnel.Joint.from_counts(np.ones((2, len(known)), dtype=int), inputs=funnel.Alphabet(names, tuple(known)))
    protocol = fit_columns(joint, names, funnel.LIP(1.0)).protocol
    table = pa.table({name: [row[j] for row in asked] for j, name in enumerate(names)})
    found = nearest_known(table, protocol)
    rows = list(zip(*(found[name].to_pylist() for name in names), strict=True))

    def agreed(one: tuple[str, ...], other: tuple[str, ...]) -> int:
        return sum(a == b for a, b in zip(one, other, strict=True))

    for row, own in zip(rows, asked, strict=True):
        assert row in known
        assert agreed(row, own) == max(agreed(other, own) for other in known)
    assert nearest_known(table, protocol) == found


def test_early_columns_agree_first_and_others_by_their_shares() -> None:
    inputs = funnel.Alphabet(("a", "b"), (("1", "x"), ("2", "y"), ("2", "z"), ("3", "w")))
    joint = funnel.Joint.from_counts([[10, 300, 100, 10], [10, 300, 100, 10]], inputs=inputs)
    protocol = fit_columns(joint, ["a", "b"], funnel.LIP(1.0)).protocol
    asked = pa.table({"a": ["2"] * 4000, "b": [f"new {i}" for i in range(4000)]})
    found = nearest_known(asked, protocol)
    assert set(found["a"].to_pylist()) == {"2"}
    # A quarter has the rarer one; the numbers are a fixed function of the records.
    assert found["b"].to_pylist().count("z") / 4000 == pytest.approx(0.25, abs=0.03)
    both = nearest_known(pa.table({"a": ["1", "3"], "b": ["y", None]}), protocol)
    assert both.to_pylist() == [{"a": "1", "b": "x"}, {"a": "3", "b": "w"}]


def test_records_of_a_made_up_table_keep_most_values() -> None:
    """A protocol made for one half of the records draws the other half."""
    table = pq.read_table(ADULT, columns=["income", *COLUMNS])
    order = np.random.default_rng(1).permutation(len(table))
    ours, theirs = table.take(order[: len(order) // 2]), table.take(order[len(order) // 2 :])
    protocol = fit_columns(ours, COLUMNS, funnel.LIP(1.0), ["income"]).protocol
    known = nearest_known(theirs, protocol)
    shares = {}
    for name, given_ in (("marginal", theirs), ("nearest", known)):
        drawn = funnel.sanitise(given_, protocol, shuffle=False)
        kept = [
            np.mean([a == b for a, b in zip(drawn[c].to_pylist(), theirs[c].to_pylist(), strict=True)]) for c in COLUMNS
        ]
        shares[name] = float(np.mean(kept))
    assert shares["nearest"] > shares["marginal"] + 0.02
    assert nearest_known(ours, protocol).to_pylist() == ours.select(COLUMNS).to_pylist()


def test_a_table_that_lacks_a_column() -> None:
    joint = funnel.Joint.from_table(ADULT, ["income"], ["sex", "race"])
    protocol = fit_columns(joint, ["sex", "race"], funnel.LIP(1.0)).protocol
    with pytest.raises(DataError, match="'race'"):
        nearest_known(pa.table({"sex": ["Male"]}), protocol)
    empty = nearest_known(pa.table({"sex": pa.array([], pa.string()), "race": pa.array([], pa.string())}), protocol)
    assert empty.num_rows == 0
