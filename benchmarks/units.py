"""Several rows a unit: what one bound for all rows of a unit keeps, and what treating rows as other people's leads to.

``python -m benchmarks.units --panel health_panel.parquet --adult adult.parquet`` makes one version of all rows by
`funnel.history.waves.follow_waves`, for the waves of a real panel taken as rows of a person, and for a synthetic table
of 101,766 encounters of 71,518 patients who have 1 to 40 each, those of some secrets more than others. And where rows
have secrets of their own: the panel's waves with what was secret in each, households made of the people of Adult, and
visits of which each has its own diagnosis. The same again with values as they are. What a reader of all rows believes
of the secret of every one of them is
computed a second time here, by a plain recursion in long doubles over the rows of every unit that shares no code with
what decides and draws. Writes ``benchmarks/results/units.json`` and ``units.md``.
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

from funnel import LIP, Joint, fit
from funnel.history.following import VersionTerms
from funnel.history.past import Past
from funnel.history.step import Step
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
        Case(
            "panel: outwork in each wave given income fifth and kids",
            made,
            "id",
            "outwork",
            ("income", "kids"),
            LIP(1.0),
        ),
        Case("panel: married in each wave given age decade", made, "id", "married", ("decade",), LIP(0.5)),
    ]


def households(path: Path, seed: int = 3) -> Case:
    """Households made of Adult: wives by husbands of nearly their education, children by married or single parents."""
    random = np.random.default_rng(seed)
    table = pq.read_table(path, columns=["relationship", "education-num", "income"]).to_pandas()
    role = table["relationship"].to_numpy()
    number = np.arange(len(table))
    of = np.full(len(table), -1)
    alone = ~np.isin(role, ["Wife", "Own-child"])
    of[alone] = number[alone]
    near = table["education-num"].to_numpy() + random.normal(0, 2, len(table))
    husbands, wives = (np.flatnonzero(role == one) for one in ("Husband", "Wife"))
    taken = np.sort(random.choice(husbands, len(wives), replace=False))
    of[wives[np.argsort(near[wives])]] = taken[np.argsort(near[taken])]
    children = np.flatnonzero(role == "Own-child")
    parents = np.flatnonzero(np.isin(role, ["Husband", "Unmarried"]))
    of[children] = random.choice(parents, len(children))
    schooling = np.select([table["education-num"] >= 13, table["education-num"] >= 9], ["degree", "school"], "less")
    made = pa.table(
        {"household": of, "role": role, "schooling": schooling.astype(str), "income": table["income"].array}
    )
    return Case(
        "Adult in households: income in each given role and schooling",
        made,
        "household",
        "income",
        ("role", "schooling"),
        LIP(1.0),
    )


def visits(seed: int = 11) -> Case:
    """Visits of 20,000 patients, up to 12 each, severe or not and in a ward, both likely as in the visit before."""
    random = np.random.default_rng(seed)
    sizes = np.minimum(1 + random.poisson(random.gamma(0.6, 2.0, 20_000)), 12)
    unit = np.repeat(np.arange(len(sizes)), sizes)
    severe = random.random(len(unit)) < 0.15
    ward = random.integers(0, 5, len(unit))
    for row in range(1, len(unit)):
        if unit[row] == unit[row - 1]:
            severe[row] = severe[row - 1] if random.random() < 0.6 else severe[row]
            ward[row] = ward[row - 1] if random.random() < 0.3 else ward[row]
    ward = np.where(random.random(len(unit)) < 0.35 * severe, 4, ward)
    table = pa.table({"patient": unit, "severe": np.array(["no", "yes"])[severe.astype(int)], "ward": ward})
    return Case("visits, synthetic: severe in each given ward", table, "patient", "severe", ("ward",), LIP(1.0))


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
    distributions = random.dirichlet(np.full(8, 3.0), 3)
    diagnosis = (random.random(len(unit))[:, None] > distributions.cumsum(axis=1)[secret[unit]]).sum(axis=1)
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
    begun = time.perf_counter()
    asked = UnitVersion(Past(), rows, cells, joint, np.zeros(rows.count, np.int64), VersionTerms(case.guarantee, "v"))
    waves = follow_waves(asked, CountedUnits({}, read_alone=True), _draw(random, xs))
    took = time.perf_counter() - begun
    alone = waves.step.target
    names = {symbol: y for y, symbol in enumerate(waves.step.channel.outputs.symbols)}
    assert len(names) == len(alone.outputs)
    apart = np.array([random.choice(len(alone.outputs), p=alone.matrix[:, x] / alone.matrix[:, x].sum()) for x in xs])
    secrets = cells // len(joint.inputs)
    own = bool((secrets != secrets[rows.at(1)][rows.units]).any())
    reader = _Reader(rows, cells, joint, case.guarantee.epsilon, own)
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
        "as_they_are": _as_they_are(case, joint, rows, cells, reader),
        "level_alone": case.guarantee.level(joint, waves.step.channel).value,
        "others_outside": as_others["outside"],
        "others_level": as_others["level"],
        "seconds": took,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


def _as_they_are(case: Case, joint: Joint, rows: UnitRows, cells: Codes, reader: _Reader) -> dict[str, Any]:
    """The same rows under the mechanism that leaves most of them as they are."""
    random, xs = np.random.default_rng(6), cells % len(joint.inputs)
    alone = fit("invariant", joint, case.guarantee)
    begun = time.perf_counter()
    terms = VersionTerms(case.guarantee, "v", alone, right=True)
    asked = UnitVersion(Past(), rows, cells, joint, np.zeros(rows.count, np.int64), terms)
    waves = follow_waves(asked, CountedUnits({}, read_alone=True), _draw(random, xs))
    took = time.perf_counter() - begun
    there, channel = joint.counts.sum(axis=0), waves.step.channel.matrix
    together = reader.beliefs(waves.outputs, _rows_of(waves))
    apart = np.array([random.choice(len(there), p=alone.matrix[:, x] / alone.matrix[:, x].sum()) for x in xs])
    return {
        "unchanged": float(channel.diagonal() @ there) / joint.n,
        "unchanged_as_others": float(alone.matrix.diagonal() @ there) / joint.n,
        "records_off": float(np.abs(channel @ there - there).max()),
        "level_again": together["level"],
        "outside": together["outside"],
        "others_outside": reader.beliefs(apart, lambda history: alone.weights)["outside"],
        "seconds": took,
    }


def _draw(random: np.random.Generator, xs: Codes) -> Callable[[Step, Codes, Codes], Codes]:
    def draw(step: Step, wave: Codes, before: Codes) -> Codes:
        channels = step.channels_of(before)
        shares = step.library[channels, :, xs[wave]].astype(float).cumsum(axis=1)
        return np.asarray((random.random(len(wave))[:, None] * shares[:, -1:] > shares).sum(axis=1), dtype=np.int64)

    return draw


def _rows_of(waves: Waves) -> Callable[[tuple[int, ...]], Table]:
    def rows(history: tuple[int, ...]) -> Table:
        return waves.step.rows_for([(wave_name("v", number + 1), y) for number, y in enumerate(history)])

    return rows


class _Reader:
    """Knows first rows, changes from a row to the next over all units, and the channels; follows every unit's rows.

    Believes something of the secret that all rows of a unit share, or of that of every row where each has its own.
    """

    def __init__(self, rows: UnitRows, cells: Codes, joint: Joint, epsilon: float, own: bool) -> None:
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
            start = 0 if own else cell // self.a * self.a
            stop = size if own else start + self.a
            kernel[cell, start:stop] = first[start:stop]
        self.kernel = kernel / kernel.sum(axis=1, keepdims=True)
        of_secret = np.repeat(np.eye(self.c, dtype=np.longdouble), self.a, axis=0)
        # P(secret so many rows later | cell), and how common secrets are in each row.
        self.later = [of_secret]
        for _ in range(rows.deepest - 1 if own else 0):
            self.later.append(self.kernel @ self.later[-1])
        self.priors = [self.first @ later for later in self.later]

    def beliefs(self, outputs: Codes, rows: Callable[[tuple[int, ...]], Table]) -> dict[str, float]:
        """The largest level over all outputs that could have come, and how many units are outside after their rows."""
        # By the secret of each row so far whose secret counts, and the cell: P(s, cell | history), (rows, c, cells).
        known: dict[tuple[int, ...], Table] = {(): self.first[None, None][:0]}
        distributions: dict[tuple[int, ...], Table] = {(): self.first}
        levels: dict[tuple[int, ...], float] = {}
        worst, outside = 0.0, 0
        drawn = outputs[self.order]
        starts = np.flatnonzero(np.diff(self.units, prepend=-1))
        for start, stop in zip(starts, np.append(starts[1:], len(drawn)), strict=True):
            history: tuple[int, ...] = ()
            for y in drawn[start:stop].tolist():
                if (*history, y) not in distributions:
                    before = distributions[history] @ self.kernel if history else self.first
                    by_row = known[history] @ self.kernel if history else np.zeros((0, self.c, len(self.first)))
                    if len(by_row) < len(self.priors):
                        apart = self.later[0].T * before
                        by_row = np.concatenate([by_row, apart[None]])
                    for other, row in enumerate(rows(history).astype(np.longdouble)):
                        weights = np.tile(row, self.c)
                        after = before * weights
                        if after.sum() <= 0:
                            continue
                        total = after.sum()
                        told = by_row * weights
                        beliefs = [
                            *told.sum(axis=2),
                            *(after @ later for later in self.later[1:][: len(self.priors) - len(told)]),
                        ]
                        levels[(*history, other)] = max(
                            self._level(belief / total, prior)
                            for belief, prior in zip(beliefs, self.priors, strict=True)
                        )
                        distributions[(*history, other)], known[(*history, other)] = after / total, told / total
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
        "units a reader of all their rows then believes something outside the bound of. *In each*, and of households:",
        "rows have secrets of their own, and all of them are bounded for that reader. *Level* is the largest over",
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
    lines += [
        "",
        'With values as they are (`mechanism = "invariant"`): the share of rows unchanged, and by how many records a',
        "value is published too often or too rarely, at most, on average over all draws of the rows.",
        "",
        "| case | unchanged | as others | records off | level again | outside | as others: outside | s |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for one in results:
        kept = one["as_they_are"]
        lines.append(
            f"| {one['case']}, {one['guarantee']} | {kept['unchanged']:.3f} | {kept['unchanged_as_others']:.3f} | "
            f"{kept['records_off']:.2f} | {kept['level_again']:.9f} | {kept['outside']:,} | "
            f"{kept['others_outside']:,} ({kept['others_outside'] / one['units']:.1%}) | {kept['seconds']:.0f} |"
        )
    return "\n".join([*lines, "", f"Peak memory {max(one['peak_mb'] for one in results):,} MB.", ""])


def main() -> None:
    """Run all cases and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--panel", type=Path, required=True)
    parser.add_argument("--adult", type=Path, required=True)
    options = parser.parse_args()
    cases = (*panel_cases(options.panel), encounters(), households(options.adult), visits())
    results = [run(case) for case in cases]
    (RESULTS / "units.json").write_text(json.dumps({"cases": results}, indent=1) + "\n")
    (RESULTS / "units.md").write_text(page(results))
    print(page(results))


if __name__ == "__main__":
    main()
