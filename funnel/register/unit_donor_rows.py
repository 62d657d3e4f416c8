"""Unit donor rows: whose row is published for each row of units in a version of whole records, for a register."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from funnel.errors import SpecError
from funnel.history.donor_channels import require_kept
from funnel.history.donor_step import over_classes
from funnel.history.donor_units import DrawnUnits, UnitTable
from funnel.history.following import VersionTerms
from funnel.history.step import Step
from funnel.history.unit_rows import MOST_MEMBERS
from funnel.joint import IntArray
from funnel.register.donor_rows import DonorRows, drawing_of_classes
from funnel.register.entry import PEOPLE, ROW_DONORS, ROWS
from funnel.register.entry_files import row_type
from funnel.register.following import Deciding
from funnel.register.look_up import FORGOTTEN_NODE
from funnel.register.people import people_of, write_people
from funnel.register.preparing import DrawnPeople
from funnel.register.snapshot_rows import row_groups
from funnel.register.unit_rows import digest_blocks
from funnel.register.units import Units, silent_nodes
from funnel.release.files import FileRef, private_folder
from funnel.release.snapshot import Snapshot
from funnel.sampling.donors import RECORD_COLUMN
from funnel.sampling.key_column import KEY_COLUMN, key_array
from funnel.sampling.keyed import DigestArray, RecordKey, decision_keys
from funnel.sampling.random_words import WordArray
from funnel.sampling.row_words import KeyedWords, WordKeys, decision_key
from funnel.tables import numbers_of


@dataclass(frozen=True, eq=False)
class UnitDonorRows(DonorRows):
    """What is drawn of the rows of units; made with `draw_unit_donors`.

    Attributes
    ----------
    units : Units
    drawn : DrawnUnits
    """

    units: Units
    drawn: DrawnUnits

    @property
    def rare(self) -> int:
        """Rows of units with a rare number of rows: each is published as anybody's."""
        return int(np.count_nonzero(self.drawn.before < 0)) - self.units.forgotten

    def noted(self, pairs: IntArray, work: Path) -> DrawnPeople:
        """See `DonorRows.noted`: all rows, whose each is, and where every unit stands after its last one."""
        self.require_drawn(pairs)
        units, drawn, places = self.units, self.drawn, self.units.rows.places
        of_known = units.nodes[units.rows.units] != FORGOTTEN_NODE
        kept = np.lexsort((places, units.rows.units))
        kept = kept[of_known[kept]]
        rows, donors = (people_of(self.digests[kept], row_type(name)) for name in (ROWS, ROW_DONORS))
        rows["row"], rows["cell"], rows["node"] = places[kept], self.cells[kept], np.maximum(drawn.after[kept], 0)
        of = self.stands_for[kept]
        donors["row"], donors["of_row"] = places[kept], places[of]
        donors["of_high"], donors["of_low"] = self.digests[of].T
        last = np.append(np.diff(units.rows.units[kept]) > 0, True)
        people = people_of(self.digests[kept[last]], row_type(PEOPLE))
        people["cell"], people["changed"], people["node"] = rows["cell"][last], 0, rows["node"][last]
        private_folder(work)
        people_sha256, _ = write_people(work, [people])
        rows_sha256, written = write_people(work, [rows], ROWS)
        donors_sha256, _ = write_people(work, [donors], ROW_DONORS)
        chapters = drawn.past.chapters
        parents, outputs = (np.concatenate([getattr(one, name) for one in chapters]) for name in ("parents", "outputs"))
        return DrawnPeople(
            replace(self.step.chapter(parents, outputs), first=chapters[0].first),
            FileRef(str(work / PEOPLE), people_sha256),
            written,
            FileRef(str(work / ROWS), rows_sha256),
            drawn.first,
            drawn.within,
            donors=FileRef(str(work / ROW_DONORS), donors_sha256),
        )


def draw_unit_donors(snapshot: Snapshot, units: Units, terms: VersionTerms, record_key: RecordKey) -> UnitDonorRows:
    """Decide and draw the rows of units, one after the other, and whose row is published for each.

    Parameters
    ----------
    snapshot : Snapshot
        With classes and numbers of records.
    units : Units
        From `observe_units`, before anything is published of them.
    terms : VersionTerms
    record_key : RecordKey
        With the register's secret.

    Raises
    ------
    SpecError
        If a unit has too many rows, or all rows as a whole would be outside the bound for this version alone.
    DataError
        If every number of rows is rare.

    Notes
    -----
    Some 200 bytes a row.
    """
    rows, joint, k = units.rows, units.joint, len(units.joint.inputs)
    named = ", ".join(map(repr, record_key.columns))
    rows.require_few(MOST_MEMBERS, " that are published as whole records", f"units ({named})")
    digests = digest_blocks(units.digests)[rows.units]
    decided = decision_key(record_key)

    def words(step: Step, nodes: IntArray, at: IntArray, attempt: int | None) -> WordArray:
        return _words(record_key, step, decision_keys(digests[at], step.decisions(nodes), decided), attempt)

    table = UnitTable.of(rows, units.cells, joint, units.nodes[rows.units] != FORGOTTEN_NODE)
    drawn = table.drawn(terms, words)
    step, nodes = drawn.step, silent_nodes(rows, drawn.before)
    if not require_kept(terms.guarantee).holds_for(joint, over_classes(step.channel).weights):
        raise SpecError(
            "people with many rows are so unlike those with few that all rows taken for those of different people "
            "would be outside the bound; set a smaller budget_fraction in [history]"
        )
    channels, keys = Deciding(step, record_key).of(nodes, digests)
    drawn = table.with_others(drawn, lambda attempt: _words(record_key, step, keys, attempt))
    spoken = drawn.before >= 0
    read = (channels * (2 * k + 1) + drawn.read) * k + units.cells % k
    drawing = drawing_of_classes(step, np.unique(read[spoken]), table.anybody[k:])
    records = [numbers_of(group.column(0)) for group in row_groups(snapshot.data.checked(), [RECORD_COLUMN])]
    return UnitDonorRows(
        step,
        digests,
        nodes,
        np.zeros(len(nodes), dtype=np.int64),
        units.cells,
        np.concatenate(records).astype(np.int64),
        drawn.read,
        drawn.outputs,
        drawn.stands_for,
        drawing,
        units,
        drawn,
    )


def _words(record_key: RecordKey, step: Step, keys: DigestArray, attempt: int | None) -> WordArray:
    """Words of rows and what is decided about them: to draw with, or for the nth donor."""
    batch = pa.RecordBatch.from_arrays([key_array(keys)], names=[KEY_COLUMN])
    words = KeyedWords(WordKeys.of(record_key, step.channel, decided=True))
    return words.to_draw(batch) if attempt is None else words.to_donate(batch, attempt)
