"""The sections of a spec about frequencies: how they are protected, and which values may occur at all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Self

from pydantic import AfterValidator, Field, StrictFloat, StrictInt, model_validator

from funnel.settings.count_protection import PROTECTIONS, CountProtection, ProtectionName
from funnel.settings.fields import MAX_LABEL, Positive, Section, Texts

# Below this the noise is wider than any table, and its bounds take hours.
MIN_EPSILON = 1e-4
# Beyond this the noise is zero for all purposes, and "none" would say so.
MAX_EPSILON = 20.0


class FrequencySettings(Section):
    """``[frequencies]``: how the frequencies are protected that every public document is a function of.

    Attributes
    ----------
    protection : "none", "threshold" or "noise"
        Whether public documents are made from the exact counts, from counts of which none is small, or from noisy ones;
        the records are drawn for true values, and their number is exact.
    epsilon : float
        Differential privacy (nats; one record more or less) of all public documents of a version together.
    beta : float
        Probability over the noise, at most, that the true counts are outside the bounds the guarantee is proven for.
    delta : float
        Probability, at most, that a value of one person alone is named; only where values are learned from the data.
    threshold : int
        With ``protection = "threshold"``: the smallest (secret, published) count that may be published.
    max_epsilon : float or None
        What all versions about the same people may spend together.
    """

    protection: ProtectionName = "noise"
    epsilon: Annotated[Positive, Field(ge=MIN_EPSILON, le=MAX_EPSILON)] = 1.0
    beta: Annotated[StrictFloat, Field(ge=1e-100, lt=1, allow_inf_nan=False)] = 0.01
    delta: Annotated[StrictFloat, Field(ge=1e-100, lt=1, allow_inf_nan=False)] = 1e-9
    threshold: Annotated[StrictInt, Field(ge=2)] = 10
    max_epsilon: Positive | None = None

    @property
    def kind(self) -> CountProtection:
        """How the counts are protected, with its rules."""
        return PROTECTIONS[self.protection]

    @model_validator(mode="after")
    def _fitting(self) -> Self:
        if self.max_epsilon is not None and self.max_epsilon < self.epsilon:
            raise ValueError(
                f"max_epsilon {self.max_epsilon:g} is below epsilon {self.epsilon:g}, so that not one version could be "
                "made; raise max_epsilon or lower epsilon"
            )
        return self


def _distinct(values: tuple[str, ...]) -> tuple[str, ...]:
    if not values:
        raise ValueError("must list at least one value")
    for value in values:
        if not value.strip() or len(value) > MAX_LABEL:
            raise ValueError(f"must list texts of 1 to {MAX_LABEL} characters")
        if values.count(value) > 1:
            raise ValueError(f"lists {value!r} twice")
    return values


# ``[categories]``: the values that a column may have, in the order of its symbols.
Categories = Mapping[str, Annotated[Texts, AfterValidator(_distinct)]]


def _several(values: Mapping[str, tuple[str, ...]]) -> Mapping[str, tuple[str, ...]]:
    if len(values) < 2:
        raise ValueError(
            "must list values of two columns or more; values that no record has are left out of [categories]"
        )
    return values


# ``[[impossible]]``: published values that do not go together, those of every column that is named.
Impossible = tuple[Annotated[Categories, AfterValidator(_several)], ...]
