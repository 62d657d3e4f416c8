"""Budget: how much an optimisation may work, counted in units that are the same on a busy and on an idle machine."""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Literal

# What a second of a time limit buys. A unit is about a nanosecond of processor time of a machine like those that run
# the tests, and a second buys fewer than fit into it, so that a run ends within its limit there.
UNITS_A_SECOND = 700_000_000
# What an array operation costs besides its entries: the interpreter.
CALL = 5_000
# The clock ends what takes this many times its limit, and so many seconds more: far beyond what a slow machine needs.
_PATIENCE, _GRACE = 4.0, 30.0

Clock = Callable[[], float]
Ended = Literal["work", "clock", "interrupt"]


@dataclass(eq=False)
class _Run:
    """What a budget and all its parts share."""

    clock: Clock
    deadline: float
    interrupted: bool = False
    spent: float = 0.0


@dataclass(eq=False)
class Budget:
    """The work that is left; all limits of effort go through one.

    Whoever works charges it with `spend`, by a formula of the sizes involved and never by a clock, and asks `expired`
    before going on. So the same input gives the same result whatever else the machine does. A clock is looked at as
    well, as a safety stop far beyond the limit; a run that it ended says so in `ended_by`.

    Attributes
    ----------
    remaining : float
        Units left; infinite without a limit.
    fell_short : bool
        Whether some work was not begun because it would have taken more than was left.
    """

    remaining: float
    _run: _Run
    _whole: Budget | None = field(default=None)
    fell_short: bool = False

    @classmethod
    def of(cls, limit: float | Budget | None, clock: Clock = time.monotonic) -> Budget:
        """A budget for so many seconds of processor time of the reference machine; None: without end.

        A budget is returned as it is, so whatever takes a ``time_limit`` takes a part of somebody else's budget too.

        Parameters
        ----------
        limit : float, Budget or None
            Seconds, > 0.
        clock : callable
            Seconds from any start; only for the safety stop, at four times the limit and half a minute.
        """
        if isinstance(limit, Budget):
            return limit
        if limit is None:
            return cls(math.inf, _Run(clock, math.inf))
        return cls(limit * UNITS_A_SECOND, _Run(clock, clock() + _PATIENCE * limit + _GRACE))

    def spend(self, units: float) -> None:
        """Take units of work off this budget and off those that it is a part of."""
        self._run.spent += units
        budget: Budget | None = self
        while budget is not None:
            budget.remaining -= units
            budget = budget._whole

    def allows(self, units: float) -> bool:
        """Whether so much work may begin; where it may not, `fell_short` remembers that a larger budget might help."""
        if self.expired or units > self.remaining:
            self.fell_short = True
            return False
        return True

    def part(self, share: float) -> Budget:
        """A budget of that share of what is left, whose work is taken off this one too."""
        return Budget(max(0.0, self.remaining) * share, self._run, self)

    def reserve(self, share: float) -> Budget:
        """Set that share of what is left aside for what must still be done when the rest is spent or interrupted."""
        aside = max(0.0, self.remaining) * share
        self.spend(aside if math.isfinite(aside) else 0.0)
        # It is not work that was done.
        self._run.spent -= aside if math.isfinite(aside) else 0.0
        return Budget(aside, _Run(self._run.clock, math.inf))

    def interrupt(self) -> None:
        """End this budget, those it is a part of, and all their parts: somebody pressed Ctrl-C."""
        self._run.interrupted = True

    @property
    def spent(self) -> float:
        """Units of work done so far by all that share a limit."""
        return self._run.spent

    @property
    def expired(self) -> bool:
        """Whether it is time to stop with the best that was found."""
        return self.ended_by is not None

    @property
    def ended_by(self) -> Ended | None:
        """What asks to stop: the work done, the safety clock, an interrupt; None while there is something left."""
        if self._run.interrupted:
            return "interrupt"
        budget: Budget | None = self
        while budget is not None:
            if budget.remaining <= 0:
                return "work"
            budget = budget._whole
        return "clock" if self._run.clock() > self._run.deadline else None

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """Inside, the first Ctrl-C ends this budget instead of raising KeyboardInterrupt anywhere; the next raises.

        Python delivers signals to the main thread only, and whoever has a handler of their own keeps it: elsewhere
        this does nothing.
        """
        here = threading.current_thread() is threading.main_thread()
        if not here or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
            yield
            return

        def stop(number: int, frame: FrameType | None) -> None:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            self.interrupt()

        signal.signal(signal.SIGINT, stop)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, signal.default_int_handler)
