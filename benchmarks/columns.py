"""Wide tables, records as they are or a donor's: what stays, what is proven, and what it costs.

``python -m benchmarks.columns --adult adult.parquet [--census census_income_kdd.parquet]`` makes protocols for few and
for many columns, and draws one release of each. Bound and balance are computed again from the text of the protocol.
Seconds are of processor time. Writes
``benchmarks/results/columns.json`` and ``columns.md``.
"""

from __future__ import annotations

import argparse
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
from funnel.recount.classes import PlainClasses
from funnel.recount.released import ReleasedProtocol
from funnel.recount.source import Recount
from funnel.release.classes_document import classes_document
from tests.whole_records import largest_imbalance, levels_by_prefix

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
    released = funnel.sanitise(source, found.protocol, shuffle=False, classes=found.classes).to_pandas().astype(str)
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
    distribution = joint.counts / joint.n
    seen = distribution > 0
    alone = distribution.sum(axis=1, keepdims=True) * distribution.sum(axis=0)
    return float((distribution[seen] * np.log(distribution[seen] / alone[seen])).sum())


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
    second = ["columns", "secret", "guarantee", "level", "level again", "imbalance", "s", "s drawing"]
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
        "both computed from the files of the protocol by `tests.whole_records`. Seconds are of processor time,",
        "*s* to make and prove the protocol. [Cross tables](cross-tables.md) of releases are on a page of their own.",
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
