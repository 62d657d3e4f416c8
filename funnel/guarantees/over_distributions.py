"""Guarantees over a set of distributions: bounds that hold whichever is true, by half-spaces and exact decisions."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal, NamedTuple, Self

import numpy as np

from funnel.guarantees.base import Guarantee, Level, OutputGuarantee, Witness
from funnel.guarantees.exact import capped_exp, exp_below, log_above, scaled_up
from funnel.guarantees.families import Families, share_of
from funnel.guarantees.greedy import Places
from funnel.guarantees.possible_distributions import DistributionSet, Extreme
from funnel.guarantees.reading import reads_secret, secret_by_input, stacked
from funnel.joint import FloatArray, IntArray, Joint
from funnel.protocol import DENOMINATOR, WeightArray

Kind = Literal["pairs", "up", "down"]

# Entries of (output, secret, input) looked at at once.
_AT_ONCE = 2**21
# Floats find the outputs that come this close to the largest; whole numbers decide among them.
_CLOSE = 1e-9
# A half-space that is broken by less, relatively, is none that an optimiser could tell from rounding.
BROKEN = 1e-13


@dataclass(frozen=True)
class Sides:
    """What a guarantee compares, each with its budget in nats; infinite where it does not.

    Attributes
    ----------
    pairs : float
        ``P(y|s)/P(y|s')`` of any two secrets.
    up, down : float
        ``P(y|s)/P(y)``, and ``P(y)/P(y|s)``.
    """

    pairs: float = math.inf
    up: float = math.inf
    down: float = math.inf

    def finite(self) -> Iterator[tuple[Kind, float]]:
        """The kinds of comparison that are bounded."""
        kinds: tuple[tuple[Kind, float], ...] = (("pairs", self.pairs), ("up", self.up), ("down", self.down))
        yield from ((kind, budget) for kind, budget in kinds if math.isfinite(budget))


class SetGuarantee(OutputGuarantee):
    """A guarantee that holds for every distribution of a set, whatever the data leave open.

    Each distribution of the set gives rows of a channel half-spaces, infinitely many in all. `starting_cone` has those
    of one distribution, `half_spaces` those of the worst ones for given rows: an optimum is found by adding them until
    none is broken.
    """

    @property
    def over_boxes(self) -> bool:
        """Whether the set is one of boxes: what is below is about these."""
        return True

    def over_set(self, joint: Joint) -> SetGuarantee | None:
        """Itself, over boxes."""
        return self if self.over_boxes else None

    @abstractmethod
    def starting_cone(self, joint: Joint) -> FloatArray:
        """Half-spaces (m, a) that every feasible row T >= 0 meets, ``G T <= 0``: to begin with."""

    @abstractmethod
    def half_spaces(self, joint: Joint, rows: FloatArray, most: int = 4) -> tuple[FloatArray, IntArray, FloatArray]:
        """The worst distributions for rows that break the guarantee, as half-spaces that every feasible row meets.

        Parameters
        ----------
        joint : Joint
            The distribution that the channel reads, a inputs.
        rows : ndarray, shape (k, a)
        most : int
            Half-spaces for each row at most, the most broken ones.

        Returns
        -------
        half_spaces : ndarray, shape (m, a)
            G with ``G T <= 0``, as differences of two probabilities of an output.
        of : ndarray of int64, shape (m,)
            The row that breaks each.
        by : ndarray, shape (m,)
            How far: ratio over limit - 1, infinite where a distribution excludes a secret.
        """

    def families(self, joint: Joint, rows: FloatArray, margin: float) -> Families:
        """Half-spaces that rows break, each with those of all distributions that differ only within secrets.

        Parameters
        ----------
        joint : Joint
        rows : ndarray, shape (k, a)
            In such units that a constant row is one of ones.
        margin : float
            By how much less, relatively, ratios are asked for to be; those beyond half of it break a family.

        Notes
        -----
        Here every half-space is alone, and without a margin.
        """
        spaces, of, _ = self.half_spaces(joint, rows)
        return Families.alone(of, share_of((spaces * rows[of]).sum(axis=1), spaces.sum(axis=1)), spaces)


@dataclass(frozen=True)
class OfBase(SetGuarantee):
    """What another guarantee is over some set of distributions; its budget and its text are those of that one."""

    base: Guarantee

    @property
    def budget(self) -> float:
        """That of the base."""
        return self.base.budget

    def with_budget(self, budget: float) -> Self:
        """With the base of another budget."""
        return replace(self, base=self.base.with_budget(budget))

    @property
    def is_perfect(self) -> bool:
        """As the base has it."""
        return self.base.is_perfect

    def __str__(self) -> str:
        return str(self.base)


class RatioGuarantee(SetGuarantee):
    """LDP, LIP, ALIP or PML for every distribution of one set (`DistributionSet`)."""

    @property
    @abstractmethod
    def sides(self) -> Sides:
        """What is bounded."""

    @abstractmethod
    def distributions(self, joint: Joint) -> DistributionSet:
        """The set, for the joint distribution that a channel reads.

        Raises
        ------
        DataError
            If the data rule nothing out.
        """

    def as_level(self, nats: float, budget: float) -> float:
        """What a leakage of so many nats on a side with this budget is as a level, rounded up."""
        return scaled_up(nats, budget, self.budget)

    def starting_cone(self, joint: Joint) -> FloatArray:
        """Those of the counts themselves."""
        counts, _ = secret_by_input(joint)
        seen = np.flatnonzero(counts.any(axis=1))
        sizes = counts.sum(axis=1)
        given, prior = counts / np.maximum(sizes, 1)[:, None], sizes / sizes.sum()
        blocks = [np.zeros((0, len(joint.inputs)))]
        for kind, budget in self.sides.finite():
            tasks = [(s, t) for s in seen for t in (seen if kind == "pairs" else [0]) if kind != "pairs" or s != t]
            if not tasks:
                continue
            secret, other = np.array(tasks).T
            above, below = _amounts(kind, np.broadcast_to(prior, (len(tasks), len(prior))), secret, other)
            blocks.append(over_inputs(joint, (above - capped_exp(budget) * below)[..., None] * given))
        return np.vstack(blocks)

    def half_spaces(self, joint: Joint, rows: FloatArray, most: int = 4) -> tuple[FloatArray, IntArray, FloatArray]:
        """As declared; empty where all rows meet the guarantee, but for rounding. O(k c u (log u + c))."""
        uneven = telling_rows(rows)
        some = rows[uneven]
        found = [self._half_spaces(joint, some[start:end], most, start) for start, end in self._chunks(joint, some)]
        if not found:
            return np.zeros((0, rows.shape[1])), np.zeros(0, dtype=np.int64), np.zeros(0)
        spaces, of, by = zip(*found, strict=True)
        return np.vstack(spaces), uneven[np.concatenate(of)], np.concatenate(by)

    def _half_spaces(
        self, joint: Joint, rows: FloatArray, most: int, first: int
    ) -> tuple[FloatArray, IntArray, FloatArray]:
        distributions, stack = self.distributions(joint), stacked(joint, rows)
        kinds, sizes, ratios = [], [], []
        for kind, budget, excess in _excesses(distributions, stack, self.sides):
            kinds.append((kind, budget))
            ratios.append(excess.reshape(len(rows), -1))
            sizes.append(ratios[-1].shape[1])
        broken = np.concatenate(ratios, axis=1)
        order = np.argsort(-broken, axis=1, kind="stable")[:, :most]
        y = np.repeat(np.arange(len(rows)), order.shape[1])
        place, by = order.ravel(), np.take_along_axis(broken, order, axis=1).ravel()
        kept = by > BROKEN
        y, place, by = y[kept], place[kept], by[kept]
        spaces = np.zeros((len(y), rows.shape[1]))
        edge, c = 0, distributions.shape[0]
        for (kind, budget), size in zip(kinds, sizes, strict=True):
            mine = np.flatnonzero((place >= edge) & (place < edge + size))
            secret, other = np.divmod(place[mine] - edge, c) if kind == "pairs" else (place[mine] - edge,) * 2
            found = _Worst.of(distributions, stack[y[mine]], kind, capped_exp(budget), secret, other)
            spaces[mine] = over_inputs(joint, found.amounts[..., None] * found.extreme.given)
            by[mine] = found.by
            edge += size
        kept = by > BROKEN
        return spaces[kept], y[kept] + first, by[kept]

    def families(self, joint: Joint, rows: FloatArray, margin: float) -> Families:
        """As declared; as many times O(c u log u) as ratios are broken."""
        distributions, places = self.distributions(joint), _places(joint)
        found = [Families.none(rows.shape[1])]
        most = -margin / 2
        for start, end in self._chunks(joint, rows):
            stack = stacked(joint, rows[start:end])
            for kind, budget, excess in _excesses(distributions, stack, self.sides):
                limit = capped_exp(budget)
                y, secret, other = np.nonzero(excess > most)
                worst = _Worst.of(distributions, stack[y], kind, limit, secret, other)
                kept = worst.by > most
                share = share_of(worst.value, worst.amounts.sum(axis=1))
                tight = worst.amounts + limit * margin * worst.below
                amounts, own, lower, upper = (
                    array[kept] for array in (tight, worst.amounts, worst.extreme.lower, worst.extreme.upper)
                )
                found.append(Families.spread(start + y[kept], share[kept], (amounts, own), lower, upper, places))
        return Families.joined(found)

    def output_levels(self, joint: Joint, rows: FloatArray) -> FloatArray:
        """The level of each row over the set; over counts an upper bound, close where there are many records."""
        levels = np.zeros(len(rows))
        distributions, uneven = self.distributions(joint), telling_rows(rows)
        for start, end in self._chunks(joint, rows[uneven]):
            some = uneven[start:end]
            stack = stacked(joint, rows[some])
            for _, budget, ratios in _ratios(distributions, stack, self.sides):
                ratio = np.nan_to_num(ratios, nan=1.0, posinf=np.inf).max(axis=(1, 2))
                nats = np.log(np.maximum(ratio, 1.0))
                side = np.array([self.as_level(float(value), budget) for value in nats])
                levels[some] = np.maximum(levels[some], side)
        return levels

    def level_for(self, joint: Joint, weights: WeightArray) -> Level:
        """ln of the worst ratio over the set, rounded up, with a distribution that attains it."""
        distributions = self.distributions(joint)
        levels = []
        for kind, budget, ratios in self._all_ratios(joint, distributions, weights):
            worst = _worst(joint, distributions, weights, kind, ratios)
            nats = math.inf if worst.ratio is None else log_above(worst.ratio)
            levels.append((self.as_level(nats, budget), kind, worst))
        value, kind, worst = max(levels, key=lambda level: level[0])
        rows = stacked(joint, weights[worst.output : worst.output + 1] / np.float64(DENOMINATOR))
        secret, other = np.array([worst.secret]), np.array([worst.other_secret or 0])
        extreme = _extreme(distributions, rows, kind, secret, other)
        given, prior = extreme.given, extreme.prior
        told = tuple(tuple(float(p) for p in row) for row in given[0] * prior[0][:, None])
        return Level(
            value, Witness(worst.output, worst.secret, worst.other_secret, worst.ratio, worst.upward, distribution=told)
        )

    def holds_for(self, joint: Joint, weights: WeightArray) -> bool:
        """Whether no ratio over the set exceeds a rational just below e^ε: decided in whole numbers."""
        distributions = self.distributions(joint)
        for kind, budget, ratios in self._all_ratios(joint, distributions, weights):
            limit = exp_below(budget)
            near = np.argwhere(ratios > float(limit) * (1 - _CLOSE))
            if kind != "pairs" and len(near):
                rows = stacked(joint, weights[near[:, 0]] / np.float64(DENOMINATOR))
                near = near[distributions.may_exceed(rows, near[:, 1], kind == "up", float(limit))]
            # Likeliest failures first: what fails, fails soon.
            for y, s, t in near[np.argsort(-ratios[tuple(near.T)], kind="stable")].tolist():
                if kind != "pairs":
                    broken = distributions.exceeds(stacked(joint, weights[y][None])[0], s, kind == "up", limit)
                else:
                    ratio = _exact_ratio(joint, distributions, weights[y], kind, s, t)
                    broken = ratio is None or ratio > limit
                if broken:
                    return False
        return True

    def _all_ratios(
        self, joint: Joint, distributions: DistributionSet, weights: WeightArray
    ) -> list[tuple[Kind, float, FloatArray]]:
        """`_ratios` (b, c, c or 1) of all outputs; 0 where there is nothing to compare."""
        c, uneven = len(joint.secret), telling_rows(weights)
        found = [
            (kind, budget, np.zeros((len(weights), c, c if kind == "pairs" else 1)))
            for kind, budget in self.sides.finite()
        ]
        rows = weights[uneven] / np.float64(DENOMINATOR)
        for start, end in self._chunks(joint, rows):
            some = _ratios(distributions, stacked(joint, rows[start:end]), self.sides)
            for (_, _, ratios), (_, _, part) in zip(found, some, strict=True):
                ratios[uneven[start:end]] = np.nan_to_num(part, nan=0.0, posinf=np.inf)
        return found

    def _chunks(self, joint: Joint, rows: FloatArray) -> Iterator[tuple[int, int]]:
        size = max(1, _AT_ONCE // (len(joint.secret) * rows.shape[1]))
        yield from ((start, min(start + size, len(rows))) for start in range(0, len(rows), size))


def telling_rows(rows: FloatArray | WeightArray) -> Places:
    """The rows (k, a) that are not as likely from every input: others disclose nothing, whatever rounding says."""
    return np.flatnonzero((rows != rows[:, :1]).any(axis=1))


def _worst(
    joint: Joint, distributions: DistributionSet, weights: WeightArray, kind: Kind, ratios: FloatArray
) -> Witness:
    """The largest ratio of one kind: floats say in which order to look, whole numbers what it is."""
    order = np.argwhere(ratios >= 1 - _CLOSE)
    order = order[np.argsort(-ratios[tuple(order.T)], kind="stable")]
    possible = np.flatnonzero(distributions.possible)
    best = Witness(int(np.flatnonzero(weights.any(axis=1))[0]), int(possible[0]), None, Fraction(1), kind != "down")
    for y, s, t in order.tolist():
        if best.ratio is None or ratios[y, s, t] < float(best.ratio) * (1 - _CLOSE):
            break
        ratio = _exact_ratio(joint, distributions, weights[y], kind, s, t)
        if ratio is None or ratio > best.ratio:
            best = Witness(y, s, t if kind == "pairs" else None, ratio, kind != "down")
    if kind == "pairs" and best.other_secret is None:
        return Witness(best.output, best.secret, best.secret, best.ratio, True)
    return best


def _ratios(
    distributions: DistributionSet, stack: FloatArray, sides: Sides
) -> Iterator[tuple[Kind, float, FloatArray]]:
    """By kind, with its budget, the largest ratios over the set: (b, c, c) for pairs, (b, c, 1) for lifts.

    nan where there is nothing to compare.
    """
    lifts: dict[Kind, FloatArray] = {}
    for kind, budget in sides.finite():
        if kind == "pairs":
            yield kind, budget, _pair_ratios(distributions, stack)
            continue
        if not lifts:
            lifts = dict(zip(("up", "down"), distributions.lifts(stack), strict=True))
        yield kind, budget, lifts[kind][..., None]


def _pair_ratios(distributions: DistributionSet, stack: FloatArray) -> FloatArray:
    high, low = distributions.given(stack)
    high = np.where(distributions.possible, high, np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = high[:, :, None] / low[:, None, :]
    same = np.arange(distributions.shape[0])
    ratios[:, same, same] = np.nan
    return np.asarray(ratios)


def _excesses(
    distributions: DistributionSet, stack: FloatArray, sides: Sides
) -> Iterator[tuple[Kind, float, FloatArray]]:
    """`_ratios` over their limit, minus 1; -1 where there is nothing to compare."""
    for kind, budget, ratios in _ratios(distributions, stack, sides):
        yield kind, budget, np.nan_to_num(ratios / capped_exp(budget) - 1, nan=-1.0, posinf=np.inf)


def _places(joint: Joint) -> Places:
    """Which input of a channel every (secret, input) is, shape (c, u)."""
    c, a = len(joint.secret), len(joint.inputs)
    return np.arange(a).reshape(c, -1) if reads_secret(joint) else np.tile(np.arange(a), (c, 1))


def _extreme(distributions: DistributionSet, stack: FloatArray, kind: Kind, secret: Places, other: Places) -> Extreme:
    """Distributions under which ratios of rows are largest; for pairs of two secrets alone."""
    if kind != "pairs":
        return distributions.lift_distributions(stack, secret, kind == "up")
    every, shape = np.arange(len(stack)), (len(stack), *distributions.shape)
    given, lower, upper, prior = np.zeros(shape), np.zeros(shape), np.zeros(shape), np.zeros(shape[:2])
    for place, upward in ((secret, True), (other, False)):
        found = distributions.given_distributions(stack, place, upward)
        given[every, place], lower[every, place], upper[every, place] = found
        prior[every, place] = 0.5
    return Extreme(given, prior, lower, upper)


def _amounts(kind: Kind, prior: FloatArray, secret: Places, other: Places) -> tuple[FloatArray, FloatArray]:
    """The two probabilities of an output that are compared, as amounts (m, c) of each P(y|s): one over the other."""
    every = np.arange(len(prior))
    one, two = np.zeros(prior.shape), np.zeros(prior.shape)
    one[every, secret], two[every, other] = 1.0, 1.0
    return {"pairs": (one, two), "up": (one, prior), "down": (prior, one)}[kind]


def over_inputs(joint: Joint, table: FloatArray) -> FloatArray:
    """Functionals (m, c, u) of what each secret has as functionals (m, a) of rows."""
    return table.reshape(len(table), len(joint.inputs)) if reads_secret(joint) else np.asarray(table.sum(axis=1))


class _Worst(NamedTuple):
    """Where m rows are worst: ``Σ_s amounts_s P(y|s)``, shape (m, c), is the larger side minus its limit.

    ``below`` (m, c) is the smaller side, ``value`` (m,) what the difference is, ``by`` (m,) the ratio that the
    distribution attains over the limit, minus 1: over counts the first look is an upper bound.
    """

    extreme: Extreme
    amounts: FloatArray
    below: FloatArray
    value: FloatArray
    by: FloatArray

    @classmethod
    def of(
        cls, distributions: DistributionSet, stack: FloatArray, kind: Kind, limit: float, secret: Places, other: Places
    ) -> _Worst:
        extreme = _extreme(distributions, stack, kind, secret, other)
        above, below = _amounts(kind, extreme.prior, secret, other)
        told = (extreme.given * stack).sum(axis=2)
        larger, smaller = (above * told).sum(axis=1), limit * (below * told).sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            return cls(extreme, above - limit * below, below, larger - smaller, larger / smaller - 1)


def _exact_ratio(
    joint: Joint, distributions: DistributionSet, row: WeightArray, kind: Kind, s: int, t: int
) -> Fraction | None:
    stack = stacked(joint, row[None])[0]
    if kind != "pairs":
        return distributions.exact_lift(stack, s, kind == "up")
    given = distributions.exact_given(stack)
    high, low = given[s], given[t]
    if high is None or low is None:
        raise ValueError("secrets that no distribution has are compared with nothing")
    if low[1] == 0:
        return None if high[0] else Fraction(0)
    return high[0] / low[1]
