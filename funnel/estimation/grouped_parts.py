"""Parts of a release of groups, such as men: what pairs and single columns tell of the records that have one value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from funnel.errors import SpecError
from funnel.estimation.counted import Released
from funnel.estimation.grouped import GroupedEstimate, counted, likeliest
from funnel.estimation.rounded_errors import RoundedErrors, half_length
from funnel.estimation.told_channel import FEW, EffectiveChannels, ToldChannel
from funnel.joint import FloatArray

_HALVINGS = 30
_ROUNDING = 2e-9


@dataclass(frozen=True, eq=False)
class Linear:
    """Linear functions of shares: estimates, standard errors, and by how much each is off at most; shape (k,) each."""

    middle: FloatArray
    errors: FloatArray
    off: FloatArray

    @classmethod
    def of(cls, told: ToldChannel, frequencies: FloatArray, fit: FloatArray, aims: FloatArray) -> Linear:
        """From shares of the outputs (b,), for aims (k, a); where there is no estimate errors are infinite."""
        found = told.estimates_of(aims)
        known = RoundedErrors.of(found, told, fit, told.records)
        nothing = np.where(found.told, 0.0, np.inf)
        return cls(found.constants + found.weights @ frequencies, known.errors + nothing, known.off)

    @classmethod
    def certain(cls, values: FloatArray) -> Linear:
        """Of what is known."""
        return cls(values, np.zeros(len(values)), np.zeros(len(values)))

    def at(self, places: Sequence[int]) -> Linear:
        """Some of them."""
        some = list(places)
        return Linear(self.middle[some], self.errors[some], self.off[some])


@dataclass(frozen=True, eq=False)
class Means:
    """Means of a number between 0 and 1 over the records of parts, with errors and intervals; shape (k,) each."""

    values: FloatArray
    errors: FloatArray
    off: FloatArray
    lower: FloatArray
    upper: FloatArray


def means(
    above: Linear, without: Linear, parts: Linear, left: FloatArray, confidence: float, sample: int | None = None
) -> Means:
    """Means over parts, where all records of a part that a pair does not tell of have one number.

    Of a part with share P let A be ``Σ p (number - left)`` over the cells that are told, without those of records that
    have no number, for which it is ``-left``, and D minus the share of these. The mean μ is where ``A + μ D' + (left -
    μ) P`` is zero, with D' = -D. Each of these is estimated with a normal error and a bound on its bias, and nothing is
    known of how the errors of pairs and columns go together: that of a sum is at most the sum of the errors. The
    interval has every μ from which the estimated difference is not significant (Fieller 1954).

    Parameters
    ----------
    above : Linear
        A.
    without : Linear
        The share of the records of a part that have no number.
    parts : Linear
        P.
    left : ndarray, shape (k,)
    confidence : float
    sample : int, optional
        So many records are a sample, and the means those of the population.
    """
    whole = parts.middle - without.middle

    def difference(mean: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        weight = np.abs(left - mean)
        errors = above.errors + mean * without.errors + weight * parts.errors
        if sample is not None:
            # A number between 0 and 1 varies at most as one that is either.
            errors = np.sqrt(errors**2 + np.maximum(0.0, whole) * mean * (1 - mean) / sample)
        off = above.off + mean * without.off + weight * parts.off
        return above.middle + mean * without.middle + (left - mean) * parts.middle, errors, off

    room = half_length(_finite(parts.errors + without.errors), parts.off + without.off, confidence)
    known = np.isfinite(above.errors + without.errors + parts.errors) & (whole > room)
    ends = []
    for sign in (-1.0, 1.0):
        low, high = np.zeros(len(left)), np.ones(len(left))
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            at, errors, off = difference(middle)
            # Below the mean the difference is above zero.
            inside = at + sign * half_length(_finite(errors), off, confidence) > 0
            low, high = np.where(inside, middle, low), np.where(inside, high, middle)
        ends.append((low + high) / 2)
    lower = np.where(known, np.clip(ends[0] - _ROUNDING, 0.0, 1.0), 0.0)
    upper = np.where(known, np.clip(ends[1] + _ROUNDING, 0.0, 1.0), 1.0)
    safe = np.where(known, whole, 1.0)
    values = np.clip((above.middle + left * parts.middle) / safe, lower, upper)
    _, errors, off = difference(values)
    nothing = np.where(known & (upper - lower < 1), 0.0, np.nan)
    return Means(values + nothing, errors / safe + nothing, off / safe + nothing, lower, upper)


def _finite(errors: FloatArray) -> FloatArray:
    return np.where(np.isfinite(errors), errors, 1.0)


def estimate_within(
    released: Released,
    channels: EffectiveChannels,
    by: tuple[str, ...],
    within: tuple[str, ...],
    *,
    method: str,
    sampling: bool,
    confidence: float,
    simultaneous: bool,
) -> GroupedEstimate:
    """Shares of the values of one column among the records with each value of another.

    Parameters
    ----------
    released, method, sampling, confidence, simultaneous
        As of `funnel.estimate`.
    channels : EffectiveChannels
    by, within : tuple of str
        One column each.

    Raises
    ------
    DataError
        If the records are not those of the release.
    SpecError
        If more is asked for than pairs tell, or nothing is told of these columns together.

    Notes
    -----
    The values that few records of a part have are one cell: what the others leave.
    """
    if len(by) != 1 or len(within) != 1:
        raise SpecError(
            "of columns in groups nothing is told of three together: name one column to estimate, and one in whose "
            "parts"
        )
    pair, column = channels.of((*within, *by)), channels.of(within)
    counts, alone = counted(released, channels, pair), counted(released, channels, column)
    n = int(counts.sum())
    places = {value: x for x, (value,) in enumerate(column.inputs)}
    values = frozenset[str]().union(*channels.meant[by[0]].values())
    cells: list[tuple[str, str]] = []
    aims: list[FloatArray] = []
    for part in (value for value in places if value != FEW):
        inside = [x for x, cell in enumerate(pair.inputs) if cell[0] == part]
        for x in inside:
            cells.append((part, pair.inputs[x][1]))
            aims.append(np.eye(len(pair.inputs))[x])
        if inside and len(inside) < len(values):
            cells.append((part, FEW))
            aims.append(-np.eye(len(pair.inputs))[inside].sum(axis=0))
    if not cells:
        raise SpecError(
            f"nothing is told of {by[0]} within {within[0]}: too few records have any of their values together"
        )
    weights = np.array(aims)
    of = [places[part] for part, _ in cells]
    # What others leave is one less what they have.
    left = np.array([1.0 if value == FEW else 0.0 for _, value in cells])
    fit, of_parts = likeliest(pair, counts), likeliest(column, alone)
    above = Linear.of(pair, counts[:-1] / n, fit, weights)
    parts = Linear.of(column, alone[:-1] / n, of_parts, np.eye(len(places))).at(of)
    each = 1 - (1 - confidence) / len(cells) if simultaneous else confidence
    found = means(above, Linear.certain(np.zeros(len(cells))), parts, left, each, n if sampling else None)
    shares = found.values
    if method == "em":
        likely = (weights @ fit) / np.maximum(of_parts[of], 1e-12) + left
        shares = np.where(np.isnan(shares), np.nan, np.clip(likely, found.lower, found.upper))
    return GroupedEstimate(
        (*within, *by),
        within,
        tuple(cells),
        shares,
        found.errors,
        found.lower,
        found.upper,
        (),
        n,
        method,
        sampling,
        confidence,
        simultaneous,
        off=found.off,
        left_out=column.left_out,
    )
