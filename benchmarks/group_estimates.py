"""Expected errors of releases of groups: by independent equations, held against all equations as they stand.

``OPENBLAS_NUM_THREADS=1 python -m benchmarks.group_estimates NAME=RELEASE …`` computes the errors of every column and
pair of columns of published releases as the maker does (`funnel.estimation.grouped_errors`) and as the judge does
(`funnel.audit.grouped.estimates`), each once as it is and once by systems of all equations, dependent or not, with
least squares and pseudo-inverses (decision 0079). Seconds are of processor time, of one thread and of the same run.
Writes ``benchmarks/results/group-estimates.md``.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import scipy.linalg

from funnel.audit.grouped import estimates as judging
from funnel.audit.grouped.figures import read_channels
from funnel.estimation import affine as making
from funnel.estimation.grouped_errors import grouped_errors
from funnel.groups import GroupedProtocol
from funnel.joint import FloatArray, IntArray
from funnel.recount.grouped_text import GroupedText
from funnel.release.channel_rows import read_channel_rows
from funnel.release.effective_channels import told_channels

RESULTS = Path(__file__).parent / "results"


class AllEquations:
    """Systems of as many unknowns as there are inputs, and the constant."""

    def __init__(self, channel: FloatArray, aims: FloatArray) -> None:
        self.channel, self.aims = channel, aims

    def systems(
        self, cost: FloatArray, pull: FloatArray, centre: FloatArray
    ) -> Iterator[tuple[FloatArray, FloatArray]]:
        a = self.channel.shape[1]
        for one, apart, away in zip(cost, pull, centre.tolist(), strict=True):
            inverse = 1 / (one + apart[:-1])
            scaled = self.channel * inverse[:, None]
            system = np.empty((a + 1, a + 1))
            system[:a, :a] = self.channel.T @ scaled
            system[:a, a] = system[a, :a] = 1 - scaled.T @ apart[:-1]
            system[a, a] = (apart[:-1] ** 2) @ inverse - apart.sum() + away
            yield system, inverse

    def weights(self, solved: FloatArray, inverse: FloatArray, apart: FloatArray) -> FloatArray:
        return np.asarray(inverse * (self.channel @ solved[:-1] - apart[:-1] * solved[-1]))


class AsMade(AllEquations):
    """By least squares."""

    def least(
        self, cells: IntArray, cost: FloatArray, pull: FloatArray, centre: FloatArray, mean: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        found, constants = [], []
        right = np.column_stack([self.aims[cells], centre * mean])
        for row, (system, inverse) in enumerate(self.systems(cost, pull, centre)):
            solved = scipy.linalg.lstsq(system, right[row], cond=1e-12, check_finite=False)[0]
            found.append(self.weights(solved, inverse, pull[row]))
            constants.append(solved[-1])
        return np.array(found), np.array(constants)


class AsJudged(AllEquations):
    """By pseudo-inverses."""

    def least(self, cost: FloatArray, pull: FloatArray, centre: FloatArray, mean: FloatArray) -> FloatArray:
        found = []
        right = np.column_stack([self.aims, centre * mean])
        # In units in which all numbers of the system are about one.
        unit = np.exp(np.log(cost).mean(axis=1)) / cost.shape[1]
        scaled = cost / unit[:, None], pull / unit[:, None], centre / unit
        for row, (system, inverse) in enumerate(self.systems(*scaled)):
            rest = np.append(right[row, :-1], right[row, -1] / unit[row])
            solved = np.linalg.pinv(system, rcond=1e-12, hermitian=True) @ rest
            found.append(np.append(self.weights(solved, inverse, scaled[1][row]), solved[-1]))
        return np.array(found)


@contextmanager
def put(owner: Any, name: str, value: object) -> Iterator[None]:
    """Something else in the place of what a module has."""
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


def timed(run: Callable[[], dict[Any, FloatArray]]) -> tuple[dict[Any, FloatArray], float]:
    """What it gives, and seconds of processor time."""
    begun = time.process_time()
    return run(), time.process_time() - begun


def apart(one: dict[Any, FloatArray], other: dict[Any, FloatArray]) -> tuple[int, float]:
    """Cells that both tell, and the largest difference of one, relatively."""
    largest, cells = 0.0, 0
    for key, errors in one.items():
        told = np.isfinite(errors) & np.isfinite(other[key]) & (errors > 0)
        cells += int(told.sum())
        largest = max(largest, float(np.abs(other[key][told] / errors[told] - 1).max(initial=0.0)))
    return cells, largest


def main() -> None:
    """Compute and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("releases", nargs="+", help="name=folder of a published release of groups")
    lines = [
        "# Expected errors of releases of groups",
        "",
        "By `OPENBLAS_NUM_THREADS=1 python -m benchmarks.group_estimates NAME=RELEASE …`: seconds of processor time",
        "for every column and every pair, of one thread; *all* is by systems of all equations, dependent or not, in",
        "the same run. Where a judge's differ, the pseudo-inverse cut what it needed; its interval was the longer one.",
        "",
        "| release | by | tables | cells | all, s | independent, s | largest difference |",
        "|---|---|---|---|---|---|---|",
    ]
    for named in parser.parse_args().releases:
        name, _, place = named.partition("=")
        folder = Path(place)
        text, rows = (folder / "protocol.json").read_text(), read_channel_rows(folder / "channels.parquet")
        records = json.loads((folder / "report.json").read_text())["figures"]["rows"]
        channels = told_channels(GroupedProtocol.from_json(text), rows, records)
        stored = read_channels(folder / "channels.parquet")

        def made(channels: Any = channels) -> dict[Any, FloatArray]:
            return {table.columns: table.errors for table in grouped_errors(channels)}

        def judged(stored: Any = stored, text: str = text, records: int = records) -> dict[Any, FloatArray]:
            tables = judging.Estimates(stored, GroupedText.parse(text), records).tables
            # An interval that is all there is tells nothing.
            return {
                key: np.where(table.untold(1.0), np.nan, table.half)
                for key, table in tables.items()
                if table is not None
            }

        made()  # What is imported on the way is no part of either.
        for by, run, owner, attribute, other in (
            ("maker", made, making._Equations, "of", AsMade),
            ("judge", judged, judging, "_Met", AsJudged),
        ):
            found, seconds = timed(run)
            with put(owner, attribute, other):
                before, seconds_before = timed(run)
            cells, largest = apart(before, found)
            line = (
                f"| {name} | {by} | {len(found)} | {cells:,} | {seconds_before:.1f} | {seconds:.1f} | {largest:.0e} |"
            )
            print(line, flush=True)
            lines.append(line)
    (RESULTS / "group-estimates.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
