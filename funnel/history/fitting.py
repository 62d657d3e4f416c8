"""Fitting: channels for the histories that people really have, out of those that were made for expected ones."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from funnel.history.distributions import BoolArray
from funnel.history.history_status import HistoryStatus, stand
from funnel.history.observed import Observed
from funnel.history.prove import described, fitting
from funnel.history.score_aims import aim_for
from funnel.history.step import Step
from funnel.joint import IntArray
from funnel.measures.utilities import INFORMATION, Utility
from funnel.protocol import WORD_BITS, WeightArray

# So many channels of the library are tried for a history that was not predicted, the best by its distribution first.
_TRIES: Final = 24


@dataclass(frozen=True, eq=False)
class Fitted:
    """A version as it is drawn, and what of it is not public.

    Attributes
    ----------
    step : Step
        About the real people: all that they have is followed. Its channel is the one of expected people, and its
        library has a constant channel as well that publishes by the distribution of that.
    predicted : Step
        About expected people alone: whatever is public is made of it.
    silent : int
        People whose history was not predicted and who are drawn from what tells nothing.
    unpredicted : int
        People whose history was not predicted; those among them.
    """

    step: Step
    predicted: Step
    silent: int
    unpredicted: int


def fitted(predicted: Step, observed: Observed, utility: Utility = INFORMATION) -> Fitted:
    """The channels of a version that was decided for expected people, for the real ones.

    Who has a predicted history gets its channel. All others get the best channel of the library for which the bound
    provably holds under the distribution of their own history, else one that tells nothing. Distributions, and with
    them the channels, follow from public tables and from the history; what the people with it really are does not
    enter.

    Parameters
    ----------
    predicted : Step
    observed : Observed
        The real people, with the published frequencies and the distribution of changes that follows from these.
    utility : Utility
        That the version was decided for.

    Raises
    ------
    DataError
        If changes from the last version of some history are missing.

    Notes
    -----
    O(h (a m + tries c a b)) for h histories that were not predicted and m channels.
    """
    observed = replace(observed, limits=predicted.observed.limits, secrets=predicted.observed.secrets)
    status = stand(predicted.past, observed, predicted.guarantee, predicted.reserve)
    channel = predicted.channel
    constant = np.repeat(channel.marginal[:, None], len(channel.inputs), axis=1)
    library, silence = _with(predicted.library, constant)
    at = np.minimum(np.searchsorted(predicted.followed, status.nodes), len(predicted.followed) - 1)
    known = predicted.followed[at] == status.nodes
    drawn_from = np.where(known, predicted.drawn_from[at], silence)
    others = np.flatnonzero(~known)
    if len(others):
        candidates = _candidates(status, predicted, others, utility)
        found = fitting(status, predicted.library, candidates, others)
        drawn_from[others] = np.where(found >= 0, found, silence)
    proven = described(status, library, drawn_from)
    # Predicted histories that nobody has are followed too: later versions expect people to have them.
    followed = np.concatenate([predicted.followed, status.nodes[~known]])
    order = np.argsort(followed, kind="stable")
    step = replace(
        predicted,
        observed=observed,
        library=library,
        followed=followed[order],
        drawn_from=np.concatenate([predicted.drawn_from, drawn_from[~known]])[order],
        **proven.figures(status, observed),
    )
    tells_nothing = (library == library[:, :, :1]).all(axis=(1, 2))
    silent = status.people[~known & tells_nothing[drawn_from]].sum()
    return Fitted(step, predicted, int(silent), int(status.people[~known].sum()))


def _with(library: WeightArray, channel: WeightArray) -> tuple[WeightArray, int]:
    """A library with one more channel, and the number of that."""
    there = np.flatnonzero([np.array_equal(one, channel) for one in library])
    return (library, int(there[0])) if len(there) else (np.concatenate([library, channel[None]]), len(library))


def _candidates(status: HistoryStatus, predicted: Step, places: IntArray, utility: Utility) -> IntArray:
    """Channels of the library to try for some histories, by what these expect to be told; (k, tries)."""
    rows = np.ldexp(predicted.library.astype(np.float64), -WORD_BITS)
    inputs = status.distributions.values[places].sum(axis=1)
    channel = predicted.channel.matrix
    gains = aim_for(utility, predicted.joint, channel).gains(channel)
    worth = inputs @ (rows * gains).sum(axis=1).T
    worth[~_expected(predicted.library, inputs > 0)] = -np.inf
    order = np.argsort(-worth, axis=1, kind="stable")[:, :_TRIES]
    return np.where(np.take_along_axis(worth, order, axis=1) > 0, order, -1)


def _expected(library: WeightArray, inputs: BoolArray) -> BoolArray:
    """Whether a history expects every output that a channel may give to anybody; (k, m) for its inputs (k, a).

    Noise can hide people: if one of them could get an output that nobody expects after their history, a later version
    could say nothing of what they are.
    """
    possible = library > 0
    reached: IntArray = np.asarray(np.einsum("mba,ka->kmb", possible.astype(np.int64), inputs.astype(np.int64)))
    unused: BoolArray = np.asarray(~possible.any(axis=2))
    return np.asarray(((reached > 0) | unused[None]).all(axis=2))
