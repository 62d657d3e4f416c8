"""Local differential privacy with respect to the secret: no two secrets differ in any output by more than e^ε."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from funnel.guarantees.base import PosteriorGuarantee, Witness
from funnel.guarantees.exact import capped_exp, secret_output
from funnel.joint import FloatArray, Joint
from funnel.protocol import WeightArray


@dataclass(frozen=True)
class LDP(PosteriorGuarantee):
    """ε-LDP with respect to S (PF definition 1, equations (1) and (5)).

    ``P(y|s) <= e^ε P(y|s')`` for every output y and all secrets s, s' that occur: between any two secrets, the odds
    that an observer holds change by at most a factor e^ε, whatever the prior of the secret.

    Parameters
    ----------
    epsilon : float
        Bound in nats, >= 0; zero is perfect privacy.
    """

    name: ClassVar[str] = "ldp"
    title: ClassVar[str] = "local differential privacy"

    def posterior_cone(self, prior: FloatArray) -> FloatArray:
        """Rows of ``π_s/p_s <= e^ε π_t/p_t`` for a posterior π and all s ≠ t, shape (c(c-1), c)."""
        lifts = np.diag(1 / prior)
        pairs = [(s, t) for s in range(len(prior)) for t in range(len(prior)) if s != t]
        if not pairs:
            return np.zeros((0, len(prior)))
        first, second = np.array(pairs).T
        return np.asarray(lifts[first] - capped_exp(self.epsilon) * lifts[second])

    def worst(self, joint: Joint, weights: WeightArray) -> Witness:
        """Largest P(y|s)/P(y|s'), exactly; O(a b c)."""
        law = secret_output(joint.counts, weights)
        sizes = [int(size) for size in joint.counts.sum(axis=1)]
        seen = [s for s, size in enumerate(sizes) if size > 0]
        occurring = [y for y, total in enumerate(law.sum(axis=0)) if total > 0]
        best = Witness(occurring[0], seen[0], seen[0], Fraction(1), True)
        for y in occurring:
            given = {s: Fraction(int(law[s, y]), sizes[s]) for s in seen}
            high = max(seen, key=given.__getitem__)
            low = min(seen, key=given.__getitem__)
            if given[low] == 0:
                return Witness(y, high, low, None, True)
            ratio = given[high] / given[low]
            if best.ratio is None or ratio > best.ratio:
                best = Witness(y, high, low, ratio, True)
        return best
