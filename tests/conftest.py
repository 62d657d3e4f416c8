"""What all tests share: how hypothesis draws its examples, in what order they run, and that they hear interrupts."""

from __future__ import annotations

import gc
import math
import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import is_hypothesis_test, settings

# Before anything imports numpy or scikit-learn: threads of two workers wait for one another on two processors, as those
# of OpenMP do at work. On a busy machine a classifier of a tenth of a second took twelve.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

from tests import chance, forest
from tests.ledger.servers import Server, running_server

# Modules of the project and of all that it uses, and thousands of tests, are there as long as the tests run: put aside
# once they are imported, they are not looked through again and again for what may be thrown away.
gc.disable()

# The machines that run the tests are small and shared, so no example is failed for being slow.
settings.register_profile("local", deadline=None)
# In CI the same examples every time: a change is not failed for what another one broke. And two of five of them: they
# were all tried before, and `make test` elsewhere and `make fuzz` try others.
settings.register_profile("ci", deadline=None, derandomize=True)
CI = bool(os.environ.get("CI"))
_IN_CI = 0.4
settings.load_profile("ci" if CI else "local")

# A shell starts what runs in its background deaf to Ctrl-C, and a test that interrupts itself would then wait for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A fifth of the time of a small release otherwise; the forest itself is tested with all of its trees.
forest.plant(forest.FEW)

# Set by `make fuzz`: every test of a property takes that many times its examples, others in every run.
TIMES = int(os.environ.get("FUNNEL_FUZZ", "1"))
# Draws of every run are then other ones: what tests say of their probability is seen.
FRESH = TIMES > 1 or bool(os.environ.get("FUNNEL_FRESH"))
_SETTINGS = "_hypothesis_internal_use_settings"
# Where files take longest: they begin first, since a worker that gets such a file last keeps the others waiting. Each
# worker begins with two files, so the two that take longest by far are the first ones of two workers.
_FIRST = ("tests/flows/", "tests/sabotage/test_sabotage.py", "tests/sabotage/", "tests/tasks/", "tests/papers/")


def _turn(item: pytest.Item) -> int:
    return next((turn for turn, place in enumerate(_FIRST) if item.nodeid.startswith(place)), len(_FIRST))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object:
    """Files on workers, but all tests of flows on one: the server that they share takes a minute of a processor."""
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class Rooms(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return _FIRST[0] if nodeid.startswith(_FIRST[0]) else super()._split_scope(nodeid)

    return Rooms(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=_turn)
    times = TIMES if TIMES > 1 or not CI else _IN_CI
    if times == 1:
        return
    done = set()
    for item in items:
        test = getattr(item, "obj", None)
        # A method of a class has the settings of its function.
        test = getattr(test, "__func__", test)
        # Cases of one parametrised test are one function.
        if test is not None and is_hypothesis_test(test) and test not in done:
            own = getattr(test, _SETTINGS)
            more = settings(own, max_examples=math.ceil(times * own.max_examples))
            if TIMES > 1:
                more = settings(more, derandomize=False, print_blob=True)
            setattr(test, _SETTINGS, more)
            done.add(test)


def pytest_collection_finish() -> None:
    # The little that imports leave behind is put aside with the rest: looking for it would take a second.
    gc.freeze()
    # Tests leave little behind, and looking for it often takes longer than what it finds is worth.
    gc.set_threshold(20_000, 50, 100)
    gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    chance.begin(item.nodeid)


@pytest.fixture(scope="session", autouse=not FRESH)
def same_draws() -> Iterator[None]:
    """What is drawn is the same in every run."""
    with chance.same_draws():
        yield


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A PostgreSQL server, for the ledger and for sources."""
    with running_server() as server:
        yield server
