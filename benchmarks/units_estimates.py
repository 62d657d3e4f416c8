"""Estimates from rows of people who are predicted: whether their intervals hold the truth, and how far they are off.

Under noise the published channel is the mean over predicted people. ``python -m benchmarks.units_estimates`` draws
each case many times with new noise: rows of units by `funnel.history.expected_waves`, and a panel's third wave by
`benchmarks.panel_noise`, both in memory. It estimates the shares of single columns from the published channel alone,
as releases did before departures were published, and with departures. ``--draws N`` says how often, and names of cases
which of them. Writes ``benchmarks/results/units-estimates.json`` and ``units-estimates.md``.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from benchmarks.panel_noise import Published, follow_panel
from benchmarks.units import RESULTS
from benchmarks.units_noise import counted
from benchmarks.unprepared_tables import visits
from funnel import LIP, Joint, Protocol, estimate
from funnel.estimation.departed_shares import DepartedShares
from funnel.frequencies.averages import noisy_averages
from funnel.frequencies.noise import discrete_laplace_variance
from funnel.frequencies.public_counts import part_for, protect
from funnel.frequencies.selection import NOTHING
from funnel.history.corrected import PARTS
from funnel.history.departures import declared_length, departures_of_units
from funnel.history.expected import Expected, attending, expected_people
from funnel.history.expected_waves import ExpectedUnits
from funnel.history.following import VersionTerms, inner_bound
from funnel.history.past import Past
from funnel.history.step import Step
from funnel.history.unit_rows import UnitRows
from funnel.history.waves import UnitVersion, follow_waves
from funnel.joint import IntArray
from funnel.sampling.codes import input_codes
from funnel.settings.protection_settings import FrequencySettings
from funnel.solver.optimum import optimal

# Seconds of work that a version may take, and its target: what is drawn is then not the best, and keeps the bound.
_WORK = 0.2
# Shares above this are looked at.
_COUNTED = 0.02


@dataclass(frozen=True)
class Case:
    """A table of units with ``unit``, ``secret`` and columns; or a panel, by year."""

    name: str
    columns: tuple[str, ...]
    table: Callable[[], pd.DataFrame] | None = None
    panel: Callable[[int], pa.Table] | None = None


def coarse_visits(people: int, seed: int = 1) -> pd.DataFrame:
    """Visits as `funnel init` groups them: age and sex of a patient stay, and wards change, but for children."""
    table = visits(people, seed)
    return pd.DataFrame(
        {
            "unit": table["patient"],
            "secret": table["chronic"],
            "ward": np.where(table["ward"].isin(["children", "outpatient"]), "children or outpatient", table["ward"]),
            "age": np.where(table["age"] < 48, "under 48", "48 and over"),
        }
    )


def jobs(people: int, most: int, seed: int = 2) -> pd.DataFrame:
    """Spells of work: up to so many a person, in kinds of work that mostly stay, for people born in one of three times.

    Some of those who were ill take kind 3 whenever they change, which no table of two rows tells.
    """
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, most + 1, people)
    who = np.repeat(np.arange(people), sizes)
    ill, born, usual = rng.random(people) < 0.3, rng.integers(0, 3, people), rng.integers(0, 4, people)
    born = np.where(ill, np.minimum(born + rng.integers(0, 2, people), 2), born)
    again = rng.random(len(who)) < 0.3
    kind = np.where(again, rng.choice(4, len(who), p=[0.4, 0.3, 0.2, 0.1]), usual[who])
    kind = np.where(ill[who] & (rng.random(len(who)) < 0.3), 3, kind)
    return pd.DataFrame({"unit": who, "secret": ill[who].astype(int), "kind": kind, "born": born[who]}).astype(
        {"secret": str, "kind": str, "born": str}
    )


def panel(year: int, people: int = 2_000) -> pa.Table:
    """Waves of a panel: region stays, work changes, and half of the people never change it."""
    rng = np.random.default_rng(3)
    region, ill, mover = rng.integers(0, 3, people), rng.random(people) < 0.3, rng.random(people) < 0.5
    work = rng.integers(0, 3, people)
    for _ in range(year):
        work = np.where(mover & (rng.random(people) < 0.5), rng.choice(3, people, p=[0.6, 0.3, 0.1]), work)
    work = np.where(ill & (work == 0) & (region == 0), 2, work)
    return pa.table({"id": np.arange(people), "secret": ill.astype(int), "region": region, "work": work})


CASES = (
    *(Case(f"visits of {people:,} patients", ("ward", "age"), lambda people=people: coarse_visits(people))
      for people in (1_000, 4_000)),
    *(Case(f"jobs, up to {most} a person", ("kind", "born"), lambda most=most: jobs(1_500, most))
      for most in (1, 2, 4, 10)),
    Case("panel, third wave", ("region", "work"), panel=panel),
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Drawn:
    """What was published: counts of outputs, its protocol, what is known of departures; and true shares (a,)."""

    counts: IntArray
    protocol: Protocol
    departed: DepartedShares
    shares: np.ndarray


def draws(case: Case, number: int) -> list[Drawn]:
    """So many releases of a case, each with new noise and new answers."""
    if case.panel is not None:
        found: list[Drawn] = []

        def seen(year: int, said: Published) -> None:
            if year == 2 and said.departed is not None:
                shares = said.counted.counts.sum(axis=0) / said.counted.n
                found.append(Drawn(said.counts, said.protocol, said.departed, shares))

        for _ in range(number):
            follow_panel("secret", case.columns, "lip:1.0", 1.0, (0, 1, 2), panel=case.panel, seen=seen, quick=True)
        return found
    assert case.table is not None
    data = case.table()
    table = pa.Table.from_pandas(data, preserve_index=False)
    joint = Joint.from_table(table, ["secret"], list(case.columns))
    xs = input_codes(table, joint.inputs)
    cells = input_codes(table, joint.secret) * len(joint.inputs) + xs
    _, units = np.unique(data["unit"].to_numpy(), return_inverse=True)
    return [_units(joint, cells, units, np.random.default_rng()) for _ in range(number)]


def _units(joint: Joint, cells: IntArray, units: IntArray, random: np.random.Generator) -> Drawn:
    """One release of units with several rows, as `funnel.pipeline.tasks.follow` makes it."""
    rows, settings, a = UnitRows.ordered(units, random.random(len(units))), FrequencySettings(), len(joint.inputs)
    exact = counted(rows, cells, joint)
    distribution = protect(exact.first, settings, tables=2).joint
    epsilon = part_for(settings, NOTHING)
    tables = exact.with_noise(epsilon)
    bound = LIP(1.0)
    target = optimal(distribution, inner_bound(bound, 1.0), time_limit=_WORK).protocol
    who = attending(Past(), Expected.nobody(), {}, float(distribution.n))
    expected = ExpectedUnits(
        who, expected_people(Past(), who, distribution, {}), tables.changes(distribution), tables.waves
    )
    terms = VersionTerms(bound, "v", target, budget=_WORK)
    asked = UnitVersion(Past(), rows, cells, joint, np.zeros(rows.count, np.int64), terms)

    def draw(step: Step, wave: IntArray, before: IntArray) -> IntArray:
        return step.drawn(before, cells[wave] % a, random.integers(0, 2**64, len(wave), dtype=np.uint64))

    waves = follow_waves(asked, expected, draw)
    channel = waves.step.channel
    length = declared_length(channel, distribution.p_input, sum(tables.waves), len(tables.waves), epsilon)
    departures = departures_of_units(waves.step, rows.units, waves.before, cells % a, length)
    noisy = noisy_averages("departures", departures, length, epsilon)
    departed = DepartedShares.of_counts(
        noisy.counts.astype(float), discrete_laplace_variance(noisy.scale), float(len(cells) * PARTS)
    )
    counts = np.bincount(waves.outputs, minlength=len(channel.outputs))
    return Drawn(counts, channel, departed, np.bincount(cells % a, minlength=a) / len(cells))


def measure(case: Case, number: int) -> dict[str, Any]:
    """How far estimates are off, and whether intervals hold the truth, with departures and without."""
    begun = time.process_time()
    releases = draws(case, number)
    return {**figures_of(case, releases), "seconds": time.process_time() - begun}


def figures_of(case: Case, releases: list[Drawn]) -> dict[str, Any]:
    """The same of releases that were drawn."""
    found: dict[str, dict[str, list[tuple[float, float, bool]]]] = {"without": {}, "with": {}}
    for one in releases:
        for column in case.columns:
            place = one.protocol.inputs.columns.index(column)
            for how, departed in (("without", None), ("with", one.departed)):
                told = estimate(one.counts, one.protocol, column, departed=departed)
                for cell, share, low, high in zip(told.cells, told.frequencies, told.lower, told.upper, strict=True):
                    here = [symbol[place] == cell[0] for symbol in one.protocol.inputs.symbols]
                    true = float(one.shares[here].sum())
                    if true > _COUNTED:
                        cells = found[how].setdefault(f"{column} = {cell[0]}", [])
                        cells.append((float(share) - true, float(high - low) / 2, bool(low <= true <= high)))
    return {
        "case": case.name,
        "draws": len(releases),
        "records": int(releases[0].counts.sum()),
        **{how: {name: _figures(cells) for name, cells in of.items()} for how, of in found.items()},
    }


def _figures(cells: list[tuple[float, float, bool]]) -> dict[str, float]:
    off, half, held = (np.array(column, dtype=float) for column in zip(*cells, strict=True))
    # A share that a release cannot tell has an interval, and no estimate.
    told = off[~np.isnan(off)]
    return {
        "off": float(told.mean()),
        "error_of_off": float(told.std(ddof=1) / np.sqrt(len(told))),
        "half": float(np.median(half)),
        "held": float(held.mean()),
    }


def page(results: list[dict[str, Any]]) -> str:
    """The results as a page."""
    lines = [
        "# Estimates where people are predicted",
        "",
        "By `python -m benchmarks.units_estimates`: LIP 1, ε = 1 for all that is public of a version, each draw with",
        "new noise and new answers. *Off* is the mean difference of estimated shares from the truth, in percentage",
        "points, of the column's value that is furthest off, with its standard error; *held* the share of 95 %",
        "intervals that hold the truth, over all values of single columns above 2 %, and of the worst value; *half* is",
        "half the width of an interval, median, in points. *Without* departures is how releases were estimated before.",
        "",
        "| case | records | draws | without: off | held | worst | half | with: off | held | worst | half |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for one in results:
        parts = []
        for how in ("without", "with"):
            name, far = max(one[how].items(), key=lambda item: abs(item[1]["off"]))
            held = [cell["held"] for cell in one[how].values()]
            half = np.median([cell["half"] for cell in one[how].values()])
            parts += [
                f"{100 * far['off']:+.2f} ± {100 * far['error_of_off']:.2f} ({name})",
                f"{np.mean(held):.1%}",
                f"{min(held):.1%}",
                f"{100 * half:.2f}",
            ]
        lines.append(f"| {one['case']} | {one['records']:,} | {one['draws']:,} | {' | '.join(parts)} |")
    return "\n".join([*lines, ""])


def main() -> None:
    """Draw the cases that were named, or all, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*")
    parser.add_argument("--draws", type=int, default=200)
    options = parser.parse_args()
    path = Path(RESULTS / "units-estimates.json")
    known = {one["case"]: one for one in json.loads(path.read_text())["cases"]} if path.is_file() else {}
    for case in CASES:
        if not options.cases or case.name in options.cases:
            known[case.name] = measure(case, options.draws)
            results = [known[one.name] for one in CASES if one.name in known]
            path.write_text(json.dumps({"cases": results}, indent=1) + "\n")
            (RESULTS / "units-estimates.md").write_text(page(results))
            print(page(results), flush=True)


if __name__ == "__main__":
    main()
