"""Rows for many histories: how the work grows with histories, symbols and versions, beside scipy in the same run.

``python -m benchmarks.histories --data census_income_kdd.parquet`` follows a panel of people through versions of a
table, version by version as `funnel.History` does: distributions of histories, programmes, draws. There is no real
panel of 10^5 people at hand, so it is made: in the first version everybody is drawn from the records of Census-Income
aged 15 or more (married or not is the secret, age class and sex are published); in every later one a person keeps what
they are with probability 0.8 and else is drawn anew from the same distribution. Beside it `scipy.optimize.linprog`
(HiGHS) solves the programmes of a few of the same histories one by one. The rows go to
``benchmarks/results/histories.json``, and a table of all of them to ``benchmarks/results/histories.md``. With ``whole``
the versions are published by `funnel.History.extend`: everything from the table to the drawn release, proofs included.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from scipy.optimize import linprog

import funnel
from funnel.history.programme import Rows, RowSearch

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "histories.json"
GUARANTEE = funnel.LIP(1.0)
STAYS = 0.8
# What a zero of a channel counts as in its gains (METHOD section 9).
ZERO = 5e-4
# Histories whose programme scipy solves too.
BESIDE = 20
# Channels while gains are still looked for.
FEW = 400
Row = dict[str, Any]


class Panel:
    """People who change, and what an observer knows of those with each history."""

    def __init__(self, data: Path, people: int, symbols: int, seed: int = 5) -> None:
        self._rng = np.random.default_rng(seed)
        self.people, self.symbols = people, symbols
        self.distribution = _census(data, symbols)
        self.cells = self._drawn(people)
        self._before = self.cells
        self.nodes = np.zeros(people, dtype=np.int64)
        self._posteriors: np.ndarray | None = None

    def _drawn(self, number: int) -> np.ndarray:
        return self._rng.choice(self.distribution.size, size=number, p=self.distribution.ravel())

    def change(self) -> None:
        """A version later."""
        self._before = self.cells
        moves = self._rng.random(self.people) >= STAYS
        self.cells = self.cells.copy()
        self.cells[moves] = self._drawn(int(moves.sum()))

    def distributions(self) -> np.ndarray:
        """P(s, x | h) of the histories people have, (m, 2, symbols): the first-order one of the real changes."""
        size = self.distribution.size
        now = np.bincount(self.cells, minlength=size) / self.people
        if self._posteriors is None:
            return now.reshape(1, 2, -1)
        changes = np.bincount(self._before * size + self.cells, minlength=size * size).reshape(size, size).astype(float)
        total = changes.sum(axis=1, keepdims=True)
        kernel = np.where(total > 0, changes / np.maximum(total, 1), now)
        return (self._posteriors @ kernel).reshape(len(self._posteriors), 2, -1)

    def publish(self, distributions: np.ndarray, rows: Rows) -> None:
        """Draw an output for everybody; their histories grow by it."""
        channels = rows.assigned[self.nodes]
        drawn = rows.library.cumsum(axis=1)[channels, :, self.cells % self.symbols]
        outputs = (drawn < self._rng.random(self.people)[:, None]).sum(axis=1).clip(max=rows.library.shape[1] - 1)
        pairs, self.nodes = np.unique(self.nodes * rows.library.shape[1] + outputs, return_inverse=True)
        parents, made = np.divmod(pairs, rows.library.shape[1])
        joint = distributions[parents] * rows.library[rows.assigned[parents], made][:, None, :]
        joint = joint.reshape(len(pairs), -1)
        self._posteriors = joint / joint.sum(axis=1, keepdims=True)

    def table(self) -> pa.Table:
        """The version as a source."""
        secret, published = np.divmod(self.cells, self.symbols)
        return pa.table(
            {
                "id": np.arange(self.people),
                "married": pa.array(np.array(["no", "yes"])[secret]),
                "age and sex": pa.array(np.char.zfill(published.astype(str), 3)),
            }
        )


def _census(data: Path, symbols: int) -> np.ndarray:
    """The distribution of (married, age class and sex) of people aged 15 or more, (2, symbols)."""
    table = pq.read_table(data, columns=["age", "sex", "marital-stat"]).to_pandas()
    table = table[table["age"] >= 15]
    classes = symbols // 2
    age = np.minimum((table["age"].to_numpy() - 15) * classes // 65, classes - 1)
    published = age * 2 + (table["sex"] == "Female").to_numpy()
    secret = table["marital-stat"].str.startswith("Married").to_numpy().astype(int)
    counts = np.zeros((2, symbols))
    np.add.at(counts, (secret, published), 1)
    return counts / counts.sum()


class Setting:
    """The target of a panel, its gains, and the programmes of a version."""

    def __init__(self, panel: Panel) -> None:
        joint = funnel.Joint.from_counts(np.round(panel.distribution * 1e6).astype(np.int64))
        self.target = funnel.optimal(joint, GUARANTEE, time_limit=30.0).protocol.matrix

    def programmes(self, panel: Panel, distributions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Masses (m, a), the cone, and gains (b, a) at the target."""
        now = np.bincount(panel.cells, minlength=panel.distribution.size).reshape(2, -1) / panel.people
        shares = np.bincount(panel.nodes, minlength=len(distributions)) / panel.people
        cone = GUARANTEE.posterior_cone(now.sum(axis=1))
        outputs = self.target @ now.sum(axis=0)
        gains = np.log(np.maximum(self.target, ZERO) / np.maximum(outputs, ZERO)[:, None])
        return shares[:, None] * distributions.sum(axis=1), cone, gains


def measured(panel: Panel, setting: Setting, case: str, version: int) -> tuple[Row, np.ndarray, Rows]:
    """The programmes of one version: as `follow` asks for them, and a few of them by scipy."""
    distributions = panel.distributions()
    masses, cone, gains = setting.programmes(panel, distributions)
    priors = np.zeros(len(distributions), dtype=np.int64)
    begun, worked = time.perf_counter(), time.process_time()
    search = RowSearch(distributions, masses, priors, [cone])
    rows = search.best(gains)
    seconds, processor = time.perf_counter() - begun, time.process_time() - worked
    begun = time.process_time()
    few = search.best(gains, channels=FEW)
    first = time.process_time() - begun
    begun = time.process_time()
    search.best(gains + 0.01 * np.cos(np.arange(gains.size)).reshape(gains.shape), channels=FEW)
    again = time.process_time() - begun
    row: Row = {
        "case": case,
        "people": panel.people,
        "symbols": panel.symbols,
        "version": version,
        "histories": len(distributions),
        "programmes": rows.programmes,
        "channels": len(rows.library),
        "seconds": seconds,
        "processor": processor,
        "few": first,
        "again": again,
        "kept": rows.value / rows.bound,
        "kept by few": few.value / rows.bound,
        "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        **_beside(distributions, masses, cone, gains, rows),
    }
    return row, distributions, rows


def _beside(distributions: np.ndarray, masses: np.ndarray, cone: np.ndarray, gains: np.ndarray, rows: Rows) -> Row:
    """scipy on some of the histories: seconds for all of them at that pace, and the worst that one of them misses."""
    chosen = np.unique(np.linspace(0, len(distributions) - 1, BESIDE).astype(int))
    outputs, inputs = gains.shape
    begun, optimum, reached = time.process_time(), 0.0, 0.0
    for h in chosen:
        posteriors = cone @ distributions[h]
        limits = posteriors - np.maximum(posteriors.sum(axis=1), 0)[:, None] * distributions[h].sum(axis=0)
        answer = linprog(
            -(gains * masses[h]).ravel() / masses[h].sum(),
            A_ub=np.kron(np.eye(outputs), limits),
            b_ub=np.zeros(outputs * len(cone)),
            A_eq=np.kron(np.ones(outputs), np.eye(inputs)),
            b_eq=np.ones(inputs),
            method="highs",
        )
        optimum -= answer.fun * masses[h].sum()
        reached += rows.values[h]
    each = (time.process_time() - begun) / len(chosen)
    return {"scipy": each * len(distributions), "kept beside scipy": reached / optimum}


def growth(data: Path, limit: int) -> list[Row]:
    """In histories, in symbols and in versions, and the two cases that a target was set for."""
    cases = [("10 symbols", 16_000, 10, range(4, 5))]
    cases += [("histories", people, 40, range(3, 4)) for people in (1_000, 10_000, 100_000)]
    cases += [("symbols", 10_000, symbols, range(3, 4)) for symbols in (10, 20, 80)]
    cases += [("versions", 100_000, 40, range(1, 12, 2))]
    found = []
    for case, people, symbols, versions in cases:
        if people > limit:
            continue
        panel = Panel(data, people, symbols)
        setting = Setting(panel)
        for version in range(max(versions) + 1):
            if version:
                panel.change()
            if version in versions:
                row, distributions, rows = measured(panel, setting, case, version + 1)
                found.append(row)
                print(json.dumps(row), flush=True)
            else:
                distributions = panel.distributions()
                masses, cone, gains = setting.programmes(panel, distributions)
                rows = RowSearch(distributions, masses, np.zeros(len(distributions), dtype=np.int64), [cone]).best(
                    gains
                )
            panel.publish(distributions, rows)
    return found


def whole(data: Path, people: int, symbols: int, versions: int) -> list[Row]:
    """Versions published by `funnel.History`, everything included."""
    panel, book, found = (
        Panel(data, people, symbols),
        funnel.History(GUARANTEE, observers=["transitions"], secrets="current"),
        [],
    )
    for version in range(versions):
        if version:
            panel.change()
        table = panel.table()
        begun, worked = time.perf_counter(), time.process_time()
        step = book.extend(table, key=["id"], secret=["married"], inputs=["age and sex"], version=str(version + 1))
        row = {
            "case": f"everything, {people} people, {symbols} symbols",
            "version": version + 1,
            "histories": step.histories,
            "seconds": time.perf_counter() - begun,
            "processor": time.process_time() - worked,
            "kept": step.utility / step.entropy,
            "alone": step.alone / step.entropy,
            "level": step.level.value,
            "moved": step.moved,
            "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        }
        found.append(row)
        print(json.dumps(row), flush=True)
    return found


def pages(results: dict[str, list[Row]]) -> str:
    """The tables, as Markdown."""
    lines = [
        "# Rows for many histories",
        "",
        *(__doc__ or "").split("\n\n", 1)[1].replace("``", "`").strip().splitlines(),
        "",
        "LIP 1. Seconds are of a machine with two cores; processor seconds are of both cores",
        "together. *Kept* is the value of the tangent programme over all histories against its upper bound by duality.",
        f"*Few* are calls with {FEW} channels: the first, and another for gains that have changed. *scipy* is its pace",
        f"on {BESIDE} of the histories, times all of them.",
        "",
        "| growth in | people | symbols | version | histories | programmes | channels | s | processor s "
        "| kept, of the bound | few: first, again (processor s) | kept by few | scipy (processor s) | times faster "
        "| MB |",
        "|---|" + "---:|" * 14,
    ]
    for row in results.get("programmes", []):
        lines.append(
            f"| {row['case']} | {row['people']:,} | {row['symbols']} | {row['version']} | {row['histories']:,} "
            f"| {row['programmes']:,} | {row['channels']:,} | {row['seconds']:.1f} | {row['processor']:.1f} "
            f"| {row['kept']:.4%} | {row['few']:.1f}, {row['again']:.1f} | {row['kept by few']:.2%} "
            f"| {row['scipy']:.0f} | {row['scipy'] / row['processor']:.0f} | {row['megabytes']} |"
        )
    if results.get("whole"):
        lines += [
            "",
            "Everything that `funnel.History.extend` does, from the table to the drawn release, proofs included:",
            "",
            "| case | version | histories | s | processor s | kept, of H(X) | alone | level | moved | MB |",
            "|---|" + "---:|" * 9,
        ]
        for row in results["whole"]:
            shares = f"{row['kept']:.2%} | {row['alone']:.2%} | {row['level']:.6f}"
            times = f"{row['histories']:,} | {row['seconds']:.1f} | {row['processor']:.1f}"
            lines.append(
                f"| {row['case']} | {row['version']} | {times} | {shares} | {row['moved']} | {row['megabytes']} |"
            )
        lines += ["", f"All versions together: {sum(row['seconds'] for row in results['whole']):.0f} s."]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("group", nargs="?", choices=("programmes", "whole"), default="programmes")
    parser.add_argument("--data", type=Path, required=True, help="census_income_kdd.parquet")
    parser.add_argument("--people", type=int, default=100_000, help="leave out what has more people")
    parser.add_argument("--symbols", type=int, default=40)
    parser.add_argument("--versions", type=int, default=12)
    given = parser.parse_args()
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    if given.group == "programmes":
        results["programmes"] = growth(given.data, given.people)
    else:
        results["whole"] = whole(given.data, given.people, given.symbols, given.versions)
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    RESULTS.with_suffix(".md").write_text(pages(results))


if __name__ == "__main__":
    main()
