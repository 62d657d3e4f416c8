"""Combinations that no record has: counted by exact and by public counts, for values and for whole records."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from funnel import LIP, Alphabet, Joint, fit
from funnel.findings.absent import absent_records, absent_whole_records

SECRET = Alphabet(("ill",), (("no",), ("yes",)))
INPUTS = Alphabet(("sex", "child of"), (("f", "0"), ("f", "1"), ("m", "0"), ("m", "1")))


def test_by_exact_counts_and_by_noisy_ones_other_combinations_are_absent() -> None:
    noisy = Joint.from_counts(np.array([[50, 20, 60, 2], [30, 40, 20, 0]]), SECRET, INPUTS)
    exact = Joint.from_counts(np.array([[51, 20, 61, 0], [30, 39, 20, 0]]), SECRET, INPUTS)
    protocol = fit("invariant", noisy, LIP(1.0))
    drawn = np.array([80, 60, 78, 3])
    assert absent_records(exact, protocol, drawn) == 3
    assert absent_records(noisy, protocol, drawn) == 0


def test_a_set_of_values_is_no_combination() -> None:
    joint = Joint.from_counts(np.array([[50, 20, 60, 2], [30, 40, 20, 1]]), SECRET, INPUTS)
    protocol = fit("grr", joint, LIP(0.5))
    assert absent_records(joint, protocol, np.ones(len(protocol.outputs), dtype=np.int64)) is None


def test_of_whole_records_every_column_counts(tmp_path: Path) -> None:
    source = pa.table({"ill": ["no", "yes", "no"], "sex": ["f", "m", "m"], "age": ["1", "2", "1"]})
    released = pa.table({"sex": ["f", "m", "m", "f"], "age": ["1", "2", "1", "2"], "ill": ["yes", "yes", "no", "no"]})
    for name, table in (("source", source), ("released", released)):
        pq.write_table(table, tmp_path / name)
    paths = tmp_path / "released", tmp_path / "source"
    # "f, 1, yes" and "f, 2, no" are nobody's; without the secret only "f, 2" is.
    assert absent_whole_records(*paths, ("ill", "sex", "age")) == 2
    assert absent_whole_records(*paths, ("sex", "age")) == 1
