"""Utility and leakage measures that are no guarantees, in nats, for a protocol over a joint law."""

from __future__ import annotations

import numpy as np

from funnel.joint import FloatArray, Joint
from funnel.protocol import Protocol


def input_output_law(joint: Joint, protocol: Protocol) -> FloatArray:
    """P(x, y), shape (a, b), for the joint's input x, also when the protocol reads the secret.

    A protocol that reads (s, x) is judged by what its output says about x alone, through
    ``P(y|x) = Σ_s p(s|x) Q(y|s, x)`` (METHOD section 3).
    """
    read = joint.read_by(protocol.inputs.columns)
    weights = protocol.weights_for(read.inputs).astype(np.float64) / float(protocol.denominator)
    law = (weights * read.p_input).T
    c, a = joint.counts.shape
    return np.asarray(law if read is joint else law.reshape(c, a, -1).sum(axis=0))


def secret_output_law(joint: Joint, protocol: Protocol) -> FloatArray:
    """P(s, y), shape (c, b)."""
    read = joint.read_by(protocol.inputs.columns)
    weights = protocol.weights_for(read.inputs).astype(np.float64) / float(protocol.denominator)
    return np.asarray(read.p @ weights.T)


def _information(law: FloatArray) -> float:
    """Mutual information of a joint law given as a matrix, never below zero."""
    outer = np.outer(law.sum(axis=1), law.sum(axis=0))
    cells = law > 0
    return max(0.0, float((law[cells] * np.log(law[cells] / outer[cells])).sum()))


def mutual_information(joint: Joint, protocol: Protocol) -> float:
    """Utility I(X;Y) in nats: what an output tells about the published columns, whether or not the secret is read."""
    return _information(input_output_law(joint, protocol))


def normalised_mutual_information(joint: Joint, protocol: Protocol) -> float:
    """I(X;Y) / H(X), between 0 and 1; 0 where X is constant and there is nothing to tell."""
    return min(1.0, mutual_information(joint, protocol) / joint.entropy) if joint.entropy > 0 else 0.0


def secret_information(joint: Joint, protocol: Protocol) -> float:
    """Average leakage I(S;Y) in nats, the measure of the original Privacy Funnel (PF problem 1)."""
    return _information(secret_output_law(joint, protocol))


def lift(joint: Joint, protocol: Protocol) -> FloatArray:
    """l(s, y) = P(s|y) / P(s), shape (c, b); nan where s or y never occurs (METHOD section 1)."""
    law = secret_output_law(joint, protocol)
    outer = np.outer(joint.p_secret, law.sum(axis=0))
    return np.asarray(np.divide(law, outer, out=np.full(law.shape, np.nan), where=outer > 0))


def posterior(joint: Joint, protocol: Protocol) -> FloatArray:
    """P(x|y), shape (b, a): what an output says about the published columns; nan for outputs that never occur."""
    law = input_output_law(joint, protocol).T
    totals = law.sum(axis=1, keepdims=True)
    return np.asarray(np.divide(law, totals, out=np.full(law.shape, np.nan), where=totals > 0))


def guess_accuracy(joint: Joint, protocol: Protocol) -> float:
    """Accuracy of the best guess of x from y: Σ_y max_x P(x, y)."""
    return float(input_output_law(joint, protocol).max(axis=0).sum())
