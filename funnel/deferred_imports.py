"""Deferred imports: a library without the modules that it imports for what is never asked of it."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any

VALIDATOR = ("great_expectations", "altair", "scipy.stats")
"""The library that validates releases, and what it needs for charts and for tests of distributions alone."""


class _Deferred(ModuleType):
    """Stands for a module until something of it is asked for."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        self.step_aside()
        return getattr(importlib.import_module(self.__name__), name)

    def step_aside(self) -> None:
        """Leave the place of the module to the module."""
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]


def import_without(name: str, *deferred: str) -> None:
    """Import a module, and those that it would import with it only once something of them is used.

    Whoever else imports one of these afterwards gets the module itself.

    Parameters
    ----------
    name : str
    deferred : str
        Modules that it imports.
    """
    standing_in = [_Deferred(one) for one in deferred if one not in sys.modules]
    sys.modules.update({one.__name__: one for one in standing_in})
    try:
        importlib.import_module(name)
    finally:
        for one in standing_in:
            one.step_aside()
