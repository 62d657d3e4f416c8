"""Shared channel: one channel for several histories, and how much of a constant row each of them needs besides."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from funnel.history.tangent import ENOUGH
from funnel.joint import FloatArray

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
    work, judging : float
        What the programme took, and what its channel took with the members.
    """

    channel: FloatArray
    constant: FloatArray
    levels: npt.NDArray[np.int8]
    values: FloatArray
    bounds: FloatArray
    work: float
    judging: float

    @classmethod
    def for_needs(
        cls, channel: FloatArray, needs: FloatArray, bounds: FloatArray, work: float, judging: float
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
        return cls(channel, constant, levels, np.zeros(len(needs)), bounds, work, judging)

    def valued(self, masses: FloatArray, gains: FloatArray) -> SharedChannel:
        """With what it is worth to members of masses (k, a), who take as much of its constant as their levels say."""
        taken = np.where(self.levels > 0, 2.0 ** (np.maximum(self.levels, 1) - _LEVELS), 0.0)
        own, constant = masses @ (self.channel * gains).sum(axis=0), masses @ (self.constant @ gains)
        return replace(self, values=np.asarray((own + taken * constant) / (1.0 + taken * self.constant.sum())))

    def at_level(self, level: int) -> FloatArray:
        """The channel with so much of its constant row as a level says."""
        if level == 0:
            return self.channel
        share = 2.0 ** (level - _LEVELS) * self.constant
        return np.asarray((self.channel + share[:, None]) / (1.0 + share.sum()))
