"""Work: what deciding a guarantee costs, in the units of `Budget`."""

from __future__ import annotations

from funnel.guarantees.base import Guarantee
from funnel.guarantees.rldp import RLDP, secret_by_input
from funnel.guarantees.srlip import SRLIP
from funnel.joint import Joint
from funnel.mechanisms.memory import events_known
from funnel.solver.budget import CALL

# Units for an entry of a channel that is made, rounded and summed up; of one that is looked at in floats alone; and for
# each event whose probability is found.
_EXACT, _FLOAT, _LOOK = 50.0, 12.0, 4.0
# For an exact probability of an output given an event, in whole numbers of any size.
_WHOLE = 5_000.0
# For a set of records that an observer can know; for the search over the laws near the data, an entry and secret.
_EVENT, _ROBUST = 25_000.0, 18_000.0


def decision_work(joint: Joint, guarantee: Guarantee, outputs: int) -> float:
    """Units of making the integer weights (outputs, a) of a channel and deciding a guarantee for them exactly."""
    entries = float(outputs * len(joint.inputs))
    whole = _WHOLE * outputs * len(joint.secret)
    return 40 * CALL + _EXACT * entries + whole + levels_work(joint, guarantee, outputs)


def levels_work(joint: Joint, guarantee: Guarantee, rows: int) -> float:
    """Units of finding the levels of so many rows (a,) of a channel in floats."""
    c, a = len(joint.secret), len(joint.inputs)
    entries = float(rows * a)
    if isinstance(guarantee, RLDP):
        # A channel that reads the secret has its own entries for each.
        return 200 * CALL + _ROBUST * entries * (1 if secret_by_input(joint)[1] else c)
    if isinstance(guarantee, SRLIP):
        events = c * events_known(joint)
        return 20 * CALL + _EVENT * events + entries * (_FLOAT + events)
    return 20 * CALL + entries * (_FLOAT + _LOOK * c)
