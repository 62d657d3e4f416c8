"""Wide tables: every record is published as it is, or as that of somebody of another class, under one bound."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from funnel.donors.composition import Composition
from funnel.donors.growing import grown
from funnel.donors.parts import parts_by_need
from funnel.donors.record_classes import RecordClasses
from funnel.errors import SpecError
from funnel.guarantees.base import Guarantee, PosteriorGuarantee, Witness
from funnel.guarantees.lip import LIP
from funnel.guarantees.several import parts_of
from funnel.guarantees.srlip import SRLIP
from funnel.joint import Joint
from funnel.progress import Progress, quiet
from funnel.protocol import Protocol
from funnel.sampling.donors import Donors
from funnel.settings.disclosure_rules import Rules
from funnel.settings.groups import AT_ONCE, AtOnce
from funnel.solver.optimum import optimal
from funnel.solver.part_programme import budgets_of
from funnel.wording import did_you_mean

if TYPE_CHECKING:
    import pandas as pd

_RULES = Rules(by_class=True)


@dataclass(frozen=True, eq=False)
class ColumnsSolution:
    """Classes of the records of a wide table, a protocol over them, and what it leaves unchanged.

    Nothing of it is about single people but the questions that were chosen, and counts of classes.

    Attributes
    ----------
    protocol : Protocol
        Inputs and outputs are the classes; bound and balance hold exactly.
    classes : RecordClasses
        The questions that say of every record which class it is of.
    unchanged : float
        Share of the records that are expected to be published as they are.
    bound : float
        No invariant protocol that reads these columns leaves a larger share unchanged and meets the guarantee, if a
        record tells of the secret what its class does; where observers may know any columns, none between the same
        parts of classes whose donors are drawn evenly.
    by_column : mapping of str to float
        Of every column the share of the records whose value is expected to be published as it is.
    level : float
        The smallest budget (nats) for which the guarantee holds, over all published records.
    witness : Witness
        Where that is: the class of a published record, the value of the secret, and what the observer knows.
    seconds : float
        Time taken.
    """

    protocol: Protocol
    classes: RecordClasses
    unchanged: float
    bound: float
    by_column: Mapping[str, float]
    level: float
    witness: Witness
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
    known: Sequence[str] | AtOnce = (),
    least: int = 200,
    rules: Rules = _RULES,
    gap: float = 1e-4,
    time_limit: float | None = None,
    progress: Progress = quiet,
) -> ColumnsSolution:
    """The invariant protocol for many columns at once that leaves most records as they are, under one bound for all.

    As a release does it: questions about the columns cut the records into classes between which the secret differs
    most. A record that keeps its class under the protocol is published as it is, and one that changes it as the record
    of anybody of the new class, each as likely: `funnel.sanitise` with ``classes`` draws them. Published records have
    the distribution of the true ones, whatever columns are tabulated; and after each of them, and after each part of
    it, an observer who knows of the secret what the counts of classes say is within the guarantee.

    Parameters
    ----------
    source : Joint, or table: pandas.DataFrame, pyarrow.Table or path of a parquet file
        The distribution that beliefs, bound and balance are about: counts (c, a) of the secret and of whole records.
    groups : sequence of sequences of str
        The columns to publish. Those who change class stand beside donors in the order of these columns, so that
        early ones agree more often.
    guarantee : Guarantee
        A bound on the posterior of the secret: lip, alip, ldp or pml, with known columns srlip, or several of
        these.
    secret : str or sequence of str, optional
        Columns of the secret; a Joint has them.
    known : sequence of str, "single" or "pairs", optional
        Columns that observers may know of a person: ``srlip`` is then kept for those who know any set of these; or, of
        "single", for those who know any one of the columns, whichever it is; of "pairs", any one or any two. Then
        classes are cut into parts, and the donor is anybody of the new part, each as likely, whatever the order of the
        columns.
    least : int
        A class has at least so many records; parts of classes may have fewer.
    rules : Rules
        That counts of (secret, class) keep.
    gap : float
        Requested bound - unchanged.
    time_limit : float, optional
        Seconds of work for the optimum over classes. The optimum over parts takes neither limit nor gap.
    progress : callable

    Returns
    -------
    ColumnsSolution

    Raises
    ------
    SpecError
        If columns are unknown, named twice or the secret's, or the guarantee is none on the posterior of the secret.
    InfeasibleGuarantee
        If no exchange of whole records keeps the bound for all observers of columns.
    DataError
        If the table cannot be read or counted, or its records have one class only.
    SolverError
        If the linear programme fails.

    Examples
    --------
    >>> import funnel
    >>> inputs = funnel.Alphabet(("size", "colour"), (("small", "red"), ("small", "blue"), ("large", "red")))
    >>> joint = funnel.Joint.from_counts([[300, 400, 100], [100, 200, 500]], inputs=inputs)
    >>> found = funnel.fit_columns(joint, [["size"], ["colour"]], funnel.LIP(0.5))
    >>> round(found.unchanged, 3), found.classes.names
    (0.824, ('1', '2', '3'))
    """
    started = time.perf_counter()
    _check_kinds(guarantee, known)
    at_once = AT_ONCE[known] if isinstance(known, str) else 0
    columns = _columns_of(groups)
    for column in () if at_once else known:
        if column not in columns:
            raise SpecError(f"known names {column!r}, which is not published{did_you_mean(column, columns)}")
    joint = _joint_of(source, columns, secret).occurring
    if isinstance(source, Joint) and source.bounds is not None:
        raise SpecError(
            "the counts are known up to noise, and a bound over all tables within it is not kept for many columns; "
            "give the protected counts themselves, joint.as_published"
        )
    classes = grown(joint, least, rules, () if at_once else known, progress)
    if at_once:
        classes = parts_by_need(joint, classes, budgets_of(guarantee)[1], at_once)
    counted = Composition.of(joint, classes).joint
    found = optimal(
        counted, guarantee, gap, time_limit=time_limit, progress=progress, utility="unchanged", weights="share"
    )
    level = guarantee.level(counted, found.protocol)
    return ColumnsSolution(
        found.protocol,
        classes,
        found.utility,
        found.bound,
        _by_column(joint, classes, found.protocol, columns),
        level.value,
        level.witness,
        time.perf_counter() - started,
    )


def _check_kinds(guarantee: Guarantee, known: Sequence[str] | AtOnce) -> None:
    """Refuse guarantees that whole records cannot be moved under."""
    parts = parts_of(guarantee)
    if isinstance(known, str):
        if known not in AT_ONCE:
            raise SpecError(f"known is a list of columns, {' or '.join(map(repr, AT_ONCE))}, not {known!r}")
        if guarantee.is_perfect or not any(isinstance(part, SRLIP) for part in parts):
            raise SpecError(
                f"{guarantee} is no bound for observers of columns; with known = {known!r} write for instance "
                "lip:1.0 & srlip:2.0"
            )
        if not all(isinstance(part, (LIP, SRLIP)) for part in parts):
            raise SpecError(f"known = {known!r} goes with lip and srlip, and {guarantee} asks for more; leave that out")
        return
    kinds = (PosteriorGuarantee, *((SRLIP,) if known else ()))
    if guarantee.is_perfect or not all(isinstance(part, kinds) for part in parts):
        raise SpecError(
            f"{guarantee} is no bound on the posterior of the secret that records of many columns could be moved "
            "under; choose lip, alip, ldp or pml with a budget above 0, or name known columns for srlip"
        )


def _by_column(
    joint: Joint, classes: RecordClasses, protocol: Protocol, columns: tuple[str, ...]
) -> Mapping[str, float]:
    """Of every column the share of the records that are expected to keep its value, whoever their donors are."""
    donors = Donors.of(joint.inputs, joint.counts.sum(axis=0), classes, columns)
    moves, sizes = protocol.matrix, donors.sizes
    kept = np.full(len(columns), float(np.diag(moves) @ sizes))
    for target, source in zip(*np.nonzero(moves), strict=True):
        if source != target:
            kept += float(moves[target, source] * sizes[source]) * donors.agreeing(int(source), int(target))
    of = dict(zip(columns, (kept / joint.n).tolist(), strict=True))
    return {column: of[column] for column in joint.inputs.columns}


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
