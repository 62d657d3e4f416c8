"""Departures: by how much the answers of a version differ, on average, from what its effective channel leads to expect.

Under noise the effective channel W is the mean over predicted people, and real ones have other histories. Given what
was published before each record, value y is published ``Σ_i R(y | x_i, h_i)`` times on average, and W leads to expect
``Σ_i W(y | x_i)``. The differences are added up person by person, each shortened to a length that is declared
beforehand: so one person more or less changes all of them together by no more, and with noise of that size they are
public. Taken off the published counts they leave what W is right for, whatever the model of predicted people misses.
"""

from __future__ import annotations

import itertools
import math
from typing import Final

import numpy as np

from funnel.history.corrected import PARTS
from funnel.history.step import Step
from funnel.joint import FloatArray, IntArray
from funnel.protocol import WORD_BITS, Protocol, WeightArray

LEAST: Final = PARTS // 4
"""What one person may add at least, in parts of a record."""

MOST_OF_ROW: Final = 2 * PARTS
"""What one row adds at most: two distributions differ by no more."""

_SHIFT = np.uint64(WORD_BITS - 20)
# People whose rows are in memory at once.
_UNITS = 1 << 14
# How wide the noise is beside what answers vary by.
_WIDTH = 2.5


def declared_length(channel: Protocol, p: FloatArray, records: float, rows: int, epsilon: float) -> int:
    """What one person may add to all departures together, in parts of a record.

    The answers to n records vary by ``Σ_x n p_x W(y|x) (1 - W(y|x))`` a value, and noise of scale ``length / epsilon``
    by two squares of that. The length is such that noise has `_WIDTH` times the standard deviation of the answers: a
    longer one would hide more than it mends, a shorter one would leave out more than need be.

    Parameters
    ----------
    channel : Protocol
        The effective one.
    p : ndarray, shape (a,)
        Of the published distribution.
    records : float
        Expected in the version.
    rows : int
        That one person is expected to have at most.
    epsilon : float
        For the departures (nats).
    """
    weights = channel.matrix
    spread = records * float((weights * (1 - weights) @ p).sum()) / len(weights)
    length = math.floor(_WIDTH * epsilon * math.sqrt(spread / 2) * PARTS)
    return min(max(length, LEAST), rows * MOST_OF_ROW)


def departures_of_people(step: Step, length: int) -> IntArray:
    """The departures of people with one row each, in parts of a record; (b,)."""
    observed = step.observed
    channels = step.channels_of(observed.nodes)
    found = observed.spoken @ shortened(_of_rows(step, channels, observed.inputs), length)
    if observed.silent is not None:
        inputs = np.arange(len(step.channel.inputs))
        found = found + observed.silent @ shortened(_of_rows(step, None, inputs), length)
    return np.asarray(found)


def departures_of_units(step: Step, units: IntArray, before: IntArray, inputs: IntArray, length: int) -> IntArray:
    """The same of people with several rows: those of all rows of a person are one sum, which is shortened.

    Parameters
    ----------
    step : Step
        Of all rows.
    units, before, inputs : ndarray of int64, shape (rows,)
        Whose each row is, by numbers from 0; its history, below 0 where the person is forgotten; what it is.
    length : int
    """
    order = np.argsort(units, kind="stable")
    count, b = int(units.max()) + 1, len(step.channel.outputs)
    found: IntArray = np.zeros(b, dtype=np.int64)
    edges = np.searchsorted(units[order], np.arange(0, count + _UNITS, _UNITS))
    for begin, end in itertools.pairwise(edges.tolist()):
        here = order[begin:end]
        known = before[here] >= 0
        rows = np.empty((len(here), b), dtype=np.int64)
        channels = step.channels_of(before[here][known])
        rows[known] = _of_rows(step, channels, inputs[here][known])
        rows[~known] = _of_rows(step, None, inputs[here][~known])
        sums = np.add.reduceat(rows, np.flatnonzero(np.diff(units[here], prepend=-1)), axis=0)
        found += shortened(sums, length).sum(axis=0)
    return found


def shortened(departures: IntArray, length: int) -> IntArray:
    """Departures (k, b) as they are, or in proportion, towards zero, where their sizes add up to more than a length."""
    whole = np.abs(departures).sum(axis=1, keepdims=True)
    size = np.where(whole > length, np.abs(departures) * length // np.maximum(whole, 1), np.abs(departures))
    return np.asarray(np.sign(departures) * size)


def _of_rows(step: Step, channels: IntArray | None, inputs: IntArray) -> IntArray:
    """``R(·|x, h) - W(·|x)`` of rows with these channels and inputs, or of forgotten people; (k, b)."""
    drawn = step.channel.marginal[None, :] if channels is None else step.library[channels, :, inputs]
    return np.asarray(_parts(drawn) - _parts(step.channel.weights[:, inputs].T))


def _parts(weights: WeightArray) -> IntArray:
    return np.asarray((weights >> _SHIFT).astype(np.int64))
