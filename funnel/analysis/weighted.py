"""Weighted estimates from a published release: from its records, its protocol, and what is told of the weights."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from funnel.analysis.estimated import RARE, departed_shares, noisy_shares, published_limits, published_protocol
from funnel.errors import DataError, SpecError
from funnel.estimation.counted import output_counts_by
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
    counts = output_counts_by(folder.data, protocol)[()]
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
        beside=noisy_shares(folder, protocol, int(counts.sum())),
        departed=departed_shares(folder, protocol, counts),
        noise=count_noise(folder, protocol) if protocol.is_invariant else None,
    )
    plain = found()
    if not (untold := np.isnan(plain.errors).sum()):
        return plain
    most = published_limits(folder, protocol, int(counts.sum()))
    rare = {protocol.inputs.symbols[x]: float(most[x]) for x in np.flatnonzero(most <= RARE)}
    if not rare or sum(rare.values()) >= 1 or len(rare) == len(most):
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
    try:
        fields: list[dict[str, Any]] = json.loads(folder.package.read_bytes())["resources"][-1]["schema"]["fields"]
        named = [(field["name"], field["funnel:numbers"]) for field in fields if "funnel:numbers" in field]
        told = [(name, numbers) for name, numbers in named if numbers.get("surveyWeight")]
        if not told:
            raise SpecError(
                "the release has no column of survey weights, so nothing can be weighted; its publisher says "
                "weight = COLUMN in the spec"
            )
        ((name, numbers),) = told
        means = numbers.get("means", {})
        classes = {
            label: (float(means.get(label, (low + high) / 2)), float(low), float(high))
            for label, (low, high) in numbers["intervals"].items()
        }
    except (OSError, ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
        raise DataError(f"the data package of {folder.root.name} cannot be read; fetch the release again") from error
    return str(name), classes
