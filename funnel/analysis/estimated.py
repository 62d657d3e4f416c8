"""Estimates from a published release: from its records, its protocol, and what is published of rare values."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from pydantic import TypeAdapter

from funnel.errors import DataError, SpecError
from funnel.estimation.combined import NoisyShares
from funnel.estimation.counted import output_counts_by
from funnel.estimation.departed_shares import DepartedShares
from funnel.estimation.estimating import estimate
from funnel.estimation.fit import Method
from funnel.estimation.means import QUARTILES, estimate_numbers, plain_numbers
from funnel.estimation.number_categories import StandFor
from funnel.estimation.number_estimate import NumberEstimate
from funnel.estimation.plain_shares import plain_shares
from funnel.estimation.regression import LinearSource
from funnel.estimation.share_estimate import Estimate
from funnel.estimation.value_cells import column_names
from funnel.frequencies.noise import discrete_laplace_variance
from funnel.history.corrected import PARTS
from funnel.joint import FloatArray, IntArray
from funnel.protocol import Protocol
from funnel.release.counted_as_usual import counted_as_usual, input_of_counts
from funnel.release.frequencies_document import FrequenciesDocument
from funnel.release.layout import ReleaseFolder
from funnel.release.protocol_document import ProtocolDocument
from funnel.release.public.rounding import share_step

# Values that may be more common than this are left for the records to tell.
RARE = 0.005


def estimate_release(
    folder: ReleaseFolder,
    by: str | Sequence[str] | None = None,
    *,
    within: str | Sequence[str] = (),
    method: Method | None = None,
    sampling: bool = False,
    confidence: float = 0.95,
) -> Estimate:
    """`funnel.estimate` of a whole release, with what is published of its true values beside the records.

    Records of an invariant release are counted as usual. Of others, where noisy counts of true values are
    published, these and the records are combined; elsewhere values are taken to be rare where the records alone
    leave something untold: those that are published to be `RARE` at most, and no more of them than it takes for all
    that can be told then. A method that is asked for is one of the records alone.

    Parameters
    ----------
    folder : ReleaseFolder
    by, within, method, sampling, confidence
        As of `funnel.estimate`.

    Raises
    ------
    DataError
        If the records are not those of the protocol, or a document cannot be read.
    SpecError
        If a column is not known, or there are too many values.
    """
    protocol, rounded = published_protocol(folder)
    if folder.classes.is_file() or (protocol.is_invariant and method in (None, "count")):
        _require_counts(method)
        plain, _ = counted_as_usual(folder)
        columns = tuple(column for column in plain.values.columns if column not in column_names(within))
        asked = column_names(by) or (() if folder.classes.is_file() else columns)
        return plain_shares(plain, asked, column_names(within), sampling=sampling, confidence=confidence)
    counts, known = published_evidence(folder, protocol, method is not None)
    beside = known.pop("beside")
    if beside is not None:
        method = "em"
    settings: dict[str, Any] = {"within": within, "method": method, "sampling": sampling, "confidence": confidence}
    taking = partial(estimate, counts, protocol, by, rounded=rounded, **settings, **known)
    found = taking(beside=beside)
    if not _untold(found):
        return found
    rare = rare_values(folder, protocol, int(counts.sum()))
    if not rare or _untold(best := taking(at_most=rare)) >= _untold(found):
        return found
    # The records tell some of these by themselves, once others are settled.
    for symbol in reversed(list(rare)):
        fewer = {one: share for one, share in rare.items() if one != symbol}
        if fewer and _untold(without := taking(at_most=fewer)) < _untold(best):
            rare, best = fewer, without
    return best


def _require_counts(method: Method | None) -> None:
    if method not in (None, "count"):
        raise SpecError(f"whole records are counted as usual; take the method {method!r} out")


def linear_source(folder: ReleaseFolder, sampling: bool) -> LinearSource:
    """What a release tells of true shares: by plain counts, or by its channel and noisy counts.

    Raises
    ------
    DataError
        If the records are not those of the protocol, or a document cannot be read.
    SpecError
        If there are too many values.
    """
    protocol, rounded = published_protocol(folder)
    if folder.classes.is_file() or protocol.is_invariant:
        return LinearSource.of_plain(counted_as_usual(folder)[0], sampling)
    counts, known = published_evidence(folder, protocol)
    return LinearSource.of_outputs(counts, protocol, sampling, rounded=rounded, **known)


def published_protocol(folder: ReleaseFolder) -> tuple[Protocol, float]:
    """What readers compute with, and by how much its probabilities are off at most, as it says.

    Raises
    ------
    DataError
        If it cannot be read.
    """
    content = folder.protocol.read_bytes()
    protocol = Protocol.from_json(content)
    # A protocol on its own, beside records, is what they were drawn by.
    if "rounded" not in json.loads(content):
        return protocol, 0.0
    return protocol, ProtocolDocument.read(folder.protocol).rounded or 0.0


def estimate_numbers_of(
    folder: ReleaseFolder,
    of: str,
    by: str | Sequence[str] = (),
    *,
    numbers: StandFor | None = None,
    quantiles: Sequence[float] = QUARTILES,
    method: Method | None = None,
    sampling: bool = False,
    confidence: float = 0.95,
) -> NumberEstimate:
    """`funnel.estimation.means.estimate_numbers` of a whole release, by the intervals in its data package.

    Values are taken to be rare as `estimate_release` takes them for shares of the same columns.

    Parameters
    ----------
    folder : ReleaseFolder
    of, by, numbers, quantiles, method, sampling, confidence
        As of `funnel.estimation.means.estimate_numbers`; what ``numbers`` says goes before what the data package tells.

    Raises
    ------
    DataError
        If the records are not those of the protocol, or a document cannot be read.
    SpecError
        If a column is not known, or its values stand for no numbers.
    """
    columns, stand_for = column_names(by), {**intervals_of(folder, of), **(numbers or {})}
    asked: dict[str, Any] = {
        "numbers": stand_for,
        "quantiles": quantiles,
        "sampling": sampling,
        "confidence": confidence,
    }
    protocol, rounded = published_protocol(folder)
    if folder.classes.is_file() or (protocol.is_invariant and method in (None, "count")):
        _require_counts(method)
        plain, _ = counted_as_usual(folder)
        return plain_numbers(plain, of, columns, **asked)
    counts, known = published_evidence(folder, protocol, method is not None)
    taking = partial(estimate_numbers, counts, protocol, of, columns, method=method, rounded=rounded, **asked, **known)
    found = taking()
    if not np.isnan(found.mean_errors).any():
        return found
    rare = dict(estimate_release(folder, (of, *columns), method=method, sampling=sampling).rare)
    best = taking(at_most=rare) if rare else found
    return best if np.isnan(best.mean_errors).sum() < np.isnan(found.mean_errors).sum() else found


def intervals_of(folder: ReleaseFolder, column: str) -> Mapping[str, tuple[float, float]]:
    """The interval of every category of a column, as the data package tells it; empty where it tells none."""
    told = published_numbers(folder).get(column)
    return {} if told is None else told.intervals


@dataclass(frozen=True)
class PublishedNumbers:
    """What the data package tells of the numbers of a column: intervals and means of categories; by default nothing."""

    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    means: Mapping[str, float] = field(default_factory=dict)
    whole: bool = False
    surveyWeight: bool = False  # noqa: N815 - as in the data package


def published_numbers(folder: ReleaseFolder) -> dict[str, PublishedNumbers]:
    """The numbers of every column of a release that are told of.

    Raises
    ------
    DataError
        If the data package cannot be read.
    """
    try:
        package = json.loads(folder.package.read_bytes())
        fields = [one for resource in package.get("resources", []) for one in resource["schema"]["fields"]]
        told = {one["name"]: one["funnel:numbers"] for one in fields if "funnel:numbers" in one}
        return TypeAdapter(dict[str, PublishedNumbers]).validate_python(told)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"the data package of {folder.root.name} cannot be read; fetch the release again") from error


def _untold(found: Estimate) -> int:
    return int(np.isnan(found.errors).sum())


def published_evidence(
    folder: ReleaseFolder, protocol: Protocol, records_alone: bool = False
) -> tuple[IntArray, dict[str, Any]]:
    """Counts (b,) of the records of a release by output, and what estimates take of what is published beside these."""
    counts = output_counts_by(folder.data, protocol)[()]
    beside = None if records_alone else noisy_shares(folder, protocol, int(counts.sum()))
    return counts, {"beside": beside, "departed": departed_shares(folder, protocol, counts)}


def rare_values(folder: ReleaseFolder, protocol: Protocol, rows: int) -> dict[tuple[str, ...], float]:
    """Values that are published to be rare, by their largest share, the rarest first; none if they may be everybody."""
    most = published_limits(folder, protocol, rows)
    rare = {protocol.inputs.symbols[x]: float(most[x]) for x in np.argsort(most, kind="stable") if most[x] <= RARE}
    return {} if sum(rare.values()) >= 1 else rare


def noisy_shares(folder: ReleaseFolder, protocol: Protocol, rows: int) -> NoisyShares | None:
    """What the noisy counts of a release tell of its true values; None where there are none, or they are not needed.

    Every count has the variance of the discrete Laplace distribution; an input of the protocol has those of all its
    counts.

    Parameters
    ----------
    folder, protocol, rows
        As of `published_limits`.
    """
    if protocol.is_sparse or protocol.is_invariant or not folder.frequencies.exists():
        return None
    said = FrequenciesDocument.read(folder.frequencies)
    public = said.frequencies
    if said.rows is not None or public.noisy is None or public.noise is None:
        # Of units with several rows only the first ones are counted.
        return None
    of, inputs = input_of_counts(public, protocol.inputs), len(protocol.inputs)
    if of is None or (of < 0).any():
        return None
    counts = np.bincount(of, public.noisy.ravel(), inputs).astype(np.float64)
    return NoisyShares.of_counts(counts, np.bincount(of, minlength=inputs), public.noise.scale, rows)


def departed_shares(folder: ReleaseFolder, protocol: Protocol, counts: IntArray) -> DepartedShares | None:
    """By how much published values are more common than the protocol gives them, as it is published; None if it is not.

    ``counts`` (b,) are of the records of the release.
    """
    if protocol.is_invariant or not folder.frequencies.exists():
        return None
    told = FrequenciesDocument.read(folder.frequencies).frequencies.departures
    if told is None:
        return None
    records, variance = float(counts.sum()) * PARTS, discrete_laplace_variance(told.scale)
    return DepartedShares.of_counts(told.counts.astype(np.float64), variance, records)


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
    elif document.frequencies.kind.is_noisy:
        return nothing
    else:
        symbols = document.prior.symbols
        most = np.array(document.prior.probabilities) + share_step(rows)
    known = dict(zip(symbols, np.minimum(most, 1.0).tolist(), strict=True))
    return np.array([known.get(symbol, 1.0) for symbol in protocol.inputs.symbols])
