"""What several observers conclude of a panel that was published for one of them, or for all.

``python -m benchmarks.observers --panel health_panel.parquet`` publishes the health panel, and a synthetic one of
movers and stayers, by `funnel.History` for the observer who knows changes and for both observers, and writes
``benchmarks/results/observers.json`` and ``observers.md``. What observers believe is computed by `tests.histories` and
`tests.movers`, which share no code with what decides and draws. Three more observers are measured who are not bounded:
one who fits stayers and movers by greatest likelihood (EM), one who knows the distribution of largest entropy among
those with the table of every pair of waves, and one who knows how common every whole trajectory is. The health panel is
released by a spec besides, and the independent recomputation tells what both observers find in the register.
"""

from __future__ import annotations

import argparse
import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import combinations, product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

import funnel
from benchmarks.panel import ABOVE, MARRIED, OUTWORK, SEED, Case, Published, histories_of, places, reader_of, waves_of
from funnel import LIP
from funnel.pipeline.flows.pipeline import run_release
from funnel.protocol import INVARIANT
from funnel.recount.histories import recount_histories
from funnel.register.register import Register
from funnel.release.findings import FindingsDocument
from funnel.release.layout import ReleaseFolder
from funnel.spec import ReleaseSpec
from tests.histories import History, Reader, Rows, level
from tests.movers import FittedReader, MoverStayerReader

RESULTS = Path(__file__).parent / "results"
SYNTHETIC = Case("movers and stayers", LIP(1.0), "ill", ("size",))
# Of the synthetic panel: people, waves, and how common secret (rows) and value are, among stayers and movers alike.
PEOPLE, WAVES = 60_000, 3
LAW = np.array([[0.30, 0.12, 0.06, 0.02], [0.04, 0.08, 0.14, 0.24]])
# Rounds of iterative proportional fitting; the largest distribution over trajectories that is held.
_ROUNDS, _ENTRIES = 60, 4_000_000
# So many people of the health panel.
SMALL, FEW = "small panel", 900
RELEASED = "released by a spec"
SPEC = """
name = "panel"
title = "Five waves of a panel"
secret = ["{secret}"]
publish = [{inputs}]
record_key = ["id"]
guarantee = "{guarantee}"
frequencies.protection = "none"

[source]
path = "wave.parquet"

[disclosure]
on_breach = "report"

[metadata]
licence = "CC-BY-4.0"

[history]
people = "same"
observers = ["transitions", "mover-stayer"]
"""
FAMILIES = {"information": None, "unchanged": INVARIANT}
OBSERVERS = ("transitions", "mover-stayer")
SETS = {"transitions": ("transitions",), "both": OBSERVERS}
Figures = dict[str, Any]
Table = npt.NDArray[np.float64]


def movers_and_stayers(people: int = PEOPLE, waves: int = WAVES, seed: int = 5) -> list[tuple[str, pa.Table]]:
    """A half of the people never change; the others are drawn anew in every wave."""
    rng = np.random.default_rng(seed)
    stays = rng.random(people) < 0.5
    cells = rng.choice(LAW.size, people, p=LAW.ravel())
    found = []
    for t in range(waves):
        cells = np.where(stays, cells, rng.choice(LAW.size, people, p=LAW.ravel())) if t else cells
        columns = {"ill": cells // LAW.shape[1], "size": cells % LAW.shape[1]}
        texts = {name: pa.array(values.astype(str)) for name, values in columns.items()}
        found.append((str(t + 1), pa.table({"id": np.arange(people), **texts})))
    return found


def published(
    waves: Sequence[tuple[str, pa.Table]], case: Case, observers: Sequence[str], mechanism: str | None
) -> tuple[list[Published], Rows, funnel.History]:
    """The waves, one after the other."""
    book = funnel.History(case.guarantee, observers=observers, secrets="current")
    versions = []
    for name, table in waves:
        target = None
        if mechanism is not None:
            joint = funnel.Joint.from_table(table, [case.secret], case.inputs)
            target = funnel.fit(mechanism, joint, case.guarantee)
        step = book.extend(
            table,
            key=["id"],
            secret=[case.secret],
            inputs=list(case.inputs),
            version=name,
            secret_bytes=SEED,
            target=target,
        )
        symbols = zip(*(step.released[column].to_pylist() for column in case.inputs), strict=True)
        outputs = np.array([step.channel.outputs.index(symbol) for symbol in symbols])
        ids = table["id"].to_numpy().astype(np.int64)
        versions.append(Published(case, step.joint, ids, places(step.joint, case, table), outputs))
    names = [name for name, _ in waves]

    def rows(t: int, history: History) -> npt.NDArray[np.uint64]:
        return book.steps[t].rows_for(tuple((names[v], y) for v, y in history))

    return versions, rows, book


def concluded(versions: Sequence[Published], rows: Rows) -> Figures:
    """People of the last wave outside the bound, and the worst level, for each of five observers."""
    reader = reader_of(versions, rows)
    people = Counter(histories_of(versions)[-1].values())
    t, budget = len(versions) - 1, versions[-1].case.guarantee.epsilon + ABOVE
    movers = MoverStayerReader(reader.waves, rows, np.longdouble)
    fitted = FittedReader.fitted(reader.waves, rows, np.longdouble)
    counted = _trajectories(versions, people)

    def of_reader(one: Reader, history: History) -> Table:
        return np.asarray(one.after(history).sum(axis=1))

    tables = {which: counts / counts.sum() for which, counts in counted.items()}
    entropic = {which: largest_entropy(table) for which, table in tables.items()}
    observers = {
        "transitions": lambda history: of_reader(reader, history),
        "mover-stayer": lambda history: of_reader(movers, history),
        "fitted": lambda history: of_reader(fitted, history),
        "all pairs": lambda history: _along(entropic, history, rows, reader.waves[t].c),
        "trajectories": lambda history: _along(tables, history, rows, reader.waves[t].c),
    }
    found = {}
    for name, posterior in observers.items():
        levels = {}
        for history in people:
            earlier = history[:-1]
            prior = reader.prior(earlier[-1][0] if earlier else None, t)
            levels[history] = level(reader.lifts(posterior(history), prior))
        outside = sum(n for history, n in people.items() if levels[history] > budget)
        worst = max(levels.values())
        beyond = sum(n for history, n in people.items() if levels[history] > 1.5 * budget)
        found[name] = {"outside": outside, "beyond": beyond, "worst": worst if math.isfinite(worst) else None}
    return {"people": sum(people.values()), "histories": len({history[:-1] for history in people}), "by": found}


def _trajectories(versions: Sequence[Published], people: Mapping[History, int]) -> dict[tuple[int, ...], Table]:
    """How many people have each trajectory, by the versions that they are in; an axis of cells a version."""
    at = [dict(zip(v.ids.tolist(), (v.cells @ [v.joint.counts.shape[1], 1]).tolist(), strict=True)) for v in versions]
    found = {}
    for which in {tuple(v for v, _ in history) for history in people}:
        shape = tuple(versions[v].joint.counts.size for v in which)
        if math.prod(shape) > _ENTRIES:
            raise ValueError(f"{math.prod(shape):,} trajectories are too many to hold")
        counts = np.zeros(shape)
        for key in set.intersection(*(set(at[v]) for v in which)):
            counts[tuple(at[v][key] for v in which)] += 1
        found[which] = counts
    return found


def largest_entropy(table: Table) -> Table:
    """The distribution of largest entropy with the tables of all pairs of axes of one, by proportional fitting."""
    axes = range(table.ndim)
    if table.ndim < 3:
        return table
    found = np.full(table.shape, 1.0 / table.size)
    for _ in range(_ROUNDS):
        before = found
        for pair in combinations(axes, 2):
            others = tuple(axis for axis in axes if axis not in pair)
            wanted, now = (one.sum(axis=others, keepdims=True) for one in (table, found))
            found = found * np.divide(wanted, now, out=np.zeros_like(now), where=now > 0)
        if np.abs(found - before).max() <= 1e-12:
            break
    return found


def _along(tables: Mapping[tuple[int, ...], Table], history: History, rows: Rows, secrets: int) -> Table:
    """P(secret in the last version | history) under a distribution of trajectories; (c,)."""
    masses = tables[tuple(v for v, _ in history)]
    for axis, (v, y) in enumerate(history):
        row = rows(v, history[:axis])[y].astype(np.float64) / 2.0**63
        size = masses.shape[axis]
        shape = [size if other == axis else 1 for other in range(masses.ndim)]
        masses = masses * np.tile(row, size // len(row)).reshape(shape)
    last = masses.sum(axis=tuple(range(masses.ndim - 1))).reshape(secrets, -1).sum(axis=1)
    return np.asarray(last / last.sum())


def measured(panel: Path, finished: Figures, path: Path) -> Figures:
    """All figures, those that are there already included; written as they come."""
    health, synthetic = waves_of(panel), movers_and_stayers()
    if SMALL not in finished:
        finished[SMALL] = small_panel(health)
    cases = ((SYNTHETIC, synthetic), (OUTWORK, health), (MARRIED, health))
    if RELEASED not in finished:
        finished[RELEASED] = {case.name: released(health, case) for case in (OUTWORK, MARRIED)}
    for family, (case, waves), kind in product(FAMILIES, cases, SETS):
        name = f"{case.name}, {family}, {kind}"
        if name in finished:
            continue
        mechanism = FAMILIES[family]
        versions, rows, book = published(waves, case, SETS[kind], mechanism)
        kept = [step.utility / step.entropy if mechanism is None else _unchanged(step) for step in book.steps]
        finished[name] = {"kept": kept, **concluded(versions, rows)}
        path.write_text(json.dumps(finished, indent=1) + "\n")
    return finished


def released(waves: Sequence[tuple[str, pa.Table]], case: Case) -> list[Figures]:
    """The waves released by a spec without noise: what each keeps, and what the second computation finds."""
    found = []
    with TemporaryDirectory(prefix="observers-") as name:
        folder = Path(name)
        inputs = ", ".join(f'"{column}"' for column in case.inputs)
        text = SPEC.format(secret=case.secret, inputs=inputs, guarantee=case.guarantee)
        (folder / "panel.toml").write_text(text, encoding="utf-8")
        kept = []
        for _, table in waves:
            pq.write_table(table, folder / "wave.parquet")
            told, _ = run_release(ReleaseSpec.load(folder / "panel.toml"), again=False, rotate=False)
            findings = FindingsDocument.read(ReleaseFolder(Path(told["folder"])).findings).history
            assert findings is not None
            kept.append((findings.share, findings.share_alone))
        spec = ReleaseSpec.load(folder / "panel.toml")
        versions = recount_histories(Register.of(spec.workspace_folder, "panel").root).versions
        for (wave, _), version, shares in zip(waves, versions, kept, strict=True):
            if version.broken or version.complaints:
                raise SystemExit(f"the release of {wave} does not hold: {(*version.broken, *version.complaints)[0]}")
            counted = {"wave": wave, "people": version.people, "histories": version.histories}
            found.append({**counted, "kept": shares, "by": [asdict(one) for one in version.observers]})
    return found


def small_panel(waves: Sequence[tuple[str, pa.Table]]) -> list[Figures]:
    """People who are moved in every wave where the panel has few of them."""
    ids = np.unique(np.concatenate([table["id"].to_numpy() for _, table in waves]))
    some = np.random.default_rng(5).choice(ids, FEW, replace=False)
    few = [(name, table.filter(pa.array(np.isin(table["id"].to_numpy(), some)))) for name, table in waves]
    _, _, book = published(few, MARRIED, SETS["transitions"], None)
    return [{"people": step.joint.n, "moved": step.moved, "level": step.moved_level} for step in book.steps]


def _unchanged(step: funnel.history.step.Step) -> float:
    """The share of records that the effective channel leaves as they are."""
    p = step.joint.p_input
    return float(p @ step.channel.matrix.diagonal())


def page_of(figures: Figures) -> str:
    """The page."""
    lines = [
        "# What several observers conclude",
        "",
        "By `python -m benchmarks.observers`. People of the last wave who are outside the declared bound, and the",
        "worst level in brackets, for observers who keep all waves; by a second computation that shares no code with",
        "the first. *Kept* is the share of H(X), or of records unchanged, in the last wave. *All pairs* is the",
        "distribution of largest entropy with the tables of all pairs of waves; *trajectories* counts every whole",
        "trajectory, which is nearly the people themselves where these are few. *Fitted* takes a share of those who",
        "never changed for stayers, by greatest likelihood (EM). No bound is asked for these three. *Far* is the share",
        "of people whose level is above 1.5 ε for the observer of trajectories.",
        "",
        "| panel | rows for | bounded for | kept | histories "
        "| transitions | mover-stayer | fitted | all pairs | trajectories | far |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, found in figures.items():
        if name in (SMALL, RELEASED):
            continue
        case, family, kind = name.rsplit(", ", 2)
        cells = [_outside(one, found["people"]) for one in found["by"].values()]
        kept = f"{found['kept'][-1]:.3f}"
        cells.append(f"{found['by']['trajectories']['beyond'] / found['people']:.1%}")
        lines.append(f"| {case} | {family} | {kind} | {kept} | {found['histories']:,} | {' | '.join(cells)} |")
    moved = [f"{one['moved']} of {one['people']}" for one in figures[SMALL]]
    lines += [
        "",
        f"Of {FEW} people of the health panel, {MARRIED.name} under {MARRIED.guarantee}, are moved in its waves:",
        f"{', '.join(moved)};",
        f"the largest level of those is {max(one['level'] or 0.0 for one in figures[SMALL]):.2f}.",
    ]
    lines += [
        "",
        "## Released by a spec",
        "",
        'Five waves with `[history] observers = ["transitions", "mover-stayer"]` and no noise on the frequencies.',
        "Levels, people moved and people outside are those that the independent recomputation finds in the register,",
        "the largest over the secrets of the wave and of all waves before it.",
        "",
        *released_table(figures),
    ]
    return "\n".join(lines) + "\n"


def released_table(figures: Figures) -> list[str]:
    """The waves of the panel, for both observers."""
    lines = [
        "| wave | people | histories | kept | kept alone | transitions: level | moved | outside "
        "| mover-stayer: level | moved (worst level) | outside |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for case in (OUTWORK, MARRIED):
        lines.append(f"| *{case.name}, {case.guarantee}* {'| ' * 11}".rstrip())
        for one in figures[RELEASED][case.name]:
            first, second = (_of_any_secret(one["by"], observer) for observer in OBSERVERS)
            worst = second["moved_level"]
            moved = f"{second['moved']:,}" + ("" if worst is None else f" ({worst:.2f})")
            cells = [
                one["wave"],
                f"{one['people']:,}",
                f"{one['histories']:,}",
                *(f"{share:.3f}" for share in one["kept"]),
                f"{first['level']:.4f}",
                f"{first['moved']:,}",
                f"{first['outside']:,}",
                f"{second['level']:.4f}",
                moved,
                f"{second['outside']:,}",
            ]
            lines.append(f"| {' | '.join(cells)} |")
    return lines


def _of_any_secret(found: Sequence[Figures], observer: str) -> Figures:
    """The largest figures of an observer, over the secrets of this wave and of all before it."""
    those = [one for one in found if one["observer"] == observer]
    names = ("level", "moved", "outside", "moved_level")
    return {name: max((one[name] for one in those if one[name] is not None), default=None) for name in names}


def short_table(figures: Figures) -> list[str]:
    """The same in a few columns, for the guide: rows that tell most."""
    lines = ["| panel | rows for | bounded for | kept | transitions | mover-stayer | fitted |", "|---" * 7 + "|"]
    for name in (one for one in figures if SYNTHETIC.name in one or "information" in one):
        case, family, kind = name.rsplit(", ", 2)
        found = figures[name]
        cells = [_outside(found["by"][one], found["people"]) for one in (*OBSERVERS, "fitted")]
        lines.append(f"| {case} | {family} | {kind} | {found['kept'][-1]:.3f} | {' | '.join(cells)} |")
    return lines


def _outside(one: Figures, people: int) -> str:
    """The share of the people who are outside for an observer, and the worst level."""
    worst = "∞" if one["worst"] is None else format(one["worst"], ".2f")
    return f"{one['outside'] / people:.1%} ({worst})"


def quoted(figures: Figures) -> list[str]:
    """What the limitations say."""
    found = figures[f"{SYNTHETIC.name}, information, transitions"]
    share = found["by"]["mover-stayer"]["outside"] / found["people"]
    few = figures[SMALL]
    worst = max(few, key=lambda one: one["moved"] / one["people"])
    return [
        f"rows for the first leave {share:.1%} of the people outside for the second",
        f"of {FEW} people of the health panel {worst['moved']} of {worst['people']} are moved in one wave",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--panel", required=True, type=Path, help="health_panel.parquet")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder for observers.json and observers.md")
    arguments = parser.parse_args()
    path = arguments.results / "observers.json"
    finished = json.loads(path.read_text()) if path.exists() else {}
    figures = measured(arguments.panel, finished, path)
    (arguments.results / "observers.md").write_text(page_of(figures))


if __name__ == "__main__":
    main()
