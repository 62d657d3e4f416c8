"""The rooms that decide what is published: which tests run which of their lines, and the branches that no test takes.

``python scripts/rooms.py`` prints the gaps of every room, ``python scripts/rooms.py sampling`` those of one.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

import coverage

ROOT = Path(__file__).parents[1]
WORK = ROOT / ".mutants"


@dataclass(frozen=True)
class Room:
    """Code that belongs together, the tests that are its own, and what share of its mutants they must notice."""

    name: str
    code: tuple[str, ...]
    tests: tuple[str, ...]
    floor: float

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
        name: Room(name, tuple(room["code"]), tuple(room["tests"]), room["floor"]) for name, room in described.items()
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


def gaps(room: Room) -> tuple[int, int]:
    """Print the lines and branches of a room that none of its own tests takes; how many are taken, and of how many."""
    result = covered(room)
    taken = total = 0
    for file in room.files():
        analysis = result._analyze(str(file))
        numbers = analysis.numbers
        taken += numbers.n_executed + numbers.n_executed_branches
        total += numbers.n_statements + numbers.n_branches
        missing = [str(line) for line in sorted(analysis.missing)]
        branches = [
            f"{start}->{'exit' if end < 0 else end}"
            for start, ends in sorted(analysis.missing_branch_arcs().items())
            for end in ends
            if start not in analysis.missing and end not in analysis.missing
        ]
        if missing or branches:
            print(f"  {file.relative_to(ROOT)}: {', '.join([*missing, *branches])}")
    return taken, total


def main() -> None:
    rooms = all_rooms()
    for name in sys.argv[1:] or rooms:
        taken, total = gaps(rooms[name])
        print(f"{name}: {taken} of {total} lines and branches taken, {taken / total:.1%}", flush=True)


if __name__ == "__main__":
    main()
