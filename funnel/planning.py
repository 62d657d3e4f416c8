"""What each mechanism would cost in utility, and the choice of the best one."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal
from typing import Protocol as Interface

import numpy as np

from funnel.alphabet import CLASS_COLUMN
from funnel.certificate import Certificate, Weighting
from funnel.errors import FunnelError, InfeasibleGuarantee, SolverError, SpecError
from funnel.guarantees.base import Guarantee
from funnel.joint import Joint
from funnel.measures.unchanged_shares import unchanged
from funnel.measures.utilities import INFORMATION, Utility, utility_of
from funnel.mechanisms import mechanism, names
from funnel.mechanisms.family import Fitted
from funnel.mechanisms.instead import has_optimum
from funnel.mechanisms.memory import check_size, require_memory
from funnel.progress import Progress, quiet
from funnel.protocol import DENOMINATOR, INVARIANT, Protocol
from funnel.solver.budget import Budget, Clock

AUTO = "auto"
# A mechanism that could keep at most this share of H(X) more than what is there cannot win.
WORTHWHILE = 1e-3
# Seconds of work for a mechanism that is only compared, since the spec names another one.
COMPARED = 0.5
# Of what is left for mechanisms that could still win once the optimum ran out of time, what each may take.
_SHARE = 0.5
# Relatively: so that a fraction of a budget, which is a product, is surely not exceeded.
_INSIDE = 1e-9
_FORBIDDEN = "reads the secret; allow it with reads_secret = true under [mechanism]"


@dataclass(frozen=True, eq=False)
class PlanRow:
    """One mechanism judged for one joint distribution and guarantee.

    Attributes
    ----------
    mechanism : str
    reads_secret : bool
    protocol : Protocol or None
        None where the mechanism is not applicable.
    utility : float or None
        I(X;Y), nats; or the share of the variance that is explained, where that was asked for.
    share : float or None
        The same of all there is: I(X;Y) / H(X), or the share of the variance.
    level : float or None
        Exact level (nats) of the protocol, or the best level the mechanism can reach where it is not applicable.
    seconds : float
    reason : str or None
        Why the mechanism is not applicable, not allowed or not fitted; None if it may be used.
    bound : float or None
        Where it is certified: no protocol that reads the same and meets the guarantee has a larger utility.
    finished : bool
        False if a search ended before it was done: by the time limit, or because it gave up. The protocol holds all
        the same.
    tried : bool
        False if the mechanism was not fitted because the spec does not ask for it, or because it could not win.
    unchanged : float or None
        Of an invariant protocol the expected share of the records that are wholly unchanged.
    certificate : Certificate or None
        By how much another protocol could be better, where that is known.
    """

    mechanism: str
    reads_secret: bool
    protocol: Protocol | None
    utility: float | None
    share: float | None
    level: float | None
    seconds: float
    reason: str | None
    bound: float | None = None
    finished: bool = True
    tried: bool = True
    unchanged: float | None = None
    certificate: Certificate | None = None

    def to_dict(self) -> dict[str, Any]:
        """The row without its protocol, as JSON-ready values; an infinite level becomes None."""
        return {
            "mechanism": self.mechanism,
            "reads_secret": self.reads_secret,
            "usable": self.reason is None,
            "utility": self.utility,
            "share": self.share,
            "level": self.level if self.level is not None and math.isfinite(self.level) else None,
            "bound": self.bound,
            "finished": self.finished,
            "seconds": self.seconds,
            "reason": self.reason,
            "unchanged": self.unchanged,
            "certificate": None if self.certificate is None else asdict(self.certificate),
        }


@dataclass(frozen=True)
class MechanismChoice:
    """Which mechanisms a release may be made by.

    Attributes
    ----------
    name : str
        A registered mechanism, or "auto".
    reads_secret : bool
        Whether a protocol that reads the secret may be chosen.
    time_limit : float or None
        Seconds, as work that is counted.
    weights : "root", "share" or "uniform"
        What values count that an invariant protocol leaves as they are.
    """

    name: str = AUTO
    reads_secret: bool = False
    time_limit: float | None = None
    weights: Weighting = "root"


class Fits(Interface):
    """Rows that were fitted before, as `funnel.tradeoff.fitted.FittedRows` keeps them.

    A row is known by counts, guarantee, mechanism, the units of work that it may take, and what it is chosen by.
    """

    def find(self, joint: Joint, guarantee: Guarantee, name: str, work: float, *chosen_by: object) -> PlanRow | None:
        """A row, if it was kept."""

    def keep(self, row: PlanRow, joint: Joint, guarantee: Guarantee, work: float, *chosen_by: object) -> None:
        """Keep a row."""


def plan(
    joint: Joint,
    guarantee: Guarantee,
    mechanisms: Sequence[str] | None = None,
    reads_secret: bool = False,
    time_limit: float | None = None,
    progress: Progress = quiet,
    *,
    forbidden: bool = False,
    told: Callable[[PlanRow], None] | None = None,
    clock: Clock = time.perf_counter,
    utility: str | Utility = INFORMATION,
    weights: Weighting = "root",
    named: str = AUTO,
    kept: Fits | None = None,
    ruled_out: Mapping[str, str] | None = None,
    others: Sequence[PlanRow] = (),
) -> tuple[PlanRow, ...]:
    """Fit every mechanism that may be used and report its utility, exact level and time, best first.

    Parameters
    ----------
    joint : Joint
    guarantee : Guarantee
    mechanisms : sequence of str, optional
        Names to try; all by default.
    reads_secret : bool
        Whether a protocol that reads the secret may be chosen.
    time_limit : float, optional
        Seconds for each mechanism, as work that is counted: the same on a busy machine.
    progress : callable
        Told the name of each mechanism before it is fitted, and how far an optimum has come.
    forbidden : bool
        Fit also those that read the secret although they may not, to see what that would be worth.
    told : callable, optional
        Given each row as soon as it is there.
    clock : callable
        Seconds; for the times in the rows and the safety stop of budgets.
    utility : "information", "variance" or Utility
        What protocols are chosen by.
    weights : "root", "share" or "uniform"
        What values count that an invariant protocol leaves as they are.
    named : str
        The mechanism that a release would use, with all of the time limit; others are then compared with half a second.
    kept : Fits, optional
        What is there is not fitted again, and what is fitted is kept there.
    ruled_out : mapping of str to str, optional
        Mechanisms that a release cannot be drawn by, each with the reason; they are not fitted.
    others : sequence of PlanRow
        For the same counts under other bounds, such as smaller ones. A mechanism whose search the limit ended takes the
        protocol of one of them that meets this bound and keeps more, so that no curve falls.

    Raises
    ------
    SpecError
        If a mechanism is unknown, the guarantee cannot be asked of this joint distribution at all, or the alphabet is
        too large.

    Examples
    --------
    >>> import funnel
    >>> joint = funnel.Joint.from_counts([[30, 10], [10, 50]])
    >>> for row in funnel.plan(joint, funnel.LIP(0.5), mechanisms=["grr", "identity"]):
    ...     print(row.mechanism, round(row.level, 4), row.reason is None)
    grr 0.5 True
    identity 0.8755 False
    """
    fitting = _Fitting(joint, guarantee, progress, clock, utility_of(utility, joint.inputs), weights, kept, others)
    compared = COMPARED if time_limit is None else min(COMPARED, time_limit)
    rows = []
    for name in mechanisms if mechanisms is not None else names():
        allowed = reads_secret or not mechanism(name).reads_secret
        if ruled_out is not None and name in ruled_out:
            row = _untried(name, ruled_out[name])
        elif allowed or forbidden:
            limit = time_limit if named in (AUTO, name) else compared
            row = fitting.row(name, Budget.of(limit, clock), None if allowed else _FORBIDDEN)
        else:
            row = _untried(name, _FORBIDDEN)
        rows.append(row)
        if told is not None:
            told(row)
    return best_first(rows)


def contenders(
    joint: Joint,
    guarantee: Guarantee,
    choice: MechanismChoice | None = None,
    progress: Progress = quiet,
    clock: Clock = time.perf_counter,
    utility: str | Utility = INFORMATION,
    kept: Fits | None = None,
) -> tuple[PlanRow, ...]:
    """What a release has to fit: the mechanism that its spec names, or with "auto" every one that can still win.

    Where the guarantee has an optimum, that comes first: its certificate is a bound on every mechanism that reads the
    same. Publishing X as it is, where that is allowed, is such a bound for all. A mechanism whose bound exceeds what is
    kept already by no more than 0.1 % of H(X) is not fitted; its row says so, with the bound.

    Parameters
    ----------
    joint : Joint
    guarantee : Guarantee
    choice : MechanismChoice, optional
        Its time limit is for an optimum, and again for all that is fitted if that does not finish.
    progress, clock, utility, kept
        As of `plan`.

    Returns
    -------
    tuple of PlanRow
        One for every registered mechanism, best first.

    Raises
    ------
    SpecError
        As of `plan`.
    """
    choice = choice or MechanismChoice()
    name, useful = choice.name, utility_of(utility, joint.inputs)
    fitting = _Fitting(joint, guarantee, progress, clock, useful, choice.weights, kept)
    rows: list[PlanRow] = []
    rest = Budget.of(choice.time_limit, clock)
    certain = _certifying(guarantee)
    for other in names() if name != AUTO else _in_turn(certain):
        needs = mechanism(other).reads_secret
        if name not in (AUTO, other):
            rows.append(_untried(other, f"not fitted: the spec asks for {name}"))
        elif needs and not choice.reads_secret:
            rows.append(_untried(other, _FORBIDDEN))
        elif name == AUTO and (lost := _lost(rows, joint, needs, useful)) is not None:
            rows.append(_untried(other, *lost))
        else:
            alone = name == other or other in certain
            rows.append(fitting.row(other, Budget.of(choice.time_limit, clock) if alone else rest.part(_SHARE)))
    return best_first(rows)


def best_first(rows: Sequence[PlanRow]) -> tuple[PlanRow, ...]:
    """Usable rows by utility, then the others, each kind in the order of `names` where it is equal."""
    place = {name: number for number, name in enumerate(names())}
    return tuple(sorted(rows, key=lambda row: (row.reason is not None, -(row.utility or 0.0), place[row.mechanism])))


def best_protocol(rows: Sequence[PlanRow], name: str) -> Protocol | None:
    """The protocol of a mechanism by its name, of the most useful one for "auto"; None where it cannot be used."""
    named = (row.protocol for row in best_first(rows) if row.reason is None and name in (AUTO, row.mechanism))
    return next(named, None)


def drawn_over_versions(rows: Sequence[PlanRow], name: str) -> list[PlanRow]:
    """The mechanisms that people can be followed by where a spec names one, or "auto".

    Histories are followed by rows of sets unless values as they are were asked for by name: what both keep is the same.
    """
    return [row for row in rows if name == INVARIANT or row.mechanism != INVARIANT]


def of_budget_fraction(bound: Guarantee, fraction: float) -> Guarantee:
    """The bound that a version alone is fitted to, where it takes a fraction of the budget while people may change.

    What is published first takes no more than what comes later: else there is nothing left to be moved by.
    """
    if fraction == 1 or bound.is_perfect:
        return bound
    return bound.with_budget(bound.budget * fraction * (1 - _INSIDE))


def choose(rows: Sequence[PlanRow]) -> PlanRow:
    """The usable mechanism of highest utility.

    Raises
    ------
    InfeasibleGuarantee
        If no mechanism is usable, with every reason.
    """
    usable = [row for row in rows if row.reason is None]
    if not usable:
        tried = [row for row in rows if row.tried] or rows
        reasons = "; ".join(f"{row.mechanism}: {row.reason}" for row in tried)
        raise InfeasibleGuarantee(f"no mechanism can be used ({reasons})")
    return max(usable, key=lambda row: row.utility or 0.0)


def _certifying(guarantee: Guarantee) -> tuple[str, ...]:
    """Mechanisms that say how much any could keep."""
    return ("optimal", "optimal-with-secret") if has_optimum(guarantee) else ("identity",)


def _in_turn(first: tuple[str, ...]) -> tuple[str, ...]:
    """All mechanisms: those that bound the others first, those that take long last."""
    others = [name for name in names() if name not in first]
    return (*first, *sorted(others, key=lambda name: mechanism(name).optimises))


def _lost(rows: Sequence[PlanRow], joint: Joint, needs: bool, useful: Utility) -> tuple[str, float] | None:
    """Why a mechanism cannot win, and the bound that says so; None if it can. needs: whether it reads the secret."""
    usable = [row for row in rows if row.reason is None]
    if not usable:
        return None
    # A bound on those that read the secret is one on all; without any there is only so much to tell.
    bounds = [row.bound for row in usable if row.bound is not None and row.reads_secret >= needs]
    whole = useful.whole(joint)
    bound = min([whole, *bounds])
    best = choose(usable)
    if best.utility is None or bound > best.utility + WORTHWHILE * whole:
        return None
    bound = max(bound, best.utility)
    return (
        f"not fitted: {best.mechanism} {useful.keeps} {best.utility:.5f} {useful.unit}, and no protocol of this kind "
        f"can {useful.keep} more than {bound:.5f}",
        bound,
    )


def _untried(name: str, reason: str, bound: float | None = None) -> PlanRow:
    return PlanRow(name, mechanism(name).reads_secret, None, None, None, None, 0.0, reason, bound, tried=False)


class _Fitting:
    """One joint distribution and guarantee, for which mechanisms are fitted one after another."""

    def __init__(
        self,
        joint: Joint,
        guarantee: Guarantee,
        progress: Progress,
        clock: Clock,
        useful: Utility,
        weights: Weighting,
        kept: Fits | None = None,
        others: Sequence[PlanRow] = (),
    ) -> None:
        check_size(joint, guarantee, useful == INFORMATION)
        # What no mechanism could do is an error here, not a reason in every row.
        if joint.parts is None:
            guarantee.level_for(joint, np.full((1, len(joint.inputs)), DENOMINATOR, dtype=np.uint64))
        self._joint, self._guarantee, self._progress, self._clock = joint, guarantee, progress, clock
        self._useful, self._weights = useful, weights
        self._kept, self._chosen_by = kept, (*useful.content, weights)
        self._others = others

    def row(self, name: str, budget: Budget, reason: str | None = None) -> PlanRow:
        """A mechanism fitted within a budget; reason: why it may not be used, whatever it gives."""
        asked, work = (self._joint, self._guarantee), budget.remaining
        found = None if self._kept is None else self._kept.find(*asked, name, work, *self._chosen_by)
        if found is not None:
            self._progress(f"{name} was fitted before", 0, None)
            return replace(found, reason=reason)
        row = self._taken_over(self._fitted(name, budget))
        # What a clock or somebody ended would be another one next time.
        if self._kept is not None and row.protocol is not None and budget.ended_by in (None, "work"):
            self._kept.keep(row, *asked, work, *self._chosen_by)
        return row if row.protocol is None else replace(row, reason=reason)

    def _fitted(self, name: str, budget: Budget) -> PlanRow:
        joint, guarantee, chosen = self._joint, self._guarantee, mechanism(name, self._weights)
        self._progress(f"fitting {name}", 0, None)
        started = self._clock()
        try:
            require_memory(name, chosen.memory(joint, guarantee), joint)
            with budget.interruptible():
                fitted = chosen.fitted_to(joint, guarantee, self._useful, budget, self._steps(name))
        except (InfeasibleGuarantee, SolverError, SpecError) as error:
            return self._failed(name, error, started)
        except MemoryError:
            short = f"{name} needs more memory than there is for {len(joint.inputs):,} combinations of "
            columns = ", ".join(joint.inputs.columns)
            return self._failed(name, SpecError(f"{short}{columns}; publish fewer columns or values"), started)
        return self._row_of(name, fitted, self._clock() - started)

    def _taken_over(self, row: PlanRow) -> PlanRow:
        """Where its search was ended, what keeps most of the row and the same mechanism's under other bounds.

        Not of values as they are: these are chosen by how many stay.
        """
        for other in self._others:
            protocol = other.protocol
            if row.finished or row.protocol is None or protocol is None or other.mechanism != row.mechanism:
                continue
            keeps_more = not protocol.is_invariant and (other.utility or 0.0) > (row.utility or 0.0)
            if keeps_more and self._guarantee.holds(self._joint, protocol):
                found = Fitted(protocol.named(guarantee=str(self._guarantee)), row.bound, False)
                row = self._row_of(row.mechanism, found, row.seconds)
        return row

    def _row_of(self, name: str, fitted: Fitted, seconds: float) -> PlanRow:
        joint, guarantee, protocol = self._joint, self._guarantee, fitted.protocol
        utility, share = self._useful.told(joint, protocol), self._useful.share(joint, protocol)
        return PlanRow(
            name,
            mechanism(name).reads_secret,
            protocol,
            utility,
            share,
            guarantee.level(joint, protocol).value,
            seconds,
            None,
            fitted.bound,
            fitted.finished,
            unchanged=unchanged(joint, protocol).share if protocol.is_invariant else None,
            certificate=_certificate(joint, fitted, utility, share),
        )

    def _steps(self, name: str) -> Progress:
        def step(what: str, done: int, total: int | None, /) -> None:
            self._progress(f"fitting {name}: {what}", done, total)

        return step

    def _failed(self, name: str, error: FunnelError, started: float) -> PlanRow:
        level = error.best_level if isinstance(error, InfeasibleGuarantee) else None
        seconds = self._clock() - started
        return PlanRow(name, mechanism(name).reads_secret, None, None, None, level, seconds, str(error))


def _certificate(joint: Joint, fitted: Fitted, utility: float, share: float) -> Certificate | None:
    """Of records unchanged, where the protocol was made for these, else of the utility."""
    if fitted.unchanged_gap is not None:
        of: Literal["classes", "unchanged"] = "classes" if CLASS_COLUMN in joint.inputs.columns else "unchanged"
        return Certificate(of, min(1.0, max(0.0, fitted.unchanged_gap)), fitted.weights)
    return None if fitted.bound is None else Certificate.of_utility(utility, fitted.bound, share)
