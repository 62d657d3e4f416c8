"""Classifying: the classes that the records of a spec are counted and drawn by."""

from __future__ import annotations

import numpy as np

from funnel.disclosure.threshold import class_rules
from funnel.donors.growing import BoolArray, record_classes
from funnel.donors.record_classes import RecordClasses
from funnel.errors import DataError, SpecError
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
    if (reason := spec.not_by_class) is not None:
        raise SpecError(f"{len(joint.inputs):,} combinations of published values are drawn by classes, but {reason}")
    rules, totals = class_rules(spec), joint.counts.sum(axis=1)
    known = rules.above(totals, np.asarray(joint.n))

    def possible(tables: IntArray) -> BoolArray:
        return np.asarray(~rules.small(tables).any(axis=0))

    def allowed(tables: IntArray) -> BoolArray:
        return np.asarray(~(rules.above(tables, tables.sum(axis=0)) & ~known[:, np.newaxis]).any(axis=0))

    found = record_classes(joint, spec.groups.min_records, MOST_CLASSES, possible, allowed)
    if len(found.names) < 2:
        raise DataError(
            "no column tells anything of the secret that could be told apart from chance, or the records are too few "
            "for two classes; lower min_records in [groups], or publish fewer columns"
        )
    return found
