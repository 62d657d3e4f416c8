"""Several rows a unit: what one bound for all rows of a unit keeps, and what treating rows as other people's leads to.

``python -m benchmarks.units --panel health_panel.parquet`` makes one version of all rows by
`funnel.history.waves.follow_waves`, for the waves of a real panel taken as rows of a person, and for a synthetic table
of 101,766 encounters of 71,518 patients who have 1 to 40 each, those of some secrets more than others. What a reader of
all rows believes is computed a second time here, by a plain recursion in long doubles over the rows of every unit that
shares no code with what decides and draws. Writes ``benchmarks/results/units.json`` and ``units.md``.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from funnel import LIP, Joint
from funnel.history import Past, Step
from funnel.history.unit_rows import UnitRows
from funnel.history.waves import CountedUnits, UnitVersion, Waves, follow_waves, wave_name
from funnel.sampling.codes import input_codes

RESULTS = Path(__file__).parent / "results"
ROWS, PATIENTS, MOST = 101_766, 71_518, 40
# A level this much above the budget is above it: the second computation is in long doubles.
ABOVE = 1e-9
Codes = npt.NDArray[np.int64]
Table = npt.NDArray[Any]


@dataclass(frozen=True)
class Case:
    """A table with its unit, and what is secret and published of it."""

    name: str
    table: pa.Table
    unit: str
    secret: str
    inputs: tuple[str, ...]
    guarantee: LIP


def panel_cases(path: Path) -> list[Case]:
    """All waves of the panel as rows of a person; the secret is what it was in the person's first wave."""
    table = pq.read_table(path).to_pandas().sort_values(["id", "year"])
    table["income"] = table.groupby("year")["hhninc"].transform(lambda x: (x.rank(pct=True) * 5).clip(upper=4.999) // 1)
    table["decade"] = table["age"] // 10
    for column in ("outwork", "married"):
        table[f"first {column}"] = table.groupby("id")[column].transform("first")
    made = pa.Table.from_pandas(table.astype({"income": int}), preserve_index=False)
    return [
        Case("panel: outwork given income fifth and kids", made, "id", "first outwork", ("income", "kids"), LIP(1.0)),
        Case(
            "panel: married given age decade and outwork", made, "id", "first married", ("decade", "outwork"), LIP(0.5)
        ),
    ]


def encounters(seed: int = 7) -> Case:
    """Encounters of patients: whose secret is rarer comes more often, and a diagnosis is likely to come again."""
    random = np.random.default_rng(seed)
    often = random.gamma(0.3, 1.0, PATIENTS)
    sizes = np.ones(PATIENTS, dtype=np.int64)
    sizes[:3] = MOST
    while (left := ROWS - int(sizes.sum())) > 0:
        sizes += np.bincount(random.choice(PATIENTS, left, p=often / often.sum()), minlength=PATIENTS)
        sizes = np.minimum(sizes, MOST)
    secret = (random.random(PATIENTS) < 1 / (1 + np.exp(1.2 - often))).astype(int) + (random.random(PATIENTS) < 0.15)
    unit = np.repeat(np.arange(PATIENTS), sizes)
    laws = random.dirichlet(np.full(8, 3.0), 3)
    diagnosis = (random.random(len(unit))[:, None] > laws.cumsum(axis=1)[secret[unit]]).sum(axis=1)
    again = random.random(len(unit)) < 0.45
    for row in range(1, len(unit)):
        if unit[row] == unit[row - 1] and again[row]:
            diagnosis[row] = diagnosis[row - 1]
    names = np.array(["circulatory", "diabetes", "digestive", "injury", "muscular", "neoplasm", "other", "respiratory"])
    stages = np.array(["none", "mild", "severe"])
    table = pa.table({"patient": unit, "stage": stages[secret[unit]], "diagnosis": names[diagnosis]})
    return Case("encounters, synthetic: stage given diagnosis", table, "patient", "stage", ("diagnosis",), LIP(0.5))


def run(case: Case, seed: int = 5) -> dict[str, Any]:
    """Everything that is told of a case."""
    random = np.random.default_rng(seed)
    joint = Joint.from_table(case.table, [case.secret], list(case.inputs))
    xs = input_codes(case.table, joint.inputs)
    cells = input_codes(case.table, joint.secret) * len(joint.inputs) + xs
    _, units = np.unique(case.table.column(case.unit).to_numpy(), return_inverse=True)
    rows = UnitRows.ordered(units, random.random(len(units)))
    rows.require_one_secret(cells // len(joint.inputs), [case.secret], [case.unit])
    begun = time.perf_counter()
    asked = UnitVersion(Past(), rows, cells, joint, np.zeros(rows.count, np.int64), case.guarantee, "v")
    waves = follow_waves(asked, CountedUnits({}, read_alone=True), _draw(random, xs))
    took = time.perf_counter() - begun
    alone = waves.step.target
    names = {symbol: y for y, symbol in enumerate(waves.step.channel.outputs.symbols)}
    assert len(names) == len(alone.outputs)
    apart = np.array([random.choice(len(alone.outputs), p=alone.matrix[:, x] / alone.matrix[:, x].sum()) for x in xs])
    reader = _Reader(rows, cells, joint, case.guarantee.epsilon)
    together = reader.beliefs(waves.outputs, _rows_of(waves))
    as_others = reader.beliefs(apart, lambda history: alone.weights)
    entropy = joint.entropy
    return {
        "case": case.name,
        "guarantee": str(case.guarantee),
        "rows": len(cells),
        "units": rows.count,
        "most_rows": rows.deepest,
        "units_with_several": int((np.bincount(rows.units) > 1).sum()),
        "histories": waves.step.histories,
        "level": waves.step.level.value,
        "level_again": together["level"],
        "outside": together["outside"],
        "kept": waves.step.utility / entropy,
        "kept_as_others": waves.step.alone / entropy,
        "level_alone": case.guarantee.level(joint, waves.step.channel).value,
        "others_outside": as_others["outside"],
        "others_level": as_others["level"],
        "seconds": took,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


def _draw(random: np.random.Generator, xs: Codes) -> Callable[[Step, Codes, Codes], Codes]:
    def draw(step: Step, wave: Codes, before: Codes) -> Codes:
        channels = step.drawn_from[np.searchsorted(step.followed, before)]
        shares = step.library[channels, :, xs[wave]].astype(float).cumsum(axis=1)
        return np.asarray((random.random(len(wave))[:, None] * shares[:, -1:] > shares).sum(axis=1), dtype=np.int64)

    return draw


def _rows_of(waves: Waves) -> Callable[[tuple[int, ...]], Table]:
    def rows(history: tuple[int, ...]) -> Table:
        return waves.step.rows_for([(wave_name("v", number + 1), y) for number, y in enumerate(history)])

    return rows


class _Reader:
    """Knows first rows, changes from a row to the next over all units, and the channels; follows every unit's rows."""

    def __init__(self, rows: UnitRows, cells: Codes, joint: Joint, epsilon: float) -> None:
        self.c, self.a = joint.counts.shape
        self.epsilon = epsilon
        order = np.lexsort((rows.places, rows.units))
        self.order, self.units, self.cells = order, rows.units[order], cells[order]
        size = self.c * self.a
        first = np.bincount(self.cells[rows.places[order] == 1], minlength=size).astype(np.longdouble)
        self.first = first / first.sum()
        kernel = np.zeros((size, size), dtype=np.longdouble)
        for before, after, one, other in zip(self.cells, self.cells[1:], self.units, self.units[1:], strict=False):
            if one == other:
                kernel[before, after] += 1
        for cell in np.flatnonzero(kernel.sum(axis=1) == 0):
            start = cell // self.a * self.a
            kernel[cell, start : start + self.a] = first[start : start + self.a]
        self.kernel = kernel / kernel.sum(axis=1, keepdims=True)

    def beliefs(self, outputs: Codes, rows: Callable[[tuple[int, ...]], Table]) -> dict[str, float]:
        """The largest level over all outputs that could have come, and how many units are outside after their rows."""
        prior = self.first.reshape(self.c, self.a).sum(axis=1)
        known: dict[tuple[int, ...], Table] = {(): self.first}
        levels: dict[tuple[int, ...], float] = {}
        worst, outside = 0.0, 0
        drawn = outputs[self.order]
        starts = np.flatnonzero(np.diff(self.units, prepend=-1))
        for start, stop in zip(starts, np.append(starts[1:], len(drawn)), strict=True):
            history: tuple[int, ...] = ()
            for y in drawn[start:stop].tolist():
                if (*history, y) not in known:
                    law = known[history] if not history else known[history] @ self.kernel
                    told = law.reshape(self.c, self.a)
                    for other, row in enumerate(rows(history).astype(np.longdouble)):
                        after = told * row
                        if after.sum() <= 0:
                            continue
                        levels[(*history, other)] = self._level(after.sum(axis=1) / after.sum(), prior)
                        known[(*history, other)] = (after / after.sum()).reshape(-1)
                history = (*history, y)
            outside += levels[history] > self.epsilon + ABOVE
        worst = max(levels.values())
        return {"level": worst, "outside": outside}

    def _level(self, posterior: Table, prior: Table) -> float:
        with np.errstate(divide="ignore"):
            return float(np.abs(np.log(posterior[prior > 0] / prior[prior > 0])).max())


def page(results: list[dict[str, Any]]) -> str:
    """The results as a page."""
    lines = [
        "# Several rows a unit",
        "",
        "By `python -m benchmarks.units`. *Kept* is I(X; W) as a share of H(X) over all rows, under one bound for all",
        "rows of a unit; *as others* that of the optimum which takes rows for those of different people, and how many",
        "units a reader of all their rows then believes something outside the bound of. *Level* is the largest over",
        "all histories and outputs that could have come, *again* as a second computation finds it, sharing no code.",
        "",
        "| case | rows | units | several rows | histories | level | again | outside | kept | as others: kept "
        "| as others: outside | as others: level | s |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for one in results:
        several = one["units_with_several"]
        lines.append(
            f"| {one['case']}, {one['guarantee']} | {one['rows']:,} | {one['units']:,} | {several:,}, up to "
            f"{one['most_rows']} | {one['histories']:,} | {one['level']:.9f} | {one['level_again']:.9f} | "
            f"{one['outside']:,} | {one['kept']:.3f} | {one['kept_as_others']:.3f} | {one['others_outside']:,} "
            f"({one['others_outside'] / one['units']:.1%}) | {one['others_level']:.2f} | {one['seconds']:.0f} |"
        )
    return "\n".join([*lines, "", f"Peak memory {max(one['peak_mb'] for one in results):,} MB.", ""])


def main() -> None:
    """Run all cases and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--panel", type=Path, required=True)
    options = parser.parse_args()
    results = [run(case) for case in (*panel_cases(options.panel), encounters())]
    (RESULTS / "units.json").write_text(json.dumps({"cases": results}, indent=1) + "\n")
    (RESULTS / "units.md").write_text(page(results))
    print(page(results))


if __name__ == "__main__":
    main()
