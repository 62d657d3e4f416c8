"""The budget of an optimisation: work counted alike everywhere, parts within wholes, a clock only as a safety stop."""

from __future__ import annotations

import os
import signal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from funnel.solver.budget import UNITS_A_SECOND, Budget


def stopped_clock() -> float:
    return 0.0


def test_a_limit_is_work_and_no_clock() -> None:
    budget = Budget.of(2.0, stopped_clock)
    assert not budget.expired
    budget.spend(2 * UNITS_A_SECOND - 1)
    assert not budget.expired
    budget.spend(1)
    assert budget.ended_by == "work"


def test_without_a_limit_nothing_ends_but_by_an_interrupt() -> None:
    budget = Budget.of(None, lambda: 1e300)
    budget.spend(1e300)
    part = budget.part(0.5)
    part.spend(1e300)
    assert not budget.expired
    assert not part.expired
    part.interrupt()
    assert part.ended_by == budget.ended_by == "interrupt"


@given(st.floats(1e-9, 1e6), st.lists(st.tuples(st.floats(0.01, 1.0), st.floats(0, 2)), max_size=6))
def test_parts_never_take_more_than_the_whole(seconds: float, shares: list[tuple[float, float]]) -> None:
    """Each part is worked to its end and a little beyond, as work that is charged afterwards does."""
    budget = Budget.of(seconds, stopped_clock)
    for share, work in shares:
        before, part = budget.remaining, budget.part(share)
        assert part.remaining <= share * max(before, 0.0)
        spent = work * part.remaining
        part.spend(spent)
        assert budget.remaining == before - spent
        assert not budget.expired or part.expired


def test_a_part_ends_with_its_whole() -> None:
    budget = Budget.of(1.0, stopped_clock)
    part = budget.part(0.5).part(0.5)
    budget.spend(UNITS_A_SECOND)
    assert part.ended_by == "work"
    assert budget.part(1.0).expired


def test_the_clock_is_a_safety_stop_far_beyond_the_limit() -> None:
    now = [100.0]
    budget = Budget.of(10.0, lambda: now[0])
    part = budget.part(0.1)
    now[0] += 4 * 10.0
    assert not budget.expired
    now[0] += 30.0 + 1e-3
    assert part.ended_by == budget.ended_by == "clock"
    # What was worked out by then says that it was worked out, whatever the clock shows.
    budget.spend(10 * UNITS_A_SECOND)
    assert budget.ended_by == "work"


def test_whatever_takes_a_time_limit_takes_a_budget() -> None:
    budget = Budget.of(1.0)
    assert Budget.of(budget) is budget


def test_the_first_interrupt_ends_the_budget_and_the_second_raises() -> None:
    budget, before = Budget.of(None), signal.getsignal(signal.SIGINT)
    with budget.interruptible():
        with budget.part(0.5).interruptible():
            os.kill(os.getpid(), signal.SIGINT)
        assert budget.ended_by == "interrupt"
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


def test_a_handler_of_somebody_else_is_left_alone() -> None:
    heard: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: heard.append(number))
    try:
        budget = Budget.of(None)
        with budget.interruptible():
            os.kill(os.getpid(), signal.SIGINT)
        assert heard == [signal.SIGINT]
        assert not budget.expired
    finally:
        signal.signal(signal.SIGINT, before)
