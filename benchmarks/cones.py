"""The cone of SRLIP of PF as bare rows, which the benchmark of the solver needs."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]


def srlip_cone(p: FloatArray, shape: tuple[int, ...], epsilon: float) -> FloatArray:
    """Rows of SRLIP (PF (19)) for a joint distribution (c, a) whose inputs are a product of attributes of this shape.

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
