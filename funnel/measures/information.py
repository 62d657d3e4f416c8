"""Mutual information, in nats, and the best guess: what outputs tell of values on average."""

from __future__ import annotations

import numpy as np

from funnel.joint import FloatArray, Joint
from funnel.measures.distributions import Counted, counted_distribution, secret_output_distribution
from funnel.protocol import Protocol


def mutual_information(joint: Joint, protocol: Protocol, counts: Counted = "inputs") -> float:
    """Information in nats that an output gives about the counted columns; by default the utility I(X;Y).

    Parameters
    ----------
    counts : {"inputs", "secret", "secret and inputs"}
        I(X;Y), what is told about the published columns whether or not the secret is read, the utility of PF;
        I(S;Y), the leakage of PF problem 1; or I((S,X);Y), the utility of RLDP. The last equals I(X;Y) for protocols
        that read X only, since then S – X – Y is a Markov chain.

    Returns
    -------
    float
        Never below zero. Symbols and outputs that never occur contribute nothing.

    Raises
    ------
    SpecError
        If ``counts`` is none of these.

    Examples
    --------
    >>> round(funnel.measures.mutual_information(joint, protocol), 4)
    0.2382
    """
    if protocol.is_sparse and protocol.inputs.columns == joint.inputs.columns:
        return _sparse_information(joint.occurring, protocol, counts)
    return information_of(counted_distribution(joint, protocol, counts))


def normalised_mutual_information(joint: Joint, protocol: Protocol, counts: Counted = "inputs") -> float:
    """I(X;Y) / H(X), between 0 and 1 (NMI of ALIP and RLDP); 0 where X is constant and there is nothing to tell.

    Parameters
    ----------
    counts : {"inputs", "secret", "secret and inputs"}
        What takes the place of X, above and below the line (`mutual_information`).

    Raises
    ------
    SpecError
        If ``counts`` is none of these.

    Examples
    --------
    >>> round(funnel.measures.normalised_mutual_information(joint, protocol), 4)
    0.2258
    """
    if counts == "inputs":
        # The joint's own entropy comes from the counts, without the rounding of sums over outputs.
        whole = joint.entropy
        return min(1.0, mutual_information(joint, protocol) / whole) if whole > 0 else 0.0
    distribution = counted_distribution(joint, protocol, counts)
    whole = _entropy(distribution.sum(axis=1))
    return min(1.0, information_of(distribution) / whole) if whole > 0 else 0.0


def secret_information(joint: Joint, protocol: Protocol) -> float:
    """Average leakage I(S;Y) in nats, the measure of the original Privacy Funnel (PF problem 1).

    At most εu under (εl, εu)-ALIP (ALIP proposition 1.1).

    Examples
    --------
    >>> round(funnel.measures.secret_information(joint, protocol), 4)
    0.0494
    """
    return mutual_information(joint, protocol, "secret")


def information_of(distribution: FloatArray) -> float:
    """Mutual information of a joint distribution given as a matrix, never below zero."""
    outer = np.outer(distribution.sum(axis=1), distribution.sum(axis=0))
    cells = distribution > 0
    return max(0.0, float((distribution[cells] * np.log(distribution[cells] / outer[cells])).sum()))


def _sparse_information(joint: Joint, protocol: Protocol, counts: Counted) -> float:
    """The same from the weights that are not zero, of a protocol that reads X; O(c) for each of them."""
    weights = protocol.sparse_for(joint.inputs)
    channel = weights.values / np.float64(protocol.denominator)
    here = joint.p_input[weights.inputs] * channel
    q = np.bincount(weights.outputs, weights=here, minlength=len(protocol.outputs))
    if counts != "secret":
        # The secret is told about through X alone.
        cells = here > 0
        return max(0.0, float((here[cells] * np.log(channel[cells] / q[weights.outputs[cells]])).sum()))
    return information_of(secret_output_distribution(joint, protocol))


def _entropy(distribution: FloatArray) -> float:
    seen = distribution[distribution > 0]
    return max(0.0, float(-(seen * np.log(seen)).sum()))


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
        return min(1.0, float(most.sum()))
    # Sums of floats may be above 1 by their last digit, where every guess is right.
    return min(1.0, float(counted_distribution(joint, protocol, counts).max(axis=0).sum()))
