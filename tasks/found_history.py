"""What all versions of a register tell together once one more is published, as findings have it."""

from __future__ import annotations

import math

import numpy as np

from funnel.alphabet import Alphabet
from funnel.findings.followed import ExpectedHistory, ExpectedObserver, FoundHistory, FoundObserver, FoundRow
from funnel.history.fitting import Fitted
from funnel.history.possible_rows import share_that_is_open
from funnel.history.step import Step
from funnel.register.look_up import People
from funnel.register.register import Register

_AS_FOUND = ("moved", "outside", "reserve", "utility", "alone", "bound", "entropy")


def found_history(register: Register, people: People, found: Step, expected: Fitted | None = None) -> FoundHistory:
    """What all versions together tell, for the officer who answers for it; and what of it is public, with noise."""
    labels = {chapter.version: chapter.channel.outputs.labels for chapter in found.past.chapters}
    witness = found.level.witness
    ratio = witness.ratio
    worst = () if found.worst is None else found.past.history(found.worst)
    return FoundHistory(
        register=register.name,
        versions=len(register.entries) + 1,
        histories=found.histories if expected is None else len(np.unique(found.observed.nodes)),
        known=people.known,
        forgotten=people.forgotten,
        channels=len(found.library),
        level=found.level.value,
        level_ratio=None if ratio is None else f"{ratio.numerator}/{ratio.denominator}",
        worst=tuple((version, labels[version][output]) for version, output in worst),
        worst_output=found.channel.outputs.labels[witness.output],
        worst_secret=_secret_of(found).labels[witness.secret],
        **{name: getattr(found, name) for name in _AS_FOUND},
        units=found.opening.joint.n if found.waves else None,
        own=found.own,
        rare=_rare(found, people),
        rows=tuple(
            FoundRow(one.joint.n, one.histories, one.level.value, one.own) for one in found.waves if one.own is not None
        ),
        moved_level=_finite(found.moved_level),
        expected=None if expected is None else _expected(expected),
        observers=tuple(
            FoundObserver(**vars(one) | {"level": _finite(one.level), "moved_level": _finite(one.moved_level)})
            for one in found.by_observer
        ),
    )


def _rare(found: Step, people: People) -> int | None:
    """Rows of people with a rare number of rows, where whole records of people with several are published."""
    if found.own is None or not found.waves or found.observed.silent is None:
        return None
    return int(found.observed.silent.sum()) - people.forgotten


def _secret_of(found: Step) -> Alphabet:
    """The values of the secret of which most is told."""
    if found.worst_secret_of is None:
        return found.joint.secret
    return found.past.chapters[found.past.ordinal(found.worst_secret_of)].joint.secret


def _finite(level: float | None) -> float | None:
    """A level as findings keep it: None where it is infinite."""
    return None if level is None or math.isinf(level) else level


def _expected(found: Fitted) -> ExpectedHistory:
    """The same of expected people, and how many were not."""
    step = found.predicted
    everybody = step.joint.n
    silent = 0 if step.observed.silent is None else int(step.observed.silent.sum())
    return ExpectedHistory(
        histories=step.histories,
        level=step.level.value,
        moved=min(1.0, step.moved / everybody),
        outside=min(1.0, step.outside / everybody),
        others=silent / int(step.observed.records.sum()),
        unpredicted=found.unpredicted,
        silent=found.silent,
        open_people=share_that_is_open(step),
        observers=tuple(
            ExpectedObserver(
                one.observer,
                one.secret_of,
                one.bounded,
                _finite(one.level),
                _finite(max(one.level, one.moved_level or 0.0)),
                min(1.0, one.outside / everybody),
            )
            for one in step.by_observer
        ),
    )
