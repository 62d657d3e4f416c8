"""Movers and stayers: an observer who knows how common changes are among those who changed before, and who never did.

Some people never change (Blumen, Kogan and McCarthy 1955; Goodman 1961). So an observer has a *class* of every person
in every version: whether the secret, or a column that two versions publish, was ever another one in one of them, till
then. What changes from version v to version t are among those of each class, all people of both
versions count. The probability of never having changed is then the counted one: with everybody in all versions

    P(never changed from z) = Π_i N_{i+1}(z) / N_i(z) = N_t(z) / N_1(z)

for N_i(z) people of cell z who never changed up to version i. So it is in every fit of stayers with probability π(z)
and movers by K by greatest likelihood: of those who never changed ``π / (π + (1 - π) Π K(z|z))`` are stayers, these are
``π N_1(z)`` people, and so ``N_t(z) / N_1(z) = π + (1 - π) Π K(z|z)``. Nothing has to be fitted for it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from funnel.history.changes import Changes
from funnel.history.distributions import BoolArray
from funnel.joint import IntArray, Joint

CLASSES: Final = ("unchanged", "changed")


def class_cells(cells: IntArray, changed: BoolArray, inputs: int) -> IntArray:
    """Cells ``s * a + x`` as cells ``s * 2a + class * a + x``."""
    return np.asarray(cells // inputs * (2 * inputs) + changed * inputs + cells % inputs, dtype=np.int64)


def without_class(cells: IntArray, inputs: int) -> tuple[IntArray, BoolArray]:
    """Cells ``s * 2a + class * a + x`` as cells ``s * a + x``, and whether they are of people who changed."""
    secrets, rest = np.divmod(cells, 2 * inputs)
    return secrets * inputs + rest % inputs, rest >= inputs


def changes_without_class(changes: Changes, earlier: Joint, joint: Joint) -> Changes:
    """Changes of all people, from those of each class."""
    before, after = (
        without_class(cells, len(distribution.inputs))[0]
        for cells, distribution in ((changes.before, earlier), (changes.after, joint))
    )
    pairs, where = np.unique(np.stack([before, after]), axis=1, return_inverse=True)
    records: IntArray = np.zeros(pairs.shape[1], dtype=np.int64)
    np.add.at(records, where.reshape(-1), changes.records)
    return Changes(pairs[0], pairs[1], records)


def differs(earlier: Joint, before: IntArray, joint: Joint, after: IntArray) -> BoolArray:
    """Whether people have another secret, or another value in a column of both versions, than before; (people,).

    Parameters
    ----------
    earlier, joint : Joint
        Of both versions; their alphabets are what counts.
    before, after : ndarray of int64, shape (people,)
        Cells of people in these.
    """
    common = [column for column in earlier.inputs.columns if column in joint.inputs.columns]
    known: dict[tuple[tuple[str, ...], tuple[str, ...]], int] = {}

    def names(distribution: Joint) -> IntArray:
        places = [distribution.inputs.columns.index(column) for column in common]
        values = [tuple(symbol[place] for place in places) for symbol in distribution.inputs.symbols]
        return np.array([known.setdefault((s, x), len(known)) for s in distribution.secret.symbols for x in values])

    return np.asarray(names(earlier)[before] != names(joint)[after], dtype=bool)


def of_new_people(joint: Joint) -> Joint:
    """The counts of a version over cells of secret and (class, input), (c, 2a): new people have not changed yet."""
    symbols = [(kind, *symbol) for kind in CLASSES for symbol in joint.inputs.symbols]
    alphabet = replace(joint.inputs, columns=("class", *joint.inputs.columns), symbols=tuple(symbols))
    table = np.concatenate([joint.counts, np.zeros_like(joint.counts)], axis=1)
    return Joint.from_counts(table, joint.secret, alphabet)
