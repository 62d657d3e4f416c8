"""Finished: the folder of a coming version with its spec, which is all that a release is judged by."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from funnel.alphabet import Alphabet
from funnel.audit.drawn_numbers import behind_texts
from funnel.bounds import Bounds
from funnel.errors import DataError
from funnel.joint import Joint
from funnel.pipeline.expectations import claims, public_files
from funnel.pipeline.expectations.claims import Claim, all_of, claim, same
from funnel.pipeline.expectations.disclosure_claims import disclosure_claims
from funnel.pipeline.expectations.drawing import Drawing
from funnel.pipeline.expectations.evidence import Evidence
from funnel.pipeline.expectations.frequency_claims import CLAIMS as FREQUENCY_CLAIMS
from funnel.pipeline.expectations.frequency_claims import Before, frequency_claims
from funnel.pipeline.expectations.history_claims import CLAIMS as HISTORY_CLAIMS
from funnel.pipeline.expectations.history_claims import HistoryEvidence, Prepared
from funnel.pipeline.expectations.keyed_answers import CLAIMS as KEY_CLAIMS
from funnel.pipeline.expectations.keyed_answers import digests_claim, keyed_claims
from funnel.pipeline.expectations.laws import Laws
from funnel.pipeline.expectations.number_claims import number_claims
from funnel.pipeline.expectations.package_claims import package_claims
from funnel.pipeline.expectations.protocol_claims import protocol_claims
from funnel.pipeline.expectations.report_claims import report_claims
from funnel.pipeline.expectations.said import Said
from funnel.pipeline.expectations.weighted_claims import class_weights
from funnel.protocol import Protocol
from funnel.recount import (
    PlainInformation,
    PlainLevel,
    Recount,
    ReleasedProtocol,
    first_csv_difference,
    recount,
    recount_published,
)
from funnel.recount.bins import counted_numbers, declared_cuts, is_found
from funnel.recount.drawn_numbers import ToldNumbers, declared_numbers
from funnel.recount.estimator import estimator_complaints
from funnel.recount.first_rows import FirstRows, first_row_counts
from funnel.recount.frequencies import PublicFrequencies
from funnel.recount.handouts import handouts_again
from funnel.recount.variance import plain_intervals, plain_numbers
from funnel.release.documents import DrawsDocument, JointDocument, ProtocolDocument, drawn_pairs
from funnel.release.drawing_document import DrawingDocument
from funnel.release.findings import FindingsDocument, FoundHistoryPart
from funnel.release.layout import ReleaseFolder
from funnel.release.snapshot import Snapshot
from funnel.release.words import WordsDocument
from funnel.sampling import RecordKey
from funnel.sampling.keyed import DERIVATION
from funnel.spec import ReleaseSpec

if TYPE_CHECKING:
    from funnel.pipeline.expectations.custom.base import ReleaseExpectation

CSV_CLAIMS = ("rows",)
READER_CLAIMS = ("records",)
SOURCE_CLAIMS = (
    "digest",
    "records",
    "records left out",
    "secret",
    "published",
    "bound",
    "csv",
    "order of rows",
    "record key",
    "bins",
)
RECOUNT_CLAIMS = ("secret", "inputs", "counts", "draws")
LEVEL_CLAIMS = ("bound", "findings")
# Of levels that are found twice by searches: that of rldp is known to about this.
_LEVEL = 1e-7
# Where a release is made, levels over all tables that noise leaves possible are bounded from above, block by block.
_ABOVE = 0.01


@dataclass(frozen=True, eq=False)
class Finished:
    """A finished folder, the spec, and what the run says it made the release from.

    Parameters
    ----------
    spec : ReleaseSpec
        Its text is what is judged by; the rest of it only says where the source is and how to recode it.
    folder : ReleaseFolder
        With all public files, and the internal evidence of the counts and of the drawing.
    version : str
        That is about to be published.
    snapshot : Snapshot
        What it says of itself is judged, and its records are in the order of the source.
    taken_over : bool
        Whether the rows were drawn for an earlier version.
    earlier : tuple of ReleaseFolder
        Earlier versions, whose random words must not come again.
    key : RecordKey, optional
        With the release secret, where the spec has a record key.
    before : tuple of ReleaseFolder
        All earlier versions that are there, also where rows are taken over: what their frequencies have told.
    previous : str, optional
        The newest version that readers find.
    prepared : Prepared, optional
        The entry that the version is to have in the register of its people.
    followed : Snapshot, optional
        What rows of people with histories were drawn from: the same records, with the channel of each history. None
        where rows are taken over: then it is no longer there.
    derivation : int
        How its answers were derived; those of rows that are taken over may be of an earlier funnel.
    """

    spec: ReleaseSpec
    folder: ReleaseFolder
    version: str
    snapshot: Snapshot
    taken_over: bool = False
    earlier: tuple[ReleaseFolder, ...] = ()
    key: RecordKey | None = None
    followed: Snapshot | None = None
    derivation: int = DERIVATION
    prepared: Prepared | None = None
    before: tuple[ReleaseFolder, ...] = ()
    previous: str | None = None

    @cached_property
    def said(self) -> Said:
        """What the text of the spec says."""
        return Said.of(self.spec.text)

    @cached_property
    def frequencies(self) -> PublicFrequencies | None:
        """The public counts, where noise protects the exact ones."""
        if not self.said.has_noise:
            return None
        if not self.folder.frequencies.is_file():
            raise DataError("frequencies.json, from which all else is to follow, is missing")
        return PublicFrequencies.parse(self.folder.frequencies.read_bytes())

    @cached_property
    def recount(self) -> Recount:
        """Counts of (secret, input), from the source itself; over all public values where these are public."""
        public = self.frequencies
        if public is None:
            return recount(self.settled)
        return recount(self.settled, public.labels).over(public.secret, public.inputs)

    @cached_property
    def settled(self) -> ReleaseSpec:
        """The spec with the recoding that the snapshot says: whether that is what it may be is judged."""
        return self.snapshot.read_codings().settled(self.spec)

    @cached_property
    def public(self) -> Recount:
        """The counts that everything public follows from."""
        return self.recount if self.frequencies is None else self.frequencies.as_recount(self.recount.sha256)

    @cached_property
    def document(self) -> ProtocolDocument:
        """What ``protocol.json`` holds."""
        return ProtocolDocument.read(self.folder.protocol)

    @cached_property
    def protocol(self) -> Mapping[str, Any]:
        """The same as plain values."""
        return self.document.content()

    @cached_property
    def laws(self) -> Laws:
        """The law of secret, input and output that is public: under the recounted records where these are."""
        return Laws(self.public, ReleasedProtocol.parse(self.folder.protocol.read_bytes()), self._numbers)

    @property
    def _numbers(self) -> Mapping[tuple[str, ...], Fraction | None] | None:
        """The number of every published input, where the text of the spec asks for the variance explained."""
        if self.said.settings.get("utility", "information") != "variance":
            return None
        (column,) = self.said.publish
        inputs = self.public.inputs
        found = plain_numbers(self.settled, column, [symbol[0] for symbol in inputs])
        return dict(zip(inputs, found, strict=True))

    @cached_property
    def level(self) -> PlainLevel:
        """The level for the bound in the text of the spec, in plain fractions; over all that noise leaves possible."""
        box = None if self.frequencies is None else self.frequencies.possible
        return self.laws.released.level(self.said.promise, self.public, box)

    @cached_property
    def counted_level(self) -> PlainLevel:
        """The same for whoever knows the exact counts."""
        if self.frequencies is None:
            return self.level
        stored = JointDocument.read(self.folder.joint).joint
        return self.laws.released.level(
            self.said.promise, self.recount.over(stored.secret.symbols, stored.inputs.symbols)
        )

    @cached_property
    def drawing_document(self) -> DrawingDocument | None:
        """What the rows were drawn with, where that is not the published protocol."""
        return DrawingDocument.read(self.folder.drawing) if self.folder.drawing.exists() else None

    @property
    def drawn_snapshot(self) -> Snapshot:
        """The records in the order of the source, with what they drew by where that is known still."""
        return self.followed or self.snapshot

    @property
    def drawn_with(self) -> Protocol:
        """What the rows were drawn with."""
        found = self.drawing_document
        return self.document.protocol if found is None else found.protocol

    @cached_property
    def history(self) -> FoundHistoryPart | None:
        """What the findings say of all versions together."""
        return FindingsDocument.read(self.folder.findings).history

    @property
    def versions(self) -> int | None:
        """Published about the same people, this one included."""
        return None if self.history is None else self.history.versions

    @property
    def _effective(self) -> dict[tuple[str, ...], list[Fraction]] | None:
        """Shares of outputs for every input, over all histories; None where nobody has one."""
        found = self.drawing_document
        if found is None:
            return None
        if self.frequencies is not None:
            return self._effective_of_expected()
        drawn = ReleasedProtocol.parse(self.folder.drawing.read_bytes())
        columns = dict(zip(drawn.inputs, zip(*drawn.weights, strict=True), strict=True))
        forgotten = {symbol for _, symbol in self._forgotten}
        sums: dict[tuple[str, ...], list[int]] = {}
        records: Counter[tuple[str, ...]] = Counter()
        for symbol, counts in zip(found.drawn_by.symbols, zip(*found.counts, strict=True), strict=True):
            count, x = sum(counts), symbol[1:]
            records[x] += count
            # Those who are forgotten draw from the law of the output, whatever they are.
            column = drawn.marginal if symbol in forgotten else columns[symbol]
            told = sums.setdefault(x, [0] * len(column))
            sums[x] = [one + count * weight for one, weight in zip(told, column, strict=True)]
        return {x: [Fraction(one, records[x] * drawn.denominator) for one in told] for x, told in sums.items()}

    def _effective_of_expected(self) -> dict[tuple[str, ...], list[Fraction]] | None:
        """The same with noise: what the register says, which `HistoryEvidence` holds to the people who are expected.

        Where rows are taken over it is what a version before was published with.
        """
        if self._history_evidence is not None:
            entry = self._history_evidence.entry
            columns = zip(entry.chapter.inputs, zip(*entry.effective, strict=True), strict=True)
            of_output = {x: dict(zip(entry.chapter.outputs, column, strict=True)) for x, column in columns}
            return {x: [Fraction(told.get(y, 0), 2**63) for y in self.laws.outputs] for x, told in of_output.items()}
        told = None
        for one in self.before:
            if one.protocol.is_file():
                laws = Laws(self.public, ReleasedProtocol.parse(one.protocol.read_bytes()))
                if laws.outputs == self.laws.outputs and (told is None or laws.weights == self.laws.weights):
                    told = laws
        if told is None:
            raise DataError("rows are taken over, and no version is there that they were drawn for")
        return {x: [Fraction(weight, told.denominator) for weight in column] for x, column in told.weights.items()}

    @cached_property
    def _forgotten(self) -> dict[tuple[tuple[str, ...], tuple[str, ...]], int]:
        """Records of people who are forgotten, by secret and by what the drawing says that they were drawn by.

        `HistoryEvidence` counts them again.
        """
        found = self.drawing_document
        if found is None:
            return {}
        known = set(found.inputs.symbols)
        return {
            (s, symbol): count
            for s, counts in zip(found.secret.symbols, found.counts, strict=True)
            for symbol, count in zip(found.drawn_by.symbols, counts, strict=True)
            if count and symbol not in known
        }

    @property
    def _alone(self) -> PlainInformation | None:
        """What the protocol of the version alone would have told, where people have histories."""
        found = self.drawing_document
        if found is None:
            return None
        weights = tuple(tuple(map(int, row)) for row in found.target)
        return dataclasses.replace(self.laws.released, weights=weights).information(self.public)

    @cached_property
    def evidence(self) -> Evidence:
        """What the released table is judged by: the recounted law, the declared bound, the stored draws."""
        found = self.recount
        joint = Joint.from_counts(
            found.table(found.secret, found.inputs),
            Alphabet(self.said.secret, found.secret),
            Alphabet(self.said.publish, found.inputs),
        )
        protocol = self.document.protocol
        return Evidence(
            released=self.folder.data,
            protocol=protocol,
            joint=joint,
            guarantee=self.said.guarantee,
            snapshot_rows=found.rows,
            secret=self.said.secret,
            published=self.said.publish,
            pair_counts=drawn_pairs(self.draws, self.drawn_with),
            drawing=self._drawing(),
            drawn_with=None if self.drawing_document is None else self.drawing_document.protocol,
            drawn_from=None if self.drawing_document is None else self.drawing_document.joint,
            public=self._public_joint(),
        )

    def _public_joint(self) -> Joint | None:
        public = self.frequencies
        if public is None:
            return None
        box = public.possible
        bounds = Bounds(np.array(box.lower), np.array(box.upper), np.array(box.totals), public.beta)
        secret, inputs = (
            Alphabet(public.secret_columns, public.secret),
            Alphabet(public.published_columns, public.inputs),
        )
        return Joint(np.array(public.counts), secret, inputs, bounds)

    @cached_property
    def draws(self) -> DrawsDocument:
        """The stored draws."""
        return DrawsDocument.read(self.folder.draws)

    def _drawing(self) -> Drawing:
        draws, words = self.draws, self.folder.words
        return Drawing(
            counts=draws.counts,
            secret=None if draws.secret is None else draws.secret.alphabet(),
            probe=draws.probe,
            words=WordsDocument.read(words).statistics if words.exists() else None,
            snapshot=Path(self.drawn_snapshot.data.path),
            shuffled=self.said.shuffled,
            taken_over=self.taken_over,
            # Versions of a funnel that kept no words have nothing to compare with.
            earlier=tuple(WordsDocument.read(one.words).statistics for one in self.earlier if one.words.exists()),
        )

    def declared(self) -> list[ReleaseExpectation]:
        """What is expected of it."""
        from funnel.pipeline.expectations.finished_suite import declare_finished

        said = self.said
        finished = declare_finished(
            said.csv, said.keyed, said.guarantee, self.is_followed, said.has_noise, bool(said.drawn)
        )
        return [*self.evidence.declared(), *finished]

    def table(self, name: str) -> pd.DataFrame:
        """One of the tables to judge."""
        makers = {
            "public_files": self._files,
            "csv": self._csv,
            "second_reader": self._second_reader,
            "drawn_numbers": self._drawn_numbers,
            "source": self._source,
            "keys": self._keys,
            "histories": self._histories,
            "frequencies": self._frequencies,
            "recount": self._recount,
            "disclosure": self._disclosure,
            "plain_level": self._level,
            "protocol_figures": self._protocol,
            "package": self._package,
            "handouts": self._handouts,
            "report": self._report,
        }
        if name not in makers:
            return self.evidence.table(name)
        return self.evidence.counted(claims.table(makers[name]()))

    def _files(self) -> list[Claim]:
        declared = public_files.declared_files(self.said.csv, self.said.has_noise, bool(self.said.drawn))
        return public_files.files_claims(self.folder.root, declared)

    def _csv(self) -> list[Claim]:
        row = first_csv_difference(self.folder.csv, self.folder.data, self.said.publish)
        return [claim("rows", row is None, f"differ from those of the parquet file, first in row {row}")]

    @cached_property
    def _told_numbers(self) -> list[ToldNumbers]:
        """The columns of numbers that the text of the spec asks for."""
        return declared_numbers(self.settled, self.laws.released, self.said.drawn)

    def _drawn_numbers(self) -> list[Claim]:
        package = _json(self.folder.package.read_bytes(), self.folder.package)
        behind = behind_texts(self.document)
        return number_claims(self.folder, self.said.csv, self._told_numbers, behind, package)

    def _second_reader(self) -> list[Claim]:
        counts = recount_published(self.folder.data, self.said.publish)
        outputs = self.document.protocol.outputs.symbols
        drawn = self.evidence.pair_counts.by_output.tolist()
        other = {y: count for y, count in zip(outputs, drawn, strict=True) if count} != counts
        return [claim("records", not other, "of an output are not as many as were drawn")]

    @property
    def _intervals(self) -> dict[str, dict[str, tuple[Fraction, Fraction]]]:
        """The intervals that categories of numbers stand for."""
        return {column: plain_intervals(self.settled, column) for column in self.said.section("numbers")}

    def _bins(self) -> Claim:
        """That bins which the text leaves to be found are those of its range, or of the numbers counted again."""
        asked = {column: one for column, one in self.said.section("recode").items() if one.get("bins") == "auto"}
        wrong = []
        for column in asked:
            made = self.settled.recode[column].edges
            if self.said.has_noise:
                numbers = self.said.section("numbers")[column]
                low, high = numbers["range"]
                right = list(map(Fraction, made)) == declared_cuts(low, high, numbers.get("whole", False))
                wrong += [] if right else [f"of {column!r} has edges that do not follow from its range"]
            else:
                counted = counted_numbers(self.spec, column)
                by_variance = self.said.settings.get("utility") == "variance"
                why = is_found(counted, made, by_variance, merged=self.said.threshold is not None)
                wrong += [] if why is None else [f"of {column!r} {why}"]
        return claim("bins", not wrong, "; ".join(wrong))

    def _source(self) -> list[Claim]:
        said, spec, found = self.said, self.spec, self.recount
        bound = said.guarantee == _handed_on(spec)
        return [
            claim(
                "digest",
                self.snapshot.source_sha256 == found.sha256,
                "of the snapshot is not that of the source",
            ),
            same("records", self.snapshot.rows, found.rows),
            same("records left out", self.snapshot.dropped, found.dropped),
            same("secret", spec.secret, said.secret),
            same("published", spec.publish, said.publish),
            claim("bound", bound, "that the run was for is not the one in the text of the spec"),
            same("csv", spec.output.csv, said.csv),
            same("order of rows", spec.output.shuffle, said.shuffled),
            same("record key", spec.record_key is not None, said.keyed),
            self._bins(),
        ]

    def _keys(self) -> list[Claim]:
        if self.key is None:
            return [Claim(name, "cannot be derived: the run hands on no release secret") for name in KEY_CLAIMS]
        given = self.drawing_document is not None
        if self.derivation == DERIVATION and (self.followed is not None or not given):
            protocol = ReleasedProtocol.parse(self.folder.drawing.read_bytes()) if given else self.laws.released
            return keyed_claims(self.spec, self.snapshot, self.key, protocol, self.evidence.pair_counts, self.followed)
        # How a funnel before this one derived answers is not derived again, nor what was decided about everybody when
        # rows that are taken over were drawn: they were judged then.
        return [digests_claim(self.spec, self.snapshot, self.key), Claim("answers")]

    @property
    def is_followed(self) -> bool:
        """Whether rows are drawn given everything published about the same people before; not if they are taken over.

        Rows that are taken over were judged when they were drawn, and are in the register.
        """
        return self.said.people == "same" and not (self.taken_over and self.prepared is None)

    def _histories(self) -> list[Claim]:
        evidence = self._history_evidence
        if evidence is None:
            return [Claim(name, "cannot be judged: no register is handed on") for name in HISTORY_CLAIMS]
        return evidence.claims()

    @cached_property
    def _history_evidence(self) -> HistoryEvidence | None:
        """What all versions together are judged by; None where no register is handed on."""
        if self.prepared is None or self.history is None:
            return None
        drawing = self.drawing_document
        return HistoryEvidence(
            prepared=self.prepared,
            promise=self.said.promise,
            reserve=self.said.reserve,
            robust=self.said.robust,
            name=f"{self.said.settings['name']}/{self.version}",
            recount=self.recount,
            public=self.frequencies,
            released=self.laws.released,
            drawing=None if drawing is None else drawing.content(),
            drawn=self.evidence.pair_counts.by_output.tolist(),
            stated=self.history.model_dump(by_alias=True),
            snapshot=self.snapshot,
            key=self.key,
            rounded=self.protocol["rounded"],
        )

    def _frequencies(self) -> list[Claim]:
        public = self.frequencies
        if public is None:
            return [Claim(name, "cannot be judged: no noise is declared") for name in FREQUENCY_CLAIMS]
        text = self.folder.frequencies.read_bytes()
        content = _json(text, self.folder.frequencies)
        known = [_told_before(one) for one in self.before if one.frequencies.is_file() and one.joint.is_file()]
        counted = self.recount
        if public.rows is not None:
            counted = replace(counted, counts=self._first_rows)
        return frequency_claims(content, text == _canonical(content), public, counted, self.spec, self.said, known)

    @property
    def _first_rows(self) -> FirstRows:
        """What the counts are of where people have several rows; of rows that are taken over, as they are stored.

        That the register has the rows of the source, in any order, is judged with it.
        """
        if self.prepared is not None:
            return first_row_counts(self.prepared.coming)
        return _stored(self.folder.first_rows)

    def _recount(self) -> list[Claim]:
        stored = JointDocument.read(self.folder.joint).joint
        found = self.recount
        counts = {
            (s, x): count
            for s, row in zip(stored.secret.symbols, stored.counts.tolist(), strict=True)
            for x, count in zip(stored.inputs.symbols, row, strict=True)
            if count
        }
        wrong = sum(counts.get(cell, 0) != found.counts.get(cell, 0) for cell in {*counts, *found.counts})
        if self.frequencies is None:
            same_values = [
                set(stored.secret.symbols) == set(found.secret),
                set(stored.inputs.symbols) == set(found.inputs),
            ]
        else:
            # Exact counts may be of public values that nobody has.
            same_values = [
                set(stored.secret.symbols) <= set(found.secret),
                set(stored.inputs.symbols) <= set(found.inputs),
            ]
        return [
            claim("secret", same_values[0], "has other values than the source"),
            claim("inputs", same_values[1], "have other values than the source"),
            claim("counts", not wrong, f"differ from those of the source in {wrong:,} cells"),
            self._drawn(),
        ]

    def _drawn(self) -> Claim:
        """That as many records drew with every (secret, input) as the source has."""
        draws, laws = self.draws, self.laws
        if draws.counts is None or draws.secret is None:
            # `ExpectDrawsToIgnoreTheSecret` fails where they should be there.
            return Claim("draws")
        c, a, b = len(draws.secret.symbols), len(laws.weights), len(laws.outputs)
        secrets = {tuple(symbol): s for s, symbol in enumerate(draws.secret.symbols)}
        inputs = {symbol: x for x, symbol in enumerate(laws.weights)}
        expected: Counter[tuple[int, int]] = Counter()
        for (s, x), count in self.recount.counts.items():
            expected[secrets.get(s, c), inputs.get(laws.read(s, x), a)] += count
        # Given a history, what is drawn by is one of its channels and the input.
        given = self.drawing_document
        read = range(a) if given is None else [inputs.get(symbol[1:], a) for symbol in given.inputs.symbols]
        found: Counter[tuple[int, int]] = Counter()
        for cell, count in zip(draws.cells or (), draws.records or (), strict=True):
            place = cell // b % (len(read) + 1)
            found[cell // (b * (len(read) + 1)), read[place] if place < len(read) else a] += count
        if given is not None:
            for (s, symbol), count in self._forgotten.items():
                expected[secrets.get(s, c), inputs.get(symbol[1:], a)] -= count
                expected[secrets.get(s, c), a] += count
        wrong = sum(expected[cell] != found[cell] for cell in {*expected, *found})
        return claim("draws", not wrong, f"are not one for each record of the source in {wrong:,} cells")

    def _disclosure(self) -> list[Claim]:
        return disclosure_claims(self.public.counts, self.said)

    def _level(self) -> list[Claim]:
        level = self.level
        output = repr(", ".join(self.laws.outputs[level.output]))
        secret = repr(", ".join(self.public.secret[level.secret]))
        words = f"does not hold: the level is {level.nats!r} nats, at output {output} and secret {secret}"
        found = _json(self.folder.findings.read_bytes(), self.folder.findings)
        return [
            claim("bound", level.holds, words),
            all_of("findings", self._found(found)),
        ]

    def _found(self, found: Mapping[str, Any]) -> Iterator[Claim]:
        """That the findings state both levels: for whoever knows the exact counts, and over all that are possible."""
        yield _stated_level("level", found.get("level"), self.counted_level.nats)
        if self.frequencies is None:
            yield same("proven level", found.get("proven_level"), None)
        else:
            yield _stated_level("proven level", found.get("proven_level"), self.level.nats, _ABOVE)

    def _protocol(self) -> list[Claim]:
        canonical = self.folder.protocol.read_bytes() == self.document.to_bytes()
        return protocol_claims(
            self.protocol, canonical, self.laws, self.level, self.said, self._effective, self.frequencies
        )

    def _package(self) -> list[Claim]:
        text = self.folder.package.read_bytes()
        content = _json(text, self.folder.package)
        declared = public_files.declared_files(self.said.csv, self.said.has_noise, bool(self.said.drawn)) - {
            public_files.PACKAGE
        }
        files = {name: _digest(self.folder.root / name) for name in declared}
        return package_claims(
            content,
            text == _canonical(content),
            self.version,
            files,
            self.protocol,
            self.laws,
            self.level,
            self.said,
            self.versions,
            self.recount.rows,
            self.frequencies,
            self._intervals,
            self._told_numbers,
        )

    def _handouts(self) -> list[Claim]:
        package = _json(self.folder.package.read_bytes(), self.folder.package)
        again = handouts_again(package, self.protocol, self.previous)
        return [
            claim(
                name,
                (self.folder.root / name).read_bytes() == content,
                "is not what follows from datapackage.json and protocol.json",
            )
            for name, content in again.items()
        ] + [
            all_of(
                public_files.ESTIMATOR,
                (
                    claim(public_files.ESTIMATOR, False, complaint)
                    for complaint in estimator_complaints(self.folder.estimator.read_bytes(), self.protocol)
                ),
            )
        ]

    def _report(self) -> list[Claim]:
        page = self.folder.report.read_text(encoding="utf-8")
        checks = [(one.configuration.type, str(one.description)) for one in self.declared()]
        path = self.folder.root / public_files.NUMBERS
        numbers = path.read_bytes()
        content, package = _json(numbers, path), _json(self.folder.package.read_bytes(), self.folder.package)
        return report_claims(
            content,
            numbers == _canonical(content),
            page,
            _rendered(path),
            self.version,
            package["created"],
            self.protocol,
            self.laws,
            self.level,
            self.said,
            checks,
            self.versions,
            self._alone,
            None if self.taken_over else [json.loads(one.read_bytes()) for one in self._reports_before],
            self._outside,
            self.recount.rows,
            self.frequencies,
            class_weights(self.settled, self.said),
        )

    @property
    def _outside(self) -> float:
        """Share of the people who are outside the bound, as it is public: with noise of those who are expected."""
        found = self.history
        if found is None:
            return 0.0
        # `HistoryEvidence` holds it to what is expected.
        if found.expected is not None:
            return found.expected.outside
        return found.outside / (found.units or self.recount.rows)

    @property
    def _reports_before(self) -> list[Path]:
        """The figures of the public reports of earlier versions that are there."""
        paths = (one.root / public_files.NUMBERS for one in self.earlier)
        return [path for path in paths if path.is_file()]


def _stated_level(name: str, stated: object, nats: float, above: float = _LEVEL) -> Claim:
    """That a level is the one that is found here, or above it by a relative bit."""
    if math.isinf(nats):
        # JSON has no infinity.
        return same(name, stated, None)
    close = isinstance(stated, float) and nats * (1 - _LEVEL) - _LEVEL <= stated <= nats * (1 + above) + _LEVEL
    return claim(name, close, f"is stated as {stated!r} nats, and it is {nats!r}")


def _told_before(folder: ReleaseFolder) -> Before:
    """The public frequencies of an earlier version, and what it counted."""
    public = PublicFrequencies.parse(folder.frequencies.read_bytes())
    return Before(public, _stored(folder.joint if public.rows is None else folder.first_rows))


def _stored(path: Path) -> FirstRows:
    """Exact counts, as internal evidence has them."""
    stored = JointDocument.read(path).joint
    return {
        (s, x): count
        for s, row in zip(stored.secret.symbols, stored.counts.tolist(), strict=True)
        for x, count in zip(stored.inputs.symbols, row, strict=True)
    }


def _handed_on(spec: ReleaseSpec) -> object:
    from funnel.guarantees import parse_guarantee

    return parse_guarantee(spec.guarantee.canonical)


def _rendered(numbers: Path) -> str:
    """The page that is made of the figures in a file."""
    from funnel.release.public_report import PublicReport
    from funnel.report import render_public

    return str(render_public(PublicReport.read(numbers)))


def _digest(path: Path) -> tuple[str, int]:
    with path.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest(), path.stat().st_size


def _json(text: bytes, path: Path) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    raise DataError(f"{path.name} is not JSON")


def _canonical(content: Any) -> bytes:
    return (json.dumps(content, ensure_ascii=False, indent=1, sort_keys=True) + "\n").encode()
