"""Greedy agglomeration: merge published values, two at a time, until the guarantee holds."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from scipy.special import xlogy

from funnel.guarantees.base import Guarantee
from funnel.joint import FloatArray, Joint
from funnel.mechanisms.base import Mechanism
from funnel.mechanisms.merging import merged_weights, partition_weights
from funnel.protocol import Protocol


class Agglomeration(Mechanism):
    """Greedy agglomeration for I(S;Y) <= M, the original Privacy Funnel (PF problem 1), and for any other guarantee.

    Starts from the input as it is and merges, again and again, the two outputs whose merging lowers I(S;Y) most for
    each nat of I(X;Y) it costs, until the guarantee holds exactly. One output tells nothing, so there is an end. For
    guarantees on every output, subset merging looks at what they bound; this looks at the average.

    Notes
    -----
    O(a³ c) at worst, plus one exact decision a merge.
    """

    name: ClassVar[str] = "agglomeration"
    summary: ClassVar[str] = "merge values pair by pair, where that hides most for what it costs"

    def fit(self, joint: Joint, guarantee: Guarantee, time_limit: float | None = None) -> Protocol:
        """The finest partition on the greedy way that meets the guarantee."""
        subsets: list[tuple[int, ...]] = [(int(x),) for x in np.flatnonzero(joint.counts.any(axis=0))]
        while not guarantee.holds_for(joint, partition_weights(joint, tuple(subsets))):
            first, second = _cheapest_pair(
                np.stack([joint.p[:, list(subset)].sum(axis=1) for subset in subsets], axis=1)
            )
            merged = tuple(sorted(subsets[first] + subsets[second]))
            subsets = [subset for k, subset in enumerate(subsets) if k not in (first, second)]
            subsets.append(merged)
        subsets.sort(key=min)
        return self.protocol(joint, guarantee, merged_weights(joint, guarantee, tuple(subsets)), joint.inputs)


def _cheapest_pair(law: FloatArray) -> tuple[int, int]:
    """The pair of outputs that hides most of the secret for each nat of the input it costs; law P(s, y): (c, b)."""
    mass = law.sum(axis=0)
    # Merging y and z costs p ln p terms: I(X;Y) falls by (p_y + p_z) h(p_y / (p_y + p_z)).
    together = mass[:, None] + mass
    cost = xlogy(together, together) - xlogy(mass, mass)[:, None] - xlogy(mass, mass)
    pairs = law[:, :, None] + law[:, None, :]
    single = xlogy(law, law).sum(axis=0) - xlogy(mass, mass)
    saved = single[:, None] + single - (xlogy(pairs, pairs).sum(axis=0) - xlogy(together, together))
    gain = np.where(np.eye(len(mass), dtype=bool), -np.inf, saved / np.maximum(cost, 1e-300))
    first, second = np.unravel_index(int(gain.argmax()), gain.shape)
    return int(first), int(second)
