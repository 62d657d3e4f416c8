"""Drawing claims: what the drawing of the rows left, held against the channel that they were to be drawn with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from funnel.drawn import DrawnCounts
from funnel.findings.false_alarms import SHARES
from funnel.findings.independence import independence
from funnel.findings.order import association
from funnel.findings.probe import expected_probe
from funnel.findings.words import check_randomness, runs_in_common, runs_of_before
from funnel.joint import IntArray, Joint
from funnel.pipeline.expectations.claims import Claim, claim, same
from funnel.pipeline.expectations.ordering import FAILURES, Placed, order_tables, source_order
from funnel.protocol import Protocol
from funnel.release.documents import DrawsDocument
from funnel.word_statistics import WordStatistics

Words = Mapping[str, WordStatistics]
_USES = {"draw": "rows were drawn with", "donors": "donors were drawn with", "order": "rows were ordered by"}


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


@dataclass(frozen=True, eq=False)
class Drawing:
    """What the drawing of the rows of a version left.

    Parameters
    ----------
    released : Path
        The parquet file about to be published.
    published : Protocol
    joint : Joint
        Counts of (secret, input), counted again.
    drawn_with : Channel
        Of the published protocol, or of one that reads histories too, where that is what rows were drawn with.
    draws : DrawsDocument
    words : mapping of str to WordStatistics
        By purpose: ``draw``, ``donors`` of whole records, ``order``.
    snapshot : Path
        Parquet of the records in the order of the source.
    shuffled, taken_over, by_class : bool
        Whether the spec asks for random order; whether rows were drawn for an earlier version; whether whole records
        are published, with donors of their classes.
    earlier : tuple of mappings
        The words of earlier versions of the series, for rows that were drawn for this one.
    """

    released: Path
    published: Protocol
    joint: Joint
    drawn_with: Channel
    draws: DrawsDocument
    words: Words
    snapshot: Path
    shuffled: bool
    taken_over: bool = False
    earlier: tuple[Words, ...] = ()
    by_class: bool = False

    def independence(self) -> list[Claim]:
        """That outputs are draws from the law of their input for every value of the secret: Y ⫫ S given X.

        Inputs and outputs alone would fit a protocol although records of one secret draw differently, if others make
        up for it. What was drawn is by the records that there are, of every (secret, input).
        """
        counts, secret, protocol = self.draws.counts, self.draws.secret.alphabet(), self.drawn_with.protocol
        known = self.drawn_with.records
        # Values that the spec lists come in its order, and are counted again in another.
        joint = self.drawn_with.joint
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

    def random_order(self) -> list[Claim]:
        """That the order of the rows looks like one that was drawn at random, whatever the source."""
        channel = self._in_snapshot
        secret = Placed(self.snapshot, self.joint.secret, np.append(self.joint.counts.sum(axis=1), 0))
        inputs = Placed(self.snapshot, channel.protocol.inputs, channel.records.sum(axis=0))
        released = Placed(self.released, self.published.outputs, np.append(channel.drawn.by_output, 0))
        tables = order_tables(released, inputs, secret)
        p_values = {labels: association(table).p_value for labels, table in tables.items()}
        worst = min(p_values, key=lambda labels: p_values[labels])
        p_value = min(1.0, len(p_values) * p_values[worst])
        return [_likely("order", p_value, SHARES["order"], f"tells something: {FAILURES[worst]}")]

    def source_order(self) -> list[Claim]:
        """That every row is at the place of its record in the source, by the inputs and outputs at the same place."""
        channel = self._in_snapshot
        stands = source_order(self.released, self.published.outputs, self.snapshot, channel.protocol.inputs)
        b = channel.drawn.shape[2]
        # What stands there has one more column, of rows that hold no output.
        cells = channel.drawn.cells // b * (b + 1) + channel.drawn.cells % b
        expected = dict(zip(cells.tolist(), channel.drawn.records.tolist(), strict=True))
        found = dict(zip(stands.cells.tolist(), stands.records.tolist(), strict=True))
        wrong = sum(found.get(cell, 0) != expected.get(cell, 0) for cell in {*found, *expected})
        return [claim("order", not wrong, f"is not that of the source: inputs and outputs differ in {wrong:,} counts")]

    def random_words(self) -> list[Claim]:
        """That there is a word for every record and purpose, that words look uniform, and that none was used before."""
        found = {purpose: check_randomness(stream) for purpose, stream in self.words.items()}
        worst = min(found, key=lambda one: found[one].p_value)
        what = f"{found[worst].repeated_words:,} of those compared had been there before"
        if found[worst].bit is not None:
            what = f"bit {found[worst].bit} of them is one in {100 * found[worst].ones:.3g} % of cases"
        p_value = min(1.0, len(found) * found[worst].p_value)
        again = {
            "are there twice in this release": {purpose: one.repeated_runs for purpose, one in found.items()},
            "were used in an earlier version": {
                purpose: runs_of_before(stream, self.earlier) for purpose, stream in self.words.items()
            },
        }
        purposes = ["draw", *(["donors"] if self.by_class else []), *(["order"] if self.shuffled else [])]
        return [
            *(same(f"words that {_USES[one]}", self._words_of(one), int(self.joint.n)) for one in purposes),
            _likely("words", p_value, SHARES["words"], f"that {_USES[worst]} are not random: {what}"),
            *(
                claim("words", not runs, f"that {_USES[purpose]} {when}: {runs:,} runs of them")
                for when, by_purpose in again.items()
                for purpose, runs in by_purpose.items()
            ),
            claim("words", not runs_in_common(self.words), "are used for two purposes"),
        ]

    def sampler(self) -> list[Claim]:
        """That it gives the right output on both sides of every threshold; draws show none that is off by 2^-63."""
        right = self.draws.probe == expected_probe(self.drawn_with.protocol)
        return [claim("sampler", right, "does not give way from one output to the next where the weights say")]

    def _words_of(self, purpose: str) -> int:
        return self.words[purpose].words if purpose in self.words else 0

    @cached_property
    def _in_snapshot(self) -> Channel:
        """The channel by what the snapshot at hand has of every record.

        Which history the records of rows that are taken over had is no longer there: it is added up.
        """
        of_histories, inputs = self.drawn_with.protocol.inputs, self.published.inputs
        if not self.taken_over or of_histories.columns == inputs.columns:
            return self.drawn_with
        kept = [of_histories.columns.index(name) for name in inputs.columns]
        table = self.drawn_with.drawn.pairs
        drawn = np.zeros((len(inputs) + 1, table.shape[1]), dtype=np.int64)
        for symbol, counts in zip(of_histories.symbols, table, strict=False):
            drawn[inputs.get(tuple(symbol[j] for j in kept))] += counts
        drawn[-1] += table[-1]
        return Channel(self.published, self.joint, DrawnCounts.of_pairs(drawn))


def _likely(name: str, p_value: float, significance: float, failure: str) -> Claim:
    """That a p-value, corrected for the number of tests, is not below the significance; one that is no number is."""
    return claim(name, p_value >= significance, f"{failure}: p-value {p_value:.3g} is below {significance:.3g}")
