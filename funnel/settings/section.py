"""What all sections of a spec are made of."""

from __future__ import annotations

import math

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """A part of a spec: immutable, without settings it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


def as_tuple(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


def is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
