"""Rare values: those known from elsewhere to be no more common than so much, taken out of what records have to tell.

A value that hardly occurs is often published like a record of which nothing is known. From the records alone it could
then be everybody, so that nothing is told of any other value. An observer who knows that it is rare gets all others
back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from funnel.errors import SpecError
from funnel.estimation.departed_shares import DepartedShares
from funnel.estimation.linear import rounding_off
from funnel.joint import FloatArray, IntArray
from funnel.protocol import Protocol

AtMost = Mapping[tuple[str, ...], float]
"""Values of the protocol's inputs, and the largest share of these records that each of them can have."""


@dataclass(frozen=True, eq=False)
class RareValues:
    """A channel Q (b, a) of which some inputs are rare: known to have at most the shares u.

    They are taken to have half of that, ``r = u / 2`` with sum ρ. With ``c = Q r``, a record of any other value x is
    then published by the column ``(1 - ρ) Q_x + c`` of another channel Q' over the others alone: what Q' and their
    shares among each other p' give is what Q gives for ``(1 - ρ) p'`` and r.

    Attributes
    ----------
    channel : ndarray, shape (b, a)
        Q.
    places : ndarray of int, shape (k,)
        The rare inputs.
    at_most : ndarray, shape (k,)
        u.
    rounded : float
        By how much a probability of Q can be off.
    departed : DepartedShares, optional
        By how much outputs are more common than Q gives them.
    """

    channel: FloatArray
    places: IntArray
    at_most: FloatArray
    rounded: float = 0.0
    departed: DepartedShares | None = None

    @classmethod
    def of(
        cls,
        protocol: Protocol,
        at_most: AtMost | None,
        rounded: float = 0.0,
        departed: DepartedShares | None = None,
    ) -> RareValues:
        """The values of a protocol that something is known of.

        Raises
        ------
        SpecError
            If departures are of other outputs, a value is none of the protocol's, a share is none, or they leave
            nothing for the others.
        """
        channel = protocol.matrix / protocol.matrix.sum(axis=0)
        if not 0 <= rounded <= 1:
            raise SpecError("probabilities of a protocol are off by 0 to 1: by what protocol.json says under rounded")
        if departed is not None and len(departed.shares) != len(channel):
            raise SpecError(f"departures are of {len(channel):,} published values, those of the protocol")
        known = dict(at_most or {})
        order = {symbol: place for place, symbol in enumerate(protocol.inputs.symbols)}
        unknown = [symbol for symbol in known if symbol not in order]
        if unknown:
            raise SpecError(f"{' · '.join(unknown[0])!r} is no value of {', '.join(protocol.inputs.columns)}")
        shares = np.array([known[symbol] for symbol in known], dtype=float)
        if not (np.isfinite(shares) & (shares >= 0)).all():
            raise SpecError("what is known of a value is the largest share that it can have, from 0 to 1")
        if shares.sum() >= 1 or len(known) == len(order):
            raise SpecError("the values that are known to be rare leave nothing for the others; name fewer of them")
        return cls(channel, np.array([order[symbol] for symbol in known], dtype=np.int64), shares, rounded, departed)

    def shares_of(self, counts: IntArray) -> FloatArray:
        """Shares of outputs (b,) without their departures, whose mean is ``Q p``; some may be below zero."""
        seen = counts / counts.sum()
        return np.asarray(seen if self.departed is None else seen - self.departed.shares)

    def departed_covariance(self, weights: FloatArray) -> FloatArray:
        """What is not known of departures adds to the covariance of sums of these shares, weights (k, b): (k, k)."""
        if self.departed is None:
            return np.zeros((len(weights), len(weights)))
        return np.asarray(weights @ self.departed.covariance @ weights.T)

    def in_part(self, share: float) -> RareValues:
        """The same in a part of the records, which may have all of the rare values; none where they could be it all."""
        at_most = self.at_most / share
        if at_most.sum() < 1:
            return replace(self, at_most=at_most)
        return replace(self, places=self.places[:0], at_most=at_most[:0])

    def known(self, protocol: Protocol) -> Iterator[tuple[tuple[str, ...], float]]:
        """What was said: every rare value, and its largest share."""
        for place, share in zip(self.places.tolist(), self.at_most.tolist(), strict=True):
            yield protocol.inputs.symbols[place], share

    def whole(self, shares: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Shares of the others among each other as shares of all inputs (a,), and the largest that these can have."""
        all_shares, most = np.empty(self.channel.shape[1]), np.ones(self.channel.shape[1])
        all_shares[self.others], all_shares[self.places] = self.left * shares, self.taken
        most[self.places] = self.at_most
        return all_shares, most

    @property
    def others(self) -> IntArray:
        """The inputs that are not rare."""
        return np.delete(np.arange(self.channel.shape[1]), self.places)

    @property
    def taken(self) -> FloatArray:
        """r: the shares that the rare inputs are taken to have; shape (k,)."""
        return self.at_most / 2

    @property
    def left(self) -> float:
        """1 - ρ: what the others share."""
        return 1.0 - float(self.taken.sum())

    @property
    def seen(self) -> FloatArray:
        """Q': shape (b, a - k)."""
        mixed = self.left * self.channel[:, self.others] + (self.channel[:, self.places] @ self.taken)[:, np.newaxis]
        return np.asarray(mixed)

    def off(self, weights: FloatArray, counted: FloatArray) -> FloatArray:
        """By how much linear estimates can be off because the rare inputs have other shares than r, and Q is rounded.

        With weights M such that ``M Q'`` is one for the others that count, ``(1 - ρ) M (Q_O p_O + Q_R q)`` and the r
        that count differ from what is estimated by a linear function of ``q - r``, of slope ``M c + (1 - ρ) M Q_x``,
        less one where x counts; and each q is within u / 2 of r.

        Parameters
        ----------
        weights : ndarray, shape (m, b)
        counted : ndarray, shape (m, k)
            One where a rare input is in what is estimated, else zero.

        Returns
        -------
        ndarray, shape (m,)
        """
        rounding = rounding_off(self.left * weights, self.rounded)
        return np.asarray(np.abs(self.slopes(weights, counted)) @ self.taken) + rounding

    def slopes(self, weights: FloatArray, counted: FloatArray) -> FloatArray:
        """How linear estimates, less what they are of, change with the shares of rare inputs: (m, k), as `off` has it.

        For what is estimated any number may count for an input, not only one or zero.
        """
        columns = self.channel[:, self.places]
        return np.asarray(self.left * weights @ columns + (weights @ (columns @ self.taken))[:, np.newaxis] - counted)
