"""Groups of columns made for numbers and for estimates: what that buys over information, and costs.

``python -m benchmarks.group_goals --adult adult.parquet [--census census_income_kdd.parquet]`` publishes columns given
income by information, by variance and by estimation, and says of each what whole records keep, what they explain of the
numbers, and what they are worth for estimates. Times are seconds of processor time. Writes
``benchmarks/results/group-goals.json`` and ``group-goals.md``.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

import funnel
from benchmarks.groups import ADULT, CENSUS, ENDS, table_of
from funnel.estimation.grouped_errors import grouped_errors, grouped_worth
from funnel.groups import Shown
from funnel.groups.purposes import explained_by
from funnel.joint import Joint
from funnel.release.effective_channels import channel_rows, told_channels

RESULTS = Path(__file__).parent / "results"
FOUR = ["education", "sex", "race", "relationship"]
NUMBERED = ["education", "sex", "age", "hours-per-week"]
TOGETHER = [["education", "sex"], ["age", "hours-per-week"]]
# Least and largest numbers there can be.
RANGES = {"age": (17, 90), "hours-per-week": (1, 99), "weeks-worked-in-year": (0, 52)}
CENSUS_PEOPLE = 200


@dataclass(frozen=True)
class Line:
    """One release: what it was made by, and what it tells; errors of columns in percentage points, None if untold."""

    table: str
    bound: str
    utility: str
    kept: float
    explained: dict[str, float]
    worth: float
    errors: dict[str, float | None]
    schedule: str
    seconds: float


def numbers_of(columns: Sequence[str]) -> dict[str, dict[str, float | None]]:
    """The middle of every interval of the columns of numbers, by its name in `benchmarks.groups.table_of`."""
    found: dict[str, dict[str, float | None]] = {}
    for column in columns:
        if column in RANGES:
            low, high = RANGES[column]
            ends = (low - 1, *(end for end in ENDS[column]), high)
            names = [
                f"to {ENDS[column][0]}",
                *(f"{a + 1} to {b}" for a, b in pairwise(ENDS[column])),
                f"{ENDS[column][-1] + 1}-",
            ]
            found[column] = {name: (a + 1 + b) / 2 for name, (a, b) in zip(names, pairwise(ends), strict=True)}
    return found


def line(
    name: str,
    path: Path,
    columns: Sequence[str],
    groups: Sequence[Sequence[str]],
    bound: str,
    utility: str,
    people: int = 50,
) -> Line:
    """One release, made and measured."""
    joint = Joint.from_table(table_of(path, ["income", *columns]), ["income"], list(columns))
    # What no record has is no value.
    seen = {column: {symbol[j] for symbol in joint.inputs.symbols} for j, column in enumerate(joint.inputs.columns)}
    numbers = {
        column: {value: of for value, of in found.items() if value in seen[column]}
        for column, found in numbers_of(columns).items()
    }
    begun = time.process_time()
    made = funnel.publish_groups(
        joint,
        groups,
        funnel.parse_guarantee(bound),
        people=people,
        utility=utility,
        numbers=numbers if utility == "variance" else None,
        seed="a benchmark" if bound.startswith("r") else None,
    )
    seconds = time.process_time() - begun
    shown = Shown.of(joint, made.protocol)
    tables = grouped_errors(told_channels(made.protocol, channel_rows(shown, people), joint.n))
    errors = {
        table.columns[0]: None
        if not len(known := table.errors[~np.isnan(table.errors)])
        else 100 * float(np.median(known))
        for table in tables
        if len(table.columns) == 1
    }
    return Line(
        name,
        bound,
        utility,
        made.utility / made.entropy,
        explained_by(shown, numbers),
        grouped_worth(tables, joint.n),
        errors,
        str(made.schedule),
        seconds,
    )


def written(lines: Sequence[Line]) -> str:
    """The table as Markdown."""
    rows = [
        "# Groups made for numbers and for estimates",
        "",
        "| columns, given income | bound | made by | kept of H(X) | explained | worth for estimates | way | s |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for one in lines:
        explained = ", ".join(f"{column} {share:.1%}" for column, share in one.explained.items()) or "–"
        rows.append(
            f"| {one.table} | {one.bound} | {one.utility} | {one.kept:.1%} | {explained} | {one.worth:.1%} | "
            f"{one.schedule} | {one.seconds:.0f} |"
        )
    rows += ["", "Typical errors of the shares of every column, percentage points:", ""]
    for one in lines:
        told = ", ".join(f"{c} {'untold' if e is None else f'{e:.2g}'}" for c, e in one.errors.items())
        rows.append(f"- {one.table}, {one.bound}, by {one.utility}: {told}")
    return "\n".join(rows) + "\n"


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--adult", type=Path, required=True)
    parser.add_argument("--census", type=Path)
    asked = parser.parse_args()
    every = ("information", "variance", "estimation")
    singly = [[column] for column in NUMBERED]
    cases = [
        *(("four columns", asked.adult, FOUR, [[c] for c in FOUR], "lip:1.0", u, 50) for u in every[::2]),
        *(
            (name, asked.adult, NUMBERED, groups, bound, u, 50)
            for name, groups in (("education, sex, age, hours", singly), ("education × sex, age × hours", TOGETHER))
            for bound in ("lip:1.0", "lip:0.25")
            for u in every
        ),
        *(("education, sex, age, hours", asked.adult, NUMBERED, singly, "rlip:1.0,0.05", u, 50) for u in every),
        *(("twelve columns of Adult", asked.adult, ADULT, [[c] for c in ADULT], "lip:1.0", u, 50) for u in every),
    ]
    if asked.census is not None:
        groups = [[column] for column in CENSUS]
        cases += [("twelve of Census-Income", asked.census, CENSUS, groups, "lip:1.0", u, CENSUS_PEOPLE) for u in every]
    lines = []
    for case in cases:
        lines.append(line(*case))
        print(lines[-1], flush=True)
        (RESULTS / "group-goals.json").write_text(json.dumps([asdict(one) for one in lines], indent=2) + "\n")
        (RESULTS / "group-goals.md").write_text(written(lines))


if __name__ == "__main__":
    main()
