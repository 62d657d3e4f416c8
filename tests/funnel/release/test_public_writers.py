"""One door: what writes public files is named here, takes public figures, and imports nothing that is exact."""

from __future__ import annotations

import ast
import dataclasses
import functools
import importlib
import inspect
import os
import re
import sys
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from funnel.findings import Findings
from funnel.frequencies.public_counts import Frequencies
from funnel.joint import Joint
from funnel.release.layout import ReleaseFolder
from funnel.release.public.findings import PublicFindings, PublicRelease
from funnel.release.public.public_distributions import PublicDistributions
from funnel.release.record import Record
from funnel.release.rows import Rows
from funnel.release.snapshot import Snapshot
from funnel.release.verdict import Verdict
from funnel.report.content import PublicContent, ReportContent
from tests.projects import ROOT, SPEC, make_project
from tests.releases import make_release

SOURCES = {
    "funnel": ROOT / "funnel",
    "funnel.pipeline.flows": ROOT / "flows",
    "funnel.pipeline.tasks": ROOT / "tasks",
    "funnel.pipeline.expectations": ROOT / "expectations",
    "funnel.pipeline.ledger": ROOT / "ledger",
}
# Every file of a version but its internal folder and what is inside that.
HANDOUTS = {"readme", "citation", "catalogue", "channel"}
_FILES = {
    "data",
    "csv",
    "drawn",
    "drawn_csv",
    "protocol",
    "frequencies",
    "package",
    "report",
    "annex",
    "numbers",
    "signature",
    "estimator",
    "classes",
}
PUBLIC = {*_FILES, *HANDOUTS} & set(vars(ReleaseFolder))
# Which module writes which public files. The rows are drawn from what is exact, and nothing else is.
WRITERS = {
    "funnel.release.rows": {"data"},
    "funnel.release.publication": {"csv", "protocol", "classes", "frequencies", "package", "estimator", *HANDOUTS},
    # Numbers within the intervals of what is published already, by words of their own.
    "funnel.release.handouts.number_table": {"drawn", "drawn_csv"},
    "funnel.release.signature": {"signature"},
    "funnel.report.writing": {"numbers", "report", "annex"},
    # A copy of what is published already, to be audited here.
    "funnel.release.fetch": {"package"},
}
# What else makes public documents, or puts them where others read them.
MAKERS = (
    "funnel.release.publication",
    "funnel.release.classes_document",
    "funnel.release.protocol_document",
    "funnel.release.datapackage",
    "funnel.release.handouts",
    "funnel.release.handouts.catalogue",
    "funnel.release.handouts.channel_tables",
    "funnel.release.handouts.citation",
    "funnel.release.handouts.number_table",
    "funnel.release.handouts.channel_tables",
    "funnel.release.handouts.readme",
    "funnel.release.privacy_block",
    "funnel.release.remote",
    "funnel.pipeline.flows.artifacts",
)
# The one type about counts that may be public, whatever it holds.
OPEN = {Frequencies}
EXACT = {Joint, Findings, Snapshot, ReportContent, Rows, Record, Verdict}
EXACT_MODULES = {
    "funnel.audit",
    "funnel.findings",
    "funnel.joint",
    "funnel.measures",
    "funnel.pipeline.flows.answer",
    "funnel.pipeline.flows.pipeline",
    "funnel.release.documents",
    "funnel.release.findings",
    "funnel.release.protected",
    "funnel.release.rows",
    "funnel.release.snapshot",
    "funnel.release.verdict",
    "funnel.source.snapshot",
}
# What may be done with the path of a public file without writing it.
READING = {
    *("is_file", "stat", "name", "as_posix", "relative_to", "read_bytes", "read_text"),
    *("file_digest", "file_facts", "open_paged", "read", "str", "of", "checked", "_read_json"),
    *(
        "read_document",
        "read_metadata",
        "parse_json",
        "check_table",
        "csv_difference",
        "is_symlink",
        "exists",
        "parent",
    ),
    # Who estimates only reads.
    *("output_counts_by", "output_places", "estimate_weighted", "estimate_numbers", "read_table", "counts_off"),
    # What judges reads files by other means.
    *("estimate", "count_published", "read_json", "json_of", "Evidence", "reread"),
    *("opened", "class_claims", "Placed", "source_order"),
}
WRITING_MODES = set("wax+")
# What code calls the folder of a release, or makes one with.
FOLDERS = {"folder", "incoming", "local", "earlier", "release", "ReleaseFolder", "find_release"}


@functools.cache
def modules() -> dict[str, Path]:
    """The file of every module of the package, by the name that it is imported by."""
    return dict(_modules())


def parsed(name: str) -> ast.Module:
    """One of them; all of them at once would be a million objects for as long as the tests run."""
    return ast.parse(modules()[name].read_text(encoding="utf-8"))


def _modules() -> Iterator[tuple[str, Path]]:
    for package, folder in SOURCES.items():
        for path in sorted(folder.rglob("*.py")):
            inside = path.relative_to(folder)
            # The links into the top folders are walked there.
            if package == "funnel" and inside.parts[:2] in [
                ("pipeline", part) for part in ("flows", "tasks", "ledger")
            ]:
                continue
            if package == "funnel" and inside.parts[:2] == ("pipeline", "expectations"):
                continue
            parts = [package, *inside.with_suffix("").parts]
            yield ".".join(parts).removesuffix(".__init__"), path


def written(tree: ast.Module) -> set[str]:
    """Public files whose path in a release folder is used for anything but reading."""
    parents = {child: parent for parent in ast.walk(tree) for child in ast.iter_child_nodes(parent)}
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in PUBLIC and _is_folder(node.value):
            use = parents[node]
            if isinstance(use, ast.IfExp):
                # A file that is there or not.
                use = parents[use]
            if isinstance(use, ast.Attribute):
                doing = use.attr
            elif isinstance(use, ast.Call):
                called = use.func
                doing = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
            else:
                doing = "listing" if _is_listing(use, parents) else "something else"
            if doing not in READING | {"listing"}:
                found.add(node.attr)
    return found


def _is_folder(value: ast.expr) -> bool:
    """Whether an expression stands for the folder of a release, by its name."""
    if isinstance(value, ast.Call):
        value = value.func
    name = value.attr if isinstance(value, ast.Attribute) else getattr(value, "id", "")
    return name in FOLDERS


def _is_listing(use: ast.AST, parents: dict[ast.AST, ast.AST]) -> bool:
    """Whether a path is only compared, or one of a list that is gone through: what is done with it is seen there."""
    if isinstance(use, ast.FormattedValue) or (isinstance(use, ast.keyword) and use.arg == "released"):
        # In a sentence, or as the rows that are judged.
        return True
    return isinstance(use, ast.Compare) or (
        isinstance(use, (ast.Tuple, ast.List)) and isinstance(parents[use], (ast.comprehension, ast.For))
    )


def test_public_files_are_written_by_the_named_modules_and_by_no_other() -> None:
    # Most modules have no folder of a release, which is told faster by their text.
    folders = re.compile(rf"\b({'|'.join(FOLDERS)})(\(|\s*\.\s*({'|'.join(PUBLIC)})\b)")
    some = [name for name, path in modules().items() if folders.search(path.read_text(encoding="utf-8"))]
    assert {name: files for name in some if (files := written(parsed(name)))} == WRITERS


def test_every_file_of_a_version_that_is_not_internal_is_watched() -> None:
    """A file that is added to the layout is public unless it is in the internal folder."""
    folder = ReleaseFolder(Path("version"), Path("kept"))
    names = (name for name in vars(ReleaseFolder) if not name.startswith("_"))
    paths = {name: path for name in names if isinstance(path := getattr(folder, name), Path)}
    assert {name for name, path in paths.items() if folder.internal not in (path, *path.parents)} == PUBLIC


def test_writing_is_noticed_however_it_is_written() -> None:
    for line in (
        "folder.report.write_text(page)",
        "write_whole(folder.protocol, content)",
        "with folder.csv.open('w') as file: pass",
        "path = folder.package",
        "series.folder(version).report.unlink()",
        "ReleaseFolder(path).data.rename(other)",
        "write_whole(folder.drawn_csv if csv else None, content)",
    ):
        assert len(written(ast.parse(line))) == 1, line
    for line in (
        "file_digest(folder.data)",
        "folder.report.is_file()",
        "optimised.protocol.weights",
        "folder.internal",
    ):
        assert written(ast.parse(line)) == set()


def _answers(module: str) -> bool:
    """Whether a module decides what is written, and does not only write what it is given."""
    return module.startswith("funnel") and not module.startswith(("funnel.sampling", "funnel.release.files"))


_opened: list[tuple[str, str]] = []
_watching = False


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    if not _watching or event != "open" or not isinstance(arguments[0], (str, Path)):
        return
    mode, flags = arguments[1:3]
    if not (set(mode) & WRITING_MODES if isinstance(mode, str) else flags & (os.O_WRONLY | os.O_RDWR)):
        return
    place = Path(arguments[0])
    if ".incoming-" not in str(place) or "internal" in place.parts:
        return
    frame = sys._getframe(1)
    while frame is not None and not _answers(frame.f_globals.get("__name__", "")):
        frame = frame.f_back  # type: ignore[assignment]
    # Files that are written whole have a name of their own until they are.
    name = re.sub(r"^\.(.+)\.[0-9a-f]{8}$", r"\1", place.name)
    _opened.append((name, frame.f_globals["__name__"] if frame is not None else "nobody"))


def test_at_run_time_too(tmp_path: Path) -> None:
    """A release is watched: who opens a file of the coming version for writing, by whatever name it knows the path."""
    global _watching
    spec = make_project(tmp_path, SPEC + "\n[output]\ncsv = true\n")
    # A hook of the interpreter stays, so that it looks away before and after.
    sys.addaudithook(_watch)
    _watching = True
    try:
        make_release(spec)
    finally:
        _watching = False
    files = {str(getattr(ReleaseFolder(Path()), name).name): name for name in PUBLIC}
    writers = {(name, module) for name, module in _opened if name in files}
    assert {name for name, _ in writers} >= {"protocol.json", "datapackage.json", "report.html"}
    assert {(name, module) for name, module in writers if files[name] not in WRITERS.get(module, ())} == set()


@pytest.mark.parametrize("name", MAKERS)
def test_makers_of_public_documents_import_nothing_exact(name: str) -> None:
    tree = parsed(name)
    imported = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            imported |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
    exact = {one for one in imported for module in EXACT_MODULES if one == module or one.startswith(f"{module}.")}
    # Arrays are types of numbers, not figures.
    assert exact - {"funnel.joint", "funnel.joint.FloatArray"} == set()


@pytest.mark.parametrize("name", MAKERS)
def test_makers_of_public_documents_take_nothing_exact(name: str) -> None:
    module = importlib.import_module(name)
    functions = [value for value in vars(module).values() if inspect.isfunction(value) and value.__module__ == name]
    for one in [value for value in vars(module).values() if inspect.isclass(value) and value.__module__ == name]:
        functions += [value for value in vars(one).values() if inspect.isfunction(value)]
    assert functions
    for function in functions:
        for parameter, kind in _hints(function).items():
            assert not reached(kind) & EXACT, (name, function.__name__, parameter)


@pytest.mark.parametrize("public", [PublicDistributions, PublicFindings, PublicRelease, PublicContent])
def test_public_figures_hold_nothing_exact_and_cannot_be_changed(public: type) -> None:
    assert not reached(public) & EXACT
    assert public.__dataclass_params__.frozen  # type: ignore[attr-defined]


def test_what_is_exact_is_found_inside_of_what_holds_it() -> None:
    from funnel.pipeline.flows.pipeline import Done

    assert reached(Done) >= {Snapshot, Frequencies}
    assert reached(ReportContent) >= {Joint, Findings}
    assert reached(dict[str, tuple[Rows | None, ...]]) & EXACT == {Rows}


def _hints(something: Any) -> dict[str, Any]:
    try:
        return typing.get_type_hints(something)
    except (NameError, TypeError):
        return dict(getattr(something, "__annotations__", {}))


def reached(kind: Any, seen: frozenset[Any] = frozenset()) -> set[Any]:
    """The types of this package that a value of a type holds, itself included."""
    found: set[Any] = set()
    for part in typing.get_args(kind):
        found |= reached(part, seen)
    if inspect.isclass(kind) and kind.__module__.startswith("funnel") and kind not in seen:
        found.add(kind)
        if dataclasses.is_dataclass(kind) and kind not in OPEN:
            for part in _hints(kind).values():
                found |= reached(part, seen | {kind})
    return found
