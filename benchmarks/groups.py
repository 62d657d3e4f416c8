"""Groups of columns: what one bound for the whole record keeps, for a few columns against the optimum and for a dozen.

``python -m benchmarks.groups --adult adult.parquet [--census census_income_kdd.parquet]`` publishes columns of Adult
group by group under LIP 1, and compares what whole records tell with the certified optimum over the joint alphabet,
with independent GRR for every column, and with columns that are each the optimum for themselves; the latter two are
calibrated so that the whole record keeps the bound. Then a dozen columns of Adult and of Census-Income: time, size of
the protocol, and the level of all records that were drawn, by a second computation that shares no code. Times are
seconds of processor time. Writes ``benchmarks/results/groups.json`` and ``groups.md``.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

import funnel
from funnel.groups import Shown
from funnel.joint import FloatArray, Joint
from funnel.recount.grouped import record_level

RESULTS = Path(__file__).parent / "results"
BOUND = funnel.LIP(1.0)
FEW = (
    ("income", (("education",), ("sex",), ("race",), ("relationship",))),
    ("income", (("education", "sex"), ("race", "relationship"))),
    ("marital-status", (("education",), ("sex",), ("race",))),
    ("marital-status", (("education", "sex"), ("race",))),
)
ADULT = [
    "education",
    "sex",
    "occupation",
    "age",
    "relationship",
    "race",
    "workclass",
    "hours-per-week",
    "marital-status",
    "capital-gain",
    "capital-loss",
    "native-country",
]
CENSUS = [
    "education",
    "sex",
    "major-occupation-code",
    "age",
    "marital-stat",
    "race",
    "class-of-worker",
    "weeks-worked-in-year",
    "tax-filer-stat",
    "capital-gains",
    "citizenship",
    "major-industry-code",
]
# Upper ends of the intervals in which numbers are published.
ENDS = {
    "age": (24, 29, 34, 39, 44, 49, 54, 59, 64),
    "hours-per-week": (19, 34, 39, 40, 49),
    "weeks-worked-in-year": (0, 25, 51),
    "capital-gain": (0, 5000),
    "capital-gains": (0, 5000),
    "capital-loss": (0, 1800),
}


@dataclass(frozen=True)
class Few:
    """Few columns, where the optimum over the joint alphabet can be computed."""

    secret: str
    groups: str
    kept: float
    optimum: float
    bound: float
    grr: float
    per_column: float
    per_column_level: float
    level: float
    again: float
    prefixes: int
    bytes: int
    seconds: float


@dataclass(frozen=True)
class Many:
    """A dozen columns."""

    table: str
    rows: int
    distinct: int
    people: int
    kept: float
    level: float
    again: float
    records: int
    prefixes: int
    decided: int
    bytes: int
    made_seconds: float
    again_seconds: float
    columns: list[tuple[str, float, float]]


def table_of(path: Path, columns: Sequence[str]) -> pd.DataFrame:
    """Columns as text, numbers in intervals."""
    table = pq.read_table(path, columns=list(columns)).to_pandas()
    for column, ends in ENDS.items():
        if column in columns:
            edges = [-np.inf, *ends, np.inf]
            names = [
                f"to {ends[0]}",
                *(f"{low + 1} to {high}" for low, high in pairwise(ends)),
                f"{ends[-1] + 1}-",
            ]
            table[column] = pd.cut(pd.to_numeric(table[column]), edges, labels=names)
    return table.astype(str)


def few(path: Path, secret: str, groups: tuple[tuple[str, ...], ...]) -> Few:
    """One of the cases that the optimum is known for."""
    columns = [column for group in groups for column in group]
    table = table_of(path, [secret, *columns])
    joint = Joint.from_table(table, [secret], columns)
    begun = time.process_time()
    made = funnel.publish_groups(joint, groups, BOUND)
    seconds = time.process_time() - begun
    best = funnel.optimal(joint, BOUND, gap=1e-3 * joint.entropy, time_limit=60)
    alone = {column: _alone(table, secret, column) for column in columns}
    per_column = _calibrated(joint, lambda budget: _product(joint, {c: of(budget) for c, of in alone.items()}))
    sizes = {column: len({symbol[j] for symbol in joint.inputs.symbols}) for j, column in enumerate(columns)}
    grr = _calibrated(joint, lambda budget: _product(joint, {c: _grr(joint, c, budget) for c in sizes}))
    one_each = _product(joint, {column: of(1.0) for column, of in alone.items()})
    return Few(
        secret,
        ", then ".join(" × ".join(group) for group in groups),
        made.utility / joint.entropy,
        best.utility / joint.entropy,
        best.bound / joint.entropy,
        _told(joint, grr) / joint.entropy,
        _told(joint, per_column) / joint.entropy,
        _level(joint, one_each),
        made.level,
        record_level(made.protocol.to_json(), str(BOUND), counted(joint)).nats,
        sum(made.prefixes),
        len(made.protocol.to_json()),
        seconds,
    )


def many(name: str, path: Path, secret: str, columns: Sequence[str], people: int) -> Many:
    """A wide table, published column after column."""
    table = table_of(path, [secret, *columns])
    begun = time.process_time()
    joint = Joint.from_table(table, [secret], columns)
    made = funnel.publish_groups(joint, [[column] for column in columns], BOUND, people=people)
    made_seconds = time.process_time() - begun
    drawn = funnel.sanitise(pa.Table.from_pandas(table, preserve_index=False), made.protocol)
    records = set(zip(*(drawn.column(column).to_pylist() for column in made.protocol.columns), strict=True))
    begun = time.process_time()
    again = record_level(made.protocol.to_json(), str(BOUND), counted(joint), records)
    if not again.holds or again.missing:
        raise SystemExit(f"{name}: {again}")
    shown = Shown.of(joint, made.protocol)
    again_seconds = time.process_time() - begun
    of_columns = []
    for column in columns:
        channel = shown.channel([column])
        of_columns.append((column, shown.plain[column], channel.information / channel.entropy))
    return Many(
        name,
        joint.n,
        len(joint.inputs),
        people,
        made.utility / joint.entropy,
        made.level,
        again.nats,
        again.records,
        sum(made.prefixes),
        made.decided,
        len(made.protocol.to_json().encode()),
        made_seconds,
        again_seconds,
        of_columns,
    )


def counted(joint: Joint) -> dict[tuple[tuple[str, ...], tuple[str, ...]], int]:
    """Counts by secret and record, as the second computation takes them."""
    return {
        (joint.secret.symbols[s], joint.inputs.symbols[r]): int(joint.counts[s, r])
        for s, r in zip(*np.nonzero(joint.counts), strict=True)
    }


def _alone(table: pd.DataFrame, secret: str, column: str) -> Callable[[float], FloatArray]:
    joint = Joint.from_table(table, [secret], [column])
    known: dict[float, FloatArray] = {}

    def matrix(budget: float) -> FloatArray:
        if budget not in known:
            best = funnel.optimal(joint, funnel.LIP(budget), gap=1e-3, time_limit=10)
            order = [joint.inputs.symbols.index(value) for value in sorted(joint.inputs.symbols)]
            known[budget] = best.protocol.matrix[:, order]
        return known[budget]

    return matrix


def _grr(joint: Joint, column: str, budget: float) -> FloatArray:
    j = joint.inputs.columns.index(column)
    size = len({symbol[j] for symbol in joint.inputs.symbols})
    return (1 + (np.exp(budget) - 1) * np.eye(size)) / (np.exp(budget) + size - 1)


def _product(joint: Joint, matrices: dict[str, FloatArray]) -> FloatArray:
    """The channel of whole records of columns that are published independently, (b, records)."""
    whole = np.ones((1, len(joint.inputs)))
    for column, matrix in matrices.items():
        j = joint.inputs.columns.index(column)
        places = {value: x for x, value in enumerate(sorted({symbol[j] for symbol in joint.inputs.symbols}))}
        of_record = matrix[:, [places[symbol[j]] for symbol in joint.inputs.symbols]]
        whole = (whole[:, None, :] * of_record[None]).reshape(-1, whole.shape[1])
    return whole[whole.any(axis=1)]


def _level(joint: Joint, channel: FloatArray) -> float:
    masses = joint.p @ channel.T
    with np.errstate(divide="ignore"):
        lifts = np.log(masses / masses.sum(axis=0) / joint.p_secret[:, None])
    return float(np.abs(lifts[:, masses.sum(axis=0) > 0]).max())


def _calibrated(joint: Joint, family: Callable[[float], FloatArray]) -> FloatArray:
    """The member of a family with the largest budget whose whole records keep the bound."""
    low, high = 0.0, 8.0
    best = np.ones((1, len(joint.inputs)))
    for _ in range(9):
        middle = (low + high) / 2
        channel = family(middle)
        if _level(joint, channel) <= BOUND.epsilon:
            low, best = middle, channel
        else:
            high = middle
    return best


def _told(joint: Joint, channel: FloatArray) -> float:
    masses = channel * joint.p_input
    some = masses > 0
    independent = masses.sum(axis=1, keepdims=True) * joint.p_input
    return float((masses[some] * np.log(masses[some] / independent[some])).sum())


def page(results: list[Few], wide: list[Many]) -> str:
    """The results as markdown."""
    lines = [
        "# Groups of columns",
        "",
        "By `python -m benchmarks.groups`, LIP 1. *Kept* is I(X;Y) of whole records as a share of H(X), by what is",
        "published and not by what is behind labels. *Optimum* is the certified one over the joint alphabet, with the",
        "bound that no protocol exceeds; GRR and columns alone are calibrated so that the whole record keeps it.",
        "*Alone at 1* is the level of whole records where every column is the optimum for LIP 1 by itself. *Level* is",
        "the largest over all prefixes and outputs, *again* that over published records by a second computation. Times",
        "are seconds of processor time.",
        "",
        "| secret | groups | kept | optimum (at most) | of the optimum | GRR | columns alone | alone at 1 "
        "| level | again | prefixes | kB | s |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {r.secret} | {r.groups} | {r.kept:.3f} | {r.optimum:.3f} ({r.bound:.3f}) | {r.kept / r.optimum:.1%} "
        f"| {r.grr:.3f} | {r.per_column:.3f} | {r.per_column_level:.2f} | {r.level:.6f} | {r.again:.6f} "
        f"| {r.prefixes:,} | {r.bytes / 1000:,.0f} | {r.seconds:.0f} |"
        for r in results
    ]
    lines += [
        "",
        "## A dozen columns",
        "",
        "Column after column. *Decided* are prefixes and outputs whose posterior was decided in whole numbers;",
        "*again* is the level of all records that were drawn, by the second computation.",
        "",
        "| table | rows | distinct | people | kept | level | again | records | prefixes | decided | kB | made s "
        "| again s |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {m.table} | {m.rows:,} | {m.distinct:,} | {m.people} | {m.kept:.3f} | {m.level:.6f} | {m.again:.6f} "
        f"| {m.records:,} | {m.prefixes:,} | {m.decided:,} | {m.bytes / 1000:,.0f} | {m.made_seconds:.0f} "
        f"| {m.again_seconds:.0f} |"
        for m in wide
    ]
    for m in wide:
        lines += ["", f"{m.table}:", "", "| column | published as its plain value | kept of the column alone |"]
        lines += ["|---|---|---|"]
        lines += [f"| {column} | {plain:.1%} | {kept:.1%} |" for column, plain, kept in m.columns]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    return "\n".join([*lines, "", f"Peak memory {peak:,.0f} MB.", ""])


def _written(what: Few | Many) -> dict[str, object]:
    """As JSON, which knows no infinite number."""
    return {name: "infinite" if value == np.inf else value for name, value in asdict(what).items()}


def main() -> None:
    """Run all cases."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--adult", type=Path, required=True)
    parser.add_argument("--census", type=Path)
    arguments = parser.parse_args()
    results: list[Few] = []
    wide: list[Many] = []

    def noted(what: Few | Many) -> None:
        print(what, flush=True)
        content = {"few": [_written(result) for result in results], "many": [_written(one) for one in wide]}
        (RESULTS / "groups.json").write_text(json.dumps(content, indent=1) + "\n")
        (RESULTS / "groups.md").write_text(page(results, wide))

    wide.append(many("Adult", arguments.adult, "income", ADULT, 50))
    noted(wide[-1])
    for case in FEW:
        results.append(few(arguments.adult, *case))
        noted(results[-1])
    if arguments.census is not None:
        wide.append(many("Census-Income", arguments.census, "income", CENSUS, 200))
        noted(wide[-1])


if __name__ == "__main__":
    main()
