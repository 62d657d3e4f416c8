"""Distributions of outputs with the published columns, the secret, or both, and how outputs change beliefs."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

from funnel.errors import SpecError
from funnel.joint import FloatArray, Joint
from funnel.protocol import Protocol, WeightArray

#: The columns a measure counts: the published columns X, the secret S, or both together.
Counted = Literal["inputs", "secret", "secret and inputs"]


def read_distribution(joint: Joint, protocol: Protocol) -> tuple[Joint, WeightArray]:
    """The joint distribution over what the protocol reads, and its weights for these inputs, shape (b, |inputs|).

    Raises
    ------
    DataError
        If the protocol reads neither the joint's inputs nor its secret and inputs.
    """
    read = joint.read_by(protocol.inputs.columns)
    return read, protocol.weights_for(read.inputs)


def input_output_distribution(joint: Joint, protocol: Protocol) -> FloatArray:
    """P(x, y), shape (a, b), for the joint's input x, also when the protocol reads the secret.

    A protocol that reads (s, x) is judged by what its output says about x alone, through
    ``P(y|x) = Σ_s p(s|x) Q(y|s, x)`` (METHOD section 3).

    Examples
    --------
    >>> funnel.measures.input_output_distribution(joint, protocol).round(4).tolist()
    [[0.2719, 0.0641, 0.0641], [0.0641, 0.2719, 0.0641], [0.032, 0.032, 0.1359]]
    """
    read, distribution = _distribution_of_read(joint, protocol)
    c, a = joint.counts.shape
    return distribution if read is joint else np.asarray(distribution.reshape(c, a, -1).sum(axis=0))


def secret_output_distribution(joint: Joint, protocol: Protocol) -> FloatArray:
    """P(s, y), shape (c, b).

    Examples
    --------
    >>> funnel.measures.secret_output_distribution(joint, protocol).round(4).tolist()
    [[0.2199, 0.116, 0.0641], [0.148, 0.252, 0.2]]
    """
    if protocol.is_sparse and protocol.inputs.columns == joint.inputs.columns:
        entries = protocol.sparse_for(joint.inputs)
        channel, b = entries.values / np.float64(protocol.denominator), len(protocol.outputs)
        return np.array(
            [np.bincount(entries.outputs, weights=p[entries.inputs] * channel, minlength=b) for p in joint.p]
        )
    read, weights = read_distribution(joint, protocol)
    return np.asarray(read.p @ _channel(weights, protocol).T)


def record_output_distribution(joint: Joint, protocol: Protocol) -> FloatArray:
    """P((s, x), y), shape (c·a, b), s varying slowest, whether or not the protocol reads the secret.

    Examples
    --------
    >>> distribution = funnel.measures.record_output_distribution(joint, protocol)
    >>> distribution.shape, distribution[0].round(4).tolist()
    ((6, 3), [0.2039, 0.048, 0.048])
    """
    read, distribution = _distribution_of_read(joint, protocol)
    if read is not joint:
        return distribution
    channel = _channel(protocol.weights_for(joint.inputs), protocol)
    return np.asarray((joint.p[:, :, None] * channel.T).reshape(joint.p.size, -1))


def counted_distribution(joint: Joint, protocol: Protocol, counts: Counted) -> FloatArray:
    """The joint distribution of the counted columns and the output, shape (number of counted symbols, b).

    Parameters
    ----------
    counts : {"inputs", "secret", "secret and inputs"}
        P(x, y), P(s, y) or P((s, x), y).

    Raises
    ------
    SpecError
        If ``counts`` is none of these.
    DataError
        If the protocol reads other columns than the joint distribution has.

    Examples
    --------
    >>> funnel.measures.counted_distribution(joint, protocol, "secret").round(4).tolist()
    [[0.2199, 0.116, 0.0641], [0.148, 0.252, 0.2]]
    """
    if counts == "inputs":
        return input_output_distribution(joint, protocol)
    if counts == "secret":
        return secret_output_distribution(joint, protocol)
    if counts == "secret and inputs":
        return record_output_distribution(joint, protocol)
    raise SpecError(f"counts must be one of {', '.join(map(repr, get_args(Counted)))}, not {counts!r}")


def lift(joint: Joint, protocol: Protocol) -> FloatArray:
    """l(s, y) = P(s|y) / P(s), shape (c, b); nan where s or y never occurs (ALIP (1), METHOD section 1).

    Examples
    --------
    >>> funnel.measures.lift(joint, protocol).round(4).tolist()
    [[1.4941, 0.7882, 0.6065], [0.6706, 1.1412, 1.2623]]
    """
    distribution = secret_output_distribution(joint, protocol)
    outer = np.outer(joint.p_secret, distribution.sum(axis=0))
    return np.asarray(np.divide(distribution, outer, out=np.full(distribution.shape, np.nan), where=outer > 0))


def _distribution_of_read(joint: Joint, protocol: Protocol) -> tuple[Joint, FloatArray]:
    read, weights = read_distribution(joint, protocol)
    return read, np.asarray((_channel(weights, protocol) * read.p_input).T)


def _channel(weights: WeightArray, protocol: Protocol) -> FloatArray:
    return weights.astype(np.float64) / float(protocol.denominator)
