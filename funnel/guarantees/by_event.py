"""Bounds given what an observer knows of a record, over a set of distributions: event by event, in exact arithmetic."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from funnel.errors import SpecError
from funnel.guarantees.base import Level
from funnel.guarantees.budgets import OneBudget
from funnel.guarantees.exact import capped_exp, exp_below, log_level
from funnel.guarantees.families import Families
from funnel.guarantees.known_columns import Event, known_events
from funnel.guarantees.label_ratios import all_labels, label_half_spaces, label_levels, label_rows, worst_label
from funnel.guarantees.lift_guarantee import posterior_range
from funnel.guarantees.over_distributions import OfBase, RatioGuarantee, SetGuarantee, Sides
from funnel.guarantees.possible_distributions import DistributionSet
from funnel.guarantees.reading import reads_secret
from funnel.joint import FloatArray, IntArray, Joint
from funnel.protocol import DENOMINATOR, WeightArray

# Relative and absolute, of levels in floats.
_CLOSE = 1e-9

HalfSpaces = tuple[FloatArray, IntArray, FloatArray]


class SideChannels(OneBudget):
    """A bound for every observer who knows some of the published columns of a record, by one budget ε."""

    # Whether label LDP given all published columns is asked for besides.
    bounds_labels: ClassVar[bool] = False

    def every_set(self, joint: Joint) -> bool:
        """Whether the set of columns that an observer knows may be all of them.

        They are the whole input: no further news, unless the channel also reads the secret.

        Raises
        ------
        SpecError
            If there is one published column, of which nobody can know a part.
        """
        published = [column for column in joint.inputs.columns if column not in joint.secret.columns]
        if len(published) < 2:
            raise SpecError(
                f"{self.name} protects against observers who know some of several published columns, but only "
                f"{', '.join(published)} is published; publish two columns or use {self.name.replace('srlip', 'lip')}"
            )
        return reads_secret(joint)

    @property
    def lift_limits(self) -> tuple[float, float]:
        """(e^-ε, e^ε): an observer of the record alone knows none of its columns."""
        return 1 / capped_exp(self.epsilon), capped_exp(self.epsilon)

    def posterior_limits(self, prior: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Range of P(s|y) for an observer of the record alone, as for LIP."""
        return posterior_range(prior, *self.lift_limits)


@dataclass(frozen=True, eq=False)
class LIPOver(OneBudget, RatioGuarantee):
    """LIP over a set of distributions that is known already.

    Parameters
    ----------
    epsilon : float
        Nats.
    held : DistributionSet
    """

    held: DistributionSet

    @property
    def sides(self) -> Sides:
        """Lifts and inverse lifts."""
        return Sides(up=self.epsilon, down=self.epsilon)

    def distributions(self, joint: Joint) -> DistributionSet:
        """The set."""
        return self.held


Part = tuple[Event, RatioGuarantee]


class ByEvent(SetGuarantee):
    """LIP among the records of each event, over a set of distributions of each; and label LDP, where that is asked for.

    What an observer knows of a record, x_J, makes it one of the records with x_J. So the bound for that observer is LIP
    on the table of these records, and over a set of tables it is LIP over the set of their parts
    (`funnel.guarantees.known_columns`). Label LDP is about weights alone: no estimate comes into it.
    """

    @property
    @abstractmethod
    def bounded(self) -> SideChannels:
        """What is bounded."""

    @abstractmethod
    def parts(self, joint: Joint) -> Iterator[Part]:
        """Each event with LIP over the distributions of its records."""

    def label_inputs(self, joint: Joint) -> npt.NDArray[np.bool_] | None:
        """The entries (c, u) among which label LDP is asked for; None if it is not."""
        if not (self.bounded.bounds_labels and reads_secret(joint)):
            return None
        return all_labels(joint)

    def starting_cone(self, joint: Joint) -> FloatArray:
        """Those of every event, and all of label LDP; those that every row meets are left out."""
        labels = self.label_inputs(joint)
        blocks = [] if labels is None else [label_rows(labels, self.budget)]
        for event, part in self.parts(joint):
            blocks.append(_widened(part.starting_cone(event.joint), event))
        cone = np.vstack([np.zeros((0, len(joint.inputs))), *blocks])
        return np.asarray(cone[(cone > 0).any(axis=1)])

    def half_spaces(self, joint: Joint, rows: FloatArray, most: int = 4) -> HalfSpaces:
        """The most broken ones of all events and labels."""
        labels = self.label_inputs(joint)
        found = [] if labels is None else [label_half_spaces(labels, rows, self.budget, most)]
        for event, part in self.parts(joint):
            spaces, of, by = part.half_spaces(event.joint, rows[:, event.inside], most)
            found.append((_widened(spaces, event), of, by))
        return most_broken(found, rows, most)

    def families(self, joint: Joint, rows: FloatArray, margin: float) -> Families:
        """Those of all events; label LDP is among the half-spaces to begin with."""
        found = [Families.none(rows.shape[1])]
        for event, part in self.parts(joint):
            families = part.families(event.joint, rows[:, event.inside], margin)
            found.append(families.over(np.flatnonzero(event.inside), rows.shape[1]))
        return Families.joined(found)

    def output_levels(self, joint: Joint, rows: FloatArray) -> FloatArray:
        """The largest of all events and labels."""
        labels = self.label_inputs(joint)
        levels = np.zeros(len(rows)) if labels is None else label_levels(labels, rows)
        for event, part in self.parts(joint):
            levels = np.maximum(levels, part.output_levels(event.joint, rows[:, event.inside]))
        return np.asarray(levels)

    def level_for(self, joint: Joint, weights: WeightArray) -> Level:
        """The largest of all events and labels, each exact."""
        labels = self.label_inputs(joint) is not None
        best: Level | None = log_level(worst_label(joint, weights)) if labels else None
        first = math.inf
        # An exact level takes long, so events that floats say disclose less than one of another event are left out.
        parts, rows = list(self.parts(joint)), weights / np.float64(DENOMINATOR)
        most = [part.output_levels(event.joint, rows[:, event.inside]).max() for event, part in parts]
        for place in np.argsort(-np.array(most), kind="stable").tolist():
            if best is not None and most[place] < best.value * (1 - _CLOSE) - _CLOSE:
                break
            event, part = parts[place]
            level = self._level(joint, event, part, weights)
            if best is None or (level.value, -place) > (best.value, -first):
                best, first = level, place
        if best is None:
            raise ValueError("no event has any record")
        return best

    def _level(self, joint: Joint, event: Event, part: RatioGuarantee, weights: WeightArray) -> Level:
        level = part.level_for(event.joint, weights[:, event.inside])
        u = len(joint.inputs) // (len(joint.secret) if reads_secret(joint) else 1)
        whole = np.zeros((len(joint.secret), u))
        whole[:, event.inside[:u]] = level.witness.distribution
        distribution = tuple(tuple(row) for row in whole.tolist())
        return Level(level.value, replace(level.witness, given=event.given, distribution=distribution))

    def holds_for(self, joint: Joint, weights: WeightArray) -> bool:
        """Whether all hold: decided in whole numbers."""
        if self.label_inputs(joint) is not None:
            ratio = worst_label(joint, weights).ratio
            if ratio is None or ratio > exp_below(self.budget):
                return False
        return all(part.holds_for(event.joint, weights[:, event.inside]) for event, part in self.parts(joint))


def most_broken(found: list[HalfSpaces], rows: FloatArray, most: int) -> HalfSpaces:
    """Of several half-spaces for rows (k, a), of them and by how far, those that each row breaks most."""
    if not found:
        return np.zeros((0, rows.shape[1])), np.zeros(0, dtype=np.int64), np.zeros(0)
    spaces, of, by = (np.concatenate(parts) for parts in zip(*found, strict=True))
    order = np.lexsort((-by, of))
    rank = np.arange(len(order)) - np.searchsorted(of[order], of[order])
    kept = order[rank < most]
    return spaces[kept], of[kept], by[kept]


def _widened(spaces: FloatArray, event: Event) -> FloatArray:
    """Half-spaces over the inputs of an event as half-spaces over all inputs."""
    wide = np.zeros((len(spaces), len(event.inside)))
    wide[:, event.inside] = spaces
    return wide


@dataclass(frozen=True)
class OverKnown(OfBase, ByEvent):
    """A bound for observers who know some columns, over every table of counts that noise does not rule out.

    Parameters
    ----------
    base : SideChannels
        What has to hold under each of them.
    """

    base: SideChannels
    covers_noise: ClassVar[bool] = True

    @property
    def bounded(self) -> SideChannels:
        """The base."""
        return self.base

    def parts(self, joint: Joint) -> Iterator[Part]:
        """Every event that some table has, with all tables of its records."""
        for event in known_events(joint, self.base.every_set(joint)):
            if event.occurs:
                yield event, LIPOver(self.budget, event.counts)
