"""Whole records about the same people over waves: what stays, what everything published tells, and by whom it is found.

``python -m benchmarks.followed_donors --panel health_panel.parquet`` publishes nine columns of the waves of a panel, a
record as it is or as a donor's who is followed (`funnel.history.followed_donors`). Classes are made from the first
wave. Levels and shares unchanged are computed again from the tables and the weights of the channels, by
`funnel.recount`. Writes ``benchmarks/results/followed-donors.json`` and ``followed-donors.md``.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

import funnel
from benchmarks.rows import Row, save_as_they_come, table
from funnel.donors.composition import Composition
from funnel.history.donor_step import over_classes
from funnel.history.followed_donors import DonorStep, FollowedDonors
from funnel.joint import Joint
from funnel.recount.classes import PlainClasses
from funnel.recount.followed_donors import judge_donors
from funnel.release.classes_document import classes_document
from tests.donor_panels import plain_version

COLUMNS = ("docvis", "hospvis", "edlevel", "age", "outwork", "female", "married", "kids", "hhninc", "self")
SECRET = b"thirty-two bytes for this panel.."[:32]
# Groups of numbers, and columns with more values than so many are numbers.
_GROUPS, _FEW = 5, 8
# A standard error that sums of floats make of none.
_NOTHING = 1e-4


@dataclass(frozen=True)
class Case:
    """A secret, its bound, whether only people of all waves are published, and how many waves there are."""

    secret: str
    epsilon: float
    in_all: bool
    waves: int
    budget_fraction: float


CASES = (
    Case("outwork", 1.0, True, 5, 0.8),
    Case("outwork", 1.0, False, 5, 0.8),
    Case("outwork", 1.0, False, 4, 0.999),
    Case("married", 1.0, False, 4, 0.8),
    Case("married", 0.5, False, 4, 0.8),
)


def grouped(panel: pd.DataFrame, secret: str) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """A panel of texts, numbers in groups, and the columns that are published."""
    columns = tuple(column for column in COLUMNS if column != secret)
    for column in columns:
        if panel[column].nunique() > _FEW:
            panel[column] = pd.qcut(panel[column], _GROUPS, labels=False, duplicates="drop")
    return panel.astype({column: str for column in (*columns, secret)}), columns


def waves_of(path: Path, case: Case) -> tuple[list[pa.Table], tuple[str, ...]]:
    """A table a wave, of texts, and the columns that are published."""
    panel = pd.read_parquet(path)
    years = sorted(panel["year"].unique())[: case.waves]
    panel = panel[panel["year"].isin(years)]
    if case.in_all:
        panel = panel[panel.groupby("id")["year"].transform("count") == case.waves]
    panel, columns = grouped(panel, case.secret)
    named = ["id", case.secret, *columns]
    return [pa.Table.from_pandas(panel[panel["year"] == year][named], preserve_index=False) for year in years], columns


def deviations(step: DonorStep, found: Composition) -> tuple[float, float, float]:
    """By how many standard errors counts of values are off: the root of the mean square, and the most.

    And the share of the values that are within 1.96 of them, made longer by that factor where it is above 1.
    """
    released, protocol, own = step.step.released, over_classes(step.step.channel), step.step.own
    assert released is not None
    assert own is not None
    errors, true = found.followed_errors(protocol, own), found.counts.sum(axis=(0, 1))
    published = {name: Counter(released[name].to_pylist()) for name in found.classes.columns}
    shown = np.array([published[column][value] for column, value in found.cells])
    varies = errors > _NOTHING
    off = np.abs(shown - true)[varies] / errors[varies]
    factor = float(np.sqrt((off**2).mean()))
    return factor, float(off.max()), float((off <= 1.96 * max(1.0, factor)).mean())


def rows(path: Path) -> Iterator[Row]:
    """One for each wave of each case."""
    for case in CASES:
        tables, columns = waves_of(path, case)
        guarantee, began = funnel.LIP(case.epsilon), time.process_time()
        first = Joint.from_table(tables[0], [case.secret], list(columns))
        found = funnel.fit_columns(first, columns, guarantee)
        followed = FollowedDonors(guarantee, found.classes, case.budget_fraction)
        steps = [
            followed.extend(one, key=["id"], secret=[case.secret], version=str(t), secret_bytes=SECRET)
            for t, one in enumerate(tables, 1)
        ]
        seconds, began = time.process_time() - began, time.process_time()
        plain = PlainClasses.parse(classes_document(found.classes).to_bytes())
        versions = [plain_version(step, one, columns, case.secret) for step, one in zip(steps, tables, strict=True)]
        judged = judge_donors(str(guarantee), plain.of, plain.names, versions)
        again = time.process_time() - began
        for t, (step, one, source) in enumerate(zip(steps, judged, tables, strict=True), 1):
            of_wave = Composition.of(Joint.from_table(source, [case.secret], list(columns)), found.classes)
            factor, farthest, inside = deviations(step, of_wave)
            yield {
                "secret": case.secret,
                "epsilon": case.epsilon,
                "people": "of all waves" if case.in_all else "all",
                "budget_fraction": case.budget_fraction,
                "classes": len(found.classes.names),
                "wave": t,
                "records": source.num_rows,
                "histories": step.step.histories,
                "alone": round(found.unchanged, 4) if t == 1 else None,
                "unchanged": round(step.step.own or 0.0, 4),
                "recomputed": round(one.figures.unchanged, 4),
                "drawn": round(float((step.stands_for == np.arange(source.num_rows)).mean()), 4),
                "level": round(one.figures.level, 4),
                "moved": one.figures.moved,
                "outside": one.figures.outside,
                "complaints": list(one.complaints),
                "factor": round(factor, 2),
                "farthest": round(farthest, 2),
                "inside": round(inside, 3),
                "seconds": round(seconds, 1),
                "seconds_again": round(again, 1),
            }


def page(found: list[Row]) -> str:
    """The rows as a page."""
    head = (
        "secret, bound",
        "people",
        "first version uses",
        "wave",
        "records",
        "histories",
        "unchanged",
        "found again",
        "level found again",
        "moved",
        "counts off, root mean square",
        "the most, standard errors",
        "within 1.96",
    )
    lines = [
        (
            f"{row['secret']}, LIP {row['epsilon']:g}",
            row["people"],
            row["budget_fraction"],
            row["wave"],
            f"{row['records']:,}",
            row["histories"],
            f"{100 * row['unchanged']:.1f} %",
            f"{100 * row['recomputed']:.1f} %",
            f"{row['level']:.4f}",
            row["moved"],
            row["factor"],
            row["farthest"],
            f"{100 * row['inside']:.0f} %",
        )
        for row in found
    ]
    wrong = sum(len(row["complaints"]) for row in found)
    return "\n".join(
        [
            "# Whole records about the same people",
            "",
            "Made by `python -m benchmarks.followed_donors`: nine columns of the health panel, records as they are or",
            "those of [followed donors](../../docs/history-theorems.md#followed-donors). *Moved* are people whose",
            "history alone is outside the bound for the secret of a version, because frequencies changed. *Found",
            f"again* is what the second computation finds; it has {wrong or 'no'} complaints. How far counts of the",
            "values of all columns are off is in the standard errors of",
            "[estimates](../../docs/history-theorems.md#followed-donors); intervals of 1.96 of them are longer by the",
            "root of the mean square where that is above 1.",
            "",
            *table(head, lines),
            "",
        ]
    )


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--panel", type=Path, default=Path("health_panel.parquet"))
    save_as_they_come(rows(parser.parse_args().panel), "followed-donors", page)


if __name__ == "__main__":
    main()
