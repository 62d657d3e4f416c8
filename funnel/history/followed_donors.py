"""Followed donors: versions of whole records about the same people, each published as one person after another."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from funnel.alphabet import CLASS_COLUMN, Alphabet
from funnel.errors import DataError, SpecError
from funnel.guarantees.base import Guarantee, PosteriorGuarantee
from funnel.history.decisions import (
    DECISION_PURPOSE,
    History,
    channel_digest,
    decision_array,
    decision_digest,
    decision_keys,
    history_digest,
)
from funnel.history.donor_beliefs import Belief, Moves
from funnel.history.donor_channels import DonorChannel, channel_for, require_kept
from funnel.history.donor_draws import StandIns, begun_as, draw_outputs, read_by
from funnel.history.panel_people import PanelPeople
from funnel.joint import BATCH_ROWS, FloatArray, IntArray, Joint
from funnel.sampling.codes import input_codes
from funnel.sampling.donors import Classifier
from funnel.sampling.keyed import DigestArray, RecordKey, encrypted_words, key_digests, word_key
from funnel.sampling.random_words import WordArray, WordStream
from funnel.tables import read_batches

if TYPE_CHECKING:
    import pandas as pd

_WORDS, _DONORS = "words of decisions about donors", "donors of decisions"


@dataclass(frozen=True, eq=False)
class DonorStep:
    """A version: what was decided for every history that its people have, and what was drawn.

    Attributes
    ----------
    version : str
    joint : Joint
        Counts (c, k) of the people by secret and class.
    channels : mapping of history to DonorChannel
        Outputs are numbers: k of "the same person goes on" and k of "another one begins", by class. A first record
        begins.
    people : mapping of history to int
        With each.
    released : pyarrow.Table
        The published columns and the class of each record; rows as in the table. The rest of a step is internal.
    histories : tuple of history
        Of every row, before the version.
    outputs : ndarray of int64, shape (rows,)
    stands_for : ndarray of int64, shape (rows,)
        The row whose record is published for each.
    """

    version: str
    joint: Joint
    channels: Mapping[History, DonorChannel]
    people: Mapping[History, int]
    released: pa.Table
    histories: tuple[History, ...]
    outputs: IntArray
    stands_for: IntArray

    @property
    def unchanged(self) -> float:
        """The share of records that are expected to be people's own."""
        of_each = (self.people[one] * channel.unchanged for one, channel in self.channels.items())
        return math.fsum(of_each) / self.joint.n

    @property
    def level(self) -> float:
        """The largest level of any output and version's secret, of people whom no change of frequencies moved, nats."""
        return max(channel.level for channel in self.channels.values())

    @property
    def moved(self) -> int:
        """People whose history alone is outside the bound for a secret."""
        return sum(self.people[one] for one, channel in self.channels.items() if channel.moved)

    @property
    def outside(self) -> int:
        """Those of them for whom some output is outside, no further than the history is."""
        return sum(self.people[one] for one, channel in self.channels.items() if channel.outside)

    @property
    def off(self) -> FloatArray:
        """By how many records each class is expected to be published too often, of people who may be unchanged, (k,).

        Beside the records that own ones would be, as an observer expects them.
        """
        return np.asarray(sum(self.people[one] * channel.off for one, channel in self.channels.items()))


@dataclass(frozen=True, eq=False)
class _Rows:
    """A table as it is read: rows, people by number, and their cells."""

    table: pa.Table
    numbers: IntArray
    cells: IntArray
    classes: int
    key: RecordKey | None


class FollowedDonors:
    """Whole records about the same people over versions, under one bound on everything that is published of a person.

    In the first version of a person the record stays, or is that of a donor, as `funnel.fit_columns` does it. Person or
    donor is then *followed*: the record goes on as theirs, as it is in each version, or another one begins, of a class
    that is drawn. Donors who leave cannot go on, so own records give way to others too, as often as the bound asks for.
    An observer who keeps all versions, sees where a record goes on and where another one begins, and knows how common
    every secret is in every class, every change of both, and how many of each class leave, has posteriors of the secret
    of every version that the guarantee bounds.

    Parameters
    ----------
    guarantee : Guarantee
        `funnel.LIP`, `funnel.ALIP`, `funnel.LDP` or `funnel.PML`, for everything together.
    classes : Classifier
        Which class every record is of, such as ``funnel.fit_columns(...).classes``; the same in all versions.
    budget_fraction : float
        In (0, 1): what the first version of a person uses of the budget. The one numbered m uses
        ``1 - (1 - budget_fraction) / m``: a history that is at the bound could tell nothing further.

    Attributes
    ----------
    steps : tuple of DonorStep

    Raises
    ------
    SpecError
        If the guarantee cannot be kept, the share is none, or classes are cut for observers of columns.
    """

    def __init__(self, guarantee: Guarantee, classes: Classifier, budget_fraction: float = 0.8) -> None:
        self.guarantee: PosteriorGuarantee = require_kept(guarantee)
        if not 0 < budget_fraction < 1:
            raise SpecError(f"budget_fraction is a share of the budget between 0 and 1, not {budget_fraction!r}")
        if classes.draws_evenly:
            raise SpecError(
                "classes that are cut for observers of any columns bound nothing over versions; make them without "
                "known columns"
            )
        self.classes, self.budget_fraction = classes, budget_fraction
        self.steps: tuple[DonorStep, ...] = ()
        self._columns: tuple[tuple[str, ...], tuple[str, ...]] | None = None
        self._people = PanelPeople()
        self._cells: dict[str, IntArray] = {}
        # By the number of a person: what was published of them, and the person whose record it was.
        self._histories: list[History] = []
        self._followed: list[int] = []
        self._beliefs: dict[History, Belief] = {}

    def extend(
        self,
        table: pd.DataFrame | pa.Table | str | os.PathLike[str],
        *,
        key: Sequence[str],
        secret: Sequence[str],
        version: str,
        secret_bytes: bytes | None = None,
    ) -> DonorStep:
        """Decide and draw the next version.

        Parameters
        ----------
        table : pandas.DataFrame, pyarrow.Table or path of a parquet file
            One row a person, with all columns of the classes.
        key : sequence of str
            Columns of text or whole numbers that identify a person over all versions.
        secret : sequence of str
            Columns of what is protected; the same in all versions, and none of those that are published.
        version : str
            A name of its own.
        secret_bytes : bytes, optional
            As for `funnel.History.extend`.

        Returns
        -------
        DonorStep

        Raises
        ------
        SpecError
            If the version is there already, or key or secret are not those of the versions before.
        DataError
            If the table cannot be read, keys are missing, repeated or of another type, secrets are new, or a class that
            is drawn has nobody else.
        """
        key, secret = tuple(key), tuple(secret)
        if not isinstance(version, str) or not version or version in self._cells:
            raise SpecError(f"version {version!r} has no name of its own; give the next one another name")
        if self._columns not in (None, (key, secret)):
            raise SpecError("all versions are about the same secret of people known by the same key; name these")
        if both := {*secret} & {*self.classes.columns}:
            raise SpecError(f"column {min(both)!r} is published and a secret; take it out of the classes or the secret")
        record_key = None if secret_bytes is None else RecordKey(key, secret_bytes)
        columns = tuple(dict.fromkeys((*key, *secret, *self.classes.columns)))
        rows = pa.Table.from_batches(list(read_batches(table, list(columns), BATCH_ROWS)))
        if not rows.num_rows:
            raise DataError(f"version {version!r} has no rows, so there is nobody to publish anything about")
        joint, cells = self._classified(rows, secret)
        people, numbers = self._people.find(rows, key)
        read = _Rows(rows, numbers, cells, len(joint.inputs), record_key)
        return self._commit(self._decided(read, joint, version), read, people, (key, secret))

    def _commit(
        self, step: DonorStep, rows: _Rows, people: PanelPeople, columns: tuple[tuple[str, ...], tuple[str, ...]]
    ) -> DonorStep:
        """Remember a version. Nothing of the panel has been changed so far: a call that fails leaves it as it was."""
        new = len(people.numbers) - len(self._histories)
        self._histories += [()] * new
        self._followed += [-1] * new
        here = np.full(len(self._histories), -1, dtype=np.int64)
        here[rows.numbers] = rows.cells
        counts = step.joint.counts.reshape(-1)
        for place, number in enumerate(rows.numbers.tolist()):
            output = int(step.outputs[place])
            history = (*step.histories[place], (step.version, output))
            if history not in self._beliefs:
                self._beliefs[history] = step.channels[step.histories[place]].after(output, counts)
            self._histories[number] = history
            self._followed[number] = int(rows.numbers[step.stands_for[place]])
        self._cells[step.version] = here
        self._people, self._columns, self.steps = people, columns, (*self.steps, step)
        return step

    def _classified(self, rows: pa.Table, secret: tuple[str, ...]) -> tuple[Joint, IntArray]:
        """Counts of secrets and classes, and the cell of every row."""
        joint = Joint.from_table(rows, secret, self.classes.columns)
        secrets = self.steps[0].joint.secret if self.steps else joint.secret
        if new := {*joint.secret.symbols} - {*secrets.symbols}:
            raise DataError(
                f"the secret has {len(new)} values that the first version has not; make that one with all values, or "
                "group them"
            )
        names = Alphabet((CLASS_COLUMN,), tuple((name,) for name in self.classes.names))
        of_class = self.classes.of_records(joint.inputs)[input_codes(rows, joint.inputs)]
        cells = input_codes(rows, secrets).astype(np.int64) * len(names) + of_class
        counts = np.bincount(cells, minlength=len(secrets) * len(names)).reshape(len(secrets), len(names))
        return Joint(counts.astype(np.int64), secrets, names), cells

    def _moves(self, version: str, here: IntArray) -> Moves:
        """What is known of a version and one in which people have these cells."""
        size = len(self.steps[0].joint.secret) * len(self.classes.names)
        before = self._cells[version]
        now = here[: len(before)]
        both = np.zeros((size, size), dtype=np.int64)
        there = (before >= 0) & (now >= 0)
        np.add.at(both, (before[there], now[there]), 1)
        return Moves(
            both,
            np.bincount(here[here >= 0], minlength=size),
            np.bincount(before[before >= 0], minlength=size),
            len(self.classes.names),
        )

    def _decided(self, rows: _Rows, joint: Joint, version: str) -> DonorStep:
        """A channel for every history, and what is drawn from it."""
        here = np.full(max(len(self._histories), int(rows.numbers.max()) + 1), -1, dtype=np.int64)
        here[rows.numbers] = rows.cells
        known = len(self._histories)
        histories = [self._histories[number] if number < known else () for number in rows.numbers.tolist()]
        channels: dict[History, DonorChannel] = {}
        moves = {before: self._moves(before, here) for before in {one[-1][0] for one in histories if one}}
        people: dict[History, int] = {}
        for history in histories:
            if history not in channels:
                channels[history] = self._channel(history, joint, moves)
            people[history] = people.get(history, 0) + 1
        followed = [self._followed[number] if number < known else number for number in rows.numbers.tolist()]
        row_of = {number: row for row, number in enumerate(rows.numbers.tolist())}
        standing = np.array([row_of.get(number, -1) for number in followed])
        of_class, k = rows.cells % rows.classes, len(joint.inputs)
        read = read_by(of_class, standing, k)
        decisions = _decisions(channels, joint.inputs)
        words = _Words(rows, np.array([decisions[history] for history in histories]))
        numbered = {history: place for place, history in enumerate(channels)}
        of_row = np.array([numbered[history] for history in histories])
        columns = np.concatenate([channel.weights for channel in channels.values()], axis=1)
        outputs = draw_outputs(columns, of_row * (2 * k + 1) + read, words.of(_WORDS))
        later = np.array([bool(history) for history in histories])
        order = np.arange(len(histories))
        if rows.key is not None:
            digests = key_digests(rows.table, rows.key)
            order = np.lexsort((digests[:, 1], digests[:, 0]))
        donors = StandIns(of_class, order, lambda attempt: words.of(f"{_DONORS} {attempt}"))
        stands_for = donors.drawn(standing, begun_as(outputs, read, later, k), later)
        released = rows.table.select(list(self.classes.columns)).take(stands_for)
        names = pa.array([self.classes.names[cell % len(joint.inputs)] for cell in rows.cells[stands_for].tolist()])
        released = released.append_column(CLASS_COLUMN, names)
        return DonorStep(version, joint, channels, people, released, tuple(histories), outputs, stands_for)

    def _channel(self, history: History, joint: Joint, moves: Mapping[str, Moves]) -> DonorChannel:
        """The channel of one history."""
        belief, stays = Belief.of_new(joint.counts.reshape(-1), len(joint.secret), len(self.steps)), Fraction(1)
        if history:
            known = moves[history[-1][0]]
            belief = self._beliefs[history].at(len(self.steps), known)
            stays = known.stays(history[-1][1] % len(joint.inputs))
        return channel_for(belief, stays, joint, self.guarantee, self.budget_fraction)


@dataclass(frozen=True, eq=False)
class _Words:
    """Words for every row: fresh, or of keys and what is decided about their histories, for one purpose each."""

    rows: _Rows
    decisions: DigestArray

    def of(self, purpose: str) -> WordArray:
        """Uniform words (rows,)."""
        if self.rows.key is None:
            return WordStream().words(len(self.rows.numbers))
        decided = word_key(self.rows.key, DECISION_PURPOSE)
        keys = decision_keys(key_digests(self.rows.table, self.rows.key), self.decisions, decided)
        return encrypted_words(keys, word_key(self.rows.key, purpose))


def _decisions(channels: Mapping[History, DonorChannel], classes: Alphabet) -> dict[History, WordArray]:
    """What tells the decision about each history from all others: two numbers."""
    names = [name for (name,) in classes.symbols]
    inputs = [*(("own", name) for name in names), *(("donor", name) for name in names), ("gone", "")]
    outputs = [*(("goes on", name) for name in names), *(("begins", name) for name in names)]
    columns = ("record", *classes.columns)
    alphabets = Alphabet(columns, tuple(inputs)), Alphabet(columns, tuple(outputs))
    digests = [
        decision_digest(history_digest(history), channel_digest(channel.weights, *alphabets))
        for history, channel in channels.items()
    ]
    return dict(zip(channels, decision_array(digests), strict=True))
