"""What a bound costs: every mechanism at every budget, and what other columns and values would cost."""

from funnel.tradeoff.alternatives import Alternative, alternatives
from funnel.tradeoff.fitted import FittedRows
from funnel.tradeoff.meaning import Belief, beliefs
from funnel.tradeoff.sweep import Point, Sweep, sweep
from funnel.tradeoff.unchanged_by_budget import UnchangedCurve, unchanged_curve

__all__ = [
    "Alternative",
    "Belief",
    "FittedRows",
    "Point",
    "Sweep",
    "UnchangedCurve",
    "alternatives",
    "beliefs",
    "sweep",
    "unchanged_curve",
]
