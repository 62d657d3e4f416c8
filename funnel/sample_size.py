"""What the number of records allows: warnings about estimates, and the records that a robust bound would need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from funnel.confidence import confidence_set
from funnel.errors import InfeasibleGuarantee
from funnel.guarantees import LDP, RLDP, Guarantee
from funnel.guarantees.exact import capped_exp
from funnel.guarantees.reading import rows_by_secret
from funnel.guarantees.worst_case import Neighbourhood, within
from funnel.joint import Joint
from funnel.measures.information import information_of
from funnel.mechanisms import calibrate
from funnel.mechanisms.grr import grr_matrix
from funnel.planning import PlanRow

# A protocol that keeps a smaller share of H(X) is of no use.
USELESS = 0.01
# The share of what GRR could keep under known frequencies that a sufficient number of records lets it keep.
PART = 0.5
_HALVINGS = 50
_PRECISION = 1.01


@dataclass(frozen=True)
class Need:
    """How many records a robust bound needs.

    Attributes
    ----------
    n : int
        Records, to two digits and rounded up, for which GRR would keep ``share``, the frequencies being the same.
    share : float
        Half of the share of H(X) that GRR keeps where the frequencies are known exactly.
    """

    n: int
    share: float


def records_needed(joint: Joint, guarantee: RLDP) -> Need:
    """The number of records with the frequencies of ``joint`` from which GRR keeps half of what it ever could.

    As the number grows, F shrinks to the estimate and RLDP becomes LDP. GRR with half the utility that LDP of the same
    ε would leave it has a level below ε under the estimate, so some number of records is enough: it is found by
    bisection on the radius of F with the exact decision of RLDP.

    Parameters
    ----------
    joint : Joint
        Counts of (S, X), shape (c, a).
    guarantee : RLDP
        With ε > 0.

    Raises
    ------
    InfeasibleGuarantee
        If ε is 0: no number of records is enough.
    DataError
        If a value of the secret never occurs.
    """
    if guarantee.epsilon == 0:
        raise InfeasibleGuarantee(f"{guarantee} asks for perfect privacy under every law near the data: no n is enough")
    size = len(joint.inputs)

    def utility(alpha: float) -> float:
        return information_of((grr_matrix(size, alpha) * joint.p_input).T)

    most, _ = calibrate(lambda alpha: grr_matrix(size, alpha), joint, LDP(guarantee.epsilon))
    low, high = 0.0, most
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if utility(middle) >= PART * utility(most) else (middle, high)
    rows = rows_by_secret(joint, grr_matrix(size, high))
    near = guarantee.neighbourhood(joint)
    limit = capped_exp(guarantee.epsilon) * (1 - 1e-9)

    def enough(factor: float) -> bool:
        return within(rows, Neighbourhood(near.law, near.prior, near.radius / factor), limit)

    fewer, more = 1.0, 1.0
    while not enough(more):
        fewer, more = more, 4 * more
    while more > fewer * _PRECISION:
        middle = (fewer * more) ** 0.5
        fewer, more = (fewer, middle) if enough(middle) else (middle, more)
    return Need(_rounded_up(joint.n * more), utility(high) / joint.entropy)


def too_few(joint: Joint, guarantee: Guarantee, rows: Sequence[PlanRow]) -> str | None:
    """One sentence if a robust bound leaves nothing of use because the records are few, else None.

    Nothing of use is left if the best usable mechanism keeps less than 1 % of H(X). The records are too few if more of
    them would help: GRR does not keep half of what it could under known frequencies. A bound so strict that more
    records would not help gives None.
    """
    usable = [row for row in rows if row.reason is None]
    if not isinstance(guarantee, RLDP) or guarantee.epsilon == 0 or joint.entropy == 0:
        return None
    kept = max((row.share or 0.0 for row in usable), default=0.0)
    if kept >= USELESS:
        return None
    need = records_needed(joint, guarantee)
    if need.n <= joint.n:
        return None
    return (
        f"the data are too few for this bound: from {joint.n:,} records the best protocol under {guarantee} keeps "
        f"{kept:.2%} of the information; with the same frequencies in about {need.n:,} records grr would keep "
        f"{need.share:.2%}, half of what it could if they were known exactly"
    )


def doubts(joint: Joint, guarantee: Guarantee) -> tuple[str, ...]:
    """A sentence if a bound is robust but the confidence of its set of laws is doubtful, else none."""
    if not isinstance(guarantee, RLDP):
        return ()
    doubt = confidence_set(joint, guarantee.alpha).warning(joint.secret.columns, joint.inputs.columns)
    return () if doubt is None else (doubt,)


def warnings(joint: Joint, guarantee: Guarantee, rows: Sequence[PlanRow]) -> tuple[str, ...]:
    """Sentences on what makes a plan under a robust bound doubtful or useless; none for other guarantees."""
    few = too_few(joint, guarantee, rows)
    return doubts(joint, guarantee) + (() if few is None else (few,))


def _rounded_up(records: float) -> int:
    step = 10 ** max(0, len(str(int(records))) - 2)
    return int(-(-records // step) * step)
