"""How well the true shares of a release can be estimated from its records: computed from public figures alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from funnel.estimation.expected_errors import TableErrors, tables_of
from funnel.estimation.share_information import CountedShares, ShareInformation
from funnel.frequencies.averages import NoisyAverages
from funnel.frequencies.noise import discrete_laplace_variance
from funnel.history.corrected import PARTS
from funnel.joint import FloatArray
from funnel.release.public.public_distributions import PublicDistributions
from funnel.release.public.rounding import rounded_up
from funnel.release.report_parts import EstimatedTable, EstimatedValue

DIGITS = 2
# Values of a column that are told of, the most common ones.
MAX_VALUES = 30


@dataclass(frozen=True, eq=False)
class PublicAccuracy:
    """Standard errors of estimated shares.

    Attributes
    ----------
    errors : ndarray, shape (a,)
        What drawing and departures add to the error of an estimate of the share of each true value, two digits, rounded
        up; nan where the records alone cannot tell the share. Zero where nothing is drawn.
    tables : tuple of TableErrors
        The same of every published column, and of every two of them crossed; not rounded, of rounded shares.
    """

    errors: FloatArray
    tables: tuple[TableErrors, ...]

    @classmethod
    def of(
        cls,
        distributions: PublicDistributions,
        records: int,
        counted: bool = False,
        departures: NoisyAverages | None = None,
    ) -> PublicAccuracy | None:
        """Of published distributions; None where there are too many values, as `ShareInformation.of` says.

        Parameters
        ----------
        distributions : PublicDistributions
        records : int
            That are published; of people with several rows more than the distributions are of.
        counted : bool
            Whether shares are counted in the records as they are, which an invariant protocol is made for.
        departures : NoisyAverages or None
            What is taken off the counts of outputs before shares are estimated.
        """
        occurring = np.flatnonzero(distributions.p_input > 0)
        shares = distributions.p_input[occurring] / distributions.p_input.sum()
        if not isinstance(distributions.posterior, np.ndarray):
            return None
        distribution = np.nan_to_num(distributions.posterior[:, occurring]) * distributions.p_output[:, np.newaxis]
        information: ShareInformation | CountedShares | None
        if counted:
            information = CountedShares((distribution / distribution.sum(axis=0))[occurring], shares, records)
        else:
            noise = 0.0 if departures is None else discrete_laplace_variance(departures.scale) / (records * PARTS) ** 2
            information = ShareInformation.of(distribution / distribution.sum(axis=0), shares, records, noise)
        if information is None:
            return None
        errors = np.full(len(distributions.p_input), np.nan)
        found = information.errors(np.arange(len(occurring)), len(occurring))
        errors[occurring] = [error if np.isnan(error) else rounded_up(float(error), DIGITS) for error in found]
        return cls(errors, tables_of(information, distributions.inputs, occurring, distributions.inputs.columns))


def estimated(tables: Iterable[TableErrors], told: Callable[[float], float] = float) -> tuple[EstimatedTable, ...]:
    """Tables of errors as a document has them.

    Parameters
    ----------
    tables : iterable of TableErrors
    told : callable
        How a figure is told, such as rounded.
    """

    def figure(error: float | None) -> float | None:
        return None if error is None or np.isnan(error) else told(error)

    parts = []
    for table in tables:
        single = len(table.columns) == 1
        commonest = np.argsort(-table.shares, kind="stable")[:MAX_VALUES] if single else ()
        parts.append(
            EstimatedTable(
                columns=table.columns,
                cells=len(table.values),
                typical=figure(table.typical),
                largest=figure(table.largest),
                unknown=table.untold,
                rows=tuple(EstimatedValue(label=table.values[i][0], error=figure(table.errors[i])) for i in commonest),
                sums=tuple(tuple(table.values[i][0] for i in group) for group in table.sums),
            )
        )
    return tuple(parts)
