"""Whole records of several rows of a person: what stays, what all rows tell together, and by whom it is found.

``python -m benchmarks.unit_donors --panel health_panel.parquet`` publishes nine columns of a panel whose waves are rows
of a person, each as it is or as that of a donor with as many rows (`funnel.history.donor_units`). Levels and shares
unchanged are computed again from the rows and the weights of the channels, by `funnel.recount`. Writes
``benchmarks/results/unit-donors.json`` and ``unit-donors.md``.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

import funnel
from benchmarks.followed_donors import SECRET, grouped
from benchmarks.rows import Row, save_as_they_come, table
from funnel.history.donor_units import publish_units
from funnel.recount.classes import PlainClasses
from funnel.recount.unit_donors import judge_units
from funnel.release.classes_document import classes_document
from tests.unit_panels import plain_release


@dataclass(frozen=True)
class Case:
    """A secret, its bound, and how many people; all of them without a number."""

    secret: str
    epsilon: float
    people: int | None


CASES = (Case("outwork", 1.0, 3_000), Case("outwork", 1.0, None), Case("married", 0.5, 3_000))


def rows_of(path: Path, case: Case) -> tuple[pa.Table, tuple[str, ...]]:
    """All rows of some people, of texts, and the columns that are published."""
    panel, columns = grouped(pd.read_parquet(path), case.secret)
    if case.people is not None:
        some = np.random.default_rng(1).choice(panel["id"].unique(), case.people, replace=False)
        panel = panel[panel["id"].isin(some)]
    return pa.Table.from_pandas(panel[["id", case.secret, *columns]], preserve_index=False), columns


def rows(path: Path) -> Iterator[Row]:
    """One for each row of a person, in each case."""
    for case in CASES:
        source, columns = rows_of(path, case)
        guarantee = funnel.LIP(case.epsilon)
        classes = funnel.fit_columns(source, list(columns), guarantee, secret=[case.secret]).classes
        began = time.process_time()
        found = publish_units(source, guarantee, classes, unit=["id"], secret=[case.secret], secret_bytes=SECRET)
        seconds, began = time.process_time() - began, time.process_time()
        plain = PlainClasses.parse(classes_document(classes).to_bytes())
        judged = judge_units(str(guarantee), plain.of, plain.names, plain_release(found, source, columns, case.secret))
        again = time.process_time() - began
        for row, step in enumerate(found.waves, 1):
            yield {
                "secret": case.secret,
                "epsilon": case.epsilon,
                "people": found.rows.count,
                "rows": source.num_rows,
                "classes": len(classes.names),
                "rare": int((found.outputs < 0).sum()),
                "row": row,
                "units": step.joint.n,
                "histories": step.histories,
                "unchanged": round(step.own or 0.0, 4),
                "level": round(step.level.value, 4),
                "all": round(found.own, 4),
                "recomputed": round(judged.figures.unchanged, 4),
                "level_again": round(judged.figures.level, 4),
                "complaints": list(judged.complaints),
                "seconds": round(seconds, 1),
                "seconds_again": round(again, 1),
            }


def page(found: list[Row]) -> str:
    """The rows as a page."""
    head = (
        "secret, bound",
        "people",
        "rows",
        "row of a person",
        "units",
        "histories",
        "unchanged",
        "level",
        "of all rows",
        "found again",
        "level found again",
        "seconds",
        "again",
    )
    lines = [
        (
            f"{one['secret']}, LIP {one['epsilon']:g}",
            f"{one['people']:,}",
            f"{one['rows']:,}",
            one["row"],
            f"{one['units']:,}",
            f"{one['histories']:,}",
            f"{100 * one['unchanged']:.1f} %",
            f"{one['level']:.4f}",
            f"{100 * one['all']:.1f} %",
            f"{100 * one['recomputed']:.1f} %",
            f"{one['level_again']:.4f}",
            one["seconds"],
            one["seconds_again"],
        )
        for one in found
    ]
    wrong = sum(len(one["complaints"]) for one in found)
    return "\n".join(
        [
            "# Whole records of several rows of a person",
            "",
            "Made by `python -m benchmarks.unit_donors`: nine columns of the health panel, whose waves are rows of a",
            "person in a random order; [donors](../../docs/history-theorems.md#whole-records-of-several-rows) have as",
            "many rows. *Found again* is what the second computation finds, with seconds of a processor; it has",
            f"{wrong or 'no'} complaints.",
            "",
            *table(head, lines),
            "",
        ]
    )


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--panel", type=Path, default=Path("health_panel.parquet"))
    save_as_they_come(rows(parser.parse_args().panel), "unit-donors", page)


if __name__ == "__main__":
    main()
