"""The pages of the panel: its tables, and the sentences of the guides that are its figures."""

from __future__ import annotations

import math
from collections.abc import Sequence

from benchmarks.panel import MARRIED, OUTWORK, TWO_SERIES, Figures


def page_of(figures: Figures, reserves: Sequence[float]) -> str:
    """The figures as a page."""
    parts = [
        "# Five waves of a panel",
        "",
        "`python -m benchmarks.panel` on 6,127 people of the German Socioeconomic Panel, 1984 to 1988, who join and",
        "leave. *Kept* is I(X;W) as a share of H(X), *alone* the optimum of the wave alone, *at most* what any step",
        "could keep. *Level* is the largest over everything published about anybody whom the frequencies have not",
        "moved; *moved* are people whose history alone is outside the bound under the wave's frequencies, *outside*",
        "those of them for whom some possible answer is. All of this is as `funnel.History` says it.",
        "",
        "*Believed outside* counts the people about whom a reader of all versions really believes something outside",
        "the bound, and *past* those about whom such a reader now believes something outside it of a secret of an",
        "earlier wave that was within it when its wave was published: the bound does not cover that. *Trajectories*",
        "counts those outside for a reader who knows how common every whole trajectory in the panel is, not only",
        "every change: nothing covers that either. These three are by a second computation, which shares no code with",
        "the first.",
    ]
    for case in (OUTWORK, MARRIED):
        parts += ["", f"## {case.name[0].upper()}{case.name[1:]}, {case.guarantee}"]
        for reserve in reserves:
            parts += ["", f"Reserve {reserve:g}:" if reserve < 1 else "By `funnel.History`:", ""]
            parts += _table(figures[f"{case.name}, reserve {reserve:g}"])
        parts += [
            "",
            "Every wave drawn from its own optimum, whatever was published before:",
            "",
            "| wave | people | fresh draws: believed outside | past | trajectories | one keyed word: the same |",
            "|---|---|---|---|---|---|",
        ]
        both = zip(range(1984, 1989), figures[f"{case.name}, fresh"], figures[f"{case.name}, keyed"], strict=True)
        for year, row, keyed in both:
            n = row["people"]
            parts.append(
                f"| {year} | {n:,} | {_people(row['outside'], n)} | {_people(row['past_outside'], n)} "
                f"| {_people(row['trajectories_outside'], n)} | {_people(keyed['outside'], n)} |"
            )
    parts += [
        "",
        "## Two series of one register",
        "",
        "Outwork given income fifth and kids, and outwork given education and sex, in turns: one bound of 1 for both.",
        "Between two series of one wave nobody changes; but the distribution that lifts are measured against is "
        "that of",
        "those who were in the wave before, and then that of all people of the wave. A history that stands on the",
        "bound under the one is a hair outside under the other, so that a quarter of the people are counted as moved",
        "unless there is a reserve.",
    ]
    for reserve in TWO_SERIES:
        parts += ["", f"Reserve {reserve:g}:", "", *_table(figures[f"two series, reserve {reserve:g}"])]
    parts += ["", "## What it costs that the effective channel meets the bound by itself", "", *linked_table(figures)]
    return "\n".join(parts) + "\n"


def _table(rows: Sequence[Figures]) -> list[str]:
    lines = [
        "| wave | people | histories | kept | alone | at most | level | moved | outside | believed outside | past "
        "| trajectories | seconds |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        second = row["second"]
        n = second["people"]
        lines.append(
            f"| {row['version']} | {n:,} | {row['histories']:,} | {row['kept']:.4f} | {row['alone']:.4f} "
            f"| {row['bound']:.4f} | {row['level']:.6f} | {_people(row['moved'], n)} | {_people(row['outside'], n)} "
            f"| {_people(second['outside'], n)} | {_people(second['past_outside'], n)} "
            f"| {_people(second['trajectories_outside'], n)} | {row['seconds']:.1f} |"
        )
    return lines


def short_table(figures: Figures) -> list[str]:
    """The table of the guide: both cases, everything declared to the full, beside fresh draws."""
    lines = [
        "| wave | people | histories | kept | kept alone | level | moved | outside | fresh draws: outside |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for case in (OUTWORK, MARRIED):
        lines.append(f"| *{case.name}, {case.guarantee}* | | | | | | | | |")
        rows = zip(figures[f"{case.name}, reserve 1"], figures[f"{case.name}, fresh"], strict=True)
        for row, alone in rows:
            n = row["second"]["people"]
            lines.append(
                f"| {row['version']} | {n:,} | {row['histories']:,} | {row['kept']:.3f} | {row['alone']:.3f} "
                f"| {_rounded_up(row['level'])} | {_people(row['moved'], n)} | {_people(row['outside'], n)} "
                f"| {_people(alone['outside'], n)} |"
            )
    return lines


def linked_table(figures: Figures) -> list[str]:
    """What is kept of H(X) in every wave, with the condition on W that published releases have and without it."""
    lines = []
    for case in (OUTWORK, MARRIED):
        asked, linked = figures[f"{case.name}, reserve 1"], figures[f"{case.name}, linked"]
        if not lines:
            lines += ["| kept | " + " | ".join(row["version"] for row in asked) + " |", "|---" * (len(asked) + 1) + "|"]
        for what, rows in (("W by itself as well", asked), ("every history", linked)):
            lines.append("| " + " | ".join([f"{case.name}, {what}", *(f"{row['kept']:.3f}" for row in rows)]) + " |")
    return lines


def reserve_table(figures: Figures, reserves: Sequence[float]) -> list[str]:
    """What reserves cost and save over all waves."""
    lines = [
        "| reserve | outwork: kept, last wave | moved, all waves | married: kept, last wave | moved, all waves |",
        "|---|---|---|---|---|",
    ]
    for reserve in reserves:
        cells = []
        for case in (OUTWORK, MARRIED):
            rows = figures[f"{case.name}, reserve {reserve:g}"]
            cells.append(f"{rows[-1]['kept']:.3f} | {sum(row['moved'] for row in rows):,}")
        lines.append(f"| {reserve:g} | {' | '.join(cells)} |")
    return lines


def quoted(figures: Figures) -> dict[str, list[str]]:
    """Sentences of the guides that are these figures, by page."""
    cases = [case.name for case in (OUTWORK, MARRIED)]
    fresh_draws, keyed, ours = (
        [figures[f"{name}, {kind}"][-1] for name in cases] for kind in ("fresh", "keyed", "reserve 1")
    )
    n = fresh_draws[0]["people"]

    def both(rows: Sequence[Figures], field: str) -> str:
        return " and ".join(f"{row[field]:,} ({row[field] / n:.1%})" for row in rows).replace("%", " %")

    # The first step at which nothing but the distribution that lifts are measured against has changed.
    moving = [figures[f"two series, reserve {reserve:g}"][3] for reserve in TWO_SERIES]
    share = f"{moving[0]['moved'] / moving[0]['second']['people']:.1%}".replace("%", " %")
    second = [row["second"] for row in ours]
    two = figures["two series, reserve 1"][-1]["second"]
    moved = [max(row["moved"] / row["second"]["people"] for row in figures[f"{name}, reserve 1"]) for name in cases]
    return {
        "history": [
            f"about {both(second, 'past_outside')} of {n:,} people after five waves; of fresh draws it is "
            f"{both(fresh_draws, 'past_outside')}",
            f"With two series of one register it is {both([two], 'past_outside')} of them",
            f"about {both(fresh_draws, 'outside')} of the {n:,} people of the last wave",
            "a reader of whole trajectories believes something outside the bound about "
            f"{both(second, 'trajectories_outside')} people of the last wave; of fresh draws it is "
            f"{both(fresh_draws, 'trajectories_outside')}",
        ],
        "history-figures": [
            f"({moving[0]['moved']:,} people, {share}, and {moving[1]['moved']:,} in the first such step)",
        ],
        "history-theorems": [
            f"put {both(keyed, 'outside')} of the {n:,} people of the last wave outside",
        ],
        "limitations-figures": [
            f"{both(fresh_draws, 'outside')} of {n:,} people were outside the bound after five waves",
            f"on the panel it is outside the bound for {both(second, 'past_outside')} of {n:,} people after five waves",
            f"on the panel {both(second, 'trajectories_outside')} of {n:,} people are outside for them after "
            f"five waves, and {both(fresh_draws, 'trajectories_outside')} with fresh draws",
            f"none in any wave for outwork, and up to {moved[1]:.1%} of a wave for married".replace("%", " %"),
        ],
    }


def _rounded_up(value: float) -> str:
    return f"{math.ceil(value * 1e6 - 1e-6) / 1e6:.6f}"


def _people(some: int, of_all: int) -> str:
    return f"{some:,} ({some / of_all:.1%})" if some else "0"
