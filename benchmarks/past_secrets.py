"""What it would cost to bound the secrets of past waves as well, on a panel.

``python -m benchmarks.past_secrets --panel health_panel.parquet`` publishes the waves of the panel by a prototype in
floats (HiGHS by scipy, one programme for every history), once with conditions on the secret of the wave alone and once
with conditions on the secrets of all waves that a person was in: ``M P(S_v | h, y) <= 0`` for every such v, with
``P(S_v, x | h)`` carried along the history. Nothing is proven here, and the effective channel is not held to the bound
alone; both are the same for the two runs, which differ in these conditions only. Figures go to
``benchmarks/results/past-secrets.json`` and ``past-secrets.md``.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import scipy.sparse
from scipy.optimize import linprog

import funnel
from benchmarks.panel import MARRIED, OUTWORK, RESULTS, Case, Figures, Published, judged, places, reader_of, waves_of
from funnel import Joint
from tests.histories import History, Reader

FloatArray = npt.NDArray[np.float64]
# A programme is solved this much inside the bound; what a zero of the target counts as in the gains.
INSIDE, ZERO = 1e-7, 5e-4
ROUNDS = 3


def conditions(reader: Reader, case: Case, history: History, t: int, past: bool) -> tuple[FloatArray, FloatArray]:
    """What rows T over the inputs must meet, G T <= 0 (k, a), and P(x | history), (a,)."""
    law = reader.before(history, t).astype(np.float64)
    p = law.sum(axis=0)
    prior = reader.prior(history[-1][0] if history else None, t).astype(np.float64)
    blocks = [(law, prior)]
    if past:
        for at, (v, _) in enumerate(history):
            before = reader.prior(history[at - 1][0] if at else None, v).astype(np.float64)
            blocks.append((reader.past_before(history, t, v).sum(axis=1).astype(np.float64), before))
    rows = []
    for block, known in blocks:
        seen = known > 0
        cone = case.guarantee.tightened(INSIDE).posterior_cone(known[seen])
        here = cone @ block[seen]
        rows.append(here - np.maximum(0.0, here.sum(axis=1))[:, None] * p)
    return np.vstack(rows), p


def best_rows(conditions: FloatArray, gains: FloatArray) -> FloatArray:
    """Rows (b, a) in the cone that sum to one, with the largest gain."""
    b, a = gains.shape
    scaled = conditions / np.maximum(np.abs(conditions).max(axis=1, keepdims=True), 1e-12)
    found = linprog(
        -gains.ravel(),
        scipy.sparse.kron(scipy.sparse.eye(b), scaled, format="csr"),
        np.zeros(b * len(conditions)),
        scipy.sparse.hstack([scipy.sparse.eye(a)] * b, format="csr"),
        np.ones(a),
        bounds=(0, None),
        method="highs",
    )
    if found.status != 0:
        raise RuntimeError(f"a programme failed: {found.message}")
    rows = np.maximum(found.x.reshape(b, a), 0.0)
    return np.asarray(rows / rows.sum(axis=0))


def published(waves: Sequence[tuple[str, pa.Table]], case: Case, past: bool) -> list[Figures]:
    """All waves, one after another, and what a second reader finds."""
    rng = np.random.default_rng(5)
    versions: list[Published] = []
    decided: list[dict[History, FloatArray]] = []
    known: dict[int, History] = {}
    kept = []
    for t, (_, table) in enumerate(waves):
        joint = Joint.from_table(table, [case.secret], case.inputs)
        target = funnel.optimal(joint, case.guarantee).protocol
        ids, cells = table["id"].to_numpy().astype(np.int64), places(joint, case, table)
        here = Published(case, joint, ids, cells, np.zeros(len(ids), dtype=np.int64))
        reader = reader_of([*versions, here], lambda v, h: decided[v][h] * 2.0**63)
        people = Counter(known.get(key, ()) for key in ids.tolist())
        known_cones = {h: conditions(reader, case, h, t, past) for h in people}
        channel, best, told = target.matrix, {}, -1.0
        for _ in range(ROUNDS if t else 1):
            outputs = channel @ joint.p_input
            gains = np.log(np.maximum(channel, ZERO) / np.maximum(outputs, ZERO)[:, None])
            rows = {h: best_rows(g, gains * p) for h, (g, p) in known_cones.items()} if t else {(): target.matrix}
            channel = effective(rows, known, ids, cells, len(target.matrix))
            law = channel * joint.p_input
            seen = law > 0
            now = float((law[seen] * np.log((channel / law.sum(axis=1)[:, None])[seen])).sum())
            if now <= told:
                break
            best, told = rows, now
        decided.append(best)
        kept.append((told / joint.entropy, funnel.measures.normalised_mutual_information(joint, target)))
        columns = np.stack([best[known.get(key, ())][:, x] for key, x in zip(ids.tolist(), cells[:, 1], strict=True)])
        outputs_of = (rng.random(len(ids))[:, None] >= np.cumsum(columns, axis=1)[:, :-1]).sum(axis=1)
        versions.append(Published(case, joint, ids, cells, outputs_of))
        for key, y in zip(ids.tolist(), outputs_of.tolist(), strict=True):
            known[key] = (*known.get(key, ()), (t, y))
    second = judged(versions, lambda v, h: decided[v][h] * 2.0**63)
    return [{"kept": k, "alone": alone, **row} for (k, alone), row in zip(kept, second, strict=True)]


def effective(
    rows: dict[History, FloatArray],
    known: dict[int, History],
    ids: npt.NDArray[np.int64],
    cells: npt.NDArray[np.int64],
    outputs: int,
) -> FloatArray:
    """W(y|x): the mean of the rows over the people with each input."""
    summed = np.zeros((outputs, int(cells[:, 1].max()) + 1))
    counted = np.zeros(summed.shape[1])
    for key, x in zip(ids.tolist(), cells[:, 1].tolist(), strict=True):
        summed[:, x] += rows[known.get(key, ())][:, x]
        counted[x] += 1
    return np.asarray(summed / counted)


def page_of(figures: Figures) -> str:
    """The figures as a page."""
    parts = [
        "# Bounding the secrets of past waves as well",
        "",
        "`python -m benchmarks.past_secrets`: a prototype in floats on the panel, with conditions on the secret of the",
        "wave alone, as funnel has them, and with conditions on the secrets of all waves that a person was in. *Past*",
        "counts people about whom a reader of all versions believes something outside the bound of the secret of an",
        "earlier wave that was within it then; *worst* is the largest such level, in nats. *Kept* is I(X;W) as a share",
        "of H(X).",
    ]
    for case in (OUTWORK, MARRIED):
        parts += [
            "",
            f"## {case.name[0].upper()}{case.name[1:]}, {case.guarantee}",
            "",
            "| wave | people | alone | wave's secret: kept | past | worst | all secrets: kept | past | worst |",
            "|---|---|---|---|---|---|---|---|---|",
        ]
        both = zip(figures[f"{case.name}, wave"], figures[f"{case.name}, all"], strict=True)
        for year, (wave, every) in enumerate(both, start=1984):
            cells = [
                f"{row['kept']:.3f} | {row['past_outside']:,} ({row['past_outside'] / row['people']:.1%}) "
                f"| {'infinite' if row['past_worst'] is None else format(row['past_worst'], '.2f')}"
                for row in (wave, every)
            ]
            parts.append(f"| {year} | {wave['people']:,} | {wave['alone']:.3f} | {cells[0]} | {cells[1]} |")
    return "\n".join(parts) + "\n"


def quoted(figures: Figures) -> str:
    """The sentence of the guide that is these figures."""
    waves, every = (
        " and ".join(f"{figures[f'{case.name}, {kind}'][-1]['kept']:.3f}" for case in (OUTWORK, MARRIED))
        for kind in ("wave", "all")
    )
    return f"{every} of H(X) in the fifth wave instead of {waves}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--panel", required=True, type=Path, help="health_panel.parquet")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder for past-secrets.json and .md")
    arguments = parser.parse_args()
    path = arguments.results / "past-secrets.json"
    figures: Figures = json.loads(path.read_text()) if path.exists() else {}
    waves = waves_of(arguments.panel)
    for case in (OUTWORK, MARRIED):
        for name, past in (("wave", False), ("all", True)):
            if f"{case.name}, {name}" not in figures:
                figures[f"{case.name}, {name}"] = published(waves, case, past)
                path.write_text(json.dumps(figures, indent=1) + "\n")
    (arguments.results / "past-secrets.md").write_text(page_of(figures))


if __name__ == "__main__":
    main()
