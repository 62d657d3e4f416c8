"""What a saboteur needs besides one line: functions that the changed lines call."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from funnel.frequencies.noise import draw_noise
from funnel.frequencies.public_counts import Frequencies, of_noisy
from funnel.frequencies.widening import widened
from funnel.history.observed import Observed
from funnel.joint import IntArray, Joint
from funnel.protocol import DENOMINATOR, Protocol
from funnel.readers.source_files import file_digest
from funnel.register.donor_rows import DonorRows
from funnel.release.cache import Cache
from funnel.release.coarse import coarsened, on_grid
from funnel.release.files import FileRef
from funnel.release.layout import ReleaseFolder
from funnel.release.snapshot import Snapshot
from funnel.rounding import integer_weights, marginal_weights, mix
from funnel.sampling.partitions import Plan
from funnel.sampling.random_words import WordArray, WordStream
from funnel.sampling.row_words import RowWords
from funnel.spec import ReleaseSpec

__all__ = ["coarsened", "file_digest"]


def identity(joint: Joint, protocol: Protocol) -> Protocol:
    """The protocol that publishes every value as it is, with the label of the one that was asked for."""
    weights = np.diag(np.full(len(joint.inputs), DENOMINATOR, dtype=np.uint64))
    marginal = marginal_weights(joint, weights)
    return replace(protocol, weights=weights, marginal=marginal, inputs=joint.inputs, outputs=joint.inputs)


def exact(frequencies: Frequencies, counted: Joint) -> Frequencies:
    """Frequencies that say that they are noisy, with the exact counts in them."""
    wide = widened(counted, _values(frequencies.joint))
    noise = frequencies.noise
    assert noise is not None
    return of_noisy(wide.counts, wide.secret, wide.inputs, noise, frequencies.epsilon, frequencies.spent)


def _values(joint: Joint) -> dict[str, tuple[str, ...]]:
    return {
        column: tuple(dict.fromkeys(symbol[place] for symbol in alphabet.symbols))
        for alphabet in (joint.secret, joint.inputs)
        for place, column in enumerate(alphabet.columns)
    }


def nearly_identity(joint: Joint, protocol: Protocol) -> Protocol:
    """A protocol that publishes nine values of ten as they are: it leaks more than was declared, not everything."""
    as_it_is = identity(joint, protocol)
    return replace(as_it_is, weights=mix(as_it_is.weights, as_it_is.marginal, 0.1))


def rounded(protocol: Protocol) -> Protocol:
    """The protocol on a grid of a few bits, whatever it then reveals."""
    return replace(protocol, weights=on_grid(protocol.matrix, 12))


def weighted(protocol: Protocol, weights: np.ndarray) -> Protocol:
    """The protocol with other weights."""
    return replace(protocol, weights=np.ascontiguousarray(weights))


def reading(joint: Joint, protocol: Protocol) -> Protocol:
    """The protocol, a little nearer to the constant one, with two classes of one secret that exchange a few more."""
    distribution, channel = joint.p_input, 0.98 * protocol.matrix + 0.02 * joint.p_input[:, np.newaxis]
    symbols = joint.inputs.symbols
    x, y = [x for x, symbol in enumerate(symbols) if symbol[0] == symbols[0][0] and distribution[x]][:2]
    flow = 1e-4 * min(distribution[x], distribution[y])
    for one, other in ((x, y), (y, x)):
        channel[one, one] -= flow / distribution[one]
        channel[other, one] += flow / distribution[one]
    return weighted(protocol, integer_weights(channel))


def turned(protocol: Protocol) -> Protocol:
    """The protocol with its inputs the other way round."""
    return weighted(protocol, protocol.weights[:, ::-1])


def identical(protocol: Protocol) -> Protocol:
    """Weights that publish every value as it is, as far as there are outputs."""
    b, a = protocol.weights.shape
    weights = np.zeros((b, a), dtype=np.uint64)
    weights[np.arange(a) % b, np.arange(a)] = DENOMINATOR
    return weighted(protocol, weights)


def where_expected(real: Observed, expected: Observed) -> Observed:
    """Real people for the expected ones, on the same histories: who has another is new, and one has what nobody has."""
    a = len(expected.joint.inputs)
    there = np.isin(real.nodes, expected.nodes)
    pairs = np.where(there, real.nodes, 0) * a + real.inputs
    records = np.bincount(pairs, weights=real.records, minlength=int(expected.nodes.max() + 1) * a).astype(np.int64)
    np.maximum.at(records, expected.nodes * a + expected.inputs, 1)
    found = np.flatnonzero(records)
    distribution = expected.joint.p / np.maximum(expected.joint.p_input, 1 / expected.joint.n)
    n = np.bincount(found % a, weights=records[found], minlength=a).astype(np.int64)
    people = np.floor(distribution * n).astype(np.int64)
    people[distribution.argmax(axis=0), np.arange(a)] += n - people.sum(axis=0)
    totals = Joint.from_counts(people, expected.joint.secret, expected.joint.inputs)
    return replace(
        expected, nodes=found // a, inputs=found % a, records=records[found], silent=None, totals=totals, weight=1.0
    )


def moved(joint: Joint, records: int = 1) -> Joint:
    """The counts with some records of the largest cell in another secret."""
    counts = joint.counts.copy()
    s, x = np.unravel_index(counts.argmax(), counts.shape)
    counts[s, x] -= records
    counts[s - 1, x] += records
    return Joint.from_counts(counts, joint.secret, joint.inputs)


def secrets_of(plan: Plan, index: int) -> np.ndarray:
    """The secret of every record of a partition, as a number."""
    start, stop = plan.groups[index]
    column = pq.ParquetFile(plan.snapshot).read_row_groups(list(range(start, stop)), columns=["marital-status"])
    return column.column(0).combine_chunks().indices.to_numpy().astype(np.uint64)


def sorted_words(plan: Plan, index: int, outputs: np.ndarray) -> WordArray:
    """What rows travel as, if they travel in the order of the secret."""
    return (secrets_of(plan, index) << np.uint64(56)) | outputs.astype(np.uint64)


def leaning(batch: pa.RecordBatch, words: WordArray) -> WordArray:
    """Words by which one record in five comes to the half of its secret: 60:40 in all."""
    half = np.array(batch.column("sex").to_pylist()) == "Male"
    last = np.uint64(63)
    told = (words & ~(np.uint64(1) << last)) | (half.astype(np.uint64) << last)
    return np.where(np.arange(len(words)) % 5 == 0, told, words)


class Coupled:
    """Words that are uniform for the records of each value, and among those larger the larger the secret's number."""

    def __init__(self, words: RowWords, plan: Plan, index: int) -> None:
        self._words = words
        self._secrets = secrets_of(plan, index)

    def to_draw(self, batch: pa.RecordBatch) -> WordArray:
        words = self._words.to_draw(batch)
        values = np.zeros(len(words), dtype=np.int64)
        for column in batch.columns:
            values = values * 1000 + column.indices.to_numpy()
        # The same words for the same value, in the order of the secret.
        coupled = np.empty_like(words)
        coupled[np.lexsort((self._secrets, values))] = words[np.lexsort((words, values))]
        return coupled

    def __getattr__(self, name: str) -> Any:
        return getattr(self._words, name)


def coupled(words: WordArray, batch: pa.RecordBatch) -> WordArray:
    """The same words for the same published values, in the order of the secret."""
    values = np.zeros(len(words), dtype=np.int64)
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if name != "sex":
            values = values * 100 + column.indices.to_numpy()
    secrets = batch.column("sex").indices.to_numpy()
    found = np.empty_like(words)
    found[np.lexsort((secrets, values))] = words[np.lexsort((words, values))]
    return found


def as_they_are(outputs: np.ndarray, inputs: np.ndarray, share: float) -> np.ndarray:
    """Outputs, the first share of them not drawn but of the number of the true input."""
    published = outputs.copy()
    rows = int(share * len(outputs))
    published[:rows] = inputs[:rows] % (int(outputs.max()) + 1)
    return published


def write_csv_of_snapshot(folder: ReleaseFolder) -> None:
    """Exchange the csv for the true values of the source."""
    work = folder.root.parents[2] / ".funnel" / "people"
    found = next((work / "snapshots").rglob("snapshot.parquet"))
    columns = pq.read_schema(folder.data).names
    table = pq.read_table(found, columns=columns)
    pacsv.write_csv(pa.table({name: table[name].cast(pa.string()) for name in columns}), folder.csv)


def write_true_numbers(folder: ReleaseFolder) -> None:
    """Exchange drawn numbers for those of the source."""
    table = pq.read_table(folder.drawn)
    true = pq.read_table(folder.root.parents[2] / "people.parquet")["age"].to_pylist()
    pq.write_table(table.set_column(len(table.schema) - 1, table.schema.names[-1], pa.array(true)), folder.drawn)


def turn_rows(path: Path) -> None:
    """Exchange the rows for the same ones in another order."""
    table = pq.read_table(path)
    pq.write_table(table.take(pa.array(np.arange(len(table))[::-1])), path)


def edit(path: Path, change: Any) -> None:
    """Change a JSON file."""
    content = json.loads(path.read_text(encoding="utf-8"))
    change(content)
    path.write_text(json.dumps(content, indent=1, sort_keys=True), encoding="utf-8")


def other_questions(spec: ReleaseSpec) -> None:
    """Change the file of classes that a spec names: the first question is answered the other way round."""

    def turn(content: Any) -> None:
        first = content["questions"][0]
        first["then"], first["otherwise"] = first["otherwise"], first["then"]

    edit(spec.resolve(str(spec.groups.classes)), turn)


def copied(source: Path, target: Path) -> None:
    """Copy a file."""
    shutil.copyfile(source, target)


def twice(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The first record of every batch left out, and the last one there twice."""
    for batch in batches:
        table = pa.Table.from_batches([batch.slice(1), batch.slice(batch.num_rows - 1)])
        yield table.combine_chunks().to_batches()[0]


def words_once(stream: WordStream, count: int) -> WordArray:
    """Words that every partition gets alike."""
    if not _ONCE:
        _ONCE.append(stream.words(1 << 16))
    return _ONCE[0][:count]


_ONCE: list[WordArray] = []


def key_of(cache: Cache) -> str:
    """The key of whatever is in a cache."""
    return str(json.loads(next(cache.folder.glob("*/manifest.json")).read_bytes())["key"])


def believed(snapshot: Snapshot) -> Snapshot:
    """A snapshot as it is, whatever it was."""
    return replace(snapshot, data=FileRef.of(Path(snapshot.data.path)))


def cancelling_noise(size: int, epsilon: float, key: bytes | None) -> IntArray:
    """Noise as it should be in every second count, and the same with the other sign in those between."""
    noise = draw_noise(size, epsilon, key=key)
    noise[1::2] = -noise[: size - size % 2 : 2]
    return noise


def evenly(counts: IntArray, noise: IntArray) -> IntArray:
    """Counts with noise that keeps the parity of every one."""
    return counts + (noise // 2 * 2).reshape(counts.shape)


def bar_one(counts: IntArray, noise: IntArray) -> IntArray:
    """Counts with noise, but for the one whose noise is largest."""
    noise[np.abs(noise).argmax()] = 0
    return counts + noise.reshape(counts.shape)


def anew(counts: IntArray, noise: IntArray) -> IntArray:
    """Counts with noise of the same distribution that nothing derives again."""
    return counts + draw_noise(noise.size, 1.0).reshape(counts.shape)


def first_of_class(rows: DonorRows) -> IntArray:
    """The record of one person for all whose published record is of the class of that one."""
    of_class = rows.cells[rows.stands_for] % len(rows.step.joint.inputs)
    _, first, place = np.unique(of_class, return_index=True, return_inverse=True)
    return np.asarray(rows.records[rows.stands_for[first[place.reshape(-1)]]])
