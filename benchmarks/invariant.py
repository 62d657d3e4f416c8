"""The invariant optimum over real joint distributions: what stays, what is proven, and the whole programme beside it.

``python -m benchmarks.invariant [--limit SECONDS]`` solves joints of 2 to about 2,000 values of Adult, beside HiGHS on
the whole linear programme (where that has at most 60,000 variables) in the same run, each in a process of its own.
Seconds are of processor time. Writes ``benchmarks/results/invariant.json`` and ``invariant.md``. With ``--noise``
joints are known up to noise of epsilon 1, and the gap is 1e-3: ``invariant-noise.json`` and ``invariant-noise.md``.
"""

from __future__ import annotations

import argparse
import resource
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse as sp
from scipy.optimize import linprog

import funnel
from benchmarks.rows import Row, save_as_they_come, table
from funnel import Guarantee, Joint
from funnel.frequencies.public_counts import protect
from funnel.guarantees.base import ConeGuarantee
from funnel.joint import IntArray
from funnel.recount.count_box import CountBox
from funnel.recount.levels import plain_level
from funnel.settings.protection_settings import FrequencySettings
from funnel.solver.integer_balance import imbalance
from funnel.solver.invariant import counted

ADULT = Path("data/adult.parquet")
LIP = funnel.LIP(1.0)
# Secret, published columns, and what is asked for; without noise, and with.
CASES: list[tuple[str, list[str], Guarantee]] = [
    ("income", ["sex"], LIP),
    ("marital-status", ["relationship"], LIP),
    ("marital-status", ["education"], LIP),
    ("marital-status", ["education"], funnel.LDP(1.0)),
    ("income", ["education", "sex"], LIP),
    ("income", ["education", "sex"], funnel.SRLIP(1.0)),
    ("marital-status", ["education", "sex"], LIP),
    ("income", ["education 6", "sex", "income"], funnel.Attribute(1.0)),
    ("income", ["education 6", "sex", "income"], funnel.Attribute(2.0)),
    ("income", ["education 6", "sex", "age 4", "income"], funnel.Attribute(1.0)),
    ("income", ["education", "sex"], funnel.RLIP(1.0, 0.05)),
    ("marital-status", ["education", "occupation"], LIP),
    ("occupation", ["education", "relationship"], LIP),
    ("marital-status", ["education", "relationship", "race"], LIP),
    ("income", ["education", "occupation", "relationship"], LIP),
    ("income", ["education", "occupation", "relationship", "sex"], LIP),
    ("income", ["education", "occupation", "relationship", "race"], LIP),
    ("marital-status", ["education", "occupation", "sex", "race"], LIP),
    ("marital-status", ["education", "occupation", "race", "workclass"], LIP),
    ("income", ["education", "sex"], funnel.PerfectPrivacy()),
    ("marital-status", ["education", "sex"], funnel.PerfectPrivacy()),
]
BOTH = funnel.parse_guarantee("rlip:1.0,0.05 & srlip:1.0")
NOISY: list[tuple[str, list[str], Guarantee]] = [
    ("income", ["education 6", "sex", "age 2", "income"], funnel.Attribute(1.0)),
    ("income", ["education 6", "sex", "age 4"], BOTH),
    ("income", ["education 6", "sex", "age 4", "income"], funnel.Attribute(1.0)),
]
SCHOOL = ["Preschool", "1st-4th", "5th-6th", "7th-8th", "9th", "10th", "11th", "12th"]
EDUCATION = {
    **dict.fromkeys(SCHOOL, "below high school"),
    **dict.fromkeys(["Assoc-voc", "Assoc-acdm"], "associate"),
    **dict.fromkeys(["Masters", "Prof-school", "Doctorate"], "postgraduate"),
}
# Variables of the whole programme that HiGHS is given.
_WHOLE = 60_000
# Requested bound - utility, without noise and with.
_GAP, _NOISY_GAP = 1e-4, 1e-3


def source() -> pd.DataFrame:
    """Adult, with education in six values and age in four."""
    rows = pd.read_parquet(ADULT)
    rows["education 6"] = rows["education"].replace(EDUCATION)
    rows["age 2"] = np.where(rows["age"] < 40, "under 40", "40 and over")
    rows["age 4"] = pd.cut(rows["age"], [0, 29, 44, 59, 200]).astype(str)
    return rows


def measured(secret: str, columns: list[str], guarantee: Guarantee, limit: float, noise: float = 0.0) -> Row:
    """One optimum, decided again by the second computation, and the whole programme."""
    joint = Joint.from_table(source(), [secret], columns)
    if noise:
        joint = protect(joint, FrequencySettings(protection="noise", epsilon=noise, beta=0.01)).joint
    began = time.process_time()
    found = funnel.optimal(joint, guarantee, _NOISY_GAP if noise else _GAP, limit, utility="unchanged")
    seconds = time.process_time() - began
    # In kilobytes, and before anything but the optimum is computed.
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    again = _again(joint, guarantee, found.protocol.weights.tolist())
    whole, whole_seconds = _whole(joint, guarantee)
    return {
        "secret": secret,
        "columns": columns,
        "guarantee": str(guarantee),
        "secrets": len(joint.secret),
        "values": len(joint.inputs),
        "weighted": found.utility,
        "bound": found.bound,
        "status": found.status,
        "unchanged": funnel.measures.unchanged(joint, found.protocol).share,
        "level": guarantee.level(joint, found.protocol).value,
        "level again": again,
        "imbalance": float(imbalance(joint, found.protocol.weights)),
        "entries": int((found.protocol.weights > 0).sum()),
        "bytes": len(found.protocol.to_json()),
        "seconds": seconds,
        "whole": whole,
        "whole seconds": whole_seconds,
        "memory": memory,
    }


def _again(joint: Joint, guarantee: Guarantee, weights: list[list[int]]) -> float | None:
    """The level by the second computation, in plain whole numbers; None where that would take minutes."""
    if len(weights) > 300:
        return None
    columns = joint.inputs.columns
    reads = columns[: len(joint.secret.columns)] == joint.secret.columns
    width = len(joint.secret.columns) if reads else 0
    c = len(joint.secret)
    symbols = [symbol[width:] for symbol in joint.inputs.symbols]
    u = len(symbols) // c if reads else len(symbols)

    def by_secret(table: IntArray) -> IntArray:
        return np.stack([row[s * u : (s + 1) * u] if reads else row for s, row in enumerate(table)])

    bounds = joint.bounds
    box = None if bounds is None else CountBox.of(by_secret(bounds.lower), by_secret(bounds.upper), bounds.totals)
    published = tuple(symbols[:u])
    counts = by_secret(joint.counts).tolist()
    found = plain_level(str(guarantee), counts, weights, reads_secret=reads, published=published, box=box)
    assert found.holds
    return found.nats


def _whole(joint: Joint, guarantee: Guarantee) -> tuple[float | None, float | None]:
    """The optimum over all pairs with all conditions by HiGHS, and its seconds; None if it is too large or no cone."""
    seen = joint.p_input > 0
    distribution = joint.p_input[seen]
    n = len(distribution)
    if n * n > _WHOLE or not isinstance(guarantee, ConeGuarantee) or not seen.all() or joint.bounds is not None:
        return None, None
    began = time.process_time()
    conditions = sp.kron(sp.eye_array(n), sp.csr_array(guarantee.cone(joint)))
    sums, balance = (
        sp.kron(np.ones((1, n)), sp.eye_array(n)),
        sp.kron(sp.diags_array(1 / distribution), distribution[None]),
    )
    found = linprog(
        -np.diag(counted(joint, "root")).ravel(),
        A_ub=conditions,
        b_ub=np.zeros(conditions.shape[0]),
        A_eq=sp.vstack([sums, balance]),
        b_eq=np.ones(2 * n),
        bounds=(0, None),
        method="highs",
        options={"time_limit": 300},
    )
    return (None if found.status else float(-found.fun)), time.process_time() - began


def page(rows: list[Row], flags: str = "", gap: float = _GAP) -> str:
    """The rows as a page."""

    def cells(row: Row) -> list[object]:
        whole = "" if row["whole seconds"] is None else "over 300 s" if row["whole"] is None else f"{row['whole']:.4f}"
        return [
            ", ".join(row["columns"]),
            f"{row['secret']} ({row['secrets']})",
            row["guarantee"],
            f"{row['values']:,}",
            f"**{row['unchanged']:.4f}**",
            f"{row['weighted']:.4f}",
            f"{row['bound']:.4f}",
            whole,
            f"{row['level']:.7f}",
            "" if row["level again"] is None else f"{row['level again']:.7f}",
            f"{row['imbalance']:.0e}",
            f"{row['entries']:,}",
            f"{row['bytes'] / 1000:,.0f}",
            f"{row['seconds']:.1f}",
            f"{row['memory']:.0f}",
            "" if row["whole seconds"] is None else f"{row['whole seconds']:.1f}",
        ]

    head = [
        "published",
        "secret (values)",
        "bound asked for",
        "values",
        "unchanged",
        "by root weights",
        "certified bound",
    ]
    head += [
        "whole programme",
        "level",
        "level again",
        "imbalance",
        "entries",
        "kB as JSON",
        "s",
        "MB",
        "s whole programme",
    ]
    return "\n".join(
        [
            "# Invariant optima",
            "",
            f'`python -m benchmarks.invariant{flags}`: `funnel.optimal(…, utility="unchanged", gap={gap})` over real',
            "joint distributions of Adult. *Unchanged* is the expected share of records published as they are; the",
            "optimiser maximises it *by root weights*, and proves the *certified bound* for these.",
            "",
            "*Whole programme* is the optimum that HiGHS finds over all pairs of values with all conditions, in the",
            "same run. *Level again* is that of the second computation, *imbalance* the largest difference between a",
            "published and a true probability. Seconds are of processor time, *MB* the memory of the process by then.",
            "",
            *table(head, map(cells, rows)),
            "",
        ]
    )


def main() -> None:
    """Measure, and write the page after each row."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limit", type=float, help="seconds for each; 30, and 60 with noise")
    parser.add_argument("--noise", action="store_true")
    asked = parser.parse_args()
    limit = asked.limit or (60.0 if asked.noise else 30.0)
    with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as processes:
        if asked.noise:
            with_noise = processes.map(measured, *zip(*((*case, limit, 1.0) for case in NOISY), strict=True))
            save_as_they_come(with_noise, "invariant-noise", partial(page, flags=" --noise", gap=_NOISY_GAP))
        else:
            plain = processes.map(measured, *zip(*((*case, limit) for case in CASES), strict=True))
            save_as_they_come(plain, "invariant", page)


if __name__ == "__main__":
    main()
