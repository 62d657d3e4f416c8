"""The protocol as a heat map: outputs down, inputs across, the darker the likelier."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from markupsafe import Markup

from funnel.joint import FloatArray
from funnel.protocol import Protocol
from funnel.report.figures.canvas import INK, ON_ACCENT, RULE, SMALL, canvas, short, style, to_svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# More rows or columns than this leave no room for their names.
MAX_LABELLED = 42
_MAX_NUMBERED = 18
# As many cells in a row as can be told apart in print.
_MAX_CELLS = 400
# A blue that carries white text, and that pales into a light page as well as into a dark one.
_HUE = (0x2A / 255, 0x63 / 255, 0x9E / 255)
_FAINTEST = 0.07


def is_labelled(protocol: Protocol) -> bool:
    """Whether the heat map is small enough to name its rows and columns."""
    return max(protocol.size) <= MAX_LABELLED


def heat_map(protocol: Protocol) -> Markup:
    """The protocol Q(y|x) as an SVG element, shape (b, a); percentages in the cells where they fit."""
    b, a = protocol.size
    matrix = protocol.matrix
    labelled = is_labelled(protocol)
    height = min(8.6, max(1.6, 1.5 + 0.3 * b if b <= _MAX_NUMBERED else 1.5 + 0.165 * b)) if labelled else 5.6
    with style():
        figure, axes = canvas(height)
        axes.imshow(_tinted(pooled(matrix)), aspect="auto", interpolation="none")
        axes.set_xlabel(f"true value: {short(' and '.join(protocol.inputs.columns), 80)}")
        axes.set_ylabel("published value")
        axes.tick_params(length=0)
        for spine in axes.spines.values():
            spine.set_visible(True)
        if labelled:
            _name_cells(axes, protocol)
        else:
            axes.set_xticks([])
            axes.set_yticks([])
            axes.set_xlabel(f"{a:,} true values: {short(' and '.join(protocol.inputs.columns), 80)}")
            axes.set_ylabel(f"{b:,} published values")
        if labelled and max(a, b) <= _MAX_NUMBERED:
            _number_cells(axes, matrix)
        else:
            _scale(figure, axes)
        description = (
            f"Heat map of the protocol: for each of {a:,} true values (columns) the probability of each of {b:,} "
            "published values (rows). The table below gives the numbers."
        )
        return to_svg(figure, "heat", description)


def pooled(matrix: FloatArray) -> FloatArray:
    """The matrix, or the largest probability of each block of cells that would share a dot of the picture."""
    for axis in (0, 1):
        size = matrix.shape[axis]
        if size > _MAX_CELLS:
            starts = np.unique(np.linspace(0, size, _MAX_CELLS, endpoint=False).astype(int))
            matrix = np.maximum.reduceat(matrix, starts, axis=axis)
    return matrix


def _tinted(matrix: FloatArray) -> FloatArray:
    """Colours, shape (b, a, 4): impossible is empty, and the least possible can still be seen."""
    colours = np.empty((*matrix.shape, 4))
    colours[..., :3] = _HUE
    colours[..., 3] = np.where(matrix > 0, _FAINTEST + (1 - _FAINTEST) * matrix, 0.0)
    return colours


def _name_cells(axes: Axes, protocol: Protocol) -> None:
    b, a = protocol.size
    across = [short(label, 22) for label in protocol.inputs.labels]
    down = [short(label, 30) for label in protocol.outputs.labels]
    size = SMALL if max(a, b) <= 30 else 6.0
    wide = max(len(label) for label in across) * a > 75
    rotation = 0 if not wide else (45 if a <= _MAX_NUMBERED else 90)
    axes.set_xticks(range(a), across, rotation=rotation, ha="right" if rotation == 45 else "center", fontsize=size)
    if rotation == 45:
        for text in axes.get_xticklabels():
            text.set_rotation_mode("anchor")
    axes.set_yticks(range(b), down, fontsize=size)
    # Thin lines between cells lead the eye from a name to its row.
    axes.vlines(np.arange(a - 1) + 0.5, -0.5, b - 0.5, color=RULE, linewidth=0.4, alpha=0.55)
    axes.hlines(np.arange(b - 1) + 0.5, -0.5, a - 0.5, color=RULE, linewidth=0.4, alpha=0.55)


def _number_cells(axes: Axes, matrix: FloatArray) -> None:
    for (y, x), share in np.ndenumerate(matrix):
        if share > 0:
            colour = ON_ACCENT if share >= 0.5 else INK
            axes.text(x, y, _whole_percent(float(share)), ha="center", va="center", fontsize=SMALL, color=colour)


def _whole_percent(share: float) -> str:
    if share == 1:
        return "100"
    if share < 0.005:
        return "<1"
    return ">99" if share > 0.995 else f"{100 * share:.0f}"


def _scale(figure: Figure, axes: Axes) -> None:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import ListedColormap, Normalize

    shades = ListedColormap([tuple(colour) for colour in _tinted(np.linspace(0, 1, 101)[np.newaxis])[0]])
    bar = figure.colorbar(ScalarMappable(Normalize(0, 1), shades), ax=axes, fraction=0.03, pad=0.02)
    bar.set_ticks([0, 0.5, 1], labels=["0 %", "50 %", "100 %"])
    bar.ax.tick_params(length=0)
