"""Noise of the counts that a release was made for, value by value, as its public files tell it."""

from __future__ import annotations

import numpy as np

from funnel.alphabet import Alphabet
from funnel.errors import DataError
from funnel.estimation.plain_counts import CountNoise
from funnel.frequencies.means import variances_of_noise
from funnel.frequencies.noise import discrete_laplace_variance
from funnel.frequencies.public_counts import Frequencies
from funnel.joint import IntArray
from funnel.protocol import Protocol
from funnel.release.frequencies_document import FrequenciesDocument
from funnel.release.layout import ReleaseFolder


def input_of_counts(public: Frequencies, inputs: Alphabet) -> IntArray | None:
    """Which input of a protocol each noisy count (secret by secret) is of, -1 where of none; None if not all have one.

    Parameters
    ----------
    public : Frequencies
        Of c secrets and a inputs.
    inputs : Alphabet

    Returns
    -------
    ndarray of int, shape (c * a,), or None
    """
    joint = public.joint
    columns = (*joint.secret.columns, *joint.inputs.columns)
    if not set(inputs.columns) <= set(columns):
        return None
    places = [columns.index(column) for column in inputs.columns]
    order = {symbol: place for place, symbol in enumerate(inputs.symbols)}
    cells = ((*s, *x) for s in joint.secret.symbols for x in joint.inputs.symbols)
    found = np.array([order.get(tuple(cell[i] for i in places), -1) for cell in cells])
    return found if set(found.tolist()) >= set(range(len(order))) else None


def count_noise(folder: ReleaseFolder, protocol: Protocol) -> CountNoise | None:
    """Noise of the counts that an invariant protocol was made for, by input; None where there is none.

    Later versions about the same people are put right by noisy means and noisy counts: the whole noise of both is left.

    Raises
    ------
    DataError
        If the public frequencies cannot be read, or are not those of the protocol.
    """
    public = FrequenciesDocument.read(folder.frequencies).frequencies if folder.frequencies.is_file() else None
    if public is None or public.noise is None:
        return None
    if public.means is not None:
        found = dict(zip(public.joint.inputs.symbols, variances_of_noise(public.means, public), strict=True))
        return CountNoise(np.array([found[symbol] for symbol in protocol.outputs.symbols]), is_whole=True)
    of = input_of_counts(public, protocol.inputs)
    if of is None:
        raise DataError("the noisy counts are not those of the protocol; take the files of one release")
    counts = np.bincount(of[of >= 0], minlength=len(protocol.inputs)).astype(np.float64)
    return CountNoise(discrete_laplace_variance(public.noise.scale) * counts)
