"""Followed donors: versions of whole records about the same people, each published as one person after another."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from funnel.alphabet import CLASS_COLUMN, Alphabet
from funnel.errors import DataError, SpecError
from funnel.guarantees.base import Guarantee
from funnel.history.donor_channels import first_protocol, require_kept
from funnel.history.donor_draws import StandIns, begun_as, draw_outputs, read_by
from funnel.history.donor_step import donor_step
from funnel.history.following import VersionTerms
from funnel.history.observed import Observed
from funnel.history.panel_people import PanelPeople, names_of, read_rows, words_of
from funnel.history.past import Past
from funnel.history.step import Step
from funnel.joint import IntArray, Joint
from funnel.sampling.codes import input_codes
from funnel.sampling.donors import Classifier
from funnel.sampling.keyed import RecordKey, key_digests

if TYPE_CHECKING:
    import pandas as pd

# What words are derived for.
_WORDS, _DONORS = "words of decisions about donors", "donors of decisions"


@dataclass(frozen=True, eq=False)
class DonorStep:
    """A version: what was decided for every history that its people have, and what was drawn.

    Attributes
    ----------
    step : Step
        With the published columns and the class of each record as ``released``; rows as in the table. The rest is
        internal. Outputs are numbers: k of "the same person goes on" and k of "another one begins", by class. A first
        record begins.
    outputs : ndarray of int64, shape (rows,)
    stands_for : ndarray of int64, shape (rows,)
        The row whose record is published for each.
    """

    step: Step
    outputs: IntArray
    stands_for: IntArray


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
    past : Past
        What was published, as a tree of histories.
    steps : tuple of DonorStep

    Raises
    ------
    SpecError
        If the guarantee cannot be kept, the share is none, or classes are cut for observers of columns.
    """

    def __init__(self, guarantee: Guarantee, classes: Classifier, budget_fraction: float = 0.8) -> None:
        self.guarantee = require_kept(guarantee)
        if not 0 < budget_fraction < 1:
            raise SpecError(f"budget_fraction is a share of the budget between 0 and 1, not {budget_fraction!r}")
        if classes.draws_evenly:
            raise SpecError(
                "classes that are cut for observers of any columns bound nothing over versions; make them without "
                "known columns"
            )
        self.classes, self.budget_fraction = classes, budget_fraction
        self.past = Past()
        self.steps: tuple[DonorStep, ...] = ()
        self._columns: tuple[tuple[str, ...], tuple[str, ...]] | None = None
        self._people = PanelPeople()
        # By the number of a person: the one whose record was published last.
        self._followed = np.zeros(0, dtype=np.int64)

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
            If the table cannot be read, keys are missing, repeated or of another type, secrets are new, or records may
            begin in no class because none has three people.
        """
        key, secret = names_of(key), names_of(secret)
        if not isinstance(version, str) or not version or version in {one.version for one in self.past.chapters}:
            raise SpecError(f"version {version!r} has no name of its own; give the next one another name")
        if self._columns not in (None, (key, secret)):
            raise SpecError("all versions are about the same secret of people known by the same key; name these")
        if both := {*secret} & {*self.classes.columns}:
            raise SpecError(f"column {min(both)!r} is published and a secret; take it out of the classes or the secret")
        record_key = None if secret_bytes is None else RecordKey(key, secret_bytes)
        rows = read_rows(table, (*key, *secret, *self.classes.columns), version)
        first = self.past.chapters[0].joint.secret if self.past.chapters else None
        joint, cells = classified(rows, secret, self.classes, first)
        people, numbers = self._people.find(rows, key)
        nodes, (changes, _, have_changed) = people.nodes[numbers], people.changes(numbers, cells, joint, self.past)
        alone = first_protocol(joint, self.guarantee, self.budget_fraction)
        terms = VersionTerms(self.guarantee, version, alone, self.budget_fraction)
        decided = donor_step(self.past, Observed.counted(joint, changes, nodes, cells % len(joint.inputs)), terms)
        step = self._drawn(decided, rows, record_key, nodes, cells, numbers)
        # Nothing of the panel has been changed so far: a call that fails leaves it as it was.
        chapter, after = decided.published(nodes, step.outputs)
        self.past, self.steps, self._columns = self.past.followed_by(chapter), (*self.steps, step), (key, secret)
        self._people = people.published(numbers, cells, after, have_changed, 1)
        self._followed = np.concatenate([self._followed, np.arange(len(self._followed), len(people.numbers))])
        self._followed[numbers] = numbers[step.stands_for]
        return step

    def _drawn(
        self,
        step: Step,
        rows: pa.Table,
        record_key: RecordKey | None,
        nodes: IntArray,
        cells: IntArray,
        numbers: IntArray,
    ) -> DonorStep:
        """What is drawn of everybody, and whose record is published then; people are known by their numbers."""
        k = len(step.joint.inputs)
        of_class, later = cells % k, nodes != 0
        row_of = {number: row for row, number in enumerate(numbers.tolist())}
        followed = dict(enumerate(self._followed.tolist()))
        standing = np.array([row_of.get(followed.get(number, number), -1) for number in row_of], dtype=np.int64)
        read = read_by(of_class, standing, k)
        columns = np.concatenate([*step.library], axis=1)
        words = words_of(step, nodes, rows, record_key, _WORDS)
        outputs = draw_outputs(columns, step.channels_of(nodes) * (2 * k + 1) + read, words)
        order = np.arange(len(nodes))
        if record_key is not None:
            digests = key_digests(rows, record_key)
            order = np.lexsort((digests[:, 1], digests[:, 0]))
        donors = StandIns(
            of_class, order, lambda attempt: words_of(step, nodes, rows, record_key, f"{_DONORS} {attempt}")
        )
        stands_for = donors.drawn(standing, begun_as(outputs, read, later, k), later)
        names = pa.array([self.classes.names[one] for one in of_class[stands_for].tolist()])
        released = rows.select(list(self.classes.columns)).take(stands_for).append_column(CLASS_COLUMN, names)
        return DonorStep(replace(step, released=released), outputs, stands_for)


def classified(
    rows: pa.Table, secret: tuple[str, ...], classes: Classifier, secrets: Alphabet | None
) -> tuple[Joint, IntArray]:
    """Counts of secrets and classes, and the cell of every row; secrets are those of the first version, if any.

    Raises
    ------
    DataError
        If there are others.
    """
    joint = Joint.from_table(rows, secret, classes.columns)
    known = joint.secret if secrets is None else secrets
    if new := {*joint.secret.symbols} - {*known.symbols}:
        raise DataError(
            f"the secret has {len(new)} values that the first version has not; make that one with all values, or "
            "group them"
        )
    names = Alphabet((CLASS_COLUMN,), tuple((name,) for name in classes.names))
    of_class = classes.of_records(joint.inputs)[input_codes(rows, joint.inputs)]
    cells = input_codes(rows, known).astype(np.int64) * len(names) + of_class
    counts = np.bincount(cells, minlength=len(known) * len(names)).reshape(len(known), len(names))
    return Joint(counts.astype(np.int64), known, names), cells
