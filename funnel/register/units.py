"""Units of a register: people with several rows in one version, found again, drawn row by row, and noted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from funnel.errors import DataError
from funnel.frequencies.moves import Moves
from funnel.frequencies.public_counts import Frequencies
from funnel.history.changes import Changes
from funnel.history.expected_waves import ExpectedUnits
from funnel.history.following import VersionTerms
from funnel.history.observed import Secrets
from funnel.history.step import Step
from funnel.history.unit_rows import UnitRows, counted_cells, second_rows
from funnel.history.waves import CountedUnits, Draw, UnitVersion, Waves, follow_waves
from funnel.joint import IntArray, Joint
from funnel.progress import Progress, quiet
from funnel.register.entry import PEOPLE, ROWS
from funnel.register.entry_files import row_type
from funnel.register.look_up import FORGOTTEN_NODE, HISTORIES, LookUp, People
from funnel.register.people import write_people
from funnel.register.predicting import predicted_people
from funnel.register.preparing import DrawnPeople
from funnel.register.register import Register
from funnel.register.snapshot_rows import write_histories
from funnel.register.unit_rows import OrderedRows, digest_blocks, ordered_rows
from funnel.release.files import FileRef, private_folder
from funnel.release.snapshot import Snapshot
from funnel.sampling.keyed import RecordKey, decision_keys, encrypted_words
from funnel.sampling.row_words import WordKeys, decision_key


@dataclass(frozen=True, eq=False)
class Units(OrderedRows):
    """The units of a snapshot, with their histories.

    Attributes
    ----------
    nodes : ndarray of int64, shape (units,)
        The history of each; `FORGOTTEN_NODE` of those who are forgotten.
    changes : mapping of int to Changes
        By the ordinal of a chapter of the register's past.
    known : int
        Units of which something was published before.
    last : tuple of Changes
        By the ordinal of every version of the register: of the units whose last version it is.
    """

    nodes: IntArray
    changes: Mapping[int, Changes]
    known: int
    last: tuple[Changes, ...] = ()

    def moves(self, register: Register) -> list[Moves]:
        """The exact moves since every version of the register, from the last row there to the first one here."""
        return [
            Moves.counted(name, changes, distribution, self.joint)
            for changes, (name, distribution) in zip(self.last, register.distributions, strict=True)
        ]

    @property
    def first(self) -> Joint:
        """Counts of the first row of every unit."""
        return counted_cells(self.cells[self.rows.at(1)], self.joint)

    @property
    def forgotten(self) -> int:
        """Rows of units that are forgotten."""
        return int(np.count_nonzero(self.nodes[self.rows.units] == FORGOTTEN_NODE))


def observe_units(
    register: Register,
    snapshot: Snapshot,
    joint: Joint,
    record_key: RecordKey,
    one_secret: str | None,
    progress: Progress = quiet,
) -> Units:
    """Find the units of a snapshot and the history of each, and put the rows of each in an order.

    Raises
    ------
    SpecError
        If the rows of a unit have several secrets where ``one_secret`` says that they may not, or are too many.
    LedgerError
        If a file of the register is gone or was changed.
    DataError
        If the joint distribution is not that of the snapshot.

    Notes
    -----
    O(n log n) time, and arrays of some 100 bytes a row.
    """
    ordered = ordered_rows(snapshot, joint, record_key, one_secret, progress)
    first = counted_cells(ordered.cells[ordered.rows.at(1)], joint)
    lookup = LookUp(register, first)
    sought = np.empty(len(ordered.digests), dtype=row_type(PEOPLE))
    sought["high"], sought["low"] = ordered.digests["high"], ordered.digests["low"]
    sought["cell"] = ordered.cells[ordered.rows.at(1)]
    nodes, _ = lookup.found(sought, None)
    observed, last = lookup.counted()
    return Units(joint, ordered.rows, ordered.cells, ordered.digests, nodes, observed.changes, lookup.known, last)


def expected_units(
    register: Register, frequencies: Frequencies, secrets: Secrets, robust: bool
) -> ExpectedUnits | None:
    """What noisy tables tell of the units of a version; None where these are counted exactly.

    With limits of them where the bound is to hold for all that they leave open.

    Raises
    ------
    SpecError
        If the changes are not those since all versions of the register.
    LedgerError
        If a file of the register is gone or was changed.
    """
    rows = frequencies.rows
    if rows is None:
        return None
    who, observed = predicted_people(register, frequencies, secrets, robust=robust)
    limits = None if not robust or frequencies.noise is None else rows.limits(frequencies.noise.beta)
    within = rows.changes(frequencies.joint)
    return ExpectedUnits(who, replace(observed, of_units=True), within, rows.waves, limits)


def follow_units(
    register: Register,
    units: Units,
    terms: VersionTerms,
    record_key: RecordKey,
    secrets: Secrets,
    expected: ExpectedUnits | None = None,
) -> Waves:
    """Decide and draw all rows of a version; the words are those that the release draws with.

    For the units that are expected, where they are not counted exactly.
    """
    asked = UnitVersion(register.past, units.rows, units.cells, units.joint, units.nodes, terms)
    plan = CountedUnits(units.changes, True, secrets) if expected is None else expected
    return follow_waves(asked, plan, _drawing(units, record_key))


def people_of(units: Units, step: Step, before: IntArray, snapshot: Snapshot, work: Path) -> People:
    """The history before every row, in the order of the snapshot, as a file that it is drawn with.

    It is below 0 of rows that are drawn from what depends on nothing.
    """
    private_folder(work)
    nodes = silent_nodes(units.rows, before)
    of_groups = np.split(nodes, np.cumsum(snapshot.sizes)[:-1])
    histories = write_histories(work / HISTORIES, ((some, np.zeros(len(some), dtype=np.int8)) for some in of_groups))
    return People(step.observed, histories, units.forgotten, units.known)


def silent_nodes(rows: UnitRows, before: IntArray) -> IntArray:
    """The history before every row, and numbers of their own, -1, -2, …, of rows that have none."""
    return np.where(before < 0, FORGOTTEN_NODE + 1 - rows.places, before)


def drawn_units(units: Units, waves: Waves, step: Step, pairs: IntArray | None, work: Path) -> DrawnPeople:
    """What was drawn of every row and where every unit stands after its last one, as the register keeps it.

    Parameters
    ----------
    units : Units
    waves : Waves
    step : Step
        That of the waves, with its outputs named.
    pairs : ndarray of int64, shape (a + 1, b), or None
        What was counted of the draw by input and output of the drawing protocol: it has to be the same.

    Raises
    ------
    DataError
        If answers are not those that were counted.
    """
    spoken = np.flatnonzero(waves.outputs >= 0)
    if pairs is not None and not np.array_equal(_pairs(step, units, waves, spoken), pairs[:-1]):
        raise DataError("the answers, derived again, are not those that were drawn; run the release again")
    rows = np.empty(len(spoken), dtype=row_type(ROWS))
    whose = units.rows.units[spoken]
    rows["high"], rows["low"] = units.digests["high"][whose], units.digests["low"][whose]
    rows["row"], rows["cell"], rows["node"] = units.rows.places[spoken], units.cells[spoken], waves.after[spoken]
    rows = rows[np.lexsort((rows["row"], whose))]
    last = np.flatnonzero(np.append(np.diff(digest_blocks(rows), axis=0).any(axis=1), True))
    people = np.zeros(len(last), dtype=row_type(PEOPLE))
    for name in ("high", "low", "cell", "node"):
        people[name] = rows[name][last]
    private_folder(work)
    people_sha256, _ = write_people(work, [people])
    rows_sha256, written = write_people(work, [rows], ROWS)
    # A wave that nobody expects any history after, and that nobody is in, has none.
    names = {wave.version for wave in step.waves}
    chapters = [chapter for chapter in waves.past.chapters if chapter.version in names]
    parents, outputs = (np.concatenate([getattr(one, name) for one in chapters]) for name in ("parents", "outputs"))
    chapter = replace(step.chapter(parents, outputs), first=chapters[0].first)
    return DrawnPeople(
        chapter,
        FileRef(str(work / PEOPLE), people_sha256),
        written,
        FileRef(str(work / ROWS), rows_sha256),
        units.first if waves.fitted is None else step.joint,
        chapters[1].changes[len(waves.past) - len(chapters)] if len(chapters) > 1 else None,
        _second_rows(units) if waves.fitted is None else None,
    )


def _second_rows(units: Units) -> IntArray | None:
    """Units that are known by their secret, (c, 2), as `second_rows` has them; None where rows have several secrets."""
    secrets = units.cells // len(units.joint.inputs)
    if (secrets != secrets[units.rows.at(1)][units.rows.units]).any():
        return None
    known = units.nodes[units.rows.units] != FORGOTTEN_NODE
    rows = UnitRows(units.rows.units[known], units.rows.places[known])
    return np.stack([one.sum(axis=1) for one in second_rows(rows, units.cells[known], units.joint)], axis=1)


def _drawing(units: Units, record_key: RecordKey) -> Draw:
    """Draws the rows of a wave as the row engine will: by the digest of the unit and of what was decided."""
    decided, a = decision_key(record_key), len(units.joint.inputs)

    def draw(step: Step, wave: IntArray, before: IntArray) -> IntArray:
        digests = digest_blocks(units.digests[units.rows.units[wave]])
        keys = decision_keys(digests, step.decisions(before), decided)
        words = encrypted_words(keys, WordKeys.of(record_key, step.channel, decided=True).words)
        return step.drawn(before, units.cells[wave] % a, words)

    return draw


def _pairs(step: Step, units: Units, waves: Waves, spoken: IntArray) -> IntArray:
    """How many rows drew every output with every channel and input, in the order of `drawing_protocol`."""
    a, b = len(step.joint.inputs), len(step.channel.outputs)
    channels = step.channels_of(waves.before[spoken])
    observed = step.observed
    known = np.unique(step.channels_of(observed.nodes) * a + observed.inputs)
    place = np.searchsorted(known, channels * a + units.cells[spoken] % a)
    return np.bincount(place * b + waves.outputs[spoken], minlength=len(known) * b).reshape(len(known), b)
