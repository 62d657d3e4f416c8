"""How often intervals of estimated shares hold the truth, and how far estimates are from it, over simulated releases.

With noise, every release has noisy counts and a protocol of its own, made from these; records and counts are combined
as `funnel estimate` combines them, and records of an invariant protocol are counted, with room for the noise. The width
of their intervals is beside that of the records alone.

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
from itertools import chain
from typing import Any

import numpy as np

from benchmarks.rows import Row, save_as_they_come
from funnel import LDP, LIP, Joint, Protocol, fit, optimal
from funnel.estimation.combined import NoisyShares
from funnel.estimation.estimating import estimate
from funnel.estimation.expected_errors import expected_errors
from funnel.estimation.plain_counts import CountNoise, PlainCounts
from funnel.estimation.plain_shares import plain_shares
from funnel.estimation.share_estimate import Estimate
from funnel.frequencies.noise import Noise, discrete_laplace_variance
from funnel.frequencies.public_counts import of_noisy
from funnel.joint import IntArray

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


# Ten values: two have no record, and three are rare.
NOISY = (0.32, 0.22, 0.17, 0.11, 0.08, 0.06, 0.03, 0.01, 0.0, 0.0)
# What the noise of counts is by default.
EPSILON, BETA = 1.0, 0.01
SIZES = (200, 2_000, 20_000, 300_000)


def near_identity(joint: Joint) -> Protocol:
    """Records hardly change: noise makes some phantom a value that tells too much."""
    return fit("watchdog-uniform", joint, LIP(1.0))


def strong(joint: Joint) -> Protocol:
    return fit("grr", joint, LDP(1.0))


CHANNELS: dict[str, Callable[[Joint], Protocol]] = {
    "near-identity": near_identity,
    "strong": strong,
    "invariant, near-identity": lambda joint: fit("invariant", joint, LIP(1.0)),
    "invariant, strong": lambda joint: fit("invariant", joint, LIP(0.2)),
}


def both_estimates(counts: IntArray, protocol: Protocol, drawn: IntArray, noise: Noise) -> tuple[Estimate, Estimate]:
    """By the records and what is known of the noise, as of a release; and by the records alone."""
    cells = np.full(len(protocol.inputs), len(drawn))
    if protocol.is_invariant:
        of_noise = CountNoise(discrete_laplace_variance(noise.scale) * cells)
        columns = protocol.outputs.columns
        return plain_shares(PlainCounts.of(protocol, counts, of_noise), columns), estimate(counts, protocol)
    beside = NoisyShares.of_counts(drawn.sum(axis=0), cells, noise.scale, int(counts.sum()))
    return estimate(counts, protocol, beside=beside), estimate(counts, protocol)


def measured_with_noise(channel: str, n: int, releases: int) -> Row:
    """Coverage of records and noisy counts together, for shares above 2 %; with a protocol of its own each time."""
    name = f"with noise, {channel}, {n:,} records"
    random = np.random.default_rng(zlib.crc32(name.encode()))
    joint = records(n, NOISY)
    people = joint.counts.sum(axis=0)
    truth, noise = people / n, Noise(EPSILON, 0.0, BETA)
    common = truth > 0.02
    held, off, errors, widths, alone = [], [], [], [], []
    for _ in range(releases):
        ratio = np.exp(-1 / noise.scale)
        drawn = (
            joint.counts
            + random.geometric(1 - ratio, joint.counts.shape)
            - random.geometric(1 - ratio, joint.counts.shape)
        )
        public = of_noisy(drawn, joint.secret, joint.inputs, noise, EPSILON, EPSILON).joint
        protocol = CHANNELS[channel](public)
        counts = random.multinomial(people, (protocol.matrix / protocol.matrix.sum(axis=0)).T).sum(axis=0)
        found, others = both_estimates(counts, protocol, drawn, noise)
        held.append(((found.lower <= truth) & (truth <= found.upper))[common])
        off.append((found.frequencies - truth)[common])
        errors.append(found.errors[common])
        widths.append((found.upper - found.lower)[common])
        alone.append((others.upper - others.lower)[common])
    rates = np.mean(held, axis=0)
    return {
        "case": name,
        "records": n,
        "outputs": len(protocol.outputs),
        "condition": None,
        "releases": releases,
        "coverage": round(float(rates.mean()), 4),
        "least": round(float(rates.min()), 4),
        "most": round(float(rates.max()), 4),
        "rms": round(float(np.sqrt(np.mean(np.square(off)))), 6),
        "told": round(float(np.sqrt(np.mean(np.square(errors)))), 6),
        "width": round(float(np.median(widths)), 6),
        "width_alone": round(float(np.median(alone)), 6),
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
    if combined := [row for row in rows if "width" in row]:
        lines += [
            "",
            "Releases with noise: median width of the intervals of shares above 2 %, with what is known of the noise,",
            "and by the records and the true channel alone, which of invariant ones leaves out the noise of counts.",
            "",
            "| case | with the noise | records alone |",
            "| --- | --- | --- |",
            *(f"| {row['case']} | {row['width']:.5f} | {row['width_alone']:.5f} |" for row in combined),
        ]
    return "\n".join([*lines, ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--releases", default=2000, type=int, help="simulated releases of each case")
    parser.add_argument("--noisy", default=500, type=int, help="simulated releases of each case with noise")
    arguments = parser.parse_args()
    rows = (measured(name, made(), arguments.releases) for name, made in cases().items())
    noisy = (measured_with_noise(channel, n, arguments.noisy) for channel in CHANNELS for n in SIZES)
    save_as_they_come(chain(rows, noisy), "estimation", page)


if __name__ == "__main__":
    main()
