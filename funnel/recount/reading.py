"""Reading: values of JSON as what the annotations of a dataclass say, with nothing else taken for them."""

from __future__ import annotations

import math
from dataclasses import MISSING, fields, is_dataclass
from functools import lru_cache
from types import NoneType, UnionType
from typing import Annotated, Any, get_args, get_origin, get_type_hints


def read(kind: Any, said: Any) -> Any:
    """A value of a kind: a dataclass, a tuple of any length, text, a whole or a finite number, or one of these or
    None, or a whole number or a text.

    A dataclass is an object with the names of its fields as keys, those with a default where they are there, and no
    other key. `Annotated` adds conditions: functions that are true of what was read. True is no number.

    Raises
    ------
    ValueError
        If it is none.
    """
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Annotated:
        found = read(parts[0], said)
        if all(holds(found) for holds in parts[1:]):
            return found
    elif origin is UnionType:
        return None if said is None and NoneType in parts else read(parts[parts[-1] is type(said)], said)
    elif origin is tuple and isinstance(said, list | tuple):
        # Of plain values a table may have many.
        alike = parts[0] in (int, str) and all(type(one) is parts[0] for one in said)
        return tuple(said) if alike else tuple(read(parts[0], one) for one in said)
    elif kind is float and type(said) in (int, float) and math.isfinite(said):
        return float(said)
    elif kind in (int, str) and type(said) is kind:
        return said
    elif isinstance(kind, type) and is_dataclass(kind) and isinstance(said, dict):
        known, required = _fields(kind)
        if required <= said.keys() <= known.keys():
            return kind(**{name: read(known[name], one) for name, one in said.items()})
    raise ValueError("is not what it should be")


@lru_cache
def _fields(kind: Any) -> tuple[dict[str, Any], set[str]]:
    """The kinds of the fields of a dataclass by their names, and those that have no default."""
    hints = get_type_hints(kind, include_extras=True)
    every = fields(kind)
    return {one.name: hints[one.name] for one in every}, {one.name for one in every if one.default is MISSING}
