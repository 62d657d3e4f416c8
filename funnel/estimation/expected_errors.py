"""Expected errors: how exactly the share of every value, and of every cell of a two-way table, will be estimated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from funnel.alphabet import Alphabet
from funnel.estimation.share_information import CountedShares, ShareInformation
from funnel.estimation.value_cells import cells_of
from funnel.joint import FloatArray, IntArray, Joint
from funnel.protocol import DENOMINATOR, Protocol


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
    sums : tuple of tuple of int
        Of a single column, groups of its values that cannot be told one by one, but all together.
    """

    columns: tuple[str, ...]
    values: tuple[tuple[str, ...], ...]
    shares: FloatArray
    errors: FloatArray
    sums: tuple[tuple[int, ...], ...] = ()

    @property
    def name(self) -> str:
        """The columns as a sentence names the table."""
        return " × ".join(self.columns)

    @property
    def sentence_part(self) -> str:
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
    def is_untold(self) -> bool:
        """Whether the records tell the share of no cell, and of a single column of no group of them but all."""
        return self.typical is None and all(len(group) == len(self.errors) for group in self.sums)

    @property
    def typical(self) -> float | None:
        """The median error of the cells that are told; None if none is."""
        return float(np.nanmedian(self.errors)) if self.untold < len(self.errors) else None

    @property
    def largest(self) -> float | None:
        """The largest error of those."""
        return float(np.nanmax(self.errors)) if self.untold < len(self.errors) else None

    def to_dict(self) -> dict[str, Any]:
        """As JSON-ready values: typical and largest error, how many cells cannot be told; of one column, each value."""
        told: dict[str, Any] = {
            "columns": list(self.columns),
            "cells": len(self.values),
            "typical": self.typical,
            "largest": self.largest,
            "untold": self.untold,
        }
        if len(self.columns) == 1:
            errors = [None if np.isnan(error) else float(error) for error in self.errors]
            told["errors"] = dict(zip((value for (value,) in self.values), errors, strict=True))
            told["only_in_sum"] = [[self.values[i][0] for i in group] for group in self.sums]
        return told


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
        told = "; ".join(table.sentence_part for table in margins)
        worst = max(pairs, key=lambda table: np.inf if table.largest is None else table.largest, default=None)
        crossed = "" if worst is None else f"; of two columns crossed at worst {worst.sentence_part}"
        return f"standard errors of estimated shares that drawing adds, in percentage points: {told}{crossed}"

    def to_dict(self) -> dict[str, Any]:
        """As JSON-ready values; an infinite condition becomes None."""
        return {
            "tables": [table.to_dict() for table in self.tables],
            "condition": self.condition if np.isfinite(self.condition) else None,
        }


def expected_errors(joint: Joint, protocol: Protocol) -> ExpectedErrors | None:
    """Errors that drawing will add to efficient estimates of margins and two-way tables.

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
        None where there are too many values, as `ShareInformation.of` says, or the table is wide.

    Notes
    -----
    O(a b min(a, b) + tables · a min(a, b)).
    """
    if protocol.is_sparse:
        return None
    read = joint.read_by(protocol.inputs.columns)
    occurring = np.flatnonzero(read.p_input > 0)
    channel, shares = protocol.weights[:, occurring] / np.float64(DENOMINATOR), read.p_input[occurring]
    information: ShareInformation | CountedShares | None
    if protocol.is_invariant and protocol.outputs == read.inputs:
        information = CountedShares(channel[occurring], shares, joint.n)
    else:
        information = ShareInformation.of(channel, shares, joint.n)
    if information is None:
        return None
    tables = tables_of(information, read.inputs, occurring, joint.inputs.columns)
    return ExpectedErrors(tables, information.condition)


def tables_of(
    information: ShareInformation | CountedShares, inputs: Alphabet, occurring: IntArray, columns: Sequence[str]
) -> tuple[TableErrors, ...]:
    """The errors of every column, then of every two columns crossed.

    Parameters
    ----------
    information : ShareInformation or CountedShares
        About the shares of those ``inputs`` that occur.
    inputs : Alphabet
        What the channel reads.
    occurring : ndarray of int
        Places in it.
    columns : sequence of str
        Those that are published.
    """
    found = []
    for crossed in [*((column,) for column in columns), *combinations(columns, 2)]:
        values, of = cells_of(inputs, crossed, occurring)
        shares: FloatArray = np.bincount(of, information.shares, len(values)).astype(np.float64)
        sums = information.only_in_sum(of, len(values)) if len(crossed) == 1 else ()
        found.append(TableErrors(crossed, values, shares, information.errors(of, len(values)), sums))
    return tuple(found)
