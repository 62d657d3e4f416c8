"""Public counts: public counts, and how exact ones become public; all that public writers take of counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from funnel.alphabet import Alphabet
from funnel.errors import DataError, SpecError
from funnel.frequencies.averages import NoisyAverages
from funnel.frequencies.limits import bounds_of
from funnel.frequencies.moves import NoisyMoves
from funnel.frequencies.noise import Noise, NoiseSecret, draw_noise
from funnel.frequencies.selection import NOTHING, Share, rounded_down
from funnel.frequencies.unit_tables import NoisyRows
from funnel.frequencies.widening import widened
from funnel.joint import Joint, freeze
from funnel.settings.count_protection import PROTECTIONS, CountProtection, ProtectionName
from funnel.settings.protection_settings import FrequencySettings

IntArray = npt.NDArray[np.int64]

# Of what learning values left of the epsilon of a version: for changes where there are earlier versions about the same
# people, for the rows of units where these have several, and where there are either for means or departures.
TABLES_PART: Final = Fraction(1, 4)


@dataclass(frozen=True, eq=False)
class Frequencies:
    """Counts that may be public, and what they cost.

    Attributes
    ----------
    joint : Joint
        Public counts, shape (c, a); with bounds where they are protected by noise.
    protection : "none", "threshold" or "noise"
    noise : Noise or None
        What was added; None without noise.
    noisy : ndarray of int64, shape (c, a), or None
        The counts before they were clipped at 0; read-only.
    spent : float
        Epsilon (nats) that all versions about these people have spent, this one included; 0 without noise.
    epsilon : float
        Epsilon (nats) that this version has spent: that of the noise, what it cost to learn which values there are, and
        that of changes and rows.
    changes : NoisyMoves, optional
        How people changed since earlier versions about them, with noise.
    rows : NoisyRows, optional
        How a unit's rows follow one another, with noise, where units have several; the counts are then those of first
        rows.
    means : NoisyAverages, optional
        How many records each value is published for on average, with noise, where earlier versions are about the same
        people and values are as they are.
    impossible : tuple of mapping of column to tuple of str
        Published values that were declared not to go together: there is no count of their combinations. Empty without
        noise.
    departures : NoisyAverages, optional
        By how much published values are more common than the effective channel leads to expect, with noise, where there
        are changes or rows and no means.

    Raises
    ------
    SpecError
        If they contradict one another.
    """

    joint: Joint
    protection: ProtectionName
    noise: Noise | None = None
    noisy: IntArray | None = None
    spent: float = 0.0
    epsilon: float = 0.0
    changes: NoisyMoves | None = None
    rows: NoisyRows | None = None
    means: NoisyAverages | None = None
    impossible: tuple[Mapping[str, tuple[str, ...]], ...] = ()
    departures: NoisyAverages | None = None

    def __post_init__(self) -> None:
        bounds = self.joint.bounds
        given = (self.noise is not None, self.noisy is not None, bounds is not None)
        if any(given) != self.kind.is_noisy or not (all(given) or not any(given)):
            raise SpecError("frequencies have noise and bounds where they are protected by noise, and nowhere else")
        if self.noise is None or self.noisy is None or bounds is None:
            if self.spent or self.epsilon or self.tables:
                raise SpecError("frequencies spend epsilon where they are protected by noise, and nowhere else")
            return
        if not np.array_equal(np.maximum(self.noisy, 0), self.joint.counts) or bounds.beta != self.noise.beta:
            raise SpecError("public counts are the noisy ones, clipped at 0, with bounds for the beta of the noise")
        drawn = [self.noise.epsilon, *(one.epsilon for one in self.tables)]
        if sum(map(Fraction, drawn)) > Fraction(self.epsilon) or self.epsilon > self.spent:
            raise SpecError("what the noise spent is a part of what the version spent, and that of what all have spent")
        freeze(self, "noisy")

    @property
    def kind(self) -> CountProtection:
        """How the counts are protected, with its rules."""
        return PROTECTIONS[self.protection]

    @property
    def tables(self) -> tuple[NoisyMoves | NoisyRows | NoisyAverages, ...]:
        """Noisy tables beside the counts."""
        found = (self.changes, self.rows, self.means, self.departures)
        return tuple(one for one in found if one is not None)

    def key_beside(self, secret: NoiseSecret, kind: str, epsilon: float) -> bytes:
        """What noise on ``kind`` is derived from, which is for all other noisy tables of the version.

        These stand for exact numbers that the register has up to a rounding alone: what follows from the same records,
        earlier versions and noisy tables is the same.

        Raises
        ------
        SpecError
            If the counts have no noise.
        """
        if self.noisy is None:
            raise SpecError("only counts with noise have noisy tables beside them")
        since = () if self.changes is None else self.changes.since
        tables = [self.noisy, *(table for one in since for table in (one.secrets, one.stayed, one.left))]
        if self.rows is not None:
            tables += [self.rows.stayed, self.rows.left, self.rows.sizes]
        return secret.key(kind, epsilon, self.joint, tables, [one.since for one in since])

    @property
    def part(self) -> float:
        """Of what this version spends, the part that the noise of the counts has; 1 without noise."""
        return 1.0 if self.noise is None else self.noise.epsilon / self.epsilon


def protect(
    counted: Joint,
    settings: FrequencySettings,
    *,
    spent_before: float = 0.0,
    values: Mapping[str, Sequence[str]] | None = None,
    learned: Share = NOTHING,
    tables: int = 0,
    secret: NoiseSecret | None = None,
) -> Frequencies:
    """Make exact counts public ones: the one place where that happens.

    With noise every count gets its own, of the discrete Laplace distribution: one record more or less changes one count
    by one, so what is made of the noisy counts is epsilon-differentially private, all of it together.

    Parameters
    ----------
    counted : Joint
        Exact counts.
    settings : FrequencySettings
    spent_before : float
        Epsilon (nats) that earlier versions about these people have spent.
    values : mapping of column to sequence of str, optional
        The values that each column may have, in order: counts are made over all of their combinations. Without it the
        alphabets of the counts have to be public already.
    learned : Share, optional
        What it cost to learn these values; the counts get the rest of epsilon.
    tables : int
        How many parts of that are for tables beside the counts (`part_for`): of changes, of rows of units, and of means
        or departures.
    secret : NoiseSecret, optional
        What the noise is derived from; without it the noise is fresh.

    Raises
    ------
    SpecError
        If more would be spent than the settings allow, or the counts are noisy already.
    DataError
        If there are too many combinations, or no public count is above zero.
    EntropyError
        If no noise can be drawn.
    """
    if counted.bounds is not None:
        raise SpecError("these counts are noisy already; protect the exact ones")
    if not settings.kind.is_noisy:
        return Frequencies(counted, settings.protection)
    spent = spent_with(settings, spent_before)
    wide = counted if values is None else widened(counted, values)
    left = Fraction(settings.epsilon) - Fraction(learned.epsilon)
    left -= tables * Fraction(part_for(settings, learned))
    noise = Noise(rounded_down(left), learned.delta, settings.beta)
    key = None if secret is None else secret.key("counts", noise.epsilon, wide, [wide.counts])
    noisy = wide.counts + draw_noise(wide.counts.size, noise.epsilon, key=key).reshape(wide.counts.shape)
    return of_noisy(noisy, wide.secret, wide.inputs, noise, settings.epsilon, spent)


def part_for(settings: FrequencySettings, learned: Share) -> float:
    """Epsilon (nats) of changes, of rows of units, of means or departures: a quarter of what learning values left."""
    return rounded_down((Fraction(settings.epsilon) - Fraction(learned.epsilon)) * TABLES_PART)


def of_noisy(
    noisy: IntArray, secret: Alphabet, inputs: Alphabet, noise: Noise, epsilon: float, spent: float
) -> Frequencies:
    """Frequencies of counts whose noise was drawn: now, or when they were first published.

    Parameters
    ----------
    noisy : ndarray of int64, shape (c, a)
        Counts with noise, not clipped.
    secret, inputs : Alphabet
        What these are counts of.
    noise : Noise
    epsilon, spent : float
        Of this version, and of all about these people.

    Raises
    ------
    DataError
        If no count is above zero.
    """
    public = np.maximum(noisy, 0)
    if not public.any():
        raise DataError(
            "nothing is left of the frequencies under the noise, which means that there are hardly any records; raise "
            "epsilon in [frequencies], or publish when there are more"
        )
    joint = Joint(public, secret, inputs, bounds_of(noisy, noise))
    return Frequencies(joint, "noise", noise, noisy, spent, epsilon)


def spent_with(settings: FrequencySettings, spent_before: float) -> float:
    """Epsilon (nats) that all versions about some people have spent with one more.

    Added as the decimal numbers that people wrote: ten times 0.1 are 1.

    Raises
    ------
    SpecError
        If that is more than the max_epsilon of the settings.
    """
    spent = Decimal(repr(spent_before)) + Decimal(repr(settings.epsilon))
    if settings.max_epsilon is not None and spent > Decimal(repr(settings.max_epsilon)):
        raise SpecError(too_much(spent_before, settings.max_epsilon, settings.epsilon))
    return float(spent)


def too_much(before: float, total: float, more: float) -> str:
    """What is said where more epsilon (nats) would be spent than is allowed in all."""
    return (
        f"earlier versions about these people have spent {before:g} of max_epsilon = {total:g} in "
        f"[frequencies], and this one would spend {more:g} more; lower epsilon, or raise max_epsilon"
    )


if TYPE_CHECKING:

    def _exact(counts: Joint) -> Frequencies:
        # The type checker itself says that exact counts are no frequencies: it refuses an ignore that nothing needs.
        return counts  # type: ignore[return-value]
