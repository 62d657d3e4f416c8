"""Cones of the papers that the solver's benchmark needs as bare rows: SRLIP of PF and PolyOpt of RLDP."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import numpy.typing as npt
from scipy.stats import chi2

FloatArray = npt.NDArray[np.float64]


def srlip_cone(p: FloatArray, shape: tuple[int, ...], epsilon: float) -> FloatArray:
    """Rows of SRLIP (PF (19)) for a joint law (c, a) whose inputs are a product of attributes of this shape.

    For every proper subset J of attributes (none: LIP), value x_J and secret s: ``e^-ε P(y|x_J) <= P(y|s,x_J) <=
    e^ε P(y|x_J)``, linear in the row T.
    """
    values = np.stack(np.unravel_index(np.arange(p.shape[1]), shape))
    rows = []
    for size in range(len(shape)):
        for attributes in combinations(range(len(shape)), size):
            keys = values[list(attributes)]
            for key in np.unique(keys, axis=1).T if size else [np.zeros(0)]:
                here = (keys == key[:, None]).all(axis=0)
                average = p.sum(axis=0) * here
                for s in range(len(p)):
                    given = p[s] * here
                    if given.sum() == 0:
                        continue
                    given, mean = given / given.sum(), average / average.sum()
                    rows += [given - np.exp(epsilon) * mean, np.exp(-epsilon) * mean - given]
    return np.array(rows)


def polyopt_cone(counts: npt.NDArray[np.int64], epsilon: float, alpha: float = 0.05) -> FloatArray:
    """Rows of PolyOpt (RLDP (4)-(6)) on the inputs (s, u) of counts (c, d), s1 ≠ s2 only; no cell may be zero."""
    c, d = counts.shape
    n = counts.sum()
    p_s = counts.sum(axis=1) / n
    given = counts / counts.sum(axis=1, keepdims=True)
    budget = chi2.ppf(1 - alpha, c * d - 1) / n
    a = (((np.sqrt(budget + 1) + p_s - 1) / p_s) ** 2 - 1)[:, None]
    least = (a + 2 * given - np.sqrt(a**2 + 4 * a * given - 4 * a * given**2)) / (2 * a + 2)
    # T·R at the corner of the polytope of conditionals where all spare mass is on u.
    corner = np.zeros((c, d, c * d))
    for s in range(c):
        for u in range(d):
            corner[s, u, s * d : (s + 1) * d] = least[s]
            corner[s, u, s * d + u] += 1 - least[s].sum()
    pairs = [(s, t) for s in range(c) for t in range(c) if s != t]
    return np.array(
        [corner[s, u] - np.exp(epsilon) * corner[t, w] for s, t in pairs for u in range(d) for w in range(d)]
    )
