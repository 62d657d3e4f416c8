"""funnel: microdata released with a proven bound on what each record reveals about a secret."""

from __future__ import annotations

import importlib
from typing import Any

# Every command and every worker starts with `import funnel`, and few need all of it: a name is loaded when it is first
# used (PEP 562). `__init__.pyi` says the same to type checkers.
_ROOMS = {
    "alphabet": ("Alphabet",),
    "donors": ("fit_columns",),
    "errors": (
        "DataError",
        "EntropyError",
        "FunnelError",
        "InfeasibleGuarantee",
        "LeakageExceeded",
        "LedgerError",
        "OutputError",
        "PipelineError",
        "ReleaseRefused",
        "SolverError",
        "SpecError",
    ),
    "frequencies.library": ("protect",),
    "guarantees": (
        "ALIP",
        "LDP",
        "LIP",
        "PML",
        "RALIP",
        "RLDP",
        "RLIP",
        "RPML",
        "RSRLIP",
        "SRLIP",
        "AlphaLift",
        "Attribute",
        "Chi2Lift",
        "Guarantee",
        "L1Lift",
        "Level",
        "MutualInformation",
        "PerfectPrivacy",
        "RAttribute",
        "Several",
        "Witness",
        "parse_guarantee",
    ),
    "estimation": (
        "Estimate",
        "NumberEstimate",
        "OddsRatios",
        "Trend",
        "estimate",
        "estimate_numbers",
        "estimate_odds",
        "estimate_trend",
    ),
    "estimation.weighted": ("WeightedEstimate", "estimate_weighted"),
    "history": ("History",),
    "joint": ("Joint",),
    "measures.utilities": ("Estimation", "Information", "Utility", "Variance"),
    "mechanisms": ("fit",),
    "planning": ("plan",),
    "protocol": ("Protocol",),
    "release.reading": ("open_release",),
    "sampling": ("RecordKey", "sanitise"),
    "release.within": ("draw_within",),
    "solver": ("Solution", "optimal"),
}
_HOMES = {name: room for room, names in _ROOMS.items() for name in names}

__all__ = [*_HOMES, "measures", "mechanisms"]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
        globals()[name] = value
        return value
    if not name.startswith("_"):
        try:
            return importlib.import_module(f"{__name__}.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"{__name__}.{name}":
                raise
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
