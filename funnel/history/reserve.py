"""What a reserve costs and saves: a smaller budget while frequencies may still move, weighed before it is chosen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from funnel.history.distributions import Kernel
from funnel.history.history_status import stand
from funnel.history.step import Step
from funnel.protocol import DENOMINATOR

# What a plan shows.
RESERVES = (1.0, 0.95, 0.9, 0.8)
# A forecast needs no proof: how closely a lift has to keep to its bound in it.
_CLOSE = 1e-9


@dataclass(frozen=True, eq=False)
class ReserveCost:
    """A version under one reserve, and what would become of its people if the same changes came again.

    Attributes
    ----------
    reserve : float
    step : Step
        The version as it would be published.
    kept : float
        I(X;W) as a share of H(X); 0 where H(X) is 0.
    moved, outside : int
        As of the step: what this version can no longer help.
    moved_next : float or None
        How many people to expect beyond the declared bound by frequencies alone before the next version, if people
        change once more as they did since the version before. None where nothing is known of changes: in a first
        version, or where its values were other ones.
    """

    reserve: float
    step: Step
    kept: float
    moved: int
    outside: int
    moved_next: float | None


def cost_of(step: Step) -> ReserveCost:
    """What a version keeps under its reserve; nothing is forecast where people have several rows."""
    kept = step.utility / step.entropy if step.entropy > 0 else 0.0
    following = None if step.waves else moved_next(step)
    return ReserveCost(step.reserve, step, kept, step.moved, step.outside, following)


def moved_next(step: Step) -> float | None:
    """How many people the frequencies alone would move beyond the bound, if they changed again as they last did.

    Everybody's history after this version is weighed by its probability, ``n_h P(y|h)``; the law of changes since the
    latest version before it, with the same values, is applied to ``P(s, x | h, y)``.
    """
    if not len(step.past) or not step.observed.changes:
        return None
    latest = max(step.observed.changes)
    joint, changes = step.joint, step.observed.changes[latest]
    before = step.past.chapters[latest].joint
    if (before.secret, before.inputs) != (joint.secret, joint.inputs):
        return None
    standing = stand(step.past, step.observed, step.guarantee)
    rows = step.library.astype(np.float64) / DENOMINATOR
    again = Kernel(joint.counts.size, joint, changes)
    stayed = np.bincount(changes.after, changes.records, joint.counts.size)
    prior = again.after(stayed[None] / stayed.sum()).reshape(joint.counts.shape).sum(axis=1)
    seen = prior > 0
    expected = 0.0
    channels = step.drawn_from[np.searchsorted(step.followed, standing.nodes)]
    for law, people, channel in zip(standing.laws.values, standing.people, channels, strict=True):
        # P(s, x, y | h), (b, c, a), and what becomes of it.
        masses = law[None] * rows[channel][:, None, :]
        outputs = masses.sum(axis=(1, 2))
        masses, outputs = masses[outputs > 0], outputs[outputs > 0]
        secrets = again.after(masses.reshape(len(masses), -1)).reshape(masses.shape).sum(axis=2)
        lifts = secrets[:, seen] / outputs[:, None] / prior[seen]
        _, outside = standing.allowed.within(lifts.T[None], _CLOSE)
        expected += float(people * outputs[outside[0]].sum() / outputs.sum())
    return expected * step.observed.weight
