"""Prove: rows for every history as whole numbers that provably meet the bound, and how far they go."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from funnel.guarantees.base import Level, Witness
from funnel.guarantees.sided import over_set
from funnel.history.allowed import Kept, exact_lifts, lifts_of
from funnel.history.distributions import BoolArray
from funnel.history.exact_distribution import WholeNumbers
from funnel.history.history_status import HistoryStatus
from funnel.history.library import constant_channels, distinct_channels, with_constants
from funnel.history.observed import Observed
from funnel.history.reached import ForObserver, Reached
from funnel.history.worst_tables import told_of
from funnel.joint import FloatArray, IntArray
from funnel.protocol import WORD_BITS, WeightArray

# Outputs that do not pass get a constant row, so many times as likely as they are; then everything becomes constant.
_REPAIRS = tuple(2.0**bits for bits in (-30, -24, -18, -12, -8, -5, -3, -1, 1, 4, 10, 20))
# Histories of a step that are decided in whole numbers where floats leave it open whether they pass.
_EXACTLY = 200
# Outputs of new people that come so close to the budget are taken for those that leave it.
_NEAR = 1e-9
# P(s, y | h) held at once.
_ENTRIES = 1 << 22


@dataclass(frozen=True, eq=False)
class Proven:
    """Whole numbers that meet the bound for every history, observer and secret.

    Attributes
    ----------
    library : ndarray of uint64, shape (m, b, a)
    drawn_from : ndarray of int64, shape (h,)
    reached : tuple of Reached
        By observer and secret: of the one who knows changes the secret of the version first, what is not bounded last.
    """

    library: WeightArray
    drawn_from: IntArray
    reached: tuple[Reached, ...]

    def figures(self, status: HistoryStatus, observed: Observed) -> dict[str, Any]:
        """What a `Step` says of how far these go, about the people that have these histories."""
        furthest = self.furthest
        return {
            "level": furthest.level,
            "worst": None if furthest.worst is None else int(status.nodes[furthest.worst]),
            "worst_secret_of": furthest.secret_of,
            "by_observer": tuple(ForObserver.of(one, observed, status.people) for one in self.reached),
        }

    @property
    def furthest(self) -> Reached:
        """For whom, and in which secret, the level is largest, of what is bounded."""
        return max((one for one in self.reached if one.bounded), key=lambda one: one.level.value)


@dataclass(frozen=True, eq=False)
class _Decided:
    """What floats say of every history: whether it passes for certain, whether it may, its level and where it is.

    ``unsure``, shape (h, b), says which outputs do not pass for certain.
    """

    passes: BoolArray
    open: BoolArray
    outside: BoolArray
    outside_open: BoolArray
    nats: FloatArray
    output: IntArray
    unsure: BoolArray


def proven_weights(status: HistoryStatus, library: WeightArray, drawn_from: IntArray, otherwise: IntArray) -> Proven:
    """Whole numbers near those that a programme found, for which the bound holds for every history.

    Parameters
    ----------
    status : HistoryStatus
        h histories.
    library : ndarray of uint64, shape (n, b, a)
        Channels.
    drawn_from : ndarray of int64, shape (h,)
    otherwise : ndarray of int64, shape (h,)
        The output that a history always publishes where nothing else passes. A constant row leaves P(S | h) as it is.

    Notes
    -----
    Matrix products of O(h c a b); whole numbers for what they leave open. Where outputs of a history do not pass, a
    constant row is added to them, as little of it as is enough: what they say comes closer to P(S | h), and what all
    other outputs say stays as it is.
    """
    drawn_from = drawn_from.copy()
    every = np.arange(len(status.nodes))
    passes, unsure = _decided(status, library, drawn_from, every)
    failing = np.flatnonzero(~passes)
    libraries, size = [library], len(library)
    for share in (*_REPAIRS, np.inf):
        if not len(failing):
            break
        if share < np.inf:
            constants = share * np.where(unsure[failing], _distributions(status, library, drawn_from, failing), 0.0)
            repaired = with_constants(library[drawn_from[failing]], constants)
            own = np.arange(len(failing))
            verdict = _decided(status, repaired, own, failing, exactly=0)[0]
        else:
            repaired = constant_channels(otherwise[failing], *library.shape[1:])
            verdict = np.ones(len(failing), dtype=bool)
        libraries.append(repaired[verdict])
        drawn_from[failing[verdict]] = size + np.arange(int(verdict.sum()))
        size += int(verdict.sum())
        failing = failing[~verdict]
    library, drawn_from = distinct_channels(np.concatenate(libraries), drawn_from)
    return described(status, library, drawn_from)


def fitting(
    status: HistoryStatus,
    library: WeightArray,
    candidates: IntArray,
    places: IntArray,
) -> IntArray:
    """The first of some channels for which the bound provably holds, for every history; -1 where it does for none.

    Parameters
    ----------
    status : HistoryStatus
    library : ndarray of uint64, shape (m, b, a)
    candidates : ndarray of int64, shape (k, tries)
        Channels of the library, the best first; -1 where there are no more.
    places : ndarray of int64, shape (k,)
        Which histories of the status these are for.
    """
    found = np.full(len(places), -1, dtype=np.int64)
    left = np.arange(len(places))
    for tried in candidates.T:
        left = left[(found[left] < 0) & (tried[left] >= 0)]
        if not len(left):
            break
        channels = tried[left]
        passes, _ = _decided(status, library, channels, places[left])
        found[left[passes]] = channels[passes]
    return found


def keeps(status: HistoryStatus, library: WeightArray, drawn_from: IntArray) -> bool:
    """Whether it is proven of all channels that they meet the bound for their histories; as `described`."""
    # The same row for every input tells nothing.
    telling = (library != library[:, :, :1]).any(axis=(1, 2))
    places = np.flatnonzero(telling[drawn_from])
    passes, _ = _decided(status, library, drawn_from[places], places, exactly=len(places))
    return bool(passes.all())


def described(status: HistoryStatus, library: WeightArray, drawn_from: IntArray) -> Proven:
    """How far channels go of which it is proven that they meet the bound for every history.

    Parameters
    ----------
    status : HistoryStatus
    library : ndarray of uint64, shape (m, b, a)
    drawn_from : ndarray of int64, shape (h,)
    """
    by_row: dict[tuple[str, str | None, bool, int | None], Reached] = {}
    for one in (*status.everybody, *status.reported):
        here, _ = one.among(status.nodes)
        found = _reached(one, library, drawn_from[here])
        moved, outside = np.zeros(len(status.nodes)), np.zeros(len(status.nodes))
        moved[here], outside[here] = found.moved, found.outside
        worst = None if found.worst is None else int(here[found.worst])
        found = replace(found, moved=moved, outside=outside, worst=worst)
        row = found.observer, found.secret_of, found.bounded, one.secret_of
        by_row[row] = by_row[row].joined(found, of_others=True) if row in by_row else found
    reached: dict[tuple[str, str | None, bool], Reached] = {}
    for found in by_row.values():
        about = found.observer, found.secret_of, found.bounded
        reached[about] = reached[about].joined(found, of_others=False) if about in reached else found
    return Proven(library, drawn_from, tuple(reached.values()))


def _reached(status: HistoryStatus, library: WeightArray, drawn_from: IntArray) -> Reached:
    """How far channels go for the observer and in the secret of a status, by its own places."""
    bounded, every = status.bounded, np.arange(len(status.nodes))
    about = status.who, status.secret_name, bounded
    judged = _decide(status, library, drawn_from, every)
    # Of those that a bound is proven for, whoever is not moved is within it.
    may = status.moved | (not bounded)
    outside = judged.outside & may
    for place in np.flatnonzero(judged.outside_open & may).tolist():
        outputs = _exact_outputs(status, place, library[drawn_from[place]])
        outside[place] = not status.allowed.within_exactly(outputs, status.priors[status.prior_of[place]])
    share = np.ones(len(every)) if status.share is None else status.share
    people = status.moved * share, outside * share
    above = 32 * status.error
    moved_level = float(judged.nats[status.moved].max()) + above if status.moved.any() else None
    nats = np.where(status.moved, -1.0, judged.nats)
    if nats.max(initial=-1.0) < 0:
        nothing = Level(0.0, Witness(0, 0, None, Fraction(1), True))
        return Reached(*about, *people, nothing, None, moved_level)
    place = int(nats.argmax())
    if not bounded:
        level = Level(float(nats[place]) + above, Witness(int(judged.output[place]), 0, None, None, True))
        return Reached(*about, *people, level, place, moved_level)
    witness = _witness(status, place, int(judged.output[place]), library[drawn_from[place]])
    # All of these are proven to be within the budget, so a bound on their rounding need not go beyond it.
    value = min(status.guarantee.budget, float(nats[place]) + above)
    return Reached(*about, *people, Level(value, witness), place, moved_level)


def _decided(
    status: HistoryStatus,
    library: WeightArray,
    drawn_from: IntArray,
    places: IntArray,
    exactly: int = _EXACTLY,
) -> tuple[BoolArray, BoolArray]:
    """Which histories pass for every observer and secret, (k,), and which of their outputs do not for certain, (k, b).

    So many of what floats leave open for an observer and a secret are decided in whole numbers; the others do not pass.
    """
    passes, unsure = np.ones(len(places), dtype=bool), np.zeros((len(places), library.shape[1]), dtype=bool)
    for one in status.everybody:
        here, own = one.among(status.nodes[places])
        channels = drawn_from[here]
        judged = _decide(one, library, channels, own)
        unsure[here] |= judged.unsure
        found = judged.passes.copy()
        for at in np.flatnonzero(judged.open & passes[here])[:exactly].tolist():
            found[at] = _passes_exactly(one, int(own[at]), library[channels[at]])
        passes[here] &= found
    return passes, unsure


def _decide(
    status: HistoryStatus,
    library: WeightArray,
    drawn_from: IntArray,
    places: IntArray,
) -> _Decided:
    """What floats say of the histories at these places, each drawn from the channel at the same place of the list."""
    count, (c, b) = len(places), (status.distributions.values.shape[1], library.shape[1])
    passes, may = np.zeros(count, dtype=bool), np.zeros(count, dtype=bool)
    outside, outside_open = np.zeros(count, dtype=bool), np.zeros(count, dtype=bool)
    nats, output = np.zeros(count), np.zeros(count, dtype=np.int64)
    unsure = np.zeros((count, b), dtype=bool)
    constant = (library == library[:, :, :1]).all(axis=(1, 2))
    order = np.argsort(drawn_from, kind="stable")
    step = max(1, _ENTRIES // (c * b))
    for start in range(0, count, step):
        some = order[start : start + step]
        outputs = _outputs(status, library, drawn_from[some], places[some])
        for group in np.unique(status.prior_of[places[some]]).tolist():
            picked = np.flatnonzero(status.prior_of[places[some]] == group)
            here = some[picked]
            at, prior = places[here], status.priors[group]
            lifts = lifts_of(outputs[picked], prior)
            inside, beyond = status.allowed.within(lifts, status.error)
            before = lifts_of(outputs[picked].sum(axis=2)[:, :, None], prior)[:, :, 0]
            moved, sound = status.moved[at], status.distributions.sound[at]
            unchanged = constant[drawn_from[here]]
            fits = inside.copy()
            fits[moved] = status.allowed.no_worse(lifts[moved], before[moved], status.error)
            kept = _kept(status, library, drawn_from[here], at, unchanged)
            fits &= kept
            leaves = np.zeros_like(inside)
            if status.reserved is not None:
                stays, leaves = status.reserved.within.within(lifts, status.error)
                fits &= stays | ~status.reserves[at, None]
                leaves &= status.reserves[at, None]
            unsure[here] = ~fits
            good = fits.all(axis=1)
            passes[here] = unchanged | (good & sound)
            may[here] = ~passes[here] & ~(sound & ((~moved[:, None] & beyond) | leaves).any(axis=1)) & kept.all(axis=1)
            # A constant row leaves everybody where they are, which has been decided.
            outside[here] = np.where(unchanged, moved, beyond.any(axis=1) & sound)
            outside_open[here] = ~unchanged & ~outside[here] & ~(inside.all(axis=1) & sound)
            # What never occurs has no level at all.
            levels = np.where(outputs[picked].any(axis=1), status.nats(lifts), -1.0)
            output[here] = levels.argmax(axis=1)
            nats[here] = levels.max(axis=1)
    return _Decided(passes, may, outside, outside_open, nats, output, unsure)


def _kept(
    status: HistoryStatus,
    library: WeightArray,
    channels: IntArray,
    places: IntArray,
    unchanged: BoolArray,
) -> BoolArray:
    """Which outputs (k, b) are within the bound under every set of tables that noise leaves open, where that is asked.

    Those of new people are decided in whole numbers, over tables of counts alone.
    """
    possible = status.possible
    kept = np.ones((len(places), library.shape[1]), dtype=bool)
    if possible is None:
        return kept
    nodes = status.nodes[places]
    versions, steps = possible.steps_of(nodes)
    for v in np.unique(versions[~unchanged]).tolist():
        here = np.flatnonzero((versions == v) & ~unchanged)
        if steps[v].is_first:
            for one in here.tolist():
                kept[one] = _kept_of_new(status, possible.for_new_people(status.guarantee), library[channels[one]])
            continue
        weights = library[channels[here]]
        rows = np.ldexp(weights.astype(np.float64), -WORD_BITS)
        _, found = told_of(possible, steps[v], nodes[here], rows, status.allowed, weights)
        kept[here] = found.holds.reshape(len(here), -1)
    return kept


def _kept_of_new(status: HistoryStatus, guarantee: Kept, weights: WeightArray) -> BoolArray:
    """The same of a channel (b, a) for new people; (b,)."""
    over = over_set(guarantee, status.joint)
    if over is None:
        # Decided for the published counts alone.
        return np.zeros(len(weights), dtype=bool)
    if guarantee.holds_for(status.joint, weights):
        return np.ones(len(weights), dtype=bool)
    levels = over.output_levels(status.joint, np.ldexp(weights.astype(np.float64), -WORD_BITS))
    beyond = levels > guarantee.budget * (1 - _NEAR)
    return ~(beyond if beyond.any() else np.ones_like(beyond))


def _outputs(status: HistoryStatus, library: WeightArray, channels: IntArray, places: IntArray) -> FloatArray:
    """P(s, y | h), shape (k, c, b), of histories sorted by their channels."""
    (_, c, a), b = status.distributions.values.shape, library.shape[1]
    outputs = np.empty((len(places), c, b))
    starts = np.flatnonzero(np.diff(channels, prepend=-1))
    for start, end in zip(starts.tolist(), [*starts[1:].tolist(), len(places)], strict=True):
        rows = np.ldexp(library[channels[start]].astype(np.float64), -WORD_BITS)
        outputs[start:end] = (status.distributions.values[places[start:end]].reshape(-1, a) @ rows.T).reshape(-1, c, b)
    return outputs


def _distributions(status: HistoryStatus, library: WeightArray, drawn_from: IntArray, places: IntArray) -> FloatArray:
    """P(y | h) of some histories, shape (k, b)."""
    inputs = status.distributions.values[places].sum(axis=1)
    rows = np.ldexp(library[drawn_from[places]].astype(np.float64), -WORD_BITS)
    distributions = np.einsum("ka,kba->kb", inputs, rows)
    return np.asarray(distributions / distributions.sum(axis=1, keepdims=True))


def _exact_outputs(status: HistoryStatus, place: int, weights: WeightArray) -> WholeNumbers:
    """P(s, y | h) of one history times some whole number; Python integers, shape (c, b)."""
    return np.asarray(status.exact_distribution(place) @ weights.astype(object).T)


def _passes_exactly(status: HistoryStatus, place: int, weights: WeightArray) -> bool:
    outputs, prior = _exact_outputs(status, place, weights), status.priors[status.prior_of[place]]
    decide = status.allowed.no_worse_exactly if status.moved[place] else status.allowed.within_exactly
    if status.reserved is not None and status.reserves[place]:
        return decide(outputs, prior) and status.reserved.within.within_exactly(outputs, prior)
    return decide(outputs, prior)


def _witness(status: HistoryStatus, place: int, output: int, weights: WeightArray) -> Witness:
    """Where an output of a history says most, exactly."""
    prior = status.priors[status.prior_of[place]]
    seen = np.flatnonzero(prior).tolist()
    lifts = exact_lifts(_exact_outputs(status, place, weights[output : output + 1]), prior)[0]
    high, low = max(range(len(lifts)), key=lifts.__getitem__), min(range(len(lifts)), key=lifts.__getitem__)
    if status.allowed.apart is not None:
        ratio = lifts[high] / lifts[low] if lifts[low] else None
        return Witness(output, seen[high], seen[low], ratio, True, status.given)
    sides = status.nats(np.array([[[float(lifts[high])]], [[float(lifts[low])]]]))[:, 0]
    if sides[0] >= sides[1] or math.isnan(sides[1]):
        return Witness(output, seen[high], None, lifts[high], True, status.given)
    return Witness(output, seen[low], None, 1 / lifts[low] if lifts[low] else None, False, status.given)
