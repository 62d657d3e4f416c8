"""Donor units: whole records of several rows of a person, each published as the rows of one person after another."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from secrets import token_bytes
from typing import TYPE_CHECKING, Self

import numpy as np
import pyarrow as pa

from funnel.alphabet import CLASS_COLUMN
from funnel.errors import DataError, SpecError
from funnel.guarantees.base import Guarantee
from funnel.history.changes import Changes
from funnel.history.distributions import BoolArray
from funnel.history.donor_channels import FEWEST, begin_anew, first_protocol, require_kept
from funnel.history.donor_draws import StandIns, begun_as, draw_outputs, read_by
from funnel.history.donor_step import decide_donors, effective_channel, over_classes
from funnel.history.followed_donors import classified
from funnel.history.following import VersionTerms
from funnel.history.observed import Members, Observed
from funnel.history.panel_people import names_of, read_rows, words_of
from funnel.history.past import Past, wave_name
from funnel.history.step import Step
from funnel.history.unit_rows import MOST_MEMBERS, UnitRows, counted_cells, row_changes
from funnel.joint import FloatArray, IntArray, Joint
from funnel.measures import mutual_information
from funnel.protocol import WORD_BITS, WeightArray
from funnel.sampling.donors import Classifier
from funnel.sampling.keyed import (
    RecordKey,
    count_missing_keys,
    decision_keys,
    encrypted_words,
    key_digests,
    missing_keys_error,
    word_key,
)
from funnel.sampling.random_words import WordArray
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
    table_of_units = UnitTable.of(rows, cells, joint)

    def words(step: Step, nodes: IntArray, at: IntArray, attempt: int | None) -> WordArray:
        return words_of(step, nodes, records.take(at), key, _WORDS if attempt is None else f"{_DONORS} {attempt}")

    places = np.stack([rows.places, np.zeros(len(cells), dtype=np.int64)], axis=1).astype(np.uint64)
    keys = decision_keys(np.ascontiguousarray(digests[rows.units]), places, word_key(key, _RARE))
    drawn = table_of_units.drawn(VersionTerms(require_kept(guarantee), version, reserve=budget_fraction), words)
    drawn = table_of_units.with_others(
        drawn, lambda attempt: encrypted_words(keys, word_key(key, _RARE if attempt is None else f"{_RARE} {attempt}"))
    )
    names = pa.array([classes.names[cell % len(joint.inputs)] for cell in cells[drawn.stands_for].tolist()])
    released = records.select(list(classes.columns)).take(drawn.stands_for).append_column(CLASS_COLUMN, names)
    outputs = np.where(drawn.before < 0, -1, drawn.outputs)
    step = drawn.step
    return UnitRecords(released, rows, outputs, drawn.stands_for, step.waves, step.level.value, step.own or 0.0)


def common_rows(rows: UnitRows, of_class: IntArray, known: BoolArray | None = None) -> BoolArray:
    """Which rows, of all or of those that are known, are of units with a number of rows that is not rare.

    Raises
    ------
    DataError
        If every number is.
    """
    sizes, k = np.bincount(rows.units)[rows.units], int(of_class.max()) + 1
    there, found = np.bincount(of_class, minlength=k) > 0, np.zeros(len(sizes), dtype=np.bool_)
    for m in np.unique(sizes).tolist():
        here = (sizes == m) & (True if known is None else known)
        counts = np.bincount((rows.places[here] - 1) * k + of_class[here], minlength=m * k).reshape(m, k)
        found[here] = (counts[:, there] >= FEWEST).all()
    if not found.any():
        raise DataError(
            f"for every number of rows fewer than {FEWEST} units with it have a row of some class in some place; use "
            "fewer, larger classes"
        )
    return found


Words = Callable[[Step, IntArray, IntArray, int | None], WordArray]
"""Words of some rows, given the step, the history of each and their numbers: to draw with, or for the nth donor."""


@dataclass(frozen=True, eq=False)
class DrawnUnits:
    """What was drawn of rows of units.

    Attributes
    ----------
    step : Step
        All rows as one: `Step.waves` has the first ones, the second ones, ….
    past : Past
        With all of these.
    first : Joint
        Counts of the first rows of units whose number of rows is common.
    within : Changes or None
        From a row of such units to the next one.
    before, after : ndarray of int64, shape (rows,)
        The history before every row, and after it; -1 of units whose number of rows is rare.
    read, outputs, stands_for : ndarray of int64, shape (rows,)
        What the channel of every row reads, what was drawn, and the row whose record is published for it.
    """

    step: Step
    past: Past
    first: Joint
    within: Changes | None
    before: IntArray
    after: IntArray
    read: IntArray
    outputs: IntArray
    stands_for: IntArray


@dataclass(frozen=True, eq=False)
class UnitTable:
    """Rows of units that are to be drawn.

    Attributes
    ----------
    rows : UnitRows
        Units are numbered in an order that does not depend on that of the table.
    cells : ndarray of int64, shape (rows,)
        Secret and class, by their places in ``joint``.
    joint : Joint
        Counts (c, k) of all rows.
    common : ndarray of int64, shape (m,)
        Those of units whose number of rows is not rare.
    """

    rows: UnitRows
    cells: IntArray
    joint: Joint
    common: IntArray

    @classmethod
    def of(cls, rows: UnitRows, cells: IntArray, joint: Joint, known: BoolArray | None = None) -> Self:
        """Of all rows, or of those that are known: of all others nothing is read."""
        found = common_rows(rows, cells % len(joint.inputs), known)
        return cls(rows, cells, joint, np.flatnonzero(found))

    @property
    def _classes(self) -> int:
        return len(self.joint.inputs)

    def drawn(self, terms: VersionTerms, words: Words) -> DrawnUnits:
        """Decide and draw the rows of common numbers, row by row; nothing yet of all others."""
        k, cells, number = self._classes, self.cells[self.common], self.common
        _, units = np.unique(self.rows.units[number], return_inverse=True)
        rows = UnitRows(units.reshape(-1).astype(np.int64), self.rows.places[number])
        first = counted_cells(cells[rows.at(1)], self.joint)
        within = row_changes(rows, cells, first) if rows.deepest > 1 else None
        members = None if within is None else Members(within, rows.deepest)
        if terms.target is None:
            terms = replace(terms, target=first_protocol(first, require_kept(terms.guarantee), terms.reserve))
        before, after, read, outputs, stands_for = (np.full(len(self.cells), -1, dtype=np.int64) for _ in range(5))
        past, steps, table = Past(), list[Step](), np.zeros((k, 2 * k))
        nodes, standing = np.zeros(rows.count, dtype=np.int64), np.arange(rows.count)
        for row in range(1, rows.deepest + 1):
            at = rows.at(row)
            here, whole = rows.units[at], number[at]
            since = {} if within is None or row == 1 else {len(past) - 1: within}
            observed = Observed.counted(counted_cells(cells[at], self.joint), since, nodes[here], cells[at] % k)
            observed = replace(observed, row=row, of_units=True, members=members)
            step, expected = decide_donors(past, observed, replace(terms, version=wave_name(terms.version, row)))
            # Donors have as many rows, so theirs are here too.
            place = np.full(rows.count, -1)
            place[here] = np.arange(len(here))
            before[whole] = nodes[here]
            read[whole], outputs[whole], taken = self._wave(step, nodes[here], whole, place[standing[here]], words)
            chapter, nodes[here] = step.published(nodes[here], outputs[whole])
            past, standing[here] = past.followed_by(chapter), here[taken]
            after[whole], stands_for[whole] = nodes[here], whole[taken]
            steps.append(step)
            table += expected
            terms.progress(f"row {row} of every unit", int(np.count_nonzero(rows.places <= row)), len(self.cells))
        return DrawnUnits(
            self._together(steps, table, before, terms), past, first, within, before, after, read, outputs, stands_for
        )

    def _wave(
        self, step: Step, nodes: IntArray, at: IntArray, standing: IntArray, words: Words
    ) -> tuple[IntArray, IntArray, IntArray]:
        """What rows in one place read, their outputs, and which of them is published for each; standing before it."""
        k, later = self._classes, np.full(len(at), step.observed.row > 1)
        of_class, sizes = self.cells[at] % k, np.bincount(self.rows.units)[self.rows.units[at]]
        read = read_by(of_class, standing, k)
        columns = np.concatenate([*step.library], axis=1)
        drawn = words(step, nodes, at, None)
        said = draw_outputs(columns, step.channels_of(nodes) * (2 * k + 1) + read, drawn)
        begins, taken = begun_as(said, read, later, k), np.empty(len(at), dtype=np.int64)
        for m in np.unique(sizes).tolist():
            some = np.flatnonzero(sizes == m)
            inside = np.full(len(at), -1)
            inside[some] = np.arange(len(some))
            asked = partial(words, step, nodes[some], at[some])
            who = StandIns(of_class[some], np.argsort(self.rows.units[at[some]]), asked)
            taken[some] = some[who.drawn(inside[standing[some]], begins[some], later[some])]
        return read, said, taken

    @property
    def anybody(self) -> WeightArray:
        """The column by which a row is published as one of a class whoever it is of, (2k,): as common rows have it."""
        k = self._classes
        return np.asarray(begin_anew(np.bincount(self.cells[self.common] % k, minlength=k))[:, 0])

    def with_others(self, drawn: DrawnUnits, words: Callable[[int | None], WordArray]) -> DrawnUnits:
        """The same with rows of all other units, each published as that of anybody, each as likely.

        ``words`` has some of all rows: to draw with, or for the nth donor.
        """
        k, others = self._classes, drawn.before < 0
        column, of_class = self.anybody[:, None], self.cells % k
        outputs = draw_outputs(column, np.zeros(len(others), dtype=np.int64), words(None))
        order = self.common[np.lexsort((self.rows.places[self.common], self.rows.units[self.common]))]
        begins, nobody = np.where(others, outputs - k, -1), np.where(others, -1, np.arange(len(others)))
        taken = StandIns(of_class, order, words).drawn(nobody, begins, np.zeros(len(others), dtype=np.bool_))
        return replace(
            drawn,
            read=np.where(others, 2 * k, drawn.read),
            outputs=np.where(others, outputs, drawn.outputs),
            stands_for=np.where(others, taken, drawn.stands_for),
        )

    def _together(self, steps: Sequence[Step], table: FloatArray, before: IntArray, terms: VersionTerms) -> Step:
        """All rows as one step; those of rare numbers are published as anybody's."""
        k, joint, others = self._classes, self.joint, before < 0
        of_class = self.cells % k
        silent = np.bincount(of_class[others], minlength=k)
        table = table + np.outer(silent, np.ldexp(self.anybody.astype(np.float64), -WORD_BITS))
        pairs, records = np.unique(np.maximum(before, 0) * k + of_class, return_counts=True)
        observed = Observed(joint, {}, pairs // k, pairs % k, records, silent)
        channel = effective_channel(joint, table, terms.aim)
        return replace(
            Step.of_waves(steps, observed, terms.aim, channel),
            utility=mutual_information(joint, over_classes(channel)),
            own=math.fsum((step.own or 0.0) * step.joint.n for step in steps) / joint.n,
        )
