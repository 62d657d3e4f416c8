"""Panel people: who was in which version of a panel, what their cells were, and whether they ever changed."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from funnel.errors import DataError
from funnel.history.changes import Changes
from funnel.history.decisions import DECISION_PURPOSE
from funnel.history.distributions import BoolArray
from funnel.history.mover_stayer import changes_without_class, class_cells, differs
from funnel.history.past import Past
from funnel.history.step import Step
from funnel.joint import BATCH_ROWS, IntArray, Joint
from funnel.sampling.keyed import (
    MIN_SECRET_BYTES,
    RecordKey,
    count_missing_keys,
    decision_keys,
    encrypted_words,
    key_digests,
    key_kind,
    missing_keys_error,
    repeated_keys_error,
    word_key,
)
from funnel.sampling.random_words import WordArray, WordStream
from funnel.tables import read_batches

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class _Attendance:
    """Everybody in one version.

    Attributes
    ----------
    cells : ndarray of int64, shape (people so far,)
        -1 of people who are not in it.
    changed : ndarray of bool, shape (people so far,)
        Whether they ever changed, up to it.
    chapters : int
        How many chapters the version has: one for each row of a person.
    """

    cells: IntArray
    changed: BoolArray
    chapters: int

    def of(self, numbers: IntArray) -> tuple[IntArray, BoolArray]:
        """Cells, and whether they had changed, of people by their numbers; new ones too."""
        known = numbers < len(self.cells)
        cells, changed = np.full(len(numbers), -1, dtype=np.int64), np.zeros(len(numbers), dtype=bool)
        cells[known], changed[known] = self.cells[numbers[known]], self.changed[numbers[known]]
        return cells, changed


@dataclass(frozen=True, eq=False)
class PanelPeople:
    """Who was in which version, and what was published about them; people are numbered as they appear.

    Attributes
    ----------
    nodes : ndarray of int64, shape (people,)
        The history of everybody.
    versions : tuple of _Attendance
    numbers : mapping of bytes to int
        Of people, by a digest of their key under a secret of this object alone.
    kinds : tuple of str or None, optional
        Types of the keys.
    """

    nodes: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    versions: tuple[_Attendance, ...] = ()
    numbers: Mapping[bytes, int] = field(default_factory=dict)
    kinds: tuple[str | None, ...] | None = None
    _secret: bytes = field(default_factory=lambda: os.urandom(MIN_SECRET_BYTES), repr=False)

    def find(self, rows: pa.Table, key: tuple[str, ...]) -> tuple[PanelPeople, IntArray]:
        """The numbers of the people of a version, (rows,), and everybody with those who are new.

        Raises
        ------
        DataError
            If people cannot be told apart, or found again.
        """
        record_key = RecordKey(key, self._secret)
        if missing := count_missing_keys(rows, record_key):
            raise missing_keys_error(missing, record_key)
        kinds = tuple(key_kind(rows.schema.field(name).type) for name in key)
        if self.kinds is not None and kinds != self.kinds and None not in kinds:
            raise DataError(
                f"the keys {list(key)} are of other types than before, so nobody would be found again; "
                "make them text or whole numbers as in the versions before"
            )
        digests = np.ascontiguousarray(key_digests(rows, record_key))
        names = digests.view("V16").reshape(-1).tolist()
        if repeated := len(names) - len(set(names)):
            raise repeated_keys_error(repeated, record_key)
        new = (name for name in names if name not in self.numbers)
        numbers = {**self.numbers, **{name: len(self.numbers) + place for place, name in enumerate(new)}}
        nodes = np.concatenate([self.nodes, np.zeros(len(numbers) - len(self.nodes), dtype=np.int64)])
        found = np.array([numbers[name] for name in names], dtype=np.int64)
        return replace(self, nodes=nodes, numbers=numbers, kinds=kinds), found

    def changes(
        self, numbers: IntArray, cells: IntArray, joint: Joint, past: Past
    ) -> tuple[dict[int, Changes], dict[int, Changes], BoolArray]:
        """Changes from every earlier chapter, the same by class, and whether the people of this version ever changed.

        Parameters
        ----------
        numbers, cells : ndarray of int64, shape (rows,)
            People of this version, and their cells in it.
        joint : Joint
            Of this version.
        past : Past
            The chapters before.
        """
        distributions = [chapter.joint for chapter in past.chapters]
        have_changed = np.zeros(len(numbers), dtype=bool)
        before, first = [], 0
        for version in self.versions:
            was, had = version.of(numbers)
            both, distribution = was >= 0, distributions[first]
            have_changed[both] |= had[both] | differs(distribution, was[both], joint, cells[both])
            before.append((both, class_cells(was[both], had[both], len(distribution.inputs))))
            first += version.chapters
        now = class_cells(cells, have_changed, len(joint.inputs))
        found: list[Changes] = []
        for version, (both, classes) in zip(self.versions, before, strict=True):
            found += [Changes.counted(classes, now[both])] * version.chapters
        of_people = [changes_without_class(one, was, joint) for one, was in zip(found, distributions, strict=True)]
        return dict(enumerate(of_people)), dict(enumerate(found)), have_changed

    def published(
        self, numbers: IntArray, cells: IntArray, nodes: IntArray, have_changed: BoolArray, chapters: int
    ) -> PanelPeople:
        """Everybody once a version of so many chapters is published: its people with their last cells and histories."""
        of_all, here = self.nodes.copy(), np.full(len(self.nodes), -1, dtype=np.int64)
        changed = np.zeros(len(self.nodes), dtype=bool)
        of_all[numbers], here[numbers], changed[numbers] = nodes, cells, have_changed
        return replace(self, nodes=of_all, versions=(*self.versions, _Attendance(here, changed, chapters)))


def names_of(columns: Sequence[str]) -> tuple[str, ...]:
    """Columns that are named, also where one is as a text."""
    return (columns,) if isinstance(columns, str) else tuple(columns)


def read_rows(
    table: pd.DataFrame | pa.Table | str | os.PathLike[str], columns: Sequence[str], version: str
) -> pa.Table:
    """Some columns of the table of a version.

    Raises
    ------
    DataError
        If it cannot be read, or has no rows.
    """
    batches = list(read_batches(table, list(dict.fromkeys(columns)), BATCH_ROWS))
    if not any(batch.num_rows for batch in batches):
        raise DataError(f"version {version!r} has no rows, so there is nobody to publish anything about")
    return pa.Table.from_batches(batches)


def words_of(step: Step, nodes: IntArray, rows: pa.Table, record_key: RecordKey | None, purpose: str) -> WordArray:
    """Words for everybody, (rows,), for a purpose: fresh, or of keys and what is decided about their histories."""
    if record_key is None:
        return WordStream().words(len(nodes))
    decided = word_key(record_key, DECISION_PURPOSE)
    keys = decision_keys(key_digests(rows, record_key), step.decisions(nodes), decided)
    return encrypted_words(keys, word_key(record_key, purpose))
