"""The plan of a release of groups by each utility: what it is made for, in words and on its page."""

from __future__ import annotations

import io
import itertools
from typing import Any

import numpy as np
import pytest
from rich.console import Console

import funnel
from funnel.console_groups import show_groups
from funnel.progress import quiet
from funnel.release.grouping import plan_groups
from funnel.report.plan.grouped import render_grouped_plan
from funnel.sampling.engine import OneWorker
from funnel.tradeoff.groups import groups_tradeoff
from tests.projects import spec_of

LIP = funnel.LIP(0.5)
SYMBOLS = tuple(itertools.product(("1", "2", "9"), ("u", "v")))
COUNTS = np.random.default_rng(6).integers(50, 500, size=(2, 6))
SAID = {
    "information": ("of H(X) kept", "this one told most", "keeps of the information in them"),
    "variance": ("Variance explained by whole records: ", "this one explained most", "of the variance of the numbers"),
    "estimation": (
        "Worth for estimates of columns and pairs: ",
        "was worth most for estimates",
        "tell estimates as much",
    ),
}


@pytest.mark.parametrize("utility", SAID)
def test_a_plan_says_what_its_figures_are_of(utility: str) -> None:
    numbers: dict[str, Any] = {"numbers": {"x": {"unit": "m"}}} if utility == "variance" else {}
    spec = spec_of("t.csv", ".", publish=[["x"], ["y"]], utility=utility, **numbers)
    joint = funnel.Joint.from_counts(COUNTS, inputs=funnel.Alphabet(("x", "y"), SYMBOLS))
    planned = plan_groups(spec, joint, LIP, quiet, iter([0.0, 1.0]).__next__)
    made = planned.solution
    assert planned.to_dict()["chosen_by"] == made.chosen_by == utility
    out = Console(file=io.StringIO(), width=500)
    show_groups(spec, joint.n, [planned], "a line", out)
    line, reason, chart = SAID[utility]
    told = out.file.getvalue()  # type: ignore[attr-defined]
    assert line in told
    assert reason in told
    if utility == "variance":
        assert f"{line}{made.explained['x']:.1%} of x." in told
    found = groups_tradeoff(spec, joint, LIP, made.groups, OneWorker(), parts=())
    page = " ".join(render_grouped_plan(spec, joint, [planned], [found], "a line", "funnel").split())
    assert chart in page
    assert reason in page
    assert ("every column by itself (GRR), at most" in page) == (utility == "information")
