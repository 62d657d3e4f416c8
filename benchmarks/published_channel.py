"""Later versions about the same people under noise: how far the published channel is from the one records come from.

`python -m benchmarks.published_channel` publishes the waves of the health panel in memory, with noise of ε = 1 a wave.
``protocol.json`` has the channel of the people that noisy tables predict; records come from the mean, over real people,
of the channels of their histories. Writes ``benchmarks/results/published-channel.json`` and ``.md``.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from benchmarks.panel_noise import CASES, Published, follow_panel
from funnel.history.step import Step
from funnel.joint import FloatArray
from funnel.protocol import WORD_BITS
from tests.waves import WAVES

RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True)
class Difference:
    """How far both channels are apart: entries P(y|x) of values x that occur, and counts in their standard errors.

    Counts are those of published values, of real people on average, less what they are taken for: the true counts where
    values are as they are, else what the published channel makes of these.
    """

    largest: float
    mean: float
    largest_count: float
    mean_count: float

    @classmethod
    def of(cls, step: Step, published: FloatArray, stays: bool) -> Difference:
        """Of the step about real people, and the published channel (b, a)."""
        observed = step.observed
        rows = np.ldexp(step.library.astype(np.float64), -WORD_BITS)
        each = rows[step.channels_of(observed.nodes), :, observed.inputs]
        expected = np.zeros(published.shape)
        np.add.at(expected.T, observed.inputs, each * observed.records[:, np.newaxis])
        people = np.bincount(observed.inputs, observed.records, published.shape[1])
        there = people > 0
        off = np.abs(expected[:, there] / people[there] - published[:, there])
        deviation = np.sqrt(observed.records @ (each * (1 - each)))
        moved = np.abs(expected.sum(axis=1) - (people if stays else published @ people))
        # A value that is drawn for sure, or never, is off by the rounding of these sums alone.
        counts = np.divide(moved, deviation, out=np.zeros_like(moved), where=deviation > 0)
        return cls(float(off.max()), float(off.mean()), float(counts.max()), float(counts.mean()))


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--releases", type=int, default=2)
    parser.add_argument("--waves", type=int, default=len(WAVES))
    options = parser.parse_args()
    lines = [
        "# The published channel of later versions under noise",
        "",
        f"By `python -m benchmarks.published_channel`, means over {options.releases} draws of the waves of the health",
        "panel: the largest and the mean difference between an entry P(y | x) of `protocol.json` and the channel that",
        "records come from; and by how many of its standard errors (of the random answers) the count of a published",
        "value is off on average, for the worst value and for all: from what the published channel makes of the true",
        "counts, or where values are as they are (the invariant mechanism) from the true count. Of the first ones",
        "`departures` state the difference, with noise, and `funnel estimate` takes it off; of the second ones noisy",
        "`means` put the counts right, so that noise is what is left. The first protocols are optimal ones, found in",
        "a search of .2 seconds.",
        "",
        "| secret given columns | wave | largest entry | mean entry | worst count | mean count |",
        "|---|---|---|---|---|---|",
    ]
    found = []
    for stays in (False, True):
        for secret, publish, guarantee in CASES:
            seen = defaultdict[int, list[Difference]](list)

            def look(year: int, one: Published, seen: dict[int, list[Difference]] = seen, stays: bool = stays) -> None:
                seen[year].append(Difference.of(one.step, one.protocol.matrix, stays))

            for _ in range(options.releases):
                years = WAVES[: options.waves]
                follow_panel(secret, publish, guarantee, 1.0, years, stays=stays, seen=look, quick=not stays)
            name = f"{secret} given {' and '.join(publish)}{', values as they are' if stays else ''}"
            for year, each in seen.items():
                mean = Difference(*np.mean([list(asdict(one).values()) for one in each], axis=0).tolist())
                found.append({"case": name, "guarantee": guarantee, "year": year, **asdict(mean)})
                cells = f"{mean.largest:.4f} | {mean.mean:.4f} | {mean.largest_count:.1f} | {mean.mean_count:.1f}"
                lines.append(f"| {name} | {year} | {cells} |")
                print(lines[-1], flush=True)
    if options.waves == len(WAVES):
        (RESULTS / "published-channel.json").write_text(json.dumps({"waves": found}, indent=1) + "\n")
        (RESULTS / "published-channel.md").write_text("\n".join([*lines, ""]))


if __name__ == "__main__":
    main()
