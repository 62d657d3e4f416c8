"""What is told of the comparison of mechanisms, of what noise costs, and of what is kept given earlier versions."""

from __future__ import annotations

from typing import Any

from funnel.guarantees import Guarantee
from funnel.release.public.rounding import (
    SECONDS_DIGITS,
    nats_step,
    public_level,
    public_text,
    rounded,
    share_at_most,
    to_multiple,
)


def compared(row: dict[str, Any], step: float, guarantee: Guarantee) -> dict[str, Any]:
    """A row of the comparison of mechanisms, rounded.

    Parameters
    ----------
    row : dict
        As `funnel.planning.PlanRow.to_dict` has it.
    step : float
        Of public shares (`funnel.release.public.rounding.share_step`); entropies are told to multiples of it, in nats.
    guarantee : Guarantee
        The declared one, whose grid levels are told on.
    """
    told = dict(row)
    for name in ("utility", "share", "bound", "unchanged"):
        if told.get(name) is not None:
            told[name] = to_multiple(told[name], nats_step(told[name], step))
    if (certificate := told.get("certificate")) is not None:
        gap = max(step, to_multiple(certificate["gap"] + step / 2, step))
        told["certificate"] = {**certificate, "gap": min(1.0, gap)}
    if told.get("level") is not None:
        told["level"] = public_level(told["level"], guarantee, told.get("reason") is None)
    if told.get("seconds") is not None:
        told["seconds"] = rounded(told["seconds"], SECONDS_DIGITS)
    if told.get("reason") is not None:
        told["reason"] = public_text(told["reason"], step, guarantee)
    return told


def costed(outlook: dict[str, Any], step: float, guarantee: Guarantee) -> list[dict[str, Any]]:
    """What noise on the frequencies costs, by number of records and epsilon, rounded.

    Parameters
    ----------
    outlook : dict
        As `funnel.frequencies.noise_forecast.NoiseForecast.to_dict` has it.
    step : float
        Of public shares.
    guarantee : Guarantee
    """
    return [
        {
            "records": one["n"],
            "epsilon": one["epsilon"],
            "share": _multiple(one["kept"], step),
            "share_at_most": _multiple(one["most"], step),
            "level_made_without_noise": None
            if one["ignored"] is None
            else public_level(one["ignored"], guarantee, False),
            "reason": None if one["reason"] is None else public_text(one["reason"], step, guarantee),
        }
        for one in outlook["costs"]
    ]


def _multiple(share: float | None, step: float) -> float | None:
    return None if share is None else to_multiple(share, step)


def weighed(outlook: dict[str, Any], step: float) -> list[dict[str, Any]]:
    """What every reserve keeps: shares alone, as of `public_history`; how many histories there are stays internal.

    Parameters
    ----------
    outlook : dict
        As `funnel.history.version_forecast.VersionForecast.to_dict` has it.
    step : float
        Of public shares.
    """
    n = outlook["people"]
    return [
        {
            "reserve": one["reserve"],
            "versions": outlook["versions"],
            "share": to_multiple(one["share"], step),
            "share_alone": to_multiple(outlook["share_alone"], step),
            "outside_at_most": share_at_most(one["outside"] / n, step),
        }
        for one in outlook["reserves"]
    ]
