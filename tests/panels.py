"""Panels of people who come, change, leave and come back, and steps with channels at random: no optimiser is needed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from funnel.alphabet import Alphabet
from funnel.guarantees import LIP
from funnel.history.observed import Observed
from funnel.history.past import Past
from funnel.history.reached import ForObserver
from funnel.history.step import Step, drawing_protocol
from funnel.joint import Joint
from funnel.protocol import DENOMINATOR, Protocol
from funnel.register.following import drawn_people, follow_snapshot
from funnel.register.journal import Prepared
from funnel.register.look_up import observe
from funnel.register.preparing import DrawnPeople, EntryTerms, prepare_entry
from funnel.register.register import Register
from funnel.release.files import FileRef, write_whole
from funnel.release.snapshot import Snapshot
from funnel.sampling.answers import answers
from funnel.sampling.key_column import KEY_COLUMN, key_array
from funnel.sampling.keyed import RecordKey, key_digests, scope_of_register
from funnel.sampling.row_words import KeyedWords, WordKeys

SECRET, INPUTS, OUTPUTS = ("ill", "poor"), ("town",), ("town",)
REGISTER = "panel-people"
KEY = RecordKey(("id",), bytes(range(32)), scope_of_register(REGISTER))


@dataclass(frozen=True)
class Wave:
    """The people of a version: a frame with the columns id, ill, poor, town."""

    people: pd.DataFrame

    def table(self) -> pa.Table:
        """As dictionary columns, with the digests of keys."""
        columns = {
            name: pa.array(self.people[name].tolist(), pa.string()).dictionary_encode() for name in (*SECRET, *INPUTS)
        }
        keys = key_digests(pa.table({"id": pa.array(self.people["id"].to_numpy())}), KEY)
        return pa.table({**columns, KEY_COLUMN: key_array(keys)})

    def snapshot(self, folder: Path, group_rows: int = 50) -> Snapshot:
        """As a snapshot on disk."""
        folder.mkdir(parents=True)
        pq.write_table(self.table(), folder / "snapshot.parquet", row_group_size=group_rows)
        n = len(self.people)
        sizes = tuple(min(group_rows, n - start) for start in range(0, n, group_rows))
        data = FileRef.of(folder / "snapshot.parquet")
        return Snapshot(data, write_whole(folder / "codings.json", b"{}"), "0" * 64, "1" * 64, sizes, 0, ("number",))

    def joint(self) -> Joint:
        """The joint distribution, its alphabets in the order of what occurs."""
        return Joint.from_table(self.table(), SECRET, INPUTS)

    def cells(self, joint: Joint) -> np.ndarray:
        """The cell of everybody, by a loop over people."""
        return np.array(
            [
                joint.secret.index((row.ill, row.poor)) * len(joint.inputs) + joint.inputs.index(row.town)
                for row in self.people.itertuples()
            ]
        )


def waves(seed: int, count: int, people: int) -> list[Wave]:
    """Versions of a panel: everybody is in about two thirds of them, and changes now and then."""
    random = np.random.default_rng(seed)
    ids = random.permutation(10 * people)[:people]
    made = []
    values = {
        "ill": random.choice(["no", "yes"], people),
        "poor": random.choice(["no", "yes"], people),
        "town": random.choice(list("abcd"), people),
    }
    for _ in range(count):
        for name, options in (("ill", ["no", "yes"]), ("town", list("abcde"))):
            changing = random.random(people) < 0.2
            values[name] = np.where(changing, random.choice(options, people), values[name])
        there = random.permutation(np.flatnonzero(random.random(people) < 0.66))
        frame = pd.DataFrame({"id": ids[there], **{name: value[there] for name, value in values.items()}})
        made.append(Wave(frame))
    return made


def random_channels(random: np.random.Generator, count: int, a: int) -> np.ndarray:
    """Weights of channels, shape (count, a, a)."""
    shares = random.dirichlet(np.ones(a), (count, a)).transpose(0, 2, 1)
    weights = (shares * 2.0**62).astype(np.uint64)
    weights[:, 0] += np.uint64(DENOMINATOR) - weights.sum(axis=1)
    return weights


def random_step(seed: int, version: str, past: Past, observed: Observed) -> Step:
    """A step whose histories are drawn from one of three channels, whatever they are."""
    random = np.random.default_rng(seed)
    a = len(observed.joint.inputs)
    library = random_channels(random, 3, a)
    followed = np.unique(observed.nodes)
    weights = random_channels(random, 1, a)[0]
    outputs = Alphabet(OUTPUTS, observed.joint.inputs.symbols)
    channel = Protocol(weights, weights[:, 0].copy(), observed.joint.inputs, outputs, "optimal", "lip:1.0")
    return Step(
        version=version,
        guarantee=LIP(1.0),
        reserve=1.0,
        past=past,
        observed=observed,
        target=channel,
        channel=channel,
        library=library,
        followed=followed,
        drawn_from=random.integers(0, 3, len(followed)),
        level=LIP(1.0).level(observed.joint, channel),
        worst=None,
        by_observer=(ForObserver("transitions", None, True, 0.0, 0, 0, None),),
        utility=0.0,
        alone=0.0,
        bound=0.0,
        entropy=0.0,
    )


def draw(
    register: Register, wave: Wave, seed: int, version: str, folder: Path, series: str = "panel", bucket_rows: int = 16
) -> tuple[DrawnPeople, pd.DataFrame]:
    """Draw a wave: what the register is to keep, and a table of the same: columns id, cell, history, output."""
    snapshot, joint = wave.snapshot(folder / f"{series}-{version}"), wave.joint()
    work = folder / f"{series}-{version}" / "work"
    people = observe(register, snapshot, joint, work, bucket_rows=bucket_rows)
    step = random_step(seed, f"{series}/{version}", register.past, people.observed)
    followed = follow_snapshot(snapshot, people, step, KEY, work)
    words = KeyedWords(WordKeys.of(KEY, drawing_protocol(step), decided=True))
    drawn = drawn_people(snapshot, followed, people, step, words, None, work, bucket_rows=bucket_rows)
    nodes = pq.read_table(people.histories.path).column(0).to_pylist()
    asked = pq.read_table(followed.data.path)
    outputs = [some.outputs for some in answers(asked.to_batches(), drawing_protocol(step), words)]
    table = pd.DataFrame(
        {
            "id": wave.people["id"].to_numpy(),
            "cell": wave.cells(joint),
            "history": [None if node < 0 else step.past.history(node) for node in nodes],
            "output": np.concatenate(outputs).astype(np.int64),
        }
    )
    return drawn, table


def prepare(register: Register, drawn: DrawnPeople, version: str, series: str = "panel") -> Prepared:
    """Prepare the entry of what was drawn."""
    terms = EntryTerms(
        series=series,
        version=version,
        reserve=1.0,
        key_columns=KEY.columns,
        key_kinds=("number",),
        fingerprint=KEY.fingerprint,
        observers=("transitions",),
        secrets="all",
    )
    return prepare_entry(register, drawn, terms)


def publish(
    register: Register, wave: Wave, seed: int, version: str, folder: Path, series: str = "panel", bucket_rows: int = 16
) -> tuple[Prepared, pd.DataFrame]:
    """Publish a wave: its entry, and the table of `draw`."""
    drawn, table = draw(register, wave, seed, version, folder, series, bucket_rows)
    prepared = prepare(register, drawn, version, series)
    register.commit(prepared)
    return prepared, table
