"""Class parts: of inputs that are parts of classes, which class each is of, and the people with each value there."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from funnel.alphabet import Alphabet
from funnel.bounds import spread
from funnel.errors import SpecError

IntArray = npt.NDArray[np.int64]
Known = tuple[tuple[str, str], ...]
"""Columns of a person, each with its value, that an observer may know at once."""
PART: Final = "."
"""Between the name of a class and the number of one of its parts: "3.2" is the second part of "3"."""


@dataclass(frozen=True, eq=False)
class ClassParts:
    """What an observer believes of a person in a part of a class, and what the observer may know of the person.

    Observers know of the secret what the counts of classes say; parts of one class tell the same. They may know
    values of a person besides, of one column or of several at once. Without parts every input is a class of its own.

    Attributes
    ----------
    classes : Alphabet
        g of them.
    class_of : ndarray of int64, shape (a,)
        The class that every input is a part of.
    people : ndarray of int64, shape (v, a)
        Of every input, whatever its secret, those who have what an observer may know.
    known : tuple of Known
        What that is, of every row.
    held_out : ndarray of int64, shape (c, g), optional
        Of secrets and classes the records by which classes were not chosen: a sample of the population.

    Raises
    ------
    SpecError
        If shapes do not fit, a class has no part, or a number of people is negative.
    """

    classes: Alphabet
    class_of: IntArray
    people: IntArray
    known: tuple[Known, ...]
    held_out: IntArray | None = None

    def __post_init__(self) -> None:
        fits = self.people.shape == (len(self.known), len(self.class_of)) and bool((self.people >= 0).all())
        if self.held_out is not None:
            fits = fits and self.held_out.shape[1:] == (len(self.classes),) and bool((self.held_out >= 0).all())
        if not fits or not np.array_equal(np.unique(self.class_of), np.arange(len(self.classes))):
            raise SpecError("the parts of classes do not fit their classes and the people in them")

    def require_fit(self, counts: IntArray, exact: bool) -> None:
        """Refuse counts of other inputs or fewer people, a part without any, and counts with bounds.

        Parameters
        ----------
        counts : ndarray of int64, shape (c, a) or (c, c·a)
            Of the secret, and of parts or of the secret and these.
        exact : bool

        Raises
        ------
        SpecError
            If they are such.
        """
        c, width = len(counts), len(self.class_of)
        fits = counts.shape[1] in (width, c * width)
        sizes = counts.sum(axis=0).reshape(-1, width).sum(axis=0) if fits else self.class_of
        if fits and self.held_out is not None:
            fits = len(self.held_out) == c and bool((self.held_out <= self.counted(counts)).all())
        if not (exact and fits and sizes.all() and (self.people <= sizes).all()):
            raise SpecError("the parts of classes do not fit the counts of their records")

    def counted(self, counts: IntArray) -> IntArray:
        """Counts (c, g) of classes, from those of parts, (c, a) or (c, c·a)."""
        found = np.zeros((len(counts), len(self.classes)), dtype=np.int64)
        np.add.at(found.T, self.class_of, counts.reshape(len(counts), -1, len(self.class_of)).sum(axis=1).T)
        return found

    def believed(self, counts: IntArray) -> npt.NDArray[np.object_]:
        """The same counts as those of classes say, whatever the part, in whole numbers in proportion."""
        of_class = self.counted(counts).astype(object)
        tells = of_class * (math.lcm(*of_class.sum(axis=0)) // of_class.sum(axis=0))
        people = counts.reshape(-1, len(self.class_of)).sum(axis=0).astype(object)
        found = np.asarray(tells[:, self.class_of] * people)
        return found if found.shape == counts.shape else spread(found)

    @property
    def content(self) -> list[object]:
        """All of it as plain values."""
        symbols = [list(symbol) for symbol in self.classes.symbols]
        return [
            symbols,
            self.class_of.tolist(),
            self.people.tolist(),
            [[list(value) for value in one] for one in self.known],
            *([] if self.held_out is None else [self.held_out.tolist()]),
        ]
