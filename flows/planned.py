"""What a plan found, and what of it a run leaves with the orchestrator: as precise as public files are, and no more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from funnel.disclosure.rule_forecast import RuleForecast
from funnel.disclosure.rule_texts import public_sentence
from funnel.frequencies.noise_forecast import NO_COST, NoiseForecast
from funnel.guarantees import Guarantee, parse_guarantee
from funnel.pipeline.flows.telling import plain
from funnel.preview.spec_plan import SpecPlan
from funnel.release.public.comparison import compared, costed, weighed
from funnel.release.public.rounding import public_text, share_step


@dataclass(frozen=True)
class PlanAnswer:
    """The artifacts of a plan, rounded.

    Attributes
    ----------
    mechanisms : list of rows
    history : list of rows or None
        None where nothing was published before.
    disclosure : str
        As Markdown.
    costs : list of rows or None
    costs_said : str
        What these are; why there are none, where they were asked for; else empty.
    utility : str
        What mechanisms are compared by.
    """

    mechanisms: list[dict[str, Any]]
    history: list[dict[str, Any]] | None
    disclosure: str
    costs: list[dict[str, Any]] | None
    costs_said: str
    utility: str = "information"


def plan_answer(planned: SpecPlan) -> PlanAnswer:
    """What of a plan others than the steward may read."""
    (bound,) = planned.bounds
    step, guarantee, noise = share_step(planned.joint.n), parse_guarantee(bound.guarantee), bound.noise
    return PlanAnswer(
        [compared(row.to_dict(), step, guarantee) for row in bound.rows],
        None if bound.forecast is None else weighed(bound.forecast.to_dict(), step),
        "" if planned.disclosure is None else _disclosed(planned, planned.disclosure, step, guarantee),
        None if noise is None else costed(noise.to_dict(), step, guarantee),
        _costs(noise, step, guarantee, _is_noisy(planned)) if noise is not None else NO_COST if planned.costing else "",
        planned.spec.utility,
    )


def _is_noisy(planned: SpecPlan) -> bool:
    """Whether all of it was made from noisy counts, so that values may be named."""
    return planned.spec.frequencies.kind.is_noisy


def _disclosed(planned: SpecPlan, found: RuleForecast, step: float, guarantee: Guarantee) -> str:
    """What of the rules does not hold, what would come of it, and what mends it; values only where noise hides who."""
    lines = [
        f"# {plain(planned.spec.title)}",
        "",
        plain(public_sentence(found.found, planned.spec.frequencies.protection)),
    ]
    if not found.found.passes:
        lines += ["", "A release would be refused." if found.refuses else "A release would tell of it."]
    if found.suggestion is None:
        return "\n".join(lines)
    if not _is_noisy(planned):
        lines += ["", "Which values to group is told to the steward alone: `funnel plan SPEC --suggest`."]
        return "\n".join(lines)
    for said in found.suggested():
        lines += ["", plain(public_text(said, step, guarantee))]
    # Indented, so that no value can end the block.
    return "\n".join([*lines, "", *(f"    {line}" for line in found.suggestion.toml.splitlines())])


def _costs(noise: NoiseForecast, step: float, guarantee: Guarantee, is_noisy: bool) -> str:
    """What the table of costs is of, and what would help where there are too few records."""
    said = (
        f"Share of H(X) kept under {guarantee} by epsilon of the frequencies (the spec has {noise.epsilon:g}) and "
        "number of records, these having the same frequencies; and the level, for the worst counts that the noise "
        "leaves open, of the protocol that is made without noise"
    )
    if noise.sentence is None:
        return said
    # What would help names values of the secret.
    helps = public_text(noise.sentence, step, guarantee) if is_noisy else "the table is too small for it"
    return f"{said}. {helps[:1].upper()}{helps[1:]}"
