"""Parts: classes cut by how much of them has to be exchanged before observers of columns are within their bound."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from funnel.class_parts import ClassParts, Known
from funnel.donors.column_sets import ColumnSets, number_of_sets, parts_known
from funnel.donors.record_classes import Question, RecordClasses, Scale, Term
from funnel.guarantees.any_column import AnyColumn
from funnel.guarantees.exact import capped_exp
from funnel.joint import FloatArray, IntArray, Joint

# Above these shares of a class that would have to be exchanged a further part begins.
_NEEDS = (0.0, 0.0125, 0.025, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
_HARDLY = 1e-12
# Points of a record are below 2 to this power.
_BITS = 62


def parts_by_need(joint: Joint, classes: RecordClasses, knowing: float, at_once: int) -> RecordClasses:
    """Classes cut by the values of a record that need most donors, for observers of these values.

    A record that tells an observer of some of its values too much can stay if people with the values, of classes that
    tell the opposite, are published as such records. The share that has to be exchanged with the class that brings most
    is what the values need. A record needs what the worst of its values do, so that the parts whose records need
    little or nothing stay. Nothing but the class tells of the secret: the parts of a class have its counts.

    Parameters
    ----------
    joint : Joint
        Counts (c, a) of the secret and of whole records.
    classes : RecordClasses
    knowing : float
        The budget of observers of columns, nats.
    at_once : int
        How many columns they may know.
    """
    sets = ColumnSets.of(joint.inputs, at_once)
    known = parts_known(joint, classes, sets)
    observers = AnyColumn.of(replace(classes.counted(joint), parts=known))
    # A record has one value of each set, so the first digit of its points says what the worst of these needs.
    base = number_of_sets(len(classes.columns), at_once) + 1
    level = np.searchsorted(_NEEDS[: int(_BITS / math.log2(base))], _needs(observers, knowing))
    of_class = classes.of_records(joint.inputs)
    scales, questions = list(classes.scales), list(classes.questions)
    names: list[str] = []
    ends: dict[str, int] = {}
    worst = level[sets.of_record, of_class].max(axis=0)
    level = _telling(known, level)
    parts: dict[str, list[int]] = {}
    for g, name in enumerate(classes.names):
        parts[name] = np.unique(worst[of_class == g]).tolist() or [0]
        names += [f"{name}.{number}" for number in range(1, len(parts[name]) + 1)]
        ends[name] = len(scales)
        terms = (
            Term(
                tuple(column for column, _ in known.known[number]),
                tuple(value for _, value in known.known[number]),
                base ** (int(level[number, g]) - 1),
            )
            for number in np.flatnonzero(level[:, g]).tolist()
        )
        scales.append(Scale((), tuple(terms)))

    def cut(name: str) -> int | str:
        """The first of further questions about the records of a class."""
        levels = parts[name]
        first = len(questions)
        for number in range(len(levels), 1, -1):
            last = number == 2
            at_least = base ** (levels[number - 1] - 1)
            otherwise = f"{name}.1" if last else len(questions) + 1
            questions.append(Question(ends[name], at_least, f"{name}.{number}", otherwise))
        return first if len(levels) > 1 else f"{name}.1"

    for place, one in enumerate(classes.questions):
        then, otherwise = (cut(end) if isinstance(end, str) else end for end in (one.then, one.otherwise))
        questions[place] = replace(one, then=then, otherwise=otherwise)
    return replace(classes, scales=tuple(scales), questions=tuple(questions), names=tuple(names), at_once=at_once)


def _needs(known: AnyColumn, knowing: float) -> FloatArray:
    """What all known values need in every class, shape (v, classes); infinite where no class brings any donor."""
    people, given, before = known.people[1:], known.given, known.before[:, 1:]
    shares = people / known.sizes
    found = np.zeros(shares.shape)
    for s in range(len(given)):
        for sign in (1, -1):
            limit = capped_exp(knowing) ** sign * before[s]
            beyond = sign * (given[s] - limit[:, np.newaxis])
            brought = (shares * np.maximum(0.0, -beyond)).max(axis=1)
            with np.errstate(divide="ignore", invalid="ignore"):
                needed = np.where(beyond > _HARDLY, beyond / brought[:, np.newaxis], 0.0)
            found = np.maximum(found, needed)
    return found


def _telling(parts: ClassParts, level: IntArray) -> IntArray:
    """Levels (v, classes) without those of people that a class does not have, and those that one value has already."""
    found = np.where(parts.people > 0, level, 0)
    place: dict[Known, int] = {one: number for number, one in enumerate(parts.known)}
    for number, one in enumerate(parts.known):
        if len(one) > 1:
            of_each = np.max([level[place[(value,)]] for value in one], axis=0)
            found[number] = np.where(level[number] > of_each, found[number], 0)
    return found
