"""Estimates from a release of groups: shares of one published column, or of two together, by its effective channels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from funnel.errors import DataError, SpecError
from funnel.estimation.affine import AffineEstimates
from funnel.estimation.counted import Released
from funnel.estimation.likelihood import likeliest_shares
from funnel.estimation.rounded_errors import RoundedErrors
from funnel.estimation.share_estimate import Estimate, Together
from funnel.estimation.told_channel import EffectiveChannels, ToldChannel
from funnel.joint import FloatArray, IntArray
from funnel.tables import read_batches

_METHODS = ("em", "inverse")
_ROWS = 1 << 20
# As for releases of one channel: of a log-likelihood in nats.
_GAP = 1e-5
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class GroupedEstimate(Estimate):
    """An estimate that knows how far the rounding of the published probabilities can have moved it.

    Attributes
    ----------
    off : ndarray, shape (cells,)
        So far at most; it is part of the intervals. nan where the records cannot tell.
    left_out : float
        The largest share of records that are in none of the cells, as too few have their values.
    """

    # By name: what it extends has a default.
    off: FloatArray = field(kw_only=True)
    left_out: float = field(kw_only=True)

    @property
    def about(self) -> str:
        """What errors are of, in one sentence."""
        told = self.off[~np.isnan(self.off)]
        said = f"{super().about}, with room for the rounding of the published probabilities"
        if len(told):
            said += f", which moves no share by more than {told.max():.4f}"
        return (
            f"{said}; values that few records have are left out, at most {self.left_out:.2%}" if self.left_out else said
        )

    def to_dict(self) -> dict[str, Any]:
        """As JSON-ready values; what cannot be told is None."""
        found = super().to_dict()
        for cell, off in zip(found["cells"], self.off.tolist(), strict=True):
            cell["off"] = None if np.isnan(off) else off
        return {**found, "left_out": self.left_out}


def estimate_grouped(
    released: Released,
    channels: EffectiveChannels,
    by: str | Sequence[str] | None,
    *,
    within: str | Sequence[str] = (),
    method: Literal["em", "inverse"],
    sampling: bool,
    confidence: float,
    simultaneous: bool,
) -> GroupedEstimate:
    """`funnel.estimate` of the records of a release of groups.

    The effective channel of a column is an average over all else that is in the records, so that exactly
    ``Σ_x p(x) W(y|x)`` of them are expected to show y, whatever goes with what. It is told but for rounding, so an
    affine estimate w of a cell is off by at most ``Σ_y |w_y| Σ_x p(x) |W(y|x) - told|``. Of the unbiased ones the one
    with the shortest interval is taken (`funnel.estimation.affine`), chosen by what is published and not by the
    records. Its interval is as long as it has to be for every bias up to that bound (Armstrong and Kolesár 2018,
    section 2). Its variance is at most that of records whose true values are alike: others vary less.

    Parameters
    ----------
    released, by, within, method, sampling, confidence, simultaneous
        As of `funnel.estimate`.
    channels : EffectiveChannels

    Returns
    -------
    GroupedEstimate
        With ``method="em"`` the shares are the likeliest ones under the told channel, cut at the ends of the intervals;
        with "inverse" they are the affine estimates.

    Raises
    ------
    DataError
        If the records are not those of the release.
    SpecError
        If the columns are not one or two published ones, or a setting is not known.

    Notes
    -----
    O(rows) in one pass, then O(k a² b) for k cells.
    """
    if method not in _METHODS:
        raise SpecError(f"unknown method {method!r} of estimation; choose one of {', '.join(_METHODS)}")
    if not 0 < confidence < 1:
        raise SpecError("the confidence of an interval is between 0 and 1, such as 0.95")
    asked = () if by is None else (by,) if isinstance(by, str) else tuple(by)
    if parts := (within,) if isinstance(within, str) else tuple(within):
        # It rests on this module.
        from funnel.estimation.grouped_parts import estimate_within

        return estimate_within(
            released,
            channels,
            asked,
            parts,
            method=method,
            sampling=sampling,
            confidence=confidence,
            simultaneous=simultaneous,
        )
    told = channels.of(asked)
    counts = counted(released, channels, told)
    return of_counts(counts, told, method=method, sampling=sampling, confidence=confidence, simultaneous=simultaneous)


def of_counts(
    counts: IntArray,
    told: ToldChannel,
    *,
    method: Literal["em", "inverse"] = "inverse",
    sampling: bool = False,
    confidence: float = 0.95,
    simultaneous: bool = False,
) -> GroupedEstimate:
    """As `estimate_grouped`, from counts (b + 1,) of the outputs of a channel and of all others together."""
    n, cells = int(counts.sum()), len(told.inputs)
    aims, found = np.eye(cells), told.estimates
    each = 1 - (1 - confidence) / (cells + 1) if simultaneous else confidence
    fit = likeliest(told, counts)
    part = _Intervals.of(found, told, counts, fit, aims, sampling, each)
    untold = ~found.told | (part.upper - part.lower >= 1)
    together: tuple[Together, ...] = ()
    most = np.ones(cells)
    if untold.any() and not untold.all() and untold.sum() > 1:
        # Those that cannot be told one by one, in sum.
        sums = untold[np.newaxis].astype(np.float64)
        whole = told.estimates_of(sums)
        of_sum = _Intervals.of(whole, told, counts, fit, sums, sampling, each)
        if whole.told[0] and of_sum.upper[0] - of_sum.lower[0] < 1:
            names = tuple(told.inputs[x] for x in np.flatnonzero(untold))
            at = of_sum.middle if method == "inverse" else sums @ fit
            share = float(np.clip(at[0], of_sum.lower[0], of_sum.upper[0]))
            figures = float(of_sum.errors[0]), float(of_sum.lower[0]), float(of_sum.upper[0])
            together = (Together(names, share, *figures),)
            most[untold] = of_sum.upper[0]
    nothing = np.where(untold, np.nan, 0.0)
    lower, upper = np.where(untold, 0.0, part.lower), np.where(untold, most, part.upper)
    return GroupedEstimate(
        told.columns,
        (),
        told.inputs,
        np.clip(part.middle if method == "inverse" else fit, lower, upper) + nothing,
        part.errors + nothing,
        lower,
        upper,
        together,
        n,
        method,
        sampling,
        confidence,
        simultaneous,
        off=part.off + nothing,
        left_out=told.left_out,
    )


@dataclass(frozen=True, eq=False)
class _Intervals:
    """Affine estimates (k,), their standard errors, how far they can be off, and intervals, cut at 0 and 1."""

    middle: FloatArray
    errors: FloatArray
    off: FloatArray
    lower: FloatArray
    upper: FloatArray

    @classmethod
    def of(
        cls,
        found: AffineEstimates,
        told: ToldChannel,
        counts: IntArray,
        fit: FloatArray,
        aims: FloatArray,
        sampling: bool,
        confidence: float,
    ) -> _Intervals:
        n = int(counts.sum())
        middle = found.constants + found.weights @ (counts[:-1] / n)
        known = RoundedErrors.of(found, told, fit, n, aims if sampling else None)
        half = known.half_lengths(confidence) + _ROUNDING
        lower, upper = np.clip(middle - half, 0.0, 1.0), np.clip(middle + half, 0.0, 1.0)
        return cls(middle, known.errors, known.off, lower, upper)


def likeliest(told: ToldChannel, counts: IntArray) -> FloatArray:
    """The likeliest shares (a,) under a told channel, from counts (b + 1,) of its outputs."""
    n = int(counts.sum())
    return likeliest_shares(told.matrix, counts / n, _GAP / n, told.shares / told.shares.sum()).shares


def counted(released: Released, channels: EffectiveChannels, told: ToldChannel) -> IntArray:
    """How often each output that is told of was released (b + 1,), all others together at the end.

    Raises
    ------
    DataError
        If there are values that this release never publishes, or other records than all of it.
    """
    if isinstance(released, np.ndarray):
        raise SpecError("the records of a release of groups are a table, or the path of one, rather than counts")
    columns = list(told.columns)
    counted: Counter[tuple[str | None, ...]] = Counter()
    for batch in read_batches(released, columns, _ROWS):
        found = pa.Table.from_batches([batch]).group_by(columns, use_threads=False).aggregate([([], "count_all")])
        texts = [[None if v is None else str(v) for v in found.column(name).to_pylist()] for name in columns]
        for *symbol, number in zip(*texts, found.column("count_all").to_pylist(), strict=True):
            counted[tuple(symbol)] += int(number)
    meant = [channels.meant[column] for column in columns]
    unknown = sum(
        number
        for symbol, number in counted.items()
        if any(text not in some for text, some in zip(symbol, meant, strict=True))
    )
    if unknown:
        raise DataError(
            f"{unknown:,} records have values that this release never publishes; take the files that were published "
            "with them"
        )
    if (n := sum(counted.values())) != channels.records:
        raise DataError(
            f"these are {n:,} records and not the {channels.records:,} of the release; the probabilities of groups are "
            "averages over all of them, and hold for no part"
        )
    counts = np.array([counted.pop(symbol, 0) for symbol in told.outputs] + [0], dtype=np.int64)
    counts[-1] = sum(counted.values())
    return counts
