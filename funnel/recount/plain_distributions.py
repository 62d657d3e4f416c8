"""Distributions: frequencies and what follows from them, computed once more from recounted records and weights."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeVar

from funnel.recount.channel import Channel, Row, columns_of
from funnel.recount.drawn_numbers import plain_variance
from funnel.recount.part_beliefs import beliefs
from funnel.recount.ratios import PlainInformation, plain_information
from funnel.recount.released import ReleasedProtocol
from funnel.recount.source import Recount

Symbol = tuple[str, ...]
Value = TypeVar("Value")

# As documented for public shares: ten records, never finer than a thousandth, nor coarser than a half.
_RECORDS = 10
STEPS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
# Of figures that were computed twice, in floats, from the same whole numbers.
NOISE = 1e-9

Json = Mapping[str, Any]


def share_step(n: int) -> float:
    """The step of public shares of n records: the least of .001, .002, .005, … that is ten of them, at most a half."""
    return next((step for step in STEPS if step * n >= _RECORDS * (1 - 1e-12)), STEPS[-1])


def step_above(least: float) -> float:
    """The least of …, .1, .2, .5, 1, 2, 5, … that is not below a number above zero."""
    power = 10.0 ** math.floor(math.log10(least))
    return next((factor * power for factor in (1, 2, 5) if factor * power >= least * (1 - 1e-12)), 10 * power)


def up_to_digits(value: float, digits: int) -> float:
    """A number to so many significant digits, never below it; a hair above such a number is that number."""
    if value == 0 or math.isinf(value):
        return value
    exact = Decimal(value)
    unit = Decimal(1).scaleb(exact.adjusted() - digits + 1)
    nearest = float(exact.quantize(unit))
    return nearest if nearest >= value else float(exact.quantize(unit, rounding=ROUND_CEILING))


def level_step(budget: float) -> float:
    """The grid of levels beyond a budget: a tenth of it, or a little more; zero where it is none or infinite."""
    return round(step_above(budget / 10), 12) if 0 < budget < math.inf else 0.0


def public_level(level: float, budget: float) -> float:
    """What is stated of a level: the budget within it; beyond it two digits upwards, and a step of its grid."""
    if level <= budget:
        return budget
    step = level_step(budget)
    on_grid = round(math.ceil(level / step) * step, 12) if step and math.isfinite(level) else 0.0
    return max(up_to_digits(level, 2), on_grid)


def powers_of(ratio: float, step: float) -> list[int]:
    """The powers of e to a step that are stated as a ratio, to two digits upwards."""
    # Two digits upwards are less than a tenth.
    first, last = math.floor((math.log(ratio) - 0.1) / step), math.ceil(math.log(ratio) / step)
    return [power for power in range(first, last + 1) if up_to_digits(math.exp(power * step), 2) == ratio]


def is_public_ratio(stated: float, least: float, most: float, budget: float, limit: float | None) -> bool:
    """Whether a ratio between two may be stated so: up to a power of e to the step of levels, and then to two digits.

    A limit that all ratios keep is the largest that is stated, to three digits.
    """
    step = level_step(budget)

    def public(ratio: float, hair: float) -> float:
        on_grid = step and 1 < ratio < math.inf
        return up_to_digits(math.exp(math.ceil(math.log(ratio) / step + hair) * step) if on_grid else ratio, 2)

    first, last = public(least, -NOISE), public(most, NOISE)
    highest = math.inf if limit is None else up_to_digits(limit, 3)
    if stated >= highest:
        return stated == highest and last >= highest
    is_stated = powers_of(stated, step) if step and stated > 1 else stated == up_to_digits(stated, 2)
    return first <= stated <= last and bool(is_stated)


def is_level_of_ratio(level: float, ratio: float, budget: float, limit: float | None) -> bool:
    """Whether a stated level can be that of the largest ratio, which is stated too."""
    step = level_step(budget)
    if not step or math.isinf(ratio):
        return level == ratio or (not step and level <= max(budget, math.log(ratio) * 1.1))
    if ratio <= 1 or (limit is not None and ratio >= up_to_digits(limit, 3)):
        return level == budget
    powers = powers_of(ratio, step)
    if any((power - 1) * step < budget for power in powers) and level == budget:
        return True
    # To two digits, and to the step that the ratio is the power of.
    return any(budget < power * step <= level + NOISE and level <= up_to_digits(power * step, 2) for power in powers)


def least_level(ratio: float, budget: float, limit: float | None) -> float:
    """The smallest level that can be stated where one ratio is stated so, and others may be larger."""
    step = level_step(budget)
    if math.isinf(ratio):
        return ratio
    if not step or ratio <= 1 or (limit is not None and ratio >= up_to_digits(limit, 3)):
        return budget
    power = min(powers_of(ratio, step), default=0)
    return power * step if (power - 1) * step >= budget else budget


def prior_distribution(shares: Mapping[Value, float], step: float, wide: bool) -> dict[Value, float]:
    """The distribution behind public figures, from public shares: divided by their sum, or in a wide table what
    shares of more than a step leave, given to all others alike.
    """
    common = {x: p for x, p in shares.items() if p > step * 1.5}
    rare = [p for p in shares.values() if 0 < p <= step * 1.5]
    left = 1 - math.fsum(common.values())
    if not wide or not 0 < left < math.fsum(rare):
        whole = math.fsum(shares.values())
        return {x: p / whole for x, p in shares.items()}
    return {x: common.get(x, left / len(rare) if p else 0.0) for x, p in shares.items()}


@dataclass(frozen=True, eq=False)
class Distributions:
    """The distribution of secret, input and output.

    Attributes
    ----------
    recount : Recount
        The counts that are public: records counted again, or with the noise that protects them.
    released : ReleasedProtocol
        The protocol as its file says it, read anew.
    numbers : mapping of symbol to Fraction or None
        The number of every published input, None for one that has none; and None where the spec does not ask for the
        variance that is explained.
    """

    recount: Recount
    released: ReleasedProtocol
    numbers: Mapping[Symbol, Fraction | None] | None = None

    @property
    def reads_secret(self) -> bool:
        """Whether the protocol reads the secret too."""
        return self.released.input_columns != self.recount.published_columns

    @cached_property
    def weights(self) -> dict[Symbol, Row]:
        """The b weights of what the protocol reads."""
        columns = columns_of(self.released.weights, len(self.released.inputs))
        return dict(zip(self.released.inputs, columns, strict=True))

    def read(self, s: Symbol, x: Symbol) -> Symbol:
        """What the protocol reads of a record."""
        return (*s, *x) if self.reads_secret else x

    def column(self, s: Symbol, x: Symbol) -> Row:
        """The b weights that a record draws from."""
        return self.weights.get(self.read(s, x), self.released.marginal)

    @property
    def outside(self) -> int:
        """Records outside the alphabet of the protocol."""
        return sum(count for (s, x), count in self.recount.counts.items() if self.read(s, x) not in self.weights)

    @cached_property
    def inputs(self) -> dict[Symbol, float]:
        """Records by published input."""
        return _totals((x, count) for (_, x), count in believed(self.recount).items())

    @cached_property
    def secrets(self) -> dict[Symbol, int]:
        """Records by secret."""
        found = dict.fromkeys(self.recount.secret, 0)
        for (s, _), count in self.recount.counts.items():
            found[s] += count
        return found

    @cached_property
    def reads(self) -> dict[Symbol, float]:
        """Records by what the protocol reads."""
        return _totals((self.read(s, x), count) for (s, x), count in believed(self.recount).items())

    @cached_property
    def channel(self) -> Channel:
        """The same as counts and weights, of the secrets and inputs of the counts, in their order."""
        return self.released.channel(self.recount)

    @property
    def whole(self) -> int:
        """What the masses of all outputs add up to."""
        return self.channel.n * self.released.denominator

    @cached_property
    def pairs(self) -> dict[Symbol, dict[int, float]]:
        """P(x, y) by published input x, of the outputs y that it can become."""
        whole = self.whole
        found: dict[Symbol, dict[int, float]] = {x: {} for x in self.recount.inputs}
        for y in range(len(self.released.outputs)):
            for x, mass in self.channel.masses_by_input(y):
                # A quotient of whole numbers is rounded once.
                found[self.recount.inputs[x]][y] = mass / whole
        return found

    @cached_property
    def information(self) -> PlainInformation:
        """I(X;Y), H(X) and their quotient, nats."""
        return plain_information(self.channel)

    @property
    def share(self) -> float:
        """I(X;Y) / H(X); zero where there is nothing to know."""
        return self.information.share if self.information.entropy > 0 else 0.0

    @cached_property
    def explained(self) -> float | None:
        """The share that is explained of the variance of the numbers; None where there are none."""
        if self.numbers is None:
            return None
        return float(plain_variance(self.channel, [self.numbers[x] for x in self.recount.inputs]))

    @property
    def guess(self) -> float:
        """Probability of guessing x right from y."""
        most: dict[int, float] = {}
        for masses in self.pairs.values():
            for y, mass in masses.items():
                most[y] = max(most.get(y, 0.0), mass)
        return math.fsum(most.values())

    def lift(self, s: Symbol, y: int) -> float | None:
        """P(s|y) / P(s); None where the output or the secret never occurs."""
        whole = self.output_masses[y]
        if not whole or not self.secrets[s]:
            return None
        return self.masses[s][y] * self.recount.rows / (whole * self.secrets[s])

    @cached_property
    def masses(self) -> dict[Symbol, list[int]]:
        """``Σ_x n[s, x] w[y, (s, x)]`` by secret s, b whole numbers each."""
        found = zip(*map(self.channel.masses, range(len(self.released.outputs))), strict=True)
        return dict(zip(self.recount.secret, map(list, found), strict=True))

    @cached_property
    def output_masses(self) -> list[int]:
        """``Σ_x n[x] w[y, x]`` of every output."""
        return [sum(masses) for masses in zip(*self.masses.values(), strict=True)]

    @property
    def secret_information(self) -> float:
        """I(S;Y), nats: from quotients of whole numbers, each rounded once."""
        whole, records = self.whole, self.recount.rows
        return math.fsum(
            mass / whole * math.log(mass * records / (self.output_masses[y] * self.secrets[s]))
            for s, masses in self.masses.items()
            for y, mass in enumerate(masses)
            if mass
        )

    @property
    def prior_guess(self) -> float:
        """Probability of guessing x right without y."""
        return max(self.inputs.values()) / self.recount.rows


def believed(counted: Recount) -> Mapping[tuple[Symbol, Symbol], int | Fraction]:
    """Records of each secret and input; between parts of classes as many as counts of classes say, not in whole."""
    found, unit = believed_in_parts(counted)
    return {pair: Fraction(number, unit) for pair, number in found.items()} if counted.having else found


def believed_in_parts(counted: Recount) -> tuple[Mapping[tuple[Symbol, Symbol], int], int]:
    """The same in whole numbers, and how many of them are a record."""
    if not counted.having:
        return counted.counts, 1
    table = beliefs(counted.table(counted.secret, counted.inputs), counted.inputs, counted.secret)
    found = {
        (s, x): number
        for s, row in zip(counted.secret, table, strict=True)
        for x, number in zip(counted.inputs, row, strict=True)
        if number
    }
    return found, sum(map(sum, table)) // counted.rows


def _totals(parts: Iterable[tuple[Symbol, int | Fraction]]) -> dict[Symbol, float]:
    totals: dict[Symbol, int | Fraction] = {}
    for symbol, count in parts:
        totals[symbol] = totals.get(symbol, 0) + count
    return {symbol: float(total) for symbol, total in totals.items()}


def mismatch(stated: object, exact: float, step: float) -> str | None:
    """Why a figure is not the exact one, told as a multiple of a step; what is not nothing may be told as one step."""
    if isinstance(stated, bool) or not isinstance(stated, (int, float)) or not math.isfinite(stated):
        return "is no number"
    least = step if 0 < exact < step else exact
    told = abs(stated - exact) <= step / 2 + NOISE or (exact > 0 and abs(stated - least) <= NOISE)
    multiple = abs(stated / step - round(stated / step)) <= 1e-6
    return None if told and multiple else f"is {stated!r}, which is not what follows from the source"


def nats_mismatch(stated: object, exact: float, step: float) -> str | None:
    """The same for an entropy: no public figure has more than four digits, so from ten nats on steps are hundredths."""
    return mismatch(stated, exact, max(step, 0.01) if exact >= 10 else step)
