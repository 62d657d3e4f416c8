"""Wide tables: every record is published as it is, or as another record that is close to it, under one bound."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from funnel.donors.expansion import expanded
from funnel.donors.posterior_classes import PosteriorClasses
from funnel.errors import SolverError, SpecError
from funnel.guarantees.base import Guarantee, PosteriorGuarantee
from funnel.guarantees.several import Several
from funnel.joint import IntArray, Joint
from funnel.measures.unchanged import unchanged
from funnel.progress import Progress, quiet
from funnel.protocol import DENOMINATOR, Protocol
from funnel.rounding import marginal_weights
from funnel.solver.balance import IMBALANCE
from funnel.solver.budget import Budget
from funnel.solver.invariant import invariant_optimum
from funnel.sparse_weights import SparseWeights

if TYPE_CHECKING:
    import pandas as pd

MECHANISM: Final = "invariant"
# Where rounding leaves the bound by more than a hair units are made finer. By a hair, or where that is not enough, a
# smaller budget is optimised for: by these relative margins, so many times.
_FURTHER_BITS, _HAIR = (0, 8, 32), 1e-5
_FIRST_MARGIN, _GROWTH, _LARGEST_MARGIN, _ATTEMPTS = 1e-7, 10.0, 0.2, 8


@dataclass(frozen=True, eq=False)
class ColumnsSolution:
    """A protocol for a wide table, and what it leaves unchanged.

    Attributes
    ----------
    protocol : Protocol
        Inputs and outputs are the records that occur, over all columns; weights are sparse, and verified: the bound
        and the balance hold exactly.
    unchanged : float
        Share of the records that are expected to be published as they are.
    bound : float
        No invariant protocol that reads these columns and meets the guarantee leaves a larger share unchanged.
    by_column : mapping of str to float
        Of every column the share of the records whose value is expected to be published as it is.
    level : float
        The smallest budget (nats) for which the guarantee holds, over all published records.
    classes : int
        Posterior classes of the records.
    seconds : float
        Time taken.
    """

    protocol: Protocol
    unchanged: float
    bound: float
    by_column: Mapping[str, float]
    level: float
    classes: int
    seconds: float

    @property
    def gap(self) -> float:
        """bound - unchanged."""
        return self.bound - self.unchanged


def fit_columns(
    source: Joint | pd.DataFrame | pa.Table | str | os.PathLike[str],
    groups: Sequence[Sequence[str] | str],
    guarantee: Guarantee,
    secret: Sequence[str] | str | None = None,
    *,
    gap: float = 1e-4,
    time_limit: float | None = None,
    progress: Progress = quiet,
) -> ColumnsSolution:
    """The invariant protocol for many columns at once that leaves most records as they are, under one bound for all.

    A record is published as it is, or as a *donor*: another record of the table, which agrees with it in as many
    columns as possible. The published records have the distribution of the true ones, whatever columns are tabulated
    (METHOD section 17), and after each of them, and after each part of it, the posterior of the secret is within the
    guarantee.

    Parameters
    ----------
    source : Joint, or table: pandas.DataFrame, pyarrow.Table or path of a parquet file
        The distribution that beliefs, bound and balance are about: counts as they are, or protected ones.
    groups : sequence of sequences of str
        The columns to publish. Donors agree with a record in the columns of early groups first.
    guarantee : Guarantee
        A bound on the posterior of the secret: lip, alip, ldp or pml, or several of these.
    secret : str or sequence of str, optional
        Columns of the secret; a Joint has them.
    gap : float
        Requested bound - unchanged.
    time_limit : float, optional
        Seconds of work for the optimum over posterior classes.
    progress : callable

    Returns
    -------
    ColumnsSolution

    Raises
    ------
    SpecError
        If columns are unknown, named twice or the secret's, or the guarantee is none on the posterior of the secret.
    DataError
        If the table cannot be read or counted.
    SolverError
        If the linear programme fails.

    Examples
    --------
    >>> import funnel
    >>> inputs = funnel.Alphabet(("size", "colour"), (("small", "red"), ("small", "blue"), ("large", "red")))
    >>> joint = funnel.Joint.from_counts([[30, 40, 10], [10, 20, 50]], inputs=inputs)
    >>> found = funnel.fit_columns(joint, [["size"], ["colour"]], funnel.LIP(0.5))
    >>> round(found.unchanged, 3), found.protocol.outputs == found.protocol.inputs
    (0.824, True)
    """
    started = time.perf_counter()
    parts = guarantee.parts if isinstance(guarantee, Several) else (guarantee,)
    if guarantee.is_perfect or not all(isinstance(part, PosteriorGuarantee) for part in parts):
        raise SpecError(
            f"{guarantee} is no bound on the posterior of the secret that records of many columns could be moved "
            "under; choose lip, alip, ldp or pml with a budget above 0"
        )
    columns = _columns_of(groups)
    joint = _joint_of(source, columns, secret).occurring
    if isinstance(source, Joint) and source.bounds is not None:
        raise SpecError(
            "the counts are known up to noise, and a bound over all tables within it is not kept for many columns; "
            "give the protected counts themselves, joint.as_published"
        )
    codes = _codes(joint, columns)
    classes = PosteriorClasses.of(joint)
    weights, level, bound = _proven(joint, classes, guarantee, codes, gap, Budget.of(time_limit), progress)
    marginal = marginal_weights(joint, weights)
    protocol = Protocol.of_sparse(weights, marginal, joint.inputs, joint.inputs, MECHANISM, str(guarantee))
    kept = unchanged(joint, protocol)
    return ColumnsSolution(
        protocol,
        kept.share,
        max(bound, kept.share),
        dict(zip(joint.inputs.columns, kept.by_column.tolist(), strict=True)),
        level,
        len(classes.joint.inputs),
        time.perf_counter() - started,
    )


def _proven(
    joint: Joint,
    classes: PosteriorClasses,
    guarantee: Guarantee,
    codes: IntArray,
    gap: float,
    budget: Budget,
    progress: Progress,
) -> tuple[SparseWeights, float, float]:
    """Verified weights over records, their level, and the bound on what any channel leaves unchanged."""
    margin, bound = 0.0, 1.0
    for _ in range(_ATTEMPTS):
        found = invariant_optimum(classes.joint, guarantee.tightened(margin), "share", gap, budget, progress)
        if margin == 0:
            bound = found.bound
        for further in _FURTHER_BITS:
            weights = expanded(joint, classes, found.protocol.weights, codes, further)
            holds, level = _decided(joint, guarantee, weights)
            if holds and is_balanced(joint, weights):
                return weights, level, bound
            excess = level / guarantee.budget - 1
            if margin == 0 and excess < _HAIR:
                break
        # Twice as much room is left as rounding took.
        margin = min(_LARGEST_MARGIN, max(2 * excess, _GROWTH * margin, _FIRST_MARGIN))
    raise SolverError(f"whole numbers do not meet {guarantee} for these records; choose a larger budget")


def _decided(joint: Joint, guarantee: Guarantee, weights: SparseWeights) -> tuple[bool, float]:
    """Whether all parts of a guarantee hold, and the level: of several the largest as a share of the part's budget."""
    holds, level = True, 0.0
    for part in guarantee.parts if isinstance(guarantee, Several) else (guarantee,):
        assert isinstance(part, PosteriorGuarantee)
        holds &= part.sparse_holds(joint, weights)
        level = max(level, part.sparse_level(joint, weights).value * (guarantee.budget / part.budget))
    return holds, level


def is_balanced(joint: Joint, weights: SparseWeights) -> bool:
    """Whether ``|Σ_x p_x W(y|x) - p_y|`` is at most 10^-12 for every record y: decided in whole numbers."""
    counts = joint.counts.sum(axis=0)
    drawn = weights.masses(counts)
    most = IMBALANCE * joint.n * DENOMINATOR
    return all(abs(mass - count * DENOMINATOR) <= most for mass, count in zip(drawn, counts.tolist(), strict=True))


def _columns_of(groups: Sequence[Sequence[str] | str]) -> tuple[str, ...]:
    named = [(group,) if isinstance(group, str) else tuple(group) for group in groups]
    columns = tuple(column for group in named for column in group)
    if not columns or not all(named):
        raise SpecError("name the columns to publish in groups, each of one column or more")
    if twice := [column for column in dict.fromkeys(columns) if columns.count(column) > 1]:
        raise SpecError(f"column {twice[0]!r} is in the groups twice; name it once")
    return columns


def _joint_of(
    source: Joint | pd.DataFrame | pa.Table | str | os.PathLike[str],
    columns: tuple[str, ...],
    secret: Sequence[str] | str | None,
) -> Joint:
    """The counts of secrets and records."""
    named = () if secret is None else (secret,) if isinstance(secret, str) else tuple(secret)
    if hidden := [column for column in columns if column in named]:
        raise SpecError(
            f"column {hidden[0]!r} is the secret, and a bound on the posterior alone does not protect a secret that is "
            "published; leave it out of the groups"
        )
    if not isinstance(source, Joint):
        if not named:
            raise SpecError("name the columns of the secret, such as secret=['income']")
        return Joint.from_table(source, named, columns)
    if named and named != source.secret.columns:
        raise SpecError(f"the joint has the secret {list(source.secret.columns)}, not {list(named)}")
    if sorted(columns) != sorted(source.inputs.columns):
        raise SpecError(
            f"the groups name the columns {sorted(columns)}, but the joint is over {sorted(source.inputs.columns)}; "
            "name each of them once"
        )
    return source


def _codes(joint: Joint, columns: tuple[str, ...]) -> IntArray:
    """The number of every record's value in every column, (a, columns), in the order of the groups."""
    codes = np.empty((len(joint.inputs), len(columns)), dtype=np.int64)
    for j, place in enumerate(map(joint.inputs.columns.index, columns)):
        numbers: dict[str, int] = {}
        codes[:, j] = [numbers.setdefault(symbol[place], len(numbers)) for symbol in joint.inputs.symbols]
    return codes
