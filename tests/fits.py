"""Fits of the releases that tests make: each is made once in a process, since most tests are about later steps.

Tests make hundreds of releases of a few specs, and half of what a small release costs is fitting every mechanism and
putting the best protocol on a grid. The key of a fit holds all that it is made from and every function that the step
calls by name, so that a test that replaces one of these gets a fit of its own.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

from funnel.joint import Joint
from funnel.measures.utilities import Utility
from funnel.release.cache import Cache
from funnel.release.documents import joint_document
from funnel.spec import ReleaseSpec
from funnel.tradeoff import FittedRows

_OPTIMISE = importlib.import_module("funnel.pipeline.tasks.optimise")
_fit = _OPTIMISE._fit
_NAMES = {name for name in vars(_OPTIMISE) if not name.startswith("__")} - {"_fit"}
# What was fitted, and the rows of the plan that the workspace of the release keeps, each with the key of its file.
_made: dict[tuple[Any, ...], tuple[dict[str, bytes], list[tuple[str, Mapping[str, bytes]]]]] = {}


@contextmanager
def made_once() -> Iterator[None]:
    """Fits of releases in this process are made once."""
    with mock.patch.object(_OPTIMISE, "_fit", _fit_once):
        yield


@contextmanager
def made_anew() -> Iterator[None]:
    """In this block nothing is taken from fits before it, and none of its own is left behind."""
    with mock.patch.object(_OPTIMISE, "_fit", _fit):
        yield


@dataclass(frozen=True)
class _Noted(Cache):
    """A cache that notes what is kept in it."""

    kept: list[tuple[str, Mapping[str, bytes]]] = field(default_factory=list)

    def keep(self, key: str, files: Mapping[str, bytes]) -> None:
        super().keep(key, files)
        self.kept.append((key, files))


def _fit_once(spec: ReleaseSpec, joint: Joint, useful: Utility, kept: FittedRows) -> dict[str, bytes]:
    key = (
        joint_document(joint).to_bytes(),
        repr(_OPTIMISE._bounds(joint)),
        spec.guarantee.canonical,
        _OPTIMISE._reserve(spec),
        repr(spec.mechanism),
        repr(useful.content),
        spec.register is None,
        *(value for name, value in vars(_OPTIMISE).items() if name in _NAMES),
        _OPTIMISE.contenders.__defaults__,
    )
    if key in _made:
        for row in _made[key][1]:
            kept.cache.keep(*row)
    else:
        noted = _Noted(kept.cache.folder)
        _made[key] = _fit(spec, joint, useful, FittedRows(noted)), noted.kept
    return dict(_made[key][0])
