"""Truth: what all versions tell an observer who knows what noise hides, true tables or counts of all changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from funnel.frequencies.moves import Moves
from funnel.history.allowed import lifts_of
from funnel.history.changes import Changes
from funnel.history.history_status import stand
from funnel.history.observed import Observed
from funnel.history.past import Chapter, Past
from funnel.history.step import Step
from funnel.joint import IntArray, Joint
from funnel.protocol import WORD_BITS
from funnel.register.look_up import People
from funnel.register.people import BUCKET_ROWS, SortedFile, Tally, limits, places
from funnel.register.register import Register
from funnel.sampling.spill import bucket_count

# A level at the bound may be found a hair above it.
_CLOSE = 1e-9


@dataclass(frozen=True)
class Reader:
    """How far a version goes for somebody who knows some distributions, beside all channels.

    Attributes
    ----------
    level : float
        Largest level over all histories that people have, and all outputs that they can get; nats, infinite where one
        rules a value out.
    beyond : float
        Share of the answers that are expected to be beyond the bound.
    moved : int
        People whose history alone is outside it, under these distributions, before anything new is said.
    people : int
        Who has a history after which some answer is beyond it.
    """

    level: float
    beyond: float
    moved: int
    people: int


@dataclass(frozen=True)
class KnownTruth:
    """Two readers who know more than is published (decision 0060).

    Attributes
    ----------
    tables : Reader
        Who knows the true values of all published tables, and takes the same distribution of changes for what they say.
    changes : Reader
        Who knows the true counts, and those of every change between cells.
    """

    tables: Reader
    changes: Reader


@dataclass(frozen=True)
class TruePast:
    """What was published, with the distributions that each reader of `KnownTruth` has of all versions under noise."""

    tables: Past
    changes: Past


def known_truth(register: Register, step: Step, people: People) -> KnownTruth | None:
    """How far a version goes for an observer who knows more than is published; None where people have several rows.

    Found with doubles, since nothing is decided by it.

    Parameters
    ----------
    register : Register
        Before the version.
    step : Step
        As it is drawn, of real people.
    people : People
        These, with their exact counts and changes.

    Raises
    ------
    LedgerError
        If a file of the register is gone or was changed.

    Notes
    -----
    Reads the people of all versions once, in memory that does not grow with them; O(h c a b) for h histories.
    """
    if any(entry.units is not None for entry in register.entries) or step.waves:
        return None
    past, real = true_past(register), people.observed
    joint = real.counted_joint
    moves = people.moves(register)
    if step.observed.limits is not None:
        moves = [one.by_secret for one in moves]
    distributions = _of_tables(dict(enumerate(moves)), past.tables.chapters, joint)
    return KnownTruth(
        reader(past.tables, step, real.known_by(joint, {v: distributions[v] for v in real.changes})),
        reader(past.changes, step, real),
    )


def reader(past: Past, step: Step, people: Observed) -> Reader:
    """What somebody concludes from a version who has these distributions of the past, and of its people.

    Parameters
    ----------
    past : Past
        With the histories and channels that were published, and the distributions that the reader has of earlier
        versions.
    step : Step
        As it is drawn.
    people : Observed
        Who really has which history; with the frequencies and the distribution of changes that the reader has.
    """
    status = stand(past, replace(people, secrets="current"), step.guarantee)
    channels = step.channels_of(status.nodes)
    level, beyond, outside = 0.0, 0.0, 0
    for place, channel in enumerate(channels.tolist()):
        rows = np.ldexp(step.library[channel].astype(np.float64), -WORD_BITS)
        outputs = status.distributions.values[place] @ rows.T
        nats = status.nats(lifts_of(outputs[None], status.priors[status.prior_of[place]]))[0]
        said = outputs.sum(axis=0)
        level = max(level, float(nats[said > 0].max(initial=0.0)))
        above = (nats > step.guarantee.budget * (1 + _CLOSE)) & (said > 0)
        beyond += float(status.people[place] * said[above].sum() / said.sum())
        outside += int(status.people[place]) if above.any() else 0
    moved = int(status.people[status.moved].sum())
    # A sum of floats may be a hair above the whole.
    return Reader(level, min(1.0, beyond / float(status.people.sum())), moved, outside)


def true_past(register: Register) -> TruePast:
    """What was published, with true distributions of all versions of which the register keeps noisy ones.

    People who are forgotten are in none of them.
    """
    chapters = register.past.chapters
    cells = [chapter.joint.counts.size for chapter in chapters]
    counts = [Tally() for _ in chapters]
    changes, last = ({(v, t): Tally() for t in range(len(chapters)) for v in range(t)} for _ in range(2))
    files = [SortedFile(*register.people(entry.ordinal)) for entry in register.entries]
    for limit in limits(bucket_count(max((chapter.joint.n for chapter in chapters), default=1), BUCKET_ROWS)):
        pieces = [file.below(limit) for file in files]
        for t, piece in enumerate(pieces):
            counts[t].add(piece["cell"].astype(np.int64))
            latest: IntArray = np.full(len(piece), -1, dtype=np.int64)
            change: IntArray = np.zeros(len(piece), dtype=np.int64)
            for v in range(t):
                at = places(pieces[v], piece)
                there = np.flatnonzero(at >= 0)
                latest[there] = v
                change[there] = pieces[v]["cell"][at[there]].astype(np.int64) * cells[t] + piece["cell"][there]
                changes[v, t].add(change[there])
            for v in range(t):
                last[v, t].add(change[latest == v])
    tables, exact = [], []
    for t, chapter in enumerate(chapters):
        if register.entries[t].noise is None:
            tables.append(chapter)
            exact.append(chapter)
            continue
        table = np.zeros(cells[t], dtype=np.int64)
        codes, records = counts[t].counts()
        table[codes] = records
        joint = Joint(table.reshape(chapter.joint.counts.shape), chapter.joint.secret, chapter.joint.inputs)
        since = {v: changes[v, t].changes(cells[t]) for v in chapter.changes}
        exact.append(replace(chapter, joint=joint, changes=since))
        moves = {
            v: Moves.counted(chapters[v].version, last[v, t].changes(cells[t]), chapters[v].joint, joint)
            for v in chapter.changes
        }
        if register.entries[t].left_open is not None:
            moves = {v: one.by_secret for v, one in moves.items()}
        tables.append(replace(chapter, joint=joint, changes=_of_tables(moves, tables, joint)))
    return TruePast(Past(tuple(tables)), Past(tuple(exact)))


def _of_tables(
    moves: Mapping[int, Moves], chapters: tuple[Chapter, ...] | list[Chapter], joint: Joint
) -> dict[int, Changes]:
    """The distribution of changes to a version that exact tables come to, by the number of the version before."""
    return {v: one.changes(chapters[v].joint, joint) for v, one in moves.items()}
