"""Shared channel: one channel for several histories, and how much of a constant row each of them needs besides."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from funnel.history.conditions import Conditions
from funnel.history.tangent import ENOUGH, Ended
from funnel.joint import FloatArray, IntArray

# A library has up to so many mixtures of a channel: shares 1, 1/2, … 1/64 of what its members need at most.
_LEVELS = 7


@dataclass(frozen=True, eq=False)
class SharedChannel:
    """A channel, the constant row its members need at most, and what its multipliers say.

    Attributes
    ----------
    channel : ndarray, shape (b, a)
    constant : ndarray, shape (b,)
        Shares of the outputs that, added to the channel, make all members meet their conditions that can.
    levels : ndarray of int, shape (k,)
        What each member takes of the constant: 0 nothing, 1 to 7: 1/64, 1/32, … all of it; -1: it cannot use the
        channel.
    values, bounds : ndarray, shape (k,)
    prices : ndarray, shape (b, j)
        Multipliers of the j conditions, for a unit of mass.
    work, judging : float
        What the programme took, and what its channel took with the members.
    """

    channel: FloatArray
    constant: FloatArray
    levels: npt.NDArray[np.int8]
    values: FloatArray
    bounds: FloatArray
    prices: FloatArray
    work: float
    judging: float

    @classmethod
    def for_needs(
        cls,
        channel: FloatArray,
        needs: FloatArray,
        bounds: FloatArray,
        prices: FloatArray,
        work: float,
        judging: float,
    ) -> SharedChannel:
        """With what members need of a constant row, (k, b), infinite where none is enough; values are yet to come."""
        usable = np.isfinite(needs).all(axis=1)
        constant = needs[usable].max(axis=0, initial=0.0)
        share = np.divide(needs, constant, out=np.zeros_like(needs), where=constant > 0).max(axis=1)
        levels = np.full(len(needs), -1, dtype=np.int8)
        with np.errstate(divide="ignore"):
            halved = np.floor(-np.log2(share[usable]))
        levels[usable] = np.where(share[usable] > 0, _LEVELS - np.clip(halved, 0, _LEVELS - 1), 0)
        if constant.sum() <= ENOUGH:
            # One channel for all: what that costs is less than another channel would be worth.
            levels[usable] = _LEVELS
        return cls(channel, constant, levels, np.zeros(len(needs)), bounds, prices, work, judging)

    def valued(self, masses: FloatArray, gains: FloatArray) -> SharedChannel:
        """With what it is worth to members of masses (k, a), who take as much of its constant as their levels say."""
        taken = _taken(self.levels)
        own, constant = masses @ (self.channel * gains).sum(axis=0), masses @ (self.constant @ gains)
        return replace(self, values=np.asarray((own + taken * constant) / (1.0 + taken * self.constant.sum())))

    def at_level(self, level: int) -> FloatArray:
        """The channel with so much of its constant row as a level says."""
        if level == 0:
            return self.channel
        share = 2.0 ** (level - _LEVELS) * self.constant
        return np.asarray((self.channel + share[:, None]) / (1.0 + share.sum()))


def alone_channels(
    ended: Ended,
    needs: FloatArray,
    bounds: FloatArray,
    prices: FloatArray,
    judging: float,
    masses: FloatArray,
    gains: FloatArray,
) -> list[SharedChannel]:
    """Channels of m histories that are each of one alone, which takes all of its constant.

    Parameters
    ----------
    ended : Ended
    needs, bounds, prices
        As of `SharedChannel`, by history: (m, b), (m,) and (m, b, j).
    judging : float
    masses, gains : ndarrays, shapes (m, a) and (b, a)
    """
    usable = np.asarray(np.isfinite(needs).all(axis=1))
    constants = np.where(usable[:, None], needs, 0.0)
    levels = np.where(usable, _LEVELS, -1).astype(np.int8)
    each = masses[:, None, :]
    own = np.matmul(each, (ended.channels * gains).sum(axis=1)[:, :, None])[:, 0, 0]
    constant = np.matmul(each, np.matmul(constants[:, None, :], gains).swapaxes(1, 2))[:, 0, 0]
    values = (own + constant) / (1.0 + constants.sum(axis=1))
    return [
        SharedChannel(
            ended.channels[one],
            constants[one],
            levels[one : one + 1],
            values[one : one + 1],
            bounds[one : one + 1],
            prices[one],
            work,
            judging,
        )
        for one, work in enumerate(ended.work.tolist())
    ]


def _taken(levels: npt.NDArray[np.int8]) -> FloatArray:
    return np.asarray(np.where(levels > 0, 2.0 ** (np.maximum(levels, 1) - _LEVELS), 0.0))


def upper_bounds(
    prices: FloatArray, conditions: Conditions, masses: FloatArray, weights: FloatArray, gains: FloatArray
) -> FloatArray:
    """What no channel that meets the conditions of a history exceeds, (m,), by weak duality: for whatever prices.

    Parameters
    ----------
    prices : ndarray, shape (b, j) or (m, b, j)
        >= 0, for a unit of mass.
    conditions : Conditions
        Of m histories.
    masses, weights : ndarrays, shapes (m, a) and (m,)
    gains : ndarray, shape (b, a)
    """
    paid = np.matmul(prices, conditions.rows)
    paid *= weights[:, None, None]
    best = (masses[:, None, :] * gains - paid).max(axis=1).sum(axis=1)
    given_away = conditions.thin * prices.max(axis=-2, initial=0.0)
    return np.asarray(best + weights * given_away.sum(axis=1))


def valued_again(
    found: Sequence[SharedChannel],
    chosen: IntArray,
    levels: npt.NDArray[np.int8],
    parts: Iterable[tuple[slice, Conditions]],
    masses: FloatArray,
    weights: FloatArray,
    gains: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """What m histories have of channels that were found for other gains, and cannot exceed by their prices; (m,) each.

    Parameters
    ----------
    found : sequence of SharedChannel
    chosen : ndarray of int, shape (m,)
        The channel of each history; -1 where there is none: nothing is known of those.
    levels : ndarray of int, shape (m,)
    parts : iterable of (slice, Conditions)
        Histories under one cone each, all in their order.
    masses, weights, gains
        As of `upper_bounds`.
    """
    values, bounds = np.full(len(chosen), -np.inf), np.full(len(chosen), np.inf)
    own = np.array([(one.channel * gains).sum(axis=0) for one in found])
    constant = np.array([one.constant for one in found])
    for part, conditions in parts:
        known = np.flatnonzero(chosen[part] >= 0)
        members, of = part.start + known, chosen[part][known]
        if not len(known):
            continue
        prices = np.array([found[channel].prices for channel in of.tolist()])
        bounds[members] = upper_bounds(prices, conditions.of_some(known), masses[members], weights[members], gains)
        taken = _taken(levels[members])
        reached = (masses[members] * (own[of] + taken[:, None] * (constant[of] @ gains))).sum(axis=1)
        reached /= 1.0 + taken * constant[of].sum(axis=1)
        values[members] = np.where(levels[members] >= 0, reached, -np.inf)
    return values, bounds
