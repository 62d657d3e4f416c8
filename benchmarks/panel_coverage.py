"""Coverage of plain counts of later versions about the same people, over releases of the panel.

`python -m benchmarks.panel_coverage` draws people of the health panel with replacement, publishes their waves with
values as they are, and looks how many 95 % intervals of shares hold the truth: of the people (intervals for these
records) and of the panel (for the population). Writes ``benchmarks/results/panel-coverage.json`` and ``.md``.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.panel_noise import Published, follow_panel
from funnel.estimation.fit import normal_quantile
from funnel.estimation.plain_counts import PlainCounts
from funnel.joint import FloatArray
from tests.waves import WAVES, wave

RESULTS = Path(__file__).parent / "results"
CASES = (("married", ("kids", "outwork"), "lip:0.5"), ("married", ("age", "outwork"), "lip:0.5"))
_FEWEST = 50


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--releases", type=int, default=100)
    parser.add_argument("--waves", type=int, default=3)
    options = parser.parse_args()
    years = WAVES[: options.waves]
    lines = [
        "# Coverage of later versions that are counted as usual",
        "",
        f"By `python -m benchmarks.panel_coverage`: {options.releases} times people of the panel, drawn with",
        "replacement, and their waves under noise of ε = 1. Intervals at 95 % of shares of single columns and of all",
        f"columns crossed, in cells of {_FEWEST} people or more: how many hold the share of these people, and of the",
        "panel, the latter also without the variance of the noise; *bias* is the largest mean error of a cell, in its",
        "standard errors over the releases.",
        "",
        "| secret given columns | wave | these people | the panel | without the noise | largest bias |",
        "|---|---|---|---|---|---|",
    ]
    found = []
    for secret, publish, guarantee in CASES:
        tally = Tally(publish)
        for seed in range(options.releases):
            drawn = resampled(years, seed)
            follow_panel(secret, publish, guarantee, 1.0, years, stays=True, panel=drawn, seen=tally.add)
        for year in years:
            row = tally.row(year)
            found.append({"secret": secret, "publish": publish, "guarantee": guarantee, "year": year, **row})
            cells = " | ".join(f"{row[name]:.1%}" for name in ("people", "panel", "without"))
            lines.append(f"| {secret} given {' and '.join(publish)} | {year} | {cells} | {row['bias']:.1f} |")
            print(lines[-1], flush=True)
    (RESULTS / "panel-coverage.json").write_text(
        json.dumps({"releases": options.releases, "rows": found}, indent=1) + "\n"
    )
    (RESULTS / "panel-coverage.md").write_text("\n".join([*lines, ""]))


def resampled(years: tuple[int, ...], seed: int) -> Callable[[int], pa.Table]:
    """The waves of as many people of the panel, drawn with replacement: each a person of their own in all waves."""
    names = sorted({name for year in years for name in wave(year)["id"].to_pylist()})
    drawn = np.random.default_rng(seed).choice(names, len(names))
    tables = {}
    for year in years:
        table = wave(year)
        at = dict(zip(table["id"].to_pylist(), range(table.num_rows), strict=True))
        there = [(number, at[name]) for number, name in enumerate(drawn.tolist()) if name in at]
        rows = table.take([place for _, place in there])
        kind = table.schema.field("id").type
        numbers = pc.cast(pa.array([number for number, _ in there]), kind)
        tables[year] = rows.set_column(rows.column_names.index("id"), "id", numbers)
    return tables.__getitem__


class Tally:
    """Intervals that hold the truth so far, by wave."""

    def __init__(self, columns: tuple[str, ...]) -> None:
        self._columns = columns
        self._held: dict[int, list[tuple[FloatArray, FloatArray, FloatArray]]] = defaultdict(list)
        self._off: dict[int, list[FloatArray]] = defaultdict(list)

    def add(self, year: int, one: Published) -> None:
        """One release of a wave."""
        table = wave(year)
        held: list[list[FloatArray]] = [[], [], []]
        off = []
        for columns in (*((column,) for column in self._columns), self._columns):
            plain = PlainCounts.of(one.protocol, one.counts, one.noise)
            silent = PlainCounts.of(one.protocol, one.counts)
            cells, of = plain.cells(columns)
            here = np.bincount(of, one.counted.counts.sum(axis=0), len(cells))
            panel = np.array([self._share(table, columns, cell) for cell in cells])
            many = panel * table.num_rows >= _FEWEST
            parts, z = np.zeros(len(cells), dtype=np.int64), normal_quantile(0.95)
            for place, (counts, sampling, right) in enumerate(
                ((plain, False, here / here.sum()), (plain, True, panel), (silent, True, panel))
            ):
                shares = counts.in_cells(of, parts, sampling, z)
                held[place].append(((shares.lower <= right) & (right <= shares.upper))[many])
            off.append((plain.in_cells(of, parts, False, z).frequencies - here / here.sum())[many])
        self._held[year].append((np.concatenate(held[0]), np.concatenate(held[1]), np.concatenate(held[2])))
        self._off[year].append(np.concatenate(off))

    def row(self, year: int) -> dict[str, float]:
        """What came of a wave."""
        people, panel, without = (float(np.mean(column)) for column in zip(*self._held[year], strict=True))
        off = np.array(self._off[year])
        spread = off.std(axis=0, ddof=1)
        bias = np.abs(off.mean(axis=0))[spread > 0] / (spread[spread > 0] / np.sqrt(len(off)))
        return {"people": people, "panel": panel, "without": without, "bias": float(bias.max())}

    @staticmethod
    def _share(table: pa.Table, columns: tuple[str, ...], cell: tuple[str, ...]) -> float:
        chosen = np.ones(table.num_rows, dtype=bool)
        for column, value in zip(columns, cell, strict=True):
            chosen &= np.array([str(one) == value for one in table[column].to_pylist()])
        return float(chosen.mean())


if __name__ == "__main__":
    main()
