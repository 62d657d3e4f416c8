"""ρ1-to-ρ2 privacy breaches: a property of the secret that was unlikely and that some output makes likely, or back."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np

from funnel.errors import SpecError
from funnel.guarantees.exact import secret_output
from funnel.joint import Joint
from funnel.measures.distributions import read_distribution
from funnel.measures.knapsack import light_subset
from funnel.protocol import Protocol


@dataclass(frozen=True)
class Breach:
    """A property Q(S) of the secret and an output that breaches it.

    Attributes
    ----------
    direction : {"upward", "downward"}
    output : int
        Position of the output y in the protocol's outputs.
    secrets : tuple of int
        Positions, in the joint's secret alphabet, of the values for which Q holds; only values that occur.
    prior, posterior : Fraction
        Pr[Q] and Pr[Q | y], exactly.

    Examples
    --------
    >>> breach = funnel.measures.upward_breach(joint, protocol, 0.4, 0.5)
    >>> breach.direction, breach.secrets, breach.prior
    ('upward', (0,), Fraction(2, 5))
    """

    direction: Literal["upward", "downward"]
    output: int
    secrets: tuple[int, ...]
    prior: Fraction
    posterior: Fraction


def upward_breach(joint: Joint, protocol: Protocol, rho1: float | Fraction, rho2: float | Fraction) -> Breach | None:
    """An upward ρ1-to-ρ2 breach: a property with ``Pr[Q] ≤ ρ1`` and ``Pr[Q|y] > ρ2`` for some y; None if there is none.

    ALIP definition A1, whose second inequality is strict. Every property, that is every set of secret values, is
    covered: for each output the most believable set of limited prior is a knapsack problem. It is decided on the
    integer counts and weights, without rounding, so None is a proof.

    Parameters
    ----------
    rho1, rho2 : float or Fraction
        ``0 < rho1 < rho2 < 1``. A float stands for the decimal number it prints as, so that a property of three records
        in ten has a prior of 0.3.

    Raises
    ------
    SpecError
        If ``0 < rho1 < rho2 < 1`` does not hold.

    Notes
    -----
    At most ``min(2^c, n)`` sets are compared at a time, for each output and secret. In practice few are, also for
    hundreds of secrets: outputs whose lifts meet proposition A1 end at once (`breaches_excluded`).

    Examples
    --------
    >>> breach = funnel.measures.upward_breach(joint, protocol, 0.4, 0.5)
    >>> breach.secrets, float(breach.prior), round(float(breach.posterior), 4)
    ((0,), 0.4, 0.5977)
    """
    low, high = _bounds(rho1, rho2)
    return _upward(joint, protocol, low, high)


def downward_breach(joint: Joint, protocol: Protocol, rho1: float | Fraction, rho2: float | Fraction) -> Breach | None:
    """A downward ρ2-to-ρ1 breach: a property with ``Pr[Q] ≥ ρ2`` and ``Pr[Q|y] < ρ1`` for some y; None if none.

    ALIP definition A1. The complement of such a property is an upward (1−ρ2)-to-(1−ρ1) breach and conversely, which is
    how it is decided, exactly (`upward_breach`).

    Parameters
    ----------
    rho1, rho2 : float or Fraction
        ``0 < rho1 < rho2 < 1``; a float stands for the decimal number it prints as.

    Raises
    ------
    SpecError
        If ``0 < rho1 < rho2 < 1`` does not hold.

    Examples
    --------
    >>> breach = funnel.measures.downward_breach(joint, protocol, 0.5, 0.6)
    >>> breach.secrets, float(breach.prior), round(float(breach.posterior), 4)
    ((1,), 0.6, 0.4023)
    """
    low, high = _bounds(rho1, rho2)
    complement = _upward(joint, protocol, 1 - high, 1 - low)
    if complement is None:
        return None
    occurring = np.flatnonzero(joint.counts.sum(axis=1) > 0).tolist()
    secrets = tuple(s for s in occurring if s not in complement.secrets)
    return Breach("downward", complement.output, secrets, 1 - complement.prior, 1 - complement.posterior)


def breaches_excluded(joint: Joint, protocol: Protocol, rho1: float | Fraction, rho2: float | Fraction) -> bool:
    """Whether the lifts alone exclude all ρ1-to-ρ2 breaches, upward and downward (ALIP proposition A1).

    The condition is ``(1−ρ2)/(1−ρ1) ≤ Ψ(y)`` and ``Λ(y) ≤ ρ2/ρ1`` for all y, decided exactly. It is sufficient, not
    necessary: False does not mean that there is a breach.

    Parameters
    ----------
    rho1, rho2 : float or Fraction
        ``0 < rho1 < rho2 < 1``; a float stands for the decimal number it prints as.

    Raises
    ------
    SpecError
        If ``0 < rho1 < rho2 < 1`` does not hold.

    Notes
    -----
    For upward breaches either inequality suffices. A downward ρ2-to-ρ1 breach is excluded by ``ρ1/ρ2 ≤ Ψ(y)`` or by
    ``Λ(y) ≤ (1−ρ1)/(1−ρ2)``, and one of these always follows from the condition: the first if
    ``ρ2(1−ρ2) ≥ ρ1(1−ρ1)``, the second otherwise.

    Examples
    --------
    >>> funnel.measures.breaches_excluded(joint, protocol, 0.4, 0.7)
    True
    """
    low, high = _bounds(rho1, rho2)
    least, most = (1 - high) / (1 - low), high / low
    sizes, table = _exact_table(joint, protocol)
    for column in zip(*table, strict=True):
        total = sum(column)
        for size, cell in zip(sizes, column, strict=True):
            # l(s, y) = cell·n / (size·total); no division, so outputs that never occur pass as they should.
            if not least * size * total <= cell * joint.n <= most * size * total:
                return False
    return True


def _upward(joint: Joint, protocol: Protocol, rho1: Fraction, rho2: Fraction) -> Breach | None:
    sizes, table = _exact_table(joint, protocol)
    capacity = int(rho1 * joint.n)
    for y, column in enumerate(zip(*table, strict=True)):
        total = sum(column)
        # Both limits may be rounded down, as what is compared with them are integers.
        found = light_subset(sizes, column, capacity, int(rho2 * total))
        if found is not None:
            prior = Fraction(sum(sizes[s] for s in found), joint.n)
            return Breach("upward", y, found, prior, Fraction(sum(column[s] for s in found), total))
    return None


def _exact_table(joint: Joint, protocol: Protocol) -> tuple[list[int], list[list[int]]]:
    """Records of each secret, and P(s, y) in units of 1/(n 2^63), as Python integers."""
    read, weights = read_distribution(joint, protocol)
    return joint.counts.sum(axis=1).tolist(), secret_output(read.counts, weights).tolist()


def _bounds(rho1: float | Fraction, rho2: float | Fraction) -> tuple[Fraction, Fraction]:
    low, high = _probability("rho1", rho1), _probability("rho2", rho2)
    if not low < high:
        raise SpecError(f"rho1 must be below rho2, not {rho1!r} with rho2 {rho2!r}")
    return low, high


def _probability(name: str, given: object) -> Fraction:
    value: Fraction | None = None
    if isinstance(given, Fraction):
        value = given
    elif isinstance(given, float | np.floating) and math.isfinite(given):
        value = Fraction(repr(float(given)))
    if value is None or not 0 < value < 1:
        raise SpecError(f"{name} must be a number above 0 and below 1, not {given!r}")
    return value
