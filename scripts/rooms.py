"""The rooms that decide what is published: which tests run which of their lines, and the branches that no test takes.

``python scripts/rooms.py`` prints the gaps of every room, ``python scripts/rooms.py sampling`` those of one. A gap has
its reason in scripts/rooms.toml; one without a reason, and a reason without a gap, is a failure.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import coverage

ROOT = Path(__file__).parents[1]
WORK = ROOT / ".mutants"


@dataclass(frozen=True)
class Gap:
    """Lines that none of the room's own tests reaches, or after which they always go the same way, and why."""

    file: str
    lines: tuple[str, ...]
    why: str


@dataclass(frozen=True)
class Equivalent:
    """A change of a line that changes nothing a test could notice, and why."""

    file: str
    change: tuple[str, str]
    why: str


@dataclass(frozen=True)
class Room:
    """Code that belongs together, its own tests, and what share of its mutants they must notice, if it is measured."""

    name: str
    code: tuple[str, ...]
    tests: tuple[str, ...]
    floor: float | None
    gaps: tuple[Gap, ...]
    equivalent: tuple[Equivalent, ...]

    def files(self) -> list[Path]:
        """The modules of its code."""
        return _modules(self.code)

    def all_files(self) -> list[Path]:
        """Those, and its tests."""
        return self.files() + _modules(self.tests)


def _modules(places: tuple[str, ...]) -> list[Path]:
    found = [ROOT / place for place in places]
    return sorted(file for place in found for file in (place.rglob("*.py") if place.is_dir() else [place]))


def all_rooms() -> dict[str, Room]:
    described = tomllib.loads((ROOT / "scripts" / "rooms.toml").read_text(encoding="utf-8"))
    return {
        name: Room(
            name,
            tuple(room["code"]),
            tuple(room["tests"]),
            room.get("floor"),
            tuple(Gap(gap["file"], tuple(gap["lines"]), gap["why"]) for gap in room.get("gaps", ())),
            tuple(
                Equivalent(one["file"], (one["line"], one["becomes"]), one["why"]) for one in room.get("equivalent", ())
            ),
        )
        for name, room in described.items()
    }


def environment(root: Path, **more: str) -> dict[str, str]:
    """That of a run of tests on the tree at ``root``, with the same examples every time."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("COVERAGE", "PYTHON"))}
    return {**kept, "CI": "true", "PYTHONPATH": str(root), **more}


def covered(room: Room, root: Path = ROOT) -> coverage.Coverage:
    """Run the room's own tests; which branches they take, and for every line the tests that reach it.

    Raises
    ------
    SystemExit
        If a test fails.
    """
    WORK.mkdir(exist_ok=True)
    measured = WORK / f"{room.name}.coverage"
    measured.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--cov-branch"]
    # Folders, and not packages: what is imported through a link is known by its true place.
    command += [f"--cov={place if place.is_dir() else place.parent}" for place in map(root.joinpath, room.code)]
    command += ["--cov-context=test", "--cov-report=", *room.tests]
    done = subprocess.run(
        command, cwd=root, env=environment(root, COVERAGE_FILE=str(measured)), capture_output=True, text=True
    )
    if done.returncode:
        sys.exit(f"rooms: the tests of {room.name} fail before anything is changed:\n{done.stdout[-4000:]}")
    result = coverage.Coverage(data_file=str(measured))
    result.load()
    return result


@dataclass(frozen=True)
class Reached:
    """How much of a room its tests take, what they do not, and what of that nobody explains."""

    taken: int
    total: int
    missed: list[str]
    unexplained: list[str]
    # Reasons for what is taken after all.
    outdated: list[str]


def reached(room: Room) -> Reached:
    """Run the room's tests and compare what they do not take with the reasons for it."""
    result = covered(room)
    taken = total = 0
    missed, unexplained = [], []
    reasons = {(gap.file, line) for gap in room.gaps for line in gap.lines}
    found: Counter[tuple[str, str]] = Counter()
    there: Counter[tuple[str, str]] = Counter()
    for file in room.files():
        analysis = result._analyze(str(file))
        numbers = analysis.numbers
        taken += numbers.n_executed + numbers.n_executed_branches
        total += numbers.n_statements + numbers.n_branches
        name = file.relative_to(ROOT).as_posix()
        lines = [line.strip() for line in file.read_text(encoding="utf-8").splitlines()]
        there.update((name, line) for line in lines)
        ways = {line: str(line) for line in sorted(analysis.missing)}
        for start, ends in sorted(analysis.missing_branch_arcs().items()):
            for end in ends:
                if start not in analysis.missing and end not in analysis.missing:
                    ways[start] = f"{start}->{'exit' if end < 0 else end}"
        for line, way in sorted(ways.items()):
            place = name, lines[line - 1]
            found[place] += 1
            missed.append(f"{name}:{way}  {place[1]}")
            if place not in reasons:
                unexplained.append(missed[-1])
    # A reason is for every line that reads so: another one that is alike must not hide behind it.
    outdated = sorted(f"{name}  {text}" for name, text in reasons if found[name, text] != max(1, there[name, text]))
    return Reached(taken, total, missed, unexplained, outdated)


def main() -> None:
    rooms = all_rooms()
    wrong = False
    for name in sys.argv[1:] or rooms:
        found = reached(rooms[name])
        print(
            f"{name}: {found.taken} of {found.total} lines and branches taken, {found.taken / found.total:.1%}; "
            f"{len(found.missed) - len(found.unexplained)} lines explained",
            flush=True,
        )
        for line in found.unexplained:
            print(f"  not taken, without a reason in scripts/rooms.toml: {line}", flush=True)
        for line in found.outdated:
            print(f"  a reason in scripts/rooms.toml for what is taken: {line}", flush=True)
        wrong = wrong or bool(found.unexplained or found.outdated)
    if wrong:
        sys.exit("rooms: write a test, delete what is dead, or give the reason in scripts/rooms.toml")


if __name__ == "__main__":
    main()
