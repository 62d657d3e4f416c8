"""Snapshots: recoded records that are found again by what they are made from, whole or not at all, and private."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from funnel.errors import DataError, SpecError
from funnel.progress import quiet
from funnel.release import snapshot as module
from funnel.release.snapshot import CODINGS, Snapshot, forget_other_snapshots, take_snapshot
from funnel.sampling.key_column import KEY_COLUMN
from funnel.sampling.keyed import RecordKey
from funnel.spec import ReleaseSpec
from funnel.tables import even_tables
from tests.projects import spec_of

KEY = RecordKey(("id",), bytes(range(32)))
COLUMNS = {"s": ["no", "yes", None, "no"], "x": ["a", "b", "a", "c"], "id": [4, 3, 2, 1], "rest": ["p", "q", "r", "t"]}


def source(folder: Path, columns: dict[str, list[object]] | None = None, **changes: object) -> ReleaseSpec:
    pq.write_table(pa.table(columns or COLUMNS), folder / "source.parquet")
    return spec_of("source.parquet", folder, **changes)


def test_records_are_recoded_in_the_order_of_the_source(tmp_path: Path) -> None:
    spec = source(tmp_path)
    taken = take_snapshot(spec, tmp_path / "work", None, quiet)
    table = pq.read_table(taken.data.path)
    assert table.to_pydict() == {"s": ["no", "yes", "(missing)", "no"], "x": ["a", "b", "a", "c"]}
    assert {str(field.type) for field in table.schema} == {"dictionary<values=string, indices=int32, ordered=0>"}
    codings = taken.read_codings()
    assert codings["s"].labels == ("no", "yes", "(missing)")
    assert (taken.rows, taken.dropped) == (4, 0)
    dropped = take_snapshot(source(tmp_path, source={"on_missing": "drop"}), tmp_path / "work", None, quiet)
    assert (dropped.rows, dropped.dropped) == (3, 1)
    for folder in (Path(taken.data.path).parent, tmp_path / "work"):
        assert folder.stat().st_mode & 0o077 == 0


def test_it_is_found_again_whole_or_made_again(tmp_path: Path) -> None:
    spec = source(tmp_path)
    told: list[str] = []

    def taken() -> Snapshot:
        told.clear()
        return take_snapshot(spec, tmp_path / "work", None, lambda what, done, total: told.append(what))

    first = taken()
    assert "taking the snapshot" in told
    assert taken() == first
    assert told == ["reading the source"]
    folder = Path(first.data.path).parent
    for name in ("snapshot.parquet", "codings.json", "snapshot.json"):
        for content in (b"{}", None):
            (folder / name).unlink()
            if content is not None:
                (folder / name).write_bytes(content)
            assert taken() == first
            assert "taking the snapshot" in told
            assert first.data.intact()
            assert first.codings.intact()
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]


def test_other_content_settings_code_and_secrets_are_other_snapshots(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = tmp_path / "work"
    taken = [
        take_snapshot(source(tmp_path), work, None, quiet),
        take_snapshot(source(tmp_path, recode={"x": {"minimum_count": 2}}), work, None, quiet),
        take_snapshot(source(tmp_path, {**COLUMNS, "x": ["a", "b", "a", "b"]}), work, None, quiet),
    ]
    keyed = source(tmp_path, record_key=["id"])
    taken.append(take_snapshot(keyed, work, KEY, quiet))
    taken.append(take_snapshot(keyed, work, replace(KEY, secret=bytes(range(1, 33))), quiet))
    monkeypatch.setattr(module, "code_digest", lambda: "f" * 64)
    taken.append(take_snapshot(source(tmp_path), work, None, quiet))
    assert len({one.data.path for one in taken}) == len(taken)
    # Other code that makes the same records of it makes the same snapshot.
    assert taken[-1].content_sha256 == taken[0].content_sha256
    assert len({one.content_sha256 for one in taken}) == len(taken) - 1
    forget_other_snapshots(taken[2])
    assert [Path(one.data.path).exists() for one in taken] == [False, False, True, False, False, False]


def test_what_was_selected_under_noise_stays_selected(tmp_path: Path) -> None:
    """Drawn once, and kept with the codings: only what decides over the categories draws anew."""
    work = tmp_path / "work"
    # So many of each that no noise of this size hides them.
    columns: dict[str, list[object]] = {"s": ["no", "yes"] * 200, "x": ["a", "a", "b", "b"] * 100}

    def taken(**settings: Any) -> Path:
        noise = {"protection": "noise", "epsilon": 20.0, "delta": 0.1, **settings.pop("frequencies", {})}
        spec = source(tmp_path, columns, frequencies=noise, **settings)
        return Path(take_snapshot(spec, work, None, quiet).data.path)

    first = taken()
    before = (first.parent / CODINGS).read_bytes(), first.stat().st_mtime_ns
    for frequencies in ({}, {"beta": 0.2}, {"max_epsilon": 40.0}):
        assert taken(frequencies=frequencies) == first
    assert ((first.parent / CODINGS).read_bytes(), first.stat().st_mtime_ns) == before
    others = [
        taken(frequencies={"epsilon": 19.0}),
        taken(frequencies={"delta": 0.2}),
        taken(categories={"x": ["b", "a"]}),
        taken(categories={"x": ["a", "b"]}),
        Path(take_snapshot(source(tmp_path, columns), work, None, quiet).data.path),
    ]
    assert len({first, *others}) == 6


def test_with_record_keys_it_holds_their_digests_and_never_the_keys(tmp_path: Path) -> None:
    taken = take_snapshot(source(tmp_path, record_key=["id"]), tmp_path / "work", KEY, quiet)
    table = pq.read_table(taken.data.path)
    assert table.column_names == ["s", "x", KEY_COLUMN]
    assert len(set(table[KEY_COLUMN].to_pylist())) == 4
    # The digest of the records is of the keys as well.
    other = source(tmp_path, {**COLUMNS, "id": [4, 3, 2, 5]}, record_key=["id"])
    assert take_snapshot(other, tmp_path / "work", KEY, quiet).content_sha256 != taken.content_sha256


@pytest.mark.parametrize(
    ("ids", "sentence"),
    [([1, 2, 1, 3], "1 records repeat"), ([1, None, 2, 3], "1 records have no value in the record key")],
)
def test_keys_that_identify_nobody_are_refused(tmp_path: Path, ids: list[object], sentence: str) -> None:
    spec = source(tmp_path, {**COLUMNS, "id": ids}, record_key=["id"])
    with pytest.raises(DataError, match=sentence):
        take_snapshot(spec, tmp_path / "work", KEY, quiet)
    assert list((tmp_path / "work" / "snapshots").iterdir()) == []


def test_a_column_named_as_the_digests_are_is_refused(tmp_path: Path) -> None:
    spec = source(tmp_path, {**COLUMNS, KEY_COLUMN: ["u", "v", "u", "v"]}, publish=[KEY_COLUMN], record_key=["id"])
    with pytest.raises(DataError, match="as the digests of record keys are; rename it"):
        take_snapshot(spec, tmp_path / "work", KEY, quiet)


@pytest.mark.parametrize("moment", ["learning the categories", "taking the snapshot"])
def test_a_source_that_changes_meanwhile_leaves_nothing(tmp_path: Path, moment: str) -> None:
    """A value that was not there when the categories were learned, and the same rows once more."""
    for changed in ({**COLUMNS, "x": ["a", "b", "a", "new"]}, {name: 2 * cells for name, cells in COLUMNS.items()}):
        spec = source(tmp_path)

        def meddle(what: str, done: int, total: int | None, changed: dict[str, list[object]] = changed) -> None:
            if what == moment:
                source(tmp_path, changed)

        with pytest.raises(DataError, match="changed while it was read"):
            take_snapshot(spec, tmp_path / "work", None, meddle)
        assert list((tmp_path / "work" / "snapshots").iterdir()) == []


def test_it_is_on_disk_before_it_is_in_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    happened: list[str] = []
    real_fsync, real_replace = os.fsync, Path.replace

    def fsync(descriptor: int) -> None:
        happened.append(Path(f"/proc/self/fd/{descriptor}").readlink().name)
        real_fsync(descriptor)

    def replaced(path: Path, target: Path) -> Path:
        happened.append(f"{Path(target).parent.name}/{Path(target).name.split('-')[0]}")
        return real_replace(path, target)

    spec = source(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fsync)
        patch.setattr(Path, "replace", replaced)
        take_snapshot(spec, tmp_path / "work", None, quiet)
    folder = next((tmp_path / "work" / "snapshots").iterdir())
    at = happened.index(f"snapshots/{folder.name.split('-')[0]}")
    before = happened[:at]
    assert "snapshot.parquet" in before
    # Small files get their content under another name, and then theirs; the folder is forced to disk after that.
    incoming = before[-1]
    for name in ("codings.json", "snapshot.json"):
        written = next(i for i, event in enumerate(before) if event.startswith(f".{name}."))
        assert written < before.index(f"{incoming}/{name}")
    assert happened[at + 1 :] == ["snapshots"]


@given(sizes=st.lists(st.integers(0, 25), max_size=8), group=st.integers(1, 10))
def test_groups_are_even_and_hold_the_same_records(sizes: list[int], group: int) -> None:
    numbers = np.arange(sum(sizes))
    batches = (
        [pa.RecordBatch.from_arrays([pa.array(part)], names=["n"]) for part in np.split(numbers, np.cumsum(sizes)[:-1])]
        if sizes
        else []
    )
    found = [table["n"].to_pylist() for table in even_tables(batches, group)]
    assert [n for part in found for n in part] == numbers.tolist()
    assert all(len(part) == group for part in found[:-1])
    assert all(0 < len(part) <= group for part in found)


def test_the_digest_is_of_the_records_and_not_of_how_they_are_cut(tmp_path: Path) -> None:
    """Also where a chunk is a slice of a longer one, as those of even groups are."""
    spec = source(tmp_path, record_key=["id"])
    taken = take_snapshot(spec, tmp_path / "work", KEY, quiet)
    table = pq.read_table(taken.data.path)
    codings = taken.read_codings()
    for cuts in ([4], [1, 3], [2, 1, 1]):
        content, at = module._Content(), 0
        for cut in cuts:
            content.add(table.slice(at, cut))
            at += cut
        assert content.digest(codings) == taken.content_sha256
    turned = module._Content()
    turned.add(table.take(pa.array([1, 0, 2, 3])))
    assert turned.digest(codings) != taken.content_sha256


def test_several_rows_of_a_unit_are_refused(tmp_path: Path) -> None:
    columns = {**COLUMNS, "household": [1, 2, 1, 3]}
    spec = source(tmp_path, columns, unit=["household"])
    with pytest.raises(
        SpecError, match=r"^1 of 3 units \('household'\) have several rows, 2 in all, and the bound would"
    ):
        take_snapshot(spec, tmp_path / "work", None, quiet)
    assert not list((tmp_path / "work" / "snapshots").glob("*"))
    # A repeated record key is a unit with several rows, where units are named.
    repeated = source(tmp_path, {**columns, "id": [4, 4, 2, 1]}, record_key=["id"], unit=["id"])
    with pytest.raises(SpecError, match=r"^1 of 3 units \('id'\) have several rows"):
        take_snapshot(repeated, tmp_path / "work", KEY, quiet)
    # One row of every unit, and not a snapshot from before units were named.
    alone = source(tmp_path, columns)
    assert take_snapshot(alone, tmp_path / "work", None, quiet).rows == 4
    with pytest.raises(SpecError, match="have several rows"):
        take_snapshot(source(tmp_path, columns, unit=["household"]), tmp_path / "work", None, quiet)
    found = take_snapshot(source(tmp_path, columns, unit=["id"]), tmp_path / "work", None, quiet)
    assert (found.rows, pq.read_schema(found.data.path).names) == (4, ["s", "x"])
