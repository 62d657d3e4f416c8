"""funnel: microdata released with a proven bound on what each record discloses about a sensitive attribute."""

from __future__ import annotations

from funnel import errors, guarantees, measures, mechanisms
from funnel.alphabet import Alphabet
from funnel.analysis.release import load_release
from funnel.donors.wide_tables import fit_columns
from funnel.errors import DataError as DataError
from funnel.errors import EntropyError as EntropyError
from funnel.errors import FunnelError
from funnel.errors import InfeasibleGuarantee as InfeasibleGuarantee
from funnel.errors import LeakageExceeded as LeakageExceeded
from funnel.errors import LedgerError as LedgerError
from funnel.errors import NotChecked as NotChecked
from funnel.errors import OutputError as OutputError
from funnel.errors import PipelineError as PipelineError
from funnel.errors import ReleaseRefused as ReleaseRefused
from funnel.errors import SolverError as SolverError
from funnel.errors import SpecError as SpecError
from funnel.estimation.estimating import estimate
from funnel.frequencies.library import protect
from funnel.guarantees import ALIP, LDP, LIP, PML, RLIP, SRLIP, Attribute, parse_guarantee
from funnel.guarantees import RALIP as RALIP
from funnel.guarantees import RLDP as RLDP
from funnel.guarantees import RPML as RPML
from funnel.guarantees import RSRLIP as RSRLIP
from funnel.guarantees import AlphaLift as AlphaLift
from funnel.guarantees import Chi2Lift as Chi2Lift
from funnel.guarantees import Guarantee as Guarantee
from funnel.guarantees import L1Lift as L1Lift
from funnel.guarantees import Level as Level
from funnel.guarantees import MutualInformation as MutualInformation
from funnel.guarantees import PerfectPrivacy as PerfectPrivacy
from funnel.guarantees import RAttribute as RAttribute
from funnel.guarantees import Several as Several
from funnel.guarantees import Witness as Witness
from funnel.history.panel import History
from funnel.joint import Joint
from funnel.mechanisms import fit
from funnel.planning import plan
from funnel.protocol import Protocol
from funnel.sampling.keyed import RecordKey
from funnel.sampling.sanitising import sanitise
from funnel.solver.optimum import optimal

__all__ = [
    "ALIP",
    "LDP",
    "LIP",
    "PML",
    "RLIP",
    "SRLIP",
    "Alphabet",
    "Attribute",
    "FunnelError",
    "History",
    "Joint",
    "Protocol",
    "RecordKey",
    "errors",
    "estimate",
    "fit",
    "fit_columns",
    "guarantees",
    "load_release",
    "measures",
    "mechanisms",
    "optimal",
    "parse_guarantee",
    "plan",
    "protect",
    "sanitise",
]
