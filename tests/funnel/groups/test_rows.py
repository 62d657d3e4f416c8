"""Rows of a grouped release, part by part: those of the library, whoever draws them and whenever they are stopped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import funnel
from funnel.errors import DataError
from funnel.groups import GroupedSolution
from funnel.groups.probe import probe_digest
from funnel.groups.protocol import SILENT, GroupedProtocol
from funnel.groups.rows import DrawnGroups, draw_groups, plan_groups, release_groups
from funnel.sampling import KEY_COLUMN, KEY_TYPE, RecordKey
from funnel.sampling.key_column import KeyColumn
from funnel.source import file_digest

KEY = RecordKey(columns=("number",), secret=bytes(range(32)))
Release = Callable[..., tuple[DrawnGroups, pa.Table, bytes]]


@pytest.fixture(scope="module")
def people(binary: funnel.Joint) -> pa.Table:
    """One row for every person, secret included."""
    rows = [
        (*binary.secret.symbols[s], *binary.inputs.symbols[r])
        for s, r in zip(*np.nonzero(binary.counts), strict=True)
        for _ in range(binary.counts[s, r])
    ]
    order = np.random.default_rng(0).permutation(len(rows))
    columns = zip(*(rows[i] for i in order), strict=True)
    names = (*binary.secret.columns, *binary.inputs.columns)
    table = pa.table({name: pa.array(list(of)).dictionary_encode() for name, of in zip(names, columns, strict=True)})
    return table.append_column("number", pa.array(range(len(rows))))


@pytest.fixture
def release(people: pa.Table, made: GroupedSolution, binary: funnel.Joint, tmp_path: Path) -> Release:
    """Releases the people in row groups of 500, and gives back what was drawn, the table, and the bytes of the file."""
    with KeyColumn(KEY) as keys:
        digests = [keys.column(batch) for batch in people.to_batches()]
    snapshot = tmp_path / "snapshot.parquet"
    keyed = people.append_column(pa.field(KEY_COLUMN, KEY_TYPE), pa.chunked_array(digests))
    pq.write_table(keyed, snapshot, row_group_size=500)
    sizes = [pq.ParquetFile(snapshot).metadata.row_group(i).num_rows for i in range(-(-people.num_rows // 500))]

    def run(folder: str = "work", key: RecordKey | None = KEY, **cut: object) -> tuple[DrawnGroups, pa.Table, bytes]:
        work = tmp_path / folder
        work.mkdir(exist_ok=True)
        plan = plan_groups(
            snapshot,
            file_digest(snapshot),
            made.protocol,
            work,
            secret=binary.secret,
            sizes=sizes,
            record_key=key,
            **{"shuffle": True, **cut},  # type: ignore[arg-type]
        )
        drawn = release_groups(plan, tmp_path / "out.parquet")
        return drawn, pq.read_table(tmp_path / "out.parquet"), (tmp_path / "out.parquet").read_bytes()

    return run


def rows_of(table: pa.Table) -> list[tuple[str, ...]]:
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def test_parts_are_the_whole_and_the_whole_is_what_the_library_draws(
    release: Release, people: pa.Table, made: GroupedSolution
) -> None:
    expected = rows_of(funnel.sanitise(people, made.protocol, KEY, shuffle=False))
    _, whole, _ = release("whole", shuffle=False)
    _, parts, _ = release("parts", shuffle=False, partition_rows=1000)
    assert rows_of(whole) == rows_of(parts) == expected
    _, shuffled, _ = release("shuffled", partition_rows=1000, part_rows=700)
    assert rows_of(shuffled) != expected
    assert Counter(rows_of(shuffled)) == Counter(expected)
    _, again, _ = release("again", partition_rows=500, part_rows=3000)
    assert rows_of(again) == rows_of(shuffled)
    for column in made.protocol.columns:
        assert whole.column(column).chunk(0).dictionary.to_pylist() == list(made.protocol.labels[column])


def test_what_was_done_before_an_interruption_is_taken_up_to_the_same_bytes(release: Release, tmp_path: Path) -> None:
    _, _, first = release(partition_rows=1000, part_rows=700)
    for name in ("drawn-00001.npz", "partition-00000.codes.json", "part-00002.parquet", "published.npy"):
        (tmp_path / "work" / name).unlink()
    kept = (tmp_path / "work" / "drawn-00000.npz").stat().st_mtime_ns
    drawn, _, second = release(partition_rows=1000, part_rows=700)
    assert second == first
    assert (tmp_path / "work" / "drawn-00000.npz").stat().st_mtime_ns == kept
    assert drawn.records[drawn.cells[:, 0] == 0].sum() == 3000


def test_a_working_file_that_was_changed_is_noticed(
    release: Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from funnel.groups import rows

    def spoilt(plan: rows.GroupedPlan, index: int) -> object:
        done = draw_groups(plan, index)
        with (Path(plan.folder) / done.file).open("ab") as file:
            file.write(b" ")
        return done

    monkeypatch.setattr(rows, "draw_groups", spoilt)
    with pytest.raises(DataError, match=r"working file drawn-00000.npz was changed"):
        release()


@pytest.mark.parametrize("key", [None, KEY])
def test_what_is_counted_is_what_records_did_at_every_stage(
    release: Release, made: GroupedSolution, binary: funnel.Joint, key: RecordKey | None
) -> None:
    drawn, table, _ = release(key=key, partition_rows=1000)
    cells, records, stages = drawn.cells, drawn.records, made.protocol.stages
    assert drawn.published == len(set(rows_of(table)))
    assert (records > 0).all()
    assert sorted(set(map(tuple, cells.tolist()))) == list(map(tuple, cells.tolist()))
    # At the first stage all are in class 0, as often with each secret as they were counted.
    first = cells[:, 0] == 0
    assert set(cells[first, 1].tolist()) == {0}
    by_secret = np.bincount(cells[first, 4], weights=records[first], minlength=len(binary.secret))
    assert by_secret.tolist() == binary.counts.sum(axis=1).tolist()
    for number, stage in enumerate(stages):
        here = cells[cells[:, 0] == number]
        counts = records[cells[:, 0] == number]
        after: Counter[tuple[int, int]] = Counter()
        for (_, place, x, y, s), count in zip(here.tolist(), counts.tolist(), strict=True):
            channel, following = stage.classes[place]
            assert x in stage.channels[channel].inputs[y]
            if following[y] != SILENT:
                after[following[y], s] += count
        if number + 1 < len(stages):
            later = cells[:, 0] == number + 1
            seen: Counter[tuple[int, int]] = Counter()
            for (_, place, _, _, s), count in zip(cells[later].tolist(), records[later].tolist(), strict=True):
                seen[place, s] += count
            assert seen == after
    assert [stream.words for stream in drawn.words] == [3000 * len(stages), 3000]


def test_the_probe_is_what_thresholds_of_the_weights_say(made: GroupedSolution) -> None:
    import hashlib

    answers = b""
    for stage in made.protocol.stages:
        for channel in stage.channels:
            listed = sorted({x for inputs in channel.inputs for x in inputs})
            columns = [
                [
                    dict(zip(inputs, weights, strict=True)).get(x, 0)
                    for inputs, weights in zip(channel.inputs, channel.weights, strict=True)
                ]
                for x in listed
            ]
            for column in (*columns, list(channel.marginal)):
                ends = [sum(column[: y + 1]) << 19 for y in range(len(column))]
                for end in ends:
                    for u in (max(end, 1) - 1, min(end, 2**63 - 1)):
                        answers += sum(t <= u for t in ends).to_bytes(4, "little")
    assert probe_digest(made.protocol) == hashlib.blake2b(answers, digest_size=16).hexdigest()
    read = GroupedProtocol.from_json(made.protocol.to_json())
    assert probe_digest(read) == probe_digest(made.protocol)
