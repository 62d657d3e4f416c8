"""All vertices of the polytope of posteriors a guarantee allows: listed directly for two secrets, else by cddlib."""

from __future__ import annotations

import subprocess
import sys
from io import BytesIO

import numpy as np

from funnel.errors import SolverError
from funnel.guarantees.base import Guarantee, PosteriorGuarantee
from funnel.joint import FloatArray, Joint
from funnel.solver.choice import has_few_vertices, is_listed
from funnel.solver.region import Region


def enumerate_vertices(
    joint: Joint, guarantee: Guarantee, time_limit: float | None = None, rows: FloatArray | None = None
) -> FloatArray:
    """Vertices of ``Δ = {v >= 0, Σv = 1, v = P(X|y) meets the guarantee}``, shape (k, a) (PF theorem 3, (11)-(13)).

    Two secrets: at most a²/2 vertices, listed directly in O(a²) because a vertex has at most two non-zeros. More
    secrets: double description by cddlib, in a process of its own unless there are few vertices, so that a time limit
    or Ctrl-C ends it; the number of vertices grows exponentially with a and c and as ε falls.

    Parameters
    ----------
    joint : Joint
        All inputs and secrets must occur.
    guarantee : Guarantee
    time_limit : float, optional
        Seconds.
    rows : ndarray, shape (m, a), optional
        The cone in posterior coordinates, where it is not the guarantee's cone of this joint law.

    Raises
    ------
    SolverError
        If cddlib fails, returns vertices that violate the polytope, or does not finish in time.
    """
    if rows is None:
        rows = guarantee.cone(joint) / joint.p_input
    region = Region.of(rows, joint.p_input)
    if len(region.rows) == 0:
        return np.eye(region.inputs)
    if is_listed(joint, guarantee) and isinstance(guarantee, PosteriorGuarantee):
        return _two_secrets(joint, guarantee)
    return _checked(_by_cddlib(rows, time_limit, has_few_vertices(region)), rows)


def _two_secrets(joint: Joint, guarantee: PosteriorGuarantee) -> FloatArray:
    """Every condition is an interval for ρ = P(s = 1|y) = r·v, so vertices are points or pairs at its ends."""
    r = joint.secret_given_input[1]
    low, high = 0.0, 1.0
    for at_zero, at_one in guarantee.posterior_cone(joint.p_secret):
        slope = at_one - at_zero
        if slope > 0:
            high = min(high, -at_zero / slope)
        elif slope < 0:
            low = max(low, -at_zero / slope)
    # p_X itself is always allowed; float rounding must not exclude it when ε = 0.
    low, high = min(low, float(joint.p_secret[1])), max(high, float(joint.p_secret[1]))
    eye = np.eye(len(r))
    found = [eye[(r >= low) & (r <= high)]]
    for end in (low, high):
        below, above = np.flatnonzero(r < end), np.flatnonzero(r > end)
        first, second = np.repeat(below, len(above)), np.tile(above, len(below))
        share = (r[second] - end) / (r[second] - r[first])
        found.append(share[:, None] * eye[first] + (1 - share)[:, None] * eye[second])
        if low == high:
            break
    return np.vstack(found)


def _by_cddlib(rows: FloatArray, time_limit: float | None, few: bool) -> FloatArray:
    if few:
        from funnel.solver.double_description import polytope_vertices

        return polytope_vertices(rows)
    buffer = BytesIO()
    np.save(buffer, rows)
    command = [sys.executable, "-m", "funnel.solver.double_description"]
    try:
        done = subprocess.run(command, input=buffer.getvalue(), capture_output=True, timeout=time_limit, check=False)
    except subprocess.TimeoutExpired as error:
        raise SolverError(
            f"vertex enumeration over {rows.shape[1]} distinct inputs did not finish in {time_limit:g} s; allow more "
            "time, raise epsilon, or group rare categories"
        ) from error
    if done.returncode != 0:
        reason = done.stderr.decode(errors="replace").strip().splitlines() or ["no message"]
        raise SolverError(f"vertex enumeration over {rows.shape[1]} distinct inputs failed: {reason[-1]}")
    return np.asarray(np.load(BytesIO(done.stdout)), dtype=np.float64)


def _checked(found: FloatArray, rows: FloatArray) -> FloatArray:
    """Float cddlib can return nonsense on hard cones: refuse what is not in the polytope."""
    clean = np.where(np.abs(found) < 1e-11, 0.0, found)
    scale = np.abs(rows).max(axis=1)
    if len(clean) == 0 or (clean < 0).any() or ((clean @ rows.T) > 1e-7 * scale).any():
        raise SolverError(
            f"vertex enumeration over {rows.shape[1]} distinct inputs was numerically inconsistent; change epsilon "
            "slightly or group rare categories"
        )
    return np.asarray(clean / clean.sum(axis=1, keepdims=True))
