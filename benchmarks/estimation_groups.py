"""Estimates from releases of groups: how often intervals at 95 % hold the truth, and what rounding costs.

``python -m benchmarks.estimation_groups --adult adult.parquet [--releases 300]`` publishes six columns of Adult given
income group by group under LIP 1, and simulates releases of the same records. Estimates are made as by `funnel
estimate`, from the rounded effective channels alone. Writes ``benchmarks/results/estimation-groups.json`` and ``.md``.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path

import numpy as np

import funnel
from benchmarks.groups import table_of
from funnel.estimation.grouped import of_counts
from funnel.estimation.told_channel import FEW, EffectiveChannels, ToldChannel
from funnel.groups import Schedule, Shown
from funnel.joint import FloatArray, IntArray, Joint
from funnel.release.effective_channels import channels_table

RESULTS = Path(__file__).parent / "results"
COLUMNS = ["education", "sex", "occupation", "age", "relationship", "race"]
PEOPLE = 50


@dataclass(frozen=True)
class Case:
    """One column or pair: cells that are told, and medians over them and over releases."""

    columns: tuple[str, ...]
    cells: int
    told: int
    coverage: float
    least: float
    error: float
    off: float
    half: float


class Releases:
    """Releases of the same records, drawn anew."""

    def __init__(self, shown: Shown, seed: int) -> None:
        order = np.argsort(shown.rows, kind="stable")
        rows, likely = shown.rows[order], shown.likely[order]
        start = np.searchsorted(rows, rows)
        total = np.cumsum(likely)
        # Where the laws of all records stand one after the other, a word of a record is a place in its own.
        within = total - (total[start] - likely[start])
        self._ends = rows + np.minimum(within, 1.0)
        self._published = shown.published[order]
        self._people = np.repeat(np.arange(len(shown.joint.inputs)), shown.joint.counts.sum(axis=0))
        self._random, self._shown = np.random.default_rng(seed), shown

    def draw(self) -> IntArray:
        """Codes of the published records (n, columns)."""
        places = np.searchsorted(self._ends, self._people + self._random.random(len(self._people)) * (1 - 1e-9))
        return self._shown.codes[self._published[np.minimum(places, len(self._published) - 1)]]


def counted(shown: Shown, told: ToldChannel, codes: IntArray) -> IntArray:
    """How often every output of a channel was published, all that are not told at the end."""
    columns = shown.protocol.columns
    at = [columns.index(column) for column in told.columns]
    place = {text: y for y, text in enumerate(told.outputs)}
    labels = [shown.protocol.labels[column] for column in told.columns]
    width = len(labels[-1])
    flat = codes[:, at[0]] * width + codes[:, at[1]] if len(at) > 1 else codes[:, at[0]]
    counts = np.zeros(len(place) + 1, dtype=np.int64)
    for code, number in zip(*(part.tolist() for part in np.unique(flat, return_counts=True)), strict=True):
        text = (labels[0][code // width], labels[1][code % width]) if len(at) > 1 else (labels[0][code],)
        counts[place.get(text, len(place))] += number
    return counts


def truth(joint: Joint, told: ToldChannel) -> FloatArray:
    """Shares of the cells."""
    places = [joint.inputs.columns.index(column) for column in told.columns]
    found, few = dict.fromkeys(told.inputs, 0.0), (FEW,) * len(told.columns)
    for symbol, share in zip(joint.inputs.symbols, joint.p_input.tolist(), strict=True):
        cell = tuple(symbol[j] for j in places)
        cell = cell if cell in found else few
        if cell in found:
            found[cell] += share
    return np.array(list(found.values()))


def main() -> None:
    """Simulate, and write both files."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--adult", type=Path, required=True)
    options.add_argument("--releases", type=int, default=300)
    asked = options.parse_args()
    joint = Joint.from_table(table_of(asked.adult, ["income", *COLUMNS]), ["income"], COLUMNS)
    made = funnel.publish_groups(
        joint, [[column] for column in COLUMNS], funnel.LIP(1.0), people=PEOPLE, schedule=Schedule(0.9, 4)
    )
    shown = Shown.of(joint, made.protocol)
    rows = [tuple(row.values()) for row in channels_table(shown, PEOPLE).to_pylist()]
    channels = EffectiveChannels(made.protocol.columns, rows, made.protocol.meant, joint.n)
    of_cases = [channels.of(some) for k in (1, 2) for some in combinations(COLUMNS, k)]
    exact = [truth(joint, told) for told in of_cases]
    releases = Releases(shown, 1)
    results: list[list[tuple[FloatArray, ...]]] = [[] for _ in of_cases]
    for _ in range(asked.releases):
        codes = releases.draw()
        for told, true, kept in zip(of_cases, exact, results, strict=True):
            found = of_counts(counted(shown, told, codes), told)
            held = np.where(np.isnan(found.errors), np.nan, (found.lower <= true) & (true <= found.upper))
            kept.append((held, found.errors, found.off, (found.upper - found.lower) / 2))
    cases = [_case(told, kept) for told, kept in zip(of_cases, results, strict=True)]
    content = {"records": joint.n, "releases": asked.releases, "cases": [asdict(case) for case in cases]}
    (RESULTS / "estimation-groups.json").write_text(json.dumps(content, indent=1) + "\n")
    (RESULTS / "estimation-groups.md").write_text(_page(joint.n, asked.releases, cases))


def _case(told: ToldChannel, kept: list[tuple[FloatArray, ...]]) -> Case:
    held, errors, off, half = (np.array(part) for part in zip(*kept, strict=True))
    known = ~np.isnan(held).all(axis=0)
    of_cells = np.nanmean(held[:, known], axis=0) if known.any() else np.array([np.nan])
    middle = [float(np.nanmedian(part[:, known])) if known.any() else float("nan") for part in (errors, off, half)]
    return Case(told.columns, len(known), int(known.sum()), float(of_cells.mean()), float(of_cells.min()), *middle)


def _page(n: int, releases: int, cases: list[Case]) -> str:
    lines = [
        "# Estimates from releases of groups",
        "",
        f"{n:,} records of Adult, {len(COLUMNS)} columns one after the other, LIP 1 given income; {releases} simulated "
        "releases. Intervals at 95 % of every cell by itself; errors in percentage points, medians over cells.",
        "",
        "| columns | cells told | coverage | of the cell held least often | error of drawing | off by rounding, at "
        "most | half an interval |",
        "|---|---|---|---|---|---|---|",
    ]
    for case in cases:
        points = [f"{100 * value:.2f}" for value in (case.error, case.off, case.half)]
        lines.append(
            f"| {' × '.join(case.columns)} | {case.told} of {case.cells} | {case.coverage:.1%} | {case.least:.1%} | "
            f"{' | '.join(points)} |"
        )
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    main()
