"""Check: one thing that an audit looked at, and whether it holds, does not hold, or could not be told."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from funnel.errors import FunnelError, LeakageExceeded, NotChecked
from funnel.wording import printable


class State(StrEnum):
    """What is known of a check, or of an audit as a whole."""

    PASSED = "passed"
    FAILED = "failed"
    UNCHECKED = "could not be checked"


@dataclass(frozen=True)
class Check:
    """One thing checked.

    Attributes
    ----------
    name : str
        One or two words, the same for every release.
    state : State
    detail : str
        What was seen, in one line that any terminal shows as it is.
    """

    name: str
    state: State
    detail: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "detail", printable(self.detail))

    @property
    def passed(self) -> bool:
        """Whether it holds; False also where that is not known."""
        return self.state is State.PASSED

    @property
    def failed(self) -> bool:
        """Whether it does not hold."""
        return self.state is State.FAILED


def judged(name: str, complaints: Iterable[str], holds: str) -> Check:
    """A check that fails with all its complaints, or passes with a sentence about what holds."""
    said = list(complaints)
    shown = "; ".join(said[:3]) + (f" (and {len(said) - 3} more)" if len(said) > 3 else "")
    return Check(name, State.FAILED, shown) if said else Check(name, State.PASSED, holds)


def unchecked(name: str, why: str) -> Check:
    """A check that could not be made."""
    return Check(name, State.UNCHECKED, why)


def overall(checks: Sequence[Check]) -> State:
    """What an audit found: failed if any check failed, else not known if any could not be made, else passed."""
    if any(check.failed for check in checks):
        return State.FAILED
    if not checks or any(not check.passed for check in checks):
        return State.UNCHECKED
    return State.PASSED


def complaint_of(root: str, checks: Sequence[Check]) -> FunnelError | None:
    """The error that an audit ends with; None if everything was checked and holds."""
    state = overall(checks)
    if state is State.PASSED:
        return None
    named = "; ".join(f"{c.name}: {c.detail}" for c in checks if (c.failed if state is State.FAILED else not c.passed))
    if state is State.FAILED:
        return LeakageExceeded(f"the release {root} does not hold what it declares: {named}")
    return NotChecked(f"the release {root} could not be checked in full, and nothing that was checked failed: {named}")
