"""Movers and stayers under noise: what tables split by who changed before would cost, and for whom they would hold.

``python -m benchmarks.noisy_observers`` publishes panels in memory as releases with noise do: for the observer who
knows changes, from the tables that releases publish, and for movers and stayers besides, from tables that count apart
who never changed, who changed since the last version (``secrets``, ``stayed`` and ``left``), and who had changed before
(the same three). A person is in one count of those who never changed, stayed or left, and in at most one of secrets, so
the scale of the noise is the same. Then it tells what each wave keeps, and how many answers are beyond the bound for
observers who know the exact changes, of all people and of both kinds. Writes ``noisy-observers.json`` and
``noisy-observers.md`` in ``benchmarks/results``.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.observers import movers_and_stayers
from funnel.errors import DataError
from funnel.frequencies.moves import TABLES, Moves, inputs_by_secret, noisy_moves
from funnel.frequencies.noise import draw_noise
from funnel.frequencies.public_counts import part_for, protect
from funnel.frequencies.selection import NOTHING
from funnel.guarantees import LIP
from funnel.history.allowed import allowed_by, lifts_of
from funnel.history.changes import Changes, same_inputs
from funnel.history.distributions import distributions_before
from funnel.history.expected import Expected, answered, attending, expected_after, expected_people
from funnel.history.fitting import fitted
from funnel.history.following import VersionTerms
from funnel.history.history_status import stand
from funnel.history.mover_stayer import changes_without_class, class_cells, differs
from funnel.history.observed import Observed
from funnel.history.observers import OBSERVERS, TRANSITIONS
from funnel.history.past import Past
from funnel.history.step import Step
from funnel.joint import IntArray, Joint
from funnel.mechanisms import fit
from funnel.protocol import WORD_BITS
from funnel.settings.protection_settings import FrequencySettings
from tests.waves import WAVES, wave

RESULTS = Path(__file__).parent / "results"
# Of so many parts a row of the distribution is made.
_PARTS = 1 << 35
CASES: Mapping[str, tuple[str, tuple[str, ...], LIP]] = {
    "movers and stayers": ("ill", ("size",), LIP(1.0)),
    "married given age and outwork": ("married", ("age", "outwork"), LIP(0.5)),
}
Split = tuple[IntArray, Moves, Moves]


def split(before: IntArray, after: IntArray, had: IntArray, has: IntArray, earlier: Joint, joint: Joint) -> Split:
    """Who never changed, by cell; moves of those who changed since; and of those who had changed before."""

    def moves(these: IntArray) -> Moves:
        return Moves.counted("before", Changes.counted(before[these], after[these]), earlier, joint)

    never = np.bincount(before[has == 0], minlength=earlier.counts.size).reshape(earlier.counts.shape)
    return never, moves((has == 1) & (had == 0)), moves(had == 1)


def with_noise(exact: Split, epsilon: float) -> Split:
    """The same with noise: a person moves two of the counts by one each."""
    never, since, before = exact
    parts = [never, *(table for one in (since, before) for table in (one.secrets, one.stayed, one.left))]
    ends = np.cumsum([one.size for one in parts])
    noise = np.split(draw_noise(int(ends[-1]), epsilon, TABLES), ends[:-1])
    noisy = [one + drawn.reshape(one.shape) for one, drawn in zip(parts, noise, strict=True)]
    return noisy[0], Moves("before", *noisy[1:4]), Moves("before", *noisy[4:])


def of_all(tables: Split) -> Moves:
    """The tables that releases publish, from split ones."""
    never, since, before = tables
    same = np.diag(never.sum(axis=1))
    return Moves(
        "before",
        since.secrets + before.secrets + same,
        never + since.stayed + before.stayed,
        since.left + before.left,
    )


def by_class(tables: Split, earlier: Joint, joint: Joint) -> Changes:
    """The distribution of changes of both kinds: movers move as `Moves` says, others stay or go elsewhere."""
    never, since, before = tables
    a, b = len(joint.inputs), len(earlier.inputs)
    rows: Counter[tuple[int, int]] = Counter()
    inputs = inputs_by_secret(joint) / inputs_by_secret(joint).sum(axis=1, keepdims=True)
    for s in range(len(earlier.secret)):
        secrets = np.maximum(since.secrets[s], 0).astype(np.float64)
        others = np.where(np.arange(len(secrets)) == s, 0, secrets)
        # Who stays at an input and changes has another secret; the rest of these left it.
        gone = max(0.0, 1 - float(np.maximum(since.stayed[s], 0).sum()) / max(1.0, float(others.sum())))
        leaving = np.where(np.arange(len(secrets)) == s, secrets, secrets * gone)
        for x, same in enumerate(same_inputs(earlier.inputs, joint.inputs).tolist()):
            stay, moved, left = (max(0, int(one[s, x])) for one in (never, since.stayed, since.left))
            here = s * 2 * b + x
            if same >= 0:
                rows[here, s * 2 * a + same] += (stay if stay + moved + left else 1) * _PARTS
            at = np.arange(a) == same
            for table, people in (
                (others[:, None] * np.where(at, inputs, 0.0), moved),
                (leaving[:, None] * np.where(at, 0.0, inputs), left),
            ):
                if people and table.sum() > 0:
                    for to, share in enumerate((table / table.sum()).ravel().tolist()):
                        rows[here, to // a * 2 * a + a + to % a] += int(share * people * _PARTS)
    moves = before.changes(earlier, joint)
    for was, now, records in zip(moves.before.tolist(), moves.after.tolist(), moves.records.tolist(), strict=True):
        rows[was // b * 2 * b + b + was % b, now // a * 2 * a + a + now % a] += records
    cells = sorted(pair for pair, records in rows.items() if records > 0)
    columns = (np.array([pair[place] for pair in cells]) for place in (0, 1))
    return Changes(*columns, np.array([rows[pair] for pair in cells]))


def published(tables: list[tuple[str, pa.Table]], case: str, epsilon: float, both: bool) -> list[dict[str, Any]]:
    """All waves; what is kept of each, and who is beyond the bound by the exact changes."""
    secret, publish, bound = CASES[case]
    settings, rng = FrequencySettings(protection="noise", epsilon=epsilon), np.random.default_rng(15)
    past, truth, expected = Past(), Past(), Expected.nobody()
    size = max(int(np.max(table["id"].to_numpy())) for _, table in tables) + 1
    nodes, last = np.zeros(size, dtype=np.int64), np.full(size, -1, dtype=np.int64)
    known: list[tuple[Joint, IntArray, IntArray]] = []
    found: list[dict[str, Any]] = []
    for number, (name, table) in enumerate(tables):
        ids = table["id"].to_numpy()
        counted = Joint.from_table(table, [secret], list(publish))
        a = len(counted.inputs)
        places = [np.array([one.index(v) for v in zip(*(table[c].to_pylist() for c in one.columns), strict=True)])
                  for one in (counted.secret, counted.inputs)]  # fmt: skip
        cells = places[0] * a + places[1]
        public = protect(counted, settings, tables=int(number > 0)).joint
        has = np.zeros(len(ids), dtype=np.int64)
        for distribution, were, changed in known:
            there = were[ids] >= 0
            has[there] |= changed[ids][there] | differs(distribution, were[ids][there], counted, cells[there])
        exact, distributions, classes, came = {}, {}, {}, {}
        for v, (distribution, were, changed) in enumerate(known):
            was, had, there, before = were[ids], changed[ids], were[ids] >= 0, past.chapters[v].joint
            exact[v] = Changes.counted(
                class_cells(was, had, len(distribution.inputs))[there], class_cells(cells, has, a)[there]
            )
            these = last[ids] == v
            tables_of = split(was[these], cells[these], had[these], has[these], distribution, counted)
            part = part_for(settings, NOTHING)
            if both:
                noisy = with_noise(tables_of, part)
                classes[v], moves = by_class(noisy, before, public), of_all(noisy)
            else:
                moves = noisy_moves([of_all(tables_of)], [before], public, part).since[0]
            distributions[v], came[v] = moves.changes(before, public), float(moves.people)
        who = attending(past, expected, came, float(public.n))
        observers = OBSERVERS if both else (TRANSITIONS,)
        known_of = {"by_class": classes if both else None, "observers": observers}
        target = fit("optimal", public, bound)
        now = replace(expected_people(past, who, public, distributions), **known_of)
        try:
            predicted = VersionTerms(bound, name, target=target).decide(past, now)
        except DataError:
            # By noisy counts of one kind of people nobody can have some answer that is expected by those of all.
            return [*found, {"wave": name, "people": len(ids), "kept": None}]
        of_people = {v: changes_without_class(one, known[v][0], counted) for v, one in exact.items()}
        real = Observed.counted(counted, of_people, nodes[ids], cells % a)
        step = fitted(predicted, replace(real.known_by(public, distributions), **known_of)).step
        outputs = _drawn(step, nodes[ids], cells % a, rng)
        distribution_of = distributions_before(past, who.nodes, public, distributions).values.sum(axis=1)
        after, said, people, others = answered(who, distribution_of, predicted.library, predicted.drawn_from)
        b = len(step.channel.outputs)
        chapter, reached = step.published(nodes[ids], outputs, after * b + said)
        told = replace(real, by_class=exact, observers=OBSERVERS)
        found.append(
            {
                "wave": name,
                "people": len(ids),
                "alone": predicted.alone / public.entropy,
                "kept": predicted.utility / public.entropy,
                "beyond": beyond(truth, told, step),
            }
        )
        print(case, both, found[-1], flush=True)
        expected = expected_after(who, chapter.first, people, others)
        nodes[ids] = reached
        last[ids] = number
        here, changed = np.full(size, -1, dtype=np.int64), np.zeros(size, dtype=np.int64)
        here[ids], changed[ids] = cells, has
        known.append((counted, here, changed))
        past = past.followed_by(chapter)
        truth = truth.followed_by(replace(chapter, joint=counted, changes=of_people, by_class=exact))
    return found


def beyond(truth: Past, observed: Observed, step: Step) -> dict[str, dict[str, float | None]]:
    """For observers who know the exact changes: the share of the answers beyond the bound, and the worst level."""
    allowed = allowed_by(step.guarantee)
    found: dict[str, dict[str, float | None]] = {}
    for status in stand(truth, observed, step.guarantee).everybody:
        channels = step.channels_of(status.nodes)
        mass, worst = 0.0, 0.0
        for place, channel in enumerate(channels.tolist()):
            rows = np.ldexp(step.library[channel].astype(np.float64), -WORD_BITS)
            outputs = status.distributions.values[place] @ rows.T
            outputs = outputs[:, outputs.sum(axis=0) > 0]
            lifts = lifts_of(outputs[None], status.priors[status.prior_of[place]])
            inside, _ = allowed.within(lifts, 1e-9)
            share = outputs.sum(axis=0) / outputs.sum()
            mass += float(status.people[place] * share[~inside[0]].sum())
            worst = max(worst, float(allowed.nats(lifts, step.guarantee).max()))
        level = worst if math.isfinite(worst) else None
        found[status.observer.name] = {"share": mass / observed.joint.n, "level": level}
    return found


def _drawn(step: Step, nodes: IntArray, xs: IntArray, rng: np.random.Generator) -> IntArray:
    channels = step.channels_of(nodes)
    rows = np.ldexp(step.library.astype(np.float64), -WORD_BITS)[channels, :, xs]
    return np.asarray(
        (rng.random(len(nodes))[:, None] > np.cumsum(rows, axis=1)).sum(axis=1).clip(0, rows.shape[1] - 1)
    )


def short_table(figures: Mapping[str, Any]) -> list[str]:
    """Both ways, wave by wave from the second on."""
    lines = [
        "| panel, ε = 1 a wave | wave | kept | mover-stayer: beyond | split tables: kept | mover-stayer: beyond |",
        "|---|---|---|---|---|---|",
    ]
    for case, ways in figures.items():
        for one, other in list(zip(ways["transitions"], ways["both"], strict=False))[1:]:
            cells = (cell for way in (one, other) for cell in _cells(way))
            lines.append(f"| {case} | {one['wave']} | {' | '.join(cells)} |")
    return lines


def _cells(way: Mapping[str, Any]) -> tuple[str, str]:
    if way["kept"] is None:
        return "answers ruled out", "–"
    found = way["beyond"]["mover-stayer"]
    level = "∞" if found["level"] is None else f"{found['level']:.2f}"
    return f"{way['kept']:.3f}", f"{found['share']:.1%} ({level})"


def page_of(figures: Mapping[str, Any]) -> str:
    """The page of the results."""
    said = [
        "# Movers and stayers under noise",
        "",
        "By `python -m benchmarks.noisy_observers`: what is kept of H(X) with the tables that releases publish, and",
        "what would be with tables that count apart who changed before; and which share of the answers is beyond the",
        "bound, with the worst level, for an observer who knows the exact changes of both kinds of people. *Answers",
        "ruled out*: by noisy counts of one kind of people alone nobody can have an answer that is expected. The",
        "second panel is the one that tests draw like the health panel.",
    ]
    return "\n".join([*said, "", *short_table(figures), ""])


def main() -> None:
    """Measure and write."""
    synthetic = movers_and_stayers()
    panels = {
        "movers and stayers": synthetic,
        "married given age and outwork": [(str(year), wave(year)) for year in WAVES[:3]],
    }
    figures = {
        case: {name: published(panels[case], case, 1.0, name == "both") for name in ("transitions", "both")}
        for case in CASES
    }
    (RESULTS / "noisy-observers.json").write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    (RESULTS / "noisy-observers.md").write_text(page_of(figures), encoding="utf-8")


if __name__ == "__main__":
    main()
