"""Leakage to guessers, in nats, and the accuracy of the best guess."""

from __future__ import annotations

import math

import numpy as np

from funnel.joint import Joint
from funnel.measures.distributions import Counted, counted_distribution
from funnel.protocol import Protocol


def guess_accuracy(joint: Joint, protocol: Protocol, counts: Counted = "inputs") -> float:
    """Accuracy of the best guess of x from y: ``Σ_y max_x P(x, y)``.

    Parameters
    ----------
    counts : {"inputs", "secret", "secret and inputs"}
        What is guessed.

    Raises
    ------
    SpecError
        If ``counts`` is none of these.

    Examples
    --------
    >>> round(funnel.measures.guess_accuracy(joint, protocol), 4)
    0.6797
    """
    if counts == "inputs" and protocol.is_sparse and protocol.inputs.columns == joint.inputs.columns:
        weights, most = protocol.sparse_for(joint.inputs), np.zeros(len(protocol.outputs))
        channel = weights.values / np.float64(protocol.denominator)
        np.maximum.at(most, weights.outputs, joint.p_input[weights.inputs] * channel)
        return float(most.sum())
    return float(counted_distribution(joint, protocol, counts).max(axis=0).sum())


def min_entropy_leakage(joint: Joint, protocol: Protocol, counts: Counted = "secret") -> float:
    """Min-entropy leakage ``ln(Σ_y max_s P(s, y) / max_s p_s)``, in nats.

    By what factor an output multiplies the chance of guessing the secret at the first try. Arimoto information of
    order ∞; at most maximal leakage.

    Parameters
    ----------
    counts : {"inputs", "secret", "secret and inputs"}
        What takes the place of S.

    Raises
    ------
    SpecError
        If ``counts`` is none of these.

    Examples
    --------
    >>> round(funnel.measures.min_entropy_leakage(joint, protocol), 4)
    0.1131
    """
    law = counted_distribution(joint, protocol, counts)
    return max(0.0, math.log(law.max(axis=0).sum() / law.sum(axis=1).max()))


def maximal_leakage(joint: Joint, protocol: Protocol, counts: Counted = "secret") -> float:
    """Maximal leakage ``ln Σ_y max_s P(y|s)`` over the secrets that occur, in nats.

    By what factor an output multiplies the chance of guessing any function of the secret, whatever the prior on the
    same support: the worst min-entropy leakage over priors and Sibson information of order ∞. At most εu under
    (εl, εu)-ALIP.

    Parameters
    ----------
    counts : {"inputs", "secret", "secret and inputs"}
        What takes the place of S.

    Raises
    ------
    SpecError
        If ``counts`` is none of these.

    Examples
    --------
    >>> round(funnel.measures.maximal_leakage(joint, protocol), 4)
    0.2647
    """
    law = counted_distribution(joint, protocol, counts)
    law = law[law.sum(axis=1) > 0]
    return max(0.0, math.log((law / law.sum(axis=1, keepdims=True)).max(axis=0).sum()))
