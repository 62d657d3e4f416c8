"""Wide tables: the errors of shares under each weighting of the records that stay unchanged.

``python -m benchmarks.class_weights --adult adult.parquet --census census_income_kdd.parquet`` makes the optimal
protocol over classes for every weighting, and computes the variance of the count of every value of every column
exactly, from who takes whose place. Writes ``benchmarks/results/class-weights.json`` and ``class-weights.md``.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import numpy as np

import funnel
from benchmarks.rows import Row, save_as_they_come, table
from benchmarks.wide_tables import ADULT, CENSUS, table_of
from funnel import Guarantee, Joint
from funnel.certificate import Weighting
from funnel.donors.composition import Composition
from funnel.donors.growing import grown
from funnel.estimation.by_class import record_channel
from funnel.progress import quiet
from funnel.settings.disclosure_rules import Rules


def measured(name: str, path: Path, columns: list[str], secret: str, guarantee: Guarantee) -> Iterator[Row]:
    """A row for each weighting of one protocol."""
    columns = [column for column in columns if column != secret]
    joint = Joint.from_table(table_of(path, [secret, *columns]), [secret], columns).occurring
    classes = grown(joint, 200, Rules(by_class=True), (), quiet)
    counted, k = Composition.of(joint, classes).joint, len(classes.names)
    of = classes.of_records(joint.inputs)
    line = np.lexsort([*joint.inputs.codes.T[::-1], of])
    people = joint.counts.sum(axis=0)[line]
    values = [joint.inputs.codes[line, j] for j in range(len(columns))]
    for weights in get_args(Weighting):
        found = funnel.optimal(counted, guarantee, 1e-5, utility="unchanged", weights=weights)
        matrix = found.protocol.matrix
        channel = record_channel(matrix.reshape(1, k, 1, k), of[line], people)
        shares, relative, ratios = [], [], []
        for value in values:
            indicator = (value == np.arange(value.max() + 1)[:, np.newaxis]).astype(np.float64)
            counts, drawn = indicator @ people, (channel.T @ indicator.T).T
            variance = (drawn * (1 - drawn)) @ people
            shares += (np.sqrt(variance) / joint.n).tolist()
            relative += (np.sqrt(variance) / counts).tolist()
            ratios.append(float(variance.sum() / (counts * (1 - counts / joint.n)).sum()))
        yield {
            "table": name,
            "secret": secret,
            "guarantee": str(guarantee),
            "classes": k,
            "weights": weights,
            "unchanged": float(counted.p_input @ np.diagonal(matrix)),
            "error": float(np.mean(shares)),
            "relative": float(np.mean(relative)),
            "r": float(np.mean(ratios)),
        }


def page(rows: list[Row]) -> str:
    """All rows as a page."""
    head = ["table", "secret", "guarantee", "classes", "weights", "unchanged", "error", "relative", "added variance"]
    cells = [
        [
            *(row[name] for name in ("table", "secret", "guarantee", "classes", "weights")),
            f"{row['unchanged']:.4f}",
            f"{100 * row['error']:.4f}",
            f"{100 * row['relative']:.3f} %",
            f"{row['r']:.4f}",
        ]
        for row in rows
    ]
    lines = [
        "# Weights of records unchanged, and errors of shares",
        "",
        "`python -m benchmarks.class_weights`: twelve columns (eleven where one is the secret), the optimum over",
        "classes under each weighting. *Error* is the mean standard error of the share of a value, in points, over all",
        "values of all columns; *relative* the same as a part of the share; *added variance* that of the values of a",
        "column over what a sample of as many people has, the mean of all columns ([why records count alike for",
        "estimates](../../docs/columns.md#fewest-errors)).",
        "",
        *table(head, cells),
        "",
    ]
    return "\n".join(lines)


def cases(adult: Path, census: Path | None) -> Iterator[Row]:
    """Every row, one after the other."""
    for guarantee in (funnel.LIP(1.0), funnel.LIP(0.5)):
        yield from measured("Adult", adult, ADULT, "income", guarantee)
    yield from measured("Adult", adult, ADULT, "marital-status", funnel.LIP(1.0))
    if census is not None:
        for guarantee in (funnel.LIP(1.0), funnel.LIP(0.5)):
            yield from measured("Census-Income", census, CENSUS, "income", guarantee)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--adult", type=Path, default=Path("data/adult.parquet"))
    parser.add_argument("--census", type=Path)
    asked = parser.parse_args()
    save_as_they_come(cases(asked.adult, asked.census), "class-weights", page)
