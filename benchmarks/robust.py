"""Robust mechanisms: true against nominal levels on Adult, and the RLDP paper's experiments with calibrated versions.

``python -m benchmarks.robust adult`` measures nominal and true robust levels and utilities, ``figure2`` what is kept
for |S| = |U| = 3, n = 1000, Jeffreys distributions and ε from 0.2 to 8, ``figure3`` the same for |S| = |U| = 5 and n
from 100 to 100,000. Each group is resumed where it was interrupted: its rows go to
``benchmarks/results/robust-<group>.json`` as they come. Distributions and measures are those of ``funnel reproduce
rldp``. ``tables`` writes ``benchmarks/results/robust.md`` and draws the figures into docs/ from what there is.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import funnel
from benchmarks.robust_tables import TITLES, write_figures, write_tables
from funnel import LDP, RLDP, Joint
from funnel.errors import FunnelError
from funnel.joint import FloatArray
from funnel.measures.information import information_of
from funnel.mechanisms import mechanism
from funnel.mechanisms.family import calibrate
from funnel.mechanisms.grr import grr_matrix
from funnel.mechanisms.polyopt import polyopt_channel
from funnel.rounding import integer_weights
from funnel.solver.budget import Budget
from funnel_papers.distributions import Distribution
from funnel_papers.robust_measuring import RobustDistribution

HERE = Path(__file__).parent
RESULTS = HERE / "results"
EPSILONS = (0.2, 0.5, 1.0, 2.0, 4.0, 8.0)
SIZES = (100, 1000, 10_000, 100_000)
GAP = 1e-3
_NAMES = {title: name for name, title in TITLES.items()}
Row = dict[str, Any]


class Rows:
    """The rows of one group by their key, kept in a file."""

    def __init__(self, group: str) -> None:
        self._path = RESULTS / f"robust-{group}.json"
        self.rows: list[Row] = json.loads(self._path.read_text()) if self._path.exists() else []

    def find(self, **key: object) -> Row:
        """The row of a key; a new one if there is none."""
        for row in self.rows:
            if all(row.get(name) == value for name, value in key.items()):
                return row
        self.rows.append(dict(key))
        return self.rows[-1]

    def save(self) -> None:
        """One row a line."""
        text = ",\n".join(json.dumps(row, ensure_ascii=False) for row in self.rows)
        self._path.write_text(f"[\n{text}\n]\n")


def jeffreys(seed: int, size: int, n: int) -> Joint:
    """Counts of n records from a Dirichlet(½) distribution; secrets that did not turn up are drawn again."""
    return Distribution("sampled", (size, size), seed, n).joint(HERE)


def named(found: dict[str, float | None], epsilon: float) -> Row:
    """What was measured of a distribution under the names of mechanisms; what is used of the budget as a level."""
    row: Row = {}
    for label, value in found.items():
        title, _, version = label.removeprefix("used by ").partition(", ")
        name = f"{_NAMES.get(title, title)}{', ' + version if version else ''}"
        used = label.startswith("used by ")
        row[f"level of {name}" if used else name] = value * epsilon if used and value is not None else value
    return row


# What is measured of a distribution, with a label by which a row is known to have it.
PARTS = {
    "published": "grr",
    "polyopt": "polyopt",
    "optimum": "bound",
    "calibrated": "grr, calibrated",
    "polyopt_calibrated": "polyopt, calibrated",
}


def measured(
    group: str,
    keys: Iterable[Row],
    distribution_of: Callable[[Row], RobustDistribution],
    distributions: dict[str, int],
    only: Sequence[str] | None,
) -> None:
    """Measure what is missing: parts by name, or only some of them, each for distributions below a number."""
    rows = Rows(group)
    for part in [name for name in distributions if not only or name in only]:
        for key in keys:
            row = rows.find(**key)
            if key["distribution"] >= distributions[part] or PARTS[part] in row:
                continue
            started = time.perf_counter()
            distribution = distribution_of(key)
            found = named(getattr(distribution, part)(), distribution.guarantee.epsilon)
            finite = {name: value for name, value in found.items() if value is not None and math.isfinite(value)}
            row.update({name: round(finite[name], 6) if name in finite else None for name in found})
            print(group, part, key, f"{time.perf_counter() - started:.1f} s", flush=True)
            rows.save()


def figure2(arguments: argparse.Namespace) -> None:
    """|S| = |U| = 3, n = 1000."""
    distributions = {
        "published": arguments.distributions,
        "polyopt": arguments.distributions,
        "optimum": arguments.optimised,
        "calibrated": arguments.calibrated,
        "polyopt_calibrated": arguments.calibrated,
    }
    keys = [
        {"distribution": distribution, "epsilon": epsilon}
        for distribution in range(arguments.distributions)
        for epsilon in EPSILONS
    ]
    measured(
        "figure2",
        keys,
        lambda key: RobustDistribution(jeffreys(key["distribution"], 3, 1000), key["epsilon"], 80.0),
        distributions,
        arguments.part,
    )


def figure3(arguments: argparse.Namespace) -> None:
    """|S| = |U| = 5, ε = 1, n from 100 to 100,000."""
    distributions = {
        "published": arguments.distributions,
        "calibrated": arguments.calibrated,
        "polyopt": arguments.optimised,
        "optimum": arguments.optimised,
        "polyopt_calibrated": arguments.optimised,
    }
    keys = [{"distribution": distribution, "n": n} for distribution in range(arguments.distributions) for n in SIZES]
    measured(
        "figure3",
        keys,
        lambda key: RobustDistribution(jeffreys(key["distribution"], 5, key["n"]), 1.0, 20.0),
        distributions,
        arguments.part,
    )


def adult(arguments: argparse.Namespace) -> None:
    """Nominal budget, true robust level and utility of every mechanism, made for the estimate and for F."""
    rows = Rows("adult")
    for secret, inputs in (("sex", "occupation"), ("marital-status", "education")):
        joint = Joint.from_table(arguments.data, secret=[secret], inputs=[inputs])
        for epsilon in (0.5, 1.0, 2.0):
            for name, version, made in _adult_versions(joint, epsilon, arguments.limit):
                row = rows.find(case=f"{secret} given {inputs}", epsilon=epsilon, mechanism=name, version=version)
                if "seconds" in row:
                    continue
                started = time.perf_counter()
                try:
                    row.update(made())
                except FunnelError as error:
                    row["reason"] = str(error)
                row["seconds"] = round(time.perf_counter() - started, 1)
                print(row, flush=True)
                rows.save()


def _adult_versions(joint: Joint, epsilon: float, limit: float) -> list[tuple[str, str, Callable[[], Row]]]:
    guarantee = RLDP(epsilon, set="chi2")
    read = joint.with_secret()

    def judged(weights: FloatArray, reads: Joint) -> Row:
        level = guarantee.level_for(reads, weights).value
        matrix = weights / 2.0**63
        if reads is joint:
            matrix = np.tile(matrix, len(joint.secret))
        both = information_of((matrix * read.p_input).T)
        distribution = (matrix.reshape(len(matrix), *joint.counts.shape) * joint.p).sum(axis=1).T
        return {
            "level": level if math.isfinite(level) else None,
            "input share": information_of(distribution) / joint.entropy,
            "share": both / read.entropy,
        }

    def fitted(name: str, bound: funnel.Guarantee) -> Callable[[], Row]:
        def made() -> Row:
            found = mechanism(name).fitted(joint, bound, Budget.of(limit))
            protocol = found.protocol
            reads = joint.read_by(protocol.inputs.columns)
            row = judged(protocol.weights_for(reads.inputs), reads)
            return {**row, "finished": found.finished, "reads secret": reads is not joint}

        return made

    def published(name: str) -> Callable[[], Row]:
        def made() -> Row:
            near = guarantee.neighbourhood(read)
            if name == "grr":
                matrix = grr_matrix(len(read.inputs), epsilon)
            elif name == "polyopt":
                matrix = polyopt_channel(joint, near, epsilon * (1 - 1e-6), Budget.of(limit))
            else:
                matrix, _ = mechanism(name).as_published(joint, guarantee)  # type: ignore[attr-defined]
            return {**judged(integer_weights(matrix), read), "reads secret": True}

        return made

    def grr_calibrated() -> Row:
        _, weights = calibrate(lambda value: grr_matrix(len(read.inputs), value), read, guarantee, 1e-4)
        return {**judged(weights, read), "reads secret": True}

    def robust_optimum() -> Row:
        solution = funnel.optimal(joint, guarantee, GAP, limit, reads_secret=True, counts="secret and inputs")
        weights = solution.protocol.weights_for(read.inputs)
        bound = solution.bound / read.entropy
        return {
            **judged(weights, read),
            "bound": bound,
            "finished": solution.finished,
            "reads secret": True,
        }

    plain, robust = "made for the estimate", "calibrated"
    versions: list[tuple[str, str, Callable[[], Row]]] = []
    for name in ("optimal", "grr", "conditional-reporting"):
        versions += [(name, plain, fitted(name, LDP(epsilon))), (name, robust, fitted(name, guarantee))]
    versions += [("grr of (S, U)", "as published", published("grr")), ("grr of (S, U)", robust, grr_calibrated)]
    for name in ("independent-reporting", "robust-conditional-reporting", "polyopt"):
        versions += [(name, "as published", published(name)), (name, robust, fitted(name, guarantee))]
    versions += [("robust-optimal", "over F itself", robust_optimum)]
    return versions


GROUPS = {"adult": adult, "figure2": figure2, "figure3": figure3}


def main() -> None:
    """Measure the named groups, then write tables and figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("groups", nargs="*", help=f"of {', '.join(GROUPS)} and tables; all by default")
    parser.add_argument("--data", default=HERE.parent / "data" / "adult.parquet", type=Path)
    parser.add_argument("--distributions", default=200, type=int)
    parser.add_argument(
        "--optimised", default=10, type=int, help="distributions for which the optimum over F is computed"
    )
    parser.add_argument("--calibrated", default=40, type=int, help="distributions for which mechanisms are calibrated")
    parser.add_argument("--part", action="append", choices=list(PARTS), help="measure only this part, such as polyopt")
    parser.add_argument("--limit", default=60.0, type=float, help="seconds for an optimisation on Adult")
    arguments = parser.parse_args()
    for group in arguments.groups or GROUPS:
        if group != "tables":
            GROUPS[group](arguments)
    found = {group: Rows(group).rows for group in GROUPS}
    write_tables(found, RESULTS / "robust.md")
    write_figures(found, HERE.parent / "docs")


if __name__ == "__main__":
    main()
