"""Mutation testing: one line of a room is changed, and a test of the room must notice.

The mutants are those of cosmic-ray. Of each room a sample is taken by a digest of the changed line, so that the same
lines are looked at as long as they stay as they are. A mutant is tried in a copy of the project, by the tests of its
room that reach its line. What was tried is kept in .mutants/ and not tried again while neither code nor tests of the
room change. The scores are written to benchmarks/results; one below the floor in scripts/rooms.toml is a failure, and
so is a floor below the score. What nothing could notice is left out where scripts/rooms.toml says why. Scores and
floors are of the usual sample: another one only tells what it finds.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import hashlib
import json
import resource
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import coverage
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names
from rooms import ROOT, WORK, Room, all_rooms, covered, environment

RESULTS = ROOT / "benchmarks" / "results" / "mutants.json"
# A mutant that never ends is stopped after this much processor time, or, if it waits, after this much time.
PROCESSOR_SECONDS = 120
SECONDS = 900
# Mutants of each room, and the last digit of a floor.
SAMPLE, _STEP = 14, 0.01


@dataclass(frozen=True)
class Mutant:
    """One change of one place: ``occurrence`` counts the places that an operator could change in a file."""

    file: str
    operator: str
    occurrence: int
    line: int
    text: str
    key: str

    def of(self, source: str) -> str:
        return str(mutate_code(source, get_operator(self.operator)(), self.occurrence))


def mutants(file: Path) -> Iterator[Mutant]:
    """One mutant of each place in a file and each kind of change: which of the kind is decided by the digest."""
    source = file.read_text(encoding="utf-8")
    lines = source.splitlines()
    tree = list(ast_nodes(get_ast(source)))
    name = str(file.relative_to(ROOT))
    best: dict[tuple[str, object], Mutant] = {}
    seen: Counter[tuple[str, str]] = Counter()
    for operator in sorted(operator_names()):
        kind = get_operator(operator)
        if kind.arguments() or "NoOp" in operator:
            continue
        made = kind()
        for occurrence, place in enumerate(place for node in tree for place in made.mutation_positions(node)):
            (line, _), _ = place
            text = lines[line - 1].strip()
            seen[operator, text] += 1
            key = hashlib.sha256(f"{name}\n{operator}\n{text}\n{seen[operator, text]}".encode()).hexdigest()
            family = operator.partition("_")[0]
            mutant = Mutant(name, operator, occurrence, line, text, key)
            best[family, place] = min(best.get((family, place), mutant), mutant, key=lambda one: one.key)
    yield from best.values()


def meaning(source: str) -> str:
    """The syntax tree without what decides nothing: annotations, imports for type checkers, and words of errors."""

    class Running(ast.NodeTransformer):
        def visit_If(self, node: ast.If) -> ast.AST | None:
            return None if "TYPE_CHECKING" in ast.dump(node.test) else self.generic_visit(node)

        def visit_Raise(self, node: ast.Raise) -> ast.AST:
            if isinstance(node.exc, ast.Call):
                node.exc.args, node.exc.keywords = [], []
            return node

        def visit_arg(self, node: ast.arg) -> ast.AST:
            node.annotation = None
            return node

        def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
            node.returns = None
            return self.generic_visit(node)

        def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
            # Annotations of pydantic's models do run; those with a call in them are its own.
            if not any(isinstance(part, ast.Call) for part in ast.walk(node.annotation)):
                node.annotation = ast.Constant(None)
            return self.generic_visit(node)

    return ast.dump(Running().visit(ast.parse(source)))


def counts(mutant: Mutant) -> bool:
    """Whether a mutant is a program, and another one."""
    source = (ROOT / mutant.file).read_text(encoding="utf-8")
    try:
        return meaning(mutant.of(source)) != meaning(source)
    except SyntaxError:
        return False


def sample(room: Room, size: int) -> list[Mutant]:
    """The mutants of a room with the smallest digests."""
    chosen: list[Mutant] = []
    for mutant in sorted((one for file in room.files() for one in mutants(file)), key=lambda one: one.key):
        if len(chosen) == size:
            break
        if counts(mutant):
            chosen.append(mutant)
    return chosen


def copy_project(folder: Path) -> None:
    """Make a copy of what git knows, with byte code that is checked against the source and not against its time."""
    if folder.exists():
        shutil.rmtree(folder)
    listed = subprocess.check_output(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, text=True
    )
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_symlink() or (ROOT / name).exists():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name, follow_symlinks=False)
    compiled = [sys.executable, "-m", "compileall", "-q", "--invalidation-mode", "checked-hash", str(folder)]
    subprocess.run(compiled, check=True)


def tests_of(mutant: Mutant, reached: coverage.Coverage) -> list[str]:
    """The tests that run the changed line; those that run anything of its file, if it runs when it is imported."""
    contexts = reached.get_data().contexts_by_lineno(str(ROOT / mutant.file))
    at_line = {context.partition("|")[0] for context in contexts.get(mutant.line, []) if context}
    if not at_line or "" in contexts.get(mutant.line, []):
        at_line = {context.partition("|")[0] for found in contexts.values() for context in found if context}
    return sorted(at_line)


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (PROCESSOR_SECONDS, PROCESSOR_SECONDS))


def noticed(mutant: Mutant, tests: list[str], folder: Path) -> bool:
    """Whether one of the tests fails, or does not end, when the line is changed."""
    if not tests:
        return False
    file = folder / mutant.file
    source = file.read_text(encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
    try:
        file.write_text(mutant.of(source), encoding="utf-8")
        done = subprocess.run(
            command, cwd=folder, env=environment(folder), capture_output=True, timeout=SECONDS, preexec_fn=_limit
        )
        return done.returncode != 0
    except subprocess.TimeoutExpired:
        return True
    finally:
        file.write_text(source, encoding="utf-8")


def digest(room: Room) -> str:
    """Of the code and the tests of a room: what decides the fate of its mutants."""
    found = hashlib.sha256()
    for file in room.all_files():
        found.update(file.read_bytes())
    return found.hexdigest()


def difference(mutant: Mutant) -> list[str]:
    source = (ROOT / mutant.file).read_text(encoding="utf-8")
    changed = difflib.unified_diff(source.splitlines(), mutant.of(source).splitlines(), n=0, lineterm="")
    return [line for line in changed if line[:1] in "+-" and line[:3] not in ("+++", "---")]


def equivalent(mutant: Mutant, room: Room) -> bool:
    """Whether scripts/rooms.toml says why the change can be noticed by no test."""
    before, after = ([line[1:].strip() for line in difference(mutant) if line[0] == sign] for sign in "-+")
    return any(
        one.file == mutant.file and before == [one.change[0]] and after == [one.change[1]] for one in room.equivalent
    )


def try_room(room: Room, size: int, workers: int) -> dict[str, bool]:
    """Try the sample of a room, but what was tried before; whether each mutant was noticed, by its key."""
    chosen = [mutant for mutant in sample(room, size) if not equivalent(mutant, room)]
    now = digest(room)
    kept = WORK / f"{room.name}.json"
    before = json.loads(kept.read_text()) if kept.exists() else {}
    known: dict[str, bool] = before["noticed"] if before.get("digest") == now else {}
    left = [mutant for mutant in chosen if mutant.key not in known]
    if left:
        reached = covered(room)
        planned = [(mutant, tests_of(mutant, reached)) for mutant in left]
        folders: SimpleQueue[Path] = SimpleQueue()
        for number in range(workers):
            copy_project(WORK / f"copy-{number}")
            folders.put(WORK / f"copy-{number}")

        def attempt(mutant: Mutant, tests: list[str]) -> None:
            folder = folders.get()
            try:
                found = noticed(mutant, tests, folder)
            finally:
                folders.put(folder)
            known[mutant.key] = found
            kept.write_text(json.dumps({"digest": now, "noticed": known}))
            if not found:
                print(f"  not noticed: {mutant.file}:{mutant.line}", *difference(mutant), sep="\n    ", flush=True)

        with ThreadPoolExecutor(workers) as pool:
            list(pool.map(attempt, *zip(*planned, strict=True)))
    return {mutant.key: known[mutant.key] for mutant in chosen}


def page(results: dict[str, dict[str, Any]], rooms: dict[str, Room]) -> str:
    """The scores as a page, with every mutant that no test notices."""
    lines = ["# Mutants", "", "Made by `make mutants`; what this means is in CONTRIBUTING.md.", ""]
    lines += ["| room | tried | noticed | share | floor | equivalent |", "| --- | ---: | ---: | ---: | ---: | ---: |"]
    for name, result in results.items():
        tried, found = result["tried"], result["noticed"]
        floor = rooms[name].floor
        share, least = f"{found / tried:.0%}", "" if floor is None else f"{floor:.0%}"
        lines.append(f"| {name} | {tried} | {found} | {share} | {least} | {result['equivalent']} |")
    for name, result in results.items():
        lines += ["", f"## Not noticed in {name}", ""] if result["not_noticed"] else []
        for survivor in result["not_noticed"]:
            lines += [f"`{survivor['place']}`", "", "```diff", *survivor["change"], "```", ""]
    return "\n".join(lines).rstrip() + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rooms", nargs="*", help="names in scripts/rooms.toml; all of them if none is given")
    parser.add_argument("--sample", type=int, default=SAMPLE, help="mutants of each room")
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    rooms = all_rooms()
    known = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    results = {name: known[name] for name in rooms if name in known}
    fallen, risen = [], []
    for name in arguments.rooms or (name for name, room in rooms.items() if room.floor is not None):
        room = rooms[name]
        tried = try_room(room, arguments.sample, arguments.workers)
        found = sum(tried.values())
        survivors = [
            {"place": f"{mutant.file}:{mutant.line}", "change": difference(mutant)}
            for mutant in sample(room, arguments.sample)
            if not tried.get(mutant.key, True)
        ]
        results[name] = {
            "tried": len(tried),
            "noticed": found,
            "equivalent": arguments.sample - len(tried),
            "not_noticed": survivors,
        }
        print(f"{name}: {found} of {len(tried)} mutants noticed, {found / len(tried):.0%}", flush=True)
        if arguments.sample != SAMPLE:
            continue
        RESULTS.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        RESULTS.with_suffix(".md").write_text(page(results, rooms), encoding="utf-8")
        if room.floor is None:
            continue
        if found < room.floor * len(tried):
            fallen.append(f"{name} (floor {room.floor:.0%})")
        elif found >= (room.floor + _STEP) * len(tried):
            risen.append(f"{name} ({found / len(tried):.2f})")
    if fallen:
        sys.exit(f"mutants: fewer were noticed than before in {', '.join(fallen)}")
    if risen:
        sys.exit(f"mutants: more were noticed than before; raise the floor in scripts/rooms.toml of {', '.join(risen)}")


if __name__ == "__main__":
    main()
