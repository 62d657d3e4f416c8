"""What all steps share: errors without causes, and progress that only listeners hear."""

from __future__ import annotations

import subprocess
import sys

import pytest

from funnel.errors import DataError, OutputError
from funnel.pipeline.tasks.step import listening, plain_errors, tell


def test_the_chain_of_causes_is_cut() -> None:
    @plain_errors
    def step() -> None:
        try:
            raise ValueError("row: Jane Doe, divorced")
        except ValueError as error:
            raise DataError("the file is damaged") from error

    with pytest.raises(DataError) as caught:
        step()
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_a_failure_of_the_file_system_is_an_output_error() -> None:
    @plain_errors
    def step() -> None:
        raise OSError(28, "No space left on device", "/x/y")

    with pytest.raises(OutputError, match=r"/x/y: No space left on device; make room") as caught:
        step()
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_a_connection_that_is_lost_is_not_blamed_on_the_disk() -> None:
    @plain_errors
    def step() -> None:
        raise ConnectionResetError(104, "Connection reset by peer")

    with pytest.raises(OutputError, match="a file of the release was lost: Connection reset by peer; run the release"):
        step()


def test_an_error_that_only_borrows_the_class_is_not_blamed_on_the_disk() -> None:
    @plain_errors
    def step() -> None:
        raise OSError("template not found")

    with pytest.raises(OSError, match="template") as caught:
        step()
    assert not isinstance(caught.value, OutputError)


def test_progress_reaches_the_listener_of_the_block_alone() -> None:
    heard: list[tuple[str, int, int | None]] = []
    tell("nobody")
    with listening(lambda *said: heard.append(said)):
        tell("somebody", 1, 2)
    tell("nobody")
    assert heard == [("somebody", 1, 2)]


def test_a_step_is_itself_outside_a_flow() -> None:
    """The orchestrator is not even imported: in a process of its own, where nothing else has done so."""
    program = (
        "import sys; from funnel.pipeline.tasks.ingest import ingest; from funnel.pipeline.tasks.step import step\n"
        "@step\ndef double(x: int) -> int: return 2 * x\n"
        "print(double(4), double.fn(5), double.name, ingest.name, 'prefect' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == ["8", "10", "double", "ingest", "False"]
