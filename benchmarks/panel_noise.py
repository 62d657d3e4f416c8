"""The panel under noise: what versions about the same people keep where counts and changes are noisy, and for whom.

`python -m benchmarks.panel_noise` draws five waves of the health panel as releases do, but in memory, for both of its
secrets, and again with the bound under every set of tables that noise leaves open. It tells what each wave keeps, whom
it did not expect, and what two readers believe who know more than is published: the true values of the published
tables, and the true counts of all changes between cells. Writes ``benchmarks/results/panel-noise.json`` and
``panel-noise.md``. With ``--unchanged`` values stay as they are (the invariant mechanism), and it tells how many
records stay true and by how many a table is off on average: ``panel-unchanged.json`` and ``panel-unchanged.md``.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from funnel.estimation.departed_shares import DepartedShares
from funnel.frequencies.averages import noisy_averages, variances_of_noise
from funnel.frequencies.limits import moves_limit
from funnel.frequencies.moves import Moves, noisy_moves
from funnel.frequencies.noise import discrete_laplace_variance
from funnel.frequencies.public_counts import part_for, protect
from funnel.frequencies.selection import NOTHING
from funnel.guarantees import parse_guarantee
from funnel.guarantees.base import PosteriorGuarantee
from funnel.history.allowed import require_posterior
from funnel.history.changes import Changes, MoveLimits
from funnel.history.corrected import PARTS, corrected, means
from funnel.history.departures import declared_length, departures_of_people
from funnel.history.distributions import distributions_before
from funnel.history.expected import Expected, answered, attending, expected_after, expected_people
from funnel.history.fitting import fitted
from funnel.history.following import VersionTerms
from funnel.history.observed import Observed
from funnel.history.past import Chapter, Past
from funnel.history.step import Step
from funnel.joint import FloatArray, IntArray, Joint
from funnel.measures.unchanged_shares import unchanged
from funnel.mechanisms import fit
from funnel.planning import choose, plan
from funnel.protocol import INVARIANT, WORD_BITS, Protocol
from funnel.settings.protection_settings import FrequencySettings
from funnel.solver.optimum import optimal
from tests.informed import Reader, reader
from tests.waves import WAVES, wave


@dataclass(eq=False)
class People:
    """Who was in which wave: by number of the person the history so far, the last wave, and the cell in every wave."""

    nodes: IntArray
    last: IntArray
    cells: list[IntArray]


@dataclass(frozen=True, eq=False)
class Published:
    """A wave as readers have it, beside the true counts: its protocol, counts (b,), and what noise is in these.

    ``noise`` has the variance of counts that were put right, ``departed`` what is known of departures of others;
    ``step`` has the channels that these people were drawn from, which are not published.
    """

    counted: Joint
    protocol: Protocol
    counts: IntArray
    noise: FloatArray | None
    step: Step
    departed: DepartedShares | None = None


CASES = (
    ("outwork", ("income", "kids"), "lip:1.0"),
    ("married", ("age", "outwork"), "lip:0.5"),
)
RESULTS = Path(__file__).parent / "results"
# Seconds of work.
_QUICK = 0.2


@dataclass(frozen=True)
class Wave:
    """What came of one wave; shares of H(X), and levels in nats."""

    year: int
    people: int
    alone: float
    kept: float
    unchanged_alone: float | None
    unchanged: float | None
    off: float | None
    late: float | None
    histories: int
    predicted: int
    others: float
    unpredicted: int
    silent: int
    level: float
    outside: int
    tables: Reader
    changes: Reader
    seconds: float


def follow_panel(
    secret: str,
    publish: tuple[str, ...],
    guarantee: str,
    epsilon: float,
    years: tuple[int, ...] = WAVES,
    *,
    robust: bool = False,
    reserve: float = 1.0,
    stays: bool = False,
    panel: Callable[[int], pa.Table] = wave,
    seen: Callable[[int, Published], None] | None = None,
    quick: bool = False,
) -> list[Wave]:
    """Decide and draw all waves; robust: under every set of tables that noise leaves open; stays: true values.

    ``panel`` has the people of a wave, and ``seen`` is told what is published of each; quick: aiming at an optimum that
    is not searched for long, and not at the best of all mechanisms.
    """
    bound = require_posterior(parse_guarantee(guarantee))
    settings = FrequencySettings(protection="noise", epsilon=epsilon)
    past, tables, truth = Past(), Past(), Past()
    expected = Expected.nobody()
    most = max(int(np.max(panel(year)["id"].to_numpy())) for year in years) + 1
    people = People(np.zeros(most, dtype=np.int64), np.full(most, -1, dtype=np.int64), [])
    rng = np.random.default_rng(15 if seen is None else None)
    draws = Draws(most)
    found = []
    for number, year in enumerate(years):
        begun = time.process_time()
        table = panel(year)
        ids = table["id"].to_numpy()
        counted, cells = _counted(table, secret, publish)
        protected = protect(counted, settings, tables=2 * (number > 0))
        public = protected.joint
        here = np.full(most, -1, dtype=np.int64)
        here[ids] = cells
        both = {v: _changes(people.cells[v][ids], cells) for v in range(number)}
        exact = [
            Moves.counted(
                str(v),
                _changes(np.where(people.last[ids] == v, people.cells[v][ids], -1), cells),
                distribution,
                counted,
            )
            for v, distribution in enumerate(chapter.joint for chapter in past.chapters)
        ]
        if robust:
            exact = [one.by_secret for one in exact]
        distributions: dict[int, Changes] = {}
        limits: dict[int, MoveLimits] | None = {} if robust else None
        known: dict[int, float] = {}
        if exact:
            versions = [chapter.joint for chapter in past.chapters]
            noisy = noisy_moves(exact, versions, public, part_for(settings, NOTHING))
            distributions = {
                v: moves.changes(distribution, public)
                for v, (moves, distribution) in enumerate(zip(noisy.since, versions, strict=True))
            }
            known = {v: float(moves.people) for v, moves in enumerate(noisy.since)}
            if limits is not None:
                limit = moves_limit(noisy.counts, noisy.scale, settings.beta)
                limits |= {v: moves.limits(limit) for v, moves in enumerate(noisy.since)}
        if quick:
            target = optimal(public, bound, time_limit=_QUICK).protocol
        else:
            target = fit(INVARIANT, public, bound) if stays else _most_useful(public, bound)
        who = attending(past, expected, known, float(public.n))
        expecting = expected_people(past, who, public, distributions, limits)
        predicted = VersionTerms(bound, str(year), target=target, reserve=reserve).decide(past, expecting)
        xs = cells % len(counted.inputs)
        real = Observed.counted(counted, both, people.nodes[ids], xs)
        drawn = fitted(predicted, real.known_by(public, distributions))
        late = float(np.abs(means(drawn.step) / PARTS - counted.counts.sum(axis=0)).max()) if stays else None
        noise = None
        if stays and number:
            noisy = noisy_averages("means", means(drawn.step), PARTS, part_for(settings, NOTHING))
            noise = variances_of_noise(noisy, protected)
            drawn = corrected(drawn, noisy.counts)
            predicted = drawn.predicted
        outputs = _drawn(drawn.step, people.nodes[ids], xs, rng)
        if seen is not None:
            counts = np.bincount(outputs, minlength=len(target.outputs))
            departed = None if stays or not number else _departed(drawn.step, public, settings)
            seen(year, Published(counted, predicted.channel, counts, noise, drawn.step, departed))
        nodes, said, mass, others = answered(
            who,
            distributions_before(past, who.nodes, public, distributions).values.sum(axis=1),
            predicted.library,
            predicted.drawn_from,
        )
        b = len(target.outputs)
        chapter, reached = drawn.step.published(people.nodes[ids], outputs, nodes * b + said)
        mean = draws.followed_by(drawn.step, chapter, ids, xs)
        expected = expected_after(who, chapter.first, mass, others)
        true_distributions = {
            v: moves.changes(distribution, counted)
            for v, (moves, distribution) in enumerate(
                zip(exact, (chapter.joint for chapter in tables.chapters), strict=True)
            )
        }
        by_tables = reader(tables, drawn.step, real.known_by(counted, true_distributions))
        by_changes = reader(truth, drawn.step, real)
        people.nodes[ids] = reached
        people.last[ids] = number
        people.cells.append(here)
        past = past.followed_by(chapter)
        tables = tables.followed_by(replace(chapter, joint=counted, changes=true_distributions))
        truth = truth.followed_by(replace(chapter, joint=counted, changes=both))
        found.append(
            Wave(
                year,
                len(ids),
                predicted.alone / public.entropy,
                predicted.utility / public.entropy,
                unchanged(public, target).share if stays else None,
                unchanged(public, predicted.channel).share if stays else None,
                float(np.abs(mean - counted.counts.sum(axis=0)).max()) if stays else None,
                late,
                len(np.unique(real.nodes)),
                predicted.histories,
                who.others / public.n,
                drawn.unpredicted,
                drawn.silent,
                drawn.step.level.value,
                drawn.step.outside,
                by_tables,
                by_changes,
                time.process_time() - begun,
            )
        )
        if seen is None:
            print(told(found[-1]), flush=True)
    return found


class Draws:
    """What everybody's history is, over all draws so far: by person the probability of each."""

    def __init__(self, people: int) -> None:
        self._of: list[dict[int, float]] = [{0: 1.0}] * people

    def followed_by(self, step: Step, chapter: Chapter, ids: IntArray, xs: IntArray) -> FloatArray:
        """One more wave; the mean of its published table, (b,), without histories that have no channel of their own."""
        rows = np.ldexp(step.library.astype(np.float64), -WORD_BITS)
        channel = dict(zip(step.followed.tolist(), step.drawn_from.tolist(), strict=True))
        pairs = zip(chapter.parents.tolist(), chapter.outputs.tolist(), strict=True)
        node = {pair: chapter.first + place for place, pair in enumerate(pairs)}
        # What becomes of a history is kept with it, so that no other comes to have its place in memory.
        known: dict[tuple[int, int], tuple[FloatArray, dict[int, float], dict[int, float]]] = {}
        mean = np.zeros(rows.shape[1])
        for person, x in zip(ids.tolist(), xs.tolist(), strict=True):
            before = self._of[person]
            if (id(before), x) not in known:
                said, after = np.zeros(rows.shape[1]), dict[int, float]()
                for history, share in before.items():
                    if history in channel:
                        row = share * rows[channel[history], :, x]
                        said += row
                        possible = (y for y in np.flatnonzero(row).tolist() if (history, y) in node)
                        after |= {node[history, y]: float(row[y]) for y in possible}
                whole = sum(after.values())
                known[id(before), x] = said, {one: share / whole for one, share in after.items()}, before
            said, self._of[person], _ = known[id(before), x]
            mean += said
        return mean


def _most_useful(public: Joint, bound: PosteriorGuarantee) -> Protocol:
    rows = plan(public, bound, time_limit=20.0)
    target = choose([row for row in rows if row.reason is None and row.protocol is not None]).protocol
    assert target is not None
    return target


def _counted(table: object, secret: str, publish: tuple[str, ...]) -> tuple[Joint, IntArray]:
    from funnel.sampling.codes import input_codes

    joint = Joint.from_table(table, [secret], list(publish))  # type: ignore[arg-type]
    cells = input_codes(table, joint.secret) * len(joint.inputs) + input_codes(table, joint.inputs)  # type: ignore[arg-type]
    return joint, np.asarray(cells, dtype=np.int64)


def _changes(before: IntArray, after: IntArray) -> Changes:
    return Changes.counted(before[before >= 0], after[before >= 0])


def _departed(step: Step, public: Joint, settings: FrequencySettings) -> DepartedShares:
    epsilon = part_for(settings, NOTHING)
    length = declared_length(step.channel, public.p_input, public.n, 1, epsilon)
    noisy = noisy_averages("departures", departures_of_people(step, length), length, epsilon)
    records = float(step.observed.records.sum()) * PARTS
    return DepartedShares.of_counts(noisy.counts.astype(float), discrete_laplace_variance(noisy.scale), records)


def _drawn(step: Step, nodes: IntArray, xs: IntArray, rng: np.random.Generator) -> IntArray:
    channels = step.channels_of(nodes)
    rows = np.ldexp(step.library.astype(np.float64), -WORD_BITS)[channels, :, xs]
    return np.asarray((rows.cumsum(axis=1) < rng.random(len(nodes))[:, None] * rows.sum(axis=1)[:, None]).sum(axis=1))


def told(one: Wave) -> str:
    """A wave as a line."""
    if one.unchanged is not None:
        return _unchanged(one)
    readers = ", ".join(
        f"{name}: level {who.level:.4f}, beyond {who.beyond:.1%}, moved {who.moved}, outside {who.people}"
        for name, who in (("knows true tables", one.tables), ("knows all changes", one.changes))
    )
    return (
        f"{one.year}: kept {one.kept:.4f} alone {one.alone:.4f}, histories {one.histories:,}, "
        f"predicted {one.predicted:,}, others {one.others:.4f}, unpredicted {one.unpredicted}, silent {one.silent}, "
        f"level {one.level:.6f}, outside {one.outside}; {readers}; {one.seconds:.0f} s"
    )


def _unchanged(one: Wave) -> str:
    assert one.unchanged is not None
    assert one.unchanged_alone is not None
    assert one.off is not None
    assert one.late is not None
    cells = [f"{one.people:,}", f"{one.unchanged:.3f}", f"{one.unchanged_alone:.3f}", f"{one.kept:.3f}"]
    cells += [f"{one.alone:.3f}", f"{one.late:.1f}", f"{one.off:.1f}", f"{one.level:.4f}"]
    cells += [f"{one.outside:,}", f"{one.seconds:.0f}"]
    return f"| {one.year} | {' | '.join(cells)} |"


def page_of_unchanged(results: list[dict[str, Any]]) -> str:
    """The results of values that stay as they are, as a page."""
    lines = [
        "# The panel under noise, with values as they are",
        "",
        "By `python -m benchmarks.panel_noise --unchanged`: the invariant mechanism over five waves about the same",
        "people, noise of ε = 1 a wave. *Unchanged* is the share of records that stay true, *kept* I(X; W) as a share",
        "of H(X), both next to the protocol of the wave alone; *late* by how many records the worst count would be off",
        "on average, for these people and what was published about them, if answers were not put right by the noisy",
        "means; *off* by how many it is, over all draws: the noise. *Level* and *outside* are for an observer who",
        "knows what is published.",
    ]
    for case in results:
        lines += [
            "",
            f"## {case['secret']} given {' and '.join(case['publish'])}, {case['guarantee']}",
            "",
            "| wave | people | unchanged | alone | kept | alone | late | off | level | outside | processor, s |",
            "|---|---|---|---|---|---|---|---|---|---|---|",
            *(_unchanged(Wave(**one)) for one in case["waves"]),
        ]
    return "\n".join([*lines, ""])


def page(results: list[dict[str, Any]]) -> str:
    """The results as a page."""
    lines = [
        "# The panel under noise, and readers who know more than is published",
        "",
        "By `python -m benchmarks.panel_noise`. *Kept* is I(X; W) as a share of H(X); *level* and *outside* are for",
        "an observer who knows what is published. *True tables* is a reader who knows counts and moves without "
        "their noise,",
        "*all changes* one who knows the exact counts of all changes between cells: the largest level, ∞ where a",
        "value of the secret is ruled out; the share of the answers that are expected to be outside the bound;",
        "people whose history is outside by these frequencies alone, before the wave says anything; people after",
        "whose history some answer is.",
        "",
        "*Robust* is `robust = true` in `[history]`: the bound holds under every set of tables that the noise leaves",
        "open. With ε = 10 noise moves counts by as large a share as with ε = 1 in waves of ten times as many people.",
    ]
    for robust in (False, True):
        lines += [
            "",
            f"## {'Robust' if robust else 'For an observer who knows the published tables'}",
            "",
            "| case, wave | people | kept | level | outside "
            "| true tables: level | answers outside | moved | some outside "
            "| all changes: level | answers outside | moved | some outside | processor, s |",
            "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|",
        ]
        for case in (one for one in results if one["robust"] is robust):
            lines += [_line(case, one) for one in case["waves"]]
    return "\n".join([*lines, ""])


def _line(case: dict[str, Any], one: dict[str, Any]) -> str:
    cells = [f"{case['secret']}, {case['guarantee']}, ε {case['epsilon']:g}, {one['year']}"]
    cells += [f"{one['people']:,}", f"{one['kept']:.3f}", f"{one['level']:.4f}", f"{one['outside']:,}"]
    for name in ("tables", "changes"):
        who = one[name]
        cells.append("∞" if who["level"] is None else f"{who['level']:.3f}")
        cells.append(f"{who['beyond']:.1%}")
        cells += [f"{who[part]:,}" for part in ("moved", "people")]
    return "| " + " | ".join([*cells, f"{one['seconds']:.0f}"]) + " |"


def _finite(told: Any) -> Any:
    """The same with None for what is infinite, as JSON has no other name for it."""
    if isinstance(told, dict):
        return {name: _finite(part) for name, part in told.items()}
    return None if isinstance(told, float) and math.isinf(told) else told


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--secret", choices=[case[0] for case in CASES], help="one of the cases; else both are written")
    parser.add_argument("--epsilon", type=float, help="one alone, without writing results")
    parser.add_argument("--robust", action="store_true", help="the same under every set of tables left open")
    parser.add_argument("--unchanged", action="store_true", help="values as they are, by the invariant mechanism")
    parser.add_argument("--reserve", type=float, default=1.0)
    parser.add_argument("--waves", type=int, default=len(WAVES))
    options = parser.parse_args()
    results: list[dict[str, Any]] = []
    if options.unchanged:
        for secret, publish, guarantee in (*CASES, ("married", ("kids", "outwork"), "lip:0.5")):
            waves = follow_panel(secret, publish, guarantee, 1.0, WAVES[: options.waves], stays=True)
            told_of = {"secret": secret, "publish": publish, "guarantee": guarantee}
            results.append({**told_of, "waves": [_finite(asdict(one)) for one in waves]})
        print(page_of_unchanged(results))
        if options.waves == len(WAVES):
            (RESULTS / "panel-unchanged.json").write_text(json.dumps({"cases": results}, indent=1) + "\n")
            (RESULTS / "panel-unchanged.md").write_text(page_of_unchanged(results))
        return
    runs = [(1.0, False), (1.0, True), (10.0, True)] if options.epsilon is None else [(options.epsilon, options.robust)]
    for epsilon, robust in runs:
        for secret, publish, guarantee in CASES:
            if options.secret not in (None, secret):
                continue
            # What is robust keeps little after four waves of so few people, and a fifth one says nothing more of it.
            years = WAVES[: min(options.waves, 4) if robust else options.waves]
            waves = follow_panel(secret, publish, guarantee, epsilon, years, robust=robust, reserve=options.reserve)
            told = {"secret": secret, "guarantee": guarantee, "epsilon": epsilon, "robust": robust}
            results.append({**told, "waves": [_finite(asdict(one)) for one in waves]})
    print(page(results))
    if options.secret is None and options.epsilon is None:
        (RESULTS / "panel-noise.json").write_text(json.dumps({"cases": results}, indent=1) + "\n")
        (RESULTS / "panel-noise.md").write_text(page(results))


if __name__ == "__main__":
    main()
