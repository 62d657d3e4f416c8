"""Whether the order of released rows carries anything: a table of labels of places by outputs, given its margins.

**Theorem.** Let every place of a file have a label that does not depend on how the rows were shuffled, and let the
order of the rows be each permutation with the same probability. Given how often each label and each output occurs, the
table of (label of the place, output there) has the multivariate hypergeometric distribution, whatever the source and
the outputs.

*Proof.* Given the outputs of all records, the order is uniform, so the places of one label hold a sample of the
multiset of outputs without replacement, and the places of the next label one of what is left. ∎

So one exact test serves for all that an order could give away: labels may be blocks of rows (is the file the same
everywhere?), the input or the secret of the record at that place in the source (does the file follow the source?), the
input or the secret that the record at this place would have if the file were sorted by it, or, for every second row,
the output in the row before it: given those rows, the ones between them are in uniformly random order too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from funnel.joint import FloatArray, IntArray
from funnel.tails import fisher, hypergeometric_two_sided

# Labels and outputs expected in fewer records of a cell are one class: alone they would dilute the test.
_RARE = 5


@dataclass(frozen=True)
class Association:
    """Result of the test of one table.

    Attributes
    ----------
    p_value : float
        A uniformly random order has one of at most t with a probability of at most t.
    label, output : int
        The cell that is least likely, -1 for the class of all rare ones.
    """

    p_value: float
    label: int
    output: int


def association(table: IntArray) -> Association:
    """Test that labels of places and outputs have nothing to do with each other.

    Parameters
    ----------
    table : ndarray of int64, shape (labels, outputs)
        Records by the label of their place and by their output.

    Notes
    -----
    *Proof that P(p <= t) <= t.* Given its margins, each cell of the table is hypergeometric, and so is each cell given
    those before it, row by row, among the records of its row and of its output that are left. So (1) the exact p-value
    of a cell is at most t with a probability of at most t, and the smallest times their number is; (2) the p-values
    given the past, put together by Fisher's combination, are. The result is twice the smaller of both, at most 1. Which
    classes are one, and which cells are tested, depends on the margins alone. ∎

    O(labels · outputs · √records).
    """
    classes, rows = _classes(table.sum(axis=1), table.sum(axis=0))
    outputs, columns = _classes(table.sum(axis=0), table.sum(axis=1))
    if len(rows) < 2 or len(columns) < 2:
        return Association(1.0, 0, 0)
    merged = np.zeros((len(rows), len(columns)), dtype=np.int64)
    np.add.at(merged, (classes[:, np.newaxis], outputs[np.newaxis, :]), table)
    cells = _each(merged)
    place = np.unravel_index(int(cells.argmin()), cells.shape)
    single, every = float(cells[place]) * cells.size, fisher(_chain(merged))
    return Association(min(1.0, 2 * single, 2 * every), int(rows[place[0]]), int(columns[place[1]]))


def _classes(totals: IntArray, others: IntArray) -> tuple[IntArray, IntArray]:
    """The class of each row, and which row each class is, -1 for that of all rare rows; empty rows are none.

    A row is rare if fewer than five records are expected in its cell of the commonest column.
    """
    n, commonest = int(totals.sum()), int(others.max(initial=0))
    common = totals * np.float64(commonest) >= _RARE * np.float64(max(n, 1))
    named = np.flatnonzero(common)
    classes = np.full(len(totals), len(named), dtype=np.int64)
    classes[named] = np.arange(len(named))
    if totals[~common].sum() > 0:
        return classes, np.append(named, -1)
    # Rows without a record add nothing, wherever they are put.
    return np.minimum(classes, max(len(named) - 1, 0)), named


def _each(table: IntArray) -> FloatArray:
    """The p-value of every cell alone."""
    rows, columns = np.broadcast_arrays(table.sum(axis=1, keepdims=True), table.sum(axis=0, keepdims=True))
    total = np.full(table.size, table.sum())
    found = hypergeometric_two_sided(table.reshape(-1), columns.reshape(-1), rows.reshape(-1), total)
    return np.asarray(found.reshape(table.shape))


def _chain(table: IntArray) -> FloatArray:
    """The p-value of every cell given those before it; the last row and column follow from the others."""
    # Records of this column and of any later one, in this row and in all rows that are left.
    left = table[::-1].cumsum(axis=0)[::-1]
    in_columns = left[:, ::-1].cumsum(axis=1)[:, ::-1]
    in_row = table[:, ::-1].cumsum(axis=1)[:, ::-1]
    cut = np.s_[:-1, :-1]
    parts = (table[cut], left[cut], in_row[cut], in_columns[cut])
    return hypergeometric_two_sided(*(part.reshape(-1) for part in parts))
