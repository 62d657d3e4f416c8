"""Kept rows: what a search for the rows of a version found, known by all that it was a search for."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Protocol as Interface

import numpy as np

from funnel.joint import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class FoundRows:
    """Channels that a search found for the histories of a version, before they are rounded and proven.

    Attributes
    ----------
    library : ndarray, shape (n, b, a)
    assigned : ndarray of int64, shape (h,)
        The channel of each history.
    work : float
        Units of work that the search took.
    """

    library: FloatArray
    assigned: IntArray
    work: float


class KeptRows(Interface):
    """Where the rows of searches are kept, as `funnel.tradeoff.fitted.FittedRows` keeps them."""

    def find_rows(self, digest: str) -> FoundRows | None:
        """Rows, if they were kept."""

    def keep_rows(self, digest: str, rows: FoundRows) -> None:
        """Keep rows."""


def digest_of(*content: object) -> str:
    """SHA-256 (hex) of values, arrays, and data classes, mappings and sequences of these.

    Raises
    ------
    TypeError
        For anything else, whose content is not known.
    """
    digest = hashlib.sha256()
    _feed(digest, content)
    return digest.hexdigest()


def _feed(digest: hashlib._Hash, value: object) -> None:
    parts: tuple[object, ...]
    if isinstance(value, np.ndarray) and value.dtype != object:
        kind, parts = f"{value.dtype.str}{value.shape}", ()
        content = np.ascontiguousarray(value).tobytes()
    elif isinstance(value, np.ndarray):
        kind, parts, content = f"objects{value.shape}", tuple(value.ravel().tolist()), b""
    elif is_dataclass(value):
        names = [field.name for field in fields(value)]
        kind, parts, content = type(value).__name__, tuple(getattr(value, name) for name in names), b""
    elif isinstance(value, Mapping):
        kind, parts, content = "mapping", tuple(sorted(value.items(), key=repr)), b""
    elif isinstance(value, tuple | list):
        kind, parts, content = "sequence", tuple(value), b""
    elif value is None or isinstance(value, str | bool | int | float):
        kind, parts, content = type(value).__name__, (), repr(value).encode()
    else:
        raise TypeError(f"the content of {type(value).__name__} is not known")
    # Lengths first: no content can be read as another one.
    digest.update(f"{kind} {len(parts)} {len(content)}\0".encode())
    digest.update(content)
    for part in parts:
        _feed(digest, part)
