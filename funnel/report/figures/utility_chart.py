"""The share of the information that each mechanism keeps, as bars."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from funnel.report.content import PlanLine
from funnel.report.figures.canvas import ACCENT, INK, PALE, SOFT, canvas, short, style, to_svg
from funnel.report.numbers import percent


def utility_chart(plan: Sequence[PlanLine], used: str) -> Markup | None:
    """Bars of I(X;Y)/H(X) of the mechanisms that have one, as an SVG element; None if none has.

    The mechanism used is filled, the others are pale, and those that may not be used are hatched.
    """
    lines = [line for line in plan if line.share is not None]
    if not lines:
        return None
    with style():
        figure, axes = canvas(0.75 + 0.32 * len(lines))
        for row, line in enumerate(lines):
            share = line.share or 0.0
            allowed = line.reason is None
            bar = axes.barh(
                row,
                share,
                height=0.62,
                color=ACCENT if line.mechanism == used else PALE,
                edgecolor=ACCENT,
                linewidth=0.7,
            )
            if not allowed:
                bar[0].set_hatch("////")
            note = "" if allowed else "  (may not be used)"
            axes.text(share + 0.012, row, percent(share) + note, va="center", ha="left", color=INK)
        axes.set_yticks(range(len(lines)), [short(line.mechanism, 30) for line in lines], color=INK)
        axes.set_ylim(len(lines) - 0.45, -0.55)
        axes.set_xlim(0, 1.12)
        axes.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0 %", "25 %", "50 %", "75 %", "100 %"])
        axes.tick_params(length=0)
        axes.spines["bottom"].set_visible(False)
        axes.set_xlabel("share of the information in the published columns that is kept", color=SOFT)
        names = ", ".join(f"{short(line.mechanism, 60)} {percent(line.share or 0.0)}" for line in lines)
        return to_svg(figure, "utility", f"Bar chart of the share of the information each mechanism keeps: {names}.")
