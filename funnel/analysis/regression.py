"""Regression on a whole release: by its records, its protocol and what is published beside them."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from funnel.analysis.estimated import intervals_of, noisy_shares, published_protocol
from funnel.estimation.counted import output_counts_by
from funnel.estimation.linear_source import LinearSource
from funnel.estimation.number_categories import StandFor
from funnel.estimation.regression import Family, Regression, regress
from funnel.release.counted_as_usual import counted_as_usual
from funnel.release.layout import ReleaseFolder


def regress_release(
    folder: ReleaseFolder,
    formula: str,
    *,
    family: Family = "linear",
    event: str | Collection[str] | None = None,
    numbers: Mapping[str, StandFor] | None = None,
    sampling: bool = True,
    confidence: float = 0.95,
) -> Regression:
    """`funnel.estimation.regression.regress` of a release; parameters as of `funnel.analysis.Release.regress`."""
    source = linear_source(folder, sampling)
    asked = numbers or {}
    stand_for = {column: {**intervals_of(folder, column), **asked.get(column, {})} for column in source.values.columns}
    return regress(
        source,
        formula,
        family=family,
        event=event,
        numbers={column: one for column, one in stand_for.items() if one},
        sampling=sampling,
        confidence=confidence,
    )


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
    counts = output_counts_by(folder.data, protocol)[()]
    beside = noisy_shares(folder, protocol, int(counts.sum()))
    return LinearSource.of_outputs(counts, protocol, sampling, beside, rounded=rounded)
