"""Unit rows: the rows of a snapshot by their units, in a random order, and what is counted of the first ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from funnel.errors import DataError
from funnel.frequencies.unit_tables import UnitCounts
from funnel.history.unit_rows import MOST_ROWS, UnitRows, counted_cells, second_rows
from funnel.joint import IntArray, Joint
from funnel.progress import Progress, quiet
from funnel.register.entry import FORGOTTEN
from funnel.register.entry_files import row_type
from funnel.register.people import PersonArray, people_of
from funnel.register.snapshot_rows import cells_of, columns_of, row_groups
from funnel.release.snapshot import Snapshot
from funnel.sampling.key_column import KEY_COLUMN, stored_digests
from funnel.sampling.keyed import DigestArray, RecordKey
from funnel.sampling.unit_order import order_of_rows


@dataclass(frozen=True, eq=False)
class OrderedRows:
    """The rows of a snapshot in the order in which those of a unit are drawn.

    Attributes
    ----------
    joint : Joint
        Counts of all rows.
    rows : UnitRows
        Rows in the order of the snapshot; units are numbered by their digests.
    cells : ndarray of int64, shape (rows,)
    digests : ndarray of structured rows, shape (units,)
        ``high`` and ``low``, sorted.
    """

    joint: Joint
    rows: UnitRows
    cells: IntArray
    digests: PersonArray

    @property
    def counts(self) -> UnitCounts:
        """What is counted of first and second rows."""
        sizes = np.bincount(np.bincount(self.rows.units), minlength=MOST_ROWS + 1)[1:]
        first = counted_cells(self.cells[self.rows.at(1)], self.joint)
        return UnitCounts(first, *second_rows(self.rows, self.cells, self.joint), sizes)


def ordered_rows(
    snapshot: Snapshot,
    joint: Joint,
    record_key: RecordKey,
    one_secret: str | None,
    progress: Progress = quiet,
) -> OrderedRows:
    """Find the units of a snapshot, and put the rows of each in an order.

    It is pseudo-random, by the secret, the unit and the place of a row in the source: it has nothing to do with what is
    in the rows, nor with those of other units, and is the same again for the same source.

    Parameters
    ----------
    snapshot : Snapshot
    joint : Joint
        Counts of all of its rows.
    record_key : RecordKey
    one_secret : str or None
        Why the rows of a unit may not have several secrets (`funnel.spec.ReleaseSpec.one_secret`), if so.
    progress : callable, optional

    Raises
    ------
    SpecError
        If the rows of a unit have several secrets where they may not, or are too many.
    DataError
        If the joint distribution is not that of the snapshot.

    Notes
    -----
    O(n log n) time, and arrays of some 100 bytes a row.
    """
    found, cells = [], []
    for group in row_groups(snapshot.data.checked(), [*columns_of(joint), KEY_COLUMN]):
        found.append(people_of(stored_digests(group), row_type(FORGOTTEN)))
        cells.append(cells_of(group, joint))
        progress("looking up units", sum(map(len, cells)), snapshot.rows)
    units, of_rows = np.unique(np.concatenate(found), return_inverse=True)
    all_cells = np.concatenate(cells)
    if not np.array_equal(np.bincount(all_cells, minlength=joint.counts.size), joint.counts.ravel()):
        raise DataError("the joint distribution is not that of the snapshot; run the release again")
    rows = UnitRows.ordered(of_rows, order_of_rows(digest_blocks(units), of_rows, record_key))
    rows.require_bounded(all_cells // len(joint.inputs), joint.secret.columns, record_key.columns, one_secret)
    return OrderedRows(joint, rows, all_cells, units)


def digest_blocks(digests: PersonArray) -> DigestArray:
    """Digests as two numbers a row; shape (units, 2)."""
    return np.ascontiguousarray(np.stack([digests["high"], digests["low"]], axis=1))
