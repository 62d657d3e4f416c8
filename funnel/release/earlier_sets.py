"""Robust guarantees in documents of earlier funnels: they knew one set of laws, and so did not name it."""

from __future__ import annotations

from typing import Any

# Where documents say which guarantee was declared.
_KEYS = ("guarantee", "declared")


def with_sets(content: Any) -> Any:
    """The content of an earlier document with the set of every robust guarantee in it: the χ² set of the RLDP paper.

    ``rldp:1.0,0.05`` in them is what ``rldp:1.0,0.05,chi2`` is now, where
    the same text without a set means boxes.
    """
    if isinstance(content, list):
        return [with_sets(part) for part in content]
    if not isinstance(content, dict):
        return content
    return {
        key: _with_set(value) if key in _KEYS and isinstance(value, str) else with_sets(value)
        for key, value in content.items()
    }


def _with_set(text: str) -> str:
    name, _, numbers = text.partition(":")
    return f"{text},chi2" if name == "rldp" and numbers.count(",") == 1 else text
