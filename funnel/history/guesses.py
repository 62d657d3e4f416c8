"""Guesses: how often an observer who keeps all versions guesses a secret right, before a version and with it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from funnel.guarantees.lip import LIP
from funnel.history.donor_step import read_distributions
from funnel.history.history_status import stand
from funnel.history.step import Step
from funnel.joint import FloatArray
from funnel.protocol import DENOMINATOR


@dataclass(frozen=True)
class Guesses:
    """The Bayes guess of observers who link everything published, by the distributions that they know.

    Attributes
    ----------
    prior, before, after : float
        Probability that the likeliest secret is the right one: from frequencies alone, with all versions before this
        one, and with this one as well. Of the distributions of histories, not of the people who happen to have them.
    information_before, information_after : float
        What the versions tell about the secret, I(S; history), nats.
    """

    prior: float
    before: float
    after: float
    information_before: float
    information_after: float


def guesses(step: Step) -> Guesses:
    """The guesses of a version that has been decided; O(h a b c) for h histories.

    Raises
    ------
    SpecError
        If the guarantee is none that histories can keep.
    """
    if step.waves:
        return _row_by_row([guesses(wave) for wave in step.waves], [wave.joint.n for wave in step.waves])
    if step.own is None:
        # Any bound will do: what is decided of it is not asked for here, nor what noise leaves open of it.
        status = stand(step.past, step.observed, LIP(1.0))
        nodes, people, read = status.nodes, status.people, status.distributions.values
    else:
        nodes, people, read = step.followed, *read_distributions(step)
    rows = step.library.astype(np.float64) / DENOMINATOR
    shares = people / people.sum()
    distribution = step.joint.p_secret
    before = after = uncertain_before = uncertain_after = 0.0
    channels = step.channels_of(nodes)
    for share, masses, channel in zip(shares, read, channels, strict=True):
        # P(s | h) and P(s, y | h).
        alone, seen = masses.sum(axis=1), masses @ rows[channel].T
        before += share * float(alone.max())
        after += share * float(seen.max(axis=0).sum())
        uncertain_before += share * _entropy(alone)
        uncertain_after += share * (_entropy(seen) - _entropy(seen.sum(axis=0)))
    # The distributions of histories come from changes: their mean is that of the version only nearly.
    known = _entropy(distribution)
    return Guesses(
        float(distribution.max()), before, after, max(0.0, known - uncertain_before), max(0.0, known - uncertain_after)
    )


def _row_by_row(waves: list[Guesses], people: list[int]) -> Guesses:
    """The guesses once all rows of everybody are known: each row adds to what is known of those who have it."""
    first = waves[0]
    shares = [count / people[0] for count in people]

    def known(before: float, gains: list[float]) -> float:
        return before + sum(share * gain for share, gain in zip(shares, gains, strict=True))

    return Guesses(
        first.prior,
        first.before,
        known(first.before, [one.after - one.before for one in waves]),
        first.information_before,
        known(first.information_before, [one.information_after - one.information_before for one in waves]),
    )


def _entropy(shares: FloatArray) -> float:
    positive = shares[shares > 0]
    return float(-(positive * np.log(positive)).sum())
