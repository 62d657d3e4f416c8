"""Request and solution: what is asked of the optimiser, and the protocol with the certificate that it answers with."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from funnel.guarantees.base import Guarantee
from funnel.joint import Joint
from funnel.measures import Counted, mutual_information
from funnel.measures.utilities import INFORMATION, Utility
from funnel.naming import name_outputs
from funnel.progress import Progress
from funnel.protocol import Protocol, WeightArray
from funnel.rounding import marginal_weights
from funnel.solver.budget import Budget, Ended

_STATUS: dict[Ended, str] = {"work": "time limit", "clock": "clock", "interrupt": "interrupted"}
_ENDED: dict[str, Ended] = {status: ended for ended, status in _STATUS.items()}


@dataclass(frozen=True, eq=False)
class Solution:
    """An optimised protocol with its certificate; utility <= optimum <= bound.

    Attributes
    ----------
    protocol : Protocol
        Verified integer weights.
    utility : float
        I(X;Y) of that protocol, in nats; or the share of the variance of X that it explains, where that was asked for.
    bound : float
        Upper bound on the utility of every protocol that meets the guarantee. Over the χ² set: and that gives the
        marginal to inputs which never occurred.
    status : str
        ``"optimal"`` if ``gap`` is at most the requested one. Else what ended the search: ``"time limit"`` if it was
        the work that the limit allows, the same in every run; ``"clock"`` if it was the safety stop far beyond;
        ``"interrupted"``; ``"gap above request"`` if doubles or integer weights cannot come closer; ``"gave up"`` if
        the search stopped far from the gap, with nothing that moved it or with a programme that failed.
    seconds : float
        Time taken.
    vertices : int
        Number of vertices enumerated, or of columns generated.
    method : str
        ``"vertices"``, ``"columns"``, ``"pairs"``, ``"identity"``, ``"design"`` or ``"cutting planes"``: what was done.

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
        """bound - utility."""
        return self.bound - self.utility

    @property
    def finished(self) -> bool:
        """Whether more time would change nothing."""
        return self.status in ("optimal", "gap above request")

    @property
    def ended_by(self) -> Ended | None:
        """What ended the search before its end, if anything did."""
        return _ENDED.get(self.status)


@dataclass(frozen=True, eq=False)
class Request:
    """What is asked of the optimiser; its attributes are the parameters of `funnel.optimal`.

    Attributes
    ----------
    joint : Joint
        Counts of (S, X), shape (c, a).
    guarantee : Guarantee
    gap : float
        Requested bound - utility.
    budget : Budget
    method : str
    progress : callable, optional
    reads_secret : bool
    counts : "inputs" or "secret and inputs"
    utility : Utility
    started : float
        On the clock of `time.perf_counter`.
    known : tuple of Protocol
    """

    joint: Joint
    guarantee: Guarantee
    gap: float
    budget: Budget
    method: str = "auto"
    progress: Progress | None = None
    reads_secret: bool = False
    counts: Counted = "inputs"
    utility: Utility = INFORMATION
    started: float = field(default_factory=time.perf_counter)
    known: tuple[Protocol, ...] = ()

    @cached_property
    def read(self) -> Joint:
        """The joint distribution over what a protocol reads."""
        return self.joint.with_secret() if self.reads_secret else self.joint

    @property
    def counts_all(self) -> bool:
        """Whether the utility counts all that a protocol reads, which is more than X."""
        return self.reads_secret and self.counts == "secret and inputs"

    @property
    def informs(self) -> bool:
        """Whether the utility is information."""
        return self.utility == INFORMATION

    @cached_property
    def most(self) -> float:
        """The utility of publishing all that it counts as it is."""
        return self.read.entropy if self.counts_all else self.utility.whole(self.joint)

    def utility_of(self, protocol: Protocol) -> float:
        """The utility of a protocol."""
        if self.informs:
            return mutual_information(self.joint, protocol, self.counts)
        return self.utility.told(self.joint, protocol)

    def protocol(self, weights: WeightArray, read: Joint | None = None) -> Protocol:
        """Weights (b, a) with their labels; over what is read, unless they are over something else.

        Outputs are in the order of the inputs they stand for: reports and successive releases read alike.
        """
        read = self.read if read is None else read
        weights = weights[np.lexsort((-weights.max(axis=1).astype(np.float64), weights.argmax(axis=1)))]
        names = name_outputs(weights, read.inputs, self.joint.inputs.columns)
        marginal = marginal_weights(read, weights)
        return Protocol(weights, marginal, read.inputs, names, "optimal", str(self.guarantee))

    def report(self, utility: float, bound: float) -> None:
        """Tell whoever follows it how far a search is."""
        if self.progress is not None:
            self.progress(f"{utility:.5f} {self.utility.unit}, at most {bound:.5f}", 0, None)

    def answer(
        self,
        protocol: Protocol,
        utility: float,
        bound: float,
        size: int,
        method: str,
        finished: bool = True,
        ended: Ended | None = None,
    ) -> Solution:
        """The solution.

        Parameters
        ----------
        protocol : Protocol
        utility, bound : float
        size : int
            Vertices, columns or cuts.
        method : str
            What was done.
        finished : bool
            Whether the search came to its end.
        ended : "work", "clock", "interrupt" or None
            What ended it, where that is known.
        """
        bound = max(utility, bound)
        status = "gap above request" if finished else "gave up"
        if ended is not None:
            status = _STATUS[ended]
        if bound - utility <= self.gap:
            status = "optimal"
        return Solution(protocol, utility, bound, status, time.perf_counter() - self.started, size, method)


def rounding_of(inputs: int, most: float) -> float:
    """What rounding can take off a bound that is a sum over so many inputs, and at most so much."""
    return 2.0**-50 * (inputs + 8) * (1.0 + most)
