"""``publish = "auto"``: all columns of the source but those that are kept back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from funnel.errors import SpecError
from funnel.source.columns import resolved_columns
from funnel.spec import ReleaseSpec
from tests.projects import spec_of


def auto(folder: Path, **changes: Any) -> ReleaseSpec:
    pq.write_table(pa.table({name: ["1"] for name in ("b", "s", "number", "a", "house")}), folder / "people.parquet")
    return spec_of("people.parquet", folder, publish="auto", **changes)


def test_they_are_those_of_the_source_in_its_order(tmp_path: Path) -> None:
    assert resolved_columns(auto(tmp_path)).publish == ("b", "number", "a", "house")
    spec = auto(tmp_path, record_key=["number"], unit=["house"], groups={"exclude": ["b"]})
    assert resolved_columns(spec).publish == ("a",)
    assert resolved_columns(resolved_columns(spec)) == resolved_columns(spec)


def test_other_specs_stay_as_they_are(tmp_path: Path) -> None:
    # Nothing is opened: there is no source.
    spec = spec_of("gone.parquet", tmp_path, publish=[["a"], ["b"]])
    assert resolved_columns(spec) is spec


def test_what_is_left_out_is_a_column_and_something_is_left(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"exclude names 'hause', which the source does not have; did you mean house"):
        resolved_columns(auto(tmp_path, groups={"exclude": ["hause"]}))
    with pytest.raises(SpecError, match="leaves no column"):
        resolved_columns(auto(tmp_path, groups={"exclude": ["a", "b", "number", "house"]}))
