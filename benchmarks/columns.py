"""Wide tables, records as they are or a donor's: what stays, what is proven, and what it costs.

``python -m benchmarks.columns --adult adult.parquet [--census census_income_kdd.parquet]`` makes protocols for few and
for many columns, draws one release of each, and holds the counts of all pairs of columns against the true ones. Bound
and balance are computed again from the text of the protocol. Seconds are of processor time. Writes
``benchmarks/results/columns.json`` and ``columns.md``.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import funnel
from benchmarks.rows import Row, save_as_they_come, table
from benchmarks.wide_tables import ADULT, CENSUS, table_of
from funnel import Guarantee, Joint
from funnel.donors import ColumnsSolution
from funnel.recount import ReleasedProtocol
from funnel.recount.classes import PlainClasses
from funnel.recount.invariance import largest_imbalance, levels_by_prefix
from funnel.recount.source import Recount
from funnel.release.classes_document import classes_document

FOUR = ["education", "sex", "race", "relationship"]
FIVE = ["education", "sex", "occupation", "age", "relationship"]
LIP = funnel.LIP(1.0)
# What was unchanged where every different record had the posterior of exact counts, and how many posteriors there were.
BEFORE = {
    ("Adult", 4, "income", "lip:1.0"): (0.9340, 171),
    ("Adult", 5, "income", "lip:1.0"): (0.9139, 341),
    ("Adult", 12, "income", "lip:1.0"): (0.8838, 134),
    ("Adult", 12, "income", "lip:0.5"): (0.7507, 134),
    ("Adult", 12, "income", "lip:2.0"): (0.9582, 134),
    ("Adult", 12, "income", "ldp:1.0"): (0.7934, 134),
    ("Adult", 12, "income", "pml:1.0"): (0.8838, 134),
    ("Adult", 11, "marital-status", "lip:1.0"): (0.6603, 340),
    ("Census-Income", 12, "income", "lip:1.0"): (0.8906, 319),
}


def _before(row: Row) -> str:
    found = BEFORE.get((row["table"], row["columns"], row["secret"], row["guarantee"]))
    return "" if found is None else f"{found[0]:.4f} ({found[1]})"


def measured(name: str, path: Path, columns: list[str], secret: str, guarantee: Guarantee) -> Row:
    """One protocol and one release under it."""
    source = table_of(path, [secret, *columns])
    began = time.process_time()
    found = funnel.fit_columns(source, columns, guarantee, [secret])
    seconds = time.process_time() - began
    joint = Joint.from_table(source, [secret], columns)
    began = time.process_time()
    drawn = funnel.sanitise(source, found.protocol, shuffle=False, classes=found.classes)
    released = drawn.to_pandas().astype(str)
    drawing = time.process_time() - began
    questions = classes_document(found.classes).to_bytes()
    text, classes = ReleasedProtocol.parse(found.protocol.to_json()), PlainClasses.parse(questions)
    counted = _counted(source, secret, columns)
    began = time.process_time()
    imbalance = largest_imbalance(text, classes, counted)
    levels = levels_by_prefix(str(guarantee), text, classes, counted, [[column] for column in columns])
    again = time.process_time() - began
    assert all(level.holds for level in levels)
    assert imbalance <= 1e-12
    scores = _scores(joint, found, source, released)
    told = found.classes.counted(joint)
    return {
        "table": name,
        "columns": len(columns),
        "secret": secret,
        "guarantee": str(guarantee),
        "records": joint.n,
        "different": len(joint.inputs),
        "classes": len(found.classes.names),
        "unchanged": found.unchanged,
        "bound": found.bound,
        "drawn unchanged": float((source[columns].to_numpy() == released[columns].to_numpy()).all(axis=1).mean()),
        "by column": dict(found.by_column),
        "told by classes": _information(told),
        "told by records": _information(joint),
        "level": found.level,
        "levels again": [level.nats for level in levels],
        "imbalance": float(imbalance),
        "cells": len(scores),
        "within 1.96": float((np.abs(scores) < 1.96).mean()),
        "largest": float(np.abs(scores).max()),
        "seconds": seconds,
        "drawing": drawing,
        "again": again,
        "bytes": len(questions) + len(found.protocol.to_json()),
        "source bytes": path.stat().st_size,
    }


def _counted(source: pd.DataFrame, secret: str, columns: list[str]) -> Recount:
    rows = zip(*(source[column] for column in (secret, *columns)), strict=True)
    counts = Counter((row[:1], row[1:]) for row in rows)
    secrets, inputs = (tuple(sorted({cell[k] for cell in counts})) for k in (0, 1))
    return Recount((secret,), tuple(columns), secrets, inputs, counts, len(source), 0, "")


def _information(joint: Joint) -> float:
    """I(S;X) in nats."""
    law = joint.counts / joint.n
    seen = law > 0
    alone = law.sum(axis=1, keepdims=True) * law.sum(axis=0)
    return float((law[seen] * np.log(law[seen] / alone[seen])).sum())


def _scores(joint: Joint, found: ColumnsSolution, source: pd.DataFrame, released: pd.DataFrame) -> np.ndarray:
    """Of all cells of pairs of columns: published less true count, by its standard deviation under the protocol.

    Standard deviations are those for donors that are anybody of their class; who is alike is a donor more often. Cells
    of which fewer than five records are expected to change are left out.
    """
    moves, columns = found.protocol.matrix, joint.inputs.columns
    stays, goes = np.diag(moves), moves - np.diag(np.diag(moves))
    of_record = found.classes.of_records(joint.inputs)
    number = dict(zip(joint.inputs.symbols, of_record.tolist(), strict=True))
    of = np.array([number[row] for row in zip(*(source[column] for column in columns), strict=True)])
    sizes = np.bincount(of, minlength=len(stays))
    scores = []
    for pair in itertools.combinations(columns, 2):
        names = pd.MultiIndex.from_frame(source[list(pair)].drop_duplicates())
        cell, other = (names.get_indexer(pd.MultiIndex.from_frame(part[list(pair)])) for part in (source, released))
        true = np.zeros((len(names), len(stays)))
        np.add.at(true, (cell, of), 1)
        # P(published in the cell | class), of those who come to it from another class.
        comes = (true / np.maximum(sizes, 1)) @ goes
        within = np.minimum(1.0, stays + comes)
        variance = (true * within * (1 - within) + (sizes - true) * comes * (1 - comes)).sum(axis=1)
        published, counts = np.bincount(other, minlength=len(names)), true.sum(axis=1)
        some = variance >= 5
        scores.append((published - counts)[some] / np.sqrt(variance[some]))
    return np.concatenate(scores)


def page(rows: list[Row]) -> str:
    """The rows as a page."""

    def by_column(row: Row) -> str:
        shares = sorted(row["by column"].values())
        return f"{shares[0]:.3f} to {shares[-1]:.3f}"

    def cells(row: Row) -> list[Any]:
        return [
            f"{row['columns']} of {row['table']}",
            row["secret"],
            row["guarantee"],
            f"{row['different']:,}",
            row["classes"],
            f"**{row['unchanged']:.4f}**",
            f"{row['bound']:.4f}",
            _before(row),
            by_column(row),
            f"{row['told by classes']:.3f} of {row['told by records']:.3f}",
        ]

    def costs(row: Row) -> list[Any]:
        return [
            f"{row['columns']} of {row['table']}",
            row["secret"],
            row["guarantee"],
            f"{row['level']:.7f}",
            f"{max(row['levels again']):.7f}",
            f"{row['imbalance']:.0e}",
            f"{row['within 1.96']:.3f} of {row['cells']:,}, {row['largest']:.1f}",
            f"{row['seconds']:.1f}",
            f"{row['drawing']:.1f}",
            f"{row['again']:.1f}",
            f"{row['bytes'] / 1000:,.0f} / {row['source bytes'] / 1000:,.0f}",
        ]

    head = [
        "columns",
        "secret",
        "guarantee",
        "different records",
        "classes",
        "unchanged",
        "bound",
        "before",
    ]
    head += ["single columns unchanged", "nats told of the secret"]
    second = ["columns", "secret", "guarantee", "level", "level again", "imbalance", "z of pairs", "s", "s drawing"]
    second += ["s again", "kB: protocol / source"]
    lines = [
        "# Wide tables: records as they are, or a donor's",
        "",
        "`python -m benchmarks.columns`: `funnel.fit_columns` ([wide tables](../../docs/columns.md)) for columns of",
        "Adult and Census-Income, in classes of 200 records. *Unchanged* is the expected share of records published as",
        "they are, *bound* what no invariant protocol exceeds if records tell what their classes do. *Before*:",
        "unchanged (and posterior classes) where every different record had the posterior of its own exact counts.",
        "*Nats told*: I(S;X) of classes, and of records by their exact counts.",
        "",
        *table(head, map(cells, rows)),
        "",
        "*Level again* is the largest level of all prefixes of columns, *imbalance* the largest |P(Y = y) - P(X = y)|,",
        "both computed from the files of the protocol by `funnel.recount.invariance`. *z of pairs*: one release was",
        "drawn, and the counts of all cells of two columns are compared with the true ones: share of cells within 1.96",
        "standard deviations of the protocol, and the largest deviation. Seconds are of processor time, *s* to make",
        "and prove the protocol.",
        "",
        *table(second, map(costs, rows)),
        "",
    ]
    return "\n".join(lines)


def cases(adult: Path, census: Path | None) -> Iterator[Row]:
    """Every row, one after the other."""
    for columns in (FOUR, FIVE, ADULT):
        yield measured("Adult", adult, columns, "income", LIP)
    for guarantee in (funnel.LIP(0.5), funnel.LIP(2.0), funnel.LDP(1.0), funnel.PML(1.0)):
        yield measured("Adult", adult, ADULT, "income", guarantee)
    yield measured("Adult", adult, [column for column in ADULT if column != "marital-status"], "marital-status", LIP)
    if census is not None:
        yield measured("Census-Income", census, CENSUS, "income", LIP)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--adult", type=Path, default=Path("data/adult.parquet"))
    parser.add_argument("--census", type=Path)
    asked = parser.parse_args()
    save_as_they_come(cases(asked.adult, asked.census), "columns", page)
