"""A process that is really killed while it enters something: the ledger is as it was, or has all of it."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from funnel.pipeline.ledger import ledger as room
from funnel.pipeline.ledger.ledger import Ledger
from tests.killing import another_process
from tests.ledger.events import event, opened


def die(*_: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def then_die(real: Callable[..., Any]) -> Callable[..., Any]:
    def called(*arguments: Any, **options: Any) -> None:
        real(*arguments, **options)
        die()

    return called


def enter_and_die(moment: str, url: str | None, workspace: Path) -> None:
    """Run in another process: it kills itself before or after the entries are committed, or as it begins the ledger."""
    if moment == "beginning":
        room.begin = then_die(room.begin)
    with Ledger.open(url, workspace) as ledger, ledger.holding("panel"):
        if moment == "before":
            Ledger._add = then_die(Ledger._add)  # type: ignore[method-assign]
        elif moment == "after":
            room.write_head = die
        ledger.append_all([event("publishing", "1.1.0"), event("published", "1.1.0")])


@pytest.mark.parametrize(("moment", "entered"), [("beginning", 0), ("before", 1), ("after", 3)])
def test_killed_while_it_enters(url: str | None, tmp_path: Path, moment: str, entered: int) -> None:
    if moment != "beginning":
        with opened(url, tmp_path) as ledger:
            ledger.append(event())
    with another_process(enter_and_die, moment, url, tmp_path) as process:
        process.join()
        assert process.exitcode == -signal.SIGKILL
    with opened(url, tmp_path) as ledger, ledger.holding("panel"):
        assert ledger.verify() == entered
        assert ledger.append(event("refused", None)).serial == entered + 1
