"""Who is forgotten is in no file of the register, and what they get later depends on nothing."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from funnel.errors import DataError, LedgerError, SpecError
from funnel.history.step import drawing_protocol
from funnel.protocol import DENOMINATOR
from funnel.register.entry import ENTRY, HEAD
from funnel.register.following import follow_snapshot
from funnel.register.forget import digests_of, forget
from funnel.register.look_up import FORGOTTEN_NODE, observe
from funnel.register.people import PersonArray
from funnel.register.register import Register, open_register
from funnel.sampling.answers import answers
from funnel.sampling.row_words import KeyedWords, WordKeys
from tests.killing import killed_after
from tests.panels import KEY, REGISTER, Wave, draw, prepare, publish, random_step, waves

WAVES = waves(21, 3, 80)


def two_waves(workspace: Path) -> tuple[Register, list[pd.DataFrame]]:
    with open_register(workspace, REGISTER) as register:
        tables = [publish(register, WAVES[i], i, f"1.{i}.0", workspace)[1] for i in range(2)]
    return Register.of(workspace, REGISTER), tables


def digests(register: Register, *ids: int) -> PersonArray:
    return digests_of([{"id": str(one)} for one in ids], register, KEY)


def found(register: Register, who: PersonArray) -> list[int]:
    """Versions in whose files somebody is, by a plain reading of them."""
    versions = []
    for ordinal in range(len(register.entries)):
        table = pq.read_table(register.people(ordinal)[0])
        there = set(zip(table["high"].to_pylist(), table["low"].to_pylist(), strict=True))
        if there & {(int(one["high"]), int(one["low"])) for one in who}:
            versions.append(ordinal)
    return versions


def people_of(wave: Wave) -> set[int]:
    return set(wave.people["id"].tolist())


def test_a_person_is_erased_and_the_others_are_not(tmp_path: Path) -> None:
    register, tables = two_waves(tmp_path)
    both = sorted(people_of(WAVES[0]) & people_of(WAVES[1]))
    one = sorted(people_of(WAVES[1]) - people_of(WAVES[0]))[0]
    who = digests(register, both[0], one, 10**6)
    assert found(register, who) == [0, 1]
    before = register.head
    assert before is not None
    erased = forget(register, who)
    assert (erased.people, erased.unknown, erased.rows) == (2, 1, 3)
    assert erased.versions == ("panel/1.0.0", "panel/1.1.0")
    assert "an answer that depends on nothing, and the bound still holds" in erased.sentence()
    assert found(register, who) == []
    register.check()
    head = register.head
    assert head is not None
    assert erased.head_sha256 == register.head_sha256 != head.earlier[-1]
    assert head.serial == before.serial + 1
    for ordinal, (known, table) in enumerate(zip(head.entries, tables, strict=True)):
        rows = pq.read_metadata(register.people(ordinal)[0]).num_rows
        assert rows + known.missing == len(table)
        assert known.entry == before.entries[ordinal].entry
    # Everybody else has the history that they had.
    people = observe(register, WAVES[2].snapshot(tmp_path / "next"), WAVES[2].joint(), tmp_path / "work")
    nodes = pq.read_table(people.histories.path).column(0).to_pylist()
    for person, node in zip(WAVES[2].people["id"], nodes, strict=True):
        if person in (both[0], one):
            assert node == FORGOTTEN_NODE
            continue
        published = tuple(
            (f"panel/1.{i}.0", int(table.set_index("id")["output"][person]))
            for i, table in enumerate(tables)
            if person in set(table["id"])
        )
        assert register.past.history(node) == published
    with pytest.raises(DataError, match="nobody of those asked for is in the register panel-people; they were erased"):
        forget(register, who)
    with pytest.raises(DataError, match="nobody of those asked for is in the register panel-people; nothing was chang"):
        forget(register, digests(register, 10**6))


def test_who_is_forgotten_gets_an_answer_that_depends_on_nothing(tmp_path: Path) -> None:
    register, _ = two_waves(tmp_path)
    all_of_them = sorted(people_of(WAVES[0]) | people_of(WAVES[1]))
    forget(register, digests(register, *all_of_them))
    snapshot, joint = WAVES[2].snapshot(tmp_path / "next"), WAVES[2].joint()
    people = observe(register, snapshot, joint, tmp_path / "work")
    gone = people_of(WAVES[2]) & set(all_of_them)
    assert (people.forgotten, people.known) == (len(gone), 0)
    step = random_step(3, "panel/1.2.0", register.past, people.observed)
    # Whatever the channel of new people is, and those who are forgotten have another input each.
    assert (step.library[0].max(axis=1) < DENOMINATOR).all()
    followed = follow_snapshot(snapshot, people, step, KEY, tmp_path / "work")
    asked = pq.read_table(followed.data.path)
    nodes = np.array(pq.read_table(people.histories.path).column(0).to_pylist())
    drawing = drawing_protocol(step)
    words = KeyedWords(WordKeys.of(KEY, drawing, decided=True))
    drawn = list(answers(asked.to_batches(), drawing, words))
    inputs = np.concatenate([some.inputs for some in drawn])
    outputs = np.concatenate([some.outputs for some in drawn]).astype(np.int64)
    made = np.concatenate([some.words for some in drawn])
    # All of them are outside what channels read: they are drawn from the marginal, by their word alone.
    assert ((inputs < 0) == (nodes == FORGOTTEN_NODE)).all()
    limits = np.cumsum(step.channel.marginal.astype(object))
    for word, output in zip(made[inputs < 0].tolist(), outputs[inputs < 0].tolist(), strict=True):
        assert output == sum(limit <= word >> 1 for limit in limits)
    # And they are in no version from then on.
    with open_register(tmp_path, REGISTER) as held:
        publish(held, WAVES[2], 3, "1.2.0", tmp_path)
        assert found(held, digests(held, *all_of_them)) == []
        assert held.head is not None
        assert held.head.entries[2].missing == len(gone)


def test_forgotten_entirely_they_are_new_people(tmp_path: Path) -> None:
    register, _ = two_waves(tmp_path)
    some = sorted(people_of(WAVES[0]) & people_of(WAVES[2]))[:3]
    first = forget(register, digests(register, *some[:2]))
    assert not first.entirely
    erased = forget(register, digests(register, *some), entirely=True)
    assert (erased.people, erased.unknown) == (3, 0)
    assert "whoever is in it for a new person" in erased.sentence()
    assert register.forgotten is None
    people = observe(register, WAVES[2].snapshot(tmp_path / "next"), WAVES[2].joint(), tmp_path / "work")
    nodes = dict(zip(WAVES[2].people["id"], pq.read_table(people.histories.path).column(0).to_pylist(), strict=True))
    assert [nodes[one] for one in some] == [0, 0, 0]
    assert people.forgotten == 0


def test_killed_while_it_forgets_it_is_all_or_nothing(tmp_path: Path) -> None:
    register, _ = two_waves(tmp_path / "base")
    who = digests(register, *sorted(people_of(WAVES[0]) & people_of(WAVES[1]))[:2])
    outcomes = set()
    for changes in range(1000):
        workspace = tmp_path / str(changes)
        shutil.copytree(tmp_path / "base", workspace)
        with killed_after(changes) as was_killed, open_register(workspace, REGISTER) as register:
            forget(register, who)
        with killed_after(2), open_register(workspace, REGISTER) as register:
            register.reconcile(lambda series, version: None)
        with open_register(workspace, REGISTER) as register:
            register.reconcile(lambda series, version: None)
            observe(register, WAVES[2].snapshot(workspace / "next"), WAVES[2].joint(), workspace / "work")
            erased = found(register, who) == []
            assert erased or found(register, who) == [0, 1]
            assert (register.forgotten is not None) is erased
            assert not list(register.root.glob(".[!.]*"))
        outcomes.add((was_killed(), erased))
        shutil.rmtree(workspace)
        if not was_killed():
            break
    assert outcomes == {(True, False), (True, True), (False, True)}


def test_what_cannot_be_forgotten(tmp_path: Path) -> None:
    with open_register(tmp_path / "empty", REGISTER) as register, pytest.raises(DataError, match="is empty: nothing"):
        forget(register, digests(register, 1))
    register, _ = two_waves(tmp_path)
    with pytest.raises(SpecError, match="a person is known by id; give a value for each of these and no other"):
        digests_of([{"name": "x"}], register, KEY)
    with pytest.raises(SpecError, match="a key is no whole number") as told:
        digests_of([{"id": "Zebediah"}], register, KEY)
    assert "Zebediah" not in str(told.value)
    who = digests(register, *sorted(people_of(WAVES[0]))[:1])
    with open_register(tmp_path, REGISTER) as held:
        prepare(held, draw(held, WAVES[2], 3, "1.2.0", tmp_path)[0], "1.2.0")
        with pytest.raises(LedgerError, match="is being published; wait for it"):
            forget(held, who)
    assert found(register, who) == [0] or found(register, who) == [0, 1]


def test_an_old_backup_from_before_somebody_was_forgotten_is_noticed(tmp_path: Path) -> None:
    register, _ = two_waves(tmp_path)
    backup = tmp_path / "backup"
    shutil.copytree(register.root, backup)
    erased = forget(register, digests(register, *sorted(people_of(WAVES[0]))[:1]))
    shutil.rmtree(register.root)
    shutil.copytree(backup, register.root)
    restored = Register.of(tmp_path, REGISTER)
    restored.check()
    assert (restored.root / "0000-panel-1.0.0" / ENTRY).is_file()
    assert (restored.root / HEAD).is_file()
    with pytest.raises(LedgerError, match="is older than what was published or forgotten since"):
        restored.require_head(erased.head_sha256)
