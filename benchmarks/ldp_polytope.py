"""Optimal LDP: the cone in dimension a - 1 against the polytope of all channels, a(a - 1) dimensions, of PF theorem 2.

Both are given the same random 2 × a distributions (uniform, then normalised, as in the paper's experiment) in the same
run. Writes ``benchmarks/results/ldp_polytope.json`` and prints a table.

    python benchmarks/ldp_polytope.py [--limit SECONDS] [--distributions NUMBER] [--largest A]
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import platform
import statistics
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

import funnel
from funnel_papers.theorem_2 import best_vertex

EPSILON = 0.5
RESULTS = Path(__file__).parent / "results" / "ldp_polytope.json"


def random_joint(seed: int, size: int) -> funnel.Joint:
    """A 2 × a distribution with uniform, then normalised cells, as counts of about a million records."""
    cells = np.random.default_rng(seed).uniform(size=(2, size))
    return funnel.Joint.from_counts(np.maximum(1, np.round(cells / cells.sum() * 10**6)).astype(np.int64))


def _timed_direct(connection: Connection, counts: Any) -> None:
    started = time.perf_counter()
    value, vertices = best_vertex(funnel.Joint.from_counts(counts), EPSILON)
    connection.send((value, vertices, time.perf_counter() - started))


def direct_within(joint: funnel.Joint, limit: float) -> tuple[float, int, float] | None:
    """Value, vertices and seconds of PF theorem 2, in a process of its own; None if it does not finish in time."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_timed_direct, args=(sender, joint.counts))
    process.start()
    # Only the process may hold the sending end: then its death ends the wait with an error, not with a wrong result.
    sender.close()
    # The process is given time to start on top: only the computation itself is limited and reported.
    done = receiver.poll(limit + 10)
    result: tuple[float, int, float] | None = receiver.recv() if done else None
    process.kill()
    process.join()
    return result


def measure(size: int, distributions: int, limit: float) -> dict[str, Any]:
    """Both ways on the same distributions; medians."""
    cone_seconds, direct_seconds, vertices, finished = [], [], [], True
    for seed in range(distributions):
        joint = random_joint(seed, size)
        funnel.optimal(joint, funnel.LDP(EPSILON))
        solution = funnel.optimal(joint, funnel.LDP(EPSILON))
        cone_seconds.append(solution.seconds)
        if finished:
            found = direct_within(joint, limit)
            if found is None:
                # One that does not finish says enough about its size.
                finished = False
                continue
            value, count, seconds = found
            if abs(value - solution.utility) > 1e-7:
                raise SystemExit(f"the two optima differ: {value} and {solution.utility} at a = {size}, seed {seed}")
            direct_seconds.append(seconds)
            vertices.append(count)
    cone = statistics.median(cone_seconds)
    polytope = statistics.median(direct_seconds) if finished else None
    return {
        "a": size,
        "distributions": distributions,
        "cone_seconds": cone,
        "polytope_seconds": polytope,
        "polytope_limit": None if finished else limit,
        "polytope_vertices": max(vertices, default=None),
        "ratio": (limit if polytope is None else polytope) / cone,
    }


def main() -> None:
    """Measure, print, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limit", type=float, default=300.0, help="seconds the polytope may take for one distribution")
    parser.add_argument("--distributions", type=int, default=5, help="random distributions for each size")
    parser.add_argument("--largest", type=int, default=5, help="largest number of inputs")
    options = parser.parse_args()
    print(f"optimal LDP({EPSILON}) for random 2 × a distributions, median seconds")
    print(f"{'a':>2} {'cone (a-1 dim.)':>16} {'polytope (a(a-1) dim.)':>23} {'its vertices':>13} {'ratio':>10}")
    rows = []
    for size in range(2, options.largest + 1):
        row = measure(size, options.distributions, options.limit)
        rows.append(row)
        finished = row["polytope_seconds"] is not None
        polytope = f"{row['polytope_seconds']:.4f}" if finished else f"> {options.limit:g}"
        ratio = f"{'' if finished else '> '}{row['ratio']:,.3g}"
        print(
            f"{size:>2} {row['cone_seconds']:>16.5f} {polytope:>23} {row['polytope_vertices'] or '':>13} {ratio:>10}",
            flush=True,
        )
    RESULTS.parent.mkdir(exist_ok=True)
    machine = {"cores": os.cpu_count(), "python": platform.python_version(), "processor": platform.machine()}
    RESULTS.write_text(json.dumps({"epsilon": EPSILON, "machine": machine, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
