"""Observed: what a step may know of the people of a version, which is counts alone."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from funnel.errors import DataError
from funnel.history.changes import Changes, MoveLimits
from funnel.joint import IntArray, Joint, freeze

Secrets = Literal["all", "current"]
"""Of which versions secrets are bounded: of all, or of each once it is published and no more."""

# Less of a person than this is what sums of shares are off by.
_FEW = 1e-6


@dataclass(frozen=True, eq=False)
class Members:
    """Rows of units that are bounded one by one: they have secrets of their own, or observers know columns of one.

    Attributes
    ----------
    changes : Changes
        From any row of a unit to the next one.
    rows : int
        Of the unit that has most.
    """

    changes: Changes
    rows: int


@dataclass(frozen=True, eq=False)
class Observed:
    """The people of a version: who they are now, how they changed, and what was published about them.

    Parameters
    ----------
    joint : Joint
        Counts of (secret, input), shape (c, a), of all people of the version, as they are published.
    changes : mapping of int to Changes
        By ordinal of the earlier version; at least those that are somebody's last version. Counts of all people in
        both, also of those who were in versions between.
    nodes, inputs, records : ndarray of int64, shape (k,)
        ``records`` people have the history ``node`` and the input x: distinct pairs. Node 0 is the empty history, of
        new people.
    silent : ndarray of int64, shape (a,), optional
        How many of those counted as new are forgotten, by input: nothing is known of them, and they are drawn from the
        distribution of the output, which tells nothing. By default nobody is.
    totals : Joint, optional
        What ``records`` add up to, where that is not ``joint``: the exact counts under noise, or those of expected
        people. Nothing else.
    weight : float
        How many people one record counts for; 1 but of expected people.
    row : int
        Which row of their unit this is, where a version has several rows of a unit; from the second on, changes are
        those from a row to the next.
    of_units : bool
        Whether people may have several rows in the version.
    members : Members, optional
        Where rows of a unit have secrets of their own, or observers know columns of one of them: all are bounded.
    limits : mapping of int to MoveLimits, optional
        What noise leaves open of the moves since earlier versions, or from first rows of units to second ones, by
        ordinal; and exact counts where it leaves nothing open. With these the bound is kept under every set of tables
        within them and within the bounds of all counts; without, under the published ones.
    by_class : mapping of int to Changes, optional
        The same changes over cells of secret and (class, input), as `funnel.history.mover_stayer` has them; where they
        were counted.
    observers : tuple of str
        For whom the version is bounded (`funnel.history.observers`).
    secrets : "all" or "current"
        What is bounded for them: the secrets of all versions that a person was in, or that of this one alone. The first
        is not there under every set of tables that noise leaves open.

    Raises
    ------
    DataError
        If lengths differ, a pair is there twice, or the people of an input are not those that the joint distribution
        counts.
    """

    joint: Joint
    changes: Mapping[int, Changes]
    nodes: IntArray
    inputs: IntArray
    records: IntArray
    silent: IntArray | None = None
    totals: Joint | None = None
    weight: float = 1.0
    row: int = 1
    of_units: bool = False
    members: Members | None = None
    limits: Mapping[int, MoveLimits] | None = None
    by_class: Mapping[int, Changes] | None = None
    observers: tuple[str, ...] = ("transitions",)
    secrets: Secrets = "all"

    def __post_init__(self) -> None:
        freeze(self, "nodes", "inputs", "records")
        if not (self.nodes.shape == self.inputs.shape == self.records.shape) or self.nodes.ndim != 1:
            raise DataError("counts of people by history and input need three columns of the same length")
        a = len(self.joint.inputs)
        if (self.inputs < 0).any() or (self.inputs >= a).any() or (self.nodes < 0).any() or (self.records <= 0).any():
            raise DataError("counts of people by history and input must be of inputs of the version, and above zero")
        if len(np.unique(self.nodes * a + self.inputs)) != len(self.nodes):
            raise DataError("counts of people by history and input must be of distinct pairs")
        people = np.bincount(self.inputs, weights=self.records, minlength=a).astype(np.int64)
        totals = self.counted_joint
        if totals.inputs != self.joint.inputs or (people != totals.counts.sum(axis=0)).any():
            raise DataError("the people by history and input are not those of the joint distribution; count them anew")
        if self.limits is not None and self.secrets == "all":
            raise DataError("secrets of earlier versions are not bounded under all tables that noise leaves open")
        silent = np.zeros(a, dtype=np.int64) if self.silent is None else np.asarray(self.silent)
        object.__setattr__(self, "silent", silent)
        freeze(self, "silent")
        new = self.nodes == 0
        fresh = np.bincount(self.inputs[new], weights=self.records[new], minlength=a).astype(np.int64)
        if silent.shape != (a,) or (silent < 0).any() or (silent > fresh).any():
            raise DataError("more people are said to be forgotten than count as new; count them anew")

    @property
    def counted_joint(self) -> Joint:
        """What these people add up to, whatever is published of it."""
        return self.joint if self.totals is None else self.totals

    @property
    def spoken(self) -> IntArray:
        """The records of whom something is decided by their history: without those who are silent; (k,)."""
        records: IntArray = self.records.copy()
        if self.silent is not None:
            new = self.nodes == 0
            records[new] -= self.silent[self.inputs[new]]
        return records

    @property
    def chosen_for(self) -> IntArray:
        """The records that rows are chosen for: all, or those of expected people who have a history; (k,)."""
        return self.records if self.totals is None else self.spoken

    def people(self, records: float) -> int:
        """How many people so many records are."""
        return math.ceil(records - _FEW) if self.weight == 1 else round(float(records) * self.weight)

    def known_by(self, public: Joint, changes: Mapping[int, Changes]) -> Observed:
        """The same people for an observer of published frequencies, and the distribution of changes that follows."""
        return replace(self, joint=public, changes=changes, totals=self.counted_joint, by_class=None)

    @classmethod
    def counted(cls, joint: Joint, changes: Mapping[int, Changes], nodes: IntArray, inputs: IntArray) -> Observed:
        """From the history and the input of every person, each (people,)."""
        a = len(joint.inputs)
        pairs, records = np.unique(np.asarray(nodes, dtype=np.int64) * a + inputs, return_counts=True)
        return cls(joint, changes, pairs // a, pairs % a, records)
