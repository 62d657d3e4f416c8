"""Whole records for observers of any one column: what can stay under a bound for them, by classes and at all.

``python -m benchmarks.single_columns`` asks of a protocol over the classes of twelve columns of Adult that it is within
LIP 1 for observers of the record, and within SRLIP at several budgets for observers who know any one of the columns.
Such an observer sees a record that agrees with the value they know, the person's own or a donor's, or a record that
does not agree. Donors are drawn at random from a class, which makes all conditions linear; HiGHS has the optimum. It is
computed for the classes as they are, for classes that are cut by whether they tell such an observer of a record more
than the budget, and for donors that all share the known value. Protocols that exchange records by one shared value
(`benchmarks.exchanges`) keep more; what these keep is found, and no optimum. The last figure is an upper bound for all
donors, those that are chosen record by record included. Writes ``benchmarks/results/single-columns.json`` and
``single-columns.md``.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt
from scipy.optimize import linprog
from scipy.sparse import csr_array, eye_array, hstack, kron, vstack

from benchmarks.exchanges import exchanged
from benchmarks.rows import Row, save_as_they_come, table
from benchmarks.whole_record_cases import SPEC
from funnel.donors.composition import Composition
from funnel.donors.growing import grown
from funnel.joint import FloatArray, IntArray, Joint
from funnel.settings.disclosure_rules import Rules
from funnel.source.counting import count_joint
from funnel.spec import ReleaseSpec

BoolArray = npt.NDArray[np.bool_]
# Of observers of the record, in nats; and the people of a class, at least.
_BUDGET, _LEAST = 1.0, 50
_KNOWING = (5.0, 4.0, 3.0, 2.0, 1.0)


@dataclass(frozen=True, eq=False)
class Records:
    """Whole records, and what observers believe about the secret of each.

    Attributes
    ----------
    given : ndarray of float64, shape (c, classes)
        P(secret | class).
    of_class : ndarray of int64, shape (a,)
        The class of every record.
    cells : ndarray of int64, shape (a, columns)
        The number of its value in every column; columns have no number in common.
    counts : ndarray of int64, shape (a,)
        People with each record.
    """

    given: FloatArray
    of_class: IntArray
    cells: IntArray
    counts: IntArray

    @classmethod
    def of(cls, joint: Joint, composition: Composition) -> Self:
        """Those of a table in its classes."""
        first = np.cumsum([0, *map(len, joint.inputs.texts[:-1])])
        of_class = composition.classes.of_records(joint.inputs)
        people = composition.people
        return cls(people / people.sum(axis=0), of_class, joint.inputs.codes + first, joint.counts.sum(axis=0))

    @property
    def prior(self) -> FloatArray:
        """P(secret), shape (c,)."""
        return np.asarray(self.given[:, self.of_class] @ self.counts / self.counts.sum())

    @property
    def priors(self) -> FloatArray:
        """P(secret | value), shape (c, values)."""
        inside = self.inside(self.of_class, self.given.shape[1])
        return np.asarray(self.given @ inside / inside.sum(axis=0))

    def inside(self, of_kind: IntArray, kinds: int) -> FloatArray:
        """People of each kind with each value, shape (kinds, values)."""
        found = np.zeros((kinds, self.cells.max() + 1))
        for column in self.cells.T:
            np.add.at(found, (of_kind, column), self.counts)
        return found

    def beyond(self, budget: float) -> BoolArray:
        """Records whose class changes a belief by more than a budget for observers of one value, shape (a,)."""
        priors, given = self.priors, self.given[:, self.of_class]
        found = np.zeros(len(self.of_class), dtype=bool)
        for column in self.cells.T:
            found |= np.abs(np.log(given / priors[:, column])).max(axis=0) > budget
        return found


def kept(records: Records, knowing: float | None, cut: bool = False, share: bool = False) -> float:
    """The largest share of records that stay, for observers of the record, and of one column within a budget.

    Variables are, as shares of all people, moves from class to class, also to other people of one's own, and who stays.
    Classes may be cut by whether a record is beyond the budget; beliefs remain those of the class. Donors share the
    known value or not, as it happens, or all do.
    """
    apart = records.beyond(knowing) if cut and knowing is not None else np.zeros(len(records.of_class), dtype=bool)
    names, of_kind = np.unique(2 * records.of_class + apart, return_inverse=True)
    given, size = records.given[:, names // 2], len(names)
    sizes = np.bincount(of_kind, records.counts, size)
    p, c = sizes / sizes.sum(), len(given)
    rows: list[FloatArray] = []

    def bounded(k: int, prior: FloatArray, budget: float, arrivals: FloatArray, own: float) -> None:
        """Rows of LIP for what comes to an output: a share of those who move from each class, and one's own."""
        for s in range(c):
            for sign in (1, -1):
                limit = prior[s] * math.exp(sign * budget)
                row = np.zeros(size * size + size)
                row[np.arange(size) * size + k] = sign * arrivals * (given[s] - limit)
                row[size * size + k] = own * sign * (given[s, k] - limit)
                rows.append(row / max(1e-12, np.abs(row).max()))

    inside = records.inside(of_kind, size)
    for k in range(size):
        bounded(k, records.prior, _BUDGET, np.ones(size), 1.0)
        for prior, known in () if knowing is None else zip(records.priors.T, inside.T, strict=True):
            own = known[k] / sizes[k] if share else float(known[k] > 0)
            bounded(k, prior, knowing or 0.0, known / sizes, own)
            if known[k] < sizes[k] and not share:
                bounded(k, prior, knowing or 0.0, known / sizes, 0.0)
    identity = eye_array(size)
    moves = vstack([kron(identity, np.ones((1, size))), kron(np.ones((1, size)), identity)])
    balance = hstack([moves, vstack([identity, identity])])
    aim = np.concatenate([np.zeros(size * size), -np.ones(size)])
    found = linprog(
        aim, csr_array(np.array(rows)), np.zeros(len(rows)), csr_array(balance), np.concatenate([p, p]), method="highs"
    )
    if not found.success:
        raise RuntimeError(f"the programme failed: {found.message}")
    return float(-found.fun)


def at_most(records: Records, knowing: float | None) -> float:
    """No donors leave more records as they are, if the published table is right on average.

    Take those who have a value, or all people; a secret s; and a side of the bound, with the limit l. Let d_x be how
    far P(s | class of x) is beyond l, below 0 within it. The condition at a record x that has the value: the sum of d
    over those who come there, x themselves and others with the value, is at most 0. Added up over all x with d_x > 0
    that is Σ p_x k_x d_x ≤ Σ_g z_g |d_g|, where k_x is the chance that x stays, and z_g people of a class g with
    d_g < 0 come. They have left, z_g ≤ Σ p_x (1 - k_x) over the x of g with the value; and there is room for them,
    Σ_g z_g ≤ Σ p_x (1 - k_x) over the x with d_x > 0. The largest Σ p_x k_x under all of these is the bound.
    """
    size, p = len(records.of_class), records.counts / records.counts.sum()
    entries: list[tuple[IntArray, IntArray, FloatArray]] = []
    limits: list[float] = []
    width = size

    def bounded(columns: IntArray, values: FloatArray, limit: float) -> None:
        entries.append((np.full(len(columns), len(limits)), columns, values))
        limits.append(limit)

    groups = [(np.arange(size), records.prior, _BUDGET)]
    if knowing is not None:
        for cell, prior in enumerate(records.priors.T):
            groups.append((np.flatnonzero((records.cells == cell).any(axis=1)), prior, knowing))
    for members, prior, budget in groups:
        for s in range(len(prior)):
            for sign in (1, -1):
                d = sign * (records.given[s] - prior[s] * math.exp(sign * budget))
                of = records.of_class[members]
                if not (over := members[d[of] > 0]).size:
                    continue
                classes = np.unique(of[d[of] < 0])
                come = width + np.arange(len(classes))
                width += len(classes)
                staying = p[over] * d[records.of_class[over]]
                bounded(np.concatenate([over, come]), np.concatenate([staying, d[classes]]) / np.abs(d).max(), 0.0)
                bounded(np.concatenate([over, come]), np.concatenate([p[over], np.ones(len(come))]), p[over].sum())
                for one, g in zip(come, classes, strict=True):
                    left = members[of == g]
                    bounded(np.append(left, one), np.append(p[left], 1.0), p[left].sum())
    rows, columns, values = (np.concatenate(part) for part in zip(*entries, strict=True))
    aim = np.zeros(width)
    aim[:size] = -p
    upper = np.full(width, np.inf)
    upper[:size] = 1.0
    found = linprog(
        aim,
        csr_array((values, (rows, columns)), shape=(len(limits), width)),
        limits,
        bounds=np.column_stack([np.zeros(width), upper]),
        method="highs",
    )
    if not found.success:
        raise RuntimeError(f"the programme failed: {found.message}")
    return float(-found.fun)


def rows() -> Iterator[Row]:
    """One for each budget of observers of one column."""
    joint = count_joint(ReleaseSpec.load(SPEC), lambda *_: None)
    composition = Composition.of(joint, grown(joint, _LEAST, Rules(by_class=True, dominance=0.995), ()))
    records = Records.of(joint, composition)
    for knowing in (None, *_KNOWING):
        started = time.process_time()
        yield {
            "classes": len(composition.classes.names),
            "knowing": knowing,
            "outside": None if knowing is None else float(records.counts[records.beyond(knowing)].sum() / joint.n),
            "kept": kept(records, knowing),
            "kept_cut": None if knowing is None else kept(records, knowing, cut=True),
            "kept_exchanging": None if knowing is None else exchanged(records, knowing, _BUDGET).kept(records),
            "kept_sharing": None if knowing is None else kept(records, knowing, share=True),
            "at_most": at_most(records, knowing),
            "seconds": time.process_time() - started,
        }


def page(rows: list[Row]) -> str:
    """The rows as a page."""
    head = [
        "budget of observers of one column",
        "people whose class tells more",
        "records that stay, by class",
        "by class, cut",
        "exchanged by one shared value",
        "by class, if donors shared the known value",
        "any donors at most",
        "s",
    ]

    def cells(row: Row) -> list[str]:
        known = row["knowing"] is not None
        return [
            f"{row['knowing']:.0f}" if known else "none",
            f"{row['outside']:.1%}" if known else "",
            f"**{row['kept']:.1%}**",
            f"**{row['kept_cut']:.1%}**" if known else "",
            f"**{row['kept_exchanging']:.1%}**" if known else "",
            f"{row['kept_sharing']:.1%}" if known else "",
            f"{row['at_most']:.1%}",
            f"{row['seconds']:.1f}",
        ]

    lines = [
        "# Whole records for observers of any one column",
        "",
        f"`python -m benchmarks.single_columns`: twelve columns of Adult in {rows[0]['classes']} classes,",
        f"LIP {_BUDGET:.0f} for observers of the record, and a bound for observers who know any one of the twelve",
        "columns of a person as well.",
        "",
        "- *People whose class tells more*: those of whom the share of the secret in their class differs by more than",
        "  the budget (nats) from its share among all who have one of their values.",
        "- *Records that stay, by class*: the optimum of protocols that read classes and draw donors at random.",
        "- *By class, cut*: the same, where every class is cut in two, by whether it tells more of a record. Observers",
        "  believe what the uncut class says. Most records of which it tells no more stay; the others are exchanged.",
        "- *Exchanged by one shared value*: a record that leaves goes to a donor who has the same value of one of the",
        "  twelve columns, now of one and now of another, or to anybody. This is a protocol that is within both bounds",
        "  for every record; no optimum is known. The share of the better of two attempts.",
        "- *If donors shared the known value*: protocols that read classes, were the donor of everybody who leaves",
        "  their class a person with the value that the observer knows, whichever column that is.",
        "- *Any donors at most*: an upper bound for protocols that choose the donor of a record by all its columns.",
        "  It is not known how much of it can be reached.",
        "",
        *table(head, map(cells, rows)),
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    save_as_they_come(rows(), "single-columns", page)
