"""The command `funnel reproduce`: the figures and numbers of a paper made again."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from funnel.cli import STOPPED, json_option
from funnel.console import Console
from funnel.errors import PipelineError
from funnel.pipeline import check_installed
from funnel.pipeline.flows.commands import quiet_environment

SERVER = "PREFECT_API_URL"


@click.command("reproduce")
@click.argument("paper", metavar="PAPER")
@click.argument("figures", nargs=-1, metavar="[FIGURE]...")
@click.option(
    "--distributions",
    type=click.IntRange(min=1),
    help="Random distributions of each figure, instead of its own number.",
)
@click.option("--full", is_flag=True, help="As many distributions and budgets as in the paper: hours.")
@click.option(
    "--adult",
    type=click.Path(path_type=Path),
    default=Path("data/adult.parquet"),
    show_default=True,
    help="The Adult data as parquet.",
)
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    default=Path("reproduced"),
    show_default=True,
    help="Where pages, figures and what was measured go.",
)
@click.option("--docs", type=click.Path(path_type=Path), help="Put page and figures into this folder too.")
@click.option("--workers", type=click.IntRange(min=1), default=1, show_default=True, help="Processes.")
@json_option
def command(
    paper: str,
    figures: tuple[str, ...],
    distributions: int | None,
    full: bool,
    adult: Path,
    output: Path,
    docs: Path | None,
    workers: int,
    as_json: bool,
) -> None:
    """Make the figures and numbers of PAPER again: pf, alip or rldp; all figures, or those that are named.

    Every figure is drawn below the certified optimum, and every number that the text quotes is set beside what is
    found. By default a paper takes minutes of processor time; --distributions 3 is a quick look. What was measured is
    kept: an interrupted run goes on where it was, and nothing is measured twice.

    The steps run in this command; set PREFECT_API_URL to run them as a flow of that Prefect server, which shows them.
    """
    check_installed()
    click.get_current_context().meta[STOPPED] = "what was measured is kept, and the same command goes on from there"
    from funnel_papers.registry import experiments_of
    from funnel_papers.registry import paper as paper_of

    # A wrong name is told before anything is made.
    experiments_of(paper_of(paper), figures)
    arguments = (paper, list(figures), distributions, full, str(adult.absolute()), str(output.absolute()))
    more = (None if docs is None else str(docs.absolute()), workers)
    with Console(as_json) as console:
        told = _run(console, output, arguments, more)
    if as_json:
        console.print_json(told)
        return
    click.echo(
        f"{paper}: figure{'s' * (len(told['figures']) != 1)} {', '.join(told['figures'])}. Of what the text says "
        f"{told['agree']} agree, {told['disagree']} do not, {told['beside']} are set beside only; "
        f"{told['orders']:,} orders hold; measured in {told['processor_seconds']:,.0f} s of processor time."
    )
    click.echo(f"Page: {told['page']}")


def _run(console: Console, output: Path, arguments: Sequence[Any], more: Sequence[Any]) -> dict[str, Any]:
    from funnel.pipeline.tasks.step import listening, plain_errors
    from funnel_papers.running import go

    with listening(console.progress):
        if SERVER not in os.environ:
            found: dict[str, Any] = plain_errors(go)(*arguments, *more)
            return found
        # Before the orchestrator is imported.
        quiet_environment(output / ".prefect")
        from funnel_papers.flow import reproduce

        console.progress("loading the orchestrator", 0, None)
        try:
            return dict(reproduce(*arguments, *more))
        except RuntimeError as error:
            # What the orchestrator raises when its server does not answer.
            raise PipelineError(f"the orchestrator failed: {' '.join(str(error).split())[:300]}") from error
