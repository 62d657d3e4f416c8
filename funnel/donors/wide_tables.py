"""Wide tables: every record is published as it is, or as that of somebody of another class, under one bound."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from funnel.alphabet import Alphabet
from funnel.donors.composition import Composition
from funnel.donors.growing import grown
from funnel.donors.parts import parts_by_need
from funnel.donors.record_classes import RecordClasses
from funnel.errors import SpecError
from funnel.guarantees.attribute import Attribute
from funnel.guarantees.base import Guarantee, PosteriorGuarantee, Witness
from funnel.guarantees.lip import LIP, RLIP
from funnel.guarantees.several import as_guarantee, parts_of
from funnel.guarantees.srlip import SRLIP
from funnel.joint import FloatArray, Joint
from funnel.progress import Progress, quiet
from funnel.protocol import Protocol
from funnel.sampling.donors import Donors
from funnel.settings.disclosure_rules import DOMINANCE_OF_PUBLISHED, Rules
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
        Inputs and outputs are the classes, after the secret where it is published and after known columns; bound and
        balance hold exactly.
    classes : RecordClasses
        The questions that say of every record which class it is of.
    unchanged : float
        Share of the records that are expected to be published as they are.
    bound : float
        No invariant protocol that reads these columns leaves a larger share unchanged and meets the guarantee, if a
        record tells of the secret what its class does; where the secret is published, none whose moves between classes
        do not read it, and where observers may know any columns, none between the same parts of classes whose donors
        are drawn evenly.
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
    guarantee: Guarantee | Sequence[Guarantee],
    secret: Sequence[str] | str | None = None,
    *,
    known: Sequence[str] | AtOnce = (),
    choosing: Joint | None = None,
    least: int = 200,
    rules: Rules | None = None,
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
        The columns to publish, those of the secret among them under ``attribute``. Those who change class stand beside
        donors in the order of these columns, so that early ones agree more often.
    guarantee : Guarantee or sequence of Guarantee
        A bound on the posterior of the secret: lip, alip, ldp or pml, with known columns srlip, attribute where the
        secret is published, or several of these.
    secret : str or sequence of str, optional
        Columns of the secret; a Joint has them.
    known : sequence of str, "single" or "pairs", optional
        Columns that observers may know of a person: ``srlip`` is then kept for those who know any set of these; or, of
        "single", for those who know any one of the columns, whichever it is; of "pairs", any one or any two; with lip,
        or where the secret is published with attribute. Then classes are cut into parts, and the donor is anybody of
        the new part, each as likely, whatever the order of the columns.
    choosing : Joint, optional
        Counts of the records by which classes are chosen, drawn from those of the source, in the same columns. The
        others are held out: they say what ``rlip``, in place of lip, allows for in the population. With "single" or
        "pairs".
    least : int
        A class has at least so many records; parts of classes may have fewer.
    rules : Rules, optional
        That counts of (secret, class) keep; by default those of a release.
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
        If columns are unknown, named twice or a part of the secret's, or the guarantee is none on the posterior of the
        secret, or does not protect a secret that is published.
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
    started, guarantee = time.perf_counter(), as_guarantee(guarantee)
    at_once = AT_ONCE.get(known, 0) if isinstance(known, str) else 0
    columns = _columns_of(groups)
    named = source.secret.columns if isinstance(source, Joint) and secret is None else _names(secret)
    records = tuple(column for column in columns if column not in named)
    publishes = len(records) < len(columns)
    _check_kinds(guarantee, known, publishes, choosing is not None)
    for column in () if at_once else known:
        if column not in records:
            raise SpecError(f"known names {column!r}, which is not published{did_you_mean(column, records)}")
    if publishes and not (records and {*named} <= {*columns}):
        raise SpecError(f"publish all columns of the secret {list(named)} or none, and others with them")
    joint = _joint_of(source, records, named).occurring
    if rules is None:
        rules = replace(_RULES, dominance=DOMINANCE_OF_PUBLISHED) if publishes else _RULES
    by = joint if choosing is None else _joint_of(choosing, records, named).occurring
    classes = grown(by, least, rules, () if at_once else known, progress)
    if at_once:
        classes = parts_by_need(joint, classes, budgets_of(guarantee).knowing, at_once)
    composition = Composition.of(joint, classes)
    counted = (composition if choosing is None else composition.held_out_from(by)).joint
    if publishes:
        counted = counted.with_secret()
    found = optimal(
        counted, guarantee, gap, time_limit=time_limit, progress=progress, utility="unchanged", weights="share"
    )
    level = guarantee.level(counted, found.protocol)
    return ColumnsSolution(
        found.protocol,
        classes,
        found.utility,
        found.bound,
        _by_column(counted, found.protocol, Donors.of(joint.inputs, joint.counts.sum(axis=0), classes, records)),
        level.value,
        level.witness,
        time.perf_counter() - started,
    )


def _check_kinds(guarantee: Guarantee, known: Sequence[str] | AtOnce, publishes: bool, holds_out: bool) -> None:
    """Refuse guarantees that whole records cannot be moved under."""
    parts = parts_of(guarantee)
    if isinstance(known, str):
        if known not in AT_ONCE:
            raise SpecError(f"known is a list of columns, {' or '.join(map(repr, AT_ONCE))}, not {known!r}")
        if guarantee.is_perfect or not any(type(part) is SRLIP for part in parts):
            raise SpecError(
                f"{guarantee} is no bound for observers of columns; with known = {known!r} write for instance "
                f"{'attribute:1.0 & srlip:4.0' if publishes else 'lip:1.0 & srlip:2.0'}"
            )
        kinds = (SRLIP, Attribute) if publishes else (RLIP if holds_out else LIP, SRLIP)
        if not all(type(part) in kinds for part in parts):
            raise SpecError(
                f"known = {known!r} goes with {' and '.join(kind.name for kind in kinds)} where the secret is "
                f"{'' if publishes else 'not '}published, and {guarantee} asks for more; leave that out"
            )
        return
    if holds_out:
        raise SpecError('records are held out for observers of any columns; write known = "single" or "pairs"')
    kinds = (PosteriorGuarantee, *((SRLIP,) if known else ()), *((Attribute,) if publishes else ()))
    if guarantee.is_perfect or not all(isinstance(part, kinds) for part in parts):
        raise SpecError(
            f"{guarantee} is no bound on the posterior of the secret that records of many columns could be moved "
            "under; choose lip, alip, ldp or pml with a budget above 0, name known columns for srlip, or publish the "
            "secret under attribute"
        )


def _by_column(joint: Joint, protocol: Protocol, donors: Donors) -> Mapping[str, float]:
    """Of every column the share of the records that are expected to keep its value, whoever their donors are.

    Moves do not read a published secret, so that people of every secret agree as often with their donors.
    """
    width = len([column for column in protocol.inputs.columns[:-1] if column not in donors.columns])
    people = protocol.matrix * joint.counts.sum(axis=0)
    flows: FloatArray = np.zeros((len(donors.sizes),) * 2)
    of = [donors.classes.index(symbol[-1]) for symbol in protocol.inputs.symbols]
    np.add.at(flows, (np.array(of)[:, np.newaxis], np.array(of)), people)
    kept = np.full(len(donors.columns), float(np.trace(flows)))
    for target, source in zip(*np.nonzero(flows), strict=True):
        if source != target:
            kept += float(flows[target, source]) * donors.agreeing(int(source), int(target))
    found = {}
    for j, column in enumerate(protocol.inputs.columns[:width]):
        values = np.array([symbol[j] for symbol in protocol.inputs.symbols])
        found[column] = float(people[values[:, np.newaxis] == values].sum()) / joint.n
    return found | dict(zip(donors.columns, (kept / joint.n).tolist(), strict=True))


def _columns_of(groups: Sequence[Sequence[str] | str]) -> tuple[str, ...]:
    named = [(group,) if isinstance(group, str) else tuple(group) for group in groups]
    columns = tuple(column for group in named for column in group)
    if not columns or not all(named):
        raise SpecError("name the columns to publish in groups, each of one column or more")
    if twice := [column for column in dict.fromkeys(columns) if columns.count(column) > 1]:
        raise SpecError(f"column {twice[0]!r} is in the groups twice; name it once")
    return columns


def _names(secret: Sequence[str] | str | None) -> tuple[str, ...]:
    return () if secret is None else (secret,) if isinstance(secret, str) else tuple(secret)


def _joint_of(
    source: Joint | pd.DataFrame | pa.Table | str | os.PathLike[str], columns: tuple[str, ...], secret: tuple[str, ...]
) -> Joint:
    """The counts of secrets and records, whose columns are in this order."""
    if not isinstance(source, Joint):
        if not secret:
            raise SpecError("name the columns of the secret, such as secret=['income']")
        return Joint.from_table(source, secret, columns)
    if secret != source.secret.columns:
        raise SpecError(f"the joint has the secret {list(source.secret.columns)}, not {list(secret)}")
    if sorted(columns) != sorted(source.inputs.columns):
        raise SpecError(
            f"the groups name the columns {sorted(columns)}, but the joint is over {sorted(source.inputs.columns)}; "
            "name each of them once"
        )
    if source.bounds is not None:
        raise SpecError(
            "the counts are known up to noise, and a bound over all tables within it is not kept for many columns; "
            "give the protected counts themselves, joint.as_published"
        )
    places = [source.inputs.columns.index(column) for column in columns]
    symbols = tuple(tuple(symbol[j] for j in places) for symbol in source.inputs.symbols)
    return Joint(source.counts, source.secret, Alphabet(columns, symbols))
