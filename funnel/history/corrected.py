"""Corrected: channels of a version whose published table is right on average for the people there are.

Rows are in balance for people who change as the published tables of changes say. How many records each value is
published for on average, ``M(y) = Σ_i R(y | x_i, h_i)``, tells how far the people there are differ from these. It is
published with noise, and what is drawn is changed once more by a channel T that reads the answer alone: the share
``(m_y - p_y)⁺ / m_y`` of each value that is published too often takes another value, in proportion to ``(p_z - m_z)⁺``.
For the shares m of M(y) the published table then has the mean ``T m = p``. What an answer tells is averaged by that, so
every bound on it stays (METHOD section 17).

Without noise M is not published, and T is made of M in whole records, as counts are, again until every value is
published as often as it is there, to within a record.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from funnel.errors import SolverError
from funnel.history.exact_distribution import WholeNumbers
from funnel.history.fitting import Fitted
from funnel.history.history_status import HistoryStatus, stand
from funnel.history.library import balanced, effective_weights, spoken_weights
from funnel.history.prove import described, keeps
from funnel.history.step import Step
from funnel.history.whole import Whole
from funnel.joint import FloatArray, IntArray
from funnel.measures import mutual_information
from funnel.protocol import DENOMINATOR, WORD_BITS, Protocol, WeightArray
from funnel.rounding import marginal_weights

PARTS: Final = 1 << 20
"""Of how many parts a record is: what one person is published as on average adds up to at most so many."""

_SHIFT = np.uint64(WORD_BITS - 20)
# How often the answers of real people are changed at most; the first time is enough but for the rounding of means.
_TIMES = 20
# How much of the constant row is mixed in where rounding has taken a row beyond its bound.
_MIXED = (0.0, 2.0**-44, 2.0**-38)
# No value is owed less than a part of a record, so that it can be put right.
_LEAST = DENOMINATOR // PARTS
# And where other rows of the version are drawn from other channels; all of it leaves all rows as they were.
_MIXED_OF_SOME = (0.003, 0.01, 0.03, 0.1, 0.2, 0.4, 0.7, 1.0)


def means(step: Step) -> IntArray:
    """How many records each value is published for on average, given the histories of the people of a version; (b,).

    In parts of a record. What each person adds is rounded down, so that one adds `PARTS` at most to all together.
    """
    observed = step.observed
    channels = step.channels_of(observed.nodes)
    parts = (step.library[channels, :, observed.inputs] >> _SHIFT).astype(np.int64)
    silent = 0 if observed.silent is None else int(observed.silent.sum())
    return np.asarray(observed.spoken @ parts + silent * (step.channel.marginal >> _SHIFT).astype(np.int64))


def correction(noisy: IntArray, p: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The share of each answer that takes another value, (b,), and how common each is among the values taken, (b,).

    Parameters
    ----------
    noisy : ndarray of int64, shape (b,)
        Means with noise, in any unit.
    p : ndarray, shape (b,)
        The distribution that the published table is to have.
    """
    counted = np.where(p > 0, np.maximum(noisy, 0), 0).astype(np.float64)
    if not counted.any():
        return np.zeros_like(p), p
    m = counted / counted.sum()
    moved = np.divide(np.maximum(m - p, 0.0), m, out=np.zeros_like(p), where=m > 0)
    missing = np.maximum(p - m, 0.0)
    return moved, missing / missing.sum() if missing.any() else p


def corrected(fitted: Fitted, noisy: IntArray) -> Fitted:
    """Channels whose answers are changed once more, so that the table is right on average by these means.

    Parameters
    ----------
    fitted : Fitted
        Of an invariant protocol.
    noisy : ndarray of int64, shape (b,)
        The means of its step, with noise.

    Raises
    ------
    SolverError
        If it is not proven that the bound holds.
    """
    of_expected, of_people = _changed_by([fitted.predicted, fitted.step], noisy, fitted.predicted.joint.p_input)
    return replace(fitted, step=of_people, predicted=of_expected)


def right_on_average(step: Step, whole: Whole | None = None) -> Step:
    """Channels of real people whose counts are exact, changed until the table of the version is right on average.

    Parameters
    ----------
    step : Step
        Of an invariant protocol; its channel is the effective one of its people.
    whole : Whole, optional
        Where the step is about some rows of a version: all rows, which keep the bound together. The rows of the step
        are then published as its constant row for them says.

    Raises
    ------
    SolverError
        If the table does not come to be right, or it is not proven that the bound holds.
    """
    for _ in range(_TIMES):
        published, wanted, off = _published(step, whole)
        # Of some rows it may not be proven yet that all together keep the bound.
        if (np.abs(published - wanted) <= off).all() and (whole is None or _keeps_whole(step, step.library, whole)):
            return step
        told = ((published + DENOMINATOR // 2) // DENOMINATOR).astype(np.int64)
        shares = np.maximum(wanted, _LEAST).astype(np.float64)
        (step,) = _changed_by([step], told, shares / shares.sum(), whole)
    raise SolverError("the table of a version does not come to be right on average; please report it")


def _published(step: Step, whole: Whole | None) -> tuple[WholeNumbers, WholeNumbers, int]:
    """How often values are published on average, how often they should be, (b,) each, and by how much it may be off.

    In units of 2^-63 of a record.
    """
    if whole is None:
        counts = step.joint.counts.sum(axis=0).astype(object)
        return step.channel.weights.astype(object) @ counts, counts * DENOMINATOR, DENOMINATOR
    published = spoken_weights(step.observed, step.library, step.channels_of(step.observed.nodes)).sum(axis=1)
    # Those who are forgotten are published like all others, and all of them may be off by a record.
    return published, whole.owed(int(step.observed.spoken.sum())), DENOMINATOR * whole.speaking // whole.joint.n


def _changed_by(steps: Sequence[Step], told: IntArray, p: FloatArray, whole: Whole | None = None) -> list[Step]:
    """Steps with channels T R for one T, by these means; the effective channel of all is that of the first.

    Where they are about some rows of a version, as much of the constant row is mixed in as all rows together need.

    Raises
    ------
    SolverError
        If it is not proven that the bound holds.
    """
    first = steps[0]
    standings = [stand(one.past, one.observed, one.guarantee, one.reserve) for one in steps]
    moved, taken = correction(told, p)
    constant = p if whole is None else np.ldexp(whole.now.astype(np.float64), -WORD_BITS)
    read_alone = first.guarantee.holds_for(first.joint, first.channel.weights)
    for share in _MIXED if whole is None else (*_MIXED, *_MIXED_OF_SOME):
        libraries = [_changed(one.library, moved, taken, share, constant) for one in steps]
        channel = _effective(first, libraries[0])
        if whole is None:
            kept = not read_alone or first.guarantee.holds_for(first.joint, channel.weights)
        else:
            kept = _keeps_whole(first, libraries[0], whole)
        if kept and all(
            keeps(status, library, one.channels_of(status.nodes))
            for one, status, library in zip(steps, standings, libraries, strict=True)
        ):
            break
    else:
        raise SolverError("a version is not proven to keep its bound once it is right on average; please report it")
    return [
        _with(one, status, library, channel) for one, status, library in zip(steps, standings, libraries, strict=True)
    ]


def _keeps_whole(step: Step, library: WeightArray, whole: Whole) -> bool:
    """Whether all rows of a version keep the bound once those of a step are drawn from these channels."""
    after = whole.with_rows(step.observed, library, step.channels_of(step.observed.nodes))
    return bool(step.guarantee.holds_for(whole.joint, after.weights()))


def _changed(
    library: WeightArray, moved: FloatArray, taken: FloatArray, share: float, constant: FloatArray
) -> WeightArray:
    """T R of channels (n, b, a), in whole numbers, with a share of a constant row, which T keeps.

    What is alike for two inputs stays alike.
    """
    rows = np.ldexp(library.astype(np.float64), -WORD_BITS)
    given = (rows * moved[:, None]).sum(axis=1, keepdims=True)
    changed = rows * (1 - moved)[:, None] + given * taken[:, None]
    found = (1 - share) * changed + share * constant[:, None]
    return balanced(np.ldexp(np.minimum(found, 1.0), WORD_BITS).astype(np.uint64))


def _effective(step: Step, library: WeightArray) -> Protocol:
    """W of the people of a step."""
    weights = effective_weights(step.observed, library, step.channels_of(step.observed.nodes))
    return replace(step.channel, weights=weights, marginal=marginal_weights(step.joint, weights))


def _with(step: Step, status: HistoryStatus, library: WeightArray, channel: Protocol) -> Step:
    """A step with other channels, and how far these go."""
    proven = described(status, library, step.channels_of(status.nodes))
    return replace(
        step,
        library=library,
        channel=channel,
        utility=mutual_information(step.joint, channel),
        **proven.figures(status, step.observed),
    )
