"""The protocol of highest utility under a guarantee, with an upper bound on what any protocol could reach."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from funnel.errors import SolverError, SpecError
from funnel.guarantees.base import ConeGuarantee, Guarantee
from funnel.guarantees.rldp import RLDP
from funnel.joint import FloatArray, Joint
from funnel.measures import Counted, mutual_information
from funnel.naming import name_outputs
from funnel.protocol import Protocol, WeightArray
from funnel.rounding import LARGEST_REPAIR, marginal_weights, mix, proven_weights, rounded_weights
from funnel.solver.ascent import ascend
from funnel.solver.choice import METHODS, chosen_method
from funnel.solver.columns import ColumnGeneration
from funnel.solver.lattice import exact_channel
from funnel.solver.master import best_split
from funnel.solver.polish import polish, repaired
from funnel.solver.presolve import MergedInputs, keep_inputs, merge_inputs, split_rows
from funnel.solver.region import Region
from funnel.solver.robust import robust_weights
from funnel.solver.split import Split
from funnel.solver.vertices import enumerate_vertices

Progress = Callable[[float, float, float, float], None]
# How far inside the cone the polished vertices sit: far above rounding (1e-15), far below any gap that matters.
_MARGINS = (1e-11, 1e-9, 1e-7)
# The same for protocols moved by a linear programme, whose own tolerance is 1e-10.
_WIDER_MARGINS = (1e-8, 1e-7, 1e-6)
# What a bound over listed vertices is raised by: they are known to about 1e-11, and v ln v is steep near zero.
_SLACK = 1e-9
# The share of the requested gap left to polishing and integer weights.
_ROUNDING_SHARE = 0.05


@dataclass(frozen=True, eq=False)
class Solution:
    """An optimised protocol with its certificate; utility <= optimum <= bound.

    Attributes
    ----------
    protocol : Protocol
        Verified integer weights.
    utility : float
        I(X;Y) of that protocol, in nats.
    bound : float
        Upper bound on I(X;Y) of every protocol that meets the guarantee, in nats.
    status : str
        ``"optimal"`` if ``gap`` is at most the requested one; ``"time limit"`` if time or an interrupt ended the
        search before; ``"gap above request"`` if integer weights cannot come closer (ε = 0 asks for equations).
    seconds : float
        Time taken.
    vertices : int
        Number of vertices enumerated, or of columns generated.
    method : str
        ``"vertices"`` or ``"columns"``, as chosen.

    Examples
    --------
    >>> import funnel
    >>> joint = funnel.Joint.from_counts([[30, 10], [10, 50]])
    >>> best = funnel.optimal(joint, funnel.LIP(0.5))
    >>> best.status, best.utility <= best.bound, best.protocol.mechanism
    ('optimal', True, 'optimal')
    """

    protocol: Protocol
    utility: float
    bound: float
    status: str
    seconds: float
    vertices: int
    method: str

    @property
    def gap(self) -> float:
        """bound - utility, in nats."""
        return self.bound - self.utility


def optimal(
    joint: Joint,
    guarantee: Guarantee,
    gap: float = 1e-6,
    time_limit: float | None = None,
    method: str = "auto",
    progress: Progress | None = None,
    reads_secret: bool = False,
    counts: Counted = "inputs",
) -> Solution:
    """Maximise I(X;Y) over all protocols that read X and meet the guarantee (PF problem 2, theorem 3; METHOD 3).

    Works in dimension a-1 for every guarantee that is a cone on rows, LDP included, instead of the a(a-1) dimensions
    of PF theorem 2.

    Parameters
    ----------
    joint : Joint
        Counts of (S, X), shape (c, a).
    guarantee : Guarantee
        One that is a polyhedral cone.
    gap : float
        Requested ``bound - utility``, in nats.
    time_limit : float, optional
        Seconds. Columns return the best protocol so far, with a bound; vertex enumeration fails.
    method : str
        ``"vertices"`` lists every vertex of the cone, ``"columns"`` generates those that are needed and certifies the
        rest by branch and bound, ``"auto"`` predicts which is cheaper.
    progress : callable, optional
        Told (utility, bound, gap, seconds) whenever columns have come a step further.
    reads_secret : bool
        Maximise over the protocols that read (S, X) instead, still by I(X;Y): at least as useful, and at least as
        useful as Conditional Reporting. Columns only, in dimension c a.
    counts : "inputs" or "secret and inputs"
        What the utility counts of a protocol that reads the secret: X, or (S, X) as in RLDP.

    Returns
    -------
    Solution
        Its protocol has at most a outputs and meets the guarantee exactly, on its integer weights. The same input
        gives the same protocol, unless time or an interrupt (Ctrl-C, which columns also answer with the best
        protocol so far) ends the search.

    Raises
    ------
    SpecError
        If the guarantee is no polyhedral cone, the method is unknown, or the gap or time limit is not positive.
    SolverError
        If enumeration fails or does not finish in time, or a linear programme fails.

    Notes
    -----
    Vertices: O(a²) of them for two secrets, else exponential in min(a, c). Columns: exponential in the worst case
    too, but stopped whenever the gap is reached; see docs/solver.md for measured times.

    Examples
    --------
    >>> import funnel
    >>> joint = funnel.Joint.from_counts([[30, 10], [10, 50]])
    >>> best = funnel.optimal(joint, funnel.LIP(0.5))
    >>> round(best.utility, 4), round(best.bound, 4)
    (0.2434, 0.2434)
    """
    started = time.perf_counter()
    if method not in METHODS:
        raise SpecError(f"unknown method {method!r} for the optimum; choose one of {', '.join(METHODS)}")
    if not gap > 0 or (time_limit is not None and not time_limit > 0):
        raise SpecError("gap (nats) and time limit (seconds) of the optimum must be positive")
    # Publishing X as it is is no optimum where telling S counts as well.
    whole = reads_secret and counts == "secret and inputs"
    unchanged = None if whole else _unchanged(joint, guarantee)
    if unchanged is not None:
        protocol = _protocol(joint, joint, guarantee, unchanged)
        utility = mutual_information(joint, protocol)
        if joint.entropy - utility <= gap:
            bound, seconds = max(joint.entropy, utility), time.perf_counter() - started
            return Solution(protocol, utility, bound, "optimal", seconds, len(unchanged), "identity")
    if isinstance(guarantee, RLDP):
        return _robust(joint, guarantee, gap, time_limit, progress, reads_secret, counts, started)
    if not isinstance(guarantee, ConeGuarantee):
        raise SpecError(
            f"{guarantee.title} is no polyhedral cone, so no optimum can be certified; use subset-merging, grr or "
            "another explicit mechanism"
        )
    problem = _Problem.of(joint, guarantee, reads_secret)
    law = problem.merged.joint.p_input
    chosen = "columns" if reads_secret else chosen_method(method, problem.merged.joint, guarantee, problem.region)
    if reads_secret and method == "vertices":
        raise SpecError("the optimum over protocols that read the secret is found by columns only")
    split: Split | None = None
    slack = 0.0
    if chosen == "vertices":
        try:
            vertices = enumerate_vertices(problem.merged.joint, guarantee, time_limit, problem.rows)
            split, finished, size, slack = best_split(vertices, law), True, len(vertices), _SLACK
        except SolverError:
            # Double description in floats fails on thin regions; what was not asked for by name need not be used.
            if method != "auto":
                raise
            chosen = "columns"
    if split is None:

        def tick(value: float, bound: float) -> None:
            if progress is not None:
                utility, most = joint.entropy + value, min(joint.entropy, joint.entropy + bound)
                progress(utility, most, most - utility, time.perf_counter() - started)

        search = ColumnGeneration(problem.region)
        if reads_secret:
            search.start_from(_blind(problem, optimal(joint, guarantee, gap, time_limit, method).protocol))
            search.start_from(ascend(problem.region))
        mixture = search.run((1 - _ROUNDING_SHARE) * gap, time_limit, tick)
        split, finished, size = mixture.split, mixture.finished, mixture.columns
    protocol = _protocol(joint, problem.read, guarantee, _weights(problem, split))
    utility = mutual_information(joint, protocol)
    # I(X;Y) = H(X) - Σ P(y) H(v_y), and splitting merged inputs again leaves every H(v_y) as it is.
    rounding = 2.0**-50 * (len(joint.p_input) + 8) * (1.0 + joint.entropy)
    bound = max(utility, min(joint.entropy, joint.entropy + split.bound + slack) + rounding)
    status = "optimal" if bound - utility <= gap else "gap above request" if finished else "time limit"
    return Solution(protocol, utility, bound, status, time.perf_counter() - started, size, chosen)


def _robust(
    joint: Joint,
    guarantee: RLDP,
    gap: float,
    time_limit: float | None,
    progress: Progress | None,
    reads_secret: bool,
    counts: Counted,
    started: float,
) -> Solution:
    read = joint.with_secret() if reads_secret else joint
    a = joint.counts.shape[1]
    whole = counts == "secret and inputs"
    entropy = read.entropy if whole else joint.entropy

    def image(inputs: npt.NDArray[np.intp]) -> FloatArray | None:
        if not reads_secret or whole:
            return None
        seen = np.flatnonzero(joint.counts.any(axis=0))
        return np.asarray(seen[:, None] == inputs % a, dtype=np.float64)

    def tick(value: float, bound: float) -> None:
        if progress is not None:
            progress(entropy + value, min(entropy, entropy + bound), bound - value, time.perf_counter() - started)

    found = robust_weights(read, guarantee, gap, time_limit, image, tick)
    protocol = _protocol(joint, read, guarantee, found.weights)
    utility = mutual_information(joint, protocol, counts)
    rounding = 2.0**-50 * (len(read.p_input) + 8) * (1.0 + entropy)
    bound = max(utility, min(entropy, entropy + found.bound) + rounding)
    status = "optimal" if bound - utility <= gap else "gap above request" if found.finished else "time limit"
    seconds = time.perf_counter() - started
    return Solution(protocol, utility, bound, status, seconds, found.cuts, "cutting planes")


@dataclass(frozen=True, eq=False)
class _Problem:
    """What is optimised over: the joint law of what a protocol reads, presolved, and the region of its posteriors.

    ``read`` is the given joint law, or that over (S, X) where the protocol reads both.
    """

    read: Joint
    guarantee: ConeGuarantee
    merged: MergedInputs
    rows: FloatArray
    region: Region

    @classmethod
    def of(cls, joint: Joint, guarantee: ConeGuarantee, reads_secret: bool) -> _Problem:
        if not reads_secret:
            merged = merge_inputs(joint, guarantee)
            law = merged.joint.p_input
            rows = merged.cone(guarantee) / law
            return cls(joint, guarantee, merged, rows, Region.of(rows, law))
        read = joint.with_secret()
        merged = keep_inputs(read)
        law = merged.joint.p_input
        rows = merged.cone(guarantee) / law
        # What counts is x: the posterior of (s, x), summed over s (METHOD section 3).
        inputs = np.array([group[0] % joint.counts.shape[1] for group in merged.members])
        seen = np.flatnonzero(joint.counts.any(axis=0))
        return cls(read, guarantee, merged, rows, Region.of(rows, law, (seen[:, None] == inputs).astype(np.float64)))


def _blind(problem: _Problem, protocol: Protocol) -> FloatArray:
    """Posteriors (b, cells) of a protocol that reads X only, as one that could have read the secret."""
    rows = np.tile(protocol.matrix, len(problem.read.secret))[:, [group[0] for group in problem.merged.members]]
    posteriors = rows * problem.region.law
    return np.asarray(posteriors / posteriors.sum(axis=1, keepdims=True))


def _unchanged(joint: Joint, guarantee: Guarantee) -> WeightArray | None:
    """Weights that publish X as it is, where that meets the guarantee or misses it by a hair; else None.

    For a large ε the hair is all that is lost, while vertices lie too close together for floating point.
    """
    seen = joint.p_input > 0
    identity = np.eye(len(seen))[seen]
    identity[:, ~seen] = joint.p_input[seen, None]
    weights = rounded_weights(joint, identity)
    if guarantee.holds_for(joint, weights):
        return weights
    hair = mix(weights, marginal_weights(joint, weights), LARGEST_REPAIR)
    if not isinstance(guarantee, ConeGuarantee) or not guarantee.holds_for(joint, hair):
        return None
    return proven_weights(joint, guarantee, identity)


def _weights(problem: _Problem, split: Split) -> WeightArray:
    read, merged, guarantee = problem.read, problem.merged, problem.guarantee
    law = merged.joint.p_input
    if guarantee.is_perfect:
        weights = exact_channel(read, guarantee, _matrix(read, merged, split, problem.region.image))
        if not guarantee.holds_for(read, weights):
            raise SolverError(f"the integer protocol does not meet {guarantee}; this is a defect, please report it")
        return weights
    for margin in _MARGINS:
        polished = polish(split, law, problem.rows, merged.cone(guarantee.tightened(margin)) / law)
        if polished is not None:
            weights = rounded_weights(read, _matrix(read, merged, polished, problem.region.image))
            if guarantee.holds_for(read, weights):
                return weights
    for margin in _WIDER_MARGINS:
        moved = repaired(split, law, merged.cone(guarantee.tightened(margin)) / law, problem.region.image)
        if moved is not None:
            weights = rounded_weights(read, _matrix(read, merged, moved, problem.region.image))
            if guarantee.holds_for(read, weights):
                return weights
    # Some protocol meets every guarantee, so what the repair costs is shown as a gap instead of refusing.
    matrix = _matrix(read, merged, split, problem.region.image)
    return proven_weights(read, guarantee, matrix, largest_repair=1.0)


def _protocol(joint: Joint, read: Joint, guarantee: Guarantee, weights: WeightArray) -> Protocol:
    # Outputs in the order of the inputs they stand for: reports and successive releases read alike.
    order = np.lexsort((-weights.max(axis=1).astype(np.float64), weights.argmax(axis=1)))
    weights = weights[order]
    return Protocol(
        weights,
        marginal_weights(read, weights),
        read.inputs,
        name_outputs(weights, read.inputs, joint.inputs.columns),
        "optimal",
        str(guarantee),
    )


def _matrix(joint: Joint, merged: MergedInputs, split: Split, image: FloatArray | None) -> FloatArray:
    """The channel (b, a) of a split over merged inputs, with at most as many outputs as it has inputs."""
    posteriors, mass = split_rows(merged, split.posteriors, split.mass)
    seen = joint.p_input > 0
    if len(mass) > seen.sum() and image is None:
        basic = best_split(posteriors[:, seen], joint.p_input[seen])
        posteriors = np.zeros((len(basic.mass), len(seen)))
        posteriors[:, seen], mass = basic.posteriors, basic.mass
    matrix = np.zeros_like(posteriors)
    np.divide(posteriors * mass[:, None], joint.p_input, out=matrix, where=seen)
    # Inputs that never occur get the marginal; the rounding makes that exact.
    matrix[:, ~seen] = (mass / mass.sum())[:, None]
    sums = matrix.sum(axis=0)
    if np.abs(sums - 1).max() > 1e-6:
        raise SolverError("the optimiser's split of the input law does not add up; change epsilon slightly")
    return np.asarray(matrix / sums)
