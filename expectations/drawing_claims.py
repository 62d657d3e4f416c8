"""Drawing claims: what the drawing of the rows left, held against the channel that they were to be drawn with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from funnel.alphabet import Alphabet
from funnel.drawn import DrawnCounts
from funnel.findings.consistency import SHARES, independence
from funnel.findings.order import association
from funnel.findings.probe import expected_probe
from funnel.findings.words import check_randomness, runs_in_common, runs_of_before
from funnel.joint import IntArray, Joint
from funnel.pipeline.expectations.claims import Claim, claim, same
from funnel.protocol import Protocol
from funnel.tables import open_paged

if TYPE_CHECKING:
    from funnel.pipeline.expectations.finished_folder import FinishedFolder

_USES = {"draw": "rows were drawn with", "donors": "donors were drawn with", "order": "rows were ordered by"}
CHUNK_ROWS = 1 << 16
BLOCKS = 64
# Tables beyond this are of the commonest labels, all others being one.
_MAX_TABLE = 1 << 22
_MAX_OUTPUTS = 1 << 11
# Between the values of a row; those of one that contain it are tested for order as if they were others.
_JOINED = "\x1f"

BY_BLOCK = "block of rows"
# Rows that only lean to one end are told by few places: 60:40 among 3,000, where 64 blocks see nothing.
BY_HALF = "half of the rows"
BY_INPUT = "input at the same place of the source"
BY_SECRET = "secret at the same place of the source"
SORTED_BY_INPUT = "input at this place if the file were sorted by it"
SORTED_BY_SECRET = "secret at this place if the file were sorted by it"
BY_ROW_BEFORE = "output of the row before"
# Outputs say little of the secret: that a secret leans to one end is noted as rows are ordered.
BY_SECRET_OF_ROW = "secret of the row"
FAILURES = {
    BY_BLOCK: "the file is not the same everywhere",
    BY_HALF: "rows lean to one end of the file",
    BY_INPUT: "rows follow the order of the source",
    BY_SECRET: "rows follow the order of the secrets in the source",
    SORTED_BY_INPUT: "rows are sorted by the input",
    SORTED_BY_SECRET: "rows are sorted by the secret",
    BY_ROW_BEFORE: "rows depend on the row before them",
    BY_SECRET_OF_ROW: "records of a secret lean to one end of the file",
}
"""Every kind of label of a place, with what it means that outputs have to do with it."""


@dataclass(frozen=True, eq=False)
class Channel:
    """What records were drawn with, and how.

    Attributes
    ----------
    protocol : Protocol
        Of a inputs and b outputs.
    joint : Joint
        Counts of (secret, what the protocol reads), shape (c, a).
    drawn : DrawnCounts, shape (1, a + 1, b)
        Records by input and output; the last row is for inputs outside the alphabet.
    """

    protocol: Protocol
    joint: Joint
    drawn: DrawnCounts

    @property
    def records(self) -> IntArray:
        """Records by (secret, input of the protocol), the last column for those outside it; shape (c, a + 1)."""
        joint, inputs = self.joint.read_by(self.protocol.inputs.columns), self.protocol.inputs
        found = np.zeros((len(joint.secret), len(inputs) + 1), dtype=np.int64)
        for x, symbol in enumerate(joint.inputs.symbols):
            found[:, inputs.get(symbol)] += joint.counts[:, x]
        return found


def drawn_by_input(finished: FinishedFolder) -> list[Claim]:
    """Every record was drawn once; among records of one true value, published values do not depend on the secret.

    That is Y ⫫ S given X. Inputs and outputs alone would fit a protocol although records of one secret draw
    differently, if others make up for it. What was drawn is by the records that there are, of every (secret, input).
    """
    counts, secret, protocol = finished.draws.counts, finished.draws.secret.alphabet(), finished.drawn_with
    known = finished.channel.records
    # Values that the spec lists come in its order, and are counted again in another.
    joint = finished.channel.joint
    places = [secret.get(symbol) for symbol in joint.secret.symbols]
    alike = secret.columns == joint.secret.columns and sorted(places) == list(range(len(secret)))
    if not alike or counts.shape != (len(places) + 1, known.shape[1], len(protocol.outputs)):
        return [Claim("draws", "were counted by other secrets, inputs or outputs than those of the snapshot")]
    expected = np.zeros((len(places) + 1, known.shape[1]), dtype=np.int64)
    expected[places] = known
    wrong = int(np.count_nonzero(counts.inputs != expected))
    found = independence(counts, protocol)
    labels = [*protocol.inputs.labels, "outside the alphabet"]
    worst = f"secret {secret.labels[found.worst_secret]!r} and input {labels[found.worst_input]!r}"
    return [
        claim("draws", not wrong, f"are not one a record for {wrong:,} combinations of secret and input"),
        claim(
            "outputs",
            not found.impossible,
            f"of {found.impossible:,} records are never given for their input, most of them with {worst}",
        ),
        _likely(
            "outputs",
            found.p_value,
            SHARES["independence"],
            f"depend on the secret beyond the input, over {found.groups:,} combinations, most with {worst}",
        ),
    ]


def random_order(finished: FinishedFolder) -> list[Claim]:
    """The rows are in random order: tests find no trace of the order of the source, of true values or of secrets."""
    channel, joint, snapshot = in_snapshot(finished), finished.joint, Path(finished.drawn_snapshot.data.path)
    secret = Placed(snapshot, joint.secret, np.append(joint.counts.sum(axis=1), 0))
    inputs = Placed(snapshot, channel.protocol.inputs, channel.records.sum(axis=0))
    released = Placed(finished.folder.data, finished.document.protocol.outputs, np.append(channel.drawn.by_output, 0))
    tables = order_tables(released, inputs, secret)
    noted = finished.words.get("order")
    by_secret = np.array(() if noted is None else noted.halves, dtype=np.int64).reshape(-1, 2)
    told_apart = len(finished.draws.counts.inputs) > 1
    records = finished.draws.counts.inputs.sum(axis=1) if told_apart else np.zeros(0, dtype=np.int64)
    tables[BY_SECRET_OF_ROW] = by_secret
    p_values = {labels: association(table).p_value for labels, table in tables.items()}
    worst = min(p_values, key=lambda labels: p_values[labels])
    p_value = min(1.0, len(p_values) * p_values[worst])
    return [
        _likely("order", p_value, SHARES["order"], f"tells something: {FAILURES[worst]}"),
        claim("order", np.array_equal(by_secret.sum(axis=1), records), "was not noted for every record by its secret"),
    ]


def in_source_order(finished: FinishedFolder) -> list[Claim]:
    """Rows are not shuffled, as the spec asks: they stand in the order of the source."""
    channel, outputs = in_snapshot(finished), finished.document.protocol.outputs
    snapshot = Path(finished.drawn_snapshot.data.path)
    stands = source_order(finished.folder.data, outputs, snapshot, channel.protocol.inputs)
    b = channel.drawn.shape[2]
    # What stands there has one more column, of rows that hold no output.
    cells = channel.drawn.cells // b * (b + 1) + channel.drawn.cells % b
    expected = dict(zip(cells.tolist(), channel.drawn.records.tolist(), strict=True))
    found = dict(zip(stands.cells.tolist(), stands.records.tolist(), strict=True))
    wrong = sum(found.get(cell, 0) != expected.get(cell, 0) for cell in {*found, *expected})
    return [claim("order", not wrong, f"is not that of the source: inputs and outputs differ in {wrong:,} counts")]


def random_words(finished: FinishedFolder) -> list[Claim]:
    """The random bits that records were drawn and ordered by pass tests of uniformity, and none was used twice."""
    found = {purpose: check_randomness(stream) for purpose, stream in finished.words.items()}
    worst = min(found, key=lambda one: found[one].p_value)
    what = f"{found[worst].repeated_words:,} of those compared had been there before"
    if found[worst].bit is not None:
        what = f"bit {found[worst].bit} of them is one in {100 * found[worst].ones:.3g} % of cases"
    p_value = min(1.0, len(found) * found[worst].p_value)
    again = {
        "are there twice in this release": {purpose: one.repeated_runs for purpose, one in found.items()},
        "were used in an earlier version": {
            purpose: runs_of_before(stream, finished.earlier_words) for purpose, stream in finished.words.items()
        },
    }
    used = {"draw": True, "donors": finished.classes is not None, "order": finished.spec_text.shuffled}
    number = {
        one: finished.words[one].words if one in finished.words else 0 for one, is_used in used.items() if is_used
    }
    return [
        *(same(f"words that {_USES[one]}", words, int(finished.joint.n)) for one, words in number.items()),
        _likely("words", p_value, SHARES["words"], f"that {_USES[worst]} are not random: {what}"),
        *(
            claim("words", not runs, f"that {_USES[purpose]} {when}: {runs:,} runs of them")
            for when, by_purpose in again.items()
            for purpose, runs in by_purpose.items()
        ),
        claim("words", not runs_in_common(finished.words), "are used for two purposes"),
    ]


def sampler(finished: FinishedFolder) -> list[Claim]:
    """The sampler draws every published value with exactly the probability that its weight states.

    It has to on both sides of every threshold: draws show none that is off by 2^-63.
    """
    right = finished.draws.probe == expected_probe(finished.drawn_with)
    return [claim("sampler", right, "does not give way from one output to the next where the weights say")]


def in_snapshot(finished: FinishedFolder) -> Channel:
    """The channel by what the snapshot at hand has of every record.

    Which history the records of rows that are taken over had is no longer there: it is added up.
    """
    of_histories, inputs = finished.drawn_with.inputs, finished.document.protocol.inputs
    if not finished.taken_over or of_histories.columns == inputs.columns:
        return finished.channel
    kept = [of_histories.columns.index(name) for name in inputs.columns]
    table = finished.channel.drawn.pairs
    drawn = np.zeros((len(inputs) + 1, table.shape[1]), dtype=np.int64)
    for symbol, counts in zip(of_histories.symbols, table, strict=False):
        drawn[inputs.get(tuple(symbol[j] for j in kept))] += counts
    drawn[-1] += table[-1]
    return Channel(finished.document.protocol, finished.joint, DrawnCounts.of_pairs(drawn))


def _likely(name: str, p_value: float, significance: float, failure: str) -> Claim:
    """That a p-value, corrected for the number of tests, is not below the significance; one that is no number is."""
    return claim(name, p_value >= significance, f"{failure}: p-value {p_value:.3g} is below {significance:.3g}")


@dataclass(frozen=True, eq=False)
class Placed:
    """The rows of a file by one of their alphabets.

    Parameters
    ----------
    path : Path
    alphabet : Alphabet
    counts : ndarray of int64, shape (a + 1,)
        Records by symbol, the last ones outside the alphabet.
    """

    path: Path
    alphabet: Alphabet
    counts: IntArray

    def codes(self) -> Iterator[IntArray]:
        """Positions of the rows in the alphabet, some at a time."""
        return coded(self.path, self.alphabet)


def coded(path: Path, alphabet: Alphabet) -> Iterator[IntArray]:
    """Positions of the rows of a parquet file in an alphabet, in arrays of `CHUNK_ROWS` rows, the last one shorter.

    One beyond the last for rows that hold none of its symbols.
    """
    symbols, held, count = pa.array(_JOINED.join(symbol) for symbol in alphabet.symbols), list[IntArray](), 0
    with open_paged(path) as file:
        for batch in file.iter_batches(batch_size=CHUNK_ROWS, columns=list(alphabet.columns)):
            texts = [batch.column(name).cast(pa.string()) for name in alphabet.columns]
            joined = pc.binary_join_element_wise(*texts, _JOINED)
            held.append(pc.index_in(joined, symbols).cast(pa.int64()).fill_null(len(alphabet)).to_numpy())
            count += batch.num_rows
            while count >= CHUNK_ROWS:
                rows = np.concatenate(held)
                yield rows[:CHUNK_ROWS]
                held, count = [rows[CHUNK_ROWS:]], count - CHUNK_ROWS
    if count:
        yield np.concatenate(held)


class _Table:
    """Counts of (label, output), of the commonest labels and outputs only, where there are too many."""

    def __init__(self, labels: IntArray, outputs: IntArray) -> None:
        self._outputs, width = _folded(outputs, _MAX_OUTPUTS)
        self._labels, height = _folded(labels, max(2, _MAX_TABLE // width))
        self.counts = np.zeros((height, width), dtype=np.int64)

    def add(self, labels: IntArray, outputs: IntArray) -> None:
        cells = self._labels[labels] * self.counts.shape[1] + self._outputs[outputs]
        self.counts += np.bincount(cells, minlength=self.counts.size).reshape(self.counts.shape)


def _folded(totals: IntArray, most: int) -> tuple[IntArray, int]:
    """Which row of a table each label has, and how many rows it has; by how often labels occur, and by nothing else."""
    if len(totals) <= most:
        return np.arange(len(totals)), len(totals)
    places = np.full(len(totals), most - 1, dtype=np.int64)
    places[np.argsort(totals, kind="stable")[::-1][: most - 1]] = np.arange(most - 1)
    return places, most


def order_tables(released: Placed, inputs: Placed, secret: Placed) -> dict[str, IntArray]:
    """Records by label of their place and output, for every kind of label that could tell something of the source.

    Parameters
    ----------
    released : Placed
        The file, by output.
    inputs, secret : Placed
        The records in the order of the source, by each of these.

    Notes
    -----
    Both files are read once, side by side; memory for a chunk of rows and the tables.
    """
    rows = int(released.counts.sum())
    blocks, halves = (np.diff(np.arange(parts + 1) * rows // parts) for parts in (BLOCKS, 2))
    tables = {
        BY_BLOCK: _Table(blocks, released.counts),
        BY_HALF: _Table(halves, released.counts),
        BY_INPUT: _Table(inputs.counts, released.counts),
        BY_SECRET: _Table(secret.counts, released.counts),
        SORTED_BY_INPUT: _Table(inputs.counts, released.counts),
        SORTED_BY_SECRET: _Table(secret.counts, released.counts),
        BY_ROW_BEFORE: _Table(released.counts, released.counts),
    }
    ends = {SORTED_BY_INPUT: inputs.counts.cumsum(), SORTED_BY_SECRET: secret.counts.cumsum()}
    ends |= {BY_BLOCK: blocks.cumsum(), BY_HALF: halves.cumsum()}
    at = 0
    streams = (released.codes(), inputs.codes(), secret.codes())
    for y, x, s in zip(*streams, strict=False):
        # Where the numbers of rows differ, which others judge, the last ones have no counterpart.
        size = min(len(y), len(x))
        places = np.arange(at, at + size)
        labels = {BY_INPUT: x[:size], BY_SECRET: s[:size]}
        for name, end in ends.items():
            labels[name] = np.minimum(np.searchsorted(end, places, side="right"), len(end) - 1)
        for name, some in labels.items():
            tables[name].add(some, y[:size])
        # A chunk begins at an even place, so no pair is cut.
        pairs = size // 2 * 2
        tables[BY_ROW_BEFORE].add(y[0:pairs:2], y[1:pairs:2])
        at += size
    return {name: table.counts for name, table in tables.items()}


def source_order(released: Path, outputs: Alphabet, snapshot: Path, inputs: Alphabet) -> DrawnCounts:
    """Records by the input at their place of the source and by their output, shape (1, a + 1, b + 1)."""
    a, b = len(inputs), len(outputs)

    def parts() -> Iterator[tuple[IntArray, IntArray]]:
        for y, x in zip(coded(released, outputs), coded(snapshot, inputs), strict=False):
            size = min(len(y), len(x))
            cells, records = np.unique(x[:size] * (b + 1) + y[:size], return_counts=True)
            yield cells, records.astype(np.int64)

    return DrawnCounts.total((1, a + 1, b + 1), parts())
