"""The papers by name, and their figures by name."""

from __future__ import annotations

from collections.abc import Sequence

from funnel.errors import SpecError
from funnel_papers.alip import ALIP_PAPER
from funnel_papers.experiment import Experiment, Paper
from funnel_papers.privacy_funnel import PF_PAPER
from funnel_papers.rldp import RLDP_PAPER

PAPERS = {one.name: one for one in (PF_PAPER, ALIP_PAPER, RLDP_PAPER)}


def paper(name: str) -> Paper:
    """The paper of a name.

    Raises
    ------
    SpecError
        If there is none, with those there are.
    """
    if name not in PAPERS:
        raise SpecError(f"there is no paper {name!r}; there are {', '.join(PAPERS)}")
    return PAPERS[name]


def experiments_of(one: Paper, names: Sequence[str] = ()) -> tuple[Experiment, ...]:
    """Some figures of a paper, in its order; all by default.

    Raises
    ------
    SpecError
        If one is unknown, with those there are.
    """
    known = {experiment.name: experiment for experiment in one.experiments}
    # "figure-3", "fig3" and "3" are the same.
    wanted = {name.lower().removeprefix("figure").removeprefix("fig").lstrip("-. ") or name for name in names}
    for name in sorted(wanted - known.keys()):
        raise SpecError(f"{one.name} has no figure {name!r} to reproduce; it has {', '.join(known)}")
    return tuple(experiment for name, experiment in known.items() if not wanted or name in wanted)
