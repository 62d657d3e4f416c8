"""Whether a history has anything left to say: at a vertex of the region only constant rows are allowed."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from funnel.joint import FloatArray

# What a protocol for a history may still change, as total variation, for a programme to be not worth solving.
NOTHING = 1e-6
# Conditions this close to their bound are as good as on it when a left inverse is chosen; any choice gives a bound.
_CLOSE = 1e-10
# How far a left inverse may be from one; it costs less than a factor of two.
_INVERSE = 1e-6


def what_is_left(laws: FloatArray, cone: FloatArray) -> FloatArray:
    """How much the next output can depend on the input at most, for each history; zero: only constants are allowed.

    Parameters
    ----------
    laws : ndarray, shape (m, c, a)
        P(s, x | h) under today's law, each summing to 1.
    cone : ndarray, shape (k, c)
        M: the conditions ``M P(S|h, y) <= max(0, M P(S|h))``.

    Returns
    -------
    ndarray, shape (m,)
        A bound on ``Σ_x P(x|h) · ½ Σ_y |R(y|x, h) - P(y|h)|`` over all R(·|·, h) that meet the conditions; infinite
        where the law is no vertex.

    Notes
    -----
    Write ``v = P(X|h)``, ``r = max(0, M P(S|h))``, ``N = M P(S|X, h) - r`` over the inputs with v_x > 0, and
    ``σ = -N v >= 0``. An output with the posterior masses ``u_y(x) = P(x, y|h)`` meets the conditions iff
    ``N u_y <= 0``, and the u_y sum to v. So for each condition i, ``Σ_y |N u_y|_i = σ_i``.

    *Theorem.* All allowed R are constant iff the rows of N with σ_i = 0, together with a row of ones, have full column
    rank: iff v is a vertex of ``{v : N v <= 0, Σ v = 1, v >= 0}``, supports included. Proof: put
    ``e_y = u_y - P(y|h) v``, whose entries sum to 0. Then ``Σ_y |N e_y|_i <= 2 σ_i``. With full rank and σ = 0 every
    e_y vanishes. Without it there is an e ≠ 0 with ``N_i e = 0`` where σ_i = 0 and entries summing to 0, and for a
    small δ the two outputs ``(v ± δ e)/2`` are allowed and not constant. ∎

    Weights are whole numbers, and e^ε is not, so that σ is never exactly zero. For any left inverse B of
    ``[N; 1]``, ``e_y = B [N e_y; 0]``, so that half of ``Σ_x Σ_y |e_y(x)|`` is at most ``Σ_x Σ_i |B_xi| σ_i``: that is
    the bound, with the B that rests on the smallest σ. It is used to save programmes only. A constant row is allowed
    whatever the bound is, so that nothing about privacy depends on these floats.

    The rank is at most c, so that a history whose posterior has more than c inputs is never at a vertex, and costs
    nothing but looking. O(m a c) for all, O(a² (k + a)) for each of the others.
    """
    found = np.full(len(laws), np.inf)
    c = laws.shape[1]
    support = laws.sum(axis=1) > 0
    few = np.flatnonzero(support.sum(axis=1) <= c)
    if len(few):
        found[few] = _bounds(laws[few], support[few], cone)
    return found


def nothing_left(laws: FloatArray, cone: FloatArray, negligible: float = NOTHING) -> npt.NDArray[np.bool_]:
    """Which histories need no programme: whatever R is, it is a constant row up to ``negligible``; (m, c, a) to (m,).

    What a constant row loses against the best R is then at most ``negligible · (max - min)`` for a programme whose
    gains lie between min and max. See `what_is_left`.
    """
    return np.asarray(what_is_left(laws, cone) <= negligible)


def _bounds(laws: FloatArray, support: npt.NDArray[np.bool_], cone: FloatArray) -> FloatArray:
    posterior = laws.sum(axis=1)
    given = np.divide(laws, posterior[:, None, :], out=np.zeros_like(laws), where=support[:, None, :])
    excess = laws.sum(axis=2) @ cone.T
    rows = cone @ given - np.maximum(excess, 0.0)[:, :, None]
    rows *= support[:, None, :]
    slack = np.maximum(-excess, 0.0)
    # Inputs that the history rules out have no mass in any output: an equation each, and one for the sum.
    a = laws.shape[2]
    outside = np.eye(a)[None] * ~support[:, None, :]
    system = np.concatenate([rows, np.ones((len(laws), 1, a)), outside], axis=1)
    costs = np.concatenate([slack, np.zeros((len(laws), 1 + a))], axis=1)
    scale = 1 / (costs + _CLOSE)
    inverse = np.linalg.pinv(system * scale[:, :, None], rcond=1e-15) * scale[:, None, :]
    misses = np.abs(inverse @ system - np.eye(a)).sum(axis=2).max(axis=1)
    bounds = 2 * (np.abs(inverse) * costs[:, None, :]).sum(axis=(1, 2))
    return np.where(misses <= _INVERSE, bounds, np.inf)
