"""Shares of records that a protocol publishes as they are, and values whose counts it publishes exactly."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from funnel.alphabet import Alphabet
from funnel.errors import SpecError
from funnel.joint import FloatArray, Joint
from funnel.measures.distributions import read_distribution
from funnel.protocol import Protocol
from funnel.sparse_weights import SparseWeights


@dataclass(frozen=True, eq=False)
class Unchanged:
    """Expected shares of records whose published values are their own, under the joint distribution asked about.

    Attributes
    ----------
    inputs : Alphabet
        The a symbols that the protocol reads, of the joint distribution.
    share : float
        P(Y = X): records published as they are, in every column.
    by_value : ndarray, shape (a,)
        P(Y = x | X = x) for every input x.
    by_column : ndarray, shape (columns,)
        P(Y_j = X_j) for every column j of ``inputs``; each at least ``share``.
    by_secret : ndarray, shape (c,)
        P(Y = X | S = s): whole records published as they are, by value of the secret; nan for secrets that never occur.
    exact : tuple of tuple of str
        Inputs that stay with probability 1 and that no other input becomes: a release shows their exact counts.
    exact_share : float
        The share of records that have one of these inputs.

    Examples
    --------
    >>> found = funnel.measures.unchanged(joint, funnel.fit("identity", joint, funnel.MutualInformation(1.0)))
    >>> dict(zip(found.inputs, found.by_value.tolist()))
    {'X0': 1.0, 'X1': 1.0, 'X2': 1.0}
    """

    inputs: Alphabet
    share: float
    by_value: FloatArray
    by_column: FloatArray
    by_secret: FloatArray
    exact: tuple[tuple[str, ...], ...]
    exact_share: float


def unchanged(joint: Joint, protocol: Protocol) -> Unchanged:
    """Expected shares of records that a protocol publishes as they are, for a protocol whose outputs are its inputs.

    Parameters
    ----------
    joint : Joint
        Over the columns that the protocol reads: its inputs, or its secret and its inputs.
    protocol : Protocol

    Raises
    ------
    SpecError
        If the outputs of the protocol are not its inputs.
    DataError
        If the protocol reads other columns than the joint distribution has.

    Notes
    -----
    An input counts as exact if no other input that occurs in ``joint`` can become it, decided on the integer weights.
    A record outside the alphabet of the protocol is never unchanged. O(weights above zero) time and memory.

    Examples
    --------
    >>> identity = funnel.fit("identity", joint, funnel.MutualInformation(1.0))
    >>> found = funnel.measures.unchanged(joint, identity)
    >>> found.share, found.by_column.tolist(), found.exact
    (1.0, [1.0], (('X0',), ('X1',), ('X2',)))
    """
    if protocol.outputs != protocol.inputs:
        raise SpecError(
            f"the outputs of this {protocol.mechanism or 'protocol'} are not its inputs, so no share of records "
            'unchanged is defined: fit an "invariant" protocol'
        )
    read, entries = _entries(joint, protocol)
    inputs, outputs = read.inputs, protocol.outputs
    weights = entries.values / np.float64(protocol.denominator)
    own = np.array([outputs.get(symbol) for symbol in inputs.symbols])
    stays = entries.outputs == own[entries.inputs]
    a, p = len(inputs), read.p_input
    by_value = np.bincount(entries.inputs[stays], weights[stays], a).astype(np.float64)
    # An output that is no input of the joint distribution is nobody's own value.
    inflow = ~stays & (p[entries.inputs] > 0)
    entered = np.bincount(entries.outputs[inflow], minlength=len(outputs)) > 0
    full = np.zeros(a, dtype=np.bool_)
    full[entries.inputs[stays & (entries.values == protocol.denominator)]] = True
    exact = full & (p > 0) & ~entered[own]
    true, shown = _codes(inputs, outputs)
    distribution = p[entries.inputs] * weights
    by_column = np.array(
        [distribution[shown[entries.outputs, j] == true[entries.inputs, j]].sum() for j in range(true.shape[1])]
    )
    prior = read.p_secret
    kept = read.p @ by_value
    return Unchanged(
        inputs,
        min(1.0, float(p @ by_value)),
        by_value,
        np.minimum(1.0, by_column),
        np.divide(kept, prior, out=np.full(len(prior), np.nan), where=prior > 0),
        tuple(inputs.symbols[x] for x in np.flatnonzero(exact)),
        float(p[exact].sum()),
    )


def _entries(joint: Joint, protocol: Protocol) -> tuple[Joint, SparseWeights]:
    if protocol.is_sparse:
        read = joint.read_by(protocol.inputs.columns)
        return read, protocol.sparse_for(read.inputs)
    read, weights = read_distribution(joint, protocol)
    return read, SparseWeights.of(weights)


def _codes(inputs: Alphabet, outputs: Alphabet) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The texts of both alphabets column by column as numbers, shapes (a, columns) and (b, columns)."""
    both = inputs.symbols + outputs.symbols
    codes = np.empty((len(both), len(inputs.columns)), dtype=np.int64)
    for j in range(codes.shape[1]):
        known: dict[str, int] = {}
        codes[:, j] = [known.setdefault(symbol[j], len(known)) for symbol in both]
    return codes[: len(inputs)], codes[len(inputs) :]
