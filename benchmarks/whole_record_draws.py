"""Draws of whole records as a release makes them, by a generator that can be seeded."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from funnel import Alphabet, Protocol
from funnel.alphabet import CLASS_COLUMN
from funnel.joint import FloatArray, IntArray
from funnel.sampling.donors import Donors


@dataclass(frozen=True, eq=False)
class DrawnRecords:
    """What became of people.

    Attributes
    ----------
    secrets, classes : ndarray of int64, shape (n,)
        Published: the number of the secret, 0 where none is published, and of the class.
    taken : ndarray of int64, shape (n,)
        Number of the record that was published.
    stayed : ndarray of bool, shape (n,)
        Whether secret and class are the true ones.
    """

    secrets: IntArray
    classes: IntArray
    taken: IntArray
    stayed: np.ndarray[tuple[int], np.dtype[np.bool_]]


def input_places(protocol: Protocol, secret: Alphabet | None, classes: tuple[str, ...]) -> IntArray:
    """The number of the input of a protocol with each secret and class, -1 for none; shape (c, classes).

    Without a published secret c is 1; known columns of the protocol follow from the class.
    """
    width = 0 if secret is None else len(secret.columns)
    places = {(*symbol[:width], symbol[-1]): number for number, symbol in enumerate(protocol.inputs.symbols)}
    secrets = ((),) if secret is None else secret.symbols
    return np.array([[places.get((*s, name), -1) for name in classes] for s in secrets])


def draw_records(
    donors: Donors, protocol: Protocol, places: IntArray, secret: IntArray, row: IntArray, random: np.random.Generator
) -> DrawnRecords:
    """Draw the published record of everybody.

    Parameters
    ----------
    donors : Donors
    protocol : Protocol
        Over secret and class, or class alone.
    places : ndarray of int64, shape (c, classes)
        As `input_places` has them.
    secret, row : ndarray of int64, shape (n,)
        The true ones: number of the secret (0 where none is published), and of the record.
    random : numpy.random.Generator
    """
    of_record, inputs = donors.of_record, len(protocol.inputs)
    cumulated = np.cumsum(protocol.matrix, axis=0)
    of_input = places[secret, of_record[row]]
    drawn = (random.random(len(row)) > cumulated[:-1, of_input]).sum(axis=0)
    shown = np.array([(s, k) for place in range(inputs) for s, k in np.argwhere(places == place)[:1]])[drawn]
    words = random.integers(0, 2**64, (8, len(row)), dtype=np.uint64)
    taken = donors.taken(row, shown[:, 1], words.__getitem__)
    return DrawnRecords(shown[:, 0], shown[:, 1], taken, drawn == of_input)


def published_table(donors: Donors, secret: Alphabet | None, drawn: DrawnRecords) -> pa.Table:
    """The published records as dictionary columns, the class last, and the secret, if it is published, first."""
    columns, texts = (*donors.columns, CLASS_COLUMN), (*donors.categories, donors.classes)
    codes: tuple[IntArray, ...] = (*donors.codes[drawn.taken].T, donors.of_record[drawn.taken])
    if secret is not None:
        columns, texts, codes = (*secret.columns, *columns), (secret.labels, *texts), (drawn.secrets, *codes)
    return pa.table(
        {
            name: pa.DictionaryArray.from_arrays(pa.array(code.astype(np.int32)), list(some))
            for name, code, some in zip(columns, codes, texts, strict=True)
        }
    )


def moves_between(protocol: Protocol, places: IntArray) -> FloatArray:
    """P(t, h | s, g) of a protocol, shape (c, classes, c, classes): true secret and class first.

    Of a secret that nobody of a class has nothing becomes anything else.
    """
    c, k = places.shape
    channel = np.eye(c * k)
    there = np.flatnonzero(places.ravel() >= 0)
    numbers = places.ravel()[there]
    channel[np.ix_(there, there)] = protocol.matrix[np.ix_(numbers, numbers)].T
    return channel.reshape(c, k, c, k)
