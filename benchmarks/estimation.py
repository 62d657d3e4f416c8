"""How often intervals of estimated shares hold the truth, and how far estimates are from it, over simulated releases.

``python -m benchmarks.estimation`` draws releases of each case, estimates every share from each, and counts how many of
the 95 % intervals hold the true share: over all values, and of the value that is held least often. Errors are root mean
squares over releases, beside the mean of the standard errors that were told. The rows go to
``benchmarks/results/estimation.json`` and a page of them to ``benchmarks/results/estimation.md``.
"""

from __future__ import annotations

import argparse
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.rows import Row, save_as_they_come
from funnel import LDP, LIP, Joint, Protocol, fit, optimal
from funnel.estimation import estimate, expected_errors

SHARES = (0.32, 0.22, 0.17, 0.11, 0.08, 0.05, 0.03, 0.012, 0.006, 0.002)


@dataclass(frozen=True, eq=False)
class Case:
    """Records with true values, and what they were drawn by.

    Attributes
    ----------
    name : str
    joint : Joint
    protocol : Protocol
    method : str
    sampling : bool
        Whether the records too are drawn anew for each release.
    """

    name: str
    joint: Joint
    protocol: Protocol
    method: str = "em"
    sampling: bool = False


def records(n: int, shares: tuple[float, ...] = SHARES) -> Joint:
    """Two secrets, the rarer ones of the values the likelier with the second."""
    counts = np.rint(np.array(shares) * n).astype(np.int64)
    counts[0] += n - counts.sum()
    second = np.rint(counts * np.linspace(0.2, 0.7, len(counts))).astype(np.int64)
    return Joint.from_counts([(counts - second).tolist(), second.tolist()])


def cases() -> dict[str, Callable[[], Case]]:
    """By name; made when they are asked for."""

    def grr(n: int, epsilon: float = 1.0, **settings: Any) -> Callable[[], Case]:
        joint = records(n)
        return lambda: Case("", joint, fit("grr", joint, LDP(epsilon)), **settings)

    def best(n: int, utility: str, epsilon: float) -> Callable[[], Case]:
        joint = records(n)
        return lambda: Case("", joint, optimal(joint, LIP(epsilon), gap=1e-4, time_limit=20, utility=utility).protocol)

    return {
        "GRR, 50,000 records": grr(50_000),
        "GRR, inverse": grr(50_000, method="inverse"),
        "GRR, sampling on top": grr(50_000, sampling=True),
        "GRR, 500 records (sparse: a value of one record)": grr(500),
        "GRR, 500 records, sampling on top": grr(500, sampling=True),
        "GRR at ε = 0.1 (near-singular)": grr(5_000, 0.1),
        "most informative, ε = 0.25 (near-singular)": best(50_000, "information", 0.25),
        "best for estimates, ε = 0.25": best(50_000, "estimation", 0.25),
        "best for estimates, ε = 0.25, 2,000 records": best(2_000, "estimation", 0.25),
    }


def measured(name: str, case: Case, releases: int) -> Row:
    """Coverage and errors of one case."""
    random = np.random.default_rng(zlib.crc32(name.encode()))
    channel = case.protocol.matrix / case.protocol.matrix.sum(axis=0)
    people = case.joint.counts.sum(axis=0)
    truth = people / people.sum()
    held, told = np.zeros((2, len(truth)))
    off, errors = [], []
    for _ in range(releases):
        drawn = random.multinomial(people.sum(), truth) if case.sampling else people
        counts = random.multinomial(drawn, channel.T).sum(axis=0)
        found = estimate(counts, case.protocol, method=case.method, sampling=case.sampling)  # type: ignore[arg-type]
        # What is published as it is has no error, and its interval always holds it.
        singly = found.errors > 1e-9
        told += singly
        held += singly & (found.lower <= truth) & (truth <= found.upper)
        off.append(found.frequencies - truth)
        errors.append(found.errors)
    shares = np.divide(held, told, out=np.full(len(held), np.nan), where=told > 0)
    expected = expected_errors(case.joint, case.protocol)
    return {
        "case": name,
        "records": int(people.sum()),
        "outputs": len(case.protocol.outputs),
        "condition": None if expected is None or np.isinf(expected.condition) else round(expected.condition, 2),
        "releases": releases,
        "coverage": round(float(held.sum() / told.sum()), 4),
        "least": round(float(np.nanmin(shares)), 4),
        "most": round(float(np.nanmax(shares)), 4),
        "rms": round(float(np.sqrt(np.nanmean(np.square(off)))), 6),
        "told": round(float(np.sqrt(np.nanmean(np.square(errors)))), 6),
    }


def page(rows: list[Row]) -> str:
    """A page of the rows."""
    lines = [
        "# Coverage of intervals of estimated shares",
        "",
        "Nominal: 95 %. Written by `python -m benchmarks.estimation`.",
        "",
        "| case | records | outputs | condition | releases | coverage | least of a value | most | RMS | told |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        lines.append(
            f"| {row['case']} | {row['records']:,} | {row['outputs']} | {row['condition']} | {row['releases']:,} "
            f"| {row['coverage']:.1%} | {row['least']:.1%} | {row['most']:.1%} | {row['rms']:.5f} | {row['told']:.5f} |"
        )
    return "\n".join([*lines, ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--releases", default=2000, type=int, help="simulated releases of each case")
    arguments = parser.parse_args()
    rows = (measured(name, made(), arguments.releases) for name, made in cases().items())
    save_as_they_come(rows, "estimation", page)


if __name__ == "__main__":
    main()
