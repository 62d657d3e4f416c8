"""Check: one thing that an audit looks at, what it needs, and whether it holds, does not hold, or could not be told."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import wraps
from typing import Any, ClassVar, Generic, Literal, TypeVar

from pydantic import Field

from funnel.errors import FunnelError, LeakageExceeded, NotChecked
from funnel.release.document import Document, Part
from funnel.wording import printable

Known = TypeVar("Known")
Found = Generator[str, None, str | None]
"""What a check finds: it yields what does not hold, and returns what holds; None where another check says enough."""

# Of each statistical check of an audit: with those of the drawing, a release that was made and drawn as declared fails
# any of them at most once in a thousand million audits.
FALSE_ALARM = 5e-11


class State(StrEnum):
    """What is known of a check, or of an audit as a whole."""

    PASSED = "passed"
    FAILED = "failed"
    UNCHECKED = "could not be checked"


@dataclass(frozen=True)
class Result:
    """What one check found.

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


@dataclass(frozen=True)
class Check(Generic[Known]):
    """One line of a table of checks.

    Attributes
    ----------
    name : str
        As in its result.
    needs : str
        Words for what has to be known of a release, and for what a release has to have: where one of them is missing
        the check is not made.
    says : str
        What holds where it passes, as a sentence.
    verify : callable
        Makes it of all that is known; None where another check says already that it could not be made.
    contained : bool
        Whether a file that it cannot read, or what it cannot compute, fails it alone, and no other check.
    """

    name: str
    needs: str
    says: str
    verify: Callable[[Known], Result | None]
    contained: bool = False

    def applies(self, has: Iterable[str]) -> bool:
        """Whether all is there that it needs."""
        return set(self.needs.split()) <= set(has)


def sentence_of(function: Callable[..., object]) -> str:
    """What the docstring of a function says first."""
    return " ".join((function.__doc__ or "").partition("\n\n")[0].split())


NOTED: list[Check[Any]] = []
"""The checks of an audit, in no order: each is noted beside the function that makes it."""


def check(name: str, needs: str, says: str | None = None, contained: bool = False) -> Callable[..., Any]:
    """Note a check of an audit: what holds where it passes is what its docstring says first, or another sentence."""

    def noted(find: Callable[[Any], Found | Result | None]) -> Callable[[Any], Result | None]:
        @wraps(find)
        def verify(known: Any) -> Result | None:
            found = find(known)
            return concluded(name, found) if isinstance(found, Generator) else found

        NOTED.append(Check(name, needs, says or sentence_of(find), verify, contained))
        return verify

    return noted


class Unchecked(str):
    """Why a check could not be made, in place of what holds."""

    __slots__ = ()


def concluded(name: str, found: Found) -> Result | None:
    """The result of a check by all that it finds."""
    complaints: list[str] = []
    while True:
        try:
            complaints.append(next(found))
        except StopIteration as end:
            if end.value is None and not complaints:
                return None
            if isinstance(end.value, Unchecked) and not complaints:
                return unchecked(name, end.value)
            return judged(name, complaints, str(end.value))


def judged(name: str, complaints: Iterable[str], holds: str) -> Result:
    """A check that fails with all its complaints, or passes with a sentence about what holds."""
    said = list(complaints)
    shown = "; ".join(said[:3]) + (f" (and {len(said) - 3} more)" if len(said) > 3 else "")
    return Result(name, State.FAILED, shown) if said else Result(name, State.PASSED, holds)


def unchecked(name: str, why: str) -> Result:
    """A check that could not be made."""
    return Result(name, State.UNCHECKED, why)


def overall(checks: Sequence[Result]) -> State:
    """What an audit found: failed if any check failed, else not known if any could not be made, else passed."""
    if any(check.failed for check in checks):
        return State.FAILED
    if not checks or any(not check.passed for check in checks):
        return State.UNCHECKED
    return State.PASSED


def error_of(root: str, checks: Sequence[Result]) -> FunnelError | None:
    """The error that an audit ends with; None if everything was checked and holds."""
    state = overall(checks)
    if state is State.PASSED:
        return None
    named = "; ".join(f"{c.name}: {c.detail}" for c in checks if (c.failed if state is State.FAILED else not c.passed))
    if state is State.FAILED:
        return LeakageExceeded(f"the release {root} does not hold what it declares: {named}")
    return NotChecked(f"the release {root} could not be checked in full, and nothing that was checked failed: {named}")


_States = Literal["passed", "failed", "could not be checked"]


class AuditedCheck(Part):
    """`funnel.audit.check.Result`."""

    name: str
    state: _States
    detail: str


class AuditDocument(Document):
    """What ``funnel audit --json`` prints: the state of the whole release and of every check.

    Attributes
    ----------
    release : str
        The folder or the URL that was audited.
    state : str
        Failed if any check failed, else not known if any could not be made, else passed.
    checks : tuple of AuditedCheck
    """

    described: ClassVar[str] = "the document of an audit"
    schema_: Literal["funnel/audit/1"] = Field(default="funnel/audit/1", alias="schema")
    release: str
    state: _States
    checks: tuple[AuditedCheck, ...] = Field(min_length=1)


def audit_document(release: str, checks: Sequence[Result]) -> AuditDocument:
    """The document of an audit."""
    return AuditDocument(
        release=release,
        state=overall(checks).value,
        checks=tuple(AuditedCheck(name=c.name, state=c.state.value, detail=c.detail) for c in checks),
    )
