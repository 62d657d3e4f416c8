"""The gate counts the breaches of the rules again, and refuses what the step before let through."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from funnel.disclosure import Disclosure, Rules
from funnel.errors import ReleaseRefused
from funnel.joint import Joint
from funnel.pipeline.expectations.frequency_claims import expected_rules, rule_claims
from funnel.pipeline.expectations.spec_text import SpecText
from funnel.pipeline.flows import pipeline
from funnel.recount.promise import declared_promise
from funnel.spec import ReleaseSpec
from tests.projects import SPEC, make_project

BOUND = 'guarantee = "lip:1.0"'


def said(**sections: Any) -> SpecText:
    exact = {"guarantee": "lip:1.0", "frequencies": {"protection": "none"}, "secret": ["s"], "publish": ["x"]}
    return SpecText(declared_promise(BOUND), {**exact, **sections})


@given(
    st.lists(st.lists(st.integers(0, 25), min_size=3, max_size=3), min_size=2, max_size=4),
    st.integers(1, 12),
    st.sampled_from([0.5, 0.75, 0.95, 1.0]),
    st.sampled_from([0.0, 0.05, 1.0]),
    st.booleans(),
)
def test_breaches_are_those_of_the_step(
    counts: list[list[int]], least: int, share: float, alone: float, by_class: bool
) -> None:
    if not any(map(any, counts)):
        return
    found = Disclosure(Joint.from_counts(counts), Rules(least, share, alone, by_class))
    asked = {"minimum_cell": least, "dominance": share, "unique_share": alone}
    cells = {((str(s),), (str(x),)): n for s, row in enumerate(counts) for x, n in enumerate(row) if n}
    text = replace(said(disclosure=asked), class_column="record_class" if by_class else None)
    failed = [claim.name for claim in rule_claims(cells, text) if claim.failure is not None]
    names = {"minimum_cell": "minimum cell", "dominance": "dominance", "unique_share": "uniqueness"}
    assert failed == [names[name] for name in found.broken]


def test_what_is_only_reported_is_not_refused_but_for_a_threshold() -> None:
    cells = {(("a",), ("x",)): 3, (("b",), ("x",)): 40}
    told = {"on_breach": "report"}
    assert all(claim.failure is None for claim in rule_claims(cells, said(disclosure=told)))
    noisy = said(frequencies={"protection": "noise"})
    assert all(claim.failure is None for claim in rule_claims(cells, noisy))
    assert expected_rules(noisy)["onBreach"] == "report"
    kept = said(disclosure=told, frequencies={"protection": "threshold", "threshold": 4})
    assert [claim.name for claim in rule_claims(cells, kept) if claim.failure is not None] == ["minimum cell"]


SMALL = SPEC.replace('on_breach = "report"', "minimum_cell = 10")


@pytest.mark.parametrize(
    ("spec", "threshold"),
    [(SMALL, 10), (SMALL.replace('protection = "none"', 'protection = "threshold"'), 1)],
    ids=["the step is left out", "the threshold is another"],
)
def test_the_gate_refuses_by_itself(spec: str, threshold: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("funnel.pipeline.flows.pipeline.disclose", lambda *_: None)
    monkeypatch.setattr("funnel.disclosure.threshold.threshold_rules", lambda _: Rules(threshold, 1.0, 1.0))
    with pytest.raises(ReleaseRefused, match=r"minimum cell is below 10 records in [0-9,]+ cells"):
        pipeline.run_release(ReleaseSpec.load(make_project(tmp_path, spec)), again=False, rotate=False)
    assert not (tmp_path / "releases" / "people" / "latest").exists()
