"""Estimates from a published release: from its records, its protocol, and what is published of rare values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, cast

import numpy as np

from funnel.estimation import Estimate, estimate
from funnel.estimation.counted import output_counts_by
from funnel.joint import FloatArray
from funnel.protocol import Protocol
from funnel.release.documents import ProtocolDocument
from funnel.release.frequencies_document import FrequenciesDocument
from funnel.release.layout import ReleaseFolder
from funnel.release.public.rounding import share_step
from funnel.release.reading import GroupedRelease, open_release

# Values that may be more common than this are left for the records to tell.
RARE = 0.005


def estimate_release(
    folder: ReleaseFolder,
    by: str | Sequence[str] | None = None,
    *,
    method: Literal["em", "inverse"] | None = None,
    sampling: bool = False,
    confidence: float = 0.95,
) -> Estimate:
    """`funnel.estimate` of a whole release, with values taken to be rare that are published to be.

    That is only done where the records alone leave something untold, with values that are published to be `RARE` at
    most, and with no more of them than it takes for all that can be told then.

    Parameters
    ----------
    folder : ReleaseFolder
    by, method, sampling, confidence
        As of `funnel.estimate`.

    Raises
    ------
    DataError
        If the records are not those of the protocol, or a document cannot be read.
    SpecError
        If a column is not known, or there are too many values.
    """
    if folder.is_grouped:
        opened = open_release(folder.root)
        # Which of the two it is, the same file says.
        channels = cast(GroupedRelease, opened).channels
        return estimate(folder.data, channels, by, method=method, sampling=sampling, confidence=confidence)
    protocol = Protocol.from_json(folder.protocol.read_bytes())
    counts = output_counts_by(folder.data, protocol)[()]
    found = estimate(counts, protocol, by, method=method, sampling=sampling, confidence=confidence)
    if not _untold(found):
        return found
    most = published_limits(folder, protocol, int(counts.sum()))
    rare = {protocol.inputs.symbols[x]: float(most[x]) for x in np.argsort(most, kind="stable") if most[x] <= RARE}

    def taking(values: dict[tuple[str, ...], float]) -> Estimate:
        return estimate(counts, protocol, by, method=method, sampling=sampling, confidence=confidence, at_most=values)

    if not rare or sum(rare.values()) >= 1 or _untold(best := taking(rare)) >= _untold(found):
        return found
    # The records tell some of these by themselves, once others are settled.
    for symbol in reversed(list(rare)):
        fewer = {one: share for one, share in rare.items() if one != symbol}
        if fewer and _untold(without := taking(fewer)) < _untold(best):
            rare, best = fewer, without
    return best


def _untold(found: Estimate) -> int:
    return int(np.isnan(found.errors).sum())


def published_limits(folder: ReleaseFolder, protocol: Protocol, rows: int) -> FloatArray:
    """The largest share of the records that each input can have by what is published beside them; 1 where nothing is.

    Of noisy counts these are their proven limits, all together but for a probability of beta; of counts that are only
    rounded, the next step.

    Parameters
    ----------
    folder : ReleaseFolder
    protocol : Protocol
        Of the release.
    rows : int
        Records of the release.

    Returns
    -------
    ndarray, shape (inputs,)
    """
    nothing = np.ones(len(protocol.inputs))
    document = ProtocolDocument.read(folder.protocol)
    if document.prior.columns != protocol.inputs.columns:
        return nothing
    if folder.frequencies.exists():
        said = FrequenciesDocument.read(folder.frequencies)
        bounds = said.frequencies.joint.bounds
        if said.rows is not None or bounds is None:
            # Of units with several rows only the first ones are counted.
            return nothing
        symbols, most = said.inputs.symbols, bounds.upper.sum(axis=0) / rows
    elif document.frequencies.protection == "noise":
        return nothing
    else:
        symbols = document.prior.symbols
        most = np.array(document.prior.probabilities) + share_step(rows)
    known = dict(zip(symbols, np.minimum(most, 1.0).tolist(), strict=True))
    return np.array([known.get(symbol, 1.0) for symbol in protocol.inputs.symbols])
