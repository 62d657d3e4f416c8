"""What each combination of settings that is released keeps, on real tables.

``python -m benchmarks.combination_costs --adult adult.parquet --panel health_panel.parquet`` releases every combination
of guarantee, protection and utility in one channel that the rules accept: one version of Adult, and two waves of the
panel about the same people, with one row each or, for a third of them, two. It begins with those that take least, and
``--minutes`` of processor time end it: what is left is released by the next call. Figures are those of the public
report of the last version: the share of information kept, or of records unchanged where that is what is sought. They
go to ``benchmarks/results/combination-costs.json``, and ``python scripts/combinations.py`` shows them.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.parquet as pq

from tests.combinations import COMBINATIONS, ONE, PROTECTIONS, SAME, SINGLE, UNCHANGED, UNITS, Combination

RESULTS = Path(__file__).parent / "results"
_NAMES = {"outwork": "income", "married": "marital-status", "kids": "sex"}
_PEOPLE = 3000


class OnAdult(Combination):
    """A release of Adult: marital status and sex, given income."""

    path: ClassVar[Path]

    @property
    def settings(self) -> dict[str, Any]:
        """That of the panel with other columns."""
        settings = super().settings
        publish = [_NAMES[column] for column in settings["publish"]]
        categories = {column: _categories(self.path, column) for column in _NAMES.values()}
        return {**settings, "secret": ["income"], "publish": publish, "categories": categories}

    def source(self, number: int) -> pa.Table:
        """All records."""
        return _adult(self.path)


class OnPanel(Combination):
    """A release of two waves of the panel: kids and married, given outwork."""

    size: ClassVar[int] = _PEOPLE


@cache
def _adult(path: Path) -> pa.Table:
    return pq.read_table(path, columns=list(_NAMES.values()))


@cache
def _categories(path: Path, column: str) -> list[str]:
    return sorted(set(_adult(path)[column].to_pylist()))


def accepted() -> list[Combination]:
    """The combinations in one channel that are released, each on its table; without noise first."""
    of_people = {SINGLE: OnAdult, SAME: OnPanel, UNITS: OnPanel}
    ordered = sorted(COMBINATIONS, key=lambda one: PROTECTIONS.index(one.protection))
    return [
        of_people[one.people](one.width, one.people, one.protection, one.guarantee, one.utility)
        for one in ordered
        if one.width == ONE and one.people in of_people and not one.refusals
    ]


def share_of(combination: Combination) -> float:
    """Release it, and read the share of information kept, or of records unchanged, from the report."""
    with tempfile.TemporaryDirectory() as place:
        folder = combination.release(Path(place) / "project")[-1]
        report = json.loads((folder.root / "report.json").read_text(encoding="utf-8"))
    found = report["unchanged"] if combination.utility == UNCHANGED else report["figures"]
    return float(found["share"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--adult", required=True, type=Path, help="adult.parquet")
    parser.add_argument("--panel", required=True, type=Path, help="health_panel.parquet")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder for combination-costs.json")
    parser.add_argument(
        "--minutes", type=float, default=10.0, help="of processor time, after which no release is begun"
    )
    arguments = parser.parse_args()
    OnAdult.path, os.environ["FUNNEL_PANEL"] = arguments.adult.resolve(), str(arguments.panel.resolve())
    path = arguments.results / "combination-costs.json"
    known: dict[str, float] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    combinations = accepted()
    for one in combinations:
        if str(one) not in known and time.process_time() < 60 * arguments.minutes:
            known[str(one)] = share_of(one)
            print(f"{one}: {known[str(one)]}", flush=True)
            path.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
    shares = {str(one): known[str(one)] for one in combinations if str(one) in known}
    path.write_text(json.dumps(shares, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
