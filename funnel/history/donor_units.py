"""Donor units: whole records of several rows of a person, each published as the rows of one person after another."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from secrets import token_bytes
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from funnel.alphabet import CLASS_COLUMN
from funnel.errors import DataError, SpecError
from funnel.guarantees.base import Guarantee
from funnel.history.distributions import BoolArray
from funnel.history.donor_channels import FEWEST, first_protocol, require_kept
from funnel.history.donor_draws import StandIns, begun_as, draw_outputs, read_by
from funnel.history.donor_step import donor_step
from funnel.history.followed_donors import classified
from funnel.history.following import VersionTerms
from funnel.history.observed import Members, Observed
from funnel.history.panel_people import names_of, read_rows, words_of
from funnel.history.past import Past, wave_name
from funnel.history.step import Step
from funnel.history.unit_rows import MOST_MEMBERS, UnitRows, counted_cells, row_changes
from funnel.joint import IntArray, Joint
from funnel.sampling.donors import Classifier, uniform_below
from funnel.sampling.keyed import (
    DigestArray,
    RecordKey,
    count_missing_keys,
    decision_keys,
    encrypted_words,
    key_digests,
    missing_keys_error,
    word_key,
)
from funnel.sampling.unit_order import order_of_rows

if TYPE_CHECKING:
    import pandas as pd

# What words are derived for.
_WORDS, _DONORS, _RARE = "words of rows of donors", "donors of rows", "rows of units with a rare number"
_SECRET_BYTES = 32


@dataclass(frozen=True, eq=False)
class UnitRecords:
    """Published rows of units.

    Attributes
    ----------
    released : pyarrow.Table
        The published columns and the class of each record; rows as in the table. The rest is internal.
    rows : UnitRows
        Whose each row is, and in which order those of a unit were drawn.
    outputs : ndarray of int64, shape (rows,)
        k of "the same unit goes on" and k of "another one begins", by class; a first record begins. -1 in units whose
        number of rows is rare.
    stands_for : ndarray of int64, shape (rows,)
        The row whose record is published for each.
    waves : tuple of Step
        What was decided for the first rows of units, the second ones, ….
    level : float
        The largest, nats.
    own : float
        The share of all records that are expected to be units' own.
    """

    released: pa.Table
    rows: UnitRows
    outputs: IntArray
    stands_for: IntArray
    waves: tuple[Step, ...]
    level: float
    own: float


def publish_units(
    table: pd.DataFrame | pa.Table | str | os.PathLike[str],
    guarantee: Guarantee,
    classes: Classifier,
    *,
    unit: Sequence[str],
    secret: Sequence[str],
    version: str = "rows",
    budget_fraction: float = 0.8,
    secret_bytes: bytes | None = None,
) -> UnitRecords:
    """Publish whole records of a table in which a person has several rows, under one bound on everything published.

    Rows of a unit are drawn one after the other in a random order. The first record stays or is that of a donor, a unit
    with as many rows, whose records then go on for it, until those of another unit begin. An observer who sees which
    rows are of one unit and where records go on and begin, and knows how common every secret is in every class of first
    rows, how one row follows another, and how many rows units have, has posteriors of the secret of each row, drawn or
    to come, that the guarantee bounds.

    A number of rows is *rare* if fewer than three units with it have a row of some class in some place. Each row of
    such units is published as a row of anybody else: nothing is read of them, and nobody learns of them.

    Parameters
    ----------
    table : pandas.DataFrame, pyarrow.Table or path of a parquet file
        With the columns of the unit, the secret and all of the classes.
    guarantee : Guarantee
        `funnel.LIP`, `funnel.ALIP`, `funnel.LDP` or `funnel.PML`.
    classes : Classifier
        Which class every record is of, such as ``funnel.fit_columns(...).classes``.
    unit, secret : sequence of str
        Columns; the secret may differ from row to row of a unit.
    version : str
    budget_fraction : float
        In (0, 1): what first rows use of the budget; the row numbered m uses ``1 - (1 - budget_fraction) / m``.
    secret_bytes : bytes, optional
        With it the same table is drawn the same again; fresh without it.

    Raises
    ------
    SpecError
        If the guarantee cannot be kept, a unit has more than 24 rows, or the secret is published.
    DataError
        If the table cannot be read, rows have no unit, or every number of rows is rare.
    """
    if not 0 < budget_fraction < 1:
        raise SpecError(f"budget_fraction is a share of the budget between 0 and 1, not {budget_fraction!r}")
    if classes.draws_evenly:
        raise SpecError("classes that are cut for observers of any columns bound no rows of units; make them without")
    unit, secret = names_of(unit), names_of(secret)
    if both := {*secret} & {*classes.columns}:
        raise SpecError(f"column {min(both)!r} is published and a secret; take it out of the classes or the secret")
    key = RecordKey(unit, token_bytes(_SECRET_BYTES) if secret_bytes is None else secret_bytes)
    records = read_rows(table, (*unit, *secret, *classes.columns), version)
    if missing := count_missing_keys(records, key):
        raise missing_keys_error(missing, key)
    joint, cells = classified(records, secret, classes, None)
    digests, of_rows = np.unique(np.ascontiguousarray(key_digests(records, key)), axis=0, return_inverse=True)
    of_rows = of_rows.reshape(-1).astype(np.int64)
    rows = UnitRows.ordered(of_rows, order_of_rows(digests, of_rows, key))
    rows.require_few(MOST_MEMBERS, " that are bounded one by one", f"units ({', '.join(map(repr, unit))})")
    common = np.flatnonzero(common_rows(rows, cells % len(joint.inputs)))
    drawing = _Drawing(rows, cells, joint, common, records, digests, key)
    terms = VersionTerms(require_kept(guarantee), version, reserve=budget_fraction)
    waves, outputs, stands_for = drawing.drawn(terms)
    names = pa.array([classes.names[cell % len(joint.inputs)] for cell in cells[stands_for].tolist()])
    released = records.select(list(classes.columns)).take(stands_for).append_column(CLASS_COLUMN, names)
    own = math.fsum((step.own or 0.0) * step.joint.n for step in waves) / len(cells)
    return UnitRecords(released, rows, outputs, stands_for, waves, max(one.level.value for one in waves), own)


def common_rows(rows: UnitRows, of_class: IntArray) -> BoolArray:
    """Which rows are of units with a number of rows that is not rare.

    Raises
    ------
    DataError
        If every number is.
    """
    sizes, k = np.bincount(rows.units)[rows.units], int(of_class.max()) + 1
    there, found = np.bincount(of_class, minlength=k) > 0, np.zeros(len(sizes), dtype=np.bool_)
    for m in np.unique(sizes).tolist():
        here = sizes == m
        counts = np.bincount((rows.places[here] - 1) * k + of_class[here], minlength=m * k).reshape(m, k)
        found[here] = (counts[:, there] >= FEWEST).all()
    if not found.any():
        raise DataError(
            f"for every number of rows fewer than {FEWEST} units with it have a row of some class in some place; use "
            "fewer, larger classes"
        )
    return found


@dataclass(frozen=True, eq=False)
class _Drawing:
    """Rows of units that are to be drawn; ``common`` are those of units whose number of rows is not rare."""

    rows: UnitRows
    cells: IntArray
    joint: Joint
    common: IntArray
    records: pa.Table
    digests: DigestArray
    key: RecordKey

    def drawn(self, terms: VersionTerms) -> tuple[tuple[Step, ...], IntArray, IntArray]:
        """The steps of all rows, the output of each, and the row whose record is published for it."""
        k, cells, number = len(self.joint.inputs), self.cells[self.common], self.common
        _, units = np.unique(self.rows.units[number], return_inverse=True)
        rows = UnitRows(units.reshape(-1).astype(np.int64), self.rows.places[number])
        first = counted_cells(cells[rows.at(1)], self.joint)
        within = row_changes(rows, cells, first) if rows.deepest > 1 else None
        members = None if within is None else Members(within, rows.deepest)
        terms = replace(terms, target=first_protocol(first, require_kept(terms.guarantee), terms.reserve))
        outputs, stands_for = np.full(len(self.cells), -1, dtype=np.int64), self._anybody()
        past, steps = Past(), list[Step]()
        nodes, standing = np.zeros(rows.count, dtype=np.int64), np.arange(rows.count)
        for row in range(1, rows.deepest + 1):
            at = rows.at(row)
            here = rows.units[at]
            since = {} if within is None or row == 1 else {len(past) - 1: within}
            observed = Observed.counted(counted_cells(cells[at], self.joint), since, nodes[here], cells[at] % k)
            observed = replace(observed, row=row, of_units=True, members=members)
            step = donor_step(past, observed, replace(terms, version=wave_name(terms.version, row)))
            # Donors have as many rows, so theirs are here too.
            place = np.full(rows.count, -1)
            place[here] = np.arange(len(here))
            said, taken = self._wave(step, nodes[here], number[at], place[standing[here]])
            chapter, nodes[here] = step.published(nodes[here], said)
            past, standing[here] = past.followed_by(chapter), here[taken]
            outputs[number[at]], stands_for[number[at]] = said, number[at[taken]]
            steps.append(step)
        return tuple(steps), outputs, stands_for

    def _wave(self, step: Step, nodes: IntArray, at: IntArray, standing: IntArray) -> tuple[IntArray, IntArray]:
        """The outputs of rows in one place, and which of them is published for each; standing for each before."""
        k, later = len(step.joint.inputs), np.full(len(at), step.observed.row > 1)
        of_class, sizes = self.cells[at] % k, np.bincount(self.rows.units)[self.rows.units[at]]
        read = read_by(of_class, standing, k)
        words = words_of(step, nodes, self.records.take(at), self.key, _WORDS)
        columns = np.concatenate([*step.library], axis=1)
        said = draw_outputs(columns, step.channels_of(nodes) * (2 * k + 1) + read, words)
        begins, taken = begun_as(said, read, later, k), np.empty(len(at), dtype=np.int64)
        for m in np.unique(sizes).tolist():
            some = np.flatnonzero(sizes == m)
            inside = np.full(len(at), -1)
            inside[some] = np.arange(len(some))
            asked = partial(_donor_words, step, nodes[some], self.records.take(at[some]), self.key)
            # Units are numbered in the order of their digests.
            who = StandIns(of_class[some], np.argsort(self.rows.units[at[some]]), asked)
            taken[some] = some[who.drawn(inside[standing[some]], begins[some], later[some])]
        return said, taken

    def _anybody(self) -> IntArray:
        """A row of a common number of rows for every row, each as likely; (rows,)."""
        count = len(self.cells)
        places = np.stack([self.rows.places, np.zeros(count, dtype=np.int64)], axis=1).astype(np.uint64)
        keys = decision_keys(np.ascontiguousarray(self.digests[self.rows.units]), places, word_key(self.key, _RARE))
        limits = np.full(count, len(self.common), dtype=np.int64)
        drawn = uniform_below(
            limits, np.arange(count), lambda attempt: encrypted_words(keys, word_key(self.key, f"{_RARE} {attempt}"))
        )
        return self.common[drawn]


def _donor_words(step: Step, nodes: IntArray, rows: pa.Table, key: RecordKey, attempt: int) -> np.ndarray:
    return words_of(step, nodes, rows, key, f"{_DONORS} {attempt}")
