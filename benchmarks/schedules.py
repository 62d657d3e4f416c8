"""What it costs to say more later about values that do not change: budgets that grow, against one shot.

``python -m benchmarks.schedules`` takes four tables of Adult, four guarantees and two schedules, and writes
``benchmarks/results/schedules.json`` and ``schedules.md``. Every version is proven on the weights of whole paths.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from benchmarks.population import CASES
from funnel import ALIP, LDP, LIP, Guarantee, Joint
from funnel.history.schedule import schedule_cost

HERE = Path(__file__).parent
RESULTS = HERE / "results"
GUARANTEES: tuple[Guarantee, ...] = (LIP(1.0), LIP(0.5), ALIP(1.3, 0.7), LDP(1.0))
SCHEDULES = ((0.5, 1.0), (0.25, 0.5, 1.0))
Rows = list[dict[str, Any]]


def measured(data: Path) -> Rows:
    """A row for every table, guarantee and schedule."""
    rows = []
    table = pq.read_table(data)
    for secret, published in CASES:
        joint = Joint.from_table(table, [secret], [published])
        for guarantee in GUARANTEES:
            for shares in SCHEDULES:
                cost = schedule_cost(joint, guarantee, shares, 60.0)
                rows.append(
                    {
                        "case": f"{secret} given {published}",
                        "guarantee": str(guarantee),
                        "shares": list(shares),
                        "kept": [kept / cost.entropy for kept in cost.kept],
                        "one_shot": [most / cost.entropy for most in cost.one_shot],
                        "lost": list(cost.lost),
                        "paths": len(cost.paths.histories),
                    }
                )
    return rows


def page_of(rows: Rows) -> str:
    """The rows as a page."""
    lines = [
        "# Budgets that grow",
        "",
        "`python -m benchmarks.schedules`: several versions about the same people of Adult, whose values do not",
        "change. *Kept* is what all versions up to one keep of H(X), *one shot* an upper bound on what any protocol",
        "keeps at its budget alone. The budget of each version is a share of the guarantee's.",
        "",
        "| table | guarantee | shares | kept | one shot | paths |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        shares, kept, most = (", ".join(f"{v:g}" if n == 0 else f"{v:.4f}" for v in row[name])
                              for n, name in enumerate(("shares", "kept", "one_shot")))  # fmt: skip
        lines.append(f"| {row['case']} | {row['guarantee']} | {shares} | {kept} | {most} | {row['paths']} |")
    return "\n".join(lines) + "\n"


def short_table(rows: Rows) -> list[str]:
    """The table of the guide: LIP 1."""
    lines = ["| shares of ε, LIP 1; kept of H(X) | first | second | third | one shot |", "|---|---|---|---|---|"]
    for row in rows:
        if row["guarantee"] == "lip:1.0":
            kept = [f"{value:.3f}" for value in row["kept"]] + [""] * (3 - len(row["kept"]))
            shares = ", ".join(f"{share:g}" for share in row["shares"])
            lines.append(f"| {row['case']}: {shares} | {' | '.join(kept)} | {row['one_shot'][-1]:.3f} |")
    return lines


def quoted(rows: Rows) -> list[str]:
    """Sentences of the guide that are these figures."""
    two = max(row["lost"][-1] for row in rows if len(row["shares"]) == 2)
    three = [row["lost"] for row in rows if len(row["shares"]) == 3]
    on_the_way, at_the_end = max(map(max, three)), max(lost[-1] for lost in three)
    return [
        f"two versions, the first with half of the budget, ended at most {100 * two:.1f} points of H(X) below one shot",
        f"lost up to {100 * on_the_way:.1f} points on the way and {100 * at_the_end:.1f} at the end",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=HERE.parent / "data" / "adult.parquet", type=Path)
    arguments = parser.parse_args()
    rows = measured(arguments.data)
    (RESULTS / "schedules.json").write_text(json.dumps(rows, indent=1) + "\n")
    (RESULTS / "schedules.md").write_text(page_of(rows))


if __name__ == "__main__":
    main()
