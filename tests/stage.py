"""Commands of ``funnel`` in real processes that need not import it again, and may die or pause at a given point.

One process imports everything and is copied (fork) for each command that something is to happen to, and once for all
others. A point is what the command says of its progress
(``"says drawing"``; ``"did drawing"`` when some of it is done), or the beginning or the end of a function
(``"before a.b.C.d"``, ``"after a.b.C.d"``): the first time that it gets there, however fast the machine is.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import pkgutil
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from tests import chance, forest

_ROOT = Path(__file__).parents[1]
_ALWAYS = (
    "funnel.cli",
    "funnel.pipeline.flows.commands",
    "funnel.pipeline.flows.pipeline",
    "funnel.pipeline.ledger.ledger_command",
    "funnel.pipeline.expectations",
    "funnel.recount.histories",
    "alembic.autogenerate",
    "alembic.command",
    "duckdb",
    "great_expectations",
    "joblib",
    "psutil",
    "pyarrow.dataset",
    "sklearn.ensemble",
)
# All modules of these packages.
_WHOLE = (
    "funnel.audit",
    "funnel.findings",
    "funnel.pipeline.expectations",
    "funnel.pipeline.tasks",
    "funnel.report",
)
# For commands that use a server.
_ORCHESTRATED = (
    "funnel.pipeline.flows.release",
    "funnel.pipeline.flows.watch",
)


@dataclass(frozen=True)
class Ended:
    """A command that has ended: its exit status (minus the signal if one killed it) and what it wrote."""

    status: int
    stdout: str
    stderr: str

    @property
    def said(self) -> dict[str, Any]:
        """What it told with ``--json``."""
        assert self.status == 0, self.stdout + self.stderr
        told: dict[str, Any] = json.loads(self.stdout)
        return told

    @property
    def sentence(self) -> str:
        """What went wrong, as it told with ``--json``: one sentence, and not that of a defect."""
        told = json.loads(self.stdout)
        assert (told["status"], told["exit_code"]) == ("failed", self.status), self.stderr
        sentence: str = told["message"]
        assert "\n" not in sentence, sentence
        assert not any(word in sentence + self.stderr for word in ("Traceback", "defect")), sentence + self.stderr
        return sentence


@dataclass(frozen=True)
class Started:
    """A command that was started."""

    stage: Stage
    pid: int
    output: Path

    def wait_until_there(self) -> None:
        """Return when it is at the point where it pauses; fails if it ends without getting there."""
        there = self.stage.ask({"reached": self.pid})
        assert there, self.end()

    def go_on(self) -> None:
        """Let it go on after its pause."""
        self.stage.ask({"go_on": self.pid})

    def kill(self) -> None:
        """SIGKILL."""
        os.kill(self.pid, signal.SIGKILL)

    def end(self) -> Ended:
        """Wait until it has ended."""
        return ended(self.stage.ask({"end": self.pid}), self.output)


def ended(status: int, output: Path) -> Ended:
    """A command that has ended, with what it wrote."""
    return Ended(status, output.with_suffix(".out").read_text(), output.with_suffix(".err").read_text())


class Stage:
    """The process that is copied."""

    def __init__(self, process: subprocess.Popen[str], folder: Path) -> None:
        self._process = process
        self._folder = folder
        self._number = 0

    def start(
        self,
        *arguments: str | Path,
        dies: str | None = None,
        by: signal.Signals = signal.SIGKILL,
        pauses: str | None = None,
        clock: datetime | None = None,
        unprivileged: bool = False,
        prepare: str | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> Started:
        """Start a command.

        Parameters
        ----------
        arguments : str or Path
            After ``funnel``.
        dies, pauses : str, optional
            The point where it sends itself a signal, or waits until it is told to go on.
        by : signal
            That one: SIGKILL where nothing else is said.
        clock : datetime, optional
            The time that it takes for the time.
        unprivileged : bool
            Whether rights of files bind it although the tests are run by the administrator.
        prepare : str, optional
            A function that its process calls first.
        environment : mapping, optional
        """
        self._number += 1
        output = self._folder / str(self._number)
        request = {
            "arguments": [str(argument) for argument in arguments],
            "output": str(output),
            "dies": dies,
            "by": int(by),
            "pauses": pauses,
            "clock": None if clock is None else clock.isoformat(),
            "unprivileged": unprivileged,
            "prepare": prepare,
            "environment": dict(environment or {}),
            "draws": chance.next_command(),
        }
        return Started(self, self.ask({"start": request}), output)

    def run(self, *arguments: str | Path, **options: Any) -> Ended:
        """Start a command and wait until it has ended.

        Without options it is run by a copy that goes on to the next one: a copy of its own takes 0.2 s of a processor.
        """
        if options:
            return self.start(*arguments, **options).end()
        self._number += 1
        output = self._folder / str(self._number)
        request = {
            "arguments": [str(argument) for argument in arguments],
            "output": str(output),
            "draws": chance.next_command(),
        }
        return ended(self.ask({"run": request}), output)

    def ask(self, request: dict[str, Any]) -> Any:
        """Ask the process that is copied."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())


@contextmanager
def open_stage(folder: Path, environment: Mapping[str, str] | None = None) -> Iterator[Stage]:
    """Start the process that is copied; outputs of commands go to a folder.

    Where the environment names a server, its commands use that one.
    """
    with subprocess.Popen(
        [sys.executable, "-m", "tests.stage"],
        env={**os.environ, **(environment or {})},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=_ROOT,
    ) as process:
        yield Stage(process, folder)
        assert process.stdin is not None
        process.stdin.close()


@dataclass
class _Child:
    pid: int
    there: int
    further: int


def _serve() -> None:
    gc.disable()
    served = "PREFECT_API_URL" in os.environ
    for name in (*_ALWAYS, *(_ORCHESTRATED if served else ())):
        importlib.import_module(name)
    if served:
        end_flows_at_once()
    for name in _WHOLE:
        for found in pkgutil.walk_packages(importlib.import_module(name).__path__, f"{name}."):
            importlib.import_module(found.name)
    _compile_templates()
    _read_metadata()
    forest.plant(forest.FEW)
    # What is imported is not looked through again by any of the copies, which would have to copy all of it for that.
    gc.collect()
    gc.freeze()
    # As in tests (conftest.py): commands leave little behind.
    gc.set_threshold(20_000, 50, 100)
    gc.enable()
    children: dict[int, _Child] = {}
    runner = _Runner()
    for line in sys.stdin:
        ((what, about),) = json.loads(line).items()
        if what == "start":
            child = _fork(about, list(children.values()))
            children[child.pid] = child
            answer: Any = child.pid
        elif what == "run":
            answer = runner.run(line)
        elif what == "reached":
            # Nothing to read, but an end, if the child has ended.
            answer = os.read(children[about].there, 1) == b"."
        elif what == "go_on":
            answer = os.write(children[about].further, b".")
        else:
            child = children.pop(about)
            answer = os.waitstatus_to_exitcode(os.waitpid(child.pid, 0)[1])
            os.close(child.there)
            os.close(child.further)
        print(json.dumps(answer), flush=True)
    for pid in (*(child.pid for child in children.values()), runner.pid):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def end_flows_at_once() -> None:
    """Flows of this process do not say now and then that they live: each would wait a second for who says it."""
    from prefect.flow_engine import BaseFlowRunEngine

    setattr(BaseFlowRunEngine, "heartbeat_seconds", None)  # noqa: B010


def _compile_templates() -> None:
    from funnel.report.page import _environment

    templates = _environment()
    for name in templates.list_templates(extensions=["html", "css", "jinja"]):
        templates.get_template(name)


def _read_metadata() -> None:
    """What every command reads of the files of all packages: who registers commands, and which code this is."""
    from click import Context

    from funnel.cli import main
    from funnel.release.provenance import code_digest

    main.list_commands(Context(main))
    code_digest()


class _Runner:
    """A copy that runs one command after the other."""

    def __init__(self) -> None:
        asked, asks = os.pipe()
        answered, answers = os.pipe()
        self.pid = os.fork()
        if not self.pid:
            try:
                _run_all(os.fdopen(asked), answers)
            finally:
                os._exit(70)
        os.close(asked)
        os.close(answers)
        self._asks, self._answered = asks, os.fdopen(answered)

    def run(self, line: str) -> int:
        """The status that a command ends with."""
        os.write(self._asks, line.encode())
        return int(self._answered.readline())


def _run_all(asked: IO[str], answers: int) -> None:
    for line in asked:
        request = json.loads(line)["run"]
        _redirect(Path(request["output"]))
        try:
            status = _drawn(request)
        except Exception:
            traceback.print_exc()
            status = 70
        os.write(answers, b"%d\n" % status)


def _fork(request: dict[str, Any], others: list[_Child]) -> _Child:
    there, tells = os.pipe()
    asks, further = os.pipe()
    pid = os.fork()
    if pid:
        os.close(tells)
        os.close(asks)
        return _Child(pid, there, further)
    status = 70
    try:
        for one in (there, further, *(end for other in others for end in (other.there, other.further))):
            os.close(one)
        status = _command(request, tells, asks)
    finally:
        # Not what the process that was copied would do at its end.
        os._exit(status)


def _command(request: dict[str, Any], tells: int, asks: int) -> int:
    _redirect(Path(request["output"]))
    os.environ.update(request["environment"])
    if request["unprivileged"]:
        _drop_privileges()
    if request["clock"] is not None:
        _set_clock(datetime.fromisoformat(request["clock"]))
    if request["prepare"] is not None:
        getattr(*_found(request["prepare"]))()

    def pause() -> None:
        os.write(tells, b".")
        os.read(asks, 1)

    if request["dies"] is not None:
        _when(request["dies"], lambda: os.kill(os.getpid(), request["by"]))
    if request["pauses"] is not None:
        _when(request["pauses"], pause)
    return _drawn(request)


def _drawn(request: dict[str, Any]) -> int:
    """Run a command, with the draws that its test has for it if it has any."""
    if request["draws"] is None:
        return _main(request["arguments"])
    chance.begin(request["draws"])
    with chance.same_draws():
        return _main(request["arguments"])


def _redirect(output: Path) -> None:
    """Read nothing, and write into files of a command."""
    with (
        output.with_suffix(".out").open("wb") as out,
        output.with_suffix(".err").open("wb") as err,
        Path(os.devnull).open("rb") as nothing,
    ):
        for number, opened in enumerate((nothing, out, err)):
            os.dup2(opened.fileno(), number)


def _main(arguments: list[str]) -> int:
    from funnel.cli import main

    try:
        main(args=arguments, prog_name="funnel")
    except SystemExit as ended:
        return int(ended.code or 0)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return 0


def _when(point: str, happens: Callable[[], None]) -> None:
    """Let something happen at the first time that a point is reached."""
    when, _, what = point.partition(" ")
    done: list[str] = []

    def once() -> None:
        if not done:
            done.append(point)
            happens()

    if when in ("says", "did"):
        from funnel.console import Console

        told = Console.progress

        def progress(self: Console, said: str, at: int, total: int | None) -> None:
            told(self, said, at, total)
            if what in said and (at or when == "says"):
                once()

        setattr(Console, "progress", progress)  # noqa: B010
        return
    owner, name = _found(what)
    real = getattr(owner, name)

    def called(*arguments: Any, **options: Any) -> Any:
        if when == "before":
            once()
        result = real(*arguments, **options)
        if when == "after":
            once()
        return result

    setattr(owner, name, called)


def _found(what: str) -> tuple[Any, str]:
    """What holds a function, and its name there."""
    names = what.split(".")
    for length in range(len(names) - 1, 0, -1):
        try:
            owner: Any = importlib.import_module(".".join(names[:length]))
        except ModuleNotFoundError:
            continue
        for name in names[length:-1]:
            owner = getattr(owner, name)
        return owner, names[-1]
    raise ValueError(f"there is no {what}")


def _set_clock(time: datetime) -> None:
    from funnel.pipeline.flows import pipeline
    from funnel.pipeline.ledger import account

    class Clock(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> datetime:  # type: ignore[override]
            return time.astimezone(tz or UTC)

    real = pipeline.accounting
    setattr(pipeline, "datetime", Clock)  # noqa: B010
    setattr(pipeline, "accounting", lambda *a, **o: real(*a, **{**o, "clock": lambda: time}))  # noqa: B010
    assert account.accounting is real


def _drop_privileges() -> None:
    """Give up what lets an administrator write to and read from files whatever their rights are (capset, Linux)."""
    import ctypes

    class Header(ctypes.Structure):
        _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))

    class Sets(ctypes.Structure):
        _fields_ = (("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32), ("inheritable", ctypes.c_uint32))

    # Version 3 of the interface: two words for each set.
    none = (Sets * 2)()
    if ctypes.CDLL(None, use_errno=True).capset(ctypes.byref(Header(0x20080522, 0)), ctypes.byref(none)):
        raise OSError(ctypes.get_errno(), "the rights of the administrator cannot be given up")


if __name__ == "__main__":
    _serve()
