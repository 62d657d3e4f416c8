"""The optimiser on joint tables of 100 to 400 combinations: what is kept, what could be kept at most, and seconds.

``python -m benchmarks.many_inputs [--census census_income_kdd.parquet] [--panel health_panel.parquet]`` takes pairs and
triples of columns of the public tables with every categorical column as the secret. Cases are measured one after the
other and kept in ``benchmarks/results/many-inputs.json``; those that are there already are skipped, unless ``--again``.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pandas as pd

import funnel
from funnel.solver.budget import Budget

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "many-inputs.json"

# Numbers are grouped to so many equally wide groups at most; a column of more values than this is none of a pair.
_GROUPS, _MOST_VALUES = 16, 60
# Combinations that occur, of a joint table that is measured; secrets of so many values.
_LEAST, _MOST, _SECRETS = 100, 400, 50
# Joint tables for each secret, seconds, and the gap that is asked for, as a share of H(X).
_EACH, _LIMIT, _ASKED = 1, 30.0, 0.01
# The gap that nine tenths are to reach, and the largest that any may leave.
NINE_TENTHS, WORST = 0.02, 0.05


@dataclass(frozen=True)
class Row:
    """One joint table: shares are of H(X), seconds of processor time and of the clock."""

    table: str
    secret: str
    inputs: str
    c: int
    a: int
    guarantee: str
    kept: float
    most: float
    seconds: float
    clock: float

    @property
    def gap(self) -> float:
        """What is open, as a share of H(X)."""
        return self.most - self.kept


def grouped(table: pd.DataFrame) -> pd.DataFrame:
    """Categorical columns as texts, and numbers in a few groups."""
    columns = {}
    for name in table.columns:
        column = table[name]
        if column.nunique() <= _GROUPS or not pd.api.types.is_numeric_dtype(column):
            columns[name] = column.astype(str).astype("category")
        elif column.nunique() <= 128:
            columns[name] = pd.cut(column, _GROUPS).astype(str).astype("category")
    return pd.DataFrame({name: column for name, column in columns.items() if 2 <= column.nunique() <= _MOST_VALUES})


def combinations(table: pd.DataFrame, inputs: list[str]) -> int:
    """How many combinations of values occur."""
    number = np.zeros(len(table), dtype=np.int64)
    for name in inputs:
        number = number * (_MOST_VALUES + 1) + table[name].cat.codes
    return len(np.unique(number))


def chosen(table: pd.DataFrame) -> Iterator[tuple[str, list[str]]]:
    """For every column as the secret pairs and triples of others, drawn from a fixed seed."""
    random = np.random.default_rng(0)
    for secret in table.columns:
        others = [name for name in table.columns if name != secret]
        if table[secret].nunique() > _SECRETS:
            continue
        found = 0
        ways = [list(pair) for size in (2, 3) for pair in itertools.combinations(others, size)]
        for place in random.permutation(len(ways)):
            inputs = ways[place]
            if found == _EACH:
                break
            if _LEAST <= combinations(table, inputs) <= _MOST:
                found += 1
                yield secret, inputs


def measured(name: str, table: pd.DataFrame, secret: str, inputs: list[str], guarantee: funnel.Guarantee) -> Row:
    """Optimise for one joint table."""
    joint = funnel.Joint.from_table(table, secret=[secret], inputs=inputs)
    entropy = joint.entropy
    clock, processor = time.perf_counter(), time.process_time()
    # The safety stop counts processor time as well: what else the machine does changes nothing.
    found = funnel.optimal(joint, guarantee, gap=_ASKED * entropy, time_limit=Budget.of(_LIMIT, time.process_time))
    return Row(
        name,
        secret,
        " × ".join(inputs),
        len(joint.secret),
        int(np.count_nonzero(joint.p_input)),
        str(guarantee),
        found.utility / entropy,
        found.bound / entropy,
        time.process_time() - processor,
        time.perf_counter() - clock,
    )


def page(rows: list[Row]) -> str:
    """The results in Markdown."""
    gaps = np.array([row.gap for row in rows])
    lines = [
        "# From 100 to 400 combinations",
        "",
        f"{len(rows)} joint tables, a limit of {_LIMIT:g} s, shares of H(X). A gap of at most {NINE_TENTHS:.0%}: "
        f"{np.mean(gaps <= NINE_TENTHS):.0%} of them; the median is {np.median(gaps):.2%}, the largest "
        f"{gaps.max():.2%}. Processor time: {np.median([row.seconds for row in rows]):.1f} s in the middle, "
        f"{max(row.seconds for row in rows):.1f} s at most.",
        "",
        "| table | secret | inputs | c × a | guarantee | kept | at most | gap | processor time |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in sorted(rows, key=lambda row: -row.gap):
        lines.append(
            f"| {row.table} | {row.secret} | {row.inputs} | {row.c} × {row.a} | {row.guarantee} | {row.kept:.1%} "
            f"| {row.most:.1%} | {row.gap:.2%} | {row.seconds:.1f} s |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure what is not there yet."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--adult", default=HERE.parent / "data" / "adult.parquet", type=Path)
    parser.add_argument("--census", type=Path, help="census_income_kdd.parquet")
    parser.add_argument("--panel", type=Path, help="health_panel.parquet")
    parser.add_argument("--again", action="store_true", help="measure those that are there, too")
    parser.add_argument("--results", default=RESULTS, type=Path)
    asked = parser.parse_args()
    there = json.loads(asked.results.read_text()) if asked.results.exists() and not asked.again else []
    rows = [Row(**row) for row in there]
    known = {(row.table, row.secret, row.inputs, row.guarantee) for row in rows}
    for name, path in (("Adult", asked.adult), ("Census-Income", asked.census), ("health panel", asked.panel)):
        if path is None:
            continue
        table = grouped(pd.read_parquet(path))
        for number, (secret, inputs) in enumerate(chosen(table)):
            # Every other one of a secret by half the budget.
            guarantee = funnel.LIP((1.0, 0.5)[number % 2])
            if (name, secret, " × ".join(inputs), str(guarantee)) in known:
                continue
            rows.append(measured(name, table, secret, inputs, guarantee))
            print(rows[-1], f"gap {rows[-1].gap:.2%}", flush=True)
            asked.results.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")
            asked.results.with_suffix(".md").write_text(page(rows))


if __name__ == "__main__":
    main()
