"""Observers: columns of whole records which an observer may know, and for which the bound can be for those who do."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import numpy.typing as npt

from funnel.disclosure import Disclosure
from funnel.disclosure.threshold import class_rules
from funnel.donors.composition import Composition
from funnel.donors.growing import grown
from funnel.donors.parts import parts_by_need
from funnel.donors.record_classes import RecordClasses
from funnel.drafting.choice import KNOWING, NOMINAL, PUBLISHED, ROBUST, Choice, at_once_reason, whole_reason
from funnel.drafting.coarse import coarse
from funnel.drafting.limits import SHARE, VALUES
from funnel.drafting.look import Look
from funnel.drafting.roles import Roles
from funnel.errors import DataError, InfeasibleGuarantee, SolverError, SpecError
from funnel.guarantees import SRLIP, Several, parse_guarantee
from funnel.joint import IntArray, Joint
from funnel.measures.information import information_of
from funnel.progress import Progress, quiet
from funnel.readers.formats import open_source
from funnel.settings.disclosure_rules import Rules
from funnel.settings.groups import AT_ONCE, AtOnce
from funnel.solver.part_programme import best_moves
from funnel.source.counting import choosing_in_source, count_joint, is_wide, recoded
from funnel.spec import ReleaseSpec
from funnel.wording import listed

BoolArray = npt.NDArray[np.bool_]
# Counts of whole records, and their classes; no classes where all combinations can be outputs.
Classes = tuple[Joint, RecordClasses | None]
# Columns that are taken unasked, and combinations of their values: each needs records for classes of its own.
_UNASKED, _COMBINATIONS = 2, 16
# Beyond so many published columns the bound is for observers of any two of them, or else of any one: with the least
# budget of these, nats, under which so many of the records stay; with a published secret, of those that stay without.
_SETS, _BUDGETS, _MOST, _OF_STAYING = 8, (1.0, 2.0, 3.0, 4.0), 0.8, 0.95
_KNOWN_AT_ONCE: tuple[AtOnce, ...] = ("pairs", "single")
# The share of the records that say what the classes of others tell in the population.
_HELD_OUT = 0.3
# A budget, nats, that bounds nothing.
_NO_BOUND = 100.0
# The part of the information in the secret from which on a column decides it.
_DECIDED = 0.75
# What observers see of a person comes first.
_SEEN = re.compile(r"(^|[^a-z])(sex|gender|female|male|age|birth|dob|born|race|ethnic)")


def with_known_columns(
    choice: Choice,
    asked: Sequence[str],
    look: Look,
    roles: Roles,
    spec_of: Callable[[Choice], ReleaseSpec],
    classes: Classes | None,
    progress: Progress,
) -> Choice:
    """Choose which columns the bound is for observers of, where whole records are drawn by class.

    Each combination of their values needs so many records, with every value of the secret among them, as a class of
    records does. Columns that a person named get fewer categories until that is so. Unasked, columns by which an
    outsider could find somebody are tried as they are. Of more than eight columns the bound is for observers of any two
    of them, or else of any one, if most records stay under it.

    Parameters
    ----------
    choice : Choice
    asked : sequence of str
        Columns that the person says an observer may know; none if nobody said.
    look : Look
    roles : Roles
    spec_of : callable
        The spec of a choice.
    classes : pair of Joint and RecordClasses, or None
        Of its spec, as `classes_of` finds them.
    progress : callable

    Raises
    ------
    SpecError
        If columns that were asked for have combinations that too few records have, with what to do instead.
    DataError
        If the source cannot be read.
    """
    if asked:
        return _as_named(choice, tuple(asked), look, spec_of, progress)
    if classes is not None and len(choice.publish) > _SETS and choice.guarantee in ((NOMINAL,), (PUBLISHED,)):
        joint, by_class = classes
        if by_class is not None and (found := _at_once(choice, spec_of(choice), joint, by_class, progress)) is not None:
            return found
    sizes = {one.column: one.size for one in choice.coarse}
    tried = [one.name for one in roles.known if one.name in choice.publish and one.name not in choice.secret]
    spec, known = spec_of(choice), tuple[str, ...]()
    for column in sorted(tried, key=lambda name: (not _SEEN.search(name.lower()), sizes[name])):
        if len(known) < _UNASKED and sizes[column] <= _COMBINATIONS and _may_be_known(spec, (*known, column), progress):
            known = (*known, column)
    return _for_observers(choice, known) if known else choice


@dataclass(frozen=True, eq=False)
class _Chosen:
    """Classes that a bound for observers of any columns may be kept between.

    Attributes
    ----------
    declared : str
        The bound for observers of none.
    held_out : float
        The share of the records that do not choose the classes.
    joint : Joint
        Counts of whole records.
    classes : RecordClasses
    choosing : Joint or None
        Of those records that choose the classes, if not all do.
    """

    declared: str
    held_out: float
    joint: Joint
    classes: RecordClasses
    choosing: Joint | None = None

    def stays(self, known: AtOnce, budget: float, least: float) -> float:
        """The share of the records that stay; 0 if it is smaller than the least, or no protocol is found."""
        try:
            found = Composition.of(self.joint, parts_by_need(self.joint, self.classes, budget, AT_ONCE[known]))
            parts = (found if self.choosing is None else found.held_out_from(self.choosing)).joint
            read = parts.with_secret() if self.declared == PUBLISHED else parts
            return best_moves(read, Several([parse_guarantee(self.declared), SRLIP(budget)]), quiet, least).unchanged
        except (InfeasibleGuarantee, SolverError, SpecError):
            return 0.0


def _at_once(
    choice: Choice, spec: ReleaseSpec, joint: Joint, classes: RecordClasses, progress: Progress
) -> Choice | None:
    """A bound for observers of any columns, of two or else of one: the smallest that leaves most; None if none does.

    For observers of no column it holds in the population, if that leaves most too.
    """
    (declared,) = choice.guarantee
    progress("looking how many records stay for observers of any columns", 0, None)
    chosen = [_Chosen(declared, 0.0, joint, classes)]
    least = _OF_STAYING * chosen[0].stays("single", _NO_BOUND, 0.0) if declared == PUBLISHED else _MOST
    if declared == NOMINAL and (robust := _holding_out(spec, joint)) is not None:
        chosen.insert(0, robust)
    for known, one in product(_KNOWN_AT_ONCE, chosen):
        # From the largest on, as smaller ones take longer and leave less.
        budget, most = None, 0.0
        for smaller in reversed(_BUDGETS):
            if (kept := one.stays(known, smaller, least)) < least:
                break
            budget, most = smaller, kept
        if budget is not None:
            found = replace(choice, known=known, held_out=one.held_out, guarantee=(one.declared, str(SRLIP(budget))))
            why = {**choice.why, "guarantee": at_once_reason(found, known, most)}
            return replace(found, why=why)
    return None


def _holding_out(spec: ReleaseSpec, joint: Joint) -> _Chosen | None:
    """Classes that a part of the records choose, for a bound in the population; None if there are no such."""
    if spec.source.format == "sql":
        return None
    holding = spec.model_copy(update={"groups": spec.groups.model_copy(update={"held_out": _HELD_OUT})})
    source = open_source(holding)
    choosing = choosing_in_source(holding, source, recoded(holding, source, quiet))
    if choosing is None:
        return None
    try:
        rules = class_rules(holding)
        classes = grown(choosing, holding.groups.min_records, rules)
        if not Disclosure(classes.counted(joint), rules).passes:
            return None
    except DataError:
        return None
    return _Chosen(ROBUST, _HELD_OUT, joint, classes, choosing)


def with_all_known(choice: Choice) -> Choice:
    """The bound of few columns for observers who know any of them.

    Raises
    ------
    SpecError
        If there is no such bound.
    """
    if PUBLISHED in choice.guarantee or KNOWING in choice.guarantee:
        return choice
    if choice.people == "same":
        raise SpecError(
            "--known is for a bound on observers who know columns, which is not there for versions about the same "
            "people; take it out, or say --people different if every person is in one version"
        )
    if len(choice.publish) < 2:
        raise SpecError(
            f"--known names {choice.publish[0]!r}, the only published column, and an observer who knows it learns "
            "nothing from "
            "a record; take it out, or publish more columns"
        )
    reason = "For observers of the record, in the population too (rlip), and for those who know some columns (srlip)."
    return replace(choice, guarantee=(*choice.guarantee, KNOWING), why={**choice.why, "guarantee": reason})


def _as_named(
    choice: Choice, known: tuple[str, ...], look: Look, spec_of: Callable[[Choice], ReleaseSpec], progress: Progress
) -> Choice:
    """These columns, with as many categories as each combination of them can have records for."""
    columns = {column.name: column for column in look.columns}
    while not _may_be_known(spec_of(choice), known, progress):
        sizes = {one.column: one.size for one in choice.coarse if one.column in known}
        largest = max(known, key=lambda name: sizes[name])
        if sizes[largest] <= 2:
            raise SpecError(
                f"too few records, or nearly all with one secret, have some values of {listed(known)} together for a "
                "bound on observers who know them, however few categories these columns have; name fewer with --known"
            )
        fewer = coarse(columns[largest], look.rows, min(VALUES, sizes[largest] - 1), SHARE)
        choice = replace(choice, coarse=tuple(fewer if one.column == largest else one for one in choice.coarse))
    return _for_observers(choice, known)


def _for_observers(choice: Choice, known: tuple[str, ...]) -> Choice:
    guarantee = choice.guarantee if choice.guarantee == (PUBLISHED,) else (NOMINAL, KNOWING)
    why = {**choice.why, "guarantee": whole_reason(choice, known)}
    return replace(choice, known=known, guarantee=guarantee, why=why)


def _may_be_known(spec: ReleaseSpec, columns: tuple[str, ...], progress: Progress) -> bool:
    """Whether every combination of values of these columns can be a class of records."""
    # Each set of columns is counted anew, in no time: one line about all of them is enough.
    progress("looking which columns observers may know", 0, None)
    tables = _exactly_counted(spec.model_copy(update={"publish": columns})).counts
    together = tables.sum(axis=0)
    refused = _refused(tables, class_rules(spec), tables.sum(axis=1)) | (together < spec.groups.min_records)
    return len(together) <= _COMBINATIONS and not refused.any()


def classes_of(spec: ReleaseSpec, progress: Progress) -> Classes | None:
    """Counts of whole records and their classes; None where a release stops, since there are no two classes."""
    progress("looking for classes of records", 0, None)
    try:
        joint, by_class = _counted(spec)
        return joint, grown(joint, spec.groups.min_records, class_rules(spec)) if by_class else None
    except DataError:
        return None


def unfit_columns(spec: ReleaseSpec) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Columns of which no two categories may be told, and others that each tell most of the secret by themselves.

    The first have one value in nearly all records with some secret; of the second a date of death is one, where the
    secret is who died.
    """
    joint, rules = _exactly_counted(spec), class_rules(spec)
    of_secret = joint.counts.sum(axis=1)
    alike, deciding = [], []
    for column, codes in zip(joint.inputs.columns, joint.inputs.codes.T, strict=True):
        table = np.stack([np.bincount(codes, weights=records) for records in joint.counts]).astype(np.int64)
        table = table[:, table.sum(axis=0) > 0]
        # What as many values tell of anything by chance is no information.
        chance = (len(of_secret) - 1) * (table.shape[1] - 1) / (2 * joint.n)
        if information_of(table / joint.n) - chance > _DECIDED * information_of(np.diag(of_secret / joint.n)):
            deciding.append(column)
        elif not _can_be_told(table, rules, of_secret):
            alike.append(column)
    return tuple(alike), tuple(deciding)


def _can_be_told(table: IntArray, rules: Rules, of_secret: IntArray) -> bool:
    """Whether disclosure control lets some first values of a column be told from the others: in order, or by size."""
    for order in (np.arange(table.shape[1]), np.argsort(-table.sum(axis=0), kind="stable")):
        first = table[:, order].cumsum(axis=1)[:, :-1]
        others = of_secret[:, np.newaxis] - first
        if (~_refused(first, rules, of_secret) & ~_refused(others, rules, of_secret)).any():
            return True
    return False


def _refused(tables: IntArray, rules: Rules, of_secret: IntArray) -> BoolArray:
    """Of which columns of counts (c, a) disclosure control refuses that they are told."""
    rare = ((tables > 0) & (tables < rules.minimum_cell)).any(axis=0)
    return np.asarray(rare | rules.dominant(tables, tables.sum(axis=0), of_secret, int(of_secret.sum())).any(axis=0))


def _exactly_counted(spec: ReleaseSpec) -> Joint:
    """Exact counts, of columns as the spec recodes them; nothing of them is published."""
    exact = spec.frequencies.model_copy(update={"protection": "none"})
    return _counted(spec.model_copy(update={"frequencies": exact}))[0]


def _counted(spec: ReleaseSpec) -> tuple[Joint, bool]:
    """The counts that a release is made from, and whether records are drawn by class."""
    source = open_source(spec)
    codings = recoded(spec, source, quiet)
    joint = count_joint(spec, quiet, source, codings)
    return joint, is_wide(spec, joint, codings)
