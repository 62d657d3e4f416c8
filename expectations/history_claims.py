"""History claims: what the register of a coming version says of its people, held against everything else there is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from funnel.pipeline.expectations.claims import Claim, all_of, claim, same
from funnel.pipeline.expectations.frequency_claims import SIGNIFICANCE, table_of
from funnel.pipeline.expectations.history_answers import misplaced_rows, wrong_answers
from funnel.pipeline.expectations.spec_text import SpecText
from funnel.recount import Recount, ReleasedProtocol
from funnel.recount.expected import PARTS
from funnel.recount.found_histories import RegisterHistories, VersionHistories, is_level, stated_complaints
from funnel.recount.frequencies import PublicFrequencies
from funnel.recount.histories import recount_histories
from funnel.recount.keyed_noise import NoiseMaterial
from funnel.recount.movers import observer_complaints, secret_complaints
from funnel.recount.noisy_moves import NoisyChanges, NoisyMeans, NoisyRows
from funnel.recount.plausible import plausible_tables
from funnel.recount.promise import read_promise
from funnel.recount.register_files import Entry
from funnel.recount.register_moves import changed_counts
from funnel.recount.register_tables import FORGOTTEN
from funnel.recount.rounded import channel_complaints, open_complaints
from funnel.recount.rows import connect
from funnel.release.snapshot import Snapshot
from funnel.sampling import KEY_COLUMN, RecordKey

# Of shares of people that are computed twice.
_SHARE = 1e-7


@dataclass(frozen=True)
class Prepared:
    """The entry of a coming version, whole on disk and not yet one of the register.

    Attributes
    ----------
    register : Path
        The folder of the register.
    coming : Path
        The folder of the entry.
    """

    register: Path
    coming: Path


@dataclass(frozen=True)
class HistoryEvidence:
    """What a coming version is judged by, with the versions before it about the same people.

    Attributes
    ----------
    prepared : Prepared
    said : SpecText
    name : str
        ``"<series>/<version>"``.
    recount : Recount
        Counts from the source itself.
    public : PublicFrequencies or None
        The published counts, where these have noise.
    released : ReleasedProtocol
        What ``protocol.json`` says.
    drawing : mapping or None
        What the rows were drawn with, where that is not the published protocol: content of a protocol document.
    drawn : sequence of int, length b
        Rows of every output of the published protocol.
    stated : mapping
        What the findings say of all versions together.
    snapshot : Snapshot
    key : RecordKey or None
    protocol : mapping
        Content of ``protocol.json``.
    material : NoiseMaterial or None
        What noise is derived from.
    """

    prepared: Prepared
    said: SpecText
    name: str
    recount: Recount
    public: PublicFrequencies | None
    released: ReleasedProtocol
    drawing: Mapping[str, Any] | None
    drawn: list[int]
    stated: Mapping[str, Any]
    snapshot: Snapshot
    key: RecordKey | None
    protocol: Mapping[str, Any]
    material: NoiseMaterial | None = None

    @cached_property
    def found(self) -> RegisterHistories:
        """What the register tells, with the coming version."""
        return recount_histories(self.prepared.register, self.prepared.coming, self.said.promise)

    @property
    def entry(self) -> Entry:
        """Of the coming version."""
        return self.found.entries[-1]

    @property
    def version(self) -> VersionHistories:
        """What the coming version tells."""
        return self.found.versions[-1]

    @property
    def _public_counts(self) -> Recount:
        """The counts that are published, which is what a reader takes for the law of the version."""
        return self.recount if self.public is None else self.public.as_counts(self.recount.sha256)

    def claims(self) -> list[Claim]:
        """All that has to hold of it."""
        return [
            _none("register", self.found.complaints),
            all_of("entry", self._entry()),
            self._noise(),
            all_of("people", self._people()),
            self._answers(),
            self._places(),
            all_of("drawing", self._drawing()),
            _none("channel", tuple(self._channel())),
            _none("bound", self.version.broken),
            all_of("findings", self._findings()),
        ]

    def _entry(self) -> Iterator[Claim]:
        chapter, recount, entry = self.entry.chapter, self.recount, self.entry
        yield _none("register", self.version.complaints)
        yield same("name", chapter.name, self.name)
        yield claim(
            "bound", read_promise(chapter.guarantee) == self.said.promise, "is not the one in the text of the spec"
        )
        yield same("reserve", float(chapter.reserve), float(self.said.reserve))
        columns = (entry.secret_columns, entry.input_columns, entry.output_columns)
        told = (recount.secret_columns, recount.published_columns, self.released.output_columns)
        yield claim("columns", columns == told, "are not those of the spec")
        fits = set(chapter.secret) == set(recount.secret) and set(chapter.inputs) == set(recount.inputs)
        yield claim("alphabets", fits, "have other values than the source")
        if fits:
            law = self._public_counts
            counts = [n for row in law.table(chapter.secret, chapter.inputs) for n in row]
            yield claim("counts", list(chapter.counts) == counts, "differ from those of the source")
        public = self.public
        yield same("noise", entry.noise, None if public is None else public.epsilon_counts)
        published = (None, None) if public is None else (public.changes, public.rows)
        told_of_moves = (entry.moves, entry.row_moves) == published
        yield claim("changes and rows", told_of_moves, "are not those that are published")
        told_of_means = entry.means == (None if public is None else public.means)
        yield claim("means", told_of_means, "are not those that are published")
        yield _none("what is left open", tuple(open_complaints(entry, public, self.said.robust)))
        yield _none("observers", tuple(observer_complaints(self.found.entries, self.said.observers)))
        yield _none("secrets", tuple(secret_complaints(entry, self.said.secrets, self.said.robust)))
        if self.key is not None:
            yield same("secret", entry.fingerprint, self.key.fingerprint)

    def _noise(self) -> Claim:
        """That tables beside the counts are those of the register's people, with noise as it is said to be drawn."""
        told = [one for one in (self.entry.moves, self.entry.row_moves, self.entry.means) if one is not None]
        if len(told) != len(self.version.noise):
            return Claim("noise", "cannot be told: tables are not about the versions of the register")
        for one, (scale, tables) in zip(told, self.version.noise, strict=True):
            if isinstance(one, NoisyMeans):
                # The register has them up to a rounding, so their noise is not derived: it is judged how likely it is.
                found = plausible_tables(tables, scale)
                if found.p_value < SIGNIFICANCE:
                    return Claim("noise", f"is not drawn as it is said to be, by {found.what}: p = {found.p_value:.2e}")
            elif wrong := self._not_derived(one, scale, [count for table in tables.values() for count in table]):
                return Claim("noise", wrong)
        return Claim("noise")

    def _not_derived(self, told: NoisyChanges | NoisyRows, scale: float, noise: list[int]) -> str | None:
        """What is wrong with noise that is not what the secret of the series gives these tables."""
        if self.material is None or self.public is None:
            return "cannot be derived: the secret of the series' noise is gone"
        if isinstance(told, NoisyChanges):
            kind, since = "changes", [one.version for one in told.since]
            counts = changed_counts(self.found.entries[:-1], self.entry)
        else:
            kind, since = "rows", []
            counts = [count for row in (*told.stayed, *told.left, told.sizes) for count in row]
        exact = [count - one for count, one in zip(counts, noise, strict=True)]
        wrong = self.material.wrong(kind, told.epsilon, scale, table_of(self.public, since), noise, exact)
        return f"of {wrong:,} counts of {kind} is not what the secret of the series gives them" if wrong else None

    def _people(self) -> Iterator[Claim]:
        forgotten = self.prepared.register / FORGOTTEN
        there, rows, gone = _in_snapshot(self.entry, self.snapshot, forgotten)
        yield claim("digests", there == self.version.people, "are not all those of the records, each with its values")
        missing, erased = rows - self.version.people, gone.total()
        yield claim("missing", missing == erased, f"are {missing:,}, and {erased:,} of the records are forgotten")
        yield same("forgotten", self._forgotten, erased)
        yield claim("drawing", self._drawn_as_forgotten() == gone, "has others who are forgotten")

    def _drawn_as_forgotten(self) -> Counter[int]:
        """Cells of the records that were drawn by no channel of the register."""
        drawing, chapter = self.drawing, self.entry.chapter
        if drawing is None:
            return Counter()
        known = {tuple(symbol) for symbol in drawing["inputs"]["symbols"]}
        secrets = {symbol: s for s, symbol in enumerate(chapter.secret)}
        inputs = {symbol: x for x, symbol in enumerate(chapter.inputs)}
        found = Counter[int]()
        for s, counts in zip(drawing["secret"]["symbols"], drawing["counts"], strict=True):
            for symbol, count in zip(drawing["drawn_by"]["symbols"], counts, strict=True):
                if count and tuple(symbol) not in known:
                    found[secrets.get(tuple(s), -1) * chapter.a + inputs.get(tuple(symbol[1:]), -1)] += int(count)
        return found

    @property
    def _forgotten(self) -> int:
        return int(self.stated["forgotten"])

    def _answers(self) -> Claim:
        if self.key is None:
            return Claim("answers", "cannot be derived: the run hands on no release secret")
        wrong = wrong_answers(self.found.entries, self.key)
        return claim("answers", not wrong, f"of {wrong:,} people are not those that key, history and secret give")

    def _places(self) -> Claim:
        """That which row of a unit comes first follows from the secret, and not from the source or from its values."""
        if self.key is None or self.entry.chapter.units is None:
            return Claim("rows of units")
        wrong = misplaced_rows(self.entry, self.key, self.snapshot)
        return claim("rows of units", not wrong, f"are not in the order that the secret gives them: {wrong:,} of them")

    def _drawing(self) -> Iterator[Claim]:
        by_output = dict(zip(self.entry.chapter.outputs, self.version.by_output, strict=True))
        drawn = dict(zip(self.released.outputs, self.drawn, strict=True))
        fits = set(by_output) == set(drawn)
        yield claim("outputs", fits, "are not those of the published protocol")
        if fits:
            left = [drawn[y] - count for y, count in by_output.items()]
            right = min(left) >= 0 and sum(left) == self._forgotten
            yield claim("rows", right, "of an output are not as many as the register has people with it")
        if self.drawing is not None:
            # What the version alone would have told is computed from these weights, and compared with in public.
            target = tuple(tuple(map(int, row)) for row in self.drawing["target"])
            box = None if self.public is None else self.public.possible
            aimed_at = replace(self.released, weights=target).level(self.said.promise, self._public_counts, box)
            yield claim("target", aimed_at.holds, "does not keep the bound, so that nothing was aimed at it")
        yield claim("channels", self._drawn_from_channels(), "that rows were drawn from are not those of the register")

    def _drawn_from_channels(self) -> bool:
        """Whether the drawing has, for every channel and input, the weights that the register keeps."""
        chapter = self.entry.chapter
        if self.drawing is None:
            return False
        inputs = {symbol: x for x, symbol in enumerate(chapter.inputs)}
        outputs = [tuple(symbol) for symbol in self.drawing["outputs"]["symbols"]]
        if outputs != list(chapter.outputs):
            return False
        columns = list(zip(*self.drawing["weights"], strict=True))
        met = set()
        for symbol, column in zip(self.drawing["inputs"]["symbols"], columns, strict=True):
            k, x = int(symbol[0]), inputs.get(tuple(symbol[1:]))
            if x is None or k not in chapter.channels:
                return False
            met.add((k, x))
            if [dict(row).get(x, 0) for row in chapter.channels[k]] != [int(weight) for weight in column]:
                return False
        return met >= set(self.version.by_channel)

    def _channel(self) -> Iterator[str]:
        """In what way the published channel is not the effective one of the register, rounded as documented."""
        if self.protocol["rounded"] is None:
            yield "does not say by how much it is rounded"
        else:
            yield from channel_complaints(self.protocol, self.released, self.entry, self.public)

    def _findings(self) -> Iterator[Claim]:
        stated = self.stated
        yield _none("people", tuple(stated_complaints(stated, self.version)))
        yield same("reserve", float(stated["reserve"]), float(self.entry.chapter.reserve))
        yield from self._expected(stated["expected"])
        units = self.entry.chapter.units
        yield same("units", stated["units"], None if units is None else sum(units))
        yield same("versions", stated["versions"], len(self.found.entries))
        yield same("register", stated["register"], self.prepared.register.name)

    def _expected(self, stated: Mapping[str, Any] | None) -> Iterator[Claim]:
        """What is told of people who are expected, which alone is public of histories."""
        found = self.version.expected
        yield claim("expected", (stated is None) == (found is None), "people are told where none are, or the other way")
        if stated is None or found is None:
            return
        yield same("expected histories", stated["histories"], found.histories)
        yield claim(
            "expected level",
            is_level(stated["level"], found.level),
            f"is {stated['level']!r}, and it is {found.level!r}",
        )
        # Expected people are counted in parts, of which every history has at least one a cell.
        chapter = self.entry.chapter
        room = len(chapter.counts) * found.histories / PARTS + _SHARE
        # Whole people, of those that are published.
        room += 1 / sum(chapter.beginning)
        for name in ("moved", "outside", "others"):
            share = getattr(found, name)
            near = abs(stated[name] - share) <= room
            yield claim(f"expected {name}", near, f"is {stated[name]!r}, and it is {share!r} of the expected people")
        yield same(
            "expected observers",
            [(one["observer"], one["bounded"]) for one in stated["observers"]],
            [(one.observer, one.bounded) for one in found.observers],
        )
        for told, one in zip(stated["observers"], found.observers, strict=False):
            for name in ("level", "of_all"):
                wrong = f"is {told[name]!r}, and it is {getattr(one, name)!r}"
                yield claim(f"expected {name} for {one.observer}", is_level(told[name], getattr(one, name)), wrong)
            near = abs(told["outside"] - one.outside) <= room
            wrong = f"is {told['outside']!r}, and it is {one.outside!r} of the expected people"
            yield claim(f"expected outside for {one.observer}", near, wrong)
        left, found_left = stated.get("open_people"), found.left_open
        agree = (left is None) == (found_left is None)
        if left is not None and found_left is not None:
            agree = abs(left - found_left) <= room
        yield claim("expected open", agree, f"is {left!r}, and it is {found_left!r} of the expected people")


def _none(name: str, complaints: tuple[str, ...]) -> Claim:
    """A claim that holds if there is no complaint; the first one is told, with how many there are."""
    more = f" (and {len(complaints) - 1:,} more)" if len(complaints) > 1 else ""
    return Claim(name, f"does not hold: {complaints[0]}{more}" if complaints else None)


def _in_snapshot(entry: Entry, snapshot: Snapshot, forgotten: Path) -> tuple[int, int, Counter[int]]:
    """How many people of an entry are in a snapshot with the same values, and how many records that has.

    And the cells of those of its records whose people are forgotten.
    """
    chapter = entry.chapter
    secrets = {symbol: s for s, symbol in enumerate(chapter.secret)}
    inputs = {symbol: x for x, symbol in enumerate(chapter.inputs)}
    # A published column may be secret too.
    columns = list(dict.fromkeys((*entry.secret_columns, *entry.input_columns, KEY_COLUMN)))
    rows = 0

    def batches(file: pq.ParquetFile) -> Iterator[pa.RecordBatch]:
        nonlocal rows
        for batch in file.iter_batches(columns=columns):
            texts = {name: batch.column(name).cast(pa.string()).to_pylist() for name in columns[:-1]}
            s = zip(*(texts[name] for name in entry.secret_columns), strict=True)
            x = zip(*(texts[name] for name in entry.input_columns), strict=True)
            cells = [secrets.get(one, -1) * chapter.a + inputs.get(other, 0) for one, other in zip(s, x, strict=True)]
            digests = np.frombuffer(b"".join(batch.column(KEY_COLUMN).to_pylist()), dtype="<u8").reshape(-1, 2)
            rows += batch.num_rows
            yield pa.record_batch(
                [pa.array(digests[:, 0]), pa.array(digests[:, 1]), pa.array(cells, pa.int32())], ["high", "low", "cell"]
            )

    with connect() as database, pq.ParquetFile(snapshot.data.path) as file:
        schema = pa.schema([("high", pa.uint64()), ("low", pa.uint64()), ("cell", pa.int32())])
        database.register("records", pa.RecordBatchReader.from_batches(schema, batches(file)))
        database.execute("CREATE TEMP TABLE known AS SELECT * FROM records")
        # People may have several rows, and several of them with the same values.
        query = """
            SELECT coalesce(sum(least(known.records, noted.records)), 0)
            FROM (SELECT high, low, cell, count(*) AS records FROM known GROUP BY ALL) AS known
            JOIN (SELECT high, low, cell, count(*) AS records FROM read_parquet(?) GROUP BY ALL) AS noted
            USING (high, low, cell)
        """
        ((there,),) = database.execute(query, [str(entry.rows)]).fetchall()
        gone = []
        if forgotten.exists():
            query = "SELECT cell, count(*) FROM known JOIN read_parquet(?) USING (high, low) GROUP BY cell"
            gone = database.execute(query, [str(forgotten)]).fetchall()
    return int(there), rows, Counter(dict(gone))
