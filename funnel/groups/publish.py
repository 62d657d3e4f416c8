"""Publishing tables of many columns: groups, their order and their shares of the bound, chosen for utility."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from funnel.disclosure.rules import Rules
from funnel.errors import SolverError, SpecError
from funnel.groups.aims import Numbers
from funnel.groups.effective import Shown
from funnel.groups.halves import Halves
from funnel.groups.making import Made, Schedule, make
from funnel.groups.protocol import GroupedProtocol
from funnel.groups.prove import prove
from funnel.groups.purposes import (
    Name,
    Purpose,
    Told,
    explained_by,
    mean_explained,
    purpose_of,
    values_of,
    worth_for_estimates,
)
from funnel.groups.records import Records
from funnel.groups.robust import Proven, made_by_some, make_robustly, new_seed, robust_kind
from funnel.groups.telling import told_by
from funnel.guarantees.base import Guarantee
from funnel.guarantees.robust import RobustRatio
from funnel.history.allowed import require_posterior
from funnel.joint import Joint
from funnel.progress import Progress, quiet
from funnel.solver.budget import Budget

if TYPE_CHECKING:
    import pandas as pd

PEOPLE: Final = 50
"""How many people are expected, at least, where a channel is made for a prefix."""
# Seconds of work for all that is tried, and the share of them for trials.
_SECONDS, _TRIALS = 240.0, 0.5
# What is tried: how much of the bound the first stage may use, and what it knows of later columns.
_SCHEDULES = (Schedule(0.95, 4), Schedule(0.9, 4), Schedule(0.8, 4))
# Under rules many prefixes share a channel, which takes room in the bound.
_UNDER_RULES = (Schedule(0.8, 4), Schedule(0.6, 4), Schedule(0.8, 2), Schedule(0.6, 2))
# Proof takes room of its own, and of few people nothing may be left for what comes later.
_ROBUST = (Schedule(0.9, 4), Schedule(0.6, 4), Schedule(0.7, 1))
# Numbers may use all of the bound at once: what comes after says what tells nothing of the secret.
_FOR_NUMBERS = (*_SCHEDULES, Schedule(0.6, 4), Schedule(0.3, 4), Schedule(1.0, 4))
_FOR_NUMBERS_UNDER_RULES = (*_UNDER_RULES, Schedule(0.3, 4), Schedule(1.0, 4))
# Estimates are made from what becomes of every column on average, and classes of later columns blur that: outputs that
# differ in them alone have one text.
_FOR_ESTIMATES = (Schedule(0.9, 1), Schedule(0.95, 1), Schedule(0.8, 1), Schedule(0.6, 1), *_SCHEDULES)
_FOR_ESTIMATES_UNDER_RULES = (Schedule(0.8, 1), Schedule(0.6, 1), Schedule(0.9, 1), *_UNDER_RULES)
_FOR_ESTIMATES_ROBUST = (Schedule(0.9, 1), Schedule(0.6, 1), *_ROBUST)
# Trials make channels for so many prefixes at most, or take as long as what is made in the end.
_TRIED_PREFIXES = 250
# Columns are one group while there are so few combinations of their values.
_TOGETHER = 64
_USUAL: Final[Mapping[str, Mapping[str, tuple[Schedule, ...]]]] = {
    "information": {"plain": _SCHEDULES, "rules": _UNDER_RULES, "robust": _ROBUST},
    "variance": {"plain": _FOR_NUMBERS, "rules": _FOR_NUMBERS_UNDER_RULES, "robust": _ROBUST},
    "estimation": {
        "plain": _FOR_ESTIMATES,
        "rules": _FOR_ESTIMATES_UNDER_RULES,
        "robust": _FOR_ESTIMATES_ROBUST,
    },
}

_SAID: Final[Mapping[str, tuple[str, str, str]]] = {
    "information": ("told most", "of the entropy", "told"),
    "variance": ("explained most", "of the variance of the numbers", "explained"),
    "estimation": ("was worth most for estimates", "of the records", "was worth"),
}

Groups = Sequence[str | Sequence[str]]
Way = tuple[tuple[str, ...], ...]
_Result = tuple[Told, Way, Schedule, Made]


@dataclass(frozen=True)
class Tried:
    """One way to publish a table.

    Attributes
    ----------
    groups : tuple of tuple of str
    schedule : Schedule
    kept : float
        I(X;Y) as a share of H(X), with channels for prefixes of many people only.
    worth : float
        What ways are compared by: the same by information; by variance the mean share of the variance of a number that
        is explained; by estimation a share of the records (`funnel.estimation.grouped_errors.grouped_worth`).
    """

    groups: tuple[tuple[str, ...], ...]
    schedule: Schedule
    kept: float
    worth: float

    def __str__(self) -> str:
        groups = ", then ".join(" with ".join(group) for group in self.groups)
        return f"{groups}, {self.schedule}: {self.worth:.1%}"


@dataclass(frozen=True, eq=False)
class GroupedSolution:
    """A grouped protocol that provably keeps one bound for the whole record.

    Attributes
    ----------
    protocol : GroupedProtocol
    level : float
        The smallest budget (nats) that would do for every prefix and output; never below the exact one. Under a robust
        guarantee it is that over all laws within the limits.
    utility : float
        I(X;Y) of whole records, X all columns and Y what is published of them, nats.
    entropy : float
        H(X), nats.
    told : tuple of float
        What every stage adds for whoever sees which of the outputs with one label it was; they sum to a bit more.
    prefixes : tuple of int
        Prefixes of which something is said, by stage.
    shared : tuple of float
        The share of all people who are expected to draw by a row of weights that several combinations of values have
        in common, by stage.
    decided : int
        Prefixes and outputs whose posterior was decided, each in whole numbers; under a robust guarantee, for the
        counts.
    schedule : Schedule
    tried : tuple of Tried
        What groups, order and shares of the bound were chosen from, best first.
    proven : Proven or None
        What the bound rests on in the population, under a robust guarantee.
    chosen_by : "information", "variance" or "estimation"
        What ways were compared by.
    explained : mapping of column to float
        By variance, of every column of numbers the share of its variance that whole records explain; else empty.
    worth : float or None
        By estimation, what the records are worth for estimates, as a share of them.
    numbers : mapping of column to mapping of value to float or None
        By variance, what values stand for; else empty.
    """

    protocol: GroupedProtocol
    level: float
    utility: float
    entropy: float
    told: tuple[float, ...]
    prefixes: tuple[int, ...]
    shared: tuple[float, ...]
    decided: int
    schedule: Schedule
    tried: tuple[Tried, ...]
    proven: Proven | None = None
    chosen_by: Name = "information"
    explained: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    worth: float | None = None
    numbers: Numbers = field(default_factory=lambda: MappingProxyType({}))

    @property
    def groups(self) -> tuple[tuple[str, ...], ...]:
        """The groups in the order in which they are published."""
        return tuple(stage.columns for stage in self.protocol.stages)

    @property
    def reason(self) -> str:
        """Why these groups, this order and these shares of the bound, in one sentence."""
        if len(self.tried) < 2:
            return "There was one way to publish these groups."
        best, second = self.tried[:2]
        did, share, other = _SAID[self.chosen_by]
        told = f"{best.worth:.1%} {share}, where the next {other} {second.worth:.1%}."
        # Trials make fewer channels than a release, or prove nothing; its own share is told beside this sentence.
        shortly = f"{best.worth:.1%}" != f"{self._reached:.1%}"
        return (
            f"Of {len(self.tried)} ways, this one {did} in short trials: {told}"
            if shortly
            else f"Of {len(self.tried)} ways that were tried, this one {did}: {told}"
        )

    @property
    def _reached(self) -> float:
        """What ways are compared by, of this one itself."""
        if self.chosen_by == "variance":
            return mean_explained(self.explained)
        return self.utility / self.entropy if self.worth is None else self.worth


def publish_groups(
    source: Joint | pd.DataFrame | pa.Table | str | os.PathLike[str],
    groups: Groups | str,
    guarantee: Guarantee,
    *,
    secret: Sequence[str] | None = None,
    people: int = PEOPLE,
    schedule: Schedule | None = None,
    time_limit: float | Budget | None = None,
    progress: Progress = quiet,
    together: Callable[[tuple[str, ...]], bool] | None = None,
    rules: Rules | None = None,
    seed: str | None = None,
    utility: str = "information",
    numbers: Numbers | None = None,
) -> GroupedSolution:
    """Publish the columns of a table group by group, with one bound on the secret for the whole record.

    Each group is published given what the record already shows, with the posterior of the secret kept in the cone of
    the guarantee (METHOD section 9). So the whole record keeps the bound by construction, and there is no alphabet of
    all combinations. Nothing is used up: where a record may say no more of the secret, it may still say what tells
    nothing of it.

    Parameters
    ----------
    source : Joint, or pandas.DataFrame, pyarrow.Table or path of a parquet file
        A joint law over all columns to publish; or a table, with ``secret``.
    groups : sequence
        Groups of columns in the order in which they are published, the most important first. A flat list of columns
        is put into groups in its order. ``"auto"`` takes all columns (of a joint law) in an order that is chosen too.
    guarantee : Guarantee
        LIP, ALIP or LDP; or RLIP, RALIP or RLDP over boxes, for a bound in the population that the table is a sample
        of: some people make the protocol, and the others prove it.
    secret : sequence of str, optional
        Columns of the secret, for a table.
    people : int
        Channels are made for prefixes that so many people are expected to have. Where there are fewer, a prefix uses a
        channel made for more people if it is proven for this prefix too; else nothing more is said.
    schedule : Schedule, optional
        How the stages share the bound; by default, what tells most of some that are tried.
    time_limit : float or Budget, optional
        Seconds of processor time of the reference machine, counted as work; the same input gives the same protocol.
    progress : callable
    together : callable, optional
        Of groups that are chosen: whether these columns may be one.
    rules : Rules, optional
        Rules of disclosure control that the table of the secret and what is read has to keep for all who draw from
        one channel; what breaks them shares its weights with others.
    seed : str, optional
        Which people make a protocol under a robust guarantee, and which prove it; by default, one that is drawn and
        told in ``proven``. The bound is lost if seeds are tried until one pleases.
    utility : "information", "variance" or "estimation"
        What is told of most: I(X;Y) of whole records; or the share of the variance of every column of numbers that they
        explain, and information of other columns; or what estimates of every column and pair are worth.
    numbers : mapping of column to mapping of value to float or None, optional
        By variance, what values stand for, None for one that stands for no number. By default all columns whose values
        are numbers themselves.

    Returns
    -------
    GroupedSolution
        Its protocol meets the guarantee for everything that a record can show, decided in whole numbers.

    Raises
    ------
    SpecError
        If groups or numbers do not fit the columns, or the guarantee is no bound on the posterior of the secret, or
        perfect privacy, whose equations whole numbers meet by a lattice only (`funnel.optimal`).
    DataError
        As `Joint.from_table`.

    Notes
    -----
    A stage costs at most n / people programmes, whatever the number of columns before it.

    Examples
    --------
    >>> import funnel
    >>> rows = [("yes", "a", "u"), ("yes", "a", "v"), ("no", "b", "u"), ("no", "b", "v"), ("no", "a", "u")] * 40
    >>> import pyarrow
    >>> table = pyarrow.table({name: list(of) for name, of in zip(("ill", "x", "y"), zip(*rows))})
    >>> made = funnel.publish_groups(table, [["x"], ["y"]], funnel.LIP(0.5), secret=["ill"])
    >>> made.level <= 0.5, made.groups, made.protocol.labels["y"]
    (True, (('x',), ('y',)), ('u', 'v', 'any'))
    """
    robust = robust_kind(guarantee)
    declared = require_posterior(guarantee if robust is None else robust.nominal)
    if declared.is_perfect:
        raise SpecError(f"{guarantee} is met by no rounding; choose a budget above 0, or funnel.optimal")
    if people < 1:
        raise SpecError(f"people must be at least 1, not {people}")
    joint = _joint(source, groups, secret)
    if people > joint.n:
        raise SpecError(f"no prefix has {people:,} people where the table has {joint.n:,}; choose fewer")
    records = Records.of(joint)
    purpose = purpose_of(utility, numbers, values_of(joint.inputs))
    budget = Budget.of(_SECONDS if time_limit is None else time_limit)
    kind = "robust" if robust is not None else "plain" if rules is None else "rules"
    schedules = _USUAL[purpose.name][kind] if schedule is None else (schedule,)
    if robust is not None:
        halves = Halves.of(joint, new_seed() if seed is None else seed)
        ways = list(_ways(made_by_some(joint, halves), groups, together, purpose.numbers))
        return _robustly(records, halves, ways, robust, schedules, people, budget, progress, rules, purpose)
    ways = list(_ways(records, groups, together, purpose.numbers))
    if len(ways[0]) == 1 and len(ways) == 1:
        schedules = schedules[:1]
    enough = max(people, joint.n // _TRIED_PREFIXES)
    results: list[_Result] = []
    if len(ways) > 1 or len(schedules) > 1:

        def tried(trials: Sequence[tuple[Way, Schedule]], before: int, every: int) -> None:
            for number, (way, one) in enumerate(trials, start=before):
                part = trying.part(1 / (every - number))
                made = make(records, way, declared, one, enough, part, quiet, rules, purpose.numbers)
                results.append((purpose.told(Shown.of(joint, made.protocol)), way, one, made))
                progress("ways to publish the groups", number + 1, every)
            results.sort(key=lambda result: -result[0].worth)

        trying = budget.part(_TRIALS)
        if purpose.name != "information":
            # Such figures, or channels for them, take longer: first which groups, then which schedule.
            first = [(way, schedules[0]) for way in ways]
            tried(first, 0, len(first) + len(schedules) - 1)
            best = results[0][1]
            rest = [(best, one) for one in (schedules[1:] if len(best) > 1 else ())]
            tried(rest, len(first), len(first) + len(rest))
        else:
            trials = [(way, one) for way in ways for one in (schedules if len(way) > 1 else schedules[:1])]
            tried(trials, 0, len(trials))
        way, chosen = results[0][1:3]
    else:
        way, chosen = ways[0], schedules[0]
    if results and enough == people:
        made = results[0][3]
    else:
        made = make(records, way, declared, chosen, people, budget, progress, rules, purpose.numbers)
    proof = prove(joint, declared, made.protocol)
    if not proof.holds:
        raise SolverError(f"the protocol of groups does not meet {guarantee}; this is a defect, please report it")
    shown = Shown.of(joint, made.protocol)
    return GroupedSolution(
        made.protocol,
        proof.level,
        shown.information,
        joint.entropy,
        made.told,
        made.prefixes,
        made.shared,
        proof.outputs,
        chosen,
        tuple(_tried(told, of, one) for told, of, one, _ in results),
        chosen_by=purpose.name,
        explained=explained_by(shown, purpose.numbers),
        worth=worth_for_estimates(shown) if purpose.name == "estimation" else None,
        numbers=purpose.numbers,
    )


def _tried(told: Told, way: Way, schedule: Schedule) -> Tried:
    return Tried(way, schedule, told.kept, told.worth)


def _robustly(
    records: Records,
    halves: Halves,
    ways: Sequence[tuple[tuple[str, ...], ...]],
    guarantee: RobustRatio,
    schedules: Sequence[Schedule],
    people: int,
    budget: Budget,
    progress: Progress,
    rules: Rules | None,
    purpose: Purpose,
) -> GroupedSolution:
    joint = records.joint
    made = make_robustly(records, halves, ways, guarantee, schedules, people, budget, progress, rules, purpose)
    proof = prove(joint, require_posterior(guarantee.nominal), made.protocol)
    if not proof.holds:
        raise SolverError(f"the protocol of groups does not meet {guarantee}; this is a defect, please report it")
    told, shared = told_by(joint, made.protocol)
    shown = Shown.of(joint, made.protocol)
    return GroupedSolution(
        made.protocol,
        made.level,
        max(0.0, shown.information),
        joint.entropy,
        told,
        made.prefixes,
        shared,
        proof.outputs,
        made.schedule,
        tuple(_tried(told, way, one) for told, way, one in made.tried),
        made.proven,
        purpose.name,
        explained_by(shown, purpose.numbers),
        worth_for_estimates(shown) if purpose.name == "estimation" else None,
        purpose.numbers,
    )


def _joint(source: Any, groups: Groups | str, secret: Sequence[str] | None) -> Joint:
    if isinstance(source, Joint):
        if source.bounds is not None:
            raise SpecError(
                "groups of columns are published under exact frequencies; noisy counts of this many combinations say "
                "nothing of each"
            )
        return source
    if not secret:
        raise SpecError("name the columns of the secret: secret=[…]")
    if isinstance(groups, str):
        raise SpecError('groups="auto" takes the columns of a joint law; name the columns of a table')
    columns = [column for group in groups for column in ([group] if isinstance(group, str) else group)]
    return Joint.from_table(source, list(secret), columns)


def _ways(
    records: Records,
    groups: Groups | str,
    together: Callable[[tuple[str, ...]], bool] | None,
    numbers: Numbers,
) -> Iterator[Way]:
    """Groups in order: those given, or some that are worth trying."""
    if isinstance(groups, str):
        if groups != "auto":
            raise SpecError(f'groups are lists of columns or "auto", not {groups!r}')
        orders = list(_orders(records))
        if numbers:
            # What is to be explained first has most of the bound, and most people.
            orders += [tuple(sorted(order, key=lambda column: column not in numbers)) for order in orders]
    elif groups and all(isinstance(group, str) for group in groups):
        orders = [tuple(str(column) for column in groups)]
    else:
        if any(isinstance(group, str) for group in groups):
            raise SpecError("name groups as lists of columns, or columns alone, not both")
        way = tuple(tuple(group) for group in groups)
        _check(records, [column for group in way for column in group])
        if not all(way):
            raise SpecError("a group needs at least one column")
        yield way
        return
    _check(records, list(orders[0]))
    found: dict[Way, None] = {}
    for order in orders:
        found[tuple((column,) for column in order)] = None
        found[_packed(records, order, together)] = None
    yield from found


def _check(records: Records, columns: list[str]) -> None:
    for column in columns:
        records.place(column)
    if len(set(columns)) != len(columns):
        raise SpecError(f"a column is in two groups, or twice in one: {columns}")
    if missing := [column for column in records.columns if column not in columns]:
        raise SpecError(
            f"the joint law has column {missing[0]!r}, which is in no group; count the grouped columns only"
        )


def _orders(records: Records) -> Iterator[tuple[str, ...]]:
    """The order of the columns, and the columns by what they tell of the secret for what they say: both ways."""
    yield records.columns
    tells = []
    for place in range(len(records.columns)):
        law = records.law(records.codes[:, place], len(records.values[place]))
        independent = law.sum(axis=1, keepdims=True) * law.sum(axis=0)
        some = law > 0
        tells.append(float((law[some] * np.log(law[some] / independent[some])).sum()))
    for sign in (1, -1):
        yield tuple(records.columns[place] for place in np.argsort(sign * np.array(tells), kind="stable"))


def _packed(
    records: Records, order: Sequence[str], together: Callable[[tuple[str, ...]], bool] | None
) -> tuple[tuple[str, ...], ...]:
    """Neighbours in one group while there are few combinations."""
    groups: list[tuple[str, ...]] = []
    for column in order:
        longer = (*groups[-1], column) if groups else (column,)
        if groups and len(records.read(longer)[0]) <= _TOGETHER and (together is None or together(longer)):
            groups[-1] = longer
        else:
            groups.append((column,))
    return tuple(groups)
