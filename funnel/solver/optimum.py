"""The protocol of highest utility under a guarantee, with an upper bound on what any protocol could reach.

Whatever is asked for, the answer is a protocol of integer weights that were decided to meet the guarantee exactly, its
utility, and a bound. Which programme is solved depends on the request:

- the channel that leaves most records unchanged and every table right on average (`invariant`);
- X as it is, where the guarantee allows that (`as_it_is`);
- for estimates, a design over the rows of a cone (`designed`);
- over a set of distributions, cutting planes or a search by levels (`over_distributions`);
- in wide tables, the optimum over the distinct posteriors of the secret (`wide`);
- else the best mixture of posteriors in the region of a cone (`over_cone`).
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from funnel.certificate import Weighting
from funnel.errors import SpecError
from funnel.guarantees import as_guarantee
from funnel.guarantees.base import Guarantee
from funnel.guarantees.rldp import RLDP
from funnel.guarantees.sided import over_set
from funnel.joint import Joint
from funnel.measures import Counted
from funnel.measures.utilities import INFORMATION, Estimation, Utility, utility_of
from funnel.progress import Progress, quiet
from funnel.protocol import Protocol
from funnel.solver.as_it_is import unchanged_optimum
from funnel.solver.budget import Budget
from funnel.solver.designed import design_optimum
from funnel.solver.floors import never_below
from funnel.solver.invariant import invariant_optimum, share_kept
from funnel.solver.over_cone import cone_optimum
from funnel.solver.over_distributions import set_optimum
from funnel.solver.request import Request, Solution
from funnel.solver.search import METHODS
from funnel.solver.wide import is_binary, is_wide, needs_no_table, wide_optimum


def optimal(
    joint: Joint,
    guarantee: Guarantee | Sequence[Guarantee],
    gap: float = 1e-6,
    time_limit: float | Budget | None = None,
    method: str = "auto",
    progress: Progress | None = None,
    reads_secret: bool = False,
    counts: Counted = "inputs",
    utility: str | Utility = "information",
    weights: Weighting = "root",
    known: Sequence[Protocol] = (),
) -> Solution:
    """Maximise the utility over all protocols that read X and meet the guarantee (PF problem 2, theorem 3; METHOD 3).

    Works in dimension a-1 for every guarantee that is a cone on rows, LDP included, instead of the a(a-1) dimensions
    of PF theorem 2.

    Parameters
    ----------
    joint : Joint
        Counts of (S, X), shape (c, a).
    guarantee : Guarantee or sequence of Guarantee
        One, or several that all hold: polyhedral cones, or over a set of distributions
        (`funnel.guarantees.over_distributions`). Where the joint distribution has bounds, LDP, LIP, ALIP, PML, SRLIP
        and attribute protection are over every table within them.
    gap : float
        Requested ``bound - utility``, in nats or as a share of the variance.
    time_limit : float or Budget, optional
        Seconds of processor time of the reference machine, counted as work (`funnel.solver.budget`): the same on a
        busy machine. Columns return the best protocol so far, with a bound; no list of vertices is begun beyond it.
    method : str
        ``"vertices"`` lists every vertex of the cone, where they are few, ``"columns"`` generates those that are needed
        and certifies the rest by branch and bound, ``"auto"`` predicts which is cheaper.
    progress : callable, optional
        Told the utility and the bound, in words, whenever columns have come a step further.
    reads_secret : bool
        Maximise over the protocols that read (S, X) instead, still by I(X;Y): at least as useful, and at least as
        useful as Conditional Reporting. Columns only, in dimension c a.
    counts : "inputs" or "secret and inputs"
        What the utility counts of a protocol that reads the secret: X, or (S, X) as in RLDP.
    utility : "information", "variance", "estimation", "unchanged" or Utility
        I(X;Y) in nats; or Var E[X|Y] / Var X of one column of numbers (METHOD section 9), where gap, utility and bound
        are shares of the variance. Values that are no numbers are given theirs by `funnel.measures.Variance`. Or the
        weighted share of records unchanged, over the protocols whose outputs are the inputs and have the same
        distribution (invariant post-randomisation, METHOD section 17), where gap, utility and bound are such shares.
    weights : "root", "share" or "uniform"
        What an unchanged record with value x counts under ``utility="unchanged"``: in proportion to ``1/√p_x``, to 1 or
        to ``1/p_x``, so that all values together count by √p_x, p_x or alike. "share" leaves most records unchanged,
        "root" nearly as many, without giving up rare values.
    known : sequence of Protocol
        Protocols for the same joint distribution, such as those that were found under smaller budgets: what meets a
        smaller budget meets a larger one. Those that meet the guarantee are where a search over a cone starts, and the
        solution is never less useful than any of them. So a sweep that hands on its protocols never falls.

    Returns
    -------
    Solution
        Its protocol has at most a outputs (if it does not read the secret) and meets the guarantee exactly, on its
        integer weights. It is never less useful than merging, nor than some of the columns as they are, nor than
        perfect privacy on a lattice, nor, if it reads the secret, than the optimum that was found without, but for a
        gap of a millionth. The same input gives the same protocol, unless the safety
        clock or an interrupt ends the search: Ctrl-C, which columns answer with the best protocol so far.

    Raises
    ------
    SpecError
        If the guarantee is neither, the method or utility is unknown, a value has no number, or the gap or time limit
        is not positive.
    SolverError
        If vertices are asked for and may be too many, or are lost, or a linear programme fails.

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
    started, guarantee = time.perf_counter(), as_guarantee(guarantee)
    if method not in METHODS:
        raise SpecError(f"unknown method {method!r} for the optimum; choose one of {', '.join(METHODS)}")
    if not gap > 0 or not (time_limit is None or isinstance(time_limit, Budget) or time_limit > 0):
        raise SpecError("gap (nats) and time limit (seconds) of the optimum must be positive")
    if counts not in ("inputs", "secret and inputs"):
        raise SpecError(f"the utility of an optimum counts inputs, or secret and inputs, not {counts!r}")
    if utility == "unchanged":
        if reads_secret:
            raise SpecError(
                'utility="unchanged" publishes what the protocol reads; leave reads_secret out, or name the secret\'s '
                "columns among the inputs of the joint distribution"
            )
        invariant = invariant_optimum(joint, guarantee, weights, gap, Budget.of(time_limit), progress or quiet)
        return never_below(known, invariant, joint, guarantee, gap, lambda one: share_kept(joint, one, weights))
    useful = utility_of(utility, joint.inputs)
    if useful != INFORMATION and counts != "inputs":
        raise SpecError(f"utility by {useful.name} counts the published columns; leave counts out")
    request = Request(
        joint,
        guarantee,
        gap,
        Budget.of(time_limit),
        method,
        progress,
        reads_secret,
        counts,
        useful,
        started,
        tuple(known),
    )
    return never_below(known, _best_of(request), joint, guarantee, gap, request.utility_of)


def _best_of(request: Request) -> Solution:
    """The optimum by information, variance or estimation."""
    joint, guarantee, method = request.joint, request.guarantee, request.method
    chosen = method == "auto" or (method == "columns" and needs_no_table(joint) and not is_binary(joint))
    if chosen and request.informs and not request.reads_secret and is_wide(joint, guarantee):
        with request.budget.interruptible():
            return wide_optimum(request)
    return _in_table(request)


def _in_table(request: Request) -> Solution:
    """The optimum as a table of all inputs by all outputs."""
    if (found := unchanged_optimum(request)) is not None:
        return found
    with request.budget.interruptible():
        if isinstance(request.utility, Estimation):
            return design_optimum(request, _in_table)
        if isinstance(request.guarantee, RLDP) or over_set(request.guarantee, request.joint) is not None:
            return set_optimum(request)
        if request.reads_secret and request.method == "vertices":
            raise SpecError("the optimum over protocols that read the secret is found by columns only")
        return cone_optimum(request)
