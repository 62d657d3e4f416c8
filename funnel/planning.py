"""What each mechanism would cost in utility, and the choice of the best one."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from funnel.errors import InfeasibleGuarantee, SolverError, SpecError
from funnel.guarantees.base import Guarantee
from funnel.joint import Joint
from funnel.measures import mutual_information, normalised_mutual_information
from funnel.mechanisms import mechanism, names
from funnel.protocol import Protocol


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
    """

    mechanism: str
    reads_secret: bool
    protocol: Protocol | None
    utility: float | None
    share: float | None
    level: float | None
    seconds: float
    reason: str | None

    def to_dict(self) -> dict[str, Any]:
        """The row without its protocol, as JSON-ready values; an infinite level becomes None."""
        return {
            "mechanism": self.mechanism,
            "reads_secret": self.reads_secret,
            "usable": self.reason is None,
            "utility": self.utility,
            "share": self.share,
            "level": self.level if self.level is not None and math.isfinite(self.level) else None,
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
        Told the name of each mechanism before it is fitted.
    """
    rows = []
    for name in mechanisms if mechanisms is not None else names():
        if progress is not None:
            progress(name)
        rows.append(_row(name, joint, guarantee, reads_secret, time_limit))
    return tuple(sorted(rows, key=lambda row: (row.reason is not None, -(row.utility or 0.0))))


def _row(name: str, joint: Joint, guarantee: Guarantee, reads_secret: bool, time_limit: float | None) -> PlanRow:
    chosen = mechanism(name)
    started = time.perf_counter()
    try:
        protocol = chosen.fit(joint, guarantee, time_limit)
    except (InfeasibleGuarantee, SolverError, SpecError) as error:
        level = error.best_level if isinstance(error, InfeasibleGuarantee) else None
        seconds = time.perf_counter() - started
        return PlanRow(name, chosen.reads_secret, None, None, None, level, seconds, str(error))
    seconds = time.perf_counter() - started
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
    )


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
