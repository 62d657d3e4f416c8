"""The optimiser: cones, vertices, columns, the linear programmes over them, and the certificate of the optimum."""

from __future__ import annotations

from funnel.solver.levels import LevelCone
from funnel.solver.mixture import Mixture
from funnel.solver.optimum import optimal
from funnel.solver.request import Solution
from funnel.solver.search import optimal_over_cone
from funnel.solver.split import Split

__all__ = ["LevelCone", "Mixture", "Solution", "Split", "optimal", "optimal_over_cone"]
