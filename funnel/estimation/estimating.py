"""estimate: true frequencies from released records, with errors, and what cannot be told said so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from funnel.alphabet import CLASS_COLUMN
from funnel.errors import SolverError, SpecError
from funnel.estimation.combined import CombinedFit, NoisyShares, fit_of
from funnel.estimation.counted import Released, output_counts_by
from funnel.estimation.departed_shares import DepartedShares
from funnel.estimation.fit import Fit, Method, method_for, normal_quantile, require_confidence, require_few
from funnel.estimation.linear import rounding_off, variances
from funnel.estimation.plain_counts import PlainCounts, to_whole_records
from funnel.estimation.plain_shares import plain_shares
from funnel.estimation.rare import AtMost, RareValues
from funnel.estimation.ratio import shares_within
from funnel.estimation.share_estimate import Estimate, Together
from funnel.estimation.value_cells import GroupedCells, column_names, named_columns, parts_of
from funnel.joint import FloatArray, IntArray
from funnel.protocol import Protocol

_ROUNDING = 1e-12
_FIGURES = ("frequencies", "errors", "lower", "upper")


def estimate(
    released: Released,
    protocol: Protocol,
    by: str | Sequence[str] | None = None,
    *,
    within: str | Sequence[str] = (),
    method: Method | None = None,
    sampling: bool = False,
    confidence: float = 0.95,
    simultaneous: bool = False,
    bootstrap: int | None = None,
    seed: int | None = None,
    at_most: AtMost | None = None,
    rounded: float = 0.0,
    beside: NoisyShares | None = None,
    departed: DepartedShares | None = None,
) -> Estimate:
    """Estimate how common true values are, from what was drawn for them.

    Parameters
    ----------
    released : pandas or pyarrow table, path of a parquet file, or ndarray of int, shape (b,)
        The released records, or counts of the protocol's outputs, in their order.
    protocol : Protocol
        Of their release: ``funnel.Protocol.from_json(text of protocol.json)``.
    by : str or sequence of str, optional
        Columns to estimate, crossed; by default all, in the order of ``protocol.inputs``. Columns of the table that the
        protocol does not read, such as public ones that were joined, make groups, each of which is estimated by itself.
    within : str or sequence of str, optional
        Columns of the protocol in every cell of which shares are estimated: those of ``by`` among the records that have
        the same true values there, and not among all.
    method : "count", "em" or "inverse"
        Plain counts, of an invariant protocol; maximum likelihood, by accelerated expectation maximisation; or the
        unbiased least squares inverse, moved to the nearest distribution. By default the first where the protocol is
        invariant and groups are of published columns, else the second.
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
    beside : NoisyShares, optional
        Noisy shares of the protocol's values among these records, as a release with noise publishes them. Records and
        noisy shares are then combined, and every share is told.
    departed : DepartedShares, optional
        By how much outputs are more common than the protocol gives them, as a release about people with histories says.

    Returns
    -------
    Estimate
        Intervals of plain counts are Wilson's for as many records as they are worth. Others are around the linear
        estimate that is efficient at the fit, and cut at 0 and 1: unlike the fit, that estimate has no bias where a
        share is near zero.

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
    require_confidence(confidence)
    if bootstrap is not None and bootstrap < 100:
        raise SpecError("a bootstrap needs at least 100 simulated releases; leave it out for computed errors")
    parts = column_names(within)
    if by is None:
        by = tuple(column for column in protocol.inputs.columns if column not in parts)
    asked = column_names(by)
    columns, given, inner = named_columns(protocol, (*parts, *asked), released)
    _require_shares(protocol, asked, parts, given, bootstrap)
    method = method_for(protocol, given, method)
    if method == "count":
        if bootstrap is not None or at_most:
            raise SpecError("plain counts need neither a bootstrap nor rare values; leave bootstrap and at_most out")
        plain = PlainCounts.of(protocol, output_counts_by(released, protocol)[()])
        return plain_shares(plain, asked, parts, sampling=sampling, confidence=confidence, simultaneous=simultaneous)
    _require_table(protocol)
    if beside is not None and (given or bootstrap is not None):
        raise SpecError("noisy shares are of all these records, with computed errors; leave them out, or groups")
    if departed is not None and (given or bootstrap is not None):
        raise SpecError("departures are of all these records, with computed errors; leave out groups and the bootstrap")
    rare = RareValues.of(protocol, at_most, rounded, departed)
    grouped = GroupedCells.of(released, protocol, columns, given, inner)
    cells, cell_of = grouped.cells, grouped.cell_of
    part_of_cell = parts_of(cells, [inner.index(column) for column in parts])
    # Beside its cells a group has at most half as many sums.
    each = 1 - (1 - confidence) / (1.5 * len(grouped.counts) * len(cells)) if simultaneous else confidence
    found = []
    for group, counts in grouped.counts.items():
        here = rare.in_part(int(counts.sum()) / grouped.records)
        if parts:
            one = fit_of(here, method, beside)
            shares = np.array(shares_within(one, counts, cell_of, part_of_cell, sampling, each))
            found.append((group, _Part(shares[:, 0], shares[:, 1], shares[:, 2], shares[:, 3], ())))
        elif beside is not None:
            found.append((group, _combined(CombinedFit(here, beside), counts, cell_of, len(cells), sampling, each)))
        else:
            fit = Fit(here, cell_of, len(cells), method)
            found.append((group, _part(fit, counts, sampling, each, bootstrap, np.random.default_rng(seed))))
    frequencies, errors, lower, upper = (
        np.concatenate([getattr(part, name) for _, part in found]) for name in _FIGURES
    )
    return Estimate(
        columns,
        (*given, *parts),
        tuple(grouped.name(group, place) for group, _ in found for place in range(len(cells))),
        frequencies,
        errors,
        lower,
        upper,
        tuple(
            Together(tuple(grouped.name(group, place) for place in places), *figures)
            for group, part in found
            for places, *figures in part.together
        ),
        grouped.records,
        method if beside is None else "combined",
        sampling,
        confidence,
        simultaneous,
        tuple(rare.known(protocol)),
        rounded=rounded,
    )


def _require_shares(
    protocol: Protocol, asked: tuple[str, ...], parts: tuple[str, ...], given: tuple[str, ...], bootstrap: int | None
) -> None:
    """Make sure that shares of these columns can be asked for."""
    if given and CLASS_COLUMN in protocol.inputs.columns:
        raise SpecError("this protocol is about classes of whole records; estimate by the folder of the release")
    if not asked:
        raise SpecError(f"name columns once each; the protocol is about {', '.join(protocol.inputs.columns)}")
    if any(column in given for column in parts):
        raise SpecError("shares are within columns of the protocol; name those that are joined to the records under by")
    if parts and bootstrap is not None:
        raise SpecError("shares within parts have computed errors; leave out the bootstrap")


def _require_table(protocol: Protocol) -> None:
    """Make sure that there are few enough values for a table of them."""
    if protocol.is_sparse:
        raise SpecError(
            f"the shares of {len(protocol.inputs):,} true values would be estimated from a table of them, which is too "
            "large; the posteriors in protocol.json say how likely each true value is behind a published one"
        )
    require_few(protocol)


@dataclass(frozen=True, eq=False)
class _Part:
    """Estimates from the records of one group: shares (cells,), and of sums (places, share, error, lower, upper)."""

    frequencies: FloatArray
    errors: FloatArray
    lower: FloatArray
    upper: FloatArray
    together: tuple[tuple[tuple[int, ...], float, float, float, float], ...]


def _combined(
    fit: CombinedFit, counts: IntArray, cell_of: IntArray, cells: int, sampling: bool, confidence: float
) -> _Part:
    aims = np.zeros((cells, len(cell_of)))
    aims[cell_of, np.arange(len(cell_of))] = 1.0
    aimed, n = fit.aimed(counts, aims, sampling), int(counts.sum())
    variances = np.maximum(0.0, np.diag(aimed.covariance))
    errors = np.sqrt(variances)
    half = fit.reach(counts, aims, variances, confidence) * errors
    off = rounding_off(aimed.weights, aimed.rounded) + _ROUNDING
    lower = np.minimum(aimed.unbiased - half, aimed.fitted) - off
    upper = np.maximum(aimed.unbiased + half, aimed.fitted) + off
    if not sampling:
        lower, upper = to_whole_records(lower, upper, n * n * variances, n)
    lower, upper = np.clip(lower, 0.0, 1.0), np.clip(upper, 0.0, 1.0)
    return _Part(aimed.fitted, errors, lower, upper, ())


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
        weights = members @ linear.weights
        drawn = variances(weights, fit.channel, shares, n, sampling)
        errors = rare.left * np.sqrt(drawn + np.maximum(0.0, np.diag(rare.departed_covariance(weights))))
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
        low[unknown], up[unknown] = intervals_left(rare, counts, whole, fit.aims[unknown], confidence, most)
    nothing = np.where(untold, np.nan, 0.0)
    return _Part(at[:cells] + nothing, errors[:cells] + nothing, low, up, together)


def intervals_left(
    rare: RareValues,
    counts: IntArray,
    fitted: FloatArray,
    members: FloatArray,
    confidence: float,
    at_most: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """The range of ``members @ p`` over all distributions p that the counts of outputs do not rule out.

    The limits of outputs are exact ones for a binomial (Clopper and Pearson 1934), all of them together with the given
    confidence (Bonferroni); answers of records whose true values stand fast vary less than that. So every range holds
    the truth with at least this confidence, all ranges at once. Where outputs depart from the channel half of what may
    go wrong is for the noise in what is known of that.

    Parameters
    ----------
    rare : RareValues
        With the channel (b, a).
    counts : ndarray of int, shape (b,)
    fitted : ndarray, shape (a,)
        A distribution whose outputs are within the limits, whatever the counts are.
    members : ndarray, shape (k, a)
        Zeros and ones.
    confidence : float
    at_most : ndarray, shape (a,)
        What shares can be at most, 1 where nothing is known.

    Returns
    -------
    lower, upper : ndarray, shape (k,)

    Notes
    -----
    2 k linear programmes in a variables.
    """
    from scipy.optimize import linprog
    from scipy.stats import beta

    channel, departed = rare.channel, rare.departed
    n, b = int(counts.sum()), len(counts)
    tail = (1 - confidence) / (2 * b) / (1 if departed is None else 2)
    low = np.where(counts > 0, beta.ppf(tail, counts, n - counts + 1), 0.0)
    high = np.where(counts < n, beta.ppf(1 - tail, counts + 1, n - counts), 1.0)
    if departed is not None:
        room = normal_quantile(1 - 2 * tail) * np.sqrt(np.diag(departed.covariance))
        low = np.clip(low - departed.shares - room, 0.0, 1.0)
        high = np.clip(high - departed.shares + room, 0.0, 1.0)
    outputs = channel @ fitted
    low, high = np.minimum(low, outputs), np.maximum(high, outputs)
    solve: Any = linprog
    found = np.empty((2, len(members)))
    for place, aim in enumerate(members):
        for row, sign in enumerate((1.0, -1.0)):
            result = solve(
                sign * aim,
                A_ub=np.vstack([channel, -channel]),
                b_ub=np.concatenate([high, -low]),
                A_eq=np.ones((1, channel.shape[1])),
                b_eq=[1.0],
                bounds=np.stack([np.zeros(len(at_most)), at_most], axis=1),
                method="highs",
            )
            if result.status != 0:
                raise SolverError("the limits of a share that cannot be told were not found; use a group of its values")
            found[row, place] = sign * result.fun
    return np.clip(found[0], 0.0, 1.0), np.clip(found[1], 0.0, 1.0)
