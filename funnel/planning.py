"""What each mechanism would cost in utility, and the choice of the best one."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from funnel.errors import InfeasibleGuarantee, SolverError, SpecError
from funnel.guarantees.base import Guarantee
from funnel.joint import Joint
from funnel.measures import mutual_information, normalised_mutual_information
from funnel.mechanisms import mechanism, names
from funnel.mechanisms.base import check_size
from funnel.progress import Progress
from funnel.protocol import DENOMINATOR, Protocol


@dataclass(frozen=True, eq=False)
class PlanRow:
    """One mechanism judged for one joint law and guarantee.

    Attributes
    ----------
    mechanism : str
    reads_secret : bool
    protocol : Protocol or None
        None where the mechanism is not applicable.
    utility : float or None
        I(X;Y), nats.
    share : float or None
        I(X;Y) / H(X).
    level : float or None
        Exact level (nats) of the protocol, or the best level the mechanism can reach where it is not applicable.
    seconds : float
    reason : str or None
        Why the mechanism is not applicable or not allowed; None if it may be used.
    bound : float or None
        For optimised protocols: no protocol of this kind has a larger I(X;Y), in nats.
    finished : bool
        False if the time limit ended the search for the optimum; the protocol holds all the same.
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
        }


def plan(
    joint: Joint,
    guarantee: Guarantee,
    mechanisms: Sequence[str] | None = None,
    reads_secret: bool = False,
    time_limit: float | None = None,
    progress: Callable[[str], None] | None = None,
) -> tuple[PlanRow, ...]:
    """Fit every mechanism and report its utility, exact level and time, best first.

    Parameters
    ----------
    joint : Joint
    guarantee : Guarantee
    mechanisms : sequence of str, optional
        Names to try; all by default.
    reads_secret : bool
        Whether a protocol that reads the secret may be chosen; such mechanisms are computed and shown either way.
    time_limit : float, optional
        Seconds for each optimisation.
    progress : callable, optional
        Told the name of each mechanism before it is fitted, and about once a second how far an optimum has come.

    Raises
    ------
    SpecError
        If a mechanism is unknown, the guarantee cannot be asked of this joint law at all, or the alphabet is too large.
    """
    check_size(joint)
    # What no mechanism could do is an error here, not a reason in every row.
    guarantee.level_for(joint, np.full((1, len(joint.inputs)), DENOMINATOR, dtype=np.uint64))
    rows = []
    for name in mechanisms if mechanisms is not None else names():
        if progress is not None:
            progress(f"fitting {name}")
        rows.append(_row(name, joint, guarantee, reads_secret, time_limit, progress))
    return tuple(sorted(rows, key=lambda row: (row.reason is not None, -(row.utility or 0.0))))


def _row(
    name: str,
    joint: Joint,
    guarantee: Guarantee,
    reads_secret: bool,
    time_limit: float | None,
    progress: Callable[[str], None] | None,
) -> PlanRow:
    chosen = mechanism(name)
    started = time.perf_counter()
    try:
        fitted = chosen.fitted(joint, guarantee, time_limit, _steps(name, progress))
    except (InfeasibleGuarantee, SolverError, SpecError) as error:
        level = error.best_level if isinstance(error, InfeasibleGuarantee) else None
        seconds = time.perf_counter() - started
        return PlanRow(name, chosen.reads_secret, None, None, None, level, seconds, str(error))
    protocol, seconds = fitted.protocol, time.perf_counter() - started
    allowed = reads_secret or not chosen.reads_secret
    return PlanRow(
        name,
        chosen.reads_secret,
        protocol,
        mutual_information(joint, protocol),
        normalised_mutual_information(joint, protocol),
        guarantee.level(joint, protocol).value,
        seconds,
        None if allowed else "reads the secret; allow it with reads_secret = true under [mechanism]",
        fitted.bound,
        fitted.finished,
    )


def _steps(name: str, progress: Callable[[str], None] | None) -> Progress | None:
    """What tells of the steps of an optimisation, at most once a second."""
    if progress is None:
        return None
    told = time.perf_counter()

    def step(what: str, done: int, total: int | None) -> None:
        nonlocal told
        if time.perf_counter() - told >= 1:
            told = time.perf_counter()
            progress(f"fitting {name}: {what}")

    return step


def choose(rows: Sequence[PlanRow]) -> PlanRow:
    """The usable mechanism of highest utility.

    Raises
    ------
    InfeasibleGuarantee
        If no mechanism is usable, with every reason.
    """
    usable = [row for row in rows if row.reason is None]
    if not usable:
        reasons = "; ".join(f"{row.mechanism}: {row.reason}" for row in rows)
        raise InfeasibleGuarantee(f"no mechanism can be used ({reasons})")
    return max(usable, key=lambda row: row.utility or 0.0)
