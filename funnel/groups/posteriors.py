"""Posteriors: between what limits the odds of a secret are after an output, and how far that is from a bound."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

from funnel.guarantees.binomial_limits import UNIT, lower_limit, upper_limit
from funnel.guarantees.exact import exp_below
from funnel.guarantees.over_laws import Kind, Sides

Ratios = tuple[tuple[Kind, Fraction | None], ...]


def statements(sides: Sides, secrets: int) -> int:
    """How many limits are stated of an output: of every share of a secret, or of it among every two, both sides."""
    if any(kind == "pairs" for kind, _ in sides.finite()):
        return secrets * (secrets - 1)
    # The shares of two secrets are one number.
    return 2 if secrets == 2 else 2 * secrets


@dataclass(frozen=True)
class Limits:
    """Clopper–Pearson limits of the shares of secrets among people of whom so many have each.

    Attributes
    ----------
    counts : tuple of int
        By secret.
    tail : Fraction
        What each limit may miss.
    """

    counts: tuple[int, ...]
    tail: Fraction

    def share(self, s: int) -> tuple[Fraction, Fraction]:
        """The least and the largest share of a secret."""
        return self._share(self.counts[s], sum(self.counts))

    def among(self, s: int, t: int) -> tuple[Fraction, Fraction]:
        """The least and the largest share of s among those who have s or t."""
        return self._share(self.counts[s], self.counts[s] + self.counts[t])

    def _share(self, successes: int, trials: int) -> tuple[Fraction, Fraction]:
        if trials == 0:
            return Fraction(0), Fraction(1)
        low, high = lower_limit(successes, trials, self.tail), upper_limit(successes, trials, self.tail)
        return Fraction(low, UNIT), Fraction(high, UNIT)


@dataclass(frozen=True)
class Bound:
    """What posteriors are held against.

    Attributes
    ----------
    sides : Sides
        What is bounded.
    prior : Limits
        Of the shares of the secrets in the population.
    """

    sides: Sides
    prior: Limits

    @classmethod
    def of(cls, sides: Sides, sizes: Sequence[int], tail: Fraction) -> Self:
        """From the people of every secret."""
        return cls(sides, Limits(tuple(sizes), tail))

    def over(self, posterior: Limits) -> Ratios:
        """The largest ratios over all laws within the limits, by what is bounded; None for an infinite one.

        ``P(y|s) / P(y) = P(s|y) / P(s)``, and ``P(y|s) / P(y|t)`` is the odds of s to t after y over those before.
        """
        return tuple((kind, _largest(self._ratios(kind, posterior))) for kind, _ in self.sides.finite())

    def of_counts(self, sums: Sequence[int]) -> Ratios:
        """The same for one law: that of the counts, with these sums of weights."""
        sizes = self.prior.counts
        given = [Fraction(part, size) for part, size in zip(sums, sizes, strict=True)]
        average, most, least = Fraction(sum(sums), sum(sizes)), max(given), min(given)
        pairs = {"pairs": (most, least), "up": (most, average), "down": (average, least)}
        return tuple((kind, _quotient(*pairs[kind])) for kind, _ in self.sides.finite())

    def holds(self, ratios: Ratios) -> bool:
        """Whether none is beyond a rational just below e^ε."""
        budgets = dict(self.sides.finite())
        return all(ratio is not None and ratio <= exp_below(budgets[kind]) for kind, ratio in ratios)

    def _ratios(self, kind: Kind, posterior: Limits) -> Iterator[Fraction | None]:
        secrets = range(len(posterior.counts))
        for s in secrets:
            if kind == "up":
                yield _quotient(posterior.share(s)[1], self.prior.share(s)[0])
            elif kind == "down":
                yield _quotient(self.prior.share(s)[1], posterior.share(s)[0])
            else:
                for t in secrets:
                    if t != s:
                        after, before = posterior.among(s, t)[1], self.prior.among(s, t)[0]
                        yield _quotient(after * (1 - before), (1 - after) * before)


def _quotient(above: Fraction, below: Fraction) -> Fraction | None:
    return above / below if below else None


def _largest(ratios: Iterator[Fraction | None]) -> Fraction | None:
    known = list(ratios)
    return None if None in known else max(ratio for ratio in known if ratio is not None)
