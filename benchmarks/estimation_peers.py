"""Errors of estimated shares beside those of pure-ldp and multi-freq-ldpy, on reports of their own GRR and OUE.

The clients of multi-freq-ldpy draw the reports, and all estimators read the same ones in the same run. The packages are
no dependencies of this project; where they are missing, one sentence says how to get them into a folder that
``--packages`` names. The rows go to ``benchmarks/results/estimation-peers.json`` and ``estimation-peers.md``.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.rows import Row, save_as_they_come, table
from funnel import Protocol, estimate
from funnel.alphabet import Alphabet
from funnel.rounding import integer_weights

SHARES = np.array([0.36, 0.24, 0.16, 0.1, 0.07, 0.04, 0.02, 0.01])
K = len(SHARES)
VALUES = tuple((f"v{x}",) for x in range(K))
NAMES = ("pure-ldp", "pure-ldp, simplex", "multi-freq-ldpy MI", "multi-freq-ldpy IBU", "funnel inverse", "funnel em")


def channel_of(kind: str, epsilon: float) -> Protocol:
    """The distribution of the reports as a protocol: of GRR one of the values, of OUE a set of them."""
    if kind == "GRR":
        matrix = np.full((K, K), 1.0)
        np.fill_diagonal(matrix, np.exp(epsilon))
        return _protocol(matrix / matrix.sum(axis=0), VALUES)
    sets = np.array(list(itertools.product((0, 1), repeat=K)))
    inside, outside = 0.5, 1 / (np.exp(epsilon) + 1)
    distribution = np.where(sets[:, :, None] == 1, outside, 1 - outside) * np.ones(K)
    for x in range(K):
        distribution[:, x, x] = np.where(sets[:, x] == 1, inside, 1 - inside)
    return _protocol(distribution.prod(axis=1), tuple(("".join(map(str, one)),) for one in sets))


def _protocol(matrix: Any, outputs: tuple[tuple[str, ...], ...]) -> Protocol:
    weights = integer_weights(matrix)
    return Protocol(weights, weights[:, 0], Alphabet(("x",), VALUES), Alphabet(("x",), outputs), "given", "ldp:9")


def estimators(kind: str, epsilon: float) -> Callable[[list[Any]], dict[str, Any]]:
    """All estimators of one kind of reports."""
    from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Aggregator_IBU, GRR_Aggregator_MI
    from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Aggregator_IBU, UE_Aggregator_MI
    from pure_ldp.frequency_oracles.direct_encoding import DEServer
    from pure_ldp.frequency_oracles.unary_encoding import UEServer

    protocol = channel_of(kind, epsilon)
    places = 2 ** np.arange(K)[::-1]

    def found(reports: list[Any]) -> dict[str, Any]:
        server = DEServer(epsilon, K) if kind == "GRR" else UEServer(epsilon, K, use_oue=True)
        server.aggregate_all(reports)
        values, n = list(range(1, K + 1)), len(reports)
        raw = server.estimate_all(values, suppress_warnings=True) / n
        near = server.estimate_all(values, suppress_warnings=True, normalization=2) / n
        if kind == "GRR":
            mi, ibu = GRR_Aggregator_MI(reports, K, epsilon), GRR_Aggregator_IBU(reports, K, epsilon)
            counts = np.bincount(np.array(reports, dtype=np.int64), minlength=K)
        else:
            mi, ibu = UE_Aggregator_MI(reports, epsilon), UE_Aggregator_IBU(reports, K, epsilon)
            counts = np.bincount(np.array(reports, dtype=np.int64) @ places, minlength=2**K)
        ours = estimate(counts, protocol, method="inverse"), estimate(counts, protocol)
        both = dict(zip(NAMES, (raw, near, mi, ibu, *(one.frequencies for one in ours)), strict=True))
        return {**both, "lower": ours[1].lower, "upper": ours[1].upper}

    return found


def measured(kind: str, epsilon: float, n: int, releases: int) -> Row:
    """Root mean square errors over releases, and how often the intervals hold the truth."""
    from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Client
    from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Client

    estimated = estimators(kind, epsilon)
    people = np.repeat(np.arange(K), np.rint(SHARES * n).astype(int))
    truth = np.bincount(people, minlength=K) / len(people)
    off: dict[str, list[Any]] = {name: [] for name in NAMES}
    held = []
    np.random.seed(0)
    for _ in range(releases):
        client = GRR_Client if kind == "GRR" else UE_Client
        found = estimated([client(int(x), K, epsilon) for x in people])
        for name in NAMES:
            off[name].append(found[name] - truth)
        held.append((found["lower"] <= truth) & (truth <= found["upper"]))
    errors = {name: round(float(np.sqrt(np.mean(np.square(rows)))), 5) for name, rows in off.items()}
    coverage = round(float(np.mean(held)), 4)
    return {"kind": kind, "epsilon": epsilon, "records": len(people), "releases": releases, **errors, "held": coverage}


def page(rows: list[Row]) -> str:
    """A page of the rows."""
    lines = [
        "# Estimated shares beside peers",
        "",
        "Root mean square errors over eight values, from the same reports; the last column is how often the 95 %",
        "intervals of funnel's em hold the truth, which the others do not give.",
        "By `python -m benchmarks.estimation_peers`.",
        "",
    ]
    cells = (
        (
            *(row["kind"], row["epsilon"], f"{row['records']:,}", row["releases"]),
            *(f"{row[name]:.5f}" for name in NAMES),
            f"{row['held']:.1%}",
        )
        for row in rows
    )
    head = ["reports", "ε", "records", "releases", *NAMES, "intervals hold"]
    return "\n".join([*lines, *table(head, cells), ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--releases", default=100, type=int, help="simulated releases of each case")
    parser.add_argument("--packages", help="a folder with pure-ldp and multi-freq-ldpy")
    arguments = parser.parse_args()
    if arguments.packages:
        sys.path.append(arguments.packages)
    try:
        import multi_freq_ldpy
        import pure_ldp
    except ImportError as error:
        raise SystemExit(
            f"the peers are missing ({error}); run: pip install --target peers --no-deps pure-ldp multi-freq-ldpy "
            "xxhash bitarray statsmodels scikit-learn patsy joblib threadpoolctl, and name that folder by "
            "--packages peers"
        ) from None
    print("beside", pure_ldp.__name__, multi_freq_ldpy.__name__)
    cases = itertools.product(("GRR", "OUE"), (0.5, 1.0, 2.0), (5_000,))
    save_as_they_come((measured(*case, arguments.releases) for case in cases), "estimation-peers", page)


if __name__ == "__main__":
    main()
