"""What it costs to bound the secrets of past waves as well, on a panel.

``python -m benchmarks.past_secrets --panel health_panel.parquet`` publishes the waves of the panel by `funnel.History`,
once with the secret of each wave bounded as it is published and once with the secrets of all waves that a person was
in, and judges both by a second reader, who follows every history by a recursion of its own. Figures go to
``benchmarks/results/past-secrets.json`` and ``past-secrets.md``.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Final

from benchmarks.panel import MARRIED, OUTWORK, RESULTS, Figures, by_history, judged, waves_of
from funnel.history.observed import Secrets

NAMES: Final[dict[str, Secrets]] = {"wave": "current", "all": "all"}


def page_of(figures: Figures) -> str:
    """The figures as a page."""
    parts = [
        "# Bounding the secrets of past waves as well",
        "",
        "`python -m benchmarks.past_secrets`: the panel by `funnel.History` for *transitions*, with a bound on the",
        "secret of each wave as it is published, and with one on the secrets of all waves that a person was in. *Past*",
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
        for name, secrets in NAMES.items():
            if f"{case.name}, {name}" not in figures:
                releases = [(case, year, table) for year, table in waves]
                versions, rows, told = by_history(releases, case.guarantee, secrets=secrets)
                second = judged(versions, rows)
                figures[f"{case.name}, {name}"] = [{**one, **row} for one, row in zip(told, second, strict=True)]
                path.write_text(json.dumps(figures, indent=1) + "\n")
    (arguments.results / "past-secrets.md").write_text(page_of(figures))


if __name__ == "__main__":
    main()
