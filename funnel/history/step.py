"""Step: what has been decided for a version, about people who have histories."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from funnel.alphabet import Alphabet
from funnel.errors import DataError
from funnel.guarantees.base import Level
from funnel.history.allowed import Kept
from funnel.history.decisions import channel_digest, decision_array, decision_digest, numbered
from funnel.history.library import distinct_channels
from funnel.history.observed import Observed
from funnel.history.past import Chapter, Past, silent_rows
from funnel.history.reached import ForObserver
from funnel.joint import IntArray, Joint
from funnel.measures import mutual_information
from funnel.protocol import Protocol, WeightArray
from funnel.sampling.draw import ChannelSampler
from funnel.sampling.keyed import DigestArray
from funnel.sampling.random_words import WordArray

HISTORY_COLUMN: Final = "history channel"
"""The column, of a snapshot that is to be drawn, that says which channel of the library a record is drawn from."""


@dataclass(frozen=True, eq=False)
class Step:
    """What `follow` has decided for a version: a channel for every history, and what they all come to.

    Attributes
    ----------
    version : str
    guarantee : Kept
        The declared bound, on everything published about a person up to this version.
    reserve : float
        Share of the budget that was used where the histories allow it.
    past : Past
        What was published before.
    observed : Observed
        The people of this version, as counts.
    target : Protocol
        What was aimed at: a protocol for this version alone.
    channel : Protocol
        The effective channel ``W(y|x) = Σ_h P(h|x) R(y|x, h)``: what an observer sees who cannot tell histories apart.
        Where that was asked for, it meets the guarantee for the version alone.
    library : ndarray of uint64, shape (m, b, a)
        Distinct channels, in the order of the symbols of ``channel``; every column sums to 2^63.
    followed, drawn_from : ndarray of int64, shape (h,)
        The nodes of the histories that people have, sorted, and the channel of the library each is drawn from.
    level : Level
        Not below the largest level over all outputs of all histories that are not moved, nor above the budget; its
        witness has the exact ratio of one place where it is attained up to 1e-12.
    worst : int or None
        The node of that history.
    worst_secret_of : str or None
        The earlier version whose secret it is there; None for the secret of the version itself.
    by_observer : tuple of ForObserver
        The same for every observer and the secret of every version, and about people who are outside; of the observer
        who knows changes the secret of the version first, and last what is not bounded.
    utility, alone, bound, entropy : float
        I(X;W); that of the target; an upper bound on what any step could keep; H(X). Nats.
    own : float or None
        Where whole records are published: the share of them that are expected to be people's own.
    released : pyarrow.Table or None
        The published columns, drawn by `funnel.History`.
    waves : tuple of Step
        Where people have several rows in the version: what was decided for the first rows, the second ones, ….
        Everything else is then about all rows but ``moved`` and ``outside``; ``past`` has the rows before the last.
    """

    version: str
    guarantee: Kept
    reserve: float
    past: Past
    observed: Observed
    target: Protocol
    channel: Protocol
    library: WeightArray
    followed: IntArray
    drawn_from: IntArray
    level: Level
    worst: int | None
    by_observer: tuple[ForObserver, ...]
    utility: float
    alone: float
    bound: float
    entropy: float
    worst_secret_of: str | None = None
    own: float | None = None
    released: pa.Table | None = None
    waves: tuple[Step, ...] = ()

    def __repr__(self) -> str:
        return f"<Step {self.version!r} within {self.guarantee}: level {self.level.value:.4g}, {self.channel!r}>"

    @classmethod
    def of_waves(cls, steps: Sequence[Step], observed: Observed, target: Protocol, channel: Protocol) -> Step:
        """All waves as one step.

        Parameters
        ----------
        steps : sequence of Step
            What was decided for the first rows, the second ones, …; one at least.
        observed : Observed
            All rows, as counts.
        target, channel : Protocol
            What was aimed at, and the effective channel of all rows.
        """
        first, distribution = steps[0], observed.joint
        starts = np.cumsum([0, *(len(step.library) for step in steps[:-1])])
        library, drawn_from = distinct_channels(
            np.concatenate([step.library for step in steps]),
            np.concatenate([step.drawn_from + start for step, start in zip(steps, starts, strict=True)]),
        )
        worst = max(steps, key=lambda step: step.level.value)
        return cls(
            version=first.version,
            guarantee=first.guarantee,
            reserve=first.reserve,
            past=steps[-1].past,
            observed=observed,
            target=target,
            channel=channel,
            library=library,
            followed=np.concatenate([step.followed for step in steps]),
            drawn_from=drawn_from,
            level=worst.level,
            worst=worst.worst,
            worst_secret_of=worst.worst_secret_of,
            by_observer=tuple(
                ForObserver.of_rows(rows) for rows in zip(*(step.by_observer for step in steps), strict=True)
            ),
            utility=mutual_information(distribution, channel),
            alone=mutual_information(distribution, target),
            bound=distribution.entropy,
            entropy=distribution.entropy,
            waves=tuple(steps),
        )

    @property
    def bounded_for(self) -> tuple[ForObserver, ...]:
        """The observers and secrets that are bounded; `moved`, `outside` and `moved_level` are the most of these."""
        return tuple(one for one in self.by_observer if one.bounded)

    @property
    def moved(self) -> int:
        """The most people who are outside by their history alone for an observer; see `ForObserver`."""
        return max(one.moved for one in self.bounded_for)

    @property
    def outside(self) -> int:
        """The most of them for whom an observer finds some possible output outside."""
        return max(one.outside for one in self.bounded_for)

    @property
    def moved_level(self) -> float | None:
        """The largest level over the outputs of those who are moved, for any observer; None if nobody is."""
        return max((one.moved_level for one in self.bounded_for if one.moved_level is not None), default=None)

    @property
    def joint(self) -> Joint:
        """Counts of (secret, input) of the people of this version."""
        return self.observed.joint

    @property
    def opening(self) -> Step:
        """What was decided for the first rows, of all people; the step itself where they have one row each."""
        return self.waves[0] if self.waves else self

    @property
    def histories(self) -> int:
        """How many different histories people had before this version; the empty one counts."""
        return len(self.followed)

    def rows_for(self, history: Iterable[tuple[str, int]]) -> WeightArray:
        """The integer weights (b, a) of R_t(·|·, h), columns summing to 2^63, in the order of ``channel``.

        A history that is possible but that nobody has gets a constant row: all of it on the likeliest output of
        ``channel``. It says nothing, so it is allowed whatever was published before.

        Parameters
        ----------
        history : iterable of (str, int)
            Names of versions and output indices, in the order of publication; empty for new people.

        Raises
        ------
        DataError
            If a version is unknown, out of order, or has no such output.
        """
        node = self.past.node(history)
        if node is not None:
            place = int(np.searchsorted(self.followed, node))
            if place < len(self.followed) and int(self.followed[place]) == node:
                return np.asarray(self.library[self.drawn_from[place]])
        return silent_rows(self.channel)

    def channels_of(self, nodes: IntArray) -> IntArray:
        """Which channel of the library people with each of these histories, of those that are followed, draw from."""
        return np.asarray(self.drawn_from[np.searchsorted(self.followed, nodes)])

    def decision_digests(self, nodes: IntArray) -> list[bytes]:
        """What tells the decision about the people with each of these histories from all others: 16 bytes.

        Raises
        ------
        DataError
            If nobody has such a history.
        """
        places = np.searchsorted(self.followed, nodes)
        if (self.followed[np.minimum(places, len(self.followed) - 1)] != nodes).any():
            raise DataError(f"nobody in version {self.version!r} has such a history")
        channels = self.drawn_from[places]
        outputs = numbered(self.channel.outputs) if self.waves or self.observed.of_units else self.channel.outputs
        of_channel = {
            channel: channel_digest(self.library[channel], self.channel.inputs, outputs)
            for channel in np.unique(channels).tolist()
        }
        return [
            decision_digest(self.past.digest(node), of_channel[channel])
            for node, channel in zip(nodes.tolist(), channels.tolist(), strict=True)
        ]

    def decisions(self, nodes: IntArray) -> DigestArray:
        """The same of the history of every person, as numbers; shape (people, 2)."""
        return decision_array(self.decision_digests(self.followed))[np.searchsorted(self.followed, nodes)]

    def drawn(self, nodes: IntArray, inputs: IntArray, words: WordArray) -> IntArray:
        """An output for everybody, shape (people,), from the channel of their history, by a word each."""
        a = len(self.joint.inputs)
        channels = self.channels_of(nodes)
        pairs, codes = np.unique(channels * a + inputs, return_inverse=True)
        rows = np.ascontiguousarray(self.library[pairs // a, :, pairs % a].T)
        return ChannelSampler(rows, self.channel.marginal).draw(codes, words).astype(np.int64)

    def chapter(self, parents: IntArray, outputs: IntArray) -> Chapter:
        """The version as the past keeps it, from what was drawn: distinct pairs of history and output, each (k,)."""
        return Chapter(
            self.version,
            str(self.guarantee),
            self.joint,
            self.observed.changes,
            self.channel,
            self.library,
            self.followed,
            self.drawn_from,
            self.past.size,
            np.asarray(parents, dtype=np.int64),
            np.asarray(outputs, dtype=np.int64),
            self.observed.row,
            self.observed.of_units,
            self.observed.limits,
            self.observed.by_class,
        )

    def published(
        self, nodes: IntArray, outputs: IntArray, predicted: IntArray | None = None
    ) -> tuple[Chapter, IntArray]:
        """The version as the past keeps it, and the histories (people,) of everybody after what was drawn of them.

        ``predicted`` are numbers ``node * outputs + output``, which are numbered first, whether somebody has them.
        """
        b = len(self.channel.outputs)
        drawn, known = nodes * b + outputs, np.zeros(0, dtype=np.int64) if predicted is None else predicted
        codes = np.concatenate([known, np.setdiff1d(drawn, known)])
        order = np.argsort(codes)
        chapter = self.chapter(codes // b, codes % b)
        return chapter, chapter.first + order[np.searchsorted(codes, drawn, sorter=order)]


def drawing_protocol(step: Step) -> Protocol:
    """The channels of a step's library as one protocol that reads ``"history channel"`` beside the inputs.

    Its symbols are ``(str(k), *x)`` for the channel k of the library and every input x that somebody with a history
    drawn from k has; their weights are those of channel k. Outputs and marginal are those of ``step.channel``.

    Parameters
    ----------
    step : Step

    Returns
    -------
    Protocol
        Over at most as many symbols as there are people.
    """
    observed, joint = step.observed, step.joint
    channels = step.channels_of(observed.nodes)
    a = len(joint.inputs)
    pairs = np.unique(channels * a + observed.inputs)
    ks, xs = pairs // a, pairs % a
    symbols = tuple((str(k), *joint.inputs.symbols[x]) for k, x in zip(ks.tolist(), xs.tolist(), strict=True))
    return Protocol(
        np.ascontiguousarray(step.library[ks, :, xs].T),
        step.channel.marginal,
        Alphabet((HISTORY_COLUMN, *joint.inputs.columns), symbols),
        step.channel.outputs,
        mechanism="history",
        guarantee=step.channel.guarantee,
    )
