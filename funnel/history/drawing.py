"""Drawing: the channels of all histories as one protocol, which the row engine draws with like any other."""

from __future__ import annotations

from typing import Final

import numpy as np

from funnel.alphabet import Alphabet
from funnel.history.step import Step
from funnel.protocol import Protocol

HISTORY_COLUMN: Final = "history channel"
"""The column, of a snapshot that is to be drawn, that says which channel of the library a record is drawn from."""


def drawing_protocol(step: Step) -> Protocol:
    """The channels of a step's library as one protocol that reads ``"history channel"`` beside the inputs.

    Its symbols are ``(str(k), *x)`` for the channel k of the library and every input x that somebody with a history
    drawn from k has; their weights are those of channel k. Outputs and marginal are those of ``step.channel``.

    Parameters
    ----------
    step : Step

    Returns
    -------
    Protocol
        Over at most as many symbols as there are people.
    """
    observed, joint = step.observed, step.joint
    channels = step.drawn_from[np.searchsorted(step.followed, observed.nodes)]
    a = len(joint.inputs)
    pairs = np.unique(channels * a + observed.inputs)
    ks, xs = pairs // a, pairs % a
    symbols = tuple((str(k), *joint.inputs.symbols[x]) for k, x in zip(ks.tolist(), xs.tolist(), strict=True))
    return Protocol(
        np.ascontiguousarray(step.library[ks, :, xs].T),
        step.channel.marginal,
        Alphabet((HISTORY_COLUMN, *joint.inputs.columns), symbols),
        step.channel.outputs,
        mechanism="history",
        guarantee=step.channel.guarantee,
    )
