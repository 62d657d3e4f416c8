"""Memory: what a protocol and an optimisation would take, known before any table is made."""

from __future__ import annotations

from math import isqrt

import numpy as np

from funnel.errors import SpecError
from funnel.guarantees.attribute import Attribute
from funnel.guarantees.base import Guarantee, PosteriorGuarantee
from funnel.guarantees.ldp import LDP
from funnel.guarantees.several import Several
from funnel.guarantees.sided import over_set
from funnel.guarantees.srlip import SRLIP
from funnel.joint import Joint
from funnel.solver.work import events_known

# The same on every machine, so that the same spec gives the same protocol wherever it is made.
LARGEST = 4 * 10**9
"""Bytes that fitting a mechanism may take."""

# An entry of a channel: two floats and two integers while it is made and decided, a decimal text in its document.
_ENTRY = 250
# The names of an input and of an output, and what is looked up by them.
_LABELS = 4_000
_FLOAT = 8
# Arrays of the size of the largest that are there at once.
_COPIES = 3
# Numbers of a stack of programmes (`pricing`), of all tableaux kept with boxes, and those that are kept in any case
# (`boxes`); columns of a mixture, for each input.
_STACK, _BOXES, _KEPT, _COLUMNS = 2**22, 2 * 10**7, 8, 3
# Half-spaces that cutting planes add for an input, where a guarantee is over a set of distributions.
_CUTS = 30


def table_memory(outputs: int, inputs: int) -> float:
    """Bytes of a channel (outputs, inputs) and of its document."""
    return float(_ENTRY * outputs * inputs)


def sparse_memory(inputs: int, secrets: int) -> float:
    """Bytes of a protocol without its zeros, and of its document: one entry a secret for each output."""
    return float(inputs * (_LABELS + _ENTRY * secrets))


def largest_table() -> int:
    """Most symbols whose channel to themselves is made."""
    return isqrt(LARGEST // _ENTRY)


def condition_number(joint: Joint, guarantee: Guarantee) -> int:
    """How many half-spaces a guarantee sets on a row of a channel, at most; counted without making them."""
    c = len(joint.secret)
    if over_set(guarantee, joint) is not None:
        # Those of its distributions that cutting planes come to add.
        return c * c + _CUTS * len(joint.inputs)
    if isinstance(guarantee, LDP):
        return c * (c - 1)
    if isinstance(guarantee, Several):
        return sum(condition_number(joint, part) for part in guarantee.parts)
    labels = (c - 1) * len(joint.inputs) if isinstance(guarantee, Attribute) else 0
    return labels + 2 * c * (events_known(joint) if isinstance(guarantee, SRLIP) else 1)


def optimum_memory(conditions: int, inputs: int, counted: int | None = None) -> float:
    """Bytes of an optimisation over a cone.

    Parameters
    ----------
    conditions : int
        Half-spaces on a row.
    inputs : int
        What a row is over.
    counted : int, optional
        What the utility counts, where that is not the inputs themselves.
    """
    if counted is None:
        variables, rows = inputs, conditions + 1
    else:
        variables, rows = inputs + counted, conditions + 1 + counted
    tableau = rows * variables
    # All conditions against each other; the tableaux of a stack of programmes and those kept with boxes; the columns.
    stacks = _COPIES * (conditions**2 + max(tableau, _STACK)) + max(_KEPT * tableau, _BOXES)
    return float(_FLOAT * (stacks + 2 * _COLUMNS * inputs**2))


def distinct_inputs(joint: Joint, guarantee: Guarantee) -> int:
    """Inputs that an optimisation tells apart, at most: those of the same p(S|x) are one."""
    counts = joint.counts[:, joint.counts.any(axis=0)]
    over_counts = over_set(guarantee, joint) is not None
    if over_counts or not isinstance(guarantee, PosteriorGuarantee):
        return int(counts.shape[1])
    return int(np.unique(counts // np.gcd.reduce(counts, axis=0), axis=1).shape[1])


def require_memory(name: str, needed: float, joint: Joint, instead: str = "") -> None:
    """Refuse what would take more memory than a fit may; ``instead`` is what else to do, as the end of a sentence.

    Raises
    ------
    SpecError
        With the columns, the number of their combinations, and what to do.
    """
    if needed <= LARGEST:
        return
    a, columns = len(joint.inputs), ", ".join(joint.inputs.columns)
    raise SpecError(
        f"{a:,} combinations of {columns} occur, for which {name} would need about {needed / 1e9:,.0f} GB of memory, "
        f"more than the {LARGEST / 1e9:.0f} GB that a mechanism may take; recode columns to fewer values, for instance "
        f"with minimum_count, or publish fewer columns{instead}"
    )


def check_size(joint: Joint, guarantee: Guarantee, by_information: bool = True) -> None:
    """Refuse alphabets whose channel fits no memory, whatever the mechanism.

    Parameters
    ----------
    joint : Joint
    guarantee : Guarantee
        What promises something of the posterior of the secret under known counts has an optimum without a table
        (`funnel.solver.wide`), for as many combinations as memory holds.
    by_information : bool
        Whether the utility is I(X;Y): for any other one a table is made.

    Raises
    ------
    SpecError
        If a channel from the input to itself would be too large, and no protocol without one can be made.
    """
    # Imported here: it solves, and a mechanism is also loaded to be asked what it reads.
    from funnel.solver.wide import is_wide, needs_no_table

    a = len(joint.inputs)
    if table_memory(a, a) <= LARGEST or (by_information and is_wide(joint, guarantee) and needs_no_table(joint)):
        return
    why = " with noise on their counts" if joint.bounds is not None else ""
    raise SpecError(
        f"{a:,} combinations of {', '.join(joint.inputs.columns)} occur, and under {guarantee}{why} a protocol would "
        f"be a table of {a:,} × {a:,} probabilities, about {table_memory(a, a) / 1e9:,.0f} GB of memory where "
        f"{LARGEST / 1e9:.0f} GB may be taken; recode to at most {largest_table():,} of them, for instance with "
        "minimum_count, or publish fewer columns at once: only information kept under lip, alip, ldp and pml, for "
        "counts without noise, needs no table"
    )
