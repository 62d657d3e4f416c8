"""Leakage to guessers, and Sibson and Arimoto information of order α, from averages (1) to guesses (∞), in nats."""

from __future__ import annotations

import math

import numpy as np

from funnel.joint import FloatArray, Joint
from funnel.measures.distributions import Counted, counted_distribution
from funnel.measures.information import mutual_information
from funnel.measures.lifts import checked_order, log_moment
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


def sibson_information(joint: Joint, protocol: Protocol, alpha: float, counts: Counted = "secret") -> float:
    """Sibson information of order α, ``α/(α−1) ln Σ_y (Σ_s p_s P(y|s)^α)^(1/α)``, in nats.

    How much one output can raise the success of an adversary whose aim is α-tunable; grows with α from mutual
    information (α = 1) to maximal leakage (α = ∞), and is at most εu under (εl, εu)-ALIP. ALIP proposition 1.3 prints
    the weaker ``α/(α−1) εu`` for α > 1 (METHOD section 2).

    Parameters
    ----------
    alpha : float
        Order above 0; ``math.inf`` for the limit.
    counts : {"inputs", "secret", "secret and inputs"}
        What takes the place of S.

    Returns
    -------
    float
        At least 0. Symbols that never occur are excluded, outputs that never occur contribute nothing.

    Raises
    ------
    SpecError
        If α is not a number above 0 or ``counts`` is none of these.

    Examples
    --------
    >>> round(funnel.measures.sibson_information(joint, protocol, 2), 4)
    0.093
    """
    order = checked_order(alpha)
    if order == 1:
        return mutual_information(joint, protocol, counts)
    if math.isinf(order):
        return maximal_leakage(joint, protocol, counts)
    law, prior, marginal = _occurring(counted_distribution(joint, protocol, counts))
    given = law / marginal
    # Σ_s p_s l^α = Σ_s P(s|y) l^(α−1): in this form all exponents vanish together as α → 1.
    moments = log_moment(given, (order - 1) * _log(given / prior[:, None]))
    return max(0.0, _scaled_mean(marginal, moments, order) / (order - 1))


def arimoto_information(joint: Joint, protocol: Protocol, alpha: float, counts: Counted = "secret") -> float:
    """Arimoto information of order α, in nats: the fall of the Rényi entropy H_α(S) by an output.

    ``α/(α−1) ln Σ_y (Σ_s p^(α)_s P(y|s)^α)^(1/α)`` with the tilted prior ``p^(α)_s = p_s^α / Σ p_s^α`` (ALIP, proof of
    proposition 1.3); that is Sibson information of the tilted prior. Mutual information for α = 1, min-entropy leakage
    for α = ∞. At most εu under (εl, εu)-ALIP for every α, by Jensen's inequality and ``E_y l(s, y) = 1``; ALIP prints
    the weaker ``α/(α−1) εu``. Unlike Sibson's it need not grow with α.

    Parameters
    ----------
    alpha : float
        Order above 0; ``math.inf`` for the limit.
    counts : {"inputs", "secret", "secret and inputs"}
        What takes the place of S.

    Returns
    -------
    float
        At least 0. Symbols that never occur are excluded, outputs that never occur contribute nothing.

    Raises
    ------
    SpecError
        If α is not a number above 0 or ``counts`` is none of these.

    Examples
    --------
    >>> round(funnel.measures.arimoto_information(joint, protocol, 2), 4)
    0.0852
    """
    order = checked_order(alpha)
    if order == 1:
        return mutual_information(joint, protocol, counts)
    if math.isinf(order):
        return min_entropy_leakage(joint, protocol, counts)
    law, prior, marginal = _occurring(counted_distribution(joint, protocol, counts))
    given = law / marginal
    after = _scaled_mean(marginal, log_moment(given, (order - 1) * _log(given)), order)
    before = float(log_moment(prior, (order - 1) * _log(prior)))
    return max(0.0, (after - before) / (order - 1))


def _occurring(law: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The law without symbols and outputs that never occur, and its two marginals."""
    law = law[law.sum(axis=1) > 0][:, law.sum(axis=0) > 0]
    return law, law.sum(axis=1), law.sum(axis=0)


def _log(values: FloatArray) -> FloatArray:
    """Logarithms, 0 in place of ln 0: such cells have no weight."""
    return np.log(values, out=np.zeros(values.shape), where=values > 0)


def _scaled_mean(marginal: FloatArray, moments: FloatArray, order: float) -> float:
    """``α ln Σ_y q_y e^(m_y/α)``, also where m/α would overflow."""
    if order >= 1e-3:
        return order * float(log_moment(marginal, moments / order))
    top = moments.max()
    # Quotients that overflow to minus infinity belong to outputs that contribute nothing to the sum.
    with np.errstate(over="ignore"):
        share = (marginal * np.exp((moments - top) / order)).sum()
    return float(top + order * np.log(share))
