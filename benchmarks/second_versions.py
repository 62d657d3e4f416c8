"""Second versions about the same people: do records come from the channel that is published?

`python -m benchmarks.second_versions` draws a first and a second version about 100,000 people, 200 times, as releases
do but in memory: noise on the counts and on the changes, rows given what everybody's first row was. Each time the
records of every published value are held to the published channel by an exact binomial test, with the rounding that the
protocol states. Writes ``benchmarks/results/second-versions.json`` and ``second-versions.md``.

With ``--audited N`` it releases N series of two versions about 3,000 people instead, as `funnel release` does, and
audits every second version as `funnel audit` does, with its internal evidence and its register. What was made before is
kept in ``second-versions-audited.json``: a run that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from scipy.stats import binom

from funnel.audit.check import State
from funnel.audit.recheck import Told, recheck
from funnel.errors import ReleaseRefused
from funnel.frequencies.moves import Moves, noisy_moves
from funnel.frequencies.public_counts import part_for, protect
from funnel.frequencies.selection import NOTHING
from funnel.guarantees import parse_guarantee
from funnel.guarantees.base import PosteriorGuarantee
from funnel.history.allowed import require_posterior
from funnel.history.changes import Changes
from funnel.history.distributions import distributions_before
from funnel.history.expected import Expected, answered, attending, expected_after, expected_people
from funnel.history.fitting import fitted
from funnel.history.following import VersionTerms
from funnel.history.observed import Observed
from funnel.history.past import Past
from funnel.history.step import Step
from funnel.joint import FloatArray, IntArray, Joint
from funnel.mechanisms import fit
from funnel.pipeline.flows.pipeline import run_release
from funnel.protocol import WORD_BITS
from funnel.release.layout import ReleaseFolder
from funnel.rendering import figures_again, page_renderer
from funnel.settings.protection_settings import FrequencySettings
from funnel.spec import ReleaseSpec

RESULTS = Path(__file__).parent / "results"
AUDITED = RESULTS / "second-versions-audited.json"
PEOPLE = 3000
SPEC = """
name = "panel"
title = "A panel"
secret = ["ill"]
publish = ["work"]
record_key = ["id"]
guarantee = "lip:0.5"
[source]
path = "people.parquet"
[frequencies]
protection = "noise"
[categories]
ill = ["no", "yes"]
work = ["none", "part", "full"]
[history]
people = "same"
[metadata]
licence = "CC-BY-4.0"
"""
SETTINGS = FrequencySettings(protection="noise")
SECRET, INPUTS = ("no", "yes"), ("none", "part", "full")
LAW = np.array([[0.42, 0.17, 0.11], [0.06, 0.09, 0.15]])
"""P(s, x) of the first version."""
LEAVES = np.array([[0.10, 0.35, 0.05], [0.25, 0.15, 0.30]])
"""How likely a person takes a published value anew, by secret and value."""
SECRET_CHANGES = np.array([0.06, 0.12])


@dataclass(frozen=True)
class Found:
    """One second version: the least p-value, times the number of tests, and the largest difference of a share."""

    p: float
    off: float


def population(people: int, random: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Cells of everybody in both versions, shape (people,): who leaves a value takes one of those with their secret."""
    a = len(INPUTS)
    before = random.choice(LAW.size, size=people, p=LAW.ravel())
    s, x = np.divmod(before, a)
    s = np.where(random.random(people) < SECRET_CHANGES[s], 1 - s, s)
    given = LAW / LAW.sum(axis=1, keepdims=True)
    anew = (given.cumsum(axis=1)[s] < random.random(people)[:, None]).sum(axis=1)
    x = np.where(random.random(people) < LEAVES[before // a, x], anew, x)
    return before, s * a + x


def second_version(people: int, bound: PosteriorGuarantee, random: np.random.Generator) -> Found:
    """Draw both versions, and hold the records of the second to its channel."""
    cells = population(people, random)
    counted = [
        Joint.from_counts(np.bincount(one, minlength=LAW.size).reshape(LAW.shape), SECRET, INPUTS) for one in cells
    ]
    past, expected = Past(), Expected.nobody()
    nodes = np.zeros(people, dtype=np.int64)
    for number, joint in enumerate(counted):
        public = protect(joint, SETTINGS, tables=int(number > 0)).joint
        changes = {v: Changes.counted(cells[v], cells[number]) for v in range(number)}
        distributions: dict[int, Changes] = {}
        known: dict[int, float] = {}
        if changes:
            exact = [Moves.counted("0", changes[0], counted[0], joint)]
            noisy = noisy_moves(exact, [past.chapters[0].joint], public, part_for(SETTINGS, NOTHING)).since[0]
            distributions, known = {0: noisy.changes(past.chapters[0].joint, public)}, {0: float(noisy.people)}
        who = attending(past, expected, known, float(public.n))
        expecting = expected_people(past, who, public, distributions, None)
        xs = cells[number] % len(INPUTS)
        predicted = VersionTerms(bound, str(number), target=fit("optimal", public, bound)).decide(past, expecting)
        step = fitted(predicted, Observed.counted(joint, changes, nodes, xs).known_by(public, distributions)).step
        outputs = _drawn(step, nodes, xs, random)
        after, said, mass, others = answered(
            who,
            distributions_before(past, who.nodes, public, distributions).values.sum(axis=1),
            predicted.library,
            predicted.drawn_from,
        )
        b = len(step.channel.outputs)
        chapter, nodes = step.published(nodes, outputs, after * b + said)
        expected = expected_after(who, chapter.first, mass, others)
        past = past.followed_by(chapter)
    return judged(predicted.channel.matrix, xs, outputs)


def judged(channel: FloatArray, xs: IntArray, outputs: IntArray) -> Found:
    """Records of every published value by output, against the channel, (b, a), by exact tails, both sides."""
    b, a = channel.shape
    counts = np.bincount(outputs * a + xs, minlength=b * a).reshape(b, a)
    n = counts.sum(axis=0)
    tails = np.minimum(binom.cdf(counts, n, channel), binom.sf(counts - 1, n, channel))
    return Found(min(1.0, float(2 * tails.min() * channel.size)), float(np.abs(counts / n - channel).max()))


@dataclass(frozen=True)
class Audit:
    """What became of one second version: refused before it was published, or the checks that fail or cannot be made."""

    refused: str | None
    failed: tuple[str, ...] = ()
    unchecked: tuple[str, ...] = ()


def audited(number: int) -> Audit:
    """Release both versions of a series of its own, and audit the second one."""
    cells = population(PEOPLE, np.random.default_rng((31, number)))
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / "panel.toml").write_text(SPEC, encoding="utf-8")
        for version in cells:
            s, x = np.divmod(version, len(INPUTS))
            columns = {"id": np.arange(PEOPLE), "ill": np.array(SECRET)[s], "work": np.array(INPUTS)[x]}
            pq.write_table(pa.table(columns), folder / "people.parquet")
            try:
                told, _ = run_release(ReleaseSpec.load(folder / "panel.toml"), False, False)
            except ReleaseRefused as error:
                return Audit(str(error))
        checks = recheck(ReleaseFolder(Path(told["folder"])), Told(render=page_renderer(), figures=figures_again()))
    failed, unchecked = (
        tuple(one.name for one in checks if one.state is state) for state in (State.FAILED, State.UNCHECKED)
    )
    return Audit(None, failed, unchecked)


def _drawn(step: Step, nodes: IntArray, xs: IntArray, random: np.random.Generator) -> IntArray:
    channels = step.channels_of(nodes)
    rows = np.ldexp(step.library.astype(np.float64), -WORD_BITS)[channels, :, xs]
    return np.asarray(
        (rows.cumsum(axis=1) < random.random(len(nodes))[:, None] * rows.sum(axis=1)[:, None]).sum(axis=1)
    )


def page(people: int, found: list[Found], audits: list[Audit]) -> str:
    """The results as a page."""
    p = sorted(one.p for one in found)
    return "\n".join(
        [
            "# Second versions about the same people",
            "",
            f"By `python -m benchmarks.second_versions`: {len(found)} times a first and a second version about",
            f"{people:,} people, LIP(0.5), noise of ε = 1 a version. Records of every published value are held to the",
            "published channel by an exact binomial test of every output; p is the least of these, times how many they",
            "are. People change as the published tables of changes say, which is what that channel is for.",
            "",
            "| | |",
            "|---|---|",
            f"| second versions | {len(found)} |",
            f"| least p of all of them | {p[0]:.2g} |",
            f"| the same, times their number | {min(1.0, p[0] * len(p)):.2g} |",
            f"| with p below .05, of {0.05 * len(p):.0f} that may be by chance | {sum(one < 0.05 for one in p)} |",
            f"| largest difference of a share from its probability | {max(one.off for one in found):.4f} |",
            "",
            "## Released and audited",
            "",
            f"By `python -m benchmarks.second_versions --audited {len(audits)}`: so many series of two versions about",
            f"{PEOPLE:,} people who change in the same way, with the default noise, released as `funnel release` does;",
            "the second one is audited as `funnel audit` does.",
            "",
            "| | |",
            "|---|---|",
            f"| series | {len(audits)} |",
            f"| refused before the second version was published | {sum(one.refused is not None for one in audits)} |",
            f"| second versions of which a check fails | {sum(bool(one.failed) for one in audits)} |",
            f"| second versions of which a check cannot be made | {sum(bool(one.unchecked) for one in audits)} |",
            "",
        ]
    )


def main() -> None:
    """Draw, judge, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--versions", type=int, default=200)
    parser.add_argument("--people", type=int, default=100_000)
    parser.add_argument("--audited", type=int, metavar="N", help="Release and audit N series instead.")
    arguments = parser.parse_args()
    kept = RESULTS / "second-versions.json"
    audits = [Audit(**one) for one in json.loads(AUDITED.read_text(encoding="utf-8"))] if AUDITED.exists() else []
    if arguments.audited is None:
        bound = require_posterior(parse_guarantee("lip:0.5"))
        random = np.random.default_rng(31)
        found = []
        for number in range(arguments.versions):
            found.append(second_version(arguments.people, bound, random))
            print(f"{number + 1}: p = {found[-1].p:.3g}, off by {found[-1].off:.4f} at most", flush=True)
        content = {"people": arguments.people, "versions": [asdict(one) for one in found]}
        kept.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    else:
        for number in range(len(audits), arguments.audited):
            audits.append(audited(number))
            AUDITED.write_text(json.dumps([asdict(one) for one in audits], indent=1) + "\n", encoding="utf-8")
            print(f"{number + 1}: {audits[-1]}", flush=True)
    content = json.loads(kept.read_text(encoding="utf-8"))
    told = page(content["people"], [Found(**one) for one in content["versions"]], audits)
    RESULTS.joinpath("second-versions.md").write_text(told, encoding="utf-8")


if __name__ == "__main__":
    main()
