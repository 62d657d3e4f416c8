"""The questions of `funnel init` on a real terminal: nothing is drawn over them, and answers are taken."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path

from funnel.spec import ReleaseSpec
from tests.projects import ADULT

_QUESTIONS = {
    "1. Which": "incme",
    "no column": "income",
    "2. Which": "education,sex",
    "3. Which": "-",
    "5. Will": "n",
}


def test_five_questions_are_answered_on_a_terminal(tmp_path: Path) -> None:
    file = tmp_path / "spec.toml"
    mine, theirs = pty.openpty()
    command = [sys.executable, "-m", "funnel", "init", str(ADULT), "-o", str(file)]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "200"}
    running = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, cwd=tmp_path)
    os.close(theirs)
    shown = ""

    def read(seconds: float, at_most: float = 10.0) -> str:
        """What is shown until nothing has been for so long."""
        found, end = "", time.monotonic() + at_most
        while time.monotonic() < end and select.select([mine], [], [], seconds)[0]:
            try:
                found += os.read(mine, 65_536).decode(errors="replace")
            except OSError:
                break
        return found

    try:
        for question, answer in _QUESTIONS.items():
            until = time.monotonic() + 120
            while question not in shown:
                assert time.monotonic() < until, shown
                shown += read(0.05)
            # A display that goes on being drawn would be shown last, and take away what a person types.
            shown += read(0.4)
            assert shown.rstrip().endswith((")", "?", "edit"))
            shown = ""
            os.write(mine, f"{answer}\n".encode())
        assert "wrote" in read(60.0, 60.0)
        assert running.wait(60) == 0
    finally:
        running.kill()
        running.wait()
        os.close(mine)
    spec = ReleaseSpec.load(file)
    assert (spec.secret, spec.publish) == (("income",), ("education", "sex"))
    assert spec.history is not None
    assert spec.history.people == "different"
