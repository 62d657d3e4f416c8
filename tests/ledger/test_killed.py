"""A process that is really killed while it enters something: the ledger is as it was, or has all of it."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.ledger.events import event, opened
from tests.projects import ROOT

# Kills itself before or after the entries are committed, or while the database is migrated.
DIES = """
import os, signal, sys
from pathlib import Path
from sqlalchemy import Connection
from funnel.pipeline.ledger import ledger as room
from funnel.pipeline.ledger.ledger import Ledger
from tests.ledger.events import event

moment, url, workspace = sys.argv[1:]

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

def then_die(real):
    def called(*arguments, **options):
        real(*arguments, **options)
        die()
    return called

if moment == "migrating":
    room.migrate = then_die(room.migrate)
with Ledger.open(url or None, Path(workspace)) as ledger, ledger.holding("panel"):
    if moment == "before":
        Ledger._add = then_die(Ledger._add)
    elif moment == "after":
        room.write_head = die
    ledger.append_all([event("publishing", "1.1.0"), event("published", "1.1.0")])
"""


@pytest.mark.parametrize(("moment", "entered"), [("migrating", 0), ("before", 1), ("after", 3)])
def test_killed_while_it_enters(url: str | None, tmp_path: Path, moment: str, entered: int) -> None:
    if moment != "migrating":
        with opened(url, tmp_path) as ledger:
            ledger.append(event())
    died = subprocess.run(
        [sys.executable, "-c", DIES, moment, url or "", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
    )
    assert died.returncode == -signal.SIGKILL, died.stderr
    with opened(url, tmp_path) as ledger, ledger.holding("panel"):
        assert ledger.verify() == entered
        assert ledger.append(event("refused", None)).serial == entered + 1
