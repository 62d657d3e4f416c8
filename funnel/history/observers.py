"""Observers: what somebody who keeps all versions takes for the distribution of a person, one hidden state for each.

An observer is a hidden state, a prior and a kernel (METHOD sections 12 and 16). Everything about it is said in cells of
secret and (class, input), so that one forward recursion, in doubles and in whole numbers, is that of all observers:
channels read the input alone, and beliefs are added up over the classes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from funnel.errors import DataError, SpecError
from funnel.history.changes import Changes
from funnel.history.distributions import (
    UNIT,
    BoolArray,
    HistoryDistributions,
    distributions_before,
    with_secret_to_come,
)
from funnel.history.exact_distribution import ExactDistributions, WholeNumbers, with_exact_secret_to_come
from funnel.history.mover_stayer import CLASSES, of_new_people
from funnel.history.observed import Members, Observed
from funnel.history.past import Past
from funnel.joint import IntArray, Joint

TRANSITIONS: Final = "transitions"
"""Knows how common every change between two versions is."""

MOVER_STAYER: Final = "mover-stayer"
"""Knows how common it is among people who changed before, and among people who never did."""

OBSERVERS: Final = (TRANSITIONS, MOVER_STAYER)


@dataclass(frozen=True, eq=False)
class Observer:
    """What somebody who keeps all versions knows before the next one.

    Attributes
    ----------
    name : str
    past : Past
        What was published, over cells of this observer.
    joint : Joint
        Of the version that comes next, (c, classes · a).
    changes : mapping of int to Changes
        To it, by ordinal.
    classes : int
    bounded : bool
        Whether the version is bounded for this observer; else it is only reported how far it goes.
    members : Members, optional
        Where rows of a unit are bounded one by one.
    """

    name: str
    past: Past
    joint: Joint
    changes: Mapping[int, Changes]
    classes: int = 1
    bounded: bool = True
    members: Members | None = None
    _exact: ExactDistributions = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_exact", ExactDistributions(self.past))

    def distributions(
        self, nodes: IntArray, secret_of: int | None = None, inside: BoolArray | None = None
    ) -> HistoryDistributions:
        """P(s, x | h) of some histories, values (k, c, a); of the secret in an earlier version, where one is given.

        Or in a later row of the unit: chapters that are to come have numbers that go on from those that there are. With
        ``inside``, a mask of inputs, for an observer who knows that a person has one of these where the secret is of.
        """
        if secret_of is not None and secret_of >= len(self.past):
            assert self.members is not None
            now = distributions_before(self.past, nodes, self.joint, self.changes)
            return with_secret_to_come(now, self.joint, self.members.changes, secret_of - len(self.past), inside)
        then = self._then(secret_of, inside)
        distributions = distributions_before(self.past, nodes, self.joint, self.changes, secret_of, then)
        if self.classes > 1:
            k, c, inputs = distributions.values.shape
            values = distributions.values.reshape(k, c, self.classes, inputs // self.classes).sum(axis=2)
            distributions = replace(distributions, values=values, error=distributions.error + self.classes * UNIT)
        return distributions if inside is None or then is not None else distributions.within(inside)

    def exact_distribution(
        self, node: int, secret_of: int | None = None, inside: BoolArray | None = None
    ) -> WholeNumbers:
        """The same of one history in whole numbers, up to a factor; (c, a)."""
        if secret_of is not None and secret_of >= len(self.past):
            assert self.members is not None
            now = self._exact.before(node, self.joint, self.changes)
            return with_exact_secret_to_come(now, self.joint, self.members.changes, secret_of - len(self.past), inside)
        then = self._then(secret_of, inside)
        distribution = self._exact.before(node, self.joint, self.changes, secret_of, then)
        if self.classes > 1:
            c, inputs = distribution.shape
            distribution = np.asarray(distribution.reshape(c, self.classes, inputs // self.classes).sum(axis=1))
        return distribution if inside is None or then is not None else distribution * inside

    def _then(self, secret_of: int | None, inside: BoolArray | None) -> BoolArray | None:
        """A mask of the inputs of an earlier version as one of those that this observer tells apart."""
        return None if inside is None or secret_of is None else np.tile(inside, self.classes)


def observers_of(past: Past, observed: Observed) -> tuple[Observer, ...]:
    """All of whom it is known what they conclude, bounded or not: the one who knows changes first.

    Raises
    ------
    DataError
        If changes by class are asked for and were not counted, of this version or of one before.
    """
    first = Observer(TRANSITIONS, past, observed.joint, observed.changes, members=observed.members)
    bounded = MOVER_STAYER in observed.observers
    counted = observed.by_class is not None and past.has_classes
    return (first, _mover_stayer(past, observed, bounded)) if bounded or counted else (first,)


def checked_observers(names: Sequence[str]) -> tuple[str, ...]:
    """The names of observers, if there are such.

    Raises
    ------
    SpecError
        If one is unknown or there twice, or the one who knows changes is missing.
    """
    names = (names,) if isinstance(names, str) else tuple(names)
    if unknown := [name for name in names if name not in OBSERVERS]:
        raise SpecError(f"there is no observer {unknown[0]!r}; choose among {', '.join(OBSERVERS)}")
    if TRANSITIONS not in names or len(set(names)) < len(names):
        raise SpecError(f"observers are {TRANSITIONS!r} and, if wanted, {MOVER_STAYER!r}, each once")
    return tuple(name for name in OBSERVERS if name in names)


def _mover_stayer(past: Past, observed: Observed, bounded: bool) -> Observer:
    if observed.by_class is None or not past.has_classes:
        raise DataError(
            "changes were not counted by class in all versions, so that movers and stayers cannot be told apart; set "
            'observers = ["transitions"]'
        )
    chapters = [
        replace(
            chapter,
            joint=of_new_people(chapter.joint),
            changes=chapter.by_class or {},
            library=np.tile(chapter.library, (1, 1, len(CLASSES))),
        )
        for chapter in past.chapters
    ]
    return Observer(
        MOVER_STAYER, Past(tuple(chapters)), of_new_people(observed.joint), observed.by_class, len(CLASSES), bounded
    )
