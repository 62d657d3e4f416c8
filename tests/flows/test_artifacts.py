"""What runs leave in the orchestrator, of all versions together and of plans: public figures, and no others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from funnel import LIP, Joint, fit, parse_guarantee
from funnel.disclosure.rule_forecast import forecast_rules
from funnel.frequencies.noise_forecast import NO_COST, forecast_noise
from funnel.pipeline.flows import artifacts
from funnel.pipeline.flows.artifacts import _summary, describe_plan
from funnel.pipeline.flows.planned import plan_answer
from funnel.pipeline.tasks.publish import Published
from funnel.planning import plan
from funnel.preview.spec_plan import BoundPlan, SpecPlan
from funnel.progress import quiet
from funnel.release.public_report import History
from funnel.settings.protection_settings import FrequencySettings
from funnel.source.counting import count_joint
from tests.projects import spec_of
from tests.public import UNPROTECTED, public_of

JOINT = Joint.from_counts([[400, 100], [100, 300]])


def test_one_line_of_the_summary_is_about_all_versions() -> None:
    protocol = fit("grr", JOINT, LIP(0.5))
    public = public_of(JOINT, protocol, LIP(0.5)).findings.figures
    published = Published("1.4.0", "folder", "report.html", "internal", "key")

    def summary(versions: int | None) -> str:
        history = None if versions is None else History(versions=versions, share_alone=0.98, outside_at_most=0.02)
        return _summary(
            spec_of("people.parquet", "."), published, protocol, public.model_copy(update={"history": history})
        )

    assert "same people" not in summary(None)
    (line,) = set(summary(5).splitlines()) - set(summary(None).splitlines())
    assert line == (
        "- **About the same people**: one bound for all 5 versions together; this one alone would have kept 98.0%; "
        "earlier versions take at most 2.0% of the people out of it, as frequencies changed or as earlier values go "
        "with a later secret"
    )
    assert "one bound for this and all later versions together" in summary(1)


ROWS = {
    ("ill", "a"): 40,
    ("well", "a"): 60,
    ("ill", "b"): 4,
    ("well", "b"): 30,
    ("ill", "c"): 9,
    ("well", "c"): 15,
    ("odd", "a"): 40,
    ("odd", "b"): 9,
    ("odd", "c"): 3,
}


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> dict[str, tuple[Any, str]]:
    """Artifacts that were made, by their key: content and description."""
    made: dict[str, tuple[Any, str]] = {}
    for name in ("markdown", "table"):
        monkeypatch.setattr(
            artifacts,
            f"create_{name}_artifact",
            lambda content, key, description: made.update({key: (content, description)}),
        )
    return made


def planned(
    folder: Path,
    protection: str,
    suggest: bool = False,
    costs: bool = False,
    guarantee: str = "lip:0.8",
    rows: dict[tuple[str, str], int] = ROWS,
) -> SpecPlan:
    """What a plan of these counts finds, taken for the public ones; with the suggestion and the costs, if asked for."""
    cells = [pair for pair, count in rows.items() for _ in range(count)]
    pd.DataFrame(cells, columns=["s", "x"]).to_parquet(folder / "t.parquet", index=False)
    rules = {"minimum_cell": 10, "dominance": 1.0} | ({} if protection == "noise" else {"on_breach": "refuse"})
    known = {"s": sorted({s for s, _ in rows}), "x": sorted({x for _, x in rows})} if protection == "noise" else {}
    spec = spec_of("t.parquet", folder, frequencies={"protection": protection}, disclosure=rules, categories=known)
    joint, bound = count_joint(spec, quiet), parse_guarantee(guarantee)
    compared = plan(joint, bound, ["grr"])
    noise = FrequencySettings(protection="noise", epsilon=1.0, beta=0.01)
    return SpecPlan(
        spec,
        joint,
        UNPROTECTED,
        [
            BoundPlan(
                str(bound),
                compared,
                noise=forecast_noise(joint, bound, noise, epsilons=(10.0,), sizes=(), seconds=0.05) if costs else None,
            )
        ],
        forecast_rules(spec, joint, ((guarantee, compared),), suggest, quiet),
        costs,
    )


def test_a_plan_tells_everybody_what_breaks_the_rules_and_the_steward_alone_which_values(
    tmp_path: Path, told: dict[str, tuple[Any, str]]
) -> None:
    rows = describe_plan(plan_answer(planned(tmp_path, "none", suggest=True, costs=True)))
    assert told["funnel-plan"] == (rows, "Utility of every mechanism, in nats")
    said, _ = told["funnel-plan-disclosure"]
    assert "4 of 9 combinations of secret and published values have fewer than 10 records" in said
    assert "A release would be refused." in said
    assert "told to the steward alone: `funnel plan SPEC --suggest`" in said
    table, about = told["funnel-plan-frequencies"]
    assert [(row["records"], row["epsilon"]) for row in table] == [(210, None), (210, 1.0), (210, 10.0)]
    assert all(0 <= row["share"] <= row["share_at_most"] <= 1 for row in table)
    assert [row["level_made_without_noise"] is None for row in table] == [True, False, False]
    assert table[1]["level_made_without_noise"] > 0.8
    assert about.endswith(". The table is too small for it")
    # No value of the table is named anywhere but as one of those that are published.
    assert not any(word in f"{said} {about}" for word in ("recode", "odd"))


def test_a_plan_of_noisy_counts_names_the_values_to_group(tmp_path: Path, told: dict[str, tuple[Any, str]]) -> None:
    found = planned(tmp_path, "noise", suggest=True)
    describe_plan(plan_answer(found))
    said, _ = told["funnel-plan-disclosure"]
    lines = found.disclosure.suggestion.toml.splitlines()
    assert lines[0] == "[recode.x.groups]"
    assert said.splitlines()[-len(lines) :] == [f"    {line}" for line in lines]
    assert "H(secret) + H(published)" in said


def test_a_plan_of_few_noisy_counts_says_what_would_help(tmp_path: Path, told: dict[str, tuple[Any, str]]) -> None:
    found = planned(tmp_path, "noise", costs=True)
    noise = found.bounds[0].noise
    assert noise.sentence is not None
    describe_plan(plan_answer(found))
    assert "The table is too small for noise of epsilon 1 under lip:0.8" in told["funnel-plan-frequencies"][1]


def test_a_plan_that_is_asked_for_nothing_more_tells_of_rules_only(
    tmp_path: Path, told: dict[str, tuple[Any, str]]
) -> None:
    whole = {pair: 1000 for pair in ROWS if pair[0] != "odd"}
    describe_plan(plan_answer(planned(tmp_path, "none", rows=whole)))
    assert set(told) == {"funnel-plan", "funnel-plan-disclosure"}
    said, _ = told["funnel-plan-disclosure"]
    assert said.endswith("all of this holds.")


def test_a_bound_that_covers_no_noise_has_no_table_of_what_it_costs(
    tmp_path: Path, told: dict[str, tuple[Any, str]]
) -> None:
    describe_plan(plan_answer(planned(tmp_path, "none", costs=True, guarantee="mi:0.1")))
    assert told["funnel-plan-frequencies"][0] == NO_COST
