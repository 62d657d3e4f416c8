"""What stays as it is under an invariant protocol, and what observers conclude: again, in whole numbers.

Release validation and audits both ask this; nothing here is shared with what makes the figures.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from typing import Any

from funnel.recount.channel import Symbols, weights_of
from funnel.recount.plain_distributions import NOISE, believed, believed_in_parts, mismatch, public_level
from funnel.recount.source import Recount

Json = Mapping[str, Any]
Symbol = tuple[str, ...]

# Steps of secrets, values and outputs beyond which no observers are told of.
LARGEST = 20_000_000
_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Rule:
    """By what figures are rounded and bounded.

    Attributes
    ----------
    step : float
        Public shares are multiples of it.
    budget : float
        Of the observers that are told of, nats.
    ceiling : float or None
        The largest lift of a secret that the guarantee allows; None where it sets no limit to single lifts.
    ordered : bool
        Whether secrets are listed by the shares at hand, to a step: they are by public ones, not by exact ones.
    in_units : bool
        Whether a person may have several records, which are not drawn one by one.
    """

    step: float
    budget: float
    ceiling: float | None
    ordered: bool = True
    in_units: bool = False


@dataclass(frozen=True, eq=False)
class PlainStays:
    """What a protocol whose outputs are its inputs leaves as it is, whatever the counts are.

    Parameters
    ----------
    protocol : JSON object
        Content of ``protocol.json``.
    """

    protocol: Json

    @cached_property
    def symbols(self) -> Symbols:
        """Inputs and outputs."""
        return tuple(map(tuple, self.protocol["inputs"]["symbols"]))

    @cached_property
    def whole(self) -> int:
        """What the weights of an input add up to."""
        return int(self.protocol["denominator"])

    @cached_property
    def rows(self) -> dict[Symbol, dict[Symbol, int]]:
        """Weights that are not zero, by input and output."""
        found: dict[Symbol, dict[Symbol, int]] = {x: {} for x in self.symbols}
        for y, x, weight in weights_of(self.protocol):
            found[self.symbols[x]][self.symbols[y]] = weight
        return found

    def stays(self, x: Symbol) -> int:
        """The weight with which an input is published as it is."""
        return self.rows[x].get(x, 0)

    def keeps(self, x: Symbol, places: slice) -> int:
        """The weight with which an input is published with its own values at some places."""
        return sum(weight for y, weight in self.rows[x].items() if y[places] == x[places])

    def entered(self, occurring: Collection[Symbol]) -> set[Symbol]:
        """What inputs that occur become, other than themselves."""
        return {y for x in occurring for y in self.rows[x] if y != x}

    def alone(self, published: Mapping[Symbol, int]) -> tuple[int, float | None]:
        """Published records like no other, and the share of them that is expected to be true."""
        single = [y for y, count in published.items() if count == 1]
        true = sum(self.stays(y) for y in single)
        return len(single), true / (len(single) * self.whole) if single else None


@dataclass(frozen=True, eq=False)
class PlainUnchanged(PlainStays):
    """Figures of such a protocol, under counts of secret and published values.

    Parameters
    ----------
    counted : Recount
        The counts that everything public follows from, over what is published.
    """

    counted: Recount

    @cached_property
    def records(self) -> dict[Symbol, int | Fraction]:
        """Records of every input that occurs."""
        found: dict[Symbol, int | Fraction] = {}
        for (_, x), count in believed(self.counted).items():
            if count:
                found[x] = found.get(x, 0) + count
        return found

    @property
    def publishes_secret(self) -> bool:
        """Whether published values begin with those of the secret."""
        columns = self.counted.secret_columns
        return self.counted.published_columns[: len(columns)] == columns

    @property
    def others(self) -> tuple[int, ...]:
        """Places of the published columns that are not secret."""
        first = len(self.counted.secret_columns) if self.publishes_secret else 0
        return tuple(range(first, len(self.counted.published_columns)))

    def observers(self, budget: float) -> Iterator[tuple[int, float, float]]:
        """How many other columns observers know; how far a belief moves at most, and of how many people beyond that.

        Parameters
        ----------
        budget : float
            In nats, as what moves: the largest change of the logarithm of a belief in a secret.
        """
        known = [
            (size, some)
            for size in sorted({0, 1, min(2, len(self.others)), len(self.others)})
            for some in combinations(self.others, size)
        ]
        entries = len(self.symbols) ** 2 * len(self.counted.secret)
        if len(known) * entries > LARGEST:
            return
        worst: dict[int, tuple[float, float]] = {}
        for size, some in known:
            level, outside = self._observed(some, budget)
            before = worst.get(size, (0.0, 0.0))
            worst[size] = max(level, before[0]), max(outside, before[1])
        for size, (level, outside) in worst.items():
            yield size, level, outside

    @cached_property
    def _believed(self) -> tuple[Mapping[tuple[Symbol, Symbol], int], int]:
        return believed_in_parts(self.counted)

    def _observed(self, some: tuple[int, ...], budget: float) -> tuple[float, float]:
        seen: dict[tuple[Symbol, Symbol], dict[Symbol, int]] = {}
        people: dict[Symbol, dict[Symbol, int]] = {}
        records, unit = self._believed
        for (s, x), n in records.items():
            if not n:
                continue
            knows = tuple(x[place] for place in some)
            of = people.setdefault(knows, {})
            of[s] = of.get(s, 0) + n
            for y, weight in self.rows[x].items():
                masses = seen.setdefault((knows, y), {})
                masses[s] = masses.get(s, 0) + n * weight
        level, outside = 0.0, 0
        for (knows, _), masses in seen.items():
            of, shown = people[knows], sum(masses.values())
            group, most = sum(of.values()), 0.0
            for s, n in of.items():
                mass = masses.get(s, 0)
                # A quotient of whole numbers is rounded once.
                most = max(most, abs(math.log((mass * group) / (n * shown))) if mass else math.inf)
            level = max(level, most)
            if most > budget * (1 + _TOLERANCE) + _TOLERANCE:
                outside += shown
        return level, outside / (self.counted.rows * unit * self.whole)


def share_mismatch(name: str, stated: object, exact: float | None, step: float) -> Iterator[str]:
    """That a share is not the exact one as a multiple of a step; what is not nothing may be stated as one step.

    Parameters
    ----------
    name : str
    stated : object
    exact : float or None
        None where there is no such share.
    step : float
    """
    if exact is None or stated is None:
        if stated is not exact:
            yield f"{name} is {stated!r} instead of {exact!r}"
        return
    if (why := mismatch(stated, exact, step)) is not None:
        yield f"{name} {why}"


def ceiling_mismatch(
    name: str, stated: object, prior: tuple[float, float], rule: Rule, published: bool
) -> Iterator[str]:
    """That the limit of how often a value of the secret may stay is not that of the guarantee.

    Parameters
    ----------
    name : str
    stated : object
    prior : (float, float)
        The least and the largest that the share of the value can be.
    rule : Rule
    published : bool
        Whether the secret is a published column; nothing is stated otherwise.
    """
    if not published or rule.ceiling is None:
        if stated is not None:
            yield f"at_most of {name} is {stated!r}, and there is no such limit"
        return
    least, most = (min(1.0, rule.ceiling * share) for share in prior)
    if not _is_step_above(stated, least, most, rule.step):
        yield f"at_most of {name} is {stated!r}, which the guarantee does not make it"


def observer_complaints(name: str, stated: Json, level: float, outside: float, rule: Rule) -> Iterator[str]:
    """That a level and a share of people beyond the budget are not those that some observers come to."""
    reached = math.inf if stated["level"] == "infinite" else stated["level"]
    if reached not in {public_level(level * (1 + hair), rule.budget) for hair in (-NOISE, 0.0, NOISE)}:
        yield f"level of {name} is {stated['level']!r}, which is not what they can conclude"
    if not _is_step_above(stated["outside"], outside, outside, rule.step):
        yield f"outside of {name} is {stated['outside']!r}, which does not follow"


def _is_step_above(stated: object, least: float, most: float, step: float) -> bool:
    """Whether a share is one between two, up to the next multiple of a step; nothing stays nothing."""
    if isinstance(stated, bool) or not isinstance(stated, (int, float)) or not math.isfinite(stated):
        return False
    # Who makes it takes a share that is so little above a multiple, by the sums of floats, to be that multiple.
    first, last = math.ceil(least / step - 1.5 * NOISE), math.ceil(most / step - NOISE / 2)
    number = round(stated / step)
    return first <= number <= last and abs(stated - number * step) <= NOISE
