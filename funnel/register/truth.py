"""Truth: what all versions tell whoever knows the true counts, and those of every change, where noise hides them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from funnel.history import Changes, Observed, Past, Step
from funnel.history.allowed import allowed_by, lifts_of
from funnel.history.standing import stand
from funnel.joint import Joint
from funnel.protocol import WORD_BITS
from funnel.register.people import SortedFile, Tally, bucket_count, limits, places
from funnel.register.register import Register


@dataclass(frozen=True)
class KnownTruth:
    """How far a version goes for whoever knows true counts and true changes, beside all channels.

    Attributes
    ----------
    level : float
        Largest level over all histories that people have, and all outputs that they can get; nats, infinite where one
        rules a value out.
    beyond : float
        Share of the answers that are expected to be beyond the bound.
    """

    level: float
    beyond: float


def known_truth(register: Register, step: Step, people: Observed) -> KnownTruth | None:
    """The level of a version for whoever knows the truth; None where people have several rows.

    Found with doubles, since nothing is decided by it.

    Parameters
    ----------
    register : Register
        Before the version.
    step : Step
        As it is drawn, of real people.
    people : Observed
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
    guarantee = step.guarantee
    allowed = allowed_by(guarantee)
    standing = stand(true_past(register), people, allowed)
    channels = step.drawn_from[np.searchsorted(step.followed, standing.nodes)]
    level, beyond = 0.0, 0.0
    for place, channel in enumerate(channels.tolist()):
        rows = np.ldexp(step.library[channel].astype(np.float64), -WORD_BITS)
        outputs = standing.laws.values[place] @ rows.T
        nats = allowed.nats(lifts_of(outputs[None], standing.priors[standing.prior_of[place]]), guarantee)[0]
        said = outputs.sum(axis=0)
        level = max(level, float(nats[said > 0].max(initial=0.0)))
        # A level at the bound may be found a hair above it.
        above = nats > guarantee.budget * (1 + 1e-9)
        beyond += float(standing.people[place] * said[above].sum() / said.sum())
    return KnownTruth(level, beyond / float(standing.people.sum()))


def true_past(register: Register) -> Past:
    """What was published, with the true laws of all versions of which the register keeps noisy ones.

    People who are forgotten are in none of them.
    """
    chapters = register.past.chapters
    cells = [chapter.joint.counts.size for chapter in chapters]
    counts = [Tally() for _ in chapters]
    changes = {(v, t): Tally() for t in range(len(chapters)) for v in range(t)}
    files = [SortedFile(*register.people(entry.ordinal)) for entry in register.entries]
    for limit in limits(bucket_count(max((chapter.joint.n for chapter in chapters), default=1))):
        pieces = [file.below(limit) for file in files]
        for t, piece in enumerate(pieces):
            counts[t].add(piece["cell"].astype(np.int64))
            for v in range(t):
                at = places(pieces[v], piece)
                there = np.flatnonzero(at >= 0)
                before = pieces[v]["cell"][at[there]].astype(np.int64)
                changes[v, t].add(before * cells[t] + piece["cell"][there])
    found = []
    for t, chapter in enumerate(chapters):
        if register.entries[t].noise is None:
            found.append(chapter)
            continue
        since = {v: _changes(changes[v, t], cells[t]) for v in chapter.changes}
        table = np.zeros(cells[t], dtype=np.int64)
        codes, records = counts[t].counts()
        table[codes] = records
        joint = Joint(table.reshape(chapter.joint.counts.shape), chapter.joint.secret, chapter.joint.inputs)
        found.append(replace(chapter, joint=joint, changes=since))
    return Past(tuple(found))


def _changes(tally: Tally, cells: int) -> Changes:
    codes, records = tally.counts()
    return Changes(codes // cells, codes % cells, records)
