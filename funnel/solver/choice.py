"""The choice between listing all vertices and generating columns, by predicted cost."""

from __future__ import annotations

from math import comb

from funnel.guarantees.base import ConeGuarantee, PosteriorGuarantee
from funnel.joint import Joint
from funnel.solver.budget import Budget
from funnel.solver.region import Region

METHODS = ("auto", "vertices", "columns")
# Double description takes about as long for so many vertices as column generation takes to get going.
_FEW_VERTICES = 4000
# Two secrets: vertices are listed as an array of (vertices, a) numbers; beyond this columns need less memory.
_LARGEST_LIST = 2**25
# Units of work of listing them and of the programme over them, for the number of inputs cubed.
_BY_LISTED = 200.0


def chosen_method(method: str, joint: Joint, guarantee: ConeGuarantee, region: Region, budget: Budget) -> str:
    """``"vertices"`` or ``"columns"``; what the caller asked for unless that is ``"auto"``.

    Parameters
    ----------
    method : str
    joint : Joint
        After presolve.
    guarantee : ConeGuarantee
    region : Region
    budget : Budget
        A list that takes more is not begun: columns can be stopped.
    """
    if method != "auto":
        return method
    a = region.inputs
    if len(region.rows) == 0 or a == 1:
        return "vertices"
    if is_listed(joint, guarantee):
        affordable = a**3 / 2 <= _LARGEST_LIST and a**3 * _BY_LISTED <= budget.remaining
        return "vertices" if affordable else "columns"
    return "vertices" if has_few_vertices(region) else "columns"


def is_listed(joint: Joint, guarantee: ConeGuarantee) -> bool:
    """Whether vertices have at most two non-zeros and can be listed directly."""
    return len(joint.secret) == 2 and isinstance(guarantee, PosteriorGuarantee)


def has_few_vertices(region: Region) -> bool:
    """Whether double description takes no longer than column generation needs to get going."""
    return vertices_at_most(region.inputs, len(region.rows)) <= _FEW_VERTICES


def vertices_at_most(a: int, rows: int) -> int:
    """A crude bound on the number of vertices: a support of k inputs, and k - 1 rows at one of their two ends."""
    return sum(comb(a, k) * comb(rows, k - 1) * 2 ** (k - 1) for k in range(1, min(a, rows + 1) + 1))
