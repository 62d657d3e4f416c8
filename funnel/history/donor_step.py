"""Donor step: what is decided for a version of whole records, given everything published about the same people."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import zip_longest

import numpy as np

from funnel.alphabet import CLASS_COLUMN, Alphabet
from funnel.guarantees.base import Level, Witness
from funnel.history.donor_beliefs import Belief, RowToCome, rows_to_come
from funnel.history.donor_channels import FEWEST, DonorChannel, channel_for, nearest_classes, require_kept
from funnel.history.following import VersionTerms
from funnel.history.library import balanced, distinct_channels
from funnel.history.observed import Observed
from funnel.history.observers import TRANSITIONS
from funnel.history.past import Chapter, Past
from funnel.history.reached import ForObserver
from funnel.history.step import Step
from funnel.joint import FloatArray, IntArray, Joint
from funnel.measures import mutual_information
from funnel.protocol import WORD_BITS, Protocol, WeightArray
from funnel.sampling.donors import STANDING_COLUMN

# How often rows and columns of a table of classes are scaled; of hardly any changes more rounds come no closer.
_ROUNDS = 100


class DonorBeliefs:
    """What an observer believes of the people with every history of a past of whole records.

    Parameters
    ----------
    past : Past
        Chapters count by secret and class; channels have 2k outputs and read 2k + 1 inputs.
    """

    def __init__(self, past: Past) -> None:
        self._past = past
        self._after: dict[int, Belief] = {}

    def before(self, node: int, version: Chapter | Observed) -> tuple[Belief, Fraction]:
        """Of people with a history who are in a version, and the share of their donors who are there."""
        joint = version.joint
        number = self._past.ordinal(version.version) if isinstance(version, Chapter) else len(self._past)
        if not node:
            return Belief.of_new(joint.counts.reshape(-1), len(joint.secret), number), Fraction(1)
        last, output = self._published(node)
        k, changes, earlier = len(joint.inputs), version.changes[last], self._past.chapters[last].joint
        if version.row > 1:
            # Donors have as many rows as the unit, so none has left.
            return self._of(node).next_row(number, joint, changes), Fraction(1)
        there = int(changes.records[changes.before % k == output % k].sum())
        stays = Fraction(there, int(earlier.counts[:, output % k].sum()))
        return self._of(node).at(number, joint, changes), stays

    def _of(self, node: int) -> Belief:
        """Of people with a history once its last output is published."""
        if node not in self._after:
            last, output = self._published(node)
            chapter = self._past.chapters[last]
            parent = int(chapter.parents[node - chapter.first])
            before, stays = self.before(parent, chapter)
            weights = chapter.library[int(chapter.channels_of(np.array([parent]))[0]), output].tolist()
            self._after[node] = before.published(stays, output, weights)
        return self._after[node]

    def _published(self, node: int) -> tuple[int, int]:
        last = int(self._past.versions_of(np.array([node]))[0])
        chapter = self._past.chapters[last]
        return last, int(chapter.outputs[node - chapter.first])


def donor_step(past: Past, observed: Observed, terms: VersionTerms) -> Step:
    """Decide a version of whole records.

    Parameters
    ----------
    past : Past
    observed : Observed
        Counted by secret and class, of the same values in all versions.
    terms : VersionTerms
        With the protocol of the version alone, over classes.

    Returns
    -------
    Step
        Its channels have 2k outputs and read 2k + 1 inputs.
    """
    return decide_donors(past, observed, terms)[0]


def decide_donors(past: Past, observed: Observed, terms: VersionTerms) -> tuple[Step, FloatArray]:
    """The same, with how many records of each class are expected to get each output, (k, 2k)."""
    guarantee, beliefs, joint = require_kept(terms.guarantee), DonorBeliefs(past), observed.joint
    nodes, people = _people(observed)
    donors = joint.counts.sum(axis=0) - observed.silent
    begins = [nearest_classes(joint, donors, least) for least in (1, FEWEST if nodes.any() else 1)]
    ahead: tuple[RowToCome, ...] = ()
    if (members := observed.members) is not None:
        everybody = beliefs.before(int(nodes[0]), observed)[0].everybody
        ahead = rows_to_come(everybody, joint, members.changes, members.rows - observed.row)
    channels = []
    for number, node in enumerate(nodes.tolist(), 1):
        before = beliefs.before(node, observed)
        channels.append(channel_for(*before, joint, guarantee, terms.reserve, begins[node > 0], ahead))
        terms.progress("deciding histories", number, len(nodes))
    library, drawn_from = distinct_channels(np.array([one.weights for one in channels]), np.arange(len(channels)))
    table = np.asarray(sum(count * one.published() for count, one in zip(people.tolist(), channels, strict=True)))
    everybody_is_new = len(channels) == 1 and len(channels[0].before.versions) == 1
    effective = effective_channel(joint, table, terms.aim, channels[0] if everybody_is_new else None)
    found, worst = _by_secret(past, nodes, channels, people, observed.members is not None)
    step = Step(
        version=terms.version,
        guarantee=guarantee,
        reserve=terms.reserve,
        past=past,
        observed=observed,
        target=terms.aim,
        channel=effective,
        library=library,
        followed=nodes,
        drawn_from=drawn_from,
        level=worst[0],
        worst=worst[1],
        worst_secret_of=worst[2],
        by_observer=found,
        utility=mutual_information(joint, over_classes(effective)),
        alone=mutual_information(joint, terms.aim),
        bound=joint.entropy,
        entropy=joint.entropy,
        own=math.fsum(count * one.unchanged for count, one in zip(people.tolist(), channels, strict=True)) / joint.n,
    )
    return step, table


def read_distributions(step: Step) -> tuple[IntArray, FloatArray]:
    """The people with each history, (h,), and P(secret, what a channel reads | h), (h, c, 2k + 1)."""
    nodes, people = _people(step.observed)
    beliefs, found = DonorBeliefs(step.past), []
    for node in nodes.tolist():
        belief, stays = beliefs.before(node, step.observed)
        masses = belief.read(stays)[-1]
        total = sum(masses.reshape(-1).tolist())
        found.append([[mass / total for mass in row] for row in masses.tolist()])
    return people, np.array(found)


def _people(observed: Observed) -> tuple[IntArray, IntArray]:
    """The histories that people have, and how many of whom something is decided have each."""
    nodes, place = np.unique(observed.nodes, return_inverse=True)
    return nodes, np.bincount(place.reshape(-1), weights=observed.spoken).astype(np.int64)


def over_classes(channel: Protocol) -> Protocol:
    """A channel with 2k outputs as one that publishes the class, whether the same person goes on or another begins."""
    k = len(channel.outputs) // 2
    return replace(
        channel,
        weights=channel.weights[:k] + channel.weights[k:],
        marginal=channel.marginal[:k] + channel.marginal[k:],
        outputs=Alphabet((CLASS_COLUMN,), tuple(symbol[1:] for symbol in channel.outputs.symbols[:k])),
    )


def _by_secret(
    past: Past, nodes: IntArray, channels: list[DonorChannel], people: IntArray, of_rows: bool
) -> tuple[tuple[ForObserver, ...], tuple[Level, int | None, str | None]]:
    """How far channels go for the secret of each version, this one first; and where most is told within the bound."""
    found = []
    level, worst, whose = Level(0.0, Witness(0, 0, None, None, True)), None, None
    # Secrets of all rows of units are those of one version.
    for secret_of in (None, *(() if of_rows else range(len(past)))):
        told = [
            (node, one, count)
            for node, channel, count in zip(nodes.tolist(), channels, people.tolist(), strict=True)
            for version, one in zip_longest(channel.before.versions, channel.by_secret)
            if of_rows or version == (len(past) if secret_of is None else secret_of)
        ]
        name = None if secret_of is None else past.chapters[secret_of].version
        within, beyond = ([one.level for _, one, _ in told if one.moved is moved] for moved in (False, True))
        moved, outside = (sum(count for _, one, count in told if getattr(one, name)) for name in ("moved", "outside"))
        highest, most = max(within, default=0.0), max(beyond, default=None)
        found.append(ForObserver(TRANSITIONS, name, True, highest, moved, outside, most))
        for node, one, _ in told:
            if not one.moved and one.level > level.value:
                level, worst, whose = Level(one.level, Witness(one.output, one.secret, None, None, True)), node, name
    return tuple(found), (level, worst, whose)


def effective_channel(joint: Joint, table: FloatArray, target: Protocol, alone: DonorChannel | None = None) -> Protocol:
    """P(output | class) for an observer of everybody, put right so that classes are as common as they are; (2k, k).

    What an observer expects of the people with a history adds up to the counted classes only on average: rows and
    columns of the table of own and published classes are scaled in turn. What columns are then off by is made up for by
    records that begin, whoever the person is: so it is exact also where classes hardly change, and tells nothing.

    Parameters
    ----------
    joint : Joint
        Counts (c, k).
    table : ndarray of float64, shape (k, 2k)
        Records of each class that are expected to get each output.
    target : Protocol
        Whose mechanism and guarantee are named.
    alone : DonorChannel, optional
        The channel of everybody, if nothing was published of anybody before.
    """
    k = len(joint.inputs)
    n = joint.counts.sum(axis=0)
    names = [name for (name,) in joint.inputs.symbols]
    outputs = Alphabet(
        (STANDING_COLUMN, CLASS_COLUMN), tuple((how, name) for how in ("goes on", "begins") for name in names)
    )
    weights = None if alone is None else np.ascontiguousarray(alone.weights[:, :k])
    if weights is None or not (weights[k:].any(axis=1) | (n == 0)).all():
        weights = _scaled(table, n / n.sum())
    marginal = balanced((weights.astype(object) @ n.astype(object) // int(n.sum())).astype(np.uint64)[None, :, None])
    return Protocol(weights, marginal[0, :, 0], joint.inputs, outputs, target.mechanism, target.guarantee)


def _scaled(table: FloatArray, shares: FloatArray) -> WeightArray:
    """Weights (2k, k) in proportion to a table of class and output, (k, 2k), with these shares of either class.

    Of a class that nobody is of any record begins.
    """
    k, there = len(shares), shares > 0
    of_class = table[:, :k] + table[:, k:]
    going_on = np.divide(table[:, :k], of_class, out=np.zeros_like(of_class), where=of_class > 0)
    for _ in range(_ROUNDS):
        of_class *= np.divide(shares, of_class.sum(axis=1), out=np.zeros(k), where=there)[:, None]
        by_output = of_class.sum(axis=0)
        of_class *= np.divide(shares, by_output, out=np.zeros(k), where=by_output > 0)
    rows = np.where(there[:, None], of_class, shares)
    rows /= rows.sum(axis=1, keepdims=True)
    published = shares @ rows
    some = published > 0
    kept = min(1.0, float((shares[some] / published[some]).min()))
    begins = kept * rows * (1 - going_on) + (shares - kept * published)
    both = np.concatenate([kept * rows * going_on, begins], axis=1).T
    return np.asarray(balanced(np.ldexp(np.minimum(both, 1.0), WORD_BITS).astype(np.uint64)[None])[0])
