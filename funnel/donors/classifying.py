"""Classifying: the classes that the records of a spec are counted and drawn by."""

from __future__ import annotations

import numpy as np

from funnel.disclosure.threshold import class_rules
from funnel.donors.growing import BoolArray, record_classes
from funnel.donors.record_classes import RecordClasses
from funnel.errors import DataError, SpecError
from funnel.guarantees import parse_guarantee
from funnel.joint import IntArray, Joint
from funnel.spec import ReleaseSpec

# Channels between so many classes are found in seconds.
MOST_CLASSES = 400


def classes_of(spec: ReleaseSpec, joint: Joint) -> RecordClasses:
    """The classes between which the secret differs most, as fine as [groups] min_records and [disclosure] allow.

    Parameters
    ----------
    spec : ReleaseSpec
    joint : Joint
        Counts (c, a) of the secret and of whole records.

    Raises
    ------
    SpecError
        If the spec asks for what classes cannot be chosen for.
    DataError
        If the records have one class only.
    """
    if (reason := why_not_by_class(spec)) is not None:
        raise SpecError(f"{len(joint.inputs):,} combinations of published values are drawn by classes, but {reason}")
    rules, totals = class_rules(spec), joint.counts.sum(axis=1)
    known = rules.above(totals, np.asarray(joint.n))

    def allowed(tables: IntArray) -> BoolArray:
        dominated = rules.above(tables, tables.sum(axis=0)) & ~known[:, np.newaxis]
        return np.asarray(~(rules.small(tables) | dominated).any(axis=0))

    found = record_classes(joint, spec.groups.min_records, MOST_CLASSES, allowed)
    if len(found.names) < 2:
        raise DataError(
            "no column tells anything of the secret that could be told apart from chance, or the records are too few "
            "for two classes; lower min_records in [groups], or publish fewer columns"
        )
    return found


def why_not_by_class(spec: ReleaseSpec) -> str | None:
    """Why classes of records cannot be chosen for a spec, in one sentence; None if they can."""
    if spec.frequencies.protection == "noise":
        return (
            "which questions tell most of the secret is read off exact counts, which noise would not protect; write "
            'protection = "threshold" in [frequencies], or publish fewer columns'
        )
    if parse_guarantee(spec.guarantee.canonical).significance is not None:
        return (
            f"{spec.guarantee.canonical} is about a population, and questions that are chosen by the same records make "
            'them look more certain than they are; write guarantee = "lip:1.0", or publish fewer columns'
        )
    if spec.register is not None:
        return (
            'versions about the same people would have other classes; write [history] people = "different" if no '
            "person is in two versions, or publish fewer columns"
        )
    if spec.utility != "information":
        return f'utility = "{spec.utility}" is of published values that are drawn one by one; take it out'
    return None
