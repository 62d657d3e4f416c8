"""Tables and figures of the benchmark of robust mechanisms, from its rows."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

Row = dict[str, Any]

TITLES = {
    "robust-optimal": "robust-optimal",
    "polyopt": "PolyOpt",
    "independent-reporting": "IR",
    "robust-conditional-reporting": "CR",
    "grr": "GRR",
}
PLANES = "cutting planes"
# What the mechanism robust-optimal takes instead where cutting planes were stopped by their time limit far inside.
FALLBACK = ["polyopt", *(f"{name}, calibrated" for name in list(TITLES)[1:4])]
LABELS = [
    "bound",
    "robust-optimal",
    PLANES,
    *(f"{name}{version}" for name in list(TITLES)[1:] for version in (", calibrated", "")),
]
# Shares are kept to six digits.
_SLACK = 2e-6


def with_fallback(rows: list[Row]) -> list[Row]:
    """Rows with what the mechanism ``robust-optimal`` gives: the best of cutting planes and what it falls back on."""
    found = []
    for row in rows:
        others = [row[label] for label in FALLBACK if label in row]
        best = {"robust-optimal": max([row[PLANES], *others]), PLANES: row[PLANES]} if PLANES in row else {}
        found.append({**row, **best})
    return found


def write_tables(found: dict[str, list[Row]], path: Path) -> None:
    """All tables as Markdown."""
    found = {group: rows if group == "adult" else with_fallback(rows) for group, rows in found.items()}
    parts = ["# Robust mechanisms, measured", ""]
    parts += _adult(found["adult"])
    for group, name, text in (
        ("figure2", "epsilon", "|S| = |U| = 3, n = 1000, Jeffreys distributions, α = 0.05, by ε (nats)"),
        ("figure3", "n", "|S| = |U| = 5, ε = 1, Jeffreys distributions, α = 0.05, by n"),
    ):
        if found[group]:
            parts += [f"## {text}", "", *_shares(found[group], name), *_gains(found[group], name)]
            parts += [*_levels(found[group], name), *_orders(found[group], name)]
    path.write_text("\n".join(parts).rstrip() + "\n")


def title(label: str) -> str:
    """A label as people read it."""
    name, _, version = label.partition(", ")
    return f"{TITLES.get(name, name)}{', ' + version if version else ''}"


def _adult(rows: list[Row]) -> list[str]:
    parts = []
    for case in dict.fromkeys(row["case"] for row in rows):
        parts += [
            f"## Adult: {case}",
            "",
            "| ε | mechanism | version | reads S | true robust ε | of H(X) kept | of H(S,X) kept | |",
            "|---|---|---|---|---|---|---|---|",
        ]
        for row in (row for row in rows if row["case"] == case):
            start = f"| {row['epsilon']:g} | {row['mechanism']} | {row['version']} | "
            if "share" not in row:
                parts.append(f"{start}| | | | not to be had: {row.get('reason', 'not measured')} |")
                continue
            level = "infinite" if row["level"] is None else f"{row['level']:.3f}"
            note = "" if row.get("finished", True) else "stopped by the time limit"
            if "bound" in row:
                note = f"no protocol keeps more than {row['bound']:.2%} of H(S,X)" + (f"; {note}" if note else "")
            parts.append(
                f"{start}{'yes' if row['reads secret'] else 'no'} | {level} | {row['input share']:.2%} | "
                f"{row['share']:.2%} | {note} |"
            )
        parts.append("")
    return parts


def _table(first: str, values: list[Any], lines: list[list[str]]) -> list[str]:
    return [
        f"| {first} | " + " | ".join(f"{value:,g}" for value in values) + " |",
        "|---" * (len(values) + 1) + "|",
        *("| " + " | ".join(line) + " |" for line in lines),
        "",
    ]


def _values(rows: list[Row], name: str) -> list[Any]:
    return sorted({row[name] for row in rows})


def _shares(rows: list[Row], name: str) -> list[str]:
    values = _values(rows, name)
    lines = []
    for label in LABELS:
        cells = [[row[label] for row in rows if row[name] == value and label in row] for value in values]
        if any(cells):
            lines.append([title(label), *(f"{fmean(cell):.4f} ({len(cell)})" if cell else "" for cell in cells)])
    return ["Mean of I((S,U);Y) / H(S,U), in brackets the number of distributions:", "", *_table("kept", values, lines)]


def _gains(rows: list[Row], name: str) -> list[str]:
    values = _values(rows, name)
    pairs = [(f"{label}, calibrated", label) for label in list(TITLES)[1:]]
    pairs += [("robust-optimal", label) for label in list(TITLES)[1:]]
    lines = []
    for better, base in pairs:
        cells = []
        for value in values:
            both = [(row[better], row[base]) for row in rows if row[name] == value and better in row and base in row]
            ratio = fmean(one for one, _ in both) / fmean(other for _, other in both) if both else None
            cells.append("" if ratio is None else f"{ratio:.3g} ({len(both)})")
        if any(cells):
            lines.append([f"{title(better)} / {title(base)} as published", *cells])
    text = (
        "Gain over the paper's own mechanisms: the ratio of means over the distributions that both were computed for:"
    )
    return [text, "", *_table("gain", values, lines)]


def _levels(rows: list[Row], name: str) -> list[str]:
    values = _values(rows, name)
    lines = []
    for label in list(TITLES)[1:]:
        cells = []
        for value in values:
            some = [
                row[f"level of {label}"] / row.get("epsilon", 1.0)
                for row in rows
                if row[name] == value and row.get(f"level of {label}") is not None
            ]
            cells.append(f"{fmean(some):.2f} ({min(some):.2f})" if some else "")
        if any(cells):
            lines.append([title(label), *cells])
    if not lines:
        return []
    text = "Share of the budget that the versions as published use, mean (least): true robust level / ε:"
    return [text, "", *_table("used", values, lines)]


def _orders(rows: list[Row], name: str) -> list[str]:
    """How often an order that ought to hold does not, distribution by distribution."""
    lines = []
    checks = [(label, "polyopt") for label in ("grr", "independent-reporting", "robust-conditional-reporting")]
    checks += [(label, top) for top in ("bound", "robust-optimal", PLANES) for label in LABELS[3:]]
    for low, high in checks:
        both = [row for row in rows if low in row and high in row]
        if not both:
            continue
        broken = [row for row in both if row[low] > row[high] + _SLACK]
        worst = max(broken, key=lambda row: row[low] - row[high], default=None)
        note = "none" if worst is None else f"{worst[low] - worst[high]:.4f} at {name} = {worst[name]:,g}"
        lines.append(f"| {title(low)} ≤ {title(high)} | {len(both)} | {len(broken)} | {note} |")
    return [
        "Orders, distribution by distribution:",
        "",
        "| order | cases | broken | by at most |",
        "|---|---|---|---|",
        *lines,
        "",
    ]


def write_figures(found: dict[str, list[Row]], folder: Path) -> None:
    """The paper's figures 2 and 3: its own curves dashed, the calibrated solid, the optimum on top."""
    mpl.rcParams["svg.hashsalt"] = "funnel"
    found = {group: with_fallback(rows) for group, rows in found.items()}
    for group, name, axis_title in (("figure2", "epsilon", "ε (nats)"), ("figure3", "n", "n")):
        if not found[group]:
            continue
        figure = Figure(figsize=(8, 4.8), layout="constrained")
        axis = figure.subplots()
        for label in (label for label in LABELS if label != PLANES):
            cells = {
                value: [row[label] for row in found[group] if row[name] == value and label in row]
                for value in _values(found[group], name)
            }
            points = [(value, fmean(cell)) for value, cell in cells.items() if cell]
            if not points:
                continue
            colour = f"C{list(TITLES).index(label.split(',')[0]) if label != 'bound' else 0}"
            style = ":" if label == "bound" else "-" if "calibrated" in label or label == "robust-optimal" else "--"
            distributions = max(len(cell) for cell in cells.values())
            text = f"{title(label)}{' of the optimum' if label == 'bound' else ''} ({distributions} distributions)"
            axis.plot(*zip(*points, strict=True), style, marker="o", ms=3, color=colour, label=text)
        axis.set_xscale("log")
        values = _values(found[group], name)
        axis.set_xticks(values, [f"{value:,g}" for value in values])
        axis.minorticks_off()
        axis.set_xlabel(axis_title)
        axis.set_ylabel("I((S,U);Y) / H(S,U)")
        axis.grid(alpha=0.3)
        figure.legend(fontsize=7, loc="outside right upper")
        figure.savefig(folder / f"robust-{group}.svg", metadata={"Date": None})
