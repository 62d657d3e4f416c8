"""Work: what deciding a guarantee costs, in the units of `Budget`."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from math import prod

from funnel.errors import SpecError
from funnel.guarantees.base import Guarantee
from funnel.guarantees.by_event import SideChannels
from funnel.guarantees.rldp import RLDP, secret_by_input
from funnel.guarantees.several import Several
from funnel.guarantees.sided import over_set
from funnel.guarantees.srlip import SRLIP
from funnel.joint import Joint
from funnel.protocol import WeightArray
from funnel.solver.budget import CALL, UNITS_A_SECOND, Budget

# Units for an entry of a channel that is made, rounded and summed up; of one that is looked at in whole numbers, and in
# floats alone; and for each event whose probability is found.
_EXACT, _LOOKED, _FLOAT, _LOOK = 40.0, 15.0, 12.0, 4.0
# For an exact probability of an output given an event, in whole numbers of any size.
_WHOLE = 1_500.0
# For a set of records that an observer can know; for the search over the distributions near the data, an entry and
# secret.
_EVENT, _ROBUST = 25_000.0, 18_000.0
# For the limits of a cell of a box, and for filling it, an entry and secret.
_LIMITS, _GREEDY = 6_000.0, 150.0


@dataclass(frozen=True)
class Deciding:
    """The exact decision of a guarantee within a budget: what would take more work than is left does not hold.

    Parameters
    ----------
    joint : Joint
    guarantee : Guarantee
    budget : Budget
    by_entry : float
        Units of making an entry of the weights, besides.
    """

    joint: Joint
    guarantee: Guarantee
    budget: Budget
    by_entry: float = 0.0

    def holds(self, weights: WeightArray) -> bool:
        """Whether weights (b, a) meet the guarantee, decided exactly; no where the budget does not allow it."""
        work = decided_work(self.joint, self.guarantee, len(weights)) + self.by_entry * weights.size
        if not self.budget.allows(work):
            return False
        self.budget.spend(work)
        return self.guarantee.holds_for(self.joint, weights)


def require_decision(joint: Joint, guarantee: Guarantee, outputs: int, budget: Budget, times: int = 1) -> None:
    """Refuse to begin where a guarantee cannot be decided so many times for protocols of so many outputs.

    What takes less than a second is done in any case, so that short limits give a protocol too.

    Raises
    ------
    SpecError
        With what a decision takes, and what to do.
    """
    work = times * decision_work(joint, guarantee, outputs)
    if work > max(budget.remaining, UNITS_A_SECOND):
        budget.fell_short = True
        raise SpecError(
            f"to decide {guarantee} for protocols of {outputs:,} outputs takes about {work / UNITS_A_SECOND:,.0f} "
            "seconds, more than the time limit leaves; raise time_limit, or publish fewer combinations"
        )


def decision_work(joint: Joint, guarantee: Guarantee, outputs: int) -> float:
    """Units of making the integer weights (outputs, a) of a channel and deciding a guarantee for them exactly."""
    return _EXACT * outputs * len(joint.inputs) + decided_work(joint, guarantee, outputs)


def decided_work(joint: Joint, guarantee: Guarantee, outputs: int) -> float:
    """Units of deciding a guarantee exactly for integer weights (outputs, a) that are there."""
    looked = _LOOKED * outputs * len(joint.inputs) + _WHOLE * outputs * len(joint.secret)
    return 40 * CALL + looked + levels_work(joint, guarantee, outputs)


def levels_work(joint: Joint, guarantee: Guarantee, rows: int) -> float:
    """Units of finding the levels of so many rows (a,) of a channel in floats."""
    c, a = len(joint.secret), len(joint.inputs)
    entries = float(rows * a)
    if isinstance(guarantee, Several):
        return sum(levels_work(joint, part, rows) for part in guarantee.parts)
    if over_set(guarantee, joint) is not None:
        sets = 2 ** len(joint.inputs.columns) if isinstance(guarantee, SideChannels) else 1
        return sets * (60 * CALL + _LIMITS * c * a + _GREEDY * entries * (1 if secret_by_input(joint)[1] else c))
    if isinstance(guarantee, RLDP):
        # A channel that reads the secret has its own entries for each.
        return 200 * CALL + _ROBUST * entries * (1 if secret_by_input(joint)[1] else c)
    if isinstance(guarantee, SRLIP):
        events = c * events_known(joint)
        return 20 * CALL + _EVENT * events + entries * (_FLOAT + events)
    return 20 * CALL + entries * (_FLOAT + _LOOK * c)


def events_known(joint: Joint) -> int:
    """What observers who know some of the published columns can know: the values of each set of columns."""
    columns = range(len(joint.inputs.columns))
    sizes = [len({symbol[j] for symbol in joint.inputs.symbols}) for j in columns]
    sets = (known for size in range(len(sizes) + 1) for known in itertools.combinations(sizes, size))
    return sum(min(len(joint.inputs), prod(known)) for known in sets)
