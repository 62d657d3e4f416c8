"""How far apart each output sets two values of the secret: one line per output, up to the limit of the guarantee."""

from __future__ import annotations

import numpy as np
from markupsafe import Markup

from funnel.joint import FloatArray
from funnel.report.figures.canvas import ACCENT, INK, WARN, canvas, short, style, to_svg
from funnel.report.figures.lift_chart import strongest
from funnel.report.figures.log_axis import draw_axis, draw_limit, reach

_ROW = 0.25


def ratio_chart(ratios: FloatArray, outputs: tuple[str, ...], limit: float) -> Markup:
    """Lines from 1 to the largest P(y|s)/P(y|s') of every output as an SVG element.

    Parameters
    ----------
    ratios : ndarray, shape (b,)
        At least 1; infinite where y excludes a secret, nan where y never occurs.
    outputs : tuple of str
        The b labels; the 50 with the largest ratios are drawn.
    limit : float
        Largest ratio allowed, e^ε.
    """
    shown = strongest(np.nan_to_num(ratios, nan=-1.0))
    logs = np.log(ratios[shown])
    half_width = reach(logs, float(np.log(limit)))
    finite, infinite = np.isfinite(logs), np.isposinf(logs)
    with style():
        figure, axes = canvas(max(1.4, 0.75 + _ROW * len(shown)))
        draw_axis(axes, half_width, both_sides=False)
        rows = np.arange(len(shown))
        axes.hlines(rows[finite], 0, logs[finite], color=ACCENT, linewidth=1.6)
        axes.plot(logs[finite], rows[finite], "o", color=ACCENT, markersize=5.5, markeredgewidth=0, clip_on=False)
        axes.hlines(rows[infinite], 0, half_width, color=WARN, linewidth=1.6)
        axes.plot(np.full(infinite.sum(), half_width), rows[infinite], ">", color=WARN, markersize=7, clip_on=False)
        if np.log(limit) < half_width:
            draw_limit(axes, float(np.log(limit)), f"limit × {limit:.3g}")
        axes.set_yticks(range(len(shown)), [short(outputs[y], 34) for y in shown], color=INK)
        axes.set_ylim(len(shown) - 0.4, -0.6)
        axes.set_xlabel("largest change of the odds between two values after seeing this published value")
        return to_svg(
            figure,
            "ratio",
            f"Chart of the largest ratio between two values of the secret for {len(shown):,} published values, with "
            "the limit of the guarantee.",
        )
