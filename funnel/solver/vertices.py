"""All vertices of the polytope of posteriors a guarantee allows: listed directly for two secrets, else by cddlib."""

from __future__ import annotations

import math
import subprocess
import sys
from io import BytesIO
from typing import NamedTuple

import numpy as np

from funnel.errors import SolverError
from funnel.guarantees.base import ConeGuarantee, PosteriorGuarantee
from funnel.joint import FloatArray, Joint
from funnel.solver import double_description
from funnel.solver.budget import CALL, UNITS_A_SECOND, Budget
from funnel.solver.completeness import InconsistentVerticesError, require_complete
from funnel.solver.double_description import polytope_vertices
from funnel.solver.exact_vertices import exact_vertices
from funnel.solver.interval import Interval

# Up to here cddlib needs no process of its own, and exact integers are fast enough where it fails.
_SMALL = 8
# Coordinates this small are left over from cancellation.
_ZERO = 1e-12
# Conditions this much smaller than their terms are nothing but rounding.
_VACUOUS = 1e-14
# Digits in which scaled conditions that are one differ at most.
_SAME = 12
# Units of work of listing few vertices.
_FEW = 400 * CALL


def enumerate_vertices(
    joint: Joint,
    guarantee: ConeGuarantee,
    time_limit: float | Budget | None = None,
    rows: FloatArray | None = None,
    few: bool = False,
) -> FloatArray:
    """Vertices of ``Δ = {v >= 0, Σv = 1, v = P(X|y) meets the guarantee}``, shape (k, a) (PF theorem 3, (11)-(13)).

    Two secrets: at most a²/2 vertices, listed directly in O(a²) because a vertex has at most two non-zeros. More
    secrets: double description by cddlib, in a process of its own for more than a few inputs, so that a limit of its
    processor time or Ctrl-C ends it; the number of vertices grows exponentially with a and c and as ε falls. The list
    is checked to be complete; where floating point loses vertices and inputs are few, they are enumerated in exact
    integers.

    Parameters
    ----------
    joint : Joint
        All inputs and secrets must occur.
    guarantee : ConeGuarantee
    time_limit : float or Budget, optional
        Seconds of processor time.
    rows : ndarray, shape (m, a), optional
        The cone in posterior coordinates, where it is not the guarantee's cone of this joint law.
    few : bool
        Whether they are known to be so few that no limit is needed.

    Raises
    ------
    SolverError
        If cddlib fails, returns vertices that are outside the polytope or not all there are, or does not finish in
        time.
    """
    budget = Budget.of(time_limit)
    c, a = joint.counts.shape
    if c == 1 or a == 1:
        return np.eye(a)
    if c == 2 and isinstance(guarantee, PosteriorGuarantee):
        budget.spend(50 * CALL + 8.0 * a**3)
        # Every condition is one on ρ = P(s = 1|y), so vertices are points or pairs at its ends.
        interval = Interval.of_cone(guarantee.posterior_cone(joint.p_secret)).around(float(joint.p_secret[1]))
        return interval.vertices(joint.secret_given_input[1])
    # In posterior coordinates a row is T_x = v_x q / p_x; the factor q > 0 does not matter to a cone.
    if rows is None:
        rows = without_rounding(guarantee.cone(joint) / joint.p_input, joint, guarantee)
    if len(rows) == 0:
        return np.eye(a)
    apart = _equalities_apart(_scaled(rows))
    apart = _Conditions(_each_once(apart.rows), apart.equalities)
    try:
        return _by_double_description(*apart, joint.p_input, budget, few)
    except InconsistentVerticesError as error:
        if a <= _SMALL and not len(apart.equalities) and isinstance(guarantee, PosteriorGuarantee):
            exact = exact_vertices(guarantee.posterior_cone(joint.p_secret), joint.counts, budget)
            # Exactly as rounded to floats, a cone that is nearly flat can be empty.
            if len(exact):
                return exact
        raise SolverError(
            f"vertex enumeration over {a} distinct inputs is numerically inconsistent ({error}); change epsilon or "
            "group rare categories"
        ) from error


def without_rounding(rows: FloatArray, joint: Joint, guarantee: ConeGuarantee) -> FloatArray:
    """The conditions (m, a) of a guarantee in posterior coordinates, but for those that are nothing but rounding.

    At a budget of 0 a secret that is independent of the input, or two with the same records for each input, have such
    conditions: the difference of two equal numbers, which for a rare secret are large ones.
    """
    if not isinstance(guarantee, PosteriorGuarantee):
        return rows
    terms = np.abs(guarantee.posterior_cone(joint.p_secret)) @ joint.secret_given_input
    return np.asarray(rows[np.abs(rows).max(axis=1) > _VACUOUS * terms.max(axis=1)])


def _scaled(rows: FloatArray) -> FloatArray:
    return np.asarray(rows / np.abs(rows).max(axis=1, keepdims=True))


def _each_once(rows: FloatArray) -> FloatArray:
    """Conditions without those that another one repeats, as two secrets with the same records for each input do.

    Where one is active both are: every vertex would seem degenerate, and a list with a gap would seem complete.
    """
    _, first = np.unique(np.round(rows, _SAME), axis=0, return_index=True)
    return np.asarray(rows[np.sort(first)])


class _Conditions(NamedTuple):
    rows: FloatArray
    equalities: FloatArray


def _equalities_apart(rows: FloatArray) -> _Conditions:
    """Rows that are conditions, and rows that hold with equality because their negative is there too (ε = 0)."""
    there = {row.tobytes() for row in rows + 0.0}
    negated = np.array([(0.0 - row).tobytes() in there for row in rows])
    return _Conditions(rows[~negated], rows[negated])


def _by_double_description(
    rows: FloatArray, equalities: FloatArray, law: FloatArray, budget: Budget, few: bool
) -> FloatArray:
    # cddlib takes everything below 1e-7 for zero, so whether it finds all vertices depends on scale and order. Rare
    # inputs and rare secrets are seen better half way to the coordinates T_x = v_x / p_x.
    plain, balanced = np.ones(len(law)), np.sqrt(law)
    failures: list[InconsistentVerticesError] = []
    for unit, step in ((plain, 1), (plain, -1), (balanced, 1)):
        try:
            scaled = _scaled(rows * unit)
            found = _cddlib(scaled[::step, ::step], (equalities * unit)[:, ::step], budget, few)[:, ::step]
            clean = np.where(np.abs(found) < _ZERO, 0.0, found) * unit
            require_complete(clean, rows, equalities)
        except InconsistentVerticesError as error:
            failures.append(error)
        else:
            return np.asarray(clean / clean.sum(axis=1, keepdims=True))
    raise failures[0]


def _cddlib(rows: FloatArray, equalities: FloatArray, budget: Budget, few: bool) -> FloatArray:
    a = rows.shape[1]
    if budget.expired:
        raise _late(a)
    unlimited = math.isinf(budget.remaining)
    if few or (unlimited and a <= _SMALL and len(rows) <= _SMALL**2):
        budget.spend(_FEW)
        try:
            return polytope_vertices(rows, equalities)
        except RuntimeError as error:
            raise InconsistentVerticesError(" ".join(str(error).split())) from error
    buffer = BytesIO()
    np.savez(buffer, rows=rows, equalities=equalities)
    # By its path, for a quick start; -P keeps the modules beside it from being taken for others. What cddlib does
    # cannot be counted, so the limit is one of its processor time.
    limit = [] if unlimited else [repr(budget.remaining / UNITS_A_SECOND)]
    command = [sys.executable, "-P", str(double_description.__file__), *limit]
    try:
        done = subprocess.run(
            command, input=buffer.getvalue(), capture_output=True, timeout=budget.seconds_left, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise _late(a) from error
    if budget.ended_by == "interrupt":
        # Ctrl-C reached that process as well.
        raise KeyboardInterrupt
    if done.returncode == -double_description.OUT_OF_TIME:
        raise _late(a)
    reason = (done.stderr.decode(errors="replace").strip().splitlines() or ["no message"])[-1]
    if done.returncode == double_description.INCONSISTENT:
        raise InconsistentVerticesError(reason)
    if done.returncode != 0:
        raise SolverError(f"vertex enumeration over {a} distinct inputs failed: {reason}")
    return np.asarray(np.load(BytesIO(done.stdout)), dtype=np.float64)


def _late(a: int) -> SolverError:
    return SolverError(
        f"vertex enumeration over {a} distinct inputs did not finish in time; allow more time, raise epsilon, or group "
        "rare categories"
    )
