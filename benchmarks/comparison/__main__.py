"""Risk and usefulness of releases by funnel beside those of other methods, on the same tables.

``python -m benchmarks.comparison --census census_income_kdd.parquet`` releases halves of Adult, of Census-Income, and
of the people in it who moved between states, by every method of `benchmarks.comparison.methods`, attacks them, and
measures how useful they are. Packages that are
compared are no dependencies: ``pip install -r benchmarks/comparison/requirements.txt --no-deps`` installs them, and
what is not installed is left out and said so. Writes ``benchmarks/results/comparison-*.json`` and ``comparison.md``.
"""

from __future__ import annotations

import os

# Seconds are of processor time: threads that wait for each other would be counted too.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

import argparse
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.comparison.attacks import Classifier, Tally, anonymeter_risks, guesses, largest_change, tally
from benchmarks.comparison.methods import Method, methods, timed, version
from benchmarks.comparison.page import FINDINGS, TABLES, page, rows_of
from benchmarks.comparison.tables import Study, Trial, adult, census, movers
from benchmarks.comparison.usefulness import regression, sdmetrics_scores, table_errors
from benchmarks.comparison.withheld import cases as withheld_cases
from benchmarks.plots import draw_comparison
from benchmarks.rows import RESULTS, Row, save

PEOPLE, RELEASES, PRIVATE_RELEASES, ATTACKS, SEED = 24_000, 3, 1, 200, 33


def measured(method: Method, trials: list[Trial], number: int) -> Row:
    """One method: its releases of some tables, attacked and used."""
    row: Row = {"table": trials[0].study.name, "method": method.name, "kind": method.kind, "epsilon": method.epsilon}
    if method.absent is not None:
        return {**row, "absent": method.absent}
    attacks: dict[str, dict[str, Tally]] = {}
    gains, errors, scores, changes, off, seconds, accuracies = [], [], [], [], [], 0.0, []
    covered = intervals = 0
    for k, trial in enumerate(trials[: PRIVATE_RELEASES if method.needs == "opendp" else None]):
        release, took = timed(method, trial, np.random.default_rng([SEED, number, k]))
        seconds += took
        model = Classifier(release.codes, trial.study.sizes[0], seed=k)
        found = guesses(trial, release, model)
        for name, scored in found.items():
            of = attacks.setdefault(name, {"all": Tally(), "rare": Tally()})
            of["all"] += tally(scored, trial.answers)
            of["rare"] += tally(scored, trial.answers, trial.rare)
        gains.append({name: round(tally(scored, trial.answers).gain, 4) for name, scored in found.items()})
        if release.evidence is not None:
            changes.append(largest_change(release.evidence))
        plain, outside = trial.inside[trial.plain], trial.outside[trial.plain_outside]
        accuracies.append((model.accuracy(plain), model.accuracy(outside)))
        errors.append(table_errors(trial, release, method.corrected))
        scores.append(sdmetrics_scores(trial, release))
        fitted = regression(trial, release)
        off.append(fitted.off)
        covered, intervals = covered + fitted.covered, intervals + fitted.intervals
        if k == 0:
            row["anonymeter"] = anonymeter_risks(trial, release, ATTACKS, SEED)
    inside, held_out = np.mean(accuracies, axis=0).tolist()
    return {
        **row,
        "releases": len(gains),
        "seconds": seconds / len(gains),
        "attacks": {a: {who: [t.right, t.guesses] for who, t in of.items()} for a, of in attacks.items()},
        "gains": gains,
        "change": None if not changes else "infinite" if np.isinf(max(changes)) else max(changes),
        "inside": inside,
        "outside": held_out,
        "errors": {name: float(np.mean([e[name] for e in errors])) for name in errors[0]},
        "sdmetrics": {name: float(np.mean([s[name] for s in scores])) for name in scores[0]},
        "off": float(np.mean(off)),
        "covered": [covered, intervals],
    }


def cases(study: Study, slow: bool) -> Iterator[Row]:
    """Every row of a table, of slow methods if asked; the first one is about the table."""
    began = _processor_seconds()
    trials = [Trial.toss(study, np.random.default_rng([SEED, k])) for k in range(RELEASES)]
    common = np.mean([np.bincount(t.outside[t.plain_outside][:, 0]).max() / t.plain_outside.sum() for t in trials])
    yield {
        "table": study.name,
        "columns": study.columns,
        "sizes": study.sizes,
        "people": len(trials[0].inside),
        "targets": sum(len(t.targets) for t in trials),
        "rare": sum(int(t.rare.sum()) for t in trials),
        "commonest": float(common),
        "unique": float(np.mean([_unique(t) for t in trials])),
        "versions": {p: version(p) for p in ("anjana", "opendp", "mbi", "anonymeter", "sdmetrics", "scikit-learn")},
    }
    for number, method in enumerate(methods()):
        if method.slow and not slow:
            yield {"table": study.name, "method": method.name, "absent": "one release takes minutes; ask for --slow"}
        else:
            yield measured(method, trials, number)
    yield from withheld_cases(study, SEED)
    yield {"table": study.name, "seconds of everything": _processor_seconds() - began}


def _processor_seconds() -> float:
    """Of this process and of the commands that it ran."""
    return sum(os.times()[:4])


def _unique(trial: Trial) -> float:
    """The share of the people whose other columns nobody else in the table has."""
    counts = np.unique(trial.inside[:, 1:], axis=0, return_counts=True)[1]
    return float((counts == 1).sum() / len(trial.inside))


def main() -> None:
    """Measure one table after the other and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--adult", type=Path, default=Path("data/adult.parquet"))
    parser.add_argument("--census", type=Path, help="census_income_kdd.parquet; without it Adult alone")
    parser.add_argument("--only", choices=list(TABLES), help="one table; the figures of others stay as they are")
    parser.add_argument("--slow", action="store_true", help="also methods whose releases take minutes")
    parser.add_argument("--page", action="store_true", help="measure nothing, write the page from the figures kept")
    asked = parser.parse_args()
    # jax and polars warn about what they do inside.
    warnings.simplefilter("ignore")
    tables = (("adult", asked.adult, adult), ("census", asked.census, census), ("movers", asked.census, movers))
    for name, path, make in tables:
        if path is None or asked.page or asked.only not in (None, name):
            continue
        rows: list[Row] = []
        for row in cases(make(path, PEOPLE), asked.slow):
            print(row, flush=True)
            rows.append(row)
            save(rows, RESULTS / f"comparison-{name}.json")
    write_page()


def write_page() -> None:
    """Check the limits, and write the page and the picture from the figures that there are."""
    (RESULTS / "comparison.md").write_text(page(rows_of(RESULTS), FINDINGS))
    draw_comparison()


if __name__ == "__main__":
    main()
