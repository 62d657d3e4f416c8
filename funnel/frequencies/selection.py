"""Selection: which values of a column may be named, where nobody declared them, and what that costs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from funnel.frequencies.limits import naming_limit
from funnel.frequencies.noise import NoiseSecret, draw_noise, scale_of

# Of the epsilon of a version, the most that learning values may cost; the counts get the rest.
LEARNING = Fraction(1, 4)


@dataclass(frozen=True)
class Share:
    """What learning the values of one column may cost.

    Attributes
    ----------
    epsilon, delta : float
        Differential privacy, one record more or less.
    """

    epsilon: float
    delta: float

    def halved(self) -> Share:
        """Half of the epsilon, with the same delta: of two ways to look at a column of which only one has a delta."""
        return Share(self.epsilon / 2, self.delta)

    @property
    def threshold(self) -> int:
        """The least noisy count that is above what one record reaches with a probability of delta, exactly."""
        return naming_limit(scale_of(self.epsilon), Fraction(self.delta))


NOTHING = Share(0.0, 0.0)


def shares(epsilon: float, delta: float, columns: Iterable[str]) -> dict[str, Share]:
    """The share of each column whose values are learned: equal parts of a quarter of epsilon, and of delta."""
    names = list(columns)
    if not names:
        return {}
    each = Share(rounded_down(Fraction(epsilon) * LEARNING / len(names)), rounded_down(Fraction(delta) / len(names)))
    return dict.fromkeys(names, each)


def rounded_down(number: Fraction) -> float:
    """The largest double at or below a fraction."""
    nearest = float(number)
    return nearest if Fraction(nearest) <= number else math.nextafter(nearest, -math.inf)


@dataclass(frozen=True)
class Looks:
    """Noisy looks at how many records have the values of one column.

    Attributes
    ----------
    column : str
    secret : NoiseSecret or None
        What noise is derived from; without one it is fresh.
    """

    column: str
    secret: NoiseSecret | None = None

    def with_noise(self, kind: str, counts: Mapping[str, int], epsilon: float) -> dict[str, int]:
        """Counts of disjoint groups of records, each with noise: epsilon-differentially private."""
        if not counts:
            return {}
        # Not in the order of the source: whoever validates the names reads it in another one.
        told = {value: counts[value] for value in sorted(counts)}
        key = None if self.secret is None else self.secret.key_of_values(kind, epsilon, self.column, told)
        drawn = draw_noise(len(told), epsilon, key=key).tolist()
        return {value: count + noise for (value, count), noise in zip(told.items(), drawn, strict=True)}


def selected(noisy: Mapping[str, int], share: Share) -> dict[str, int]:
    """Values whose noisy count reaches the threshold, with that noisy count.

    A stability-based histogram (Bun, Nissim and Stemmer 2016): only values that occur have noise, so a value of one
    record alone is named with a probability of at most delta, and for all others the noise answers. Differentially
    private with (epsilon, delta), for one record more or less.
    """
    least = share.threshold
    return {value: count for value, count in noisy.items() if count >= least}
