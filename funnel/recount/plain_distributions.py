"""Distributions: frequencies and what follows from them, computed once more from recounted records and weights.

And the figures of a protocol.json that follow: utility, prior, posteriors and marginal.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeVar

from funnel.recount.channel import Channel, Row, columns_of, entries_of
from funnel.recount.drawn_numbers import plain_variance
from funnel.recount.ratios import PlainInformation, plain_information
from funnel.recount.released import ReleasedProtocol
from funnel.recount.source import Recount

Symbol = tuple[str, ...]
Value = TypeVar("Value")

# As documented for public shares: ten records, never finer than a thousandth, nor coarser than a half.
_RECORDS = 10
STEPS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
PARTS = ("utility", "prior", "probabilities of outputs", "posteriors", "marginal")
# Of figures that were computed twice, in floats, from the same whole numbers.
NOISE = 1e-9
# Posteriors and probabilities of outputs are told to four decimals.
_DECIMALS = 4

Json = Mapping[str, Any]
Complaint = tuple[str, str, str]
"""A part of the document, what in it is wrong, and why."""


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


def prior_distribution(shares: Mapping[Value, float], step: float, wide: bool) -> dict[Value, float]:
    """The law that public figures are made of, from public shares: divided by their sum, or in a wide table what
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
    """The law of secret, input and output.

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
    def inputs(self) -> dict[Symbol, int]:
        """Records by published input."""
        return _totals((x, count) for (_, x), count in self.recount.counts.items())

    @cached_property
    def secrets(self) -> dict[Symbol, int]:
        """Records by secret."""
        return _totals((s, count) for (s, _), count in self.recount.counts.items())

    @cached_property
    def reads(self) -> dict[Symbol, int]:
        """Records by what the protocol reads."""
        return _totals((self.read(s, x), count) for (s, x), count in self.recount.counts.items())

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
    def prior_guess(self) -> float:
        """Probability of guessing x right without y."""
        return max(self.inputs.values()) / self.recount.rows


def _totals(parts: Iterable[tuple[Symbol, int]]) -> dict[Symbol, int]:
    totals: dict[Symbol, int] = {}
    for symbol, count in parts:
        totals[symbol] = totals.get(symbol, 0) + count
    return totals


def figure_complaints(content: Json, laws: Distributions) -> Iterator[Complaint]:
    """What of a ``protocol.json`` does not follow from counts and weights.

    Parameters
    ----------
    content : mapping
        Of the file.
    laws : Distributions
        Of the counts under its weights.
    """
    step = share_step(laws.recount.rows)
    for figure, why in _utility(content["utility"], laws, step, content["prior"]["symbols"]):
        if why is not None:
            yield "utility", figure, why
    for x, stated in zip(content["prior"]["symbols"], content["prior"]["probabilities"], strict=True):
        if (why := mismatch(stated, laws.inputs.get(tuple(x), 0) / laws.recount.rows, step)) is not None:
            yield "prior", _named(x), why
    yield from _posteriors(content, laws, step)
    if not _is_marginal(laws, content["prior"], step):
        yield "marginal", "weights", "are not the law of the outputs"


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


def _utility(
    stated: Json, laws: Distributions, step: float, symbols: Sequence[Sequence[str]]
) -> Iterator[tuple[str, str | None]]:
    """Utility, entropy and share, the share of the variance, and the number that every value stands for."""
    exact, explained = laws.information, stated["explained"]
    yield "mutual information", nats_mismatch(stated["mutual_information_nats"], exact.utility, step)
    yield "entropy", nats_mismatch(stated["entropy_nats"], exact.entropy, step)
    yield "share", mismatch(stated["share"], laws.share, step)
    if laws.numbers is None or laws.explained is None or explained is None:
        right = (explained is None) == (laws.numbers is None)
        yield "explained", None if right else "is told where the spec asks for none, or is not told"
        return
    yield "explained", mismatch(explained["variance_share"], laws.explained, step)
    known = [laws.numbers.get(tuple(symbol)) for symbol in symbols]
    numbers = [None if number is None else float(number) for number in known]
    yield "numbers", None if list(explained["numbers"]) == numbers else f"are not {numbers!r}"


def _named(symbol: Sequence[str]) -> str:
    return repr(", ".join(symbol))


def _posteriors(content: Json, laws: Distributions, step: float) -> Iterator[Complaint]:
    """Probability and posterior of every output, between least and largest shares of (x, y), where the secret is read.

    Where it is not, they follow from weights and prior, and are not there.
    """
    if not laws.reads_secret:
        if content["posterior"] is not None:
            yield "posteriors", "all", "are told though they follow from the prior"
        return
    low, high = _rounded_pairs(laws, step)
    least = math.fsum(math.fsum(masses.values()) for masses in low)
    most = math.fsum(math.fsum(masses.values()) for masses in high)
    symbols = {str(place): tuple(symbol) for place, symbol in enumerate(content["prior"]["symbols"])}
    for entry, lowest, highest in zip(content["posterior"], low, high, strict=True):
        name = _named(entry["output"])
        below, above = math.fsum(lowest.values()), math.fsum(highest.values())
        if not _is_between(stated := entry["probability"], below / most, above / least):
            yield "probabilities of outputs", name, f"is told with {stated!r}, which does not follow"
        for why in _posterior(entry, symbols, lowest, highest, below, above):
            yield "posteriors", name, why


def _posterior(
    entry: Json,
    symbols: Mapping[str, Symbol],
    low: Mapping[Symbol, float],
    high: Mapping[Symbol, float],
    below: float,
    above: float,
) -> Iterator[str]:
    """What is told of an output, and what of the values that it may come from is not."""
    if not symbols.keys() >= set(entry["inputs"]):
        yield "may come from a value that does not occur"
    told = {symbols[place]: share for place, share in entry["inputs"].items() if place in symbols}
    if not all(told.values()):
        yield "names a value that it does not come from"
    for x in {*told, *high}:
        most, least = high.get(x, 0.0), low.get(x, 0.0)
        # The rest of an output's mass goes the other way.
        bottom = least / (least + above - most) if least else 0.0
        top = most / (most + below - least) if most else 0.0
        if not _is_between(stated := told.get(x, 0.0), bottom, top):
            yield f"is told with {stated!r}, which is not what follows from weights and prior"


def _rounded_pairs(laws: Distributions, step: float) -> tuple[list[dict[Symbol, float]], list[dict[Symbol, float]]]:
    """Least and largest public shares of (x, y), by output: of rounded ones, and a tie may go either way."""
    low: list[dict[Symbol, float]] = [{} for _ in laws.released.outputs]
    high: list[dict[Symbol, float]] = [{} for _ in laws.released.outputs]
    for x, masses in laws.pairs.items():
        for y, mass in masses.items():
            low[y][x], high[y][x] = _rounded(mass, step, -NOISE), _rounded(mass, step, NOISE)
    return low, high


def _rounded(share: float, step: float, noise: float) -> float:
    return max(1, round(share / step + noise)) * step if share > 0 else 0.0


def _is_between(stated: object, low: float, high: float) -> bool:
    half = 0.5 * 10.0**-_DECIMALS + NOISE
    return isinstance(stated, (int, float)) and low - half <= stated <= high + half


def _is_marginal(laws: Distributions, prior: Json, step: float) -> bool:
    """Whether a record outside the alphabet draws from the law of outputs: the exact one, or that of public shares."""
    every = [weight for row in (laws.released.marginal, *laws.released.weights) for _, weight in entries_of(row)]
    # Weights are on a grid: the largest power of two that divides all of them. The law is that of the weights from
    # before they were moved to the grid, each by less than three steps of it (`funnel.release.coarse`).
    unit = min((weight & -weight for weight in every), default=1)
    slack = 4 * unit + laws.released.denominator * NOISE
    exact = _output_distribution(laws, {symbol: float(count) for symbol, count in laws.reads.items()})
    if laws.reads_secret:
        n = laws.recount.rows
        shares = {symbol: _rounded(count / n, step, 0.0) for symbol, count in laws.reads.items()}
        # A tie may have been rounded the other way.
        slack += (
            laws.released.denominator
            * step
            * sum(abs(count / n / step % 1 - 0.5) < NOISE for count in laws.reads.values())
        )
    else:
        shares = {tuple(x): p for x, p in zip(prior["symbols"], prior["probabilities"], strict=True)}
    public = _output_distribution(laws, shares)
    # Weights that were mixed with the exact law, at most a thousandth of it, moved by that much of the difference.
    mixed = [abs(p - q) * laws.released.denominator / 1000 for p, q in zip(exact, public, strict=True)]
    for law in (exact, public):
        gaps = [abs(m - p * laws.released.denominator) for m, p in zip(laws.released.marginal, law, strict=True)]
        if all(gap <= slack + more for gap, more in zip(gaps, mixed, strict=True)):
            return True
    return False


def _output_distribution(laws: Distributions, shares: Mapping[Symbol, float]) -> list[float]:
    whole = math.fsum(shares.values())
    parts: list[list[float]] = [[] for _ in laws.released.outputs]
    for symbol, share in shares.items():
        for y, weight in entries_of(laws.weights.get(symbol, laws.released.marginal)):
            parts[y].append(share * weight)
    return [math.fsum(some) / whole / laws.released.denominator for some in parts]
