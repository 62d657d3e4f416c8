"""Known groups: what observers of a register may know of everybody in a version, as groups of its inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from funnel.recount.channel import Symbols
from funnel.recount.promise import Promise

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
    """What a promise is for one law."""
    return promise.kind.removeprefix("r") if promise.laws is not None else promise.kind


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
    found = []
    for known in known_sets(columns):
        places = [columns.index(column) for column in known]
        groups: dict[tuple[str, ...], set[int]] = {}
        for x, symbol in enumerate(inputs):
            groups.setdefault(tuple(symbol[place] for place in places), set()).add(x)
        found += [Group(known, frozenset(group)) for group in groups.values()]
    return found


def partly_known(columns: Sequence[str], inputs: Symbols) -> list[Group]:
    """The same where not all columns are known: else an output says nothing more of the version that it is of."""
    return [group for group in known_groups(columns, inputs) if len(group.columns) < len(columns)]


def knowing(observer: str, columns: Sequence[str]) -> str:
    """How an observer is called who knows these columns besides."""
    return f"{observer}, knowing {' and '.join(columns)}" if columns else observer
