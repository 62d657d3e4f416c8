"""What a channel is worth for estimates of every column and every two crossed: variances with it and without."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from funnel.alphabet import Alphabet
from funnel.estimation.expected_errors import expected_errors
from funnel.estimation.value_cells import cells_of
from funnel.joint import FloatArray, Joint
from funnel.protocol import Protocol


def utility_of_estimates(joint: Joint, protocol: Protocol) -> float | None:
    """The share of the records that would tell as much if they were published as they are.

    Of independent records: the variances that estimates of the shares of all cells of these tables have without a
    protocol, over those that they have with it; each table counts alike. Between 0, where some cell cannot be told, and
    1, where nothing is changed.

    Returns
    -------
    float or None
        None where there are too many values, as `funnel.estimation.share_information.ShareInformation.of` says.
    """
    found = expected_errors(joint, protocol)
    if found is None:
        return None
    sampled = sum(float((table.shares * (1 - table.shares)).sum()) for table in found.tables)
    added = sum(float(joint.n * (table.errors**2).sum()) for table in found.tables)
    if np.isnan(added):
        return 0.0
    return sampled / (sampled + added) if sampled > 0 else 1.0


def wanted_shares(inputs: Alphabet, shares: FloatArray) -> FloatArray:
    """What a design should tell: of the values that occur, every column and every two, each table alike.

    Parameters
    ----------
    inputs : Alphabet
    shares : ndarray, shape (len(inputs),)

    Returns
    -------
    ndarray, shape (a, r)
        For the a values of positive share, ``wanted`` with ``L = wanted wantedᵀ`` in units of √p: the variances of
        an estimate for one record sum to ``tr(L J⁻¹)`` less what `certain` says; its trace is 1.
    """
    occurring = np.flatnonzero(shares > 0)
    roots = np.sqrt(shares[occurring])
    tables = _tables(inputs)
    whole = np.zeros((len(roots), len(roots)))
    for columns in tables:
        of = cells_of(inputs, columns, occurring)[1]
        whole += (of[:, np.newaxis] == of) * np.outer(roots, roots) / len(tables)
    values, directions = np.linalg.eigh(whole)
    kept = values > 1e-12 * values[-1]
    return np.asarray(directions[:, kept] * np.sqrt(values[kept]))


def certain(inputs: Alphabet, shares: FloatArray) -> float:
    """What of ``tr(L J⁻¹)`` is no variance, since shares sum to one: ``Σ π²`` over the cells, tables alike."""
    occurring = np.flatnonzero(shares > 0)
    tables = _tables(inputs)
    return float(
        sum((np.bincount(cells_of(inputs, columns, occurring)[1], shares[occurring]) ** 2).sum() for columns in tables)
        / len(tables)
    )


def _tables(inputs: Alphabet) -> list[tuple[str, ...]]:
    return [*((column,) for column in inputs.columns), *combinations(inputs.columns, 2)]
