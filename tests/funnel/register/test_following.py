"""Histories, changes and answers are those of plain merges of the same people, however they are cut."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from funnel.errors import DataError, LedgerError
from funnel.history.step import drawing_protocol
from funnel.register.entry import PEOPLE
from funnel.register.entry_files import read_table
from funnel.register.following import drawn_people, follow_snapshot
from funnel.register.look_up import observe
from funnel.register.register import open_register
from funnel.sampling.engine import release_rows
from funnel.sampling.key_column import KEY_COLUMN
from funnel.sampling.keyed import key_digests
from funnel.sampling.partitions import plan_rows
from funnel.sampling.row_words import KeyedWords, WordKeys
from tests.panels import INPUTS, KEY, REGISTER, SECRET, publish, random_step, waves


def merged_histories(drawn: list[tuple[str, pd.DataFrame]]) -> dict[int, tuple[tuple[str, int], ...]]:
    """What was published about everybody, by a loop over versions."""
    found: dict[int, tuple[tuple[str, int], ...]] = {}
    for version, table in drawn:
        for person, output in zip(table["id"], table["output"], strict=True):
            found[person] = (*found.get(person, ()), (version, output))
    return found


@given(seed=st.integers(0, 2**32 - 1), bucket_rows=st.sampled_from([1, 7, 64, 1 << 18]))
@settings(max_examples=4, deadline=None)
def test_histories_and_changes_are_those_of_merges(
    tmp_path_factory: pytest.TempPathFactory, seed: int, bucket_rows: int
) -> None:
    folder = tmp_path_factory.mktemp("panel")
    with open_register(folder, REGISTER) as register:
        drawn: list[tuple[str, pd.DataFrame]] = []
        for number, wave in enumerate(waves(seed, 4, 150)):
            snapshot, joint = wave.snapshot(folder / f"observed-{number}"), wave.joint()
            people = observe(register, snapshot, joint, folder / "work", bucket_rows=bucket_rows)
            known = merged_histories(drawn)
            expected = [known.get(person, ()) for person in wave.people["id"]]
            nodes = pq.read_table(people.histories.path).column(0).to_pylist()
            assert [register.past.history(node) for node in nodes] == expected
            assert people.known == sum(history != () for history in expected)
            assert people.forgotten == 0
            cells = wave.cells(joint)
            now = pd.DataFrame({"id": wave.people["id"].to_numpy(), "now": cells})
            lasts = {[name for name, _ in drawn].index(history[-1][0]) for history in expected if history}
            assert set(people.observed.changes) == lasts
            for ordinal in lasts:
                both = drawn[ordinal][1].merge(now, on="id").groupby(["cell", "now"]).size()
                changes = people.observed.changes[ordinal]
                counted = zip(changes.before.tolist(), changes.after.tolist(), strict=True)
                assert dict(zip(counted, changes.records.tolist(), strict=True)) == both.to_dict()
            inputs = pd.Series(zip(nodes, (cells % len(joint.inputs)).tolist(), strict=True)).value_counts().to_dict()
            observed = people.observed
            pairs = zip(observed.nodes.tolist(), observed.inputs.tolist(), strict=True)
            assert dict(zip(pairs, observed.records.tolist(), strict=True)) == inputs
            _, table = publish(register, wave, seed + number, f"1.{number}.0", folder, bucket_rows=bucket_rows)
            drawn.append((f"panel/1.{number}.0", table))
        # What the register holds in the end, read from its files alone.
        known = merged_histories(drawn)
        for ordinal, (_, table) in enumerate(drawn):
            path, sha256 = register.people(ordinal)
            held = read_table(path.parent, PEOPLE, sha256)
            digests = key_digests(pa.table({"id": pa.array(table["id"].to_numpy())}), KEY)
            order = np.lexsort((digests[:, 1], digests[:, 0]))
            assert held["high"].tolist() == digests[order, 0].tolist()
            assert held["low"].tolist() == digests[order, 1].tolist()
            assert held["cell"].tolist() == table["cell"].to_numpy()[order].tolist()
            before = merged_histories(drawn[: ordinal + 1])
            ids = table["id"].to_numpy()[order]
            assert [register.past.history(node) for node in held["node"].tolist()] == [before[one] for one in ids]


def test_the_row_engine_draws_the_answers_that_are_derived_again(tmp_path: Path) -> None:
    first, second = waves(3, 2, 400)
    with open_register(tmp_path, REGISTER) as register:
        publish(register, first, 1, "1.0.0", tmp_path)
        snapshot, joint = second.snapshot(tmp_path / "second"), second.joint()
        people = observe(register, snapshot, joint, tmp_path / "work")
        step = random_step(2, "panel/1.1.0", register.past, people.observed)
        followed = follow_snapshot(snapshot, people, step, KEY, tmp_path / "work")
        again = follow_snapshot(snapshot, people, step, KEY, tmp_path / "again")
        assert followed.data.sha256 == again.data.sha256
        assert pq.read_schema(followed.data.path).names == [*SECRET, *INPUTS, "history channel", KEY_COLUMN]
        drawing = drawing_protocol(step)
        plan = plan_rows(
            followed.data.path,
            followed.data.sha256,
            drawing,
            tmp_path / "rows",
            shuffle=True,
            record_key=KEY,
            decided=True,
            secret=joint.secret,
            partition_rows=100,
        )
        (tmp_path / "rows").mkdir()
        rows = release_rows(plan, tmp_path / "released.parquet")
        words = KeyedWords(WordKeys.of(KEY, drawing, decided=True))
        drawn = drawn_people(snapshot, followed, people, step, words, rows.counts.pairs, tmp_path / "work")
        assert drawn.rows == len(second.people)
        wrong = rows.counts.pairs.copy()
        wrong[0, :2] += [1, -1]
        with pytest.raises(DataError, match="derived again, are not those that were drawn"):
            drawn_people(snapshot, followed, people, step, words, wrong, tmp_path / "other")
        # Every record draws from the channel of its history.
        asked = pq.read_table(followed.data.path)
        nodes = pq.read_table(people.histories.path).column(0).to_pylist()
        channels = [step.channels_of(node) for node in nodes]
        assert asked.column("history channel").to_pylist() == [str(channel) for channel in channels]


def test_a_word_is_for_one_decision(tmp_path: Path) -> None:
    first, second = waves(5, 2, 200)
    with open_register(tmp_path, REGISTER) as register:
        publish(register, first, 1, "1.0.0", tmp_path)
        snapshot, joint = second.snapshot(tmp_path / "second"), second.joint()
        people = observe(register, snapshot, joint, tmp_path / "work")
        step = random_step(2, "panel/1.1.0", register.past, people.observed)
        renamed = dataclasses.replace(step, version="panel/1.1.1")
        # New people have no history, so whoever else draws from another channel is somebody else.
        other = dataclasses.replace(step, drawn_from=(step.drawn_from + 1) % 3)
        keys = {
            name: pq.read_table(follow_snapshot(snapshot, people, one, KEY, tmp_path / name).data.path)
            .column(KEY_COLUMN)
            .to_pylist()
            for name, one in (("step", step), ("renamed", renamed), ("other", other))
        }
        assert len(set(keys["step"])) == len(second.people)
        assert keys["step"] == keys["renamed"]
        assert not set(keys["step"]) & set(keys["other"])


def test_another_distribution_or_history_is_not_followed(tmp_path: Path) -> None:
    first, second = waves(7, 2, 100)
    with open_register(tmp_path, REGISTER) as register:
        snapshot = first.snapshot(tmp_path / "first")
        with pytest.raises(DataError, match=r"outside the joint distribution|is not that of the snapshot"):
            observe(register, snapshot, second.joint(), tmp_path / "work")
        people = observe(register, snapshot, first.joint(), tmp_path / "work")
        step = random_step(2, "panel/1.0.0", register.past, people.observed)
        table = pq.read_table(snapshot.data.path).rename_columns([*SECRET, "history channel", KEY_COLUMN])
        pq.write_table(table, tmp_path / "named.parquet")
        named = dataclasses.replace(
            snapshot, data=dataclasses.replace(snapshot.data, path=str(tmp_path / "named.parquet"))
        )
        with pytest.raises(DataError, match="a column is named 'history channel'"):
            follow_snapshot(named, people, step, KEY, tmp_path / "w")
        publish(register, first, 1, "1.0.0", tmp_path)
        snapshot = second.snapshot(tmp_path / "second")
        people = observe(register, snapshot, second.joint(), tmp_path / "work")
        step = random_step(2, "panel/1.1.0", register.past, people.observed)
        less = dataclasses.replace(step, followed=step.followed[:-1], drawn_from=step.drawn_from[:-1])
        with pytest.raises(DataError, match="a history that nothing was decided for"):
            follow_snapshot(snapshot, people, less, KEY, tmp_path / "w")


def test_a_changed_file_of_people_is_refused(tmp_path: Path) -> None:
    first, second = waves(9, 2, 100)
    with open_register(tmp_path, REGISTER) as register:
        publish(register, first, 1, "1.0.0", tmp_path)
        path, _ = register.people(0)
        path.write_bytes(path.read_bytes() + b" ")
        with pytest.raises(
            LedgerError, match=r"people\.parquet was changed since it was written; .* forgotten: restore"
        ):
            observe(register, second.snapshot(tmp_path / "second"), second.joint(), tmp_path / "work")
        path.unlink()
        with pytest.raises(LedgerError, match=r"people\.parquet is gone"):
            observe(register, second.snapshot(tmp_path / "third"), second.joint(), tmp_path / "work")
