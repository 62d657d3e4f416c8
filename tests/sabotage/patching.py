"""One line of the pipeline changed in its source, compiled, and put in the place of what is loaded; then put back."""

from __future__ import annotations

import ast
import importlib
import inspect
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any


class DoesNotApply(Exception):
    """A change that no longer fits the source it was written for."""


@dataclass(frozen=True)
class Patch:
    """One line of one module, changed.

    Attributes
    ----------
    module : str
    old, new : str
        A piece of one line, which is in the source exactly once; and what stands in its place.
    """

    module: str
    old: str
    new: str


@contextmanager
def patched(*patches: Patch) -> Iterator[None]:
    """The modules with their lines changed, for whoever has imported the functions already too.

    Raises
    ------
    DoesNotApply
        If a line is not in its module exactly once, or changing it changes neither a function nor a constant.
    """
    with ExitStack() as undo:
        for patch in patches:
            undo.enter_context(_patched(patch))
        yield


# Kept from patch to patch unless their own module is changed: compiled templates, which call functions by name as they
# are then; the digest of the files of the project, which no patch changes, and versions of packages; the database of
# this process; what the validator takes tables for.
_KEPT = {
    ("funnel.report.page", "_environment"),
    ("funnel.release.handouts.readme", "_template"),
    ("funnel.release.provenance", "_package_digest"),
    ("funnel.release.provenance", "installed"),
    ("funnel.recount.rows", "_database"),
    ("funnel.pipeline.expectations.custom", "whole_table"),
}
_CACHED = type(lru_cache(int))


@contextmanager
def _patched(patch: Patch) -> Iterator[None]:
    module = importlib.import_module(patch.module)
    path = Path(str(module.__file__)).resolve()
    source = path.read_text(encoding="utf-8")
    if source.count(patch.old) != 1 or "\n" in patch.old + patch.new:
        raise DoesNotApply(f"{patch.old!r} is {source.count(patch.old)} times in {patch.module}, not once in one line")
    changed = source.replace(patch.old, patch.new)
    with ExitStack() as undo:
        before, after = _functions(source, path), _functions(changed, path)
        names = [name for name in before if not _same(before[name], after[name])]
        for name in names:
            undo.enter_context(_other_code(_function(module, name), after[name]))
        constants = _constants(source, changed)
        for name, value in constants.items():
            fresh = eval(compile(ast.Expression(value), str(path), "eval"), vars(module))
            undo.enter_context(_other_constant(name, getattr(module, name), fresh))
        if not names and not constants:
            raise DoesNotApply(f"{patch.new!r} changes no function and no constant of {patch.module}")
        _forget(patch.module)
        undo.callback(_forget, patch.module)
        yield


def _forget(module: str) -> None:
    """Forget what functions of the project keep from calls before."""
    for name, what, value in _remembering(len(sys.modules)):
        if (name, what) not in _KEPT or module == name:
            value.cache_clear()


@lru_cache(maxsize=1)
def _remembering(loaded: int) -> list[tuple[str, str, Any]]:
    """Module and name of each function that keeps results, looked for again when more modules are loaded."""
    return [
        (value.__module__, value.__name__, value)
        for name, one in list(sys.modules.items())
        if name.partition(".")[0] == "funnel"
        for value in vars(one).values()
        if isinstance(value, _CACHED)
    ]


@lru_cache(maxsize=200)
def _functions(source: str, path: Path) -> dict[str, CodeType]:
    """Code of every function and method by qualified name; what is inside of functions belongs to them."""
    found: dict[str, CodeType] = {}

    def collect(code: CodeType) -> None:
        for constant in code.co_consts:
            if not isinstance(constant, CodeType):
                continue
            if constant.co_flags & inspect.CO_OPTIMIZED:
                found[constant.co_qualname] = constant
            else:
                collect(constant)

    collect(compile(source, str(path), "exec", dont_inherit=True))
    return found


def _same(one: CodeType, other: CodeType) -> bool:
    """Whether two codes do the same; where they stand in their line is no difference."""
    inner = zip(one.co_consts, other.co_consts, strict=False)
    return (
        one.co_code == other.co_code
        and one.co_names == other.co_names
        and one.co_varnames == other.co_varnames
        and len(one.co_consts) == len(other.co_consts)
        and all(
            _same(a, b) if isinstance(a, CodeType) and isinstance(b, CodeType) else (type(a), a) == (type(b), b)
            for a, b in inner
        )
    )


def _function(module: object, name: str) -> FunctionType:
    found: Any = module
    for part in name.split("."):
        found = vars(found)[part]
    for wrapper in ("__func__", "fget", "func"):
        found = getattr(found, wrapper, found)
    found = inspect.unwrap(found)
    if not isinstance(found, FunctionType):
        raise DoesNotApply(f"{name} is no function")
    return found


@contextmanager
def _other_code(function: FunctionType, code: CodeType) -> Iterator[None]:
    before = function.__code__
    function.__code__ = code
    try:
        yield
    finally:
        function.__code__ = before


def _constants(source: str, changed: str) -> dict[str, ast.expr]:
    """New values of names of the module that are assigned otherwise."""
    before, after = ({_name(node): node for node in ast.parse(text).body} for text in (source, changed))
    return {
        name: node.value
        for name, node in after.items()
        if name is not None
        and isinstance(node, ast.Assign | ast.AnnAssign)
        and node.value is not None
        and ast.dump(node) != ast.dump(before[name])
    }


def _name(node: ast.stmt) -> str | None:
    target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
    return target.id if isinstance(target, ast.Name) else None


@contextmanager
def _other_constant(name: str, before: object, value: object) -> Iterator[None]:
    """The value for every module that has the constant under this name."""
    users = [module for module in list(sys.modules.values()) if vars(module).get(name, _name) is before]
    for module in users:
        setattr(module, name, value)
    try:
        yield
    finally:
        for module in users:
            setattr(module, name, before)
