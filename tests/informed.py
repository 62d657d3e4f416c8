"""How far a version goes for an observer who knows more than is published; for tests and benchmarks."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from funnel.history.allowed import lifts_of
from funnel.history.history_status import stand
from funnel.history.observed import Observed
from funnel.history.past import Past
from funnel.history.step import Step
from funnel.protocol import WORD_BITS

# A level at the bound may be found a hair above it.
_CLOSE = 1e-9


@dataclass(frozen=True)
class Reader:
    """How far a version goes for somebody who knows some distributions, beside all channels.

    Attributes
    ----------
    level : float
        Largest level over all histories that people have, and all outputs that they can get; nats, infinite where one
        rules a value out.
    beyond : float
        Share of the answers that are expected to be beyond the bound.
    moved : int
        People whose history alone is outside it, under these distributions, before anything new is said.
    people : int
        Who has a history after which some answer is beyond it.
    """

    level: float
    beyond: float
    moved: int
    people: int


def reader(past: Past, step: Step, people: Observed) -> Reader:
    """What somebody concludes from a version who has these distributions of the past, and of its people.

    Parameters
    ----------
    past : Past
        With the histories and channels that were published, and the distributions that the reader has of earlier
        versions.
    step : Step
        As it is drawn.
    people : Observed
        Who really has which history; with the frequencies and the distribution of changes that the reader has.
    """
    status = stand(past, replace(people, secrets="current"), step.guarantee)
    channels = step.drawn_from[np.searchsorted(step.followed, status.nodes)]
    level, beyond, outside = 0.0, 0.0, 0
    for place, channel in enumerate(channels.tolist()):
        rows = np.ldexp(step.library[channel].astype(np.float64), -WORD_BITS)
        outputs = status.distributions.values[place] @ rows.T
        nats = status.nats(lifts_of(outputs[None], status.priors[status.prior_of[place]]))[0]
        said = outputs.sum(axis=0)
        level = max(level, float(nats[said > 0].max(initial=0.0)))
        above = (nats > step.guarantee.budget * (1 + _CLOSE)) & (said > 0)
        beyond += float(status.people[place] * said[above].sum() / said.sum())
        outside += int(status.people[place]) if above.any() else 0
    moved = int(status.people[status.moved].sum())
    # A sum of floats may be a hair above the whole.
    return Reader(level, min(1.0, beyond / float(status.people.sum())), moved, outside)
