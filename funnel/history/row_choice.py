"""Row choice: the rows of a version for all histories that people have, proven, and the effective channel of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from funnel.guarantees.sided import over_set
from funnel.guarantees.srlip import SRLIP
from funnel.history.aim import Aim
from funnel.history.allowed import Kept
from funnel.history.conditions import Beliefs, cone_over
from funnel.history.history_status import HistoryStatus
from funnel.history.kept_rows import FoundRows, KeptRows
from funnel.history.library import effective_weights, integer_library, with_constants
from funnel.history.observed import Observed
from funnel.history.possible_rows import PossibleSearch
from funnel.history.programme import Rows, RowSearch
from funnel.history.prove import Proven, proven_weights
from funnel.history.together import best_together, constants_needed
from funnel.history.whole import Whole
from funnel.joint import FloatArray, IntArray, Joint
from funnel.progress import Progress
from funnel.protocol import INVARIANT, WORD_BITS, Protocol, WeightArray
from funnel.rounding import marginal_weights
from funnel.solver.budget import UNITS_A_SECOND, Budget
from funnel.solver.integer_balance import IMBALANCE, imbalance

# Programmes are solved for a budget this much inside, relatively, so that proofs by intervals go through.
INSIDE: Final = 1e-9
# The same where W is held to every set of tables that noise leaves open, by conditions that are added one by one.
_DEEPER = 3e-3
# Ratios that are beyond their limits by no more than this are mended by constant rows.
_MENDED = 5e-3
# The share of what work is left that a search for rows may take, and the share of all of it below which none is begun
# any more; below which it is not tried again from another start.
_SHARE, _LEFT, _AGAIN = 0.75, 0.1, 0.5
# Rows that took less work than a hundredth of a second are found again as fast as they are read.
_WORTH_KEEPING = 0.01 * UNITS_A_SECOND
# How much more a channel says to find what it is about to break; of how many outputs and half-spaces.
_SHARPER, _MANY = 0.1, 64
# Constant rows added to outputs of W that say too much: the least that is tried, and more of what floats ask for.
_HAIR, _MORE = 2.0**-40, tuple(2.0**bits for bits in (0, 0.25, 1, 4, 10, 20))
# How often W is brought into balance, each time closer.
_BALANCED = 6
# The same where only some rows of a version are drawn; then how much of the constant row is mixed in.
_MORE_OF_SOME, _SHARES = (1.0, 1.1, 1.5), (0.01, 0.03, 0.1, 0.2, 0.4, 0.7)
# The same where the worst tables are found on the way.
_AGAIN_MORE = (*(1.0,) * 12, *(2.0**bits for bits in (0.01, 0.05, 0.25, 1, 4, 10, 20)))


@dataclass(frozen=True, eq=False)
class RowChoice:
    """What the rows of a version are chosen for: histories, whom W is an average over, and what is aimed at."""

    status: HistoryStatus
    observed: Observed
    target: Protocol
    aim: Aim
    read_alone: bool
    whole: Whole | None

    @property
    def joint(self) -> Joint:
        return self.observed.joint

    @property
    def declared(self) -> Kept:
        return self.status.guarantee

    @property
    def inside(self) -> Kept:
        """The declared bound, a hair inside."""
        return self.declared.tightened(INSIDE)

    @cached_property
    def places(self) -> IntArray:
        """The history of every entry of ``observed``, by its place."""
        return np.searchsorted(self.status.nodes, self.observed.nodes)

    def effective(self, rows: Proven) -> WeightArray:
        """W of these rows."""
        return effective_weights(self.observed, rows.library, rows.drawn_from[self.places])

    def with_row(self, rows: Proven, constants: FloatArray, likeliest: IntArray) -> Proven:
        """Rows with so much of a constant one in all channels."""
        library = with_constants(rows.library, np.tile(constants, (len(rows.library), 1)))
        return proven_weights(self.status, library, rows.drawn_from, likeliest)

    def best(
        self, inner: Kept, budget: Budget, progress: Progress, kept: KeptRows | None = None, digest: str = ""
    ) -> Proven:
        """The best rows over all histories, proven.

        Rows that were kept under the digest of all that they depend on are not searched again, but rounded and proven.
        """
        status, aim, target = self.status, self.aim, self.target
        found = None if kept is None else kept.find_rows(digest)
        if found is None:
            spent = budget.spent
            found = FoundRows(*self._searched(inner, budget, progress), budget.spent - spent)
            # What a clock or somebody ended would be another one next time.
            if kept is not None and found.work >= _WORTH_KEEPING and budget.ended_by in (None, "work"):
                kept.keep_rows(digest, found)
        else:
            budget.spend(found.work)
        library, assigned, masses = found.library, found.assigned, status.masses()
        if self.observed.totals is not None:
            library, assigned = _expected(library, assigned, masses)
        otherwise = (masses @ aim.starts()[0].T).argmax(axis=1)
        published = aim.outputs(len(target.outputs))
        library = _over_all(library, published, len(target.outputs))
        return proven_weights(status, integer_library(library), assigned, published[otherwise])

    def _searched(self, inner: Kept, budget: Budget, progress: Progress) -> tuple[FloatArray, IntArray]:
        """The best rows over all histories that programmes find: a library (n, b, a) and the channel of each."""
        status, joint, aim, target = self.status, self.joint, self.aim, self.target
        masses = status.masses()
        search: RowSearch | PossibleSearch
        if status.possible is None:
            beliefs = Beliefs.of(status, inner)
            search = RowSearch(beliefs.distributions, masses, beliefs.cone_of, beliefs.cones, beliefs.sizes)
        else:
            search = PossibleSearch(status, status.possible, masses, inner, target.matrix)
        limited, begun = math.isfinite(budget.remaining), budget.remaining

        def solve(gains: FloatArray) -> Rows | None:
            if budget.expired or (limited and budget.remaining < _LEFT * begun):
                return None
            # Where not every history can have a programme, one good search is worth more than several poor ones.
            part = budget.part(_SHARE) if limited else budget
            return search.best(gains, budget=part, progress=progress)

        is_alone = self.read_alone and self.whole is None
        over = over_set(self.inside, joint) if is_alone and aim.balanced is not None else None
        deeper = None if over is None else over_set(self.declared.tightened(_DEEPER), joint)

        def broken(channel: FloatArray) -> tuple[FloatArray, IntArray]:
            # What W lacks afterwards is added as constant rows: in balance that has to be one for every output.
            # Conditions of a budget that is a little smaller leave little of that to be added.
            beyond = np.zeros(0) if over is None else over.half_spaces(joint, channel, most=1)[2]
            if deeper is None or beyond.max(initial=0.0) <= _MENDED:
                return np.zeros((0, len(joint.inputs))), np.zeros(0, dtype=np.int64)
            return deeper.half_spaces(joint, _sharper(joint, channel), most=4)[:2]

        if not self.read_alone:
            conditions = np.zeros((0, len(joint.inputs)))
        elif over is not None:
            conditions = over.starting_cone(joint)
        elif self.whole is None:
            conditions = self.conditions(target.matrix)
        else:
            conditions = self.whole.conditions(self.cone_of_whole(self.whole), joint.counts.sum(axis=0))
        return best_together(
            status,
            self.observed,
            conditions,
            aim,
            solve,
            broken,
            lambda: not budget.expired and (not limited or budget.remaining > _AGAIN * begun),
            progress,
        )

    def conditions(self, channel: FloatArray) -> FloatArray:
        """Half-spaces (k, a) that W meets where it meets the guarantee for the version alone.

        Where counts are known up to noise there are many more than can be written down. Those are taken that a channel
        (b, a) would break if it said a little more.
        """
        joint, over = self.joint, over_set(self.inside, self.joint)
        if over is None and isinstance(self.inside, SRLIP):
            return self.inside.cone(joint)
        if over is None:
            return cone_over(self.inside, joint.counts.sum(axis=1)) @ joint.p
        broken, _, _ = over.half_spaces(joint, _sharper(joint, channel), most=1 if len(channel) > _MANY else 4)
        return np.vstack([over.starting_cone(joint), broken[: _MANY * 4]])

    def cone_of_whole(self, whole: Whole) -> FloatArray:
        """Conditions on P(S|y) of all rows of the version."""
        return cone_over(self.inside, whole.joint.counts.sum(axis=1))

    def alone(self, proven: Proven, in_balance: FloatArray | None) -> tuple[Proven, Protocol]:
        """Rows for which W meets the guarantee for the version alone, where that is asked for, in balance if asked.

        And W. Where it does not, the outputs that say too much get a constant row, the same in all channels: a row that
        says nothing is allowed whatever the history, and so is its sum with one that is.
        """
        status, joint = self.status, self.joint
        is_alone = self.read_alone and self.whole is None
        published, size = self.aim.outputs(len(self.target.outputs)), len(self.target.outputs)

        def keeps(rows: Proven) -> bool:
            weights = self.effective(rows)
            bound = not is_alone or self.declared.holds_for(joint, weights)
            return bound and (in_balance is None or imbalance(joint, weights) <= IMBALANCE)

        if self.read_alone and self.whole is not None and self.aim.balanced is None:
            proven = self.within_whole(proven, self.whole)
        likeliest = np.full(len(status.nodes), int(marginal_weights(joint, self.effective(proven)).argmax()))
        if is_alone:
            proven = self.within_bound(proven, likeliest) or proven
        for _ in range(0 if in_balance is None else _BALANCED):
            if in_balance is None or keeps(proven):
                break
            constants = np.zeros(size)
            channel = _as_floats(self.effective(proven))[published]
            constants[published] = constants_needed(np.zeros((0, len(joint.inputs))), channel, in_balance)
            proven = self.with_row(proven, constants, likeliest)
        if not keeps(proven):
            silent = integer_library(_over_all(self.aim.silent[None], published, size))
            proven = proven_weights(status, silent, np.zeros_like(likeliest), likeliest)
        weights = self.effective(proven)
        mechanism = INVARIANT if self.target.is_invariant else "history"
        marginal, outputs = marginal_weights(joint, weights), self.target.outputs
        return proven, Protocol(weights, marginal, joint.inputs, outputs, mechanism, str(self.declared))

    def within_bound(self, proven: Proven, likeliest: IntArray) -> Proven | None:
        """Rows for which W meets the guarantee by itself, by as little of a constant as does; None without."""
        joint, weights = self.joint, self.effective(proven)
        if self.declared.holds_for(joint, weights):
            return proven
        first = _as_floats(weights)
        conditions, over = self.conditions(first), over_set(self.inside, joint)
        for more in _MORE if over is None else _AGAIN_MORE:
            needed = constants_needed(conditions, first)
            # What rounds to nothing would stay nothing when there must be more of it.
            candidate = self.with_row(proven, more * np.where(needed > 0, needed + _HAIR, 0.0), likeliest)
            weights = self.effective(candidate)
            if self.declared.holds_for(joint, weights):
                return candidate
            if over is not None:
                # Of all tables that noise leaves open, those that this channel breaks.
                conditions = np.vstack([conditions, over.half_spaces(joint, _as_floats(weights))[0]])
        return None

    def within_whole(self, proven: Proven, whole: Whole) -> Proven:
        """Rows for which the whole version meets the guarantee by itself, if all rows to come tell nothing.

        Where it does not, first the outputs that say too much get a constant row, and then everything comes nearer to
        the constant row of the whole, in the end all the way: then the whole is what it was before, which did meet it.
        """

        def with_rows(rows: Proven) -> Whole:
            return whole.with_rows(self.observed, rows.library, rows.drawn_from[self.places])

        after, joint = with_rows(proven), self.joint
        if self.declared.holds_for(whole.joint, after.weights()):
            return proven
        likeliest = np.full(len(self.status.nodes), int(whole.constant.argmax()))
        cone = self.cone_of_whole(whole)
        room = np.maximum(-whole.conditions(cone, joint.counts.sum(axis=0)).sum(axis=1), 1e-300)
        needed = np.maximum(after.excess(cone) / room, 0.0).max(axis=1, initial=0.0)
        needed = np.where(needed > 0, needed + _HAIR, 0.0)
        constant = np.ldexp(whole.constant.astype(np.float64), -WORD_BITS)
        added = [more * needed for more in _MORE_OF_SOME] + [share / (1 - share) * constant for share in _SHARES]
        for extra in added:
            if not np.isfinite(extra).all() or extra.sum() > 1 / _HAIR:
                continue
            candidate = self.with_row(proven, extra, likeliest)
            if self.declared.holds_for(whole.joint, with_rows(candidate).weights()):
                return candidate
        return self.silent(whole)

    def silent(self, whole: Whole) -> Proven:
        """The constant row that the whole has for them, for everybody."""
        nothing = np.zeros(len(self.status.nodes), dtype=np.int64)
        library = np.repeat(whole.now[None, :, None], len(self.joint.inputs), axis=2)
        return proven_weights(self.status, library, nothing, nothing + int(whole.now.argmax()))


def _over_all(library: FloatArray, published: IntArray, size: int) -> FloatArray:
    """Channels (n, b, a) of some outputs as channels of all of them, (n, size, a)."""
    everything = np.zeros((len(library), size, library.shape[2]))
    everything[:, published] = library
    return everything


def _sharper(joint: Joint, channel: FloatArray) -> FloatArray:
    """Rows (b, a) that say a little more than those of a channel."""
    common = (channel @ joint.p_input)[:, None]
    return np.maximum(channel + _SHARPER * (channel - common), 0.0)


def _expected(library: FloatArray, assigned: IntArray, masses: FloatArray) -> tuple[FloatArray, IntArray]:
    """The same rows, but for inputs that nobody expects of a history: these get what others with it get on average.

    Noise can hide people. If one of them could get an output that nobody expects after their history, a later version
    could say nothing of what they are.
    """
    unexpected = masses <= 0
    if not unexpected.any():
        return library, assigned
    kinds, of = np.unique(np.column_stack([assigned, unexpected]), axis=0, return_inverse=True)
    rows = library[kinds[:, 0]].copy()
    for row, hidden in zip(rows, kinds[:, 1:].astype(bool), strict=True):
        if hidden.any() and not hidden.all():
            row[:, hidden] = row[:, ~hidden].mean(axis=1, keepdims=True)
    return rows, np.asarray(of.reshape(-1))


def _as_floats(weights: WeightArray) -> FloatArray:
    return np.ldexp(weights.astype(np.float64), -WORD_BITS)
