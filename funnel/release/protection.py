"""Protection: what protects the frequencies of a version, as its documents and its record say it."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from pydantic import Field, model_validator

from funnel.release.document import Count, Part, Sha256
from funnel.settings.count_protection import PROTECTIONS, CountProtection, ProtectionName

if TYPE_CHECKING:
    from funnel.frequencies.public_counts import Frequencies


class Protection(Part):
    """How the counts were protected that public documents are made from; None where a number means nothing.

    ``epsilon`` (nats) is what the public documents of this version may disclose about one record more or less, but for
    the published records and their number, ``delta`` the probability that a value of one person alone is named, and
    ``beta`` the probability, over the noise, that the true counts are outside the bounds for which the guarantee is
    proven. ``spent`` is the epsilon of all versions about these people, this one included, and ``unprotected`` how many
    of these versions have no noise.
    """

    protection: ProtectionName
    epsilon: float | None = Field(gt=0)
    delta: float | None = Field(ge=0, lt=1)
    beta: float | None = Field(gt=0, lt=1)
    spent: float | None = Field(gt=0)
    unprotected: Count

    @property
    def kind(self) -> CountProtection:
        """How the counts are protected, with its rules."""
        return PROTECTIONS[self.protection]

    @model_validator(mode="after")
    def _noise_has_numbers(self) -> Protection:
        told = {one is None for one in (self.epsilon, self.delta, self.beta, self.spent)}
        if told != {not self.kind.is_noisy}:
            raise ValueError("tells of noise where there is none, or not all of it")
        if self.epsilon is not None and self.spent is not None and self.spent < self.epsilon:
            raise ValueError("says that all versions together spent less than this one")
        return self


Draw = tuple[str, str]
"""A draw of noise by the SHA-256 (hex) of what it was drawn for, and of what was drawn.

Noise for something else is another draw, also where both are the same by chance, as of few people they may be.
"""


class ProtectedTables(Part):
    """Noisy tables beside the counts, as the record of a version names them; internal.

    Attributes
    ----------
    epsilon : float
        What they cost (nats).
    counted, noisy : str
        SHA-256 (hex) of the exact tables with what they are protected with, and of the noisy ones.
    """

    epsilon: float = Field(gt=0)
    counted: Sha256
    noisy: Sha256

    @property
    def draw(self) -> Draw:
        """Which draw of noise they are."""
        return self.counted, self.noisy


class ProtectedCounts(Protection):
    """The same in the record of a version, with what the counts were; internal.

    Attributes
    ----------
    counted : str
        SHA-256 (hex) of the exact counts and of the settings that they are protected with: the same counts have the
        same noise, which is spent once.
    noisy : str or None
        SHA-256 (hex) of the noisy counts; None without noise.
    values : str or None
        SHA-256 (hex) of the source and of what of the spec decides which of its values have a name; None where that is
        not learned under noise.
    changes, rows, means, departures : ProtectedTables or None
        How people changed since earlier versions, how the rows of a unit follow one another, how many records each
        value is published for on average, and how many more than is expected, where there are such tables.
    """

    counted: Sha256
    noisy: Sha256 | None
    values: Sha256 | None
    changes: ProtectedTables | None = None
    rows: ProtectedTables | None = None
    means: ProtectedTables | None = None
    departures: ProtectedTables | None = None

    @model_validator(mode="after")
    def _noisy_with_noise(self) -> ProtectedCounts:
        if (self.noisy is not None) != self.kind.is_noisy:
            raise ValueError("names noisy counts where there are none, or does not where there are")
        if self.values is not None and self.noisy is None:
            raise ValueError("says that values were learned under noise, and there is none")
        if self.tables and self.noisy is None:
            raise ValueError("names noisy tables where there is no noise")
        return self

    @property
    def tables(self) -> tuple[ProtectedTables, ...]:
        """Noisy tables beside the counts."""
        return tuple(one for one in (self.changes, self.rows, self.means, self.departures) if one)

    @property
    def draws(self) -> Mapping[Draw, Decimal]:
        """What every draw of noise cost (nats); that of the counts with what learning their values did."""
        if self.epsilon is None or self.noisy is None:
            return {}
        found = {one.draw: Decimal(repr(one.epsilon)) for one in self.tables}
        # As the decimal numbers that people wrote.
        return {**found, (self.counted, self.noisy): Decimal(repr(self.epsilon)) - sum(found.values())}

    @property
    def public(self) -> Protection:
        """What of it is public."""
        return Protection.like(self)


def numbers_of(frequencies: Frequencies) -> dict[str, Any]:
    """What public frequencies say of their protection, by the names of `Protection`."""
    noise = frequencies.noise
    if noise is None:
        return {"protection": frequencies.protection, "epsilon": None, "delta": None, "beta": None, "spent": None}
    return {
        "protection": frequencies.protection,
        "epsilon": frequencies.epsilon,
        "delta": noise.delta,
        "beta": noise.beta,
        "spent": frequencies.spent,
    }
