"""Panel: versions of a table about the same people, published one after the other under one bound."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from funnel.errors import DataError, SpecError
from funnel.guarantees.base import Guarantee
from funnel.guarantees.robust_guarantee import RobustRatio
from funnel.guarantees.rsrlip import RSRLIP
from funnel.history.allowed import allowed_by, require_posterior
from funnel.history.changes import Changes
from funnel.history.exact_distribution import moved_on, published
from funnel.history.following import VersionTerms
from funnel.history.observed import Observed, Secrets
from funnel.history.observers import MOVER_STAYER, OBSERVERS, TRANSITIONS, checked_observers
from funnel.history.panel_people import PanelPeople, names_of, read_rows, words_of
from funnel.history.past import Past
from funnel.history.step import Step
from funnel.history.unit_rows import UnitRows
from funnel.history.waves import CountedUnits, Draw, UnitVersion, Waves, follow_waves
from funnel.joint import FloatArray, IntArray, Joint
from funnel.measures.utilities import Utility, utility_of
from funnel.progress import Progress, quiet
from funnel.protocol import Protocol
from funnel.sampling.codes import input_codes
from funnel.sampling.keyed import (
    MIN_SECRET_BYTES,
    RecordKey,
    count_missing_keys,
    encrypted_words,
    key_digests,
    missing_keys_error,
    word_key,
)
from funnel.sampling.output_columns import OutputColumns
from funnel.sampling.random_words import WordArray, WordStream
from funnel.wording import listed

if TYPE_CHECKING:
    import pandas as pd

_WORDS_PURPOSE, _ORDER_PURPOSE = "words of decisions", "order of the rows of a unit"


class History:
    """Everything published about some people, version by version, and what may be published next.

    An observer who can link all versions of a person, and knows the frequencies of every version and of every change
    between two, has posteriors of the secret now and of that of every version before which the guarantee bounds,
    however many versions there are (METHOD sections 9 and 13). People may join, leave and come back, secrets and
    categories may change.

    Parameters
    ----------
    guarantee : Guarantee
        Declared for everything together: `funnel.LIP`, `funnel.ALIP`, `funnel.PML`, `funnel.LDP` or
        `funnel.PerfectPrivacy`; or `funnel.RLIP`, `funnel.RALIP`, `funnel.RPML`, `funnel.RLDP`, `funnel.RSRLIP` or
        `funnel.RAttribute` over boxes, for the population that the people, or the units, of all versions are
        a sample of.
    budget_fraction : float
        In (0, 1]: the share of the budget that is used where the histories allow it. What is kept back makes fewer
        people be moved beyond the bound when frequencies change.
    read_alone : bool
        Whether the effective channel of every version has to meet the guarantee by itself as well, as it has to in
        published releases; see `funnel.history.following.VersionTerms`.
    observers : sequence of str
        For whom everything is bounded: ``"transitions"`` knows how common every change is, and ``"mover-stayer"`` knows
        how common it is among people who changed before and among people who never did (METHOD section 16). By default
        both, but the first alone where versions have several rows of a unit: there is no second one then. Every step
        names those that it is for.
    secrets : "all" or "current"
        What is bounded for them: the secrets that a person had in all versions so far (METHOD section 13), or the
        secret of each version once it is published, and nothing of what later versions tell of it. By default all,
        and under a robust guarantee the current ones, which are all that it can be kept for.
    utility : str or funnel.measures.Utility
        What the effective channel of every version is to reach the most of: ``"information"``, ``"variance"`` or
        ``"estimation"``.

    Attributes
    ----------
    past : Past
        What was published, as a tree of histories.
    steps : tuple of Step
        What was decided for each version.

    Raises
    ------
    SpecError
        If the guarantee is no bound on the posterior of the secret alone, or a setting is none of those that there are.

    Examples
    --------
    >>> import funnel, pyarrow
    >>> panel = funnel.History(funnel.LIP(1.0))
    >>> people = {"id": range(100), "ill": ["yes", "no"] * 50, "size": ["small", "small", "large", "large"] * 25}
    >>> first = panel.extend(pyarrow.table(people), key=["id"], secret=["ill"], inputs=["size"], version="1985")
    >>> second = panel.extend(pyarrow.table(people), key=["id"], secret=["ill"], inputs=["size"], version="1986")
    >>> second.level.value <= 1, second.outside, second.released.num_rows
    (True, 0, 100)
    """

    def __init__(
        self,
        guarantee: Guarantee,
        budget_fraction: float = 1.0,
        read_alone: bool = False,
        observers: Sequence[str] | None = None,
        secrets: Secrets | None = None,
        utility: str | Utility = "information",
    ) -> None:
        self.guarantee = require_posterior(guarantee)
        if not 0 < budget_fraction <= 1:
            raise SpecError(f"budget_fraction is a share of the budget above 0 and at most 1, not {budget_fraction!r}")
        self.budget_fraction, self.read_alone = budget_fraction, read_alone
        self.observers = None if observers is None else checked_observers(observers)
        if secrets not in (None, "all", "current"):
            raise SpecError(f'secrets are "all", of every version, or "current", and not {secrets!r}')
        is_robust = allowed_by(self.guarantee).significance is not None
        if is_robust and secrets == "all":
            raise SpecError(
                f"{self.guarantee} cannot be proven yet for the secrets of earlier versions, under all that a sample "
                'leaves open; choose secrets="current", or a guarantee that is not robust'
            )
        self.secrets: Secrets = secrets or ("current" if is_robust else "all")
        self.utility = utility
        self.past = Past()
        self.steps: tuple[Step, ...] = ()
        self._people = PanelPeople()
        self._columns: tuple[tuple[str, ...], tuple[str, ...]] | None = None

    def __repr__(self) -> str:
        return f"<History within {self.guarantee}: {listed(step.version for step in self.steps) or 'no version yet'}>"

    def extend(
        self,
        table: pd.DataFrame | pa.Table | str | os.PathLike[str],
        *,
        key: Sequence[str],
        secret: Sequence[str],
        inputs: Sequence[str],
        version: str,
        secret_bytes: bytes | None = None,
        target: Protocol | None = None,
        unit: Sequence[str] | None = None,
        progress: Progress = quiet,
    ) -> Step:
        """Decide and draw the next version.

        Parameters
        ----------
        table : pandas.DataFrame, pyarrow.Table or path of a parquet file
            One row a person.
        key : sequence of str
            Columns of text or whole numbers that identify a person over all versions.
        secret, inputs : sequence of str
            Columns of what is protected and of what is published. The secret is the same in all versions.
        version : str
            A name of its own.
        secret_bytes : bytes, optional
            At least 32 random bytes, from which words are derived per person and decision: a run that is repeated
            then draws the same. Without it every call draws with fresh randomness; a call must not be repeated in order
            to choose among its results.
        target : Protocol, optional
            What is aimed at; by default the certified optimum of this version alone.
        unit : sequence of str, optional
            Columns that say whose a row is, where people have several rows: the bound is then one on all rows of a
            unit, for the secret of each of them (METHOD section 13: members of a household, visits with their own
            diagnosis), or, under a robust guarantee, for the one secret that they share; and people are known again by
            these columns. ``key`` then tells the rows of a unit apart; it only makes their order, which is random, the
            same again with the same ``secret_bytes``. See `funnel.history.waves.follow_waves`.
        progress : Progress

        Returns
        -------
        Step
            With ``released``: the published columns, rows as in ``table``. With units, it is about all rows; histories
            name the second and later rows of a unit in a version ``"1986#2"`` and so on.

        Raises
        ------
        SpecError
            If the version is there already, key or secret are not those of the versions before, or a column is named
            twice; if the rows of a unit have several secrets where only the current one is bounded, or are too many.
        DataError
            If the table cannot be read, or keys are missing, repeated or of another type than before.
        """
        key, secret, inputs = map(names_of, (key, secret, inputs))
        if not isinstance(version, str) or not version:
            raise SpecError("a version needs a name, as a text")
        whose = key if unit is None else names_of(unit)
        if self._columns is not None and self._columns != (whose, secret):
            raise SpecError(
                f"all versions are about the same secret {list(self._columns[1])} of people known by "
                f"{list(self._columns[0])}; begin another history for secret {list(secret)} and key {list(whose)}"
            )
        record_key = None if secret_bytes is None else RecordKey(whose, secret_bytes)
        rows = read_rows(table, (*key, *whose, *secret, *inputs), version)
        joint = Joint.from_table(rows, secret, inputs)
        xs = input_codes(rows, joint.inputs)
        cells = input_codes(rows, joint.secret) * len(joint.inputs) + xs
        of_units = self._rows_by_unit(rows, None if unit is None else whose, key, secret_bytes)
        if unit is not None:
            refused = None if self.secrets == "all" else 'secrets="current" bounds one of a unit: choose "all"'
            if isinstance(self.guarantee, RobustRatio | RSRLIP):
                refused = f"{self.guarantee} is kept for one of a unit: choose {self.guarantee.nominal}"
            of_units.require_bounded(cells // len(joint.inputs), secret, whose, refused)
        first = of_units.at(1)
        people, numbers = self._people.find(rows.take(first), whose)
        changes, by_class, have_changed = people.changes(numbers, cells[first], joint, self.past)
        asked = UnitVersion(
            self.past,
            of_units,
            cells,
            joint,
            people.nodes[numbers],
            VersionTerms(
                self.guarantee,
                version,
                target,
                self.budget_fraction,
                utility_of(self.utility, joint.inputs),
                right=True,
                progress=progress,
            ),
        )

        def draw(step: Step, wave: IntArray, before: IntArray) -> IntArray:
            return step.drawn(before, xs[wave], words_of(step, before, rows.take(wave), record_key, _WORDS_PURPOSE))

        if unit is None:
            waves = self._one_row_each(asked, changes, by_class, draw)
        else:
            waves = follow_waves(asked, CountedUnits(changes, self.read_alone, self.secrets), draw)
        step = replace(waves.step, released=_released(waves.step, waves.outputs))
        # Nothing of the panel has been changed so far: a call that fails leaves it as it was.
        new, last = len(waves.past) - len(self.past), of_units.last
        self.past, self.steps, self._columns = waves.past, (*self.steps, step), (whose, secret)
        self._people = people.published(numbers, cells[last], waves.after[last], have_changed, new)
        return step

    def _rows_by_unit(
        self, rows: pa.Table, unit: tuple[str, ...] | None, key: tuple[str, ...], secret_bytes: bytes | None
    ) -> UnitRows:
        """The rows of every unit in an order; a person is a unit with one row."""
        if unit is None:
            every = np.arange(rows.num_rows)
            return UnitRows(every, np.ones_like(every))
        if MOVER_STAYER in (self.observers or ()):
            raise SpecError('movers and stayers have one row each; set observers=["transitions"] with a unit')
        row_key = None if secret_bytes is None else RecordKey(key, secret_bytes)
        return UnitRows.ordered(_units(rows, unit), _row_order(rows, row_key))

    def _one_row_each(
        self, asked: UnitVersion, changes: Mapping[int, Changes], by_class: Mapping[int, Changes], draw: Draw
    ) -> Waves:
        """A version of one row a unit, for every observer, and right on average where its target is invariant."""
        nodes, joint = asked.nodes, asked.joint
        observed = replace(
            Observed.counted(joint, changes, nodes, asked.cells % len(joint.inputs)),
            by_class=by_class,
            observers=self._observers(),
            secrets=self.secrets,
        )
        step = asked.terms.decide(asked.past, observed, read_alone=self.read_alone)
        outputs = draw(step, np.arange(len(nodes)), nodes)
        chapter, after = step.published(nodes, outputs)
        return Waves(step, asked.past.followed_by(chapter), outputs, nodes, after)

    def _observers(self) -> tuple[str, ...]:
        """For whom the version that comes next is bounded."""
        if self.observers is not None:
            return self.observers
        return OBSERVERS if self.past.has_classes else (TRANSITIONS,)

    def distribution(self, history: Iterable[tuple[str, int]], version: str) -> FloatArray:
        """P(s, x | h) before a version: what an observer expects of a person with this history.

        Computed in whole numbers and rounded once. Also for histories that are possible but that nobody has.

        Parameters
        ----------
        history : iterable of (str, int)
            Names of versions and output indices, in the order of publication; empty for new people.
        version : str
            A published version, later than those of the history.

        Returns
        -------
        ndarray, shape (c, a)
            In the order of the alphabets of that version.

        Raises
        ------
        DataError
            If a version is unknown or out of order, or the history is impossible.
        """
        pairs = tuple(history)
        self.past.node(pairs)
        numbers = [self.past.ordinal(name) for name, _ in pairs]
        last = self.past.ordinal(version)
        if numbers and numbers[-1] >= last:
            raise DataError(f"version {version!r} is not later than the history; name a later one")
        distribution, before = None, -1
        for place, number in enumerate([*numbers, last]):
            chapter = self.past.chapters[number]
            if distribution is None:
                distribution = chapter.joint.counts.astype(object)
            else:
                distribution = moved_on(distribution, chapter.joint, chapter.changes.get(before))
            if place < len(pairs):
                rows = self._step_of(number).rows_for(pairs[:place])
                distribution = published(distribution, rows[pairs[place][1]].tolist())
            before = number
        assert distribution is not None
        total = sum(distribution.reshape(-1).tolist())
        return np.array([[value / total for value in values] for values in distribution.tolist()])

    def _step_of(self, number: int) -> Step:
        """What was decided for a chapter: several are one version where people have several rows."""
        return self.steps[sum(chapter.row == 1 for chapter in self.past.chapters[: number + 1]) - 1]


def _units(rows: pa.Table, unit: tuple[str, ...]) -> IntArray:
    """The number of every row's unit, shape (rows,); in an order that nobody knows."""
    key = RecordKey(unit, os.urandom(MIN_SECRET_BYTES))
    if missing := count_missing_keys(rows, key):
        raise missing_keys_error(missing, key)
    digests = np.ascontiguousarray(key_digests(rows, key)).view("V16").reshape(-1)
    _, units = np.unique(digests, return_inverse=True)
    return np.asarray(units, dtype=np.int64)


def _row_order(rows: pa.Table, row_key: RecordKey | None) -> WordArray:
    """Words that the rows of a unit are put in order by, shape (rows,): random, or derived from their keys."""
    if row_key is None:
        return WordStream().words(rows.num_rows)
    return encrypted_words(key_digests(rows, row_key), word_key(row_key, _ORDER_PURPOSE))


def _released(step: Step, outputs: IntArray) -> pa.Table:
    columns = OutputColumns(step.channel)
    return pa.Table.from_batches([columns.batch(outputs)], columns.schema)
