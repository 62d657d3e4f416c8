"""What a channel tells, in nats: I(X;Y) and I(S;Y), beside H(X), from whole numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from flint import arb

from funnel.recount.channel import Channel
from funnel.recount.intervals import below, float_above


@dataclass(frozen=True)
class PlainInformation:
    """What a release says about the published columns, in nats.

    Attributes
    ----------
    utility : float
        I(X;Y).
    entropy : float
        H(X).
    share : float
        Their quotient; 1 where there is nothing to say.
    """

    utility: float
    entropy: float
    share: float


def plain_information(channel: Channel) -> PlainInformation:
    """I(X;Y), H(X) and their quotient; O(a b c)."""
    records = channel.records
    total = channel.n * channel.denominator
    terms = []
    for y in range(len(channel.weights)):
        # P(u, y) = N[u] / total.
        joint = channel.masses_by_input(y)
        whole = sum(mass for _, mass in joint)
        terms += [mass / total * _log_of_quotient(mass * channel.n, whole * records[u]) for u, mass in joint]
    utility = max(0.0, math.fsum(terms))
    entropy = math.fsum(size / channel.n * math.log(channel.n / size) for size in records if size)
    return PlainInformation(utility, entropy, utility / entropy if entropy else 1.0)


def _log_of_quotient(above: int, below: int) -> float:
    """ln(above / below) to full precision, near 1 too, where the quotient itself has lost its digits."""
    return math.log1p((above - below) / below) if 2 * abs(above - below) < below else math.log(above / below)


@dataclass(frozen=True)
class SecretInformation:
    """I(S;Y) of a channel.

    Attributes
    ----------
    joint : tuple of tuple of int
        Masses of the outputs that occur and the secrets that occur.
    """

    joint: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, channel: Channel) -> SecretInformation:
        """That of the channel's exact law."""
        return cls(tuple(tuple(masses[s] for s in channel.secrets) for masses in channel.outputs()))

    @property
    def nats(self) -> float:
        """In nats, rounded up."""
        return 0.0 if self._independent else float_above(self._value)

    def within(self, nats: Fraction) -> bool:
        """Whether it is at most a bound, exactly: unless it is 0 it is no rational number, so an interval decides."""
        return self._independent or (nats > 0 and not below(nats, self._value))

    @property
    def _independent(self) -> bool:
        total, secrets = sum(map(sum, self.joint)), [sum(column) for column in zip(*self.joint, strict=True)]
        return all(
            mass * total == sum(masses) * secret
            for masses in self.joint
            for mass, secret in zip(masses, secrets, strict=True)
        )

    def _value(self) -> arb:
        """``H(S) + H(Y) - H(S, Y)``."""
        secrets = [sum(column) for column in zip(*self.joint, strict=True)]
        outputs = [sum(masses) for masses in self.joint]
        return _entropy(secrets) + _entropy(outputs) - _entropy([mass for masses in self.joint for mass in masses])


def _entropy(masses: Sequence[int]) -> arb:
    """Of the law in proportion to whole numbers, at the precision that is set."""
    total = sum(masses)
    sums = sum((arb(mass) * arb(mass).log() for mass in masses if mass), arb(0))
    return arb(total).log() - sums / arb(total)
