"""Meaning: what somebody may come to believe about one person at most, at a budget."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from funnel.guarantees import Guarantee
from funnel.joint import Joint


@dataclass(frozen=True)
class Belief:
    """The probability of one value of the secret, before a record is seen and after it.

    Attributes
    ----------
    secret : str
    before : float
    least, most : float
        P(s|y) for whatever is published of the person.
    """

    secret: str
    before: float
    least: float
    most: float


def beliefs(joint: Joint, guarantee: Guarantee) -> tuple[Belief, ...]:
    """Of the rarest and of the commonest value of the secret; empty where the guarantee sets no limit one by one.

    Parameters
    ----------
    joint : Joint
        Public counts (c, a).
    guarantee : Guarantee
    """
    prior = joint.p_secret
    limits = guarantee.posterior_limits(prior)
    if limits is None:
        return ()
    least, most = limits
    there = np.flatnonzero(prior > 0)
    rarest, commonest = (int(pick(prior[there])) for pick in (np.argmin, np.argmax))
    labels = joint.secret.labels
    return tuple(
        Belief(labels[s], float(prior[s]), float(least[s]), float(most[s]))
        for s in dict.fromkeys((int(there[rarest]), int(there[commonest])))
    )
