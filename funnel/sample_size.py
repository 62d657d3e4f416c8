"""What the number of records allows: warnings about estimates, and the records that a robust bound would need."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from funnel.alphabet import Alphabet
from funnel.bounds import Bounds
from funnel.confidence import confidence_set
from funnel.disclosure.suggest import made_one
from funnel.errors import InfeasibleGuarantee
from funnel.guarantees import RLDP, Guarantee
from funnel.guarantees.exact import capped_exp
from funnel.guarantees.reading import rows_by_secret
from funnel.guarantees.robust_guarantee import Robust
from funnel.guarantees.sided import over_set
from funnel.guarantees.worst_case import Neighbourhood, within
from funnel.joint import MAX_ROWS, FloatArray, IntArray, Joint
from funnel.measures.information import information_of
from funnel.measures.utilities import INFORMATION, Utility
from funnel.mechanisms.family import calibrate
from funnel.mechanisms.grr import grr_matrix
from funnel.planning import PlanRow
from funnel.spec import ReleaseSpec
from funnel.wording import listed, toml_key, toml_text

# A protocol that keeps a smaller share of H(X) is of no use.
USELESS = 0.01
# The share of what GRR could keep under known frequencies that a sufficient number of records lets it keep.
PART = 0.5
_HALVINGS = 50
_PRECISION = 1.01
# Of the parameter of GRR, of which half is kept anyway.
_ENOUGH = 1e-9


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


def records_needed(joint: Joint, guarantee: Guarantee) -> Need:
    """The number of records with the frequencies of ``joint`` from which GRR keeps half of what it ever could.

    As the number grows, the set of distributions shrinks to the estimate and the guarantee becomes its nominal one. GRR
    with half the utility that this would leave it has a level below the budget under the estimate, so some number of
    records is enough: it is found by bisection, on the radius of F or on the counts that the boxes are around. Where
    the counts are known up to noise only, the noise stays as wide as it is.

    Parameters
    ----------
    joint : Joint
        Counts of (S, X), shape (c, a).
    guarantee : Guarantee
        A robust one, or one that covers the noise of the counts; with a budget > 0.

    Raises
    ------
    InfeasibleGuarantee
        If the budget is 0, or more records would be needed than exact arithmetic is laid out for.
    DataError
        If a value of the secret never occurs.
    """
    if guarantee.is_perfect:
        raise InfeasibleGuarantee(
            f"{guarantee} asks for perfect privacy under every distribution near the data: no n is enough"
        )
    matrix, share = _half_of_grr(joint, guarantee)
    enough = _enough(joint, guarantee, matrix)
    fewer, more = 1.0, 1.0
    while not enough(more):
        fewer, more = more, 4 * more
        if joint.n * more >= MAX_ROWS:
            raise InfeasibleGuarantee(f"with these frequencies no number of records below {MAX_ROWS:,} is enough")
    while more > fewer * _PRECISION:
        middle = (fewer * more) ** 0.5
        fewer, more = (fewer, middle) if enough(middle) else (middle, more)
    return Need(rounded_up(joint.n * more), share)


def values_to_group(joint: Joint, guarantee: Guarantee) -> tuple[str, ...]:
    """The rarest values of the secret that, grouped into one, let GRR keep half of what it ever could; none if none do.

    The fewest of them, rarest first; at least two values of the secret are left.
    """
    return _to_group(joint, guarantee, _half_of_grr(joint, guarantee)[0])


def _to_group(joint: Joint, guarantee: Guarantee, matrix: FloatArray) -> tuple[str, ...]:
    return rarest_together(joint, lambda table: _met(table, guarantee, matrix))


def rarest_together(joint: Joint, met: Callable[[Joint], bool]) -> tuple[str, ...]:
    """The fewest of the rarest values of the secret that, made one, meet a condition, rarest first; none if none do."""
    order = np.argsort(joint.counts.sum(axis=1), kind="stable")
    for number in range(2, len(order)):
        if met(grouped(joint, order[:number])):
            return tuple(joint.secret.labels[int(s)] for s in order[:number])
    return ()


def half_of(utility: Callable[[float], float], most: float) -> float:
    """The least of a parameter, up to ``most``, that keeps half of what ``most`` keeps."""
    low, high, half = 0.0, most, PART * utility(most)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if utility(middle) >= half else (middle, high)
    return high


def rare_secrets(spec: ReleaseSpec, joint: Joint, guarantee: Guarantee) -> str | None:
    """One sentence, with the setting that merges them, if values of the secret are too rare for a bound; else None.

    They are where GRR keeps half of what it could under known frequencies with these values made one, and not without.

    Parameters
    ----------
    spec : ReleaseSpec
        With one secret column that is not published itself.
    joint : Joint
        Public counts; shape (c, a).
    guarantee : Guarantee
    """
    uncertain = isinstance(guarantee, Robust) or over_set(guarantee, joint) is not None
    # Of two values none can be made one.
    few = len(joint.secret) < 3 or len(spec.secret) > 1
    if not uncertain or guarantee.is_perfect or joint.entropy == 0 or few:
        return None
    try:
        matrix, _ = _half_of_grr(joint, guarantee)
        together = () if _met(joint, guarantee, matrix) else _to_group(joint, guarantee, matrix)
    except InfeasibleGuarantee:
        return None
    if not together:
        return None
    (column,) = spec.secret
    (name, members), *_ = (made_one(spec, joint, column, together).recode[column].groups or {}).items()
    rarest, *others = together
    return (
        f"the value {rarest} of the secret column {column!r} is too rare for {guarantee}, and all other values are "
        f"told worse for it; to merge it with {listed(others)}, write groups = {{{toml_text(name)} = "
        f"[{', '.join(map(toml_text, members))}]}} in [recode.{toml_key(column)}]"
    )


def _half_of_grr(joint: Joint, guarantee: Guarantee) -> tuple[FloatArray, float]:
    """GRR that keeps half of what it could if the frequencies were known exactly, and the share of H(X) it keeps."""
    size, nominal = len(joint.inputs), guarantee.nominal if isinstance(guarantee, Robust) else guarantee

    def utility(alpha: float) -> float:
        return information_of((grr_matrix(size, alpha) * joint.p_input).T)

    most, _ = calibrate(lambda alpha: grr_matrix(size, alpha), joint.as_published, nominal, _ENOUGH)
    least = half_of(utility, most)
    return grr_matrix(size, least), utility(least) / joint.entropy


def _met(joint: Joint, guarantee: Guarantee, matrix: FloatArray) -> bool:
    over = over_set(guarantee, joint)
    return over is not None and float(over.output_levels(joint, matrix).max()) <= guarantee.budget * (1 - 1e-9)


def grouped(joint: Joint, secrets: npt.NDArray[np.intp]) -> Joint:
    """The same records with some values of the secret made one."""
    group = np.arange(len(joint.secret))
    group[secrets] = secrets.min()
    _, of = np.unique(group, return_inverse=True)

    def added(table: IntArray) -> IntArray:
        sums = np.zeros((of.max() + 1, table.shape[1]), dtype=np.int64)
        np.add.at(sums, of, table)
        return sums

    bounds = joint.bounds
    if bounds is not None:
        bounds = Bounds(added(bounds.lower), added(bounds.upper), added(bounds.totals), bounds.beta)
    return Joint(added(joint.counts), Alphabet.of(None, int(of.max()) + 1, "S"), joint.inputs, bounds)


def _times(joint: Joint, factor: float) -> Joint:
    """So many times the records with the same frequencies, and the same noise."""
    counts = np.rint(joint.counts * factor).astype(np.int64)
    bounds = joint.bounds
    if bounds is not None:
        # What is clipped at 0 shows less of the noise than there is.
        cell = int((bounds.upper - joint.counts).max())
        total = int((bounds.totals[:, 1] - joint.counts.sum(axis=1)).max())
        sums = counts.sum(axis=1, keepdims=True)
        lower, upper = np.maximum(counts - cell, 0), counts + cell
        ends = np.maximum(sums - total, lower.sum(axis=1, keepdims=True)), sums + total
        bounds = Bounds(lower, upper, np.hstack(ends), bounds.beta)
    return Joint(counts, joint.secret, joint.inputs, bounds)


def _enough(joint: Joint, guarantee: Guarantee, matrix: FloatArray) -> Callable[[float], bool]:
    """Whether so many times the records would let a channel (a, a) meet a robust guarantee."""
    if isinstance(guarantee, RLDP) and not guarantee.over_boxes:
        rows, near = rows_by_secret(joint, matrix), guarantee.neighbourhood(joint)
        limit = capped_exp(guarantee.epsilon) * (1 - 1e-9)
        return lambda factor: within(rows, Neighbourhood(near.distribution, near.prior, near.radius / factor), limit)

    return lambda factor: _met(_times(joint, factor), guarantee, matrix)


def too_few(joint: Joint, guarantee: Guarantee, rows: Sequence[PlanRow], utility: Utility = INFORMATION) -> str | None:
    """One sentence if a robust bound, or noise, leaves nothing of use because the records are few, else None.

    Nothing of use is left if the best usable mechanism keeps less than 1 % of H(X), or explains as little of the
    variance. The records are too few if more of them would help: GRR does not keep half of what it could under known
    frequencies. A bound so strict that more records would not help gives None.
    """
    usable = [row for row in rows if row.reason is None]
    uncertain = isinstance(guarantee, Robust) or over_set(guarantee, joint) is not None
    if not uncertain or guarantee.is_perfect or joint.entropy == 0:
        return None
    kept = max((row.share or 0.0 for row in usable), default=0.0)
    if kept >= USELESS:
        return None
    try:
        need = records_needed(joint, guarantee)
    except InfeasibleGuarantee:
        return None
    if need.n <= joint.n:
        return None
    noise = " and the noise on their frequencies" if joint.bounds is not None else ""
    together = values_to_group(joint, guarantee)
    columns = ", ".join(joint.secret.columns)
    told = "" if utility == INFORMATION else " of the information"
    instead = f", and so it would with the values {', '.join(together)} of {columns} made one" if together else ""
    return (
        f"the data are too few for this bound{noise}: from {joint.n:,} records the best protocol under {guarantee} "
        f"{utility.keeps} {kept:.2%} of the {utility.name}; with the same frequencies in about {need.n:,} records grr "
        f"would keep {need.share:.2%}{told}, half of what it could if they were known exactly{instead}"
    )


def doubts(joint: Joint, guarantee: Guarantee) -> tuple[str, ...]:
    """A sentence if a bound is robust but the confidence of its set of distributions is doubtful, else none."""
    if not isinstance(guarantee, RLDP) or guarantee.over_boxes:
        # Boxes hold the true distribution with their confidence whatever the counts are.
        return ()
    doubt = confidence_set(joint, guarantee.alpha).warning(joint.secret.columns, joint.inputs.columns)
    return () if doubt is None else (doubt,)


def warnings(
    joint: Joint, guarantee: Guarantee, rows: Sequence[PlanRow], utility: Utility = INFORMATION
) -> tuple[str, ...]:
    """Sentences on what makes a plan under a robust bound doubtful or useless; none for other guarantees."""
    few = too_few(joint, guarantee, rows, utility)
    return doubts(joint, guarantee) + (() if few is None else (few,))


def rounded_up(records: float) -> int:
    """A number of records to two digits, rounded up."""
    step = 10 ** max(0, len(str(int(records))) - 2)
    return int(-(-records // step) * step)
