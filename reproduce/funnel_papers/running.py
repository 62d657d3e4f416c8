"""All that is done to make figures of a paper again, step by step, with an orchestrator or without one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from funnel_papers.experiment import Size
from funnel_papers.registry import experiments_of
from funnel_papers.registry import paper as paper_of
from funnel_papers.steps import Reproduction, document, draw, measure, write


def go(
    paper: str,
    figures: Sequence[str] = (),
    distributions: int | None = None,
    full: bool = False,
    adult: str = "data/adult.parquet",
    output: str = "reproduced",
    docs: str | None = None,
    workers: int = 1,
) -> dict[str, Any]:
    """Measure, draw and write some figures of a paper, or all.

    Parameters
    ----------
    paper : str
        "pf", "alip" or "rldp".
    figures : sequence of str
        All by default.
    distributions : int, optional
        Random distributions of each figure, instead of its own number.
    full : bool
        As many distributions and budgets as in the paper.
    adult : str
        Adult as parquet.
    output : str
        The folder of all papers; what was measured is kept in it.
    docs : str, optional
        A folder of documentation that page and figures are put into as well.
    workers : int
        Processes.

    Returns
    -------
    dict
        ``paper``, ``figures``, ``page``, ``agree``, ``disagree``, ``beside`` (claims of the text), ``orders`` that were
        verified, and ``processor_seconds`` that the points took when they were measured; with ``docs`` the files there.

    Raises
    ------
    FunnelError
        With one clear sentence; what was measured by then is kept.
    """

    one = paper_of(paper)
    chosen = [experiment.name for experiment in experiments_of(one, figures)]
    asked = Reproduction(one.name, Size(distributions, full), Path(adult), Path(output), workers)
    for figure in chosen:
        draw(asked, figure, measure(asked, figure))
    numbers = write(asked)
    said = [numbers["figures"][figure] for figure in chosen]
    agreed = [claim["agrees"] for figure in said for claim in figure["claims"]]
    told: dict[str, Any] = {
        "paper": one.name,
        "figures": chosen,
        "page": str(asked.folder / f"{one.name}.md"),
        **{name: sum(verdict is value for verdict in agreed) for name, value in _VERDICTS.items()},
        "orders": sum(figure["orders"] for figure in said),
        "processor_seconds": round(sum(figure["processor_seconds"] for figure in said), 1),
    }
    return told if docs is None else {**told, "docs": document(asked, docs)}


_VERDICTS = {"agree": True, "disagree": False, "beside": None}
