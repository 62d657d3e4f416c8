"""Weighted estimates from a published release: from its records, its protocol, and what is told of the weights."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from funnel.analysis.estimated import published_evidence, published_numbers, published_protocol, rare_values
from funnel.errors import SpecError
from funnel.estimation.weighted import WeightedEstimate, estimate_weighted
from funnel.release.counted_as_usual import count_noise
from funnel.release.layout import ReleaseFolder


def estimate_release_weighted(
    folder: ReleaseFolder,
    by: str | Sequence[str] | None = None,
    *,
    sampling: bool = False,
    design_effect: float = 1.0,
    confidence: float = 0.95,
) -> WeightedEstimate:
    """`funnel.estimation.weighted.estimate_weighted` of a whole release that publishes classes of survey weights.

    Noisy counts and rare values are taken as `estimate_release` takes them.

    Parameters
    ----------
    folder : ReleaseFolder
    by, sampling, design_effect, confidence
        As of `funnel.estimation.weighted.estimate_weighted`.

    Raises
    ------
    DataError
        If the records are not those of the protocol, or a document cannot be read.
    SpecError
        If the release has no column of weights, or a column is not known.
    """
    weight, classes = weight_classes(folder)
    if folder.classes.is_file():
        raise SpecError(
            f"shares are not weighted of whole records yet; weight them by {weight!r} as usual, and load_release(…)."
            "variance_ratio gives r"
        )
    protocol, rounded = published_protocol(folder)
    of_class = {symbol[protocol.inputs.columns.index(weight)] for symbol in protocol.inputs.symbols}
    known = {label: told for label, told in classes.items() if label in of_class}
    counts, beside = published_evidence(folder, protocol)
    found = partial(
        estimate_weighted,
        counts,
        protocol,
        weight,
        known,
        by,
        sampling=sampling,
        design_effect=design_effect,
        confidence=confidence,
        rounded=rounded,
        noise=count_noise(folder, protocol) if protocol.is_invariant else None,
        **beside,
    )
    plain = found()
    if not (untold := np.isnan(plain.errors).sum()):
        return plain
    if not (rare := rare_values(folder, protocol, int(counts.sum()))):
        return plain
    better = found(at_most=rare)
    return better if np.isnan(better.errors).sum() < untold else plain


def weight_classes(folder: ReleaseFolder) -> tuple[str, dict[str, tuple[float, float, float]]]:
    """The column of survey weights of a release, and of each of its classes the mean, the least and the largest.

    Raises
    ------
    DataError
        If the data package cannot be read.
    SpecError
        If the release has no such column.
    """
    for name, numbers in published_numbers(folder).items():
        if numbers.surveyWeight:
            of_class = numbers.intervals.items()
            return name, {one: (numbers.means.get(one, sum(ends) / 2), *ends) for one, ends in of_class}
    raise SpecError(
        "the release has no column of survey weights, so nothing can be weighted; its publisher says weight = COLUMN "
        "in the spec"
    )
