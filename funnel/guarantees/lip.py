"""Local information privacy: no output changes the probability of any secret by more than a factor e^ε."""

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
class LIP(PosteriorGuarantee):
    """ε-LIP with respect to S (PF definition 2, equation (2)).

    ``e^-ε P(y) <= P(y|s) <= e^ε P(y)`` for every output y and every secret s that occurs. Since
    ``P(y|s)/P(y) = P(s|y)/P(s)``, whoever sees y changes their belief in any s by at most a factor e^ε.

    Parameters
    ----------
    epsilon : float
        Bound in nats, >= 0; zero is perfect privacy.
    """

    name: ClassVar[str] = "lip"
    title: ClassVar[str] = "local information privacy"

    def posterior_cone(self, prior: FloatArray) -> FloatArray:
        """Rows of ``π_s/p_s <= e^ε`` and ``π_s/p_s >= e^-ε`` for a posterior π summing to 1, shape (2c, c)."""
        lifts = np.diag(1 / prior)
        return np.vstack([lifts - capped_exp(self.epsilon), np.exp(-self.epsilon) - lifts])

    def worst(self, joint: Joint, weights: WeightArray) -> Witness:
        """Largest of P(y|s)/P(y) and P(y)/P(y|s), exactly; O(a b c)."""
        law = secret_output(joint.counts, weights)
        outputs = law.sum(axis=0)
        sizes = [int(size) for size in joint.counts.sum(axis=1)]
        occurring = [y for y, total in enumerate(outputs) if total > 0]
        seen = [s for s, size in enumerate(sizes) if size > 0]
        best = Witness(occurring[0], seen[0], None, Fraction(1), True)
        for y in occurring:
            for s in seen:
                part, total, size = law[s, y], outputs[y], sizes[s]
                if part == 0:
                    return Witness(y, s, None, None, False)
                # One fraction per cell, compared exactly: ties and near-ties need no tolerance.
                above, below = part * joint.n, size * total
                upward = above >= below
                ratio = Fraction(above, below) if upward else Fraction(below, above)
                if best.ratio is None or ratio > best.ratio:
                    best = Witness(y, s, None, ratio, upward)
        return best
