"""The page of a paper: figures, what the text says beside what was found, errata; as Markdown and as one HTML file."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from funnel_papers.experiment import Experiment, Panel, Paper, Results, Size, distributions_of

# Columns of a table of means; every figure has all of them in its numbers.
_MOST = 8
_VERDICT = {True: "yes", False: "**no**", None: "-"}


@dataclass(frozen=True)
class Figure:
    """A figure that was measured: its experiment, the results, and the name of its file."""

    experiment: Experiment
    results: Results
    file: str


@dataclass(frozen=True)
class Block:
    """A part of a page.

    Attributes
    ----------
    kind : "heading", "text", "table", "image" or "code"
    text : str
        Of headings, texts and code; what an image shows.
    level : int
        Of a heading.
    rows : tuple of tuple of str
        Of a table, its head first.
    file : str
        Of an image.
    """

    kind: str
    text: str = ""
    level: int = 0
    rows: tuple[tuple[str, ...], ...] = ()
    file: str = ""


def page_of(paper: Paper, figures: Sequence[Figure], size: Size) -> list[Block]:
    """The page of what was measured of a paper.

    Parameters
    ----------
    paper : Paper
    figures : sequence of Figure
    size : Size
        That they were measured with.
    """
    command = f"funnel reproduce {paper.name}{size_options(size)}"
    blocks = [
        Block("heading", f"{paper.name.upper()}, reproduced", 1),
        Block("text", f"*{paper.title}.* {paper.about}"),
        Block(
            "text",
            "This page, its figures and numbers are made by the first of these; the second takes the paper's sizes:",
        ),
        Block("code", f"{command}\nfunnel reproduce {paper.name} --full"),
        Block(
            "text",
            "In every figure dotted lines are what no protocol exceeds, by certificate; solid ones are optima "
            "and what is "
            "calibrated here; dashed ones are the paper's own. That nothing lies above what bounds it is "
            "verified distribution "
            "by distribution, not in the mean, before a figure is drawn. Information is in nats.",
        ),
        Block("heading", "What the text says", 2),
        _claims(figures),
    ]
    for figure in figures:
        blocks += _shown(paper, figure, size)
    blocks += [Block("heading", "Errata", 2)]
    rows = [("where", "what is stated", "what holds"), *((one.where, one.says, one.holds) for one in paper.errata)]
    return [*blocks, Block("table", rows=tuple(rows))]


def size_options(size: Size) -> str:
    """Of the command."""
    return (f" --distributions {size.distributions}" if size.distributions is not None else "") + (
        " --full" if size.full else ""
    )


def _claims(figures: Sequence[Figure]) -> Block:
    rows = [("figure", "where", "what", "the text", "here", "agrees")]
    for figure in figures:
        for claim in figure.experiment.claims:
            judged = claim.judge(figure.results)
            said = (judged.printed, judged.ours, _VERDICT[judged.agrees])
            rows.append((figure.experiment.name, claim.where, claim.says, *said))
    return Block("table", rows=tuple(rows))


def _shown(paper: Paper, figure: Figure, size: Size) -> list[Block]:
    experiment, results = figure.experiment, figure.results
    compared = experiment.check(results)
    orders = f" {compared:,} orders hold, distribution by distribution." if compared else ""
    return [
        Block("heading", f"Figure {experiment.name}: {experiment.title}", 2),
        Block("text", experiment.about),
        Block("image", f"Figure {experiment.name} of {paper.name}: {experiment.title}", file=figure.file),
        Block(
            "text",
            f"Budget: {_distributions(experiment, results, size)}; measured in {_seconds(results.seconds)} of "
            "processor time."
            f"{orders}",
        ),
        *_means(experiment, results),
    ]


def _distributions(experiment: Experiment, results: Results, size: Size) -> str:
    if size == Size():
        return experiment.distributions
    most = max(
        (results.distributions(case, label) for case, labels in results.cases.items() for label in labels), default=0
    )
    return f"at most {most:,} distributions here (by default {experiment.distributions})"


def _seconds(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} minutes"


def _means(experiment: Experiment, results: Results) -> list[Block]:
    """Means over distributions: of one case by x, of several cases at the middle x."""
    panels = [panel for panel in experiment.panels if panel.case in results.cases and not panel.against]
    if not panels or len(results.xs) > 40:
        return []
    cases = list(dict.fromkeys(panel.case for panel in panels))
    if len(cases) > 2:
        return [_at_one_x(panels, results)]
    # Panels over distributions of their own have other means of the same curves.
    shared = [panel for panel in panels if panel.shared]
    return [_by_x(panel, results) for panel in shared or panels[:1]]


def _by_x(panel: Panel, results: Results) -> Block:
    places, over = _places(len(results.xs)), distributions_of(panel, results)
    title = f"{panel.title}{over}: " if over else ""
    rows = [(f"{title}{panel.y_title} by {panel.x_title}", *(f"{results.xs[i]:,g}" for i in places))]
    for curve in panel.curves:
        if curve.label in results.cases[panel.case]:
            means = results.of(panel).mean(panel.case, curve.label)
            rows.append((curve.title, *(_number(means[i]) for i in places)))
    return Block("table", rows=tuple(rows))


def _at_one_x(panels: Sequence[Panel], results: Results) -> Block:
    first = panels[0]
    place = results.xs.index(1.0) if 1.0 in results.xs else len(results.xs) // 2
    x = first.x_title.replace("(nats)", f"= {results.xs[place]:g}")
    rows = [(f"{first.y_title} at {x}", *(curve.title for curve in first.curves))]
    for panel in panels:
        known = {curve.title: curve.label for curve in panel.curves}
        cells = []
        for curve in first.curves:
            label = known.get(curve.title, "")
            there = label in results.cases[panel.case]
            cells.append(_number(results.mean(panel.case, label)[place]) if there else "")
        rows.append((panel.title, *cells))
    return Block("table", rows=tuple(rows))


def _places(number: int) -> list[int]:
    return sorted({round(place) for place in np.linspace(0, number - 1, min(number, _MOST))})


def _number(value: float) -> str:
    if math.isnan(value):
        return ""
    return f"{value:.3f}" if value == 0 or abs(value) >= 0.1 else f"{value:.2g}"


def numbers_of(paper: Paper, figures: Sequence[Figure], size: Size, code: str) -> dict[str, Any]:
    """All numbers of a paper as JSON values: mean, deviation and number of distributions by case and label."""
    return {
        "paper": paper.name,
        "distributions": size.distributions,
        "full": size.full,
        "code": code,
        "figures": {figure.experiment.name: _numbers(figure) for figure in figures},
    }


def _numbers(figure: Figure) -> dict[str, Any]:
    experiment, results = figure.experiment, figure.results
    cases = {
        case: {
            label: {
                "mean": _plain(results.mean(case, label)),
                "deviation": _plain(results.deviation(case, label)),
                "distributions": results.distributions(case, label),
            }
            for label in labels
        }
        for case, labels in results.cases.items()
    }
    claims = []
    for claim in experiment.claims:
        judged = claim.judge(results)
        said = {"printed": judged.printed, "ours": judged.ours, "agrees": judged.agrees}
        claims.append({"where": claim.where, "says": claim.says, **said})
    return {
        "title": experiment.title,
        "x": list(results.xs),
        "cases": cases,
        "claims": claims,
        "orders": experiment.check(results),
        "processor_seconds": round(results.seconds, 1),
    }


def _plain(values: Any) -> list[float | None]:
    return [None if math.isnan(value) else round(float(value), 6) for value in values]


def index_of(found: Mapping[str, tuple[str, dict[str, Any]]]) -> list[Block]:
    """The page that leads to the others.

    Parameters
    ----------
    found : mapping
        Of the name of a paper its title and its numbers.
    """
    rows: list[tuple[str, ...]] = [("paper", "figures", "claims that agree", "that do not", "beside others only")]
    for name, (title, numbers) in found.items():
        agreed = [claim["agrees"] for figure in numbers["figures"].values() for claim in figure["claims"]]
        counted = [str(sum(verdict is value for verdict in agreed)) for value in (True, False, None)]
        rows.append((f"[{title}]({name}.md)", ", ".join(numbers["figures"]), *counted))
    return [
        Block("heading", "The papers, reproduced", 1),
        Block(
            "text",
            "The experiments of the papers that define this project, done again: every figure with the certified "
            "optimum "
            "on top, every number that the texts quote beside ours, and the errata. What each statement is, and which "
            "do not hold, is on the pages:",
        ),
        Block("table", rows=tuple(rows)),
        Block(
            "text",
            "What follows for users is on the pages about [side channels](../side-channels.md), "
            "[robustness](../robustness.md) and the [method](../method.md).",
        ),
        Block(
            "text",
            "They are made by these, which the set-up of a checkout installs (or `pip install ./reproduce`); a run "
            "that is interrupted goes on where it was:",
        ),
        Block("code", "\n".join(f"funnel reproduce {name} --docs docs/papers" for name in found)),
        Block(
            "text",
            "Distributions are drawn with fixed seeds. `--distributions 3` makes a quick look of it, `--full` "
            "takes as many distributions "
            "and budgets "
            "as the papers, which for all takes hours. Every point that is measured is kept under a digest of "
            "its distribution, "
            "its settings and the code, so that nothing is measured twice.",
        ),
    ]


def markdown(blocks: Sequence[Block]) -> str:
    """A page as Markdown."""
    parts = []
    for block in blocks:
        if block.kind == "heading":
            parts.append(f"{'#' * block.level} {block.text}")
        elif block.kind == "code":
            parts.append(f"```text\n{block.text}\n```")
        elif block.kind == "image":
            parts.append(f"![{block.text}]({block.file})")
        elif block.kind == "table":
            head, *rows = block.rows
            lines = [_line(head), "|" + " --- |" * len(head), *map(_line, rows)]
            parts.append("\n".join(lines))
        else:
            parts.append(block.text)
    return "\n\n".join(parts) + "\n"


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


_STYLE = """body{font:16px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem;color:#1b1b1b}
table{border-collapse:collapse;font-size:.85rem;display:block;overflow-x:auto}
th,td{border:1px solid #999;padding:.25rem .5rem;text-align:left;vertical-align:top}
svg{max-width:100%;height:auto}pre{background:#eee;padding:.5rem}"""


def html_page(blocks: Sequence[Block], pictures: Mapping[str, str]) -> str:
    """A page as one HTML file, which fetches nothing.

    Parameters
    ----------
    blocks : sequence of Block
    pictures : mapping
        Of the file of every image its SVG.
    """
    title = html.escape(next(block.text for block in blocks if block.kind == "heading"))
    parts = []
    for block in blocks:
        if block.kind == "heading":
            parts.append(f"<h{block.level}>{_inline(block.text)}</h{block.level}>")
        elif block.kind == "code":
            parts.append(f"<pre>{html.escape(block.text)}</pre>")
        elif block.kind == "image":
            drawn = pictures[block.file]
            drawn = _apart(drawn[drawn.index("<svg") :], block.file)
            parts.append(f'<figure role="img" aria-label="{html.escape(block.text)}">{drawn}</figure>')
        elif block.kind == "table":
            head, *rows = block.rows
            lines = ["<tr>" + "".join(f"<th>{_inline(cell)}</th>" for cell in head) + "</tr>"]
            lines += ["<tr>" + "".join(f"<td>{_inline(cell)}</td>" for cell in row) + "</tr>" for row in rows]
            parts.append(f"<table>{''.join(lines)}</table>")
        else:
            parts.append(f"<p>{_inline(block.text)}</p>")
    body = "\n".join(parts)
    metadata = f'<meta charset="utf-8"><title>{title}</title><style>{_STYLE}</style>'
    return f'<!doctype html>\n<html lang="en"><head>{metadata}</head><body>\n{body}\n</body></html>\n'


def _apart(drawn: str, file: str) -> str:
    """A picture whose names are its own: those of two pictures on one page would be taken for one another."""
    own = re.sub(r"\W", "-", file)
    drawn = re.sub(r'\bid="([^"]+)"', rf'id="{own}-\1"', drawn)
    drawn = re.sub(r'href="#([^"]+)"', rf'href="#{own}-\1"', drawn)
    return re.sub(r"url\(#([^)]+)\)", rf"url(#{own}-\1)", drawn)


def _inline(text: str) -> str:
    """The few marks that these pages use: emphasis and code."""
    found = html.escape(text, quote=False)
    found = re.sub(r"\*\*([^*]+)\*\*", r"<strong>\1</strong>", found)
    found = re.sub(r"(?<!\w)\*([^*]+)\*", r"<em>\1</em>", found)
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", found)
