"""Expected errors: how exactly the share of every value, and of every cell of a two-way table, will be estimated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from funnel.alphabet import Alphabet
from funnel.joint import FloatArray, IntArray, Joint
from funnel.protocol import DENOMINATOR, Protocol

# The singular values of a matrix of more values take longer than all the rest of a plan.
LARGEST = 500
# Directions in which the information is smaller than this part of the largest tell nothing.
_NOTHING = 1e-10


@dataclass(frozen=True, eq=False)
class TableErrors:
    """Expected standard errors of the shares of one table: a column, or two of them crossed.

    Attributes
    ----------
    columns : tuple of str
        One or two.
    values : tuple of tuple of str
        The cells that have people.
    shares, errors : ndarray, shape (cells,)
        The share of each, and what drawing adds to the error of an efficient estimate of it; nan where released
        records alone cannot tell it.
    """

    columns: tuple[str, ...]
    values: tuple[tuple[str, ...], ...]
    shares: FloatArray
    errors: FloatArray

    @property
    def name(self) -> str:
        """The columns as a sentence names the table."""
        return " × ".join(self.columns)

    @property
    def said(self) -> str:
        """What is known of it, in words: "education 0.21 (at most 0.56)", in percentage points."""
        if self.typical is None or self.largest is None:
            return f"{self.name} cannot be told"
        worst = f" (at most {100 * self.largest:.2g})" if self.largest > self.typical else ""
        untold = f", {self.untold:,} of {len(self.errors):,} cannot be told" if self.untold else ""
        return f"{self.name} {100 * self.typical:.2g}{worst}{untold}"

    @property
    def untold(self) -> int:
        """Cells whose share the records alone cannot tell."""
        return int(np.isnan(self.errors).sum())

    @property
    def typical(self) -> float | None:
        """The median error of the cells that are told; None if none is."""
        return float(np.nanmedian(self.errors)) if self.untold < len(self.errors) else None

    @property
    def largest(self) -> float | None:
        """The largest error of those."""
        return float(np.nanmax(self.errors)) if self.untold < len(self.errors) else None

    def to_dict(self) -> dict[str, Any]:
        """As JSON-ready values: the columns, the typical and the largest error, how many cells cannot be told."""
        return {
            "columns": list(self.columns),
            "cells": len(self.values),
            "typical": self.typical,
            "largest": self.largest,
            "untold": self.untold,
        }


@dataclass(frozen=True, eq=False)
class ExpectedErrors:
    """What a release of so many records would be worth for estimates.

    Attributes
    ----------
    tables : tuple of TableErrors
        Every column, then every two columns crossed.
    condition : float
        The largest error of any contrast of shares over the least, in units in which sampling alone makes all of them
        equal; infinite where some cannot be told.
    """

    tables: tuple[TableErrors, ...]
    condition: float

    @property
    def sentence(self) -> str:
        """How exact estimates of single columns will be, and of the two columns that are told worst."""
        margins = [table for table in self.tables if len(table.columns) == 1]
        pairs = [table for table in self.tables if len(table.columns) == 2]
        told = "; ".join(table.said for table in margins)
        worst = max(pairs, key=lambda table: np.inf if table.largest is None else table.largest, default=None)
        crossed = "" if worst is None else f"; of two columns crossed at worst {worst.said}"
        return f"standard errors of estimated shares that drawing adds, in percentage points: {told}{crossed}"

    def to_dict(self) -> dict[str, Any]:
        """As JSON-ready values; an infinite condition becomes None."""
        return {
            "tables": [table.to_dict() for table in self.tables],
            "condition": self.condition if np.isfinite(self.condition) else None,
        }


def expected_errors(joint: Joint, protocol: Protocol) -> ExpectedErrors | None:
    """Errors that drawing will add to efficient estimates of margins and two-way tables.

    The law of the outputs is that of one column of ``Q = P(y|x)`` for each value, so the Fisher information of n
    records about the shares p is ``n Qᵀ diag(1/q) Q``, restricted to changes of p that sum to zero. Its inverse is the
    covariance of an efficient estimate of p, and gives the variance of the share of every cell, a sum of some entries
    of p; of that, ``π (1 - π) / n`` is there without a protocol.

    Parameters
    ----------
    joint : Joint
        Counts (c, a) that a release would be made from, with n records.
    protocol : Protocol
        One that reads the published columns alone, or also the secret: then shares of (secret, input) are behind it,
        and tables are of the published columns.

    Returns
    -------
    ExpectedErrors or None
        None where there are more than 500 values.

    Notes
    -----
    O(b a min(a, b) + cells · a).
    """
    read = joint.read_by(protocol.inputs.columns)
    occurring = np.flatnonzero(read.p_input > 0)
    if len(occurring) > LARGEST:
        return None
    shares = read.p_input[occurring]
    channel = protocol.weights[:, occurring] / np.float64(DENOMINATOR)
    roots, within, untold, condition = _information(channel, shares)
    tables = []
    for columns in _tables(joint.inputs.columns):
        values, of = _cells(read.inputs, columns, occurring)
        members = np.zeros((len(values), len(occurring)))
        members[of, np.arange(len(occurring))] = 1.0
        along = members * roots
        total = members @ shares
        variance = ((along @ within) ** 2).sum(axis=1) - total**2
        added = np.sqrt(np.maximum(0.0, (variance - total * (1 - total)) / joint.n))
        # What is left of a difference of equal numbers is no error.
        added[added < 1e-9] = 0.0
        missed = ((along @ untold) ** 2).sum(axis=1) > np.sqrt(_NOTHING) * np.maximum(total, 1e-300)
        tables.append(TableErrors(columns, values, total, np.where(missed, np.nan, added)))
    return ExpectedErrors(tuple(tables), condition)


def _information(channel: FloatArray, shares: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, float]:
    """√p (a,); directions over their singular values (a, k); directions that tell nothing (a, a - k); the condition."""
    roots = np.sqrt(shares)
    outputs = channel @ shares
    seen = outputs > 0
    scaled = channel[seen] * roots / np.sqrt(outputs[seen])[:, np.newaxis]
    _, found, directions = np.linalg.svd(scaled, full_matrices=True)
    known = np.zeros(len(roots))
    known[: len(found)] = found
    telling = known**2 > _NOTHING * known[0] ** 2
    # The first direction is √p itself, of all shares together: no estimate is made of it.
    condition = 1.0 / float(known[telling].min()) if telling.all() else np.inf
    return roots, directions[telling].T / known[telling], directions[~telling].T, condition


def _tables(columns: Sequence[str]) -> list[tuple[str, ...]]:
    return [*((column,) for column in columns), *combinations(columns, 2)]


def _cells(
    alphabet: Alphabet, columns: Sequence[str], occurring: IntArray
) -> tuple[tuple[tuple[str, ...], ...], IntArray]:
    """The combinations of some columns that occur, and which of them every symbol has."""
    places = [alphabet.columns.index(column) for column in columns]
    known: dict[tuple[str, ...], int] = {}
    symbols = alphabet.symbols
    of = [known.setdefault(tuple(symbols[int(i)][place] for place in places), len(known)) for i in occurring.tolist()]
    return tuple(known), np.array(of, dtype=np.int64)
