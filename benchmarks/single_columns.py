"""Whole records for observers of any columns: what stays under a bound for them, in parts of classes and at all.

``python -m benchmarks.single_columns [--census census_income_kdd.parquet]`` makes protocols for twelve columns of Adult
(and of Census-Income) that are within LIP 1 for observers of the record, and within SRLIP at several budgets for
observers who know any one of the columns, or any two: those of `funnel.fit_columns` with ``known="single"`` and
``"pairs"``. Beside it, for Adult:
the optimum over classes that are not cut, donors being drawn at random or all sharing the known value; protocols that
exchange records by one shared value (`benchmarks.exchanges`), which are found, and no optimum; and an upper bound for
all donors, those that are chosen record by record included. Writes ``benchmarks/results/single-columns.json`` and
``single-columns.md``.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt
from scipy.optimize import linprog
from scipy.sparse import csr_array, eye_array, hstack, kron, vstack

import funnel
from benchmarks.exchanges import exchanged
from benchmarks.rows import Row, save_as_they_come, table
from benchmarks.whole_record_cases import SPEC
from benchmarks.wide_tables import CENSUS, table_of
from funnel.donors.composition import Composition
from funnel.donors.growing import grown
from funnel.errors import InfeasibleGuarantee
from funnel.guarantees.several import as_guarantee
from funnel.joint import FloatArray, IntArray, Joint
from funnel.settings.disclosure_rules import Rules
from funnel.settings.groups import AtOnce
from funnel.source.counting import count_joint
from funnel.spec import ReleaseSpec

BoolArray = npt.NDArray[np.bool_]
# Of observers of the record, in nats; and the people of a class, at least.
_BUDGET, _LEAST = 1.0, 50
_KNOWING = (5.0, 4.0, 3.0, 2.0, 1.0)
_KNOWING_TWO = (5.0, 4.0, 3.0, 2.0)
_RULES = Rules(by_class=True, dominance=0.995)


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
        return np.asarray(self.given @ self.inside / self.inside.sum(axis=0))

    @cached_property
    def inside(self) -> FloatArray:
        """People of each class with each value, shape (classes, values)."""
        found = np.zeros((self.given.shape[1], self.cells.max() + 1))
        for column in self.cells.T:
            np.add.at(found, (self.of_class, column), self.counts)
        return found

    def beyond(self, budget: float) -> BoolArray:
        """Records whose class changes a belief by more than a budget for observers of one value, shape (a,)."""
        priors, given = self.priors, self.given[:, self.of_class]
        found = np.zeros(len(self.of_class), dtype=bool)
        for column in self.cells.T:
            found |= np.abs(np.log(given / priors[:, column])).max(axis=0) > budget
        return found


def kept(records: Records, knowing: float | None, share: bool = False) -> float:
    """The largest share of records that stay, for observers of the record, and of one column within a budget.

    Variables are, as shares of all people, moves from class to class, also to other people of one's own, and who stays.
    Donors share the known value or not, as it happens, or all do.
    """
    given, size = records.given, records.given.shape[1]
    sizes = np.bincount(records.of_class, records.counts, size)
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

    inside = records.inside
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


def measured(name: str, joint: Joint, knowing: float | None, at_once: AtOnce = "single") -> Row:
    """What stays in parts of classes at a budget of observers of columns, or for observers of the record alone."""
    bounds = [funnel.LIP(_BUDGET), *([] if knowing is None else [funnel.SRLIP(knowing)])]
    known: tuple[()] | AtOnce = () if knowing is None else at_once
    started = time.process_time()
    try:
        found = funnel.fit_columns(
            joint, joint.inputs.columns, as_guarantee(bounds), known=known, least=_LEAST, rules=_RULES
        )
    except InfeasibleGuarantee:
        found = None
    return {
        "table": name,
        "knowing" if at_once == "single" else "knowing two": knowing,
        "parts": None if found is None else len(found.classes.names),
        "kept": None if found is None else found.unchanged,
        "bound": None if found is None else found.bound,
        "level": None if found is None else found.level,
        "seconds": time.process_time() - started,
        "outside": None,
    }


def rows(census: Path | None) -> Iterator[Row]:
    """One for each table and budget of observers of one column."""
    joint = count_joint(ReleaseSpec.load(SPEC), lambda *_: None)
    composition = Composition.of(joint, grown(joint, _LEAST, _RULES, ()))
    records = Records.of(joint, composition)
    for knowing in (None, *_KNOWING):
        yield {
            **measured("Adult", joint, knowing),
            "outside": None if knowing is None else float(records.counts[records.beyond(knowing)].sum() / joint.n),
            "by class": kept(records, knowing),
            "exchanging": None if knowing is None else exchanged(records, knowing, _BUDGET).kept(records),
            "sharing": None if knowing is None else kept(records, knowing, share=True),
            "at most": at_most(records, knowing),
        }
    yield from (measured("Adult", joint, knowing, "pairs") for knowing in _KNOWING_TWO)
    if census is not None:
        joint = Joint.from_table(table_of(census, ["income", *CENSUS]), ["income"], CENSUS)
        for knowing in (None, *_KNOWING):
            yield measured("Census-Income", joint, knowing)
        # The smallest takes many minutes.
        yield from (measured("Census-Income", joint, knowing, "pairs") for knowing in _KNOWING_TWO)


def page(rows: list[Row]) -> str:
    """The rows as a page."""
    head = [
        "table",
        "budget of observers of one column",
        "people whose class tells more",
        "parts",
        "records that stay, in parts",
        "bound for these parts",
        "level",
        "s",
    ]
    others = [
        "budget of observers of one column",
        "in parts",
        "by class",
        "exchanged by one shared value",
        "by class, if donors shared the known value",
        "any donors at most",
    ]

    def budget(row: Row) -> str:
        return "none" if row["knowing"] is None else f"{row['knowing']:.0f}"

    def share(row: Row, name: str) -> str:
        return "" if row.get(name) is None else f"{row[name]:.1%}"

    def cells(row: Row) -> list[str]:
        return [
            row["table"],
            budget(row),
            share(row, "outside"),
            str(row["parts"]),
            f"**{row['kept']:.1%}**",
            f"{row['bound']:.1%}",
            f"{row['level']:.6f}",
            f"{row['seconds']:.1f}",
        ]

    def of_two(row: Row) -> list[str]:
        numbers = [f"{row['knowing two']:.0f}", str(row["parts"] or ""), share(row, "kept") or "none"]
        level = "" if row["level"] is None else f"{row['level']:.6f}"
        return [row["table"], *numbers, share(row, "bound"), level, f"{row['seconds']:.1f}"]

    def compared(row: Row) -> list[str]:
        names = ("kept", "by class", "exchanging", "sharing", "at most")
        return [budget(row), *(share(row, name) for name in names)]

    lines = [
        "# Whole records for observers of any one column",
        "",
        "`python -m benchmarks.single_columns`: twelve columns of Adult and of Census-Income, LIP"
        f" {_BUDGET:.0f} for observers of the record, and a bound",
        'for observers who know any one of the twelve columns of a person as well (`known="single"`), in classes of'
        f" {_LEAST} records or more.",
        "",
        "- *People whose class tells more*: those of whom the share of the secret in their class differs by more than",
        "  the budget (nats) from its share among all who have one of their values.",
        "- *Records that stay, in parts*: classes are cut by how many donors the records need; no protocol between",
        "  these parts with donors drawn evenly keeps more than *bound*. *Level* is decided in whole numbers.",
        "- *s*: processor time, classes included.",
        "",
        *table(head, (cells(row) for row in rows if "knowing" in row)),
        "",
        'For observers of any one or any two columns (`known="pairs"`), by the same parts and programme:',
        "",
        *table(
            ["table", "budget of observers of one or two columns", "parts", "records that stay", "bound", "level", "s"],
            (of_two(row) for row in rows if "knowing two" in row),
        ),
        "",
        "Other donors, Adult:",
        "",
        "- *By class*: the optimum where classes are not cut.",
        "- *Exchanged by one shared value*: a record that leaves goes to a donor who has the same value of one of the",
        "  twelve columns, now of one and now of another, or to anybody. A protocol that was found, and no optimum.",
        "- *If donors shared the known value*: protocols that read classes, were the donor of everybody who leaves",
        "  their class a person with the value that the observer knows, whichever column that is.",
        "- *Any donors at most*: an upper bound for protocols that choose the donor of a record by all its columns.",
        "  It is not known how much of it can be reached.",
        "",
        *table(others, (compared(row) for row in rows if row["table"] == "Adult" and "knowing" in row)),
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--census", type=Path)
    save_as_they_come(rows(parser.parse_args().census), "single-columns", page)
