"""Movement: who of a version's people were where before, and how many of them changed since."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from pydantic import NonNegativeInt

from funnel.alphabet import Alphabet
from funnel.history.changes import same_inputs
from funnel.history.observed import Observed
from funnel.history.past import Past
from funnel.joint import IntArray


@dataclass(frozen=True)
class Movement:
    """The people of one earlier version.

    Attributes
    ----------
    version : str
    people : int
        In that version.
    last : int
        Of the people now, those whose last version it is.
    both : int or None
        People of both versions; None where it is nobody's last version, as then nobody counted.
    secret_changed, input_changed : int or None
        Of these, those who have another secret, or another input; None where they are not counted, or the columns are
        other ones.
    """

    version: str
    people: NonNegativeInt
    last: NonNegativeInt
    both: NonNegativeInt | None
    secret_changed: NonNegativeInt | None
    input_changed: NonNegativeInt | None


def movements(past: Past, observed: Observed) -> tuple[Movement, ...]:
    """Where the people of a version were before, by version, oldest first.

    Parameters
    ----------
    past : Past
    observed : Observed
        The people of the version.

    Notes
    -----
    O(k) for k different changes and histories.
    """
    last = np.zeros(len(past) + 1, dtype=np.int64)
    # New people last of all.
    np.add.at(last, past.heads_of(past.versions_of(observed.nodes)), observed.records)
    found = []
    for number, chapter in enumerate(past.chapters):
        if chapter.row > 1:
            # The same version, and the same changes since.
            continue
        before, after, changes = chapter.joint, observed.joint, observed.changes.get(number)
        if changes is None:
            both = secrets = inputs = None
        else:
            was, now = np.divmod(changes.before, len(before.inputs)), np.divmod(changes.after, len(after.inputs))
            both = int(changes.records.sum())
            secrets = _changed(before.secret, was[0], after.secret, now[0], changes.records)
            inputs = _changed(before.inputs, was[1], after.inputs, now[1], changes.records)
        found.append(Movement(chapter.version, before.n, int(last[number]), both, secrets, inputs))
    return tuple(found)


def new_people(observed: Observed) -> int:
    """How many people have no history; those who were forgotten among them."""
    return observed.people(observed.records[observed.nodes == 0].sum())


def _changed(before: Alphabet, was: IntArray, after: Alphabet, now: IntArray, records: IntArray) -> int | None:
    """How many have another symbol now; None where the columns are other ones."""
    return int(records[same_inputs(before, after)[was] != now].sum()) if before.columns == after.columns else None
