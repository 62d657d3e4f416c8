"""Wide tables, records as they are or a donor's: what stays, what is proven, and what it costs.

``python -m benchmarks.columns --adult adult.parquet [--census census_income_kdd.parquet]`` makes protocols for few and
for many columns, draws one release of each, and holds the counts of all pairs of columns against the true ones. Bound
and balance are computed again from the text of the protocol. Seconds are of processor time. Writes
``benchmarks/results/columns.json`` and ``columns.md``.
"""

from __future__ import annotations

import argparse
import itertools
import tempfile
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
from funnel import Guarantee, Joint, Protocol
from funnel.donors.protocol_table import write_protocol
from funnel.recount import ReleasedProtocol
from funnel.recount.invariance import largest_imbalance, levels_by_prefix
from funnel.recount.source import Recount

FOUR = ["education", "sex", "race", "relationship"]
FIVE = ["education", "sex", "occupation", "age", "relationship"]
LIP = funnel.LIP(1.0)
# What a prototype that drew column after column left unchanged (METHOD section 17).
BY_COLUMN = {("Adult", 4, "income"): 0.821, ("Adult", 5, "income"): 0.734}


def measured(name: str, path: Path, columns: list[str], secret: str, guarantee: Guarantee) -> Row:
    """One protocol and one release under it."""
    source = table_of(path, [secret, *columns])
    began = time.process_time()
    found = funnel.fit_columns(source, columns, guarantee, [secret])
    seconds = time.process_time() - began
    joint = Joint.from_table(source, [secret], columns)
    began = time.process_time()
    released = funnel.sanitise(source, found.protocol, shuffle=False).to_pandas()
    drawing = time.process_time() - began
    text = ReleasedProtocol.parse(found.protocol.to_json())
    counted = _counted(source, secret, columns)
    began = time.process_time()
    imbalance = largest_imbalance(text, counted)
    levels = levels_by_prefix(str(guarantee), text, counted, [[column] for column in columns])
    again = time.process_time() - began
    assert all(level.holds for level in levels)
    assert imbalance <= 1e-12
    with tempfile.TemporaryDirectory() as folder:
        write_protocol(found.protocol, Path(folder) / "protocol.parquet")
        size = (Path(folder) / "protocol.parquet").stat().st_size
    scores = _scores(joint, found.protocol, source, released)
    return {
        "table": name,
        "columns": len(columns),
        "secret": secret,
        "guarantee": str(guarantee),
        "records": joint.n,
        "different": len(found.protocol.inputs),
        "classes": found.classes,
        "unchanged": found.unchanged,
        "bound": found.bound,
        "drawn unchanged": float((source[columns].to_numpy() == released[columns].to_numpy()).all(axis=1).mean()),
        "by column": found.by_column,
        "information": _information(joint, found.protocol),
        "level": found.level,
        "levels again": [level.nats for level in levels],
        "imbalance": float(imbalance),
        "cells": len(scores),
        "within 1.96": float((np.abs(scores) < 1.96).mean()),
        "largest": float(np.abs(scores).max()),
        "seconds": seconds,
        "drawing": drawing,
        "again": again,
        "bytes": size,
        "source bytes": path.stat().st_size,
    }


def _counted(source: pd.DataFrame, secret: str, columns: list[str]) -> Recount:
    rows = zip(*(source[column] for column in (secret, *columns)), strict=True)
    counts = Counter((row[:1], row[1:]) for row in rows)
    secrets, inputs = (tuple(sorted({cell[k] for cell in counts})) for k in (0, 1))
    return Recount((secret,), tuple(columns), secrets, inputs, counts, len(source), 0, "")


def _information(joint: Joint, protocol: Protocol) -> float:
    """I(X;Y) over H(X) of whole records."""
    weights = protocol.sparse
    drawn = weights.values / 2.0**63
    mass = drawn * joint.p_input[weights.inputs]
    published = np.bincount(weights.outputs, mass, len(joint.inputs))
    return float(mass @ np.log(drawn / published[weights.outputs])) / joint.entropy


def _scores(joint: Joint, protocol: Protocol, source: pd.DataFrame, released: pd.DataFrame) -> np.ndarray:
    """Of all cells of pairs of columns: published less true count, by its standard deviation under the protocol.

    Cells that cannot change, and those of which fewer than five records are expected to change, are left out.
    """
    weights = protocol.sparse
    law, people = weights.values / 2.0**63, joint.counts.sum(axis=0)
    found = []
    for pair in itertools.combinations(joint.inputs.columns, 2):
        names = pd.MultiIndex.from_frame(source[list(pair)].drop_duplicates())
        places = [joint.inputs.columns.index(column) for column in pair]
        cell = names.get_indexer([(symbol[places[0]], symbol[places[1]]) for symbol in joint.inputs.symbols])
        # P(record x is published in cell A), of the pairs (x, A) that occur.
        flat, of = np.unique(weights.inputs * len(names) + cell[weights.outputs], return_inverse=True)
        chance = np.minimum(np.bincount(of, law), 1.0)
        spread = people[flat // len(names)] * chance * (1 - chance)
        variance = np.bincount(flat % len(names), spread, len(names))
        both = [
            np.bincount(names.get_indexer(pd.MultiIndex.from_frame(part[list(pair)])), minlength=len(names))
            for part in (source, released.astype(str))
        ]
        some = variance >= 5
        found.append((both[1] - both[0])[some] / np.sqrt(variance[some]))
    return np.concatenate(found)


def page(rows: list[Row]) -> str:
    """The rows as a page."""

    def by_column(row: Row) -> str:
        shares = sorted(row["by column"].values())
        return f"{shares[0]:.3f} to {shares[-1]:.3f}"

    def cells(row: Row) -> list[Any]:
        prototype = BY_COLUMN.get((row["table"], row["columns"], row["secret"]))
        return [
            f"{row['columns']} of {row['table']}",
            row["secret"],
            row["guarantee"],
            f"{row['different']:,}",
            row["classes"],
            f"**{row['unchanged']:.4f}**",
            f"{row['bound']:.4f}",
            "" if prototype is None or row["guarantee"] != str(LIP) else f"{prototype:.3f}",
            by_column(row),
            f"{row['information']:.3f}",
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
        "prototype by columns",
    ]
    head += ["single columns unchanged", "I(X;Y)/H(X)"]
    second = ["columns", "secret", "guarantee", "level", "level again", "imbalance", "z of pairs", "s", "s drawing"]
    second += ["s again", "kB: protocol / source"]
    lines = [
        "# Wide tables: records as they are, or a donor's",
        "",
        "`python -m benchmarks.columns`: `funnel.fit_columns` ([wide tables](../../docs/columns.md)) for columns of",
        "Adult and Census-Income. *Unchanged* is the expected share of records published as they are, *bound* what no",
        "invariant protocol that reads these columns exceeds, *prototype* what drawing column after column left.",
        "",
        *table(head, map(cells, rows)),
        "",
        "*Level again* is the largest level of all prefixes of columns, *imbalance* the largest |P(Y = y) - P(X = y)|,",
        "both computed from the text of the protocol by `funnel.recount.invariance`. *z of pairs*: one release was",
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
