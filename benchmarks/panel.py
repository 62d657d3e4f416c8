"""Five waves of a real panel: what everybody can conclude who keeps every version, beside fresh draws and keyed words.

``python -m benchmarks.panel --panel health_panel.parquet`` publishes the waves of the panel one after another by
`funnel.History`, for the two reference cases of METHOD section 9, and writes ``benchmarks/results/panel.json`` and
``panel.md``. What people who kept everything believe is computed a second time, by `tests.histories`, which shares no
code with what decides and draws. The same is done for two ways that are unsafe: a fresh draw of each wave's optimum,
and one keyed word a person under the optima of all waves.

Beyond what the bound promises it measures the secrets of *past* waves given everything up to a wave, and readers who
know the frequencies of whole trajectories.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

import funnel
from funnel import LIP, Joint, Protocol
from funnel.history.observed import Secrets
from tests.histories import History, Reader, Rows, Wave, level

RESULTS = Path(__file__).parent / "results"
SEED = b"thirty-two bytes for this panel.."[:32]
# Reserves of the two series.
TWO_SERIES = (1.0, 0.95)
# A level this much above the budget is above it: the second computation is in long doubles.
ABOVE = 1e-9
Figures = dict[str, Any]
Codes = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Case:
    """One release: its name, guarantee, secret and published columns."""

    name: str
    guarantee: LIP
    secret: str
    inputs: tuple[str, ...]


OUTWORK = Case("outwork given income fifth and kids", LIP(1.0), "outwork", ("income", "kids"))
MARRIED = Case("married given age decade and outwork", LIP(0.5), "married", ("decade", "outwork"))
# A second series about the same people and the same secret.
SCHOOL = Case("outwork given education and sex", LIP(1.0), "outwork", ("edlevel", "female"))


@dataclass(frozen=True)
class Published:
    """One version of one case, as a second reader sees it.

    ``ids`` and ``cells`` are of the people, (n,) and (n, 2) places of secret and input; ``outputs`` what was published
    about each of them.
    """

    case: Case
    joint: Joint
    ids: Codes
    cells: Codes
    outputs: Codes


def waves_of(panel: Path) -> list[tuple[str, pa.Table]]:
    """The waves by year; income in fifths of its wave, age in decades, all as texts but the key."""
    table = pq.read_table(panel)
    years = table["year"].to_numpy()
    waves = []
    for year in np.unique(years).tolist():
        rows = table.filter(pa.array(years == year))
        income = rows["hhninc"].to_numpy()
        fifth = np.searchsorted(np.quantile(income, [0.2, 0.4, 0.6, 0.8]), income, side="left")
        columns = {"id": rows["id"]}
        codes = {"income": fifth, "decade": rows["age"].to_numpy() // 10 * 10}
        for name in ("outwork", "married", "kids", "edlevel", "female"):
            codes[name] = rows[name].to_numpy()
        columns.update({name: pa.array(values.astype(str)) for name, values in codes.items()})
        waves.append((str(year), pa.table(columns)))
    return waves


def places(joint: Joint, case: Case, table: pa.Table) -> Codes:
    """(secret, input) of each row as places in the alphabets of its wave, (n, 2)."""
    s = [joint.secret.index(value) for value in table[case.secret].to_pylist()]
    columns = [table[name].to_pylist() for name in case.inputs]
    x = [joint.inputs.index(symbol) for symbol in zip(*columns, strict=True)]
    return np.stack([s, x], axis=1)


def reader_of(versions: Sequence[Published], rows: Rows) -> Reader:
    """Somebody who knows all frequencies of these versions, and what their people were drawn from."""
    waves = [
        Wave({key: (s, x) for key, (s, x) in zip(v.ids.tolist(), v.cells.tolist(), strict=True)}, *v.joint.counts.shape)
        for v in versions
    ]
    return Reader(tuple(waves), rows, np.longdouble)


def histories_of(versions: Sequence[Published]) -> list[dict[int, History]]:
    """For every version the history of each person up to and with it."""
    known: dict[int, History] = {}
    found = []
    for t, version in enumerate(versions):
        for key, y in zip(version.ids.tolist(), version.outputs.tolist(), strict=True):
            known[key] = (*known.get(key, ()), (t, y))
        found.append({key: known[key] for key in version.ids.tolist()})
    return found


def judged(versions: Sequence[Published], rows: Rows) -> list[Figures]:
    """What a reader who keeps all versions concludes after each of them, by the second computation."""
    reader, after = reader_of(versions, rows), histories_of(versions)
    found = []
    levels_now: list[dict[History, float]] = []
    for t, version in enumerate(versions):
        budget = version.case.guarantee.epsilon + ABOVE
        people = Counter(after[t].values())
        now: dict[History, float] = {}
        moved, past = 0, 0
        of_past: dict[History, float] = {}
        for history, records in people.items():
            earlier = history[:-1]
            prior = reader.prior(earlier[-1][0] if earlier else None, t)
            now[history] = level(reader.lifts(reader.after(history).sum(axis=1), prior))
            moved += records * (level(reader.lifts(reader.before(earlier, t).sum(axis=1), prior)) > budget)
            worst = 0.0
            for at, (v, _) in enumerate(history[:-1]):
                before = reader.prior(history[at - 1][0] if at else None, v)
                # Only what held when it was published can be broken later.
                if levels_now[v][history[: at + 1]] <= versions[v].case.guarantee.epsilon + ABOVE:
                    worst = max(worst, level(reader.lifts(reader.past_secret(history, v), before)))
            of_past[history] = worst
            past += records * (worst > budget)
        levels_now.append(now)
        n = sum(people.values())
        found.append(
            {
                "people": n,
                "histories": len({history[:-1] for history in people}),
                "outside": sum(records for history, records in people.items() if now[history] > budget),
                "moved": moved,
                "worst": _finite(max(now.values())),
                "past_outside": past,
                "past_worst": _finite(max(of_past.values())),
                "trajectories_outside": _by_trajectories(versions, reader, people, t, budget),
            }
        )
    return found


def _by_trajectories(
    versions: Sequence[Published], reader: Reader, people: Mapping[History, int], t: int, budget: float
) -> int:
    """People outside for a reader who knows how common every whole trajectory is, not only every change."""
    at = [dict(zip(v.ids.tolist(), v.cells.tolist(), strict=True)) for v in versions]
    outside = 0
    by_versions: dict[tuple[int, ...], list[History]] = {}
    for history in people:
        by_versions.setdefault(tuple(v for v, _ in history), []).append(history)
    for which, histories in by_versions.items():
        keys = set.intersection(*(set(at[v]) for v in which))
        paths = Counter(tuple(tuple(at[v][key]) for v in which) for key in keys)
        cells = np.array([[x for _, x in path] for path in paths])
        secrets = np.array([path[-1][0] for path in paths])
        counts = np.array(list(paths.values()), dtype=np.float64)
        c = versions[t].joint.counts.shape[0]
        prior = np.bincount(secrets, counts, c) / counts.sum()
        for history in histories:
            mass = counts.copy()
            for place, (v, y) in enumerate(history):
                mass *= reader.rows(v, history[:place])[y].astype(np.float64)[cells[:, place]] / 2.0**63
            posterior = np.bincount(secrets, mass, c) / mass.sum()
            outside += people[history] * (level(reader.lifts(posterior, prior)) > budget)
    return outside


def fresh(waves: Sequence[tuple[str, pa.Table]], case: Case, keyed: bool) -> tuple[list[Published], list[Protocol]]:
    """Each wave drawn from its own optimum, with a new word for every answer or one word for every person."""
    rng = np.random.default_rng(5)
    words: dict[int, float] = {}
    versions, protocols = [], []
    for _, table in waves:
        joint = Joint.from_table(table, [case.secret], case.inputs)
        protocol = funnel.optimal(joint, case.guarantee).protocol
        ids, cells = table["id"].to_numpy().astype(np.int64), places(joint, case, table)
        new = rng.random(len(ids))
        if keyed:
            new = np.array([words.setdefault(key, word) for key, word in zip(ids.tolist(), new.tolist(), strict=True)])
        thresholds = np.cumsum(protocol.matrix, axis=0)[:-1]
        outputs = (new[:, None] >= thresholds[:, cells[:, 1]].T).sum(axis=1)
        versions.append(Published(case, joint, ids, cells, outputs))
        protocols.append(protocol)
    return versions, protocols


def judged_keyed(versions: Sequence[Published], protocols: Sequence[Protocol]) -> list[Figures]:
    """The same for one keyed word a person: where the word lies is part of what a reader has to follow."""
    edges = np.unique(np.concatenate([[0.0, 1.0], *(np.cumsum(p.matrix, axis=0)[:-1].ravel() for p in protocols)]))
    edges = edges[(edges >= 0) & (edges <= 1)]
    widths, middles = np.diff(edges), (edges[1:] + edges[:-1]) / 2
    reader, after = reader_of(versions, lambda _t, _h: np.empty(0)), histories_of(versions)
    said = [
        (middles[None, None] >= np.cumsum(p.matrix, axis=0)[:-1][:, :, None]).sum(axis=0) for p in protocols
    ]  # (a, words): the output of each input for a word there
    known: dict[History, npt.NDArray[np.float64]] = {}
    found = []
    for t, version in enumerate(versions):
        budget = version.case.guarantee.epsilon + ABOVE
        people = Counter(after[t].values())
        outside, worst = 0, 0.0
        for history, records in people.items():
            earlier = history[:-1]
            if earlier:
                change = reader.change(earlier[-1][0], t).astype(np.float64)
                distribution = np.tensordot(change, known[earlier], axes=((0, 1), (0, 1)))
            else:
                distribution = reader.distribution(t).astype(np.float64)[:, :, None] * widths
            masses = distribution * (said[t] == history[-1][1])
            known[history] = masses / masses.sum()
            prior = reader.prior(earlier[-1][0] if earlier else None, t)
            here = level(reader.lifts(known[history].sum(axis=(1, 2)), prior))
            outside, worst = outside + records * (here > budget), max(worst, here)
        found.append({"people": sum(people.values()), "outside": outside, "worst": _finite(worst)})
    return found


def by_history(
    releases: Sequence[tuple[Case, str, pa.Table]],
    guarantee: LIP,
    reserve: float = 1.0,
    read_alone: bool = True,
    secrets: Secrets = "current",
) -> tuple[list[Published], Rows, list[Figures]]:
    """Releases about one register, one after another by `funnel.History`; what it says of each of them.

    The effective channel meets the bound by itself, as it has to in published releases, or need not.
    """
    observers = ["transitions"]
    book = funnel.History(
        guarantee, budget_fraction=reserve, read_alone=read_alone, observers=observers, secrets=secrets
    )
    versions, figures = [], []
    for case, version, table in releases:
        started = time.perf_counter()
        step = book.extend(
            table, key=["id"], secret=[case.secret], inputs=list(case.inputs), version=version, secret_bytes=SEED
        )
        seconds = time.perf_counter() - started
        published = zip(*(step.released[name].to_pylist() for name in case.inputs), strict=True)
        outputs = np.array([step.channel.outputs.index(symbol) for symbol in published])
        ids = table["id"].to_numpy().astype(np.int64)
        versions.append(Published(case, step.joint, ids, places(step.joint, case, table), outputs))
        figures.append(
            {
                "version": version,
                "kept": step.utility / step.entropy,
                "alone": step.alone / step.entropy,
                "bound": step.bound / step.entropy,
                "level": step.level.value,
                "histories": step.histories,
                "channels": len(step.library),
                "moved": step.moved,
                "outside": step.outside,
                "seconds": seconds,
            }
        )
    names = [version for _, version, _ in releases]
    steps = book.steps

    def rows(t: int, history: History) -> npt.NDArray[np.uint64]:
        return steps[t].rows_for(tuple((names[v], y) for v, y in history))

    return versions, rows, figures


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def measured(panel: Path, reserves: Iterable[float], finished: Figures, path: Path) -> Figures:
    """All figures, those that are there already included; written as they come."""

    def keep(name: str, figures: Any) -> None:
        finished[name] = figures
        path.write_text(json.dumps(finished, indent=1) + "\n")

    waves = waves_of(panel)
    for case in (OUTWORK, MARRIED):
        releases = [(case, year, table) for year, table in waves]
        for reserve in reserves:
            name = f"{case.name}, reserve {reserve:g}"
            if name not in finished:
                versions, rows, figures = by_history(releases, case.guarantee, reserve)
                second = judged(versions, rows)
                keep(name, [{**said, "second": found} for said, found in zip(figures, second, strict=True)])
        if f"{case.name}, linked" not in finished:
            keep(f"{case.name}, linked", by_history(releases, case.guarantee, read_alone=False)[2])
        if f"{case.name}, fresh" not in finished:
            versions, protocols = fresh(waves, case, keyed=False)
            keep(f"{case.name}, fresh", judged(versions, lambda t, _: protocols[t].weights))  # noqa: B023
        if f"{case.name}, keyed" not in finished:
            keep(f"{case.name}, keyed", judged_keyed(*fresh(waves, case, keyed=True)))
    releases = [(case, f"{case.inputs[0]}/{year}", table) for year, table in waves for case in (OUTWORK, SCHOOL)]
    for reserve in TWO_SERIES:
        if f"two series, reserve {reserve:g}" not in finished:
            versions, rows, figures = by_history(releases, OUTWORK.guarantee, reserve)
            second = judged(versions, rows)
            said_twice = [{**said, "second": found} for said, found in zip(figures, second, strict=True)]
            keep(f"two series, reserve {reserve:g}", said_twice)
    return finished


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--panel", required=True, type=Path, help="health_panel.parquet")
    parser.add_argument("--reserves", nargs="+", type=float, default=[1.0, 0.95, 0.9, 0.8])
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder for panel.json and panel.md")
    arguments = parser.parse_args()
    path = arguments.results / "panel.json"
    finished = json.loads(path.read_text()) if path.exists() else {}
    figures = measured(arguments.panel, arguments.reserves, finished, path)
    # Imported here: the page knows the cases.
    from benchmarks.panel_page import page_of

    (arguments.results / "panel.md").write_text(page_of(figures, arguments.reserves))


if __name__ == "__main__":
    main()
