"""Kills at every point where something is changed on disk, and processes of their own that are really killed."""

from __future__ import annotations

import multiprocessing
import os
import pathlib
import shutil
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing.context import ForkProcess
from typing import Any

import pytest

RENAMES_AND_REMOVALS = (
    (pathlib.Path, "rename"),
    (pathlib.Path, "replace"),
    (pathlib.Path, "unlink"),
    (shutil, "rmtree"),
)
_CHANGES = (*RENAMES_AND_REMOVALS, (pathlib.Path, "mkdir"), (os, "fsync"), (shutil, "move"))


class Killed(BaseException):
    """The process is gone."""


@contextmanager
def another_process(function: Callable[..., None], *arguments: Any) -> Iterator[ForkProcess]:
    """A copy of this process that runs a function, and is gone at the end: it need not import anything again."""
    process = multiprocessing.get_context("fork").Process(target=function, args=arguments)
    with warnings.catch_warnings():
        # Other threads of this process are not in the copy; the function asks nothing of them.
        warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
        process.start()
    try:
        yield process
    finally:
        process.kill()
        process.join()


def die_after(
    patch: pytest.MonkeyPatch, changes: int, points: Iterable[tuple[object, str]] = _CHANGES
) -> Callable[[], bool]:
    """Let so many of these calls happen, and then no more, by raising `Killed`; gives whether that came.

    As with SIGKILL, what would run while the exception passes changes nothing either.
    """
    left = changes
    came = False

    def counted(real: Callable[..., Any]) -> Callable[..., Any]:
        def change(*arguments: Any, **options: Any) -> Any:
            nonlocal left, came
            if left == 0:
                came = True
                raise Killed
            left -= 1
            return real(*arguments, **options)

        return change

    for owner, name in points:
        patch.setattr(owner, name, counted(getattr(owner, name)))
    return lambda: came


@contextmanager
def killed_after(changes: int) -> Iterator[Callable[[], bool]]:
    """Let so many changes on disk happen in this block, and end it with the next; gives whether the kill came."""
    with pytest.MonkeyPatch.context() as patch, suppress(Killed):
        yield die_after(patch, changes)
