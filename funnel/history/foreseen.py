"""Foreseen: who is expected to have which history, from published tables alone, and what those draw from who have another.

What is published of a version must not tell who really has which history. So rows and the effective channel are made for
the people that a reader expects: ``M(h)`` of them have the history h, of whom ``M(h) Σ_x P(x|h) R(y|x,h)`` go on to hy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from funnel.errors import DataError
from funnel.history.allowed import Allowed, allowed_by
from funnel.history.changes import Changes
from funnel.history.following import cone_over, inner_bound
from funnel.history.law import laws_before
from funnel.history.observed import Observed
from funnel.history.past import Past
from funnel.history.prove import proven_weights
from funnel.history.standing import Standing, stand
from funnel.history.step import Step
from funnel.history.together import gains_at
from funnel.joint import FloatArray, IntArray, Joint
from funnel.protocol import WORD_BITS

# People that a history must be expected to have for rows of its own; and histories with rows of their own, the likeliest.
LEAST, MOST = 0.2, 2048
# What the expected people of a version are counted in: shares of 2^-30 of them.
_RECORDS = 2**30
# A channel of the library is tried where floats say that it keeps the conditions up to this.
_CLOSE = 1e-12


@dataclass(frozen=True, eq=False)
class Foreseen:
    """Histories and how many people are expected to have each.

    Parameters
    ----------
    nodes : ndarray of int64, shape (k,)
        Distinct and sorted.
    people : ndarray of float64, shape (k,)
        Not below zero.

    Raises
    ------
    DataError
        If lengths differ, or something is not as it should be.
    """

    nodes: IntArray
    people: FloatArray

    def __post_init__(self) -> None:
        if self.nodes.shape != self.people.shape or self.nodes.ndim != 1:
            raise DataError("histories and their expected people need two columns of the same length")
        if (np.diff(self.nodes) <= 0).any() or not np.isfinite(self.people).all() or (self.people < 0).any():
            raise DataError("expected people are not below zero, of distinct histories in their order")

    @classmethod
    def new(cls, people: float) -> Foreseen:
        """People of whom nothing was published."""
        return cls(np.zeros(1, dtype=np.int64), np.array([float(people)]))

    @property
    def total(self) -> float:
        """All of them."""
        return float(self.people.sum())

    def observed(self, past: Past, joint: Joint, changes: Mapping[int, Changes], row: int = 1) -> Observed:
        """These people as if they were counted, by history and by the input that is expected of each.

        Parameters
        ----------
        past : Past
        joint : Joint
            Published counts of the version.
        changes : mapping of int to Changes
        row : int

        Raises
        ------
        DataError
            If changes from the last version of some history are missing, or nobody is expected.
        """
        if not self.total > 0:
            raise DataError("nobody is expected in this version, so that nothing can be decided")
        laws = laws_before(past, self.nodes, joint, changes).values.sum(axis=1)
        records = np.floor(laws * (self.people / self.total)[:, None] * _RECORDS).astype(np.int64)
        at, inputs = np.nonzero(records)
        return counted_among(joint, changes, self.nodes[at], inputs, records[at, inputs], row)

    def after(self, step: Step) -> tuple[IntArray, IntArray, FloatArray]:
        """Histories after a step of these people, what it publishes, and how many are expected of each pair.

        Pairs that hardly anybody is expected of are left out, so that a tree of histories stays small.
        """
        observed = step.observed
        laws = laws_before(step.past, self.nodes, observed.joint, observed.changes).values.sum(axis=1)
        b = len(step.channel.outputs)
        places = np.minimum(np.searchsorted(step.followed, self.nodes), len(step.followed) - 1)
        known = step.followed[places] == self.nodes
        people = np.zeros((len(self.nodes), b))
        channels = step.drawn_from[places]
        for channel in np.unique(channels[known]).tolist():
            here = known & (channels == channel)
            rows = np.ldexp(step.library[channel].astype(np.float64), -WORD_BITS)
            people[here] = self.people[here, None] * (laws[here] @ rows.T)
        flat = people.reshape(-1)
        likely = np.argsort(-flat, kind="stable")[:MOST]
        kept = np.sort(likely[flat[likely] >= LEAST])
        return self.nodes[kept // b], np.asarray(kept % b, dtype=np.int64), flat[kept]


def counted_among(
    joint: Joint, changes: Mapping[int, Changes], nodes: IntArray, inputs: IntArray, records: IntArray, row: int
) -> Observed:
    """Some people by history and input, among whom counts are not those that are published."""
    sums = np.zeros_like(joint.counts)
    # Only what they add up to by input is asked of counts that are not published.
    np.add.at(sums[0], inputs, records)
    return Observed(joint, changes, nodes, inputs, records, exact=Joint(sums, joint.secret, joint.inputs), row=row)


def with_others(step: Step, nodes: IntArray) -> Step:
    """A step that also says what people draw from who have one of these histories, which nobody foresaw.

    The channel of the library that tells most of what is expected of them and provably keeps the bound for their law,
    else a constant one: a function of the history and of what is published.

    Parameters
    ----------
    step : Step
        Of those who were foreseen.
    nodes : ndarray of int64
        Histories that people have.
    """
    others = np.setdiff1d(nodes, step.followed)
    if not len(others):
        return step
    observed = step.observed
    allowed = allowed_by(step.guarantee)
    ones = np.ones(len(others), dtype=np.int64)
    standing = stand(
        step.past, counted_among(observed.joint, observed.changes, others, 0 * ones, ones, observed.row), allowed
    )
    gains = gains_at(step.target.matrix, observed.joint.p_input)
    likeliest = (standing.laws.values.sum(axis=1) @ gains.T).argmax(axis=1)
    chosen = _best_allowed(step, standing, allowed, gains)
    proven = proven_weights(standing, allowed, step.guarantee, step.library, np.maximum(chosen, 0), likeliest)
    library = np.concatenate([step.library, proven.library])
    followed = np.concatenate([step.followed, others])
    drawn_from = np.concatenate([step.drawn_from, proven.drawn_from + len(step.library)])
    order = np.argsort(followed)
    return replace(step, library=library, followed=followed[order], drawn_from=drawn_from[order])


def _best_allowed(step: Step, standing: Standing, allowed: Allowed, gains: FloatArray) -> IntArray:
    """The channel of the library for each history that tells most of those which floats allow; (h,), 0 if none does."""
    inner = inner_bound(step.guarantee, 1.0)
    laws = standing.laws.values
    best, most = np.zeros(len(laws), dtype=np.int64), np.full(len(laws), -np.inf)
    cones = [cone_over(inner, prior) for prior in standing.priors]
    rows = np.ldexp(step.library.astype(np.float64), -WORD_BITS)
    for channel, row in enumerate(rows):
        values = np.einsum("ha,ba,ba->h", laws.sum(axis=1), row, gains)
        outputs = laws @ row.T
        fits = np.ones(len(laws), dtype=np.bool_)
        for group, cone in enumerate(cones):
            here = np.flatnonzero(standing.prior_of == group)
            likely = outputs[here].sum(axis=1)
            before = np.maximum(laws[here].sum(axis=2) @ cone.T, 0.0)
            excess = np.einsum("kc,hcb->hkb", cone, outputs[here]) - before[:, :, None] * likely[:, None, :]
            fits[here] = (excess <= _CLOSE * likely[:, None, :]).all(axis=(1, 2))
        better = fits & (values > most)
        best[better], most[better] = channel, values[better]
    return best
