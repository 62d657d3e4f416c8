"""Finished folder: what is in the folder of a coming version, and what is counted and computed again beside it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

from funnel.alphabet import Alphabet
from funnel.audit.evidence import stored_counts
from funnel.audit.files import read_json
from funnel.audit.released_columns import stated_categories
from funnel.drawn import DrawnCounts
from funnel.errors import DataError
from funnel.findings.followed import ExpectedObserver, FoundHistory
from funnel.joint import Joint
from funnel.pipeline.expectations.drawing_claims import Channel
from funnel.pipeline.expectations.evidence import Evidence
from funnel.pipeline.expectations.spec_text import SpecText
from funnel.protocol import Protocol
from funnel.recount.classes import PlainClasses
from funnel.recount.drawn_numbers import plain_numbers
from funnel.recount.found_histories import RegisterHistories
from funnel.recount.frequencies import PublicFrequencies
from funnel.recount.held_out import held_out_counts
from funnel.recount.histories import recount_histories
from funnel.recount.noise import NoiseMaterial
from funnel.recount.plain_distributions import Distributions
from funnel.recount.ratios import plain_entropy
from funnel.recount.register_files import Entry
from funnel.recount.register_people import FirstRows, first_row_counts
from funnel.recount.released import ReleasedProtocol
from funnel.recount.source import Recount, recount, source_columns
from funnel.release.documents import DrawsDocument, WordsDocument, drawn_pairs
from funnel.release.drawing_document import DrawingDocument
from funnel.release.findings import FindingsDocument
from funnel.release.layout import ReleaseFolder
from funnel.release.protocol_document import ProtocolDocument
from funnel.release.snapshot import Snapshot
from funnel.sampling.keyed import RecordKey
from funnel.spec import ReleaseSpec
from funnel.word_statistics import WordStatistics


@dataclass(frozen=True)
class Prepared:
    """The folder of a register and that of the entry of a coming version, whole on disk and not yet in the register."""

    register: Path
    coming: Path


@dataclass(frozen=True, eq=False)
class FinishedFolder:
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
    previous : str, optional
        The newest version that readers find.
    draws_before : int, optional
        Earlier draws about the same people, other than of these rows; None where nobody counted them.
    before : tuple of ReleaseFolder
        All earlier versions that are there, also where rows are taken over: what their frequencies have told.
    prepared : Prepared, optional
        The entry that the version is to have in the register of its people.
    followed : Snapshot, optional
        What rows of people with histories were drawn from: the same records, with the channel of each history. None
        where rows are taken over: then it is no longer there.
    kept_keys : Path, optional
        Where the workspace keeps the digests of the record keys, by which later versions know people again.
    """

    spec: ReleaseSpec
    folder: ReleaseFolder
    version: str
    snapshot: Snapshot
    taken_over: bool = False
    earlier: tuple[ReleaseFolder, ...] = ()
    key: RecordKey | None = None
    previous: str | None = None
    draws_before: int | None = None
    followed: Snapshot | None = None
    prepared: Prepared | None = None
    before: tuple[ReleaseFolder, ...] = ()
    kept_keys: Path | None = None

    @cached_property
    def spec_text(self) -> SpecText:
        """What the text of the spec says; of "auto" the columns are those of the source, read again."""
        said = SpecText.of(self.spec.text)
        said = said.publishing(source_columns(self.spec)) if said.publishes_all else said
        return said if self.classes is None else replace(said, class_column=self.classes.column)

    @cached_property
    def classes(self) -> PlainClasses | None:
        """The questions that classes of records follow from, where there are any."""
        return PlainClasses.parse(self.folder.classes.read_bytes()) if self.folder.classes.is_file() else None

    @cached_property
    def given_classes(self) -> PlainClasses | None:
        """The questions in the file that the text of the spec names, as it is now; None where it names none."""
        named = self.spec_text.section("groups").get("classes")
        if named is None:
            return None
        try:
            return PlainClasses.parse(self.spec.resolve(str(named)).read_bytes())
        except OSError as error:
            raise DataError(f"the file of classes {named} cannot be read any more") from error

    @cached_property
    def settled(self) -> ReleaseSpec:
        """The spec with the recoding that the snapshot says: whether that is what it may be is judged."""
        return self.snapshot.read_codings().settled(self.spec)

    @cached_property
    def frequencies(self) -> PublicFrequencies | None:
        """The public counts, where noise protects the exact ones."""
        if not self.spec_text.has_noise:
            return None
        if not self.folder.frequencies.is_file():
            raise DataError("frequencies.json, from which all else is to follow, is missing")
        return PublicFrequencies.parse(self.folder.frequencies.read_bytes())

    @cached_property
    def noise_material(self) -> NoiseMaterial | None:
        """What the noise of the series is derived from; None where its secret is gone."""
        series = str(self.spec_text.settings["name"])
        try:
            text = (self.spec.workspace_folder / series / "noise-secret").read_text(encoding="ascii")
        except OSError:
            return None
        return NoiseMaterial(text, series, self.recount.sha256)

    @cached_property
    def recount(self) -> Recount:
        """Counts of (secret, input), from the source itself; over all public values where these are public."""
        public = self.frequencies
        if self.classes is not None:
            found = self.classes.counted(self.whole_counts, self.held_out)
            return found if public is None else found.over(public.secret, public.inputs)
        if public is None:
            return recount(self.settled)
        return recount(self.settled, public.labels).over(public.secret, public.inputs)

    @cached_property
    def grouping_kept(self) -> float | None:
        """Of the information in what is published, as the spec asks for it, what grouping for a threshold left.

        None where that does not follow from the text of the spec: bins that were found may have been grouped further.
        """
        if self.settled.recode == self.spec.recode or self.classes is not None:
            return 1.0
        if self.spec.automatic:
            return None
        left, asked = (self._entropy(counted) for counted in (self.recount, recount(self.spec, wide=True)))
        return left / asked

    def _entropy(self, counted: Recount) -> float:
        records: Counter[tuple[str, ...]] = Counter()
        for (_, x), number in self.over_published(counted).counts.items():
            records[x] += number
        return plain_entropy(records.values())

    @cached_property
    def whole_counts(self) -> Recount:
        """Counts of the secret and of whole records, from the source itself, where these are drawn by class."""
        return recount(self.settled.whole, self.public_values, wide=True)

    @cached_property
    def held_out(self) -> Mapping[tuple[tuple[str, ...], tuple[str, ...]], int] | None:
        """The same of those records by which classes are not chosen; None where all choose them."""
        share = self.spec_text.held_out
        return held_out_counts(self.settled.whole, self.whole_counts, share) if share else None

    @cached_property
    def public_values(self) -> Mapping[str, Sequence[str]] | None:
        """Of whole records with noise: by column the values that are public, as frequencies and package state them.

        That these are declared, or were learned as they may be, is judged.
        """
        public = self.frequencies
        if public is None or self.classes is None:
            return None
        stated = self.stated_categories
        secret = {column: public.labels[column] for column in public.secret_columns}
        return {**secret, **{column: stated[column] for column in self.classes.columns}}

    @cached_property
    def stated_categories(self) -> Mapping[str, Sequence[str]]:
        """By column of the released table the values that the package states, in its order."""
        return stated_categories(read_json(self.folder.package))

    @cached_property
    def public(self) -> Recount:
        """The counts that everything public follows from."""
        return self.recount if self.frequencies is None else self.frequencies.as_counts(self.recount.sha256)

    @cached_property
    def document(self) -> ProtocolDocument:
        """What ``protocol.json`` holds."""
        return ProtocolDocument.read(self.folder.protocol)

    @cached_property
    def protocol(self) -> Mapping[str, Any]:
        """The same as plain values."""
        return self.document.content()

    @cached_property
    def released(self) -> ReleasedProtocol:
        """The same as another reader finds it."""
        return ReleasedProtocol.parse(self.folder.protocol.read_bytes())

    @cached_property
    def distributions(self) -> Distributions:
        """The distribution of secret, input and output that is public: under the recounted records where these are."""
        return Distributions(self.over_published(self.public), self.released, self._numbers)

    def over_published(self, counted: Recount) -> Recount:
        """Counts over what is published of a record: of the secret too, where that is."""
        return counted if self.spec_text.publish == self.spec_text.inputs else counted.with_secret()

    @property
    def _numbers(self) -> Mapping[tuple[str, ...], Fraction | None] | None:
        """The number of every published input, where the text of the spec asks for the variance explained."""
        if self.spec_text.utility != "variance":
            return None
        (column,) = self.spec_text.publish
        inputs = self.public.inputs
        found = plain_numbers(self.settled, column, [symbol[0] for symbol in inputs])
        return dict(zip(inputs, found, strict=True))

    @cached_property
    def drawing_document(self) -> DrawingDocument | None:
        """What the rows were drawn with, where that is not the published protocol."""
        return DrawingDocument.read(self.folder.drawing) if self.folder.drawing.exists() else None

    @cached_property
    def drawn_from(self) -> Mapping[str, Any] | None:
        """The same as plain values."""
        return None if self.drawing_document is None else self.drawing_document.content()

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
    def history(self) -> FoundHistory | None:
        """What the findings say of all versions together."""
        return FindingsDocument.read(self.folder.findings).history

    @property
    def versions(self) -> int | None:
        """Published about the same people, this one included."""
        return None if self.history is None else self.history.versions

    @cached_property
    def alone(self) -> Distributions | None:
        """The same by the protocol of the version alone, which is aimed at, where people have histories."""
        found = self.drawing_document
        if found is None:
            return None
        weights = tuple(tuple(map(int, row)) for row in found.target)
        return replace(self.distributions, released=replace(self.distributions.released, weights=weights))

    @cached_property
    def evidence(self) -> Evidence:
        """The released table, with what it is declared to hold."""
        return Evidence(
            self.folder.data, self.document.protocol, self.spec_text.released, self.pairs.by_output.tolist()
        )

    @cached_property
    def pairs(self) -> DrawnCounts:
        """The drawn records by input and output, shape (1, a + 1, b)."""
        return drawn_pairs(self.draws, self.drawn_with)

    @cached_property
    def draws(self) -> DrawsDocument:
        """The stored draws."""
        return DrawsDocument.read(self.folder.draws)

    @cached_property
    def joint(self) -> Joint:
        """The distribution of secret and input, counted again."""
        found = self.recount
        return Joint.from_counts(
            found.table(found.secret, found.inputs),
            Alphabet(self.spec_text.secret, found.secret),
            Alphabet(self.spec_text.inputs, found.inputs),
        )

    @cached_property
    def channel(self) -> Channel:
        """What the rows were drawn with, and how."""
        given = self.drawing_document
        return Channel(self.drawn_with, self.joint if given is None else given.joint, self.pairs)

    @cached_property
    def words(self) -> Mapping[str, WordStatistics]:
        """What is known of the random words, by purpose."""
        return WordsDocument.read(self.folder.words).statistics

    @cached_property
    def earlier_words(self) -> tuple[Mapping[str, WordStatistics], ...]:
        """The same of earlier versions."""
        return tuple(WordsDocument.read(one.words).statistics for one in self.earlier)

    @property
    def is_followed(self) -> bool:
        """Whether rows are drawn given everything published about the same people before; not if they are taken over.

        Rows that are taken over were judged when they were drawn, and are in the register.
        """
        return self.spec_text.people == "same" and not (self.taken_over and self.prepared is None)

    @property
    def register(self) -> Path:
        """The folder of the register of the people."""
        if self.prepared is None:
            raise DataError("no register is handed on, so nothing can be said about all versions together")
        return self.prepared.register

    @cached_property
    def histories(self) -> RegisterHistories:
        """What the register tells, with the coming version."""
        coming = None if self.prepared is None else self.prepared.coming
        return recount_histories(self.register, coming, self.spec_text.promise)

    @property
    def entry(self) -> Entry:
        """Of the coming version in the register."""
        return self.histories.entries[-1]

    @cached_property
    def stated_history(self) -> Mapping[str, Any]:
        """What the findings say of all versions together, as plain values."""
        return {} if self.history is None else asdict(self.history)

    @property
    def first_rows(self) -> FirstRows:
        """What the counts are of where people have several rows; of rows that are taken over, as they are stored.

        That the register has the rows of the source, in any order, is judged with it.
        """
        if self.prepared is not None:
            return first_row_counts(self.prepared.coming)
        return stored_counts(self.folder.first_rows)

    @property
    def observers(self) -> list[ExpectedObserver]:
        """How far all versions go for observers who keep them, as is public: with noise, of expected people."""
        found = self.history
        if found is None:
            return []
        # The claims about the register hold these to what the register tells.
        if found.expected is not None:
            return [*found.expected.observers]
        people = found.units or self.recount.rows
        return [
            ExpectedObserver(
                one.observer,
                one.secret_of,
                one.bounded,
                one.level,
                None
                if one.level is None or (one.moved and one.moved_level is None)
                else max(one.level, one.moved_level or 0.0),
                one.outside / people,
            )
            for one in found.observers
        ]
