"""What a guarantee's text promises, read anew: its name, its numbers as written, and what observers may know."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any

from funnel.errors import SpecError
from funnel.recount.channel import Symbols, alike

# The numbers of every guarantee, in the order in which they are written, with the default of those that may be left
# out. Nothing here is shared with `funnel.guarantees`: a slip there must not be a slip here.
_Numbers = dict[str, Fraction | None]
_ONE: _Numbers = {"epsilon": None}
_TWO: _Numbers = {"lower": None, "upper": None}
_PLAIN = {"lip": _ONE, "alip": _TWO, "ldp": _ONE, "srlip": _ONE, "attribute": _ONE, "pml": _ONE}
NUMBERS: dict[str, _Numbers] = {
    **_PLAIN,
    **{f"r{kind}": {**numbers, "alpha": Fraction(1, 20)} for kind, numbers in _PLAIN.items()},
    "perfect": {},
    "l1-lift": _TWO,
    "chi2-lift": _TWO,
    "alpha-lift": {**_TWO, "alpha": Fraction(2)},
    "mi": {"bound": None},
}
# Over which sets of distributions a robust guarantee can be promised: limits of every probability, or the χ² set of the
# paper.
SETS = {f"r{kind}": ("boxes", "chi2") if kind == "ldp" else ("boxes",) for kind in _PLAIN}
# Several guarantees that all hold, written with this between them.
SEVERAL, _AND = "several", "&"
# An infinite budget bounds nothing.
_UNBOUNDED = ("lower", "upper")
_DECIMAL = re.compile(r"\+?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")


@dataclass(frozen=True)
class Promise:
    """A guarantee by its name and its numbers.

    Attributes
    ----------
    kind : str
    numbers : mapping of str to Fraction or None
        In nats where they are budgets; None is no bound on that side.
    distributions : str or None
        The set of distributions of a robust guarantee, "boxes" or "chi2"; None where it is about one distribution.
    parts : tuple of Promise
        Of several guarantees, each of them; else empty.
    """

    kind: str
    numbers: Mapping[str, Fraction | None]
    distributions: str | None = None
    parts: tuple[Promise, ...] = ()

    def number(self, name: str) -> Fraction:
        """A number that is finite.

        Raises
        ------
        SpecError
            If it is not.
        """
        value = self.numbers[name]
        if value is None:
            raise SpecError(f"{self.kind} needs a finite {name}")
        return value

    @property
    def covers_noise(self) -> bool:
        """Whether it is about every table that noise leaves possible, where counts are known up to noise."""
        if self.parts:
            return all(part.covers_noise for part in self.parts)
        return self.distributions == "boxes" or self.kind in ("lip", "alip", "ldp", "pml", "srlip", "attribute")

    @property
    def budget(self) -> Fraction:
        """What a level is compared with, in nats: the one budget, the larger finite one of two, the largest part's."""
        if self.parts:
            return max(part.budget for part in self.parts)
        if self.kind == "perfect":
            return Fraction(0)
        if "lower" in self.numbers:
            return max(side for side in (self.numbers["lower"], self.numbers["upper"]) if side is not None)
        return self.number("bound" if self.kind == "mi" else "epsilon")


def read_promise(text: str) -> Promise:
    """The promise that a text such as ``"lip:1.0"`` or ``"alip:lower=1.3,upper=0.7"`` makes.

    Raises
    ------
    SpecError
        If there is no such guarantee, or its numbers are not those that it has.
    """
    if _AND in text:
        return _together(text.split(_AND))
    name, colon, rest = text.strip().partition(":")
    kind = _kind(name)
    known = [*NUMBERS[kind], *(["set"] if kind in SETS else [])]
    said: dict[str, str] = {}
    for place, part in enumerate(rest.split(",") if colon else []):
        key, equals, number = part.rpartition("=")
        key = key.strip() if equals else (known[place] if place < len(known) else "")
        if key not in known or key in said:
            raise SpecError(f"the gate cannot read {text!r}; {kind} has the numbers {', '.join(known) or 'none'}")
        said[key] = number.strip()
    return _read(kind, said)


def _kind(name: str) -> str:
    kind = name.strip().lower()
    if kind not in NUMBERS:
        raise SpecError(f"the gate knows no guarantee {name.strip()!r}; known are {', '.join(NUMBERS)}")
    return kind


def _together(texts: Sequence[str]) -> Promise:
    """The promise that all of some texts make."""
    parts = tuple(read_promise(text) for text in texts)
    if len(parts) < 2 or any(part in parts[:place] for place, part in enumerate(parts)):
        raise SpecError(f"several guarantees are at least two different ones, not {' & '.join(texts)!r}")
    idle = [part for part in parts if _asks_independence(part)]
    if idle and len(idle) < len(parts):
        raise SpecError(f"{idle[0].kind} with a budget of 0 cannot be scaled with others; ask for it alone")
    return Promise(SEVERAL, {}, None, parts)


def _asks_independence(part: Promise) -> bool:
    return part.budget == 0 or any(part.numbers.get(side) == 0 for side in _UNBOUNDED)


def declared_promise(text: str) -> Promise:
    """The promise that the text of a spec file declares; settings that never were a file are JSON.

    Raises
    ------
    SpecError
        If the text is neither, or declares no guarantee.
    """
    declared = read_settings(text).get("guarantee")
    if isinstance(declared, str):
        return read_promise(declared)
    if isinstance(declared, list) and declared and all(isinstance(one, str) for one in declared):
        return read_promise(declared[0]) if len(declared) == 1 else _together(declared)
    if isinstance(declared, dict) and declared.get("kind") == SEVERAL and isinstance(declared.get("parts"), str):
        return read_promise(declared["parts"])
    if not isinstance(declared, dict) or not isinstance(declared.get("kind"), str):
        raise SpecError(
            'the spec declares no guarantee that the gate can read; write for instance guarantee = "lip:1.0"'
        )
    return _read(_kind(declared["kind"]), {key: value for key, value in declared.items() if key != "kind"})


def _read(kind: str, said: Mapping[str, object]) -> Promise:
    numbers = {key: _number(kind, key, value) for key, value in said.items() if key != "set"}
    distributions = None
    if kind in SETS:
        distributions = said.get("set", SETS[kind][0])
        if distributions not in SETS[kind]:
            raise SpecError(
                f"{kind} is promised over the set {' or '.join(SETS[kind])}, not over {str(distributions)[:40]!r}"
            )
    elif "set" in said:
        raise SpecError(f"{kind} is about one distribution, so it has no set of distributions")
    return _promise(kind, numbers, distributions)


def read_settings(text: str, number: Callable[[str], object] = str) -> dict[str, Any]:
    """What the text of a spec says, with every number that is not whole as the text that was written, or as said.

    Raises
    ------
    SpecError
        If it is neither TOML nor JSON.
    """
    # As the text that was written 0.1 is a tenth, not the double next to it.
    try:
        return tomllib.loads(text, parse_float=number)
    except (tomllib.TOMLDecodeError, RecursionError):
        pass
    try:
        settings = json.loads(text, parse_float=number, parse_constant=number)
    except (ValueError, RecursionError):
        settings = None
    if not isinstance(settings, dict):
        raise SpecError("the text of the spec is neither TOML nor JSON, so what it says cannot be judged")
    return settings


def _promise(kind: str, numbers: Mapping[str, Fraction | None], distributions: object) -> Promise:
    whole: dict[str, Fraction | None] = {}
    for name, default in NUMBERS[kind].items():
        if name not in numbers and default is None:
            raise SpecError(f"{kind} lacks its {name}, so the gate does not know what was promised")
        whole[name] = numbers.get(name, default)
    if unknown := [name for name in numbers if name not in whole]:
        raise SpecError(f"{kind} has no number {unknown[0]!r}")
    if "lower" in whole and whole["lower"] is None and whole["upper"] is None:
        raise SpecError(f"{kind} with two infinite budgets promises nothing")
    alpha = whole.get("alpha")
    if kind in SETS and not (alpha is not None and 0 < alpha < 1):
        raise SpecError(f"{kind} needs a significance alpha strictly between 0 and 1")
    if kind == "alpha-lift" and not (alpha is not None and alpha.denominator == 1 and 2 <= alpha <= 1000):
        raise SpecError("alpha-lift needs a whole alpha from 2 to 1000")
    return Promise(kind, whole, None if distributions is None else str(distributions))


def _number(kind: str, name: str, value: object) -> Fraction | None:
    text = str(value).strip() if isinstance(value, (str, int, float)) and not isinstance(value, bool) else ""
    if name in _UNBOUNDED and text.lower() in ("inf", "+inf", "infinity"):
        return None
    if not _DECIMAL.fullmatch(text):
        raise SpecError(f"{kind} needs a number >= 0 for {name}, not {text[:40]!r}")
    return Fraction(text)


# What observers of the last output may know besides: any values of any published columns.
_KNOWING = ("srlip", "attribute")


@dataclass(frozen=True)
class Group:
    """The inputs with some values of some columns.

    Attributes
    ----------
    columns : tuple of str
    inside : frozenset of int
    """

    columns: tuple[str, ...]
    inside: frozenset[int]

    def twice(self, a: int) -> Group:
        """The same where there are two inputs for each of a: of people who changed, and of those who did not."""
        return Group(self.columns, self.inside | {x + a for x in self.inside})


def has_known_columns(promise: Promise) -> bool:
    """Whether a promise is made to observers who know published columns of everybody."""
    return _counted_kind(promise) in _KNOWING


def _counted_kind(promise: Promise) -> str:
    """What a promise is for one distribution."""
    return promise.kind.removeprefix("r") if promise.distributions is not None else promise.kind


def promise_given(promise: Promise, knows_all: bool) -> Promise:
    """What a promise asks of an observer who knows none, some or all of the published columns besides.

    That of srlip and of attribute is lip for each of them, and ldp for one who knows all under attribute.
    """
    if not has_known_columns(promise):
        return promise
    kind = "ldp" if _counted_kind(promise) == "attribute" and knows_all else "lip"
    return Promise(kind, {"epsilon": promise.number("epsilon")})


def known_sets(columns: Sequence[str]) -> list[tuple[str, ...]]:
    """Every set of columns, but the empty one, by size."""
    return [known for size in range(1, len(columns) + 1) for known in combinations(columns, size)]


def known_groups(columns: Sequence[str], inputs: Symbols) -> list[Group]:
    """For every set of columns the inputs by the values of these."""
    return [
        Group(known, frozenset(group))
        for known in known_sets(columns)
        for group in alike(inputs, list(map(columns.index, known))).values()
    ]


def partly_known(columns: Sequence[str], inputs: Symbols) -> list[Group]:
    """The same where not all columns are known: else an output says nothing more of the version that it is of."""
    return [group for group in known_groups(columns, inputs) if len(group.columns) < len(columns)]


def knowing(observer: str, columns: Sequence[str]) -> str:
    """How an observer is called who knows these columns besides."""
    return f"{observer}, knowing {' and '.join(columns)}" if columns else observer
