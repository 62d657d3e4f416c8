"""The optimiser: cones, vertices, the linear programme over them, and the certificate of the optimum."""

from __future__ import annotations

from funnel.solver.optimum import Solution, optimal

__all__ = ["Solution", "optimal"]
