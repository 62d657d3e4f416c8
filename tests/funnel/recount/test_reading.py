"""Values of JSON are read as what annotations say, and whatever else they are is refused."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any

import pytest

from funnel.recount.reading import read


def _is_even(number: int) -> bool:
    return number % 2 == 0


@dataclass(frozen=True)
class Inner:
    name: str
    numbers: tuple[int, ...]


@dataclass(frozen=True)
class Outer:
    share: float
    even: Annotated[int, _is_even]
    parts: tuple[Inner, ...]
    more: Inner | None = None


WHOLE: dict[str, Any] = {"share": 1, "even": 4, "parts": [{"name": "a", "numbers": [1, 2]}]}


def test_an_object_is_read_with_all_of_its_parts() -> None:
    found = read(Outer, WHOLE)
    assert found == Outer(1.0, 4, (Inner("a", (1, 2)),))
    assert type(found.share) is float
    assert read(Outer, {**WHOLE, "more": None}) == found
    assert read(Outer, {**WHOLE, "more": {"name": "b", "numbers": []}}).more == Inner("b", ())
    assert read(Outer | None, None) is None
    assert [read(int | str, one) for one in (7, "7")] == [7, "7"]
    # Of all types of whole numbers those beyond 64 bits too.
    assert read(tuple[int, ...], [10**40]) == (10**40,)


@pytest.mark.parametrize(
    "change",
    [
        {"share": "1.0"},
        {"share": True},
        {"share": math.nan},
        {"share": math.inf},
        {"share": None},
        {"even": 3},
        {"even": 4.0},
        {"even": True},
        {"parts": {}},
        {"parts": "ab"},
        {"parts": None},
        {"parts": [{"name": "a", "numbers": [1, True]}]},
        {"parts": [{"name": "a", "numbers": [1, 2.0]}]},
        {"parts": [{"name": 7, "numbers": []}]},
        {"parts": [{"name": "a"}]},
        {"parts": [{"name": "a", "numbers": [], "extra": 1}]},
        {"more": []},
        {"other": 1},
    ],
)
def test_anything_else_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="not what it should be"):
        read(Outer, {**WHOLE, **change})


@pytest.mark.parametrize("key", ["share", "even", "parts"])
def test_what_has_no_default_must_be_there(key: str) -> None:
    with pytest.raises(ValueError, match="not what it should be"):
        read(Outer, {name: one for name, one in WHOLE.items() if name != key})
