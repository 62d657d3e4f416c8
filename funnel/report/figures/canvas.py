"""The canvas of every figure: matplotlib without global state, and its SVG made fit to stand inside a page."""

from __future__ import annotations

import io
import re
import unicodedata
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.typing import RcKeyType

# Width of a column of text on A4, in inches, so that print shows figures in their true size.
WIDTH = 7.0
SMALL, NORMAL = 7.5, 8.5

# Colours nothing else uses: each becomes a variable of the page's style, so that figures follow light and dark.
INK, SOFT, RULE, ACCENT, PALE, WARN, ON_ACCENT = (
    "#010203",
    "#010204",
    "#010205",
    "#010206",
    "#010207",
    "#010208",
    "#010209",
)
_VARIABLES = {
    INK: "var(--ink)",
    SOFT: "var(--soft)",
    RULE: "var(--rule)",
    ACCENT: "var(--accent)",
    PALE: "var(--pale)",
    WARN: "var(--warn)",
    ON_ACCENT: "var(--on-accent)",
}
ELLIPSIS = "…"
# Attributes that say where something is, and the numbers in them.
_PLACES = re.compile(r"(\s(?:d|x|y|width|height|transform)=\")([^\"]*)")
_DECIMAL = re.compile(r"-?\d+\.\d+")
# Invisible, but part of how emoji and some scripts are written.
_JOINERS = "\u200c\u200d"


def short(label: str, length: int = 26) -> str:
    """A label that fits a figure: one line, without control characters, cut in its middle where it is too long."""
    visible = "".join(
        " " if unicodedata.category(character) in ("Cc", "Cf", "Zl", "Zp") else character for character in label
    )
    line = " ".join(visible.split()) or "(empty)"
    if len(line) <= length:
        return line
    # Long labels of one column often share their beginning: the end tells them apart.
    tail = length // 3
    return line[: length - tail - 1].rstrip() + ELLIPSIS + line[-tail:].lstrip()


@contextmanager
def style() -> Iterator[None]:
    """The settings under which figures are made and written: deterministic, with labels as plain selectable text."""
    import matplotlib

    settings: dict[RcKeyType, object] = {
        "svg.hashsalt": "funnel",
        "svg.fonttype": "none",
        # A dollar sign in a label is a dollar sign.
        "text.parse_math": False,
        "text.usetex": False,
        "text.color": INK,
        "axes.labelcolor": SOFT,
        "axes.edgecolor": RULE,
        "axes.linewidth": 0.8,
        "axes.facecolor": "none",
        "axes.titlesize": NORMAL,
        "axes.labelsize": NORMAL,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.unicode_minus": True,
        "xtick.color": RULE,
        "ytick.color": RULE,
        "xtick.labelcolor": INK,
        "ytick.labelcolor": INK,
        "xtick.labelsize": SMALL,
        "ytick.labelsize": SMALL,
        "font.family": ["DejaVu Sans"],
        "font.size": NORMAL,
        "hatch.color": ACCENT,
        "hatch.linewidth": 0.6,
    }
    with matplotlib.rc_context(), warnings.catch_warnings():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(settings)
        # Scripts that matplotlib's own font lacks are set by the reader's browser.
        warnings.filterwarnings("ignore", message=r"Glyph \d+ .* missing from font")
        yield


def canvas(height: float, width: float = WIDTH) -> tuple[Figure, Axes]:
    """A transparent figure of this many inches with one pair of axes; only inside `style`."""
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained", facecolor="none")
    FigureCanvasSVG(figure)
    return figure, figure.add_subplot()


def to_svg(figure: Figure, name: str, description: str) -> Markup:
    """The figure as an SVG element: no identifiers or styles that could clash, a text for those who do not see it.

    Parameters
    ----------
    figure : Figure
        Made inside the same `style`.
    name : str
        Prefix of all identifiers, unique on the page.
    description : str
        What the figure shows.
    """
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<!--.*?-->\s*", "", text, flags=re.DOTALL)
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
    text = re.sub(r"<style type=\"text/css\">.*?</style>", "", text, flags=re.DOTALL)
    text = re.sub(r"(\sid=\"|url\(#|xlink:href=\"#)", rf"\g<1>{name}-", text)
    for colour, variable in _VARIABLES.items():
        text = text.replace(colour, variable)
    head, _, body = text.partition(">")
    head = re.sub(r"\s(width|height)=\"[^\"]*\"", "", head)
    body = _whole(body)
    label = f'role="img" aria-label="{escape(description)}"'
    # Every text in it was escaped by matplotlib; nothing else comes from a label.
    return Markup(f"{head} {label}>{body.rstrip()}")


def _whole(body: str) -> str:
    """Every place in whole pixels, shapes that are used many times in tenths: no place has digits that none can see."""
    definitions = re.split(r"(<defs>.*?</defs>)", body, flags=re.DOTALL)
    return "".join(_at(part, 1 if part.startswith("<defs>") else 0) for part in definitions)


def _at(part: str, digits: int) -> str:
    def told(found: re.Match[str]) -> str:
        return found[1] + _DECIMAL.sub(lambda number: f"{round(float(number[0]), digits) + 0.0:.15g}", found[2])

    return _PLACES.sub(told, part)
