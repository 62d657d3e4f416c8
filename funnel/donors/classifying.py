"""Classifying: the classes between which the secret differs most, within the rules of disclosure control."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from funnel.donors.growing import BoolArray, record_classes
from funnel.donors.record_classes import RecordClasses
from funnel.errors import DataError
from funnel.joint import IntArray, Joint
from funnel.settings.disclosure_rules import Rules

# Channels between so many classes are found in seconds.
MOST_CLASSES = 400


def grown(joint: Joint, least: int, rules: Rules, known: Sequence[str] = ()) -> RecordClasses:
    """The classes between which the secret differs most, as fine as their least size and the rules allow.

    Parameters
    ----------
    joint : Joint
        Counts (c, a) of the secret and of whole records.
    least : int
        Records of a class, at least.
    rules : Rules
        That counts of (secret, class) keep.
    known : sequence of str, optional
        Columns in which all records of a class have the same values.

    Raises
    ------
    DataError
        If the records have one class only, or too few of them have some values of the known columns.
    """
    totals = joint.counts.sum(axis=1)

    def allowed(tables: IntArray) -> BoolArray:
        return np.asarray(~rules.dominant(tables, tables.sum(axis=0), totals, joint.n).any(axis=0))

    found = record_classes(joint, least, MOST_CLASSES, rules.minimum_cell, allowed, known)
    if len(found.names) < 2:
        raise DataError(
            "no column tells anything of the secret that could be told apart from chance, or the records are too few "
            "for two classes; lower min_records in [groups], or publish fewer columns"
        )
    return found
