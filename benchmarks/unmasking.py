"""An attack on exact weights: the secrets of people who are the only ones of their published values."""

from __future__ import annotations

import itertools
import math
from functools import cache

import numpy as np
import numpy.typing as npt

from funnel.joint import FloatArray, IntArray
from funnel.release.public.rounding import share_step

# Relative: an optimum is that close to its bound, and nothing else is by accident.
CLOSE = 1e-6
# Ways to give the inputs of one output their secrets that are tried at most.
_WAYS = 5000


def deduced(weights: FloatArray, shares: FloatArray, n: int, epsilon: float = 1.0) -> dict[int, int]:
    """Secrets that the weights of an optimum for LIP give away: of inputs the secret, both by their places.

    Where every input is one person, the share of an input in an output is the share of that person's secret times a
    lift, and an optimum has all its lifts but one on the bound. So the shares of secrets, which are told roughly, are
    read exactly: they are those for which most lifts are on the bound. With them a way to give the inputs of an output
    their secrets that has all lifts but one on the bound is no accident.

    Parameters
    ----------
    weights : ndarray, shape (b, a)
        P(y|x), as protocol.json tells them.
    shares : ndarray, shape (c,)
        Shares of the secrets, as the report tells them.
    n : int
        Number of records.
    epsilon : float
        Of the guarantee, nats.
    """
    c = len(shares)
    limits = np.array([math.exp(epsilon), math.exp(-epsilon)])
    total = weights.sum(axis=1, keepdims=True)
    parts = np.divide(weights, total, out=np.zeros_like(weights), where=total > 0)
    exact = _exact(parts[parts > 0], shares, n, limits)
    left: dict[int, set[int]] = {}
    for part in parts:
        inputs = np.flatnonzero(part)
        if not len(inputs) or c ** len(inputs) > _WAYS:
            continue
        ways, chosen = _ways(len(inputs), c)
        lift = np.einsum("x,wxs->ws", part[inputs], chosen) / exact
        within = (lift <= limits[0] * (1 + CLOSE)) & (lift >= limits[1] * (1 - CLOSE))
        fit = ways[(_on(lift, limits).sum(axis=1) >= c - 1) & within.all(axis=1)]
        for place, x in enumerate(inputs.tolist() if len(fit) else []):
            left[x] = left.get(x, set(range(c))) & set(fit[:, place].tolist())
    return {x: next(iter(secrets)) for x, secrets in left.items() if len(secrets) == 1}


def _exact(seen: FloatArray, shares: FloatArray, n: int, limits: FloatArray) -> FloatArray:
    """The exact shares of secrets among those that are rounded to the public ones."""
    step = share_step(n)
    found = np.zeros(len(shares))
    for s, share in enumerate(shares):
        # What is told as one step may be as rare as one record.
        least = 1 if share <= 1.0001 * step else math.floor((share - step / 2) * n)
        counts = np.arange(least, math.ceil((share + step / 2) * n) + 1)
        met = [int(_on(seen * n / count, limits).sum()) for count in counts]
        found[s] = counts[int(np.argmax(met))] / n
    return found


def _on(lift: FloatArray, limits: FloatArray) -> npt.NDArray[np.bool_]:
    return np.asarray((np.abs(lift[..., np.newaxis] / limits - 1) <= CLOSE).any(axis=-1))


@cache
def _ways(inputs: int, c: int) -> tuple[IntArray, FloatArray]:
    """All ways to give inputs their secrets, shape (w, inputs), and the same as indicators, (w, inputs, c)."""
    ways = np.array(list(itertools.product(range(c), repeat=inputs)), dtype=np.int64)
    return ways, np.eye(c)[ways]
