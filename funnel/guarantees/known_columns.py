"""What an observer can know of a record from elsewhere: values of some of its published columns, each an event."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

import numpy as np
import numpy.typing as npt

from funnel.alphabet import Alphabet
from funnel.guarantees.count_box import CountBox, count_box
from funnel.guarantees.reading import reads_secret
from funnel.joint import IntArray, Joint

Given = tuple[tuple[str, str], ...]
# Joint distributions whose events are kept: searches ask for those of one again and again.
_KEPT = 8


@dataclass(frozen=True, eq=False)
class Event:
    """The records with some values of some published columns.

    Attributes
    ----------
    given : tuple of (column, value)
        What the observer knows.
    inside : ndarray of bool, shape (a,)
        The inputs with these values.
    joint : Joint
        The joint distribution of these records over these inputs, without bounds: one of the tables that are possible.
        An event that may have no record has one made-up record.
    counts : CountBox
        All tables of these records that are possible.
    """

    given: Given
    inside: npt.NDArray[np.bool_]
    joint: Joint
    counts: CountBox

    @property
    def occurs(self) -> bool:
        """Whether some table has a record of it."""
        return bool(self.counts.most.any())


def known_values(joint: Joint, every: bool) -> Iterator[tuple[Given, npt.NDArray[np.bool_]]]:
    """Every set J of published columns that are not the secret's with its values x_J, and the inputs (a,) with these.

    Parameters
    ----------
    joint : Joint
        The distribution that a channel reads, a inputs.
    every : bool
        Whether J may be all of these columns; the empty set always counts.
    """
    columns = joint.inputs.columns
    published = [k for k, column in enumerate(columns) if column not in joint.secret.columns]
    for size in range(len(published) + 1 if every else max(len(published), 1)):
        for known in combinations(published, size):
            values = [tuple(symbol[k] for k in known) for symbol in joint.inputs.symbols]
            places = {value: place for place, value in enumerate(dict.fromkeys(values))}
            place = np.array([places[value] for value in values])
            for value, number in places.items():
                yield tuple(zip((columns[k] for k in known), value, strict=True)), place == number


@lru_cache(maxsize=_KEPT)
def known_events(joint: Joint, every: bool) -> tuple[Event, ...]:
    """The events of `known_values`, each with all tables of its records that are possible."""
    box = count_box(joint)
    return tuple(_event(joint, box, given, inside) for given, inside in known_values(joint, every))


def _event(joint: Joint, box: CountBox, given: Given, inside: npt.NDArray[np.bool_]) -> Event:
    u = box.shape[1]
    counts = box.restricted(inside[:u])
    places = np.flatnonzero(inside)
    symbols = tuple(joint.inputs.symbols[x] for x in places)
    table = joint.counts[:, places] if joint.counts[:, places].any() else _one_record(joint, counts, len(places))
    return Event(given, inside, Joint(table, joint.secret, Alphabet(joint.inputs.columns, symbols)), counts)


def _one_record(joint: Joint, counts: CountBox, inputs: int) -> IntArray:
    """A table (c, inputs) with one record, at a place that may have one if there is such a place."""
    c, u = counts.shape
    possible = np.flatnonzero(counts.conceivable)
    s, x = divmod(int(possible[0]) if len(possible) else 0, u)
    table = np.zeros((c, inputs), dtype=np.int64)
    table[s, s * u + x if reads_secret(joint) else x] = 1
    return table
