"""Whole records for observers of any one column: what a protocol over classes of records could keep for them.

``python -m benchmarks.single_columns`` asks of a protocol over the classes of twelve columns of Adult that it is within
LIP 1 for observers of the record, and within SRLIP at several budgets for those who know any one of the columns. Such
an observer sees a record that agrees with the value they know, the person's own or that of a donor, or one that
does not agree. Donors are each as likely, whatever columns people have, which makes all conditions linear; HiGHS has
the optimum. What donors would be worth that share the value which an observer knows, whichever that is, is computed
too: no way to choose such donors is known. Writes ``benchmarks/results/single-columns.json`` and ``single-columns.md``.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array, eye_array, hstack, kron, vstack

from benchmarks.rows import Row, save_as_they_come, table
from benchmarks.whole_record_cases import SPEC
from funnel.donors.composition import Composition
from funnel.donors.growing import grown
from funnel.joint import FloatArray, Joint
from funnel.settings.disclosure_rules import Rules
from funnel.source.counting import count_joint
from funnel.spec import ReleaseSpec

# Of observers of the record, in nats; and the people of a class, at least.
_BUDGET, _LEAST = 1.0, 50
_KNOWING = (5.0, 4.0, 3.0, 2.0, 1.0)


def kept(composition: Composition, knowing: float | None, share: bool = False) -> float:
    """The largest share of records that stay, for observers of the record, and of one column within a budget.

    Variables are, as shares of all people, moves from class to class, also to other people of one's own, and who stays.
    Donors share the known value or not, as it happens, or all do.
    """
    people = composition.people
    sizes, c = people.sum(axis=0), len(people)
    size, p = len(sizes), sizes / sizes.sum()
    given = people / sizes
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

    inside = composition.counts.sum(axis=0)
    for k in range(size):
        bounded(k, people.sum(axis=1) / sizes.sum(), _BUDGET, np.ones(size), 1.0)
        for known in () if knowing is None else inside.T:
            prior = given @ known / known.sum()
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


def outside(joint: Joint, composition: Composition, budget: float) -> float:
    """The share of people whose class tells more of the secret than a budget, given one of their values."""
    people = composition.people
    given = people / people.sum(axis=0)
    known = composition.counts.sum(axis=0)
    priors = given @ known / known.sum(axis=0)
    of_class = composition.classes.of_records(joint.inputs)
    beyond = np.zeros(len(of_class), dtype=bool)
    for j, column in enumerate(joint.inputs.columns):
        cells = np.array([place for place, (name, _) in enumerate(composition.cells) if name == column])
        changes = np.log(given[:, of_class] / priors[:, cells[joint.inputs.codes[:, j]]])
        beyond |= np.abs(changes).max(axis=0) > budget
    return float(joint.counts[:, beyond].sum() / joint.n)


def rows() -> Iterator[Row]:
    """One for each budget of observers of one column."""
    joint = count_joint(ReleaseSpec.load(SPEC), lambda *_: None)
    composition = Composition.of(joint, grown(joint, _LEAST, Rules(by_class=True, dominance=0.995), ()))
    for knowing in (None, *_KNOWING):
        started = time.process_time()
        share = kept(composition, knowing)
        yield {
            "classes": len(composition.classes.names),
            "knowing": knowing,
            "kept": share,
            "kept_sharing": None if knowing is None else kept(composition, knowing, share=True),
            "outside": None if knowing is None else outside(joint, composition, knowing),
            "seconds": time.process_time() - started,
        }


def page(rows: list[Row]) -> str:
    """The rows as a page."""
    head = [
        "budget of observers of one column",
        "people whose class tells more",
        "records that stay at most",
        "if donors shared the known value",
        "s",
    ]

    def cells(row: Row) -> list[str]:
        known = row["knowing"] is not None
        return [
            f"{row['knowing']:.0f}" if known else "none",
            f"{row['outside']:.1%}" if known else "",
            f"**{row['kept']:.1%}**",
            f"{row['kept_sharing']:.1%}" if known else "",
            f"{row['seconds']:.1f}",
        ]

    lines = [
        "# Whole records for observers of any one column",
        "",
        f"`python -m benchmarks.single_columns`: twelve columns of Adult in {rows[0]['classes']} classes,",
        f"LIP {_BUDGET:.0f} for observers of the record, and a bound for those who know any one of the twelve",
        "columns of a person as well: *records that stay at most*, of all protocols that read classes.",
        "*People whose class tells more*: those of whom the share of the secret in their class differs by",
        "more than the budget (nats) from its share among all who have one of their values. So classes",
        "whose people have one value of a column, as `[groups] known` makes them, are what such a bound",
        "needs, and not all of twelve columns can be named. *If donors shared the known value*: the same, were",
        "the donor of everybody who leaves their class somebody with the value that the observer knows,",
        "whichever column that is. No choice of donors does so for all columns; how near one can come is open.",
        "",
        *table(head, map(cells, rows)),
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    save_as_they_come(rows(), "single-columns", page)
