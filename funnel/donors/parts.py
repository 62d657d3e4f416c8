"""Parts: classes cut by how much of them has to be exchanged before observers of one column are within their bound."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from funnel.donors.composition import Composition
from funnel.donors.record_classes import Question, RecordClasses, Scale, Term
from funnel.guarantees.any_column import AnyColumn
from funnel.guarantees.exact import capped_exp
from funnel.joint import FloatArray, IntArray, Joint

# Above these shares of a class that would have to be exchanged a further part begins.
_NEEDS = (0.0, 0.0125, 0.025, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
_HARDLY = 1e-12
# Points of a record are below 2 to this power.
_BITS = 62


def parts_by_need(joint: Joint, classes: RecordClasses, knowing: float) -> RecordClasses:
    """Classes cut by the value of a record that needs most donors, for observers of that value.

    A record that tells an observer of one of its values too much can stay if people with the value, of classes that
    tell the opposite, are published as such records. The share that has to be exchanged with the class that brings most
    is what the value needs. A record needs what the worst of its values does, so that the parts whose records need
    little or nothing stay. Nothing but the class tells of the secret: the parts of a class have its counts.

    Parameters
    ----------
    joint : Joint
        Counts (c, a) of the secret and of whole records.
    classes : RecordClasses
    knowing : float
        The budget of observers of one column, nats.
    """
    found = Composition.of(joint, classes)
    observers = AnyColumn.of(replace(found.joint, parts=found.parts))
    # A record has one value of each column, so the first digit of its points says what the worst of these needs.
    base = len(classes.columns) + 1
    level = np.searchsorted(_NEEDS[: int(_BITS / math.log2(base))], _needs(observers, knowing))
    of_class = classes.of_records(joint.inputs)
    scales, questions = list(classes.scales), list(classes.questions)
    names: list[str] = []
    ends: dict[str, int] = {}
    worst = _worst(joint, level, of_class)
    parts: dict[str, list[int]] = {}
    for g, name in enumerate(classes.names):
        parts[name] = np.unique(worst[of_class == g]).tolist() or [0]
        names += [f"{name}.{number}" for number in range(1, len(parts[name]) + 1)]
        ends[name] = len(scales)
        terms = (
            Term((column,), (value,), base ** (int(needed) - 1))
            for (column, value), needed in zip(observers.known, level[:, g], strict=True)
            if needed
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
    return replace(classes, scales=tuple(scales), questions=tuple(questions), names=tuple(names))


def _needs(known: AnyColumn, knowing: float) -> FloatArray:
    """What every value needs in every class, shape (values, classes); infinite where no class brings any donor."""
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


def _worst(joint: Joint, level: IntArray, of_class: IntArray) -> IntArray:
    """The largest level (values, classes) of a value of every record, shape (a,)."""
    first = np.cumsum([0, *map(len, joint.inputs.texts[:-1])])
    return np.asarray(level[joint.inputs.codes + first, of_class[:, np.newaxis]].max(axis=1))
