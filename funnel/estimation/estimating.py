"""estimate: true frequencies from released records, with errors, and what cannot be told said so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from funnel.errors import SpecError
from funnel.estimation.cells import cells_of, named_columns
from funnel.estimation.counted import Released, output_counts_by
from funnel.estimation.fit import Fit, normal_quantile, too_many
from funnel.estimation.information import MOST_WORK
from funnel.estimation.layout import table
from funnel.estimation.left import intervals_left
from funnel.estimation.linear import variances
from funnel.estimation.rare import AtMost, RareValues
from funnel.estimation.told_channel import EffectiveChannels
from funnel.estimation.within import shares_within
from funnel.joint import FloatArray, IntArray
from funnel.protocol import Protocol

METHODS = ("em", "inverse")
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Together:
    """Cells whose shares are told only in sum.

    Attributes
    ----------
    cells : tuple of tuple of str
    frequency, error, lower, upper : float
        Of their sum.
    """

    cells: tuple[tuple[str, ...], ...]
    frequency: float
    error: float
    lower: float
    upper: float


@dataclass(frozen=True, eq=False)
class Estimate:
    """Estimated shares of true values, or of cells of them.

    Attributes
    ----------
    columns : tuple of str
        What is estimated: all columns the protocol reads, or those asked for.
    given : tuple of str
        Those of them that make groups, or that shares are within: shares are of the records with the same values there.
    cells : tuple of tuple of str
        Their values; by default in the order of ``protocol.inputs``.
    frequencies : ndarray, shape (cells,)
        Shares of all records, or of those of a group; nan where the records cannot tell.
    errors : ndarray, shape (cells,)
        Standard errors, nan where the records cannot tell.
    lower, upper : ndarray, shape (cells,)
        Intervals; of a share that cannot be told, what is left of it.
    together : tuple of Together
        Cells that are told only in sum.
    records : int
    method : "em" or "inverse"
    sampling : bool
        Whether errors are of the law that the records are a sample of, or of these records.
    confidence : float
        Of each interval by itself, or of all together.
    simultaneous : bool
        Whether it is of all together.
    rare : tuple of (tuple of str, float)
        Values that were taken to be rare, and the largest share of all records that each was said to have.

    Examples
    --------
    >>> import funnel, numpy as np
    >>> joint = funnel.Joint.from_counts([[300, 100], [100, 500]], inputs=["u", "v"])
    >>> print(funnel.estimate(np.array([430, 570]), funnel.fit("grr", joint, funnel.LIP(0.5)), sampling=True))
    ...                                                          # doctest: +ELLIPSIS
    X   share   error    from      to
    u  0.3...
    """

    columns: tuple[str, ...]
    given: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]
    frequencies: FloatArray
    errors: FloatArray
    lower: FloatArray
    upper: FloatArray
    together: tuple[Together, ...]
    records: int
    method: str
    sampling: bool
    confidence: float
    simultaneous: bool
    rare: tuple[tuple[tuple[str, ...], float], ...] = ()

    @property
    def about(self) -> str:
        """What errors are of, in one sentence."""
        randomness = (
            "errors are of the random answers and of drawing these records from a population"
            if self.sampling
            else "errors are of the random answers alone: the estimates are about these records"
        )
        together = ", all of them together" if self.simultaneous else ""
        groups = f"; shares are given {' and '.join(self.given)}" if self.given else ""
        told = f"{self.records:,} records{groups}; {randomness}; intervals at {self.confidence:.0%}{together}"
        if not self.rare:
            return told
        names = ", ".join(" · ".join(symbol) for symbol, _ in self.rare)
        most = sum(share for _, share in self.rare)
        return f"{told}; {names}: known to be rare, at most {most:.2%} in all, and taken for half of that"

    def to_dict(self) -> dict[str, Any]:
        """As JSON-ready values; what cannot be told is None."""

        def told(value: float) -> float | None:
            return None if np.isnan(value) else float(value)

        figures = zip(self.cells, self.frequencies, self.errors, self.lower, self.upper, strict=True)
        return {
            "columns": list(self.columns),
            "given": list(self.given),
            "records": self.records,
            "method": self.method,
            "sampling": self.sampling,
            "confidence": self.confidence,
            "simultaneous": self.simultaneous,
            "cells": [
                {"values": list(cell), "frequency": told(f), "error": told(e), "lower": float(low), "upper": float(up)}
                for cell, f, e, low, up in figures
            ],
            "rare": [{"values": list(symbol), "at_most": share} for symbol, share in self.rare],
            "together": [
                {
                    "values": [list(cell) for cell in group.cells],
                    "frequency": group.frequency,
                    "error": group.error,
                    "lower": group.lower,
                    "upper": group.upper,
                }
                for group in self.together
            ],
        }

    def __str__(self) -> str:
        rows = [(*self.columns, "share", "error", "from", "to")]
        for cell, share, error, low, up in zip(
            self.cells, self.frequencies, self.errors, self.lower, self.upper, strict=True
        ):
            # An interval of all shares there are says nothing, whatever stands beside it.
            told = (np.nan, np.nan) if low <= 0 and up >= 1 else (share, error)
            rows.append((*cell, *_told(*told), f"{low:.4f}", f"{up:.4f}"))
        for group in self.together:
            label = " + ".join(" · ".join(cell) for cell in group.cells)
            blank = ("",) * (len(self.columns) - 1)
            figures = f"{group.lower:.4f}", f"{group.upper:.4f}"
            rows.append((label, *blank, *_told(group.frequency, group.error), *figures))
        return table(rows, len(self.columns), self.about)


def _told(share: float, error: float) -> tuple[str, str]:
    return ("–", "not told") if np.isnan(share) else (f"{share:.4f}", f"{error:.4f}")


def estimate(
    released: Released,
    protocol: Protocol | EffectiveChannels,
    by: str | Sequence[str] | None = None,
    *,
    within: str | Sequence[str] = (),
    method: Literal["em", "inverse"] | None = None,
    sampling: bool = False,
    confidence: float = 0.95,
    simultaneous: bool = False,
    bootstrap: int | None = None,
    seed: int | None = None,
    at_most: AtMost | None = None,
    rounded: float = 0.0,
) -> Estimate:
    """Estimate how common true values are, from what was drawn for them.

    Parameters
    ----------
    released : pandas or pyarrow table, path of a parquet file, or ndarray of int, shape (b,)
        The released records, or counts of the protocol's outputs, in their order.
    protocol : Protocol or EffectiveChannels
        Of their release: ``funnel.Protocol.from_json(text of protocol.json)``; of columns that were published in
        groups ``funnel.open_release(path).channels``, which one or two published columns are estimated by.
    by : str or sequence of str, optional
        Columns to estimate, crossed; by default all, in the order of ``protocol.inputs``. Columns of the table that the
        protocol does not read, such as public ones that were joined, make groups, each of which is estimated by itself.
    within : str or sequence of str, optional
        Columns of the protocol in every cell of which shares are estimated: those of ``by`` among the records that have
        the same true values there, and not among all.
    method : "em" or "inverse"
        Maximum likelihood, by accelerated expectation maximisation; or the unbiased least squares inverse, moved to the
        nearest law. By default the first; of columns in groups, whose channel is rounded, the second.
    sampling : bool
        Whether the errors are also those of a sample: then estimates are of the population it is from. By default they
        are of these records, and only the random answers err.
    confidence : float
        Of the intervals, each by itself.
    simultaneous : bool
        Whether all intervals hold the truth together with this confidence instead (Bonferroni).
    bootstrap : int, optional
        So many releases are simulated for errors and intervals, at least 100; by default both are computed.
    seed : int, optional
        Of the simulation.
    at_most : mapping of tuple of str to float, optional
        Values of the protocol's inputs that are known to be rare: the largest share of these records that each can
        have; in a group that may be as many people, and where these leave nothing for others, nothing is known. They
        are taken for half of that, and every interval has room for all that they may be. A protocol publishes a value
        that hardly occurs like a record of which nothing is known; from the records alone it could be all of them, so
        that no other value can be told.
    rounded : float
        By how much a probability of the protocol can be off, as ``protocol.json`` says of versions about the same
        people; every interval has room for it.

    Returns
    -------
    Estimate
        Intervals are around the linear estimate that is efficient at the fit, and cut at 0 and 1: unlike the fit, that
        estimate has no bias where a share is near zero.

    Raises
    ------
    DataError
        If records and protocol do not belong together, or there are none.
    SpecError
        If a column or a setting is not known, or there are too many values.

    Notes
    -----
    O(rows) in one pass for the counts; then O(a b min(a, b)) and O(a b) a step of the likelihood.

    Examples
    --------
    >>> import funnel, numpy as np
    >>> joint = funnel.Joint.from_counts([[300, 100], [100, 500]])
    >>> protocol = funnel.fit("grr", joint, funnel.LIP(0.5))
    >>> found = funnel.estimate(np.array([430, 570]), protocol)
    >>> bool(abs(found.frequencies.sum() - 1) < 1e-9), bool((found.lower <= found.upper).all())
    (True, True)
    """
    if isinstance(protocol, EffectiveChannels):
        from funnel.estimation.grouped import estimate_grouped

        if bootstrap is not None or at_most:
            raise SpecError("of columns in groups errors are computed, and rare values told together; leave both out")
        return estimate_grouped(
            released,
            protocol,
            by,
            within=within,
            method=method or "inverse",
            sampling=sampling,
            confidence=confidence,
            simultaneous=simultaneous,
        )
    method = method or "em"
    if method not in METHODS:
        raise SpecError(f"unknown method {method!r} of estimation; choose one of {', '.join(METHODS)}")
    if not 0 < confidence < 1:
        raise SpecError("the confidence of an interval is between 0 and 1, such as 0.95")
    if bootstrap is not None and bootstrap < 100:
        raise SpecError("a bootstrap needs at least 100 simulated releases; leave it out for computed errors")
    if protocol.is_sparse:
        raise SpecError(
            f"the shares of {len(protocol.inputs):,} true values would be estimated from a table of them, which is too "
            "large; the posteriors in protocol.json say how likely each true value is behind a published one"
        )
    parts_of = (within,) if isinstance(within, str) else tuple(within)
    if by is None:
        by = tuple(column for column in protocol.inputs.columns if column not in parts_of)
    asked = (by,) if isinstance(by, str) else tuple(by)
    columns, given, inner = named_columns(protocol, (*parts_of, *asked), released)
    if not asked:
        raise SpecError(f"name columns once each; the protocol is about {', '.join(protocol.inputs.columns)}")
    if any(column in given for column in parts_of):
        raise SpecError("shares are within columns of the protocol; name those that are joined to the records under by")
    if parts_of and bootstrap is not None:
        raise SpecError("shares within parts have computed errors; leave out the bootstrap")
    cells, cell_of = cells_of(protocol, inner)
    b, a = protocol.size
    if float(a) * b * min(a, b) > MOST_WORK:
        # Before any table is made of them.
        raise too_many(a, b)
    rare = RareValues.of(protocol, at_most, rounded)
    grouped = output_counts_by(released, protocol, given)
    # Beside its cells a group has at most half as many sums.
    each = 1 - (1 - confidence) / (1.5 * len(grouped) * len(cells)) if simultaneous else confidence
    places = [inner.index(column) for column in parts_of]
    known: dict[tuple[str, ...], int] = {}
    part_of_cell = np.array([known.setdefault(tuple(cell[i] for i in places), len(known)) for cell in cells])
    records = sum(int(counts.sum()) for counts in grouped.values())
    parts = []
    for group, counts in grouped.items():
        fit = Fit(rare.in_part(int(counts.sum()) / records), cell_of, len(cells), method)
        if parts_of:
            shares = np.array(shares_within(fit, counts, cell_of, part_of_cell, sampling, each))
            parts.append((group, _Part(shares[:, 0], shares[:, 1], shares[:, 2], shares[:, 3], ())))
        else:
            parts.append((group, _part(fit, counts, sampling, each, bootstrap, np.random.default_rng(seed))))
    # Columns in the order asked for.
    order = [(*given, *inner).index(column) for column in columns]

    def named(group: tuple[str, ...], place: int) -> tuple[str, ...]:
        whole = (*group, *cells[place])
        return tuple(whole[i] for i in order)

    frequencies, errors, lower, upper = (
        np.concatenate([getattr(part, name) for _, part in parts])
        for name in ("frequencies", "errors", "lower", "upper")
    )
    return Estimate(
        columns,
        (*given, *parts_of),
        tuple(named(group, place) for group, _ in parts for place in range(len(cells))),
        frequencies,
        errors,
        lower,
        upper,
        tuple(
            Together(tuple(named(group, place) for place in places), *figures)
            for group, part in parts
            for places, *figures in part.together
        ),
        records,
        method,
        sampling,
        confidence,
        simultaneous,
        tuple(rare.known(protocol)),
    )


@dataclass(frozen=True, eq=False)
class _Part:
    """Estimates from the records of one group: shares (cells,), and of sums (places, share, error, lower, upper)."""

    frequencies: FloatArray
    errors: FloatArray
    lower: FloatArray
    upper: FloatArray
    together: tuple[tuple[tuple[int, ...], float, float, float, float], ...]


def _part(
    fit: Fit,
    counts: IntArray,
    sampling: bool,
    confidence: float,
    bootstrap: int | None,
    random: np.random.Generator,
) -> _Part:
    shares, raw, linear = fit.of(counts)
    n, cells, rare = int(counts.sum()), len(raw), fit.rare
    # That all shares together are one is no news.
    sums = [group for group in linear.sums if len(group) < np.count_nonzero(~fit.is_rare)]
    members = np.zeros((cells + len(sums), cells))
    members[np.arange(cells), np.arange(cells)] = 1.0
    for row, group in enumerate(sums, cells):
        members[row, list(group)] = 1.0
    at, middle = members @ fit.in_cells(shares), members @ raw
    if bootstrap is None:
        errors = rare.left * np.sqrt(variances(members @ linear.weights, fit.channel, shares, n, sampling))
        half = normal_quantile(confidence) * errors
        lower, upper = middle - half, middle + half
    else:
        around = members @ fit.simulated(shares, n, bootstrap, sampling, random) - at[:, np.newaxis]
        errors = around.std(axis=1, ddof=1)
        tail = 100 * (1 - confidence) / 2
        lower = middle - np.percentile(around, 100 - tail, axis=1)
        upper = middle - np.percentile(around, tail, axis=1)
    off = rare.off(members @ linear.weights, members @ fit.aims[:, rare.places])
    # Where nothing is drawn the interval is a point, which rounding must not miss; the fit is always inside.
    lower = np.clip(np.minimum(lower, at) - off - _ROUNDING, 0.0, 1.0)
    upper = np.clip(np.maximum(upper, at) + off + _ROUNDING, 0.0, 1.0)
    together = tuple(
        (group, float(at[row]), float(errors[row]), float(lower[row]), float(upper[row]))
        for row, group in enumerate(sums, cells)
    )
    untold = ~linear.told
    low, up = lower[:cells].copy(), upper[:cells].copy()
    low[fit.is_rare], up[fit.is_rare] = 0.0, np.minimum(1.0, 2 * fit.fixed[fit.is_rare])
    if (unknown := untold & ~fit.is_rare).any():
        whole, most = rare.whole(shares)
        low[unknown], up[unknown] = intervals_left(rare.channel, counts, whole, fit.aims[unknown], confidence, most)
    nothing = np.where(untold, np.nan, 0.0)
    return _Part(at[:cells] + nothing, errors[:cells] + nothing, low, up, together)
