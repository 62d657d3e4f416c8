"""funnel: microdata released with a proven bound on what each record reveals about a secret."""

from __future__ import annotations

from funnel import measures, mechanisms
from funnel.alphabet import Alphabet
from funnel.donors import fit_columns
from funnel.errors import (
    DataError,
    EntropyError,
    FunnelError,
    InfeasibleGuarantee,
    LeakageExceeded,
    LedgerError,
    OutputError,
    PipelineError,
    ReleaseRefused,
    SolverError,
    SpecError,
)
from funnel.estimation import (
    Estimate,
    NumberEstimate,
    OddsRatios,
    Trend,
    estimate,
    estimate_numbers,
    estimate_odds,
    estimate_trend,
)
from funnel.estimation.weighted import WeightedEstimate, estimate_weighted
from funnel.frequencies.library import protect
from funnel.guarantees import (
    ALIP,
    LDP,
    LIP,
    PML,
    RALIP,
    RLDP,
    RLIP,
    RPML,
    RSRLIP,
    SRLIP,
    AlphaLift,
    Attribute,
    Chi2Lift,
    Guarantee,
    L1Lift,
    Level,
    MutualInformation,
    PerfectPrivacy,
    RAttribute,
    Several,
    Witness,
    parse_guarantee,
)
from funnel.history import History
from funnel.joint import Joint
from funnel.measures.utilities import Estimation, Information, Utility, Variance
from funnel.mechanisms import fit
from funnel.planning import plan
from funnel.protocol import Protocol
from funnel.release.reading import open_release
from funnel.release.within import draw_within
from funnel.sampling import RecordKey, sanitise
from funnel.solver import Solution, optimal

__all__ = [
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
    "Alphabet",
    "Attribute",
    "Chi2Lift",
    "DataError",
    "EntropyError",
    "Estimate",
    "Estimation",
    "FunnelError",
    "Guarantee",
    "History",
    "InfeasibleGuarantee",
    "Information",
    "Joint",
    "L1Lift",
    "LeakageExceeded",
    "LedgerError",
    "Level",
    "MutualInformation",
    "NumberEstimate",
    "OddsRatios",
    "OutputError",
    "PerfectPrivacy",
    "PipelineError",
    "Protocol",
    "RAttribute",
    "RecordKey",
    "ReleaseRefused",
    "Several",
    "Solution",
    "SolverError",
    "SpecError",
    "Trend",
    "Utility",
    "Variance",
    "WeightedEstimate",
    "Witness",
    "draw_within",
    "estimate",
    "estimate_numbers",
    "estimate_odds",
    "estimate_trend",
    "estimate_weighted",
    "fit",
    "fit_columns",
    "measures",
    "mechanisms",
    "open_release",
    "optimal",
    "parse_guarantee",
    "plan",
    "protect",
    "sanitise",
]
