"""Linear estimates of the shares of cells: their weights, standard errors, and which cells they can tell."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from funnel.estimation.information import ShareInformation
from funnel.joint import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class LinearEstimate:
    """Weights for shares of outputs, such that cells of true values are told without bias.

    Attributes
    ----------
    weights : ndarray, shape (cells, b)
        ``weights @ Q`` is one for the values of a cell and zero for others, where the cell can be told.
    told : ndarray of bool, shape (cells,)
    sums : tuple of tuple of int
        Groups of cells that are told only together.
    """

    weights: FloatArray
    told: npt.NDArray[np.bool_]
    sums: tuple[tuple[int, ...], ...]

    @classmethod
    def of(
        cls, channel: FloatArray, outputs: FloatArray, reference: FloatArray, cell_of: IntArray, cells: int
    ) -> LinearEstimate | None:
        """Least squares weighted by a law of the outputs; None where there are too many values.

        Parameters
        ----------
        channel : ndarray, shape (b, a)
        outputs : ndarray, shape (b,)
            A law, all above zero: the estimate is efficient if it is that of the outputs.
        reference : ndarray, shape (a,)
            Shares, all above zero, in units of whose roots is decided what can be told.
        cell_of : ndarray of int, shape (a,)
        cells : int
        """
        information = ShareInformation.of(channel, reference, 1)
        if information is None:
            return None
        roots = np.sqrt(reference)
        scaled = channel * roots / np.sqrt(outputs)[:, np.newaxis]
        left, size, right = np.linalg.svd(scaled, full_matrices=False)
        kept = size > 1e-5 * size[0]
        inverse = (right[kept].T / size[kept]) @ left[:, kept].T / np.sqrt(outputs)
        weights = np.zeros((cells, len(channel)))
        np.add.at(weights, cell_of, roots[:, np.newaxis] * inverse)
        told = ~np.isnan(information.errors(cell_of, cells))
        return cls(weights, told, information.only_in_sum(cell_of, cells))


def variances(weights: FloatArray, channel: FloatArray, shares: FloatArray, n: int, sampling: bool) -> FloatArray:
    """Variances (k,) of linear estimates ``weights (k, b)`` of shares of outputs of n records.

    Parameters
    ----------
    weights : ndarray, shape (k, b)
    channel : ndarray, shape (b, a)
    shares : ndarray, shape (a,)
        Of the true values.
    n : int
    sampling : bool
        Whether the records are themselves a sample of what the estimate is about; else only their answers are random,
        and the records with each true value are as many as they are.
    """
    outputs = channel @ shares
    square = (weights**2) @ outputs
    means = weights @ channel
    certain = (weights @ outputs) ** 2 if sampling else (means**2) @ shares
    return np.asarray(np.maximum(0.0, square - certain) / n)
