"""Sources that are damaged or odd: one clear sentence and nothing left, or a snapshot that is right."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from funnel.errors import DataError, FunnelError
from funnel.guarantees import parse_guarantee
from funnel.joint import Joint
from funnel.mechanisms import fit
from funnel.pipeline.tasks.ingest import ingest
from funnel.pipeline.tasks.step import listening
from funnel.readers.formats import open_source
from funnel.release.layout import versions
from funnel.sampling.engine import release_rows
from funnel.sampling.partitions import plan_rows
from funnel.spec import ReleaseSpec
from tests.projects import SPEC, adult_rows, make_project


def refused(spec: Path, error: type[FunnelError], *words: str) -> None:
    with pytest.raises(error) as caught:
        ingest.fn(ReleaseSpec.load(spec), spec.parent / ".funnel" / "people")
    assert all(word in str(caught.value) for word in words), str(caught.value)
    assert "\n" not in str(caught.value)
    assert versions(spec.parent / "releases" / "people") == []
    snapshots = spec.parent / ".funnel" / "people" / "snapshots"
    assert not snapshots.exists() or list(snapshots.iterdir()) == []


def test_damaged_and_unfit_sources_are_refused(tmp_path: Path) -> None:
    spec = make_project(tmp_path)
    source = tmp_path / "people.parquet"
    content = source.read_bytes()
    source.write_bytes(content[:-1000])
    refused(spec, DataError, "people.parquet", "cut short")
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    source.write_bytes(content[:4] + bytes(footer - 4) + content[footer:])
    refused(spec, DataError, "people.parquet", "damaged")
    nested = adult_rows().set_column(
        adult_rows().column_names.index("relationship"), "relationship", pa.array([["Wife"]] * 3000)
    )
    pq.write_table(nested, source)
    refused(spec, DataError, "'relationship'", "list")


def test_a_dictionary_with_duplicates_is_read_by_what_it_says(tmp_path: Path) -> None:
    indices = [None if i % 5 == 3 else i % 5 for i in range(3000)]
    entries = ["Wife", "Own-child", "Wife", "nobody", "Husband"]
    coded = pa.DictionaryArray.from_arrays(pa.array(indices, pa.int8()), pa.array(entries))
    table = adult_rows()
    table = table.set_column(table.column_names.index("relationship"), "relationship", coded)
    spec = make_project(tmp_path, table=table)
    snapshot = ingest.fn(ReleaseSpec.load(spec), tmp_path / ".funnel" / "people")
    seen = Counter(pq.read_table(snapshot.data.path)["relationship"].to_pylist())
    assert seen == {"Wife": 1200, "Own-child": 600, "Husband": 600, "(missing)": 600}


def folder_of_three(folder: Path) -> tuple[Path, Path]:
    """A spec whose source is a folder of three files, and that folder."""
    spec = make_project(folder, SPEC.replace('path = "people.parquet"', 'path = "people/"'))
    people = folder / "people"
    people.mkdir()
    for i, name in enumerate(("a", "b", "c")):
        pq.write_table(adult_rows(i * 1000, 1000), people / f"{name}.parquet")
    return spec, people


def test_a_file_of_a_folder_that_is_unlike_the_others_is_named(tmp_path: Path) -> None:
    spec, people = folder_of_three(tmp_path)
    table = adult_rows(1000, 1000)
    numbers = table.set_column(table.column_names.index("relationship"), "relationship", pa.array(range(1000)))
    pq.write_table(numbers, people / "b.parquet")
    refused(spec, DataError, "b.parquet", "'relationship'", "int64", "one type")
    pq.write_table(table.drop_columns(["marital-status"]), people / "b.parquet")
    refused(spec, DataError, "b.parquet has no column 'marital-status'")
    (people / "b.parquet").write_bytes((people / "a.parquet").read_bytes()[:-500])
    refused(spec, DataError, "b.parquet", "cut short")


@pytest.mark.parametrize("moment", ["reading the source", "learning the categories", "taking the snapshot"])
@pytest.mark.parametrize("change", ["other content", "other order", "another file", "one file less", "no parquet"])
def test_a_folder_that_changes_while_it_is_read_is_refused(tmp_path: Path, moment: str, change: str) -> None:
    spec, people = folder_of_three(tmp_path)

    def meddle(what: str, done: int, total: int | None) -> None:
        if what != moment or list(tmp_path.glob("changed")):
            return
        (tmp_path / "changed").touch()
        match change:
            case "other content":
                pq.write_table(adult_rows(5000, 1000), people / "b.parquet")
            case "other order":
                pq.write_table(adult_rows(1000, 1000).take(pa.array(range(999, -1, -1))), people / "b.parquet")
            case "another file":
                pq.write_table(adult_rows(3000, 10), people / "d.parquet")
            case "one file less":
                (people / "c.parquet").unlink()
            case _:
                (people / "b.parquet").write_bytes(b"PAR1")

    with listening(meddle):
        if moment == "reading the source" and change in ("other content", "other order"):
            # Nothing was read of it before but the types of its columns: the release is of what is there now.
            found = ingest.fn(ReleaseSpec.load(spec), tmp_path / ".funnel" / "people")
            assert found.source_sha256 == open_source(ReleaseSpec.load(spec)).digest()
            assert found.rows == pq.read_table(people, columns=["sex"]).num_rows
        else:
            refused(spec, DataError, "people")


def test_a_full_disk_stops_the_engine_without_a_file(tmp_path: Path) -> None:
    source = tmp_path / "people.parquet"
    pq.write_table(adult_rows(), source)
    joint = Joint.from_table(adult_rows(), "marital-status", "relationship")
    channel = fit("grr", joint, parse_guarantee("lip:1.0"))
    (tmp_path / "work").mkdir()
    plan = plan_rows(source, "digest", channel, tmp_path / "work", shuffle=True)
    with pytest.raises(OSError, match="No space left on device"):
        release_rows(plan, "/dev/full")
    assert not list((tmp_path / "work").glob(".*"))
