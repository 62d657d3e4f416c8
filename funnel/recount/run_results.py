"""Run results: what a run computes a second time for more than one check of it, by all that the result depends on."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

T = TypeVar("T")

# Results by a digest of what they depend on; None outside of `results_remembered`.
_results: ContextVar[dict[bytes, Any] | None] = ContextVar("recounted_results", default=None)


@contextmanager
def results_remembered() -> Iterator[None]:
    """Within it a result of the same content is computed once, whichever check asks for it."""
    token = _results.set({})
    try:
        yield
    finally:
        _results.reset(token)


def once(make: Callable[[], T], content: Callable[[], object]) -> T:
    """A result: computed, or remembered where all that it depends on is the same, to the last digit.

    Parameters
    ----------
    make : callable
    content : callable
        What the result depends on, the digests of files among it: plain values, of which the text says all.
    """
    known = _results.get()
    if known is None:
        return make()
    key = hashlib.sha256(repr((make.__qualname__, content())).encode()).digest()
    if key not in known:
        known[key] = make()
    found: T = known[key]
    return found
