"""The file of a protocol of many records: what is written is read again, and what was altered is refused."""

from __future__ import annotations

from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import funnel
from funnel import DataError, OutputError, SpecError
from funnel.donors.protocol_table import read_protocol, write_protocol

ADULT = Path(__file__).parents[3] / "data" / "adult.parquet"
COLUMNS = ["education", "sex", "race", "relationship", "occupation", "workclass", "marital-status", "native-country"]


@pytest.fixture(scope="module")
def protocol() -> funnel.Protocol:
    return funnel.fit_columns(ADULT, COLUMNS, funnel.LIP(1.0), ["income"]).protocol


def test_what_is_written_is_read(protocol: funnel.Protocol, tmp_path: Path) -> None:
    write_protocol(protocol, tmp_path / "protocol.parquet")
    again = read_protocol(tmp_path / "protocol.parquet")
    assert again.digest == protocol.digest
    assert (again.mechanism, again.guarantee) == ("invariant", "lip:1.0")
    assert (tmp_path / "protocol.parquet").stat().st_size < ADULT.stat().st_size


def test_what_was_altered_is_refused(protocol: funnel.Protocol, tmp_path: Path) -> None:
    path = tmp_path / "protocol.parquet"
    write_protocol(protocol, path)
    table = pq.read_table(path)
    place = table.column_names.index("marginal")
    moved = pc.take(table.column("marginal"), list(reversed(range(len(table)))))
    pq.write_table(table.set_column(place, "marginal", moved), path)
    with pytest.raises(DataError, match="altered or damaged"):
        read_protocol(path)
    path.write_bytes(b"PAR1 of nothing")
    with pytest.raises(DataError, match="not a readable protocol"):
        read_protocol(path)
    with pytest.raises(DataError, match="there is no file"):
        read_protocol(tmp_path / "other.parquet")
    pq.write_table(table.select(["marginal"]).replace_schema_metadata({}), path)
    with pytest.raises(DataError, match="not a readable protocol"):
        read_protocol(path)


def test_other_protocols_are_refused(protocol: funnel.Protocol, tmp_path: Path) -> None:
    joint = funnel.Joint.from_counts([[30, 10], [10, 50]])
    with pytest.raises(SpecError, match="use to_json"):
        write_protocol(funnel.optimal(joint, funnel.LIP(0.5)).protocol, tmp_path / "protocol.parquet")
    with pytest.raises(OutputError, match="cannot be written"):
        write_protocol(protocol, tmp_path / "none" / "protocol.parquet")
