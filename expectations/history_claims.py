"""History claims: what the register of a coming version says of its people, held against everything else there is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from funnel.audit.files import read_json
from funnel.pipeline.expectations.claims import Claim, all_of, claim, same
from funnel.pipeline.expectations.donor_answers import records_off, unread_cells, wrong_donors
from funnel.pipeline.expectations.frequency_claims import table_of
from funnel.pipeline.expectations.keyed_answers import misplaced_rows, snapshot_cells, wrong_answers
from funnel.recount.expected import PARTS
from funnel.recount.found_histories import entry_complaints, is_level, stated_complaints
from funnel.recount.noisy_moves import NoisyChanges, NoisyDepartures, NoisyMeans, NoisyRows, length_of
from funnel.recount.published import count_published
from funnel.recount.register_files import Entry
from funnel.recount.register_moves import changed_counts
from funnel.recount.register_tables import FORGOTTEN
from funnel.recount.rounded import channel_complaints
from funnel.recount.rows import connect
from funnel.release.snapshot import Snapshot
from funnel.sampling.donors import STANDING_COLUMN

if TYPE_CHECKING:
    from funnel.pipeline.expectations.finished_folder import FinishedFolder

# Of shares of people that are computed twice.
_SHARE = 1e-7


def register_claims(finished: FinishedFolder) -> list[Claim]:
    """Everything published about a person, in all versions together, keeps the bound, by the register."""
    if finished.prepared is None or finished.history is None:
        return [Claim("register", "cannot be judged: no register is handed on")]
    return [
        _none("register", finished.histories.complaints),
        all_of("entry", _entry(finished)),
        _noise(finished),
        all_of("people", _people(finished)),
        _answers(finished),
        _places(finished),
        all_of("drawing", _drawing(finished)),
        _none("channel", tuple(_channel(finished))),
        _none("bound", finished.histories.versions[-1].broken),
        all_of("findings", _findings(finished)),
    ]


def _entry(finished: FinishedFolder) -> Iterator[Claim]:
    chapter, recount, entry, said = finished.entry.chapter, finished.recount, finished.entry, finished.spec_text
    yield _none("register", finished.histories.versions[-1].complaints)
    yield same("name", chapter.name, f"{said.settings['name']}/{finished.version}")
    yield same("reserve", float(chapter.reserve), float(said.reserve))
    columns = (entry.secret_columns, entry.input_columns, entry.output_columns)
    before = () if entry.classes is None else (STANDING_COLUMN,)
    told = (recount.secret_columns, recount.published_columns, (*before, *finished.released.output_columns))
    yield claim("columns", columns == told, "are not those of the spec")
    stated = read_json(finished.folder.classes) if finished.folder.classes.is_file() else None
    yield claim("classes", entry.classes == stated, "are not those that are published")
    fits = set(chapter.secret) == set(recount.secret) and set(chapter.inputs) == set(recount.inputs)
    yield claim("alphabets", fits, "have other values than the source")
    if fits:
        counts = [n for row in finished.public.table(chapter.secret, chapter.inputs) for n in row]
        yield claim("counts", list(chapter.counts) == counts, "differ from those of the source")
    public = finished.frequencies
    yield same("noise", entry.noise, None if public is None else public.epsilon_counts)
    published = (None, None) if public is None else (public.changes, public.rows)
    told_of_moves = (entry.moves, entry.row_moves) == published
    yield claim("changes and rows", told_of_moves, "are not those that are published")
    for name in ("means", "departures"):
        told = getattr(entry, name) == (None if public is None else getattr(public, name))
        yield claim(name, told, "are not those that are published")
    asked = (said.observers, said.secrets, said.robust)
    yield _none("entry", tuple(entry_complaints(finished.histories.entries, said.promise, public, *asked)))
    if finished.key is not None:
        yield same("secret", entry.fingerprint, finished.key.fingerprint)


def _noise(finished: FinishedFolder) -> Claim:
    """That tables beside the counts are those of the register's people, with noise as it is said to be drawn."""
    entry = finished.entry
    told = [one for one in (entry.moves, entry.row_moves, entry.means, entry.departures) if one is not None]
    if len(told) != len(finished.histories.versions[-1].noise):
        return Claim("noise", "cannot be told: tables are not about the versions of the register")
    for one, (scale, tables) in zip(told, finished.histories.versions[-1].noise, strict=True):
        if wrong := _not_derived(finished, one, scale, [count for table in tables.values() for count in table]):
            return Claim("noise", wrong)
    return Claim("noise")


def _not_derived(
    finished: FinishedFolder,
    told: NoisyChanges | NoisyRows | NoisyMeans,
    scale: float,
    noise: list[int],
) -> str | None:
    """What is wrong with noise that is not what the secret of the series gives these tables."""
    material, public = finished.noise_material, finished.frequencies
    if material is None or public is None:
        return "cannot be derived: the secret of the series' noise is gone"
    within, since = 0, [] if public.changes is None or isinstance(told, NoisyRows) else public.changes.since
    if isinstance(told, NoisyMeans):
        kind = "departures" if isinstance(told, NoisyDepartures) else "means"
        within = _rounding(finished, told)
        tables = (public.noisy, *(table for one in since for table in (one.secrets, one.stayed, one.left)))
        if public.rows is not None:
            tables += (public.rows.stayed, public.rows.left, (public.rows.sizes,))
        exact = [count for table in tables for row in table for count in row]
    else:
        if isinstance(told, NoisyChanges):
            kind, counts = "changes", changed_counts(finished.histories.entries[:-1], finished.entry)
        else:
            kind = "rows"
            counts = [count for row in (*told.stayed, *told.left, told.sizes) for count in row]
        exact = [count - one for count, one in zip(counts, noise, strict=True)]
    of = table_of(public, [one.version for one in since])
    wrong = material.wrong(kind, told.epsilon, scale, of, noise, exact, within)
    return f"of {wrong:,} counts of {kind} is not what the secret of the series gives them" if wrong else None


def _rounding(finished: FinishedFolder, told: NoisyMeans) -> int:
    """How far what people add up to by the register is from what got noise, in parts of a record.

    It was rounded down for each row, twice for what a row differs from, and channels that were changed by means are
    whole numbers. Nobody knows any more what the forgotten drew from.
    """
    version = finished.histories.versions[-1]
    return 4 * version.people + 2 + version.missing * length_of(told)


def _people(finished: FinishedFolder) -> Iterator[Claim]:
    forgotten = finished.register / FORGOTTEN
    there, rows, gone = _in_snapshot(finished.entry, finished.snapshot, forgotten)
    people = finished.histories.versions[-1].people
    yield claim("digests", there == people, "are not all those of the records, each with its values")
    missing, erased = rows - people, gone.total()
    yield claim("missing", missing == erased, f"are {missing:,}, and {erased:,} of the records are forgotten")
    yield same("forgotten", finished.stated_history["forgotten"], erased)
    unread = gone + unread_cells(finished.entry)
    yield claim("drawing", _drawn_as_forgotten(finished) == unread, "has others who are forgotten")


def _drawn_as_forgotten(finished: FinishedFolder) -> Counter[int]:
    """Cells of the records that were drawn by no channel of the register."""
    drawing, chapter = finished.drawn_from, finished.entry.chapter
    if drawing is None:
        return Counter()
    known = {tuple(symbol) for symbol in drawing["inputs"]["symbols"]}
    drawers = drawing["inputs"] if drawing["drawn_by"] is None else drawing["drawn_by"]
    found = Counter[int]()
    for s, counts in zip(drawing["secret"]["symbols"], drawing["counts"], strict=True):
        for symbol, count in zip(drawers["symbols"], counts, strict=True):
            if count and tuple(symbol) not in known:
                inputs = tuple(symbol[-len(finished.entry.input_columns) :])
                found[chapter.cell(tuple(s), inputs)] += int(count)
    return found


def _answers(finished: FinishedFolder) -> Claim:
    if finished.key is None:
        return Claim("answers", "cannot be derived: the run hands on no release secret")
    if finished.entry.classes is not None:
        wrong, others = wrong_donors(finished.histories.entries, finished.key)
        failure = f"of {wrong:,} people, and donors of {others:,}, are not those that key, history and secret give"
        return claim("answers", not wrong and not others, failure)
    wrong = wrong_answers(finished.histories.entries, finished.key)
    return claim("answers", not wrong, f"of {wrong:,} people are not those that key, history and secret give")


def _places(finished: FinishedFolder) -> Claim:
    """That which row of a unit comes first follows from the secret, and not from the source or from its values."""
    if finished.key is None or finished.entry.chapter.units is None:
        return Claim("rows of units")
    wrong = misplaced_rows(finished.entry, finished.key, finished.snapshot)
    return claim("rows of units", not wrong, f"are not in the order that the secret gives them: {wrong:,} of them")


def _drawing(finished: FinishedFolder) -> Iterator[Claim]:
    outputs, _ = finished.entry.told
    by_output = Counter[tuple[str, ...]]()
    for y, count in enumerate(finished.histories.versions[-1].by_output):
        by_output[outputs[y % len(outputs)]] += count
    drawn = dict(zip(finished.released.outputs, finished.pairs.by_output.tolist(), strict=True))
    fits = set(by_output) == set(drawn)
    yield claim("outputs", fits, "are not those of the published protocol")
    if fits:
        left = [drawn[y] - count for y, count in by_output.items()]
        right = min(left) >= 0 and sum(left) == finished.stated_history["forgotten"]
        yield claim("rows", right, "of an output are not as many as the register has people with it")
    if finished.drawn_from is not None:
        # What the version alone would have told is computed from these weights, and compared with in public.
        target = tuple(tuple(map(int, row)) for row in finished.drawn_from["target"])
        box = None if finished.frequencies is None else finished.frequencies.possible
        aimed_at = replace(finished.released, weights=target).level(finished.spec_text.promise, finished.public, box)
        yield claim("target", aimed_at.holds, "does not keep the bound, so that nothing was aimed at it")
    if finished.entry.classes is not None and finished.key is not None:
        published = count_published(finished.folder.data, finished.spec_text.whole)
        more, less = records_off(
            finished.histories.entries, finished.snapshot, finished.spec_text.whole, published, finished.key
        )
        right = not less and more == finished.stated_history["forgotten"]
        yield claim("records", right, f"of {more:,} are of nobody who stands for a person, and {less:,} are missing")
    yield claim("channels", _drawn_from_channels(finished), "that rows were drawn from are not those of the register")


def _drawn_from_channels(finished: FinishedFolder) -> bool:
    """Whether the drawing has, for every channel and input, the weights that the register keeps."""
    chapter = finished.entry.chapter
    if finished.drawn_from is None:
        return False
    inputs = {symbol: x for x, symbol in enumerate(chapter.inputs)}
    whole = finished.entry.classes is not None
    if whole:
        # Of a record that was published last its owner and its class are read, and not the class of the person.
        names = [name for (name,) in chapter.inputs]
        read = [*(f"own: {name}" for name in names), *(f"donor: {name}" for name in names), "gone"]
        inputs = {(said, name): x for x, said in enumerate(read) for name in names}
    outputs = [tuple(symbol) for symbol in finished.drawn_from["outputs"]["symbols"]]
    if outputs != list(finished.entry.told[0]):
        return False
    columns = list(zip(*finished.drawn_from["weights"], strict=True))
    met = set()
    for symbol, column in zip(finished.drawn_from["inputs"]["symbols"], columns, strict=True):
        k, x = int(symbol[0]), inputs.get(tuple(symbol[1:]))
        if x is None or k not in chapter.channels:
            return False
        met.add((k, x))
        weights = [dict(row).get(x, 0) for row in chapter.channels[k]]
        if whole:
            weights = [one + other for one, other in zip(weights[: chapter.a], weights[chapter.a :], strict=True)]
        if weights != [int(weight) for weight in column]:
            return False
    return met >= set(finished.histories.versions[-1].by_channel)


def _channel(finished: FinishedFolder) -> Iterator[str]:
    """In what way the published channel is not the effective one of the register, rounded as documented."""
    if finished.protocol["rounded"] is None:
        yield "does not say by how much it is rounded"
    else:
        yield from channel_complaints(finished.protocol, finished.released, finished.entry, finished.frequencies)
        found = finished.histories.versions[-1]
        yield from found.few_complaints(finished.entry, finished.protocol)


def _findings(finished: FinishedFolder) -> Iterator[Claim]:
    stated = finished.stated_history
    yield _none("people", tuple(stated_complaints(stated, finished.histories.versions[-1])))
    yield same("reserve", float(stated["reserve"]), float(finished.entry.chapter.reserve))
    yield from _expected(finished, stated["expected"])
    units = finished.entry.chapter.units
    yield same("units", stated["units"], None if units is None else sum(units))
    yield same("versions", stated["versions"], len(finished.histories.entries))
    yield same("register", stated["register"], finished.register.name)


def _expected(finished: FinishedFolder, stated: Mapping[str, Any] | None) -> Iterator[Claim]:
    """What is told of people who are expected, which alone is public of histories."""
    found = finished.histories.versions[-1].expected
    yield claim("expected", (stated is None) == (found is None), "people are told where none are, or the other way")
    if stated is None or found is None:
        return
    # Expected people are counted in parts, of which every history has at least one a cell; and whole people, of those
    # that are published.
    chapter = finished.entry.chapter
    room = len(chapter.counts) * found.histories / PARTS + _SHARE + 1 / sum(chapter.beginning)

    def level(name: str, told: object, exact: float) -> Claim:
        return claim(f"expected {name}", is_level(told, exact), f"is {told!r}, and it is {exact!r}")

    def near(name: str, told: float | None, share: float | None) -> Claim:
        agree = told is share if told is None or share is None else abs(told - share) <= room
        return claim(f"expected {name}", agree, f"is {told!r}, and it is {share!r} of the expected people")

    yield same("expected histories", stated["histories"], found.histories)
    yield level("level", stated["level"], found.level)
    for name in ("moved", "outside", "others"):
        yield near(name, stated[name], getattr(found, name))
    yield near("open", stated.get("open_people"), found.left_open)
    for name in ("unpredicted", "silent"):
        # Who is forgotten may have had any history.
        more = stated[name] - getattr(found, name)
        yield claim(f"expected {name}", 0 <= more <= finished.histories.versions[-1].missing, f"is off by {more:,}")
    yield same(
        "expected observers",
        [(one["observer"], one["bounded"]) for one in stated["observers"]],
        [(one.observer, one.bounded) for one in found.observers],
    )
    for told, one in zip(stated["observers"], found.observers, strict=False):
        for name in ("level", "of_all"):
            yield level(f"{name} for {one.observer}", told[name], getattr(one, name))
        yield near(f"outside for {one.observer}", told["outside"], one.outside)


def _none(name: str, complaints: tuple[str, ...]) -> Claim:
    """A claim that holds if there is no complaint; the first one is told, with how many there are."""
    return all_of(name, (Claim("does not hold:", one) for one in complaints))


def _in_snapshot(entry: Entry, snapshot: Snapshot, forgotten: Path) -> tuple[int, int, Counter[int]]:
    """How many people of an entry are in a snapshot with the same values, and how many records that has.

    And the cells of those of its records whose people are forgotten.
    """
    rows, schema = 0, pa.schema([("high", pa.uint64()), ("low", pa.uint64()), ("cell", pa.int32())])

    def batches() -> Iterator[pa.RecordBatch]:
        nonlocal rows
        for digests, cells in snapshot_cells(entry, snapshot):
            rows += len(cells)
            yield pa.record_batch([digests[:, 0].copy(), digests[:, 1].copy(), cells.astype(np.int32)], schema=schema)

    with connect() as database:
        database.register("records", pa.RecordBatchReader.from_batches(schema, batches()))
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
