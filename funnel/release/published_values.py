"""How published values are to be read: as sets of true values, or as values that are counted as they stand."""

from __future__ import annotations

from dataclasses import dataclass

from funnel.protocol import INVARIANT


@dataclass(frozen=True)
class PublishedValues:
    """What documents say of the values that the outputs of a channel are.

    Attributes
    ----------
    field : str
        Of a column.
    recipe : str
        How shares of true values are estimated from the records.
    estimator : bool
        Whether that takes weights, which a release then has as a table of its own.
    """

    field: str
    recipe: str
    estimator: bool


SETS = PublishedValues(
    field=(
        "sanitised: a plain value stands for itself; a value with 'or' may come from any of the values it names, and "
        "from further ones if it ends in 'or others'. protocol.json gives the probabilities."
    ),
    recipe=(
        "Of all shares p of true values those are the likeliest that this ends at, from equal ones on: multiply every "
        "p(x) by the sum over published values y of q(y) P(y|x) / r(y), again and again, where q(y) is the share of "
        "records with y, P(y|x) is in protocol.json, and r(y) is the sum of P(y|x) p(x) over true values x."
    ),
    estimator=True,
)
"""Outputs with names of their own, which may stand for several true values."""

PLAIN = PublishedValues(
    field=(
        "sanitised: a value of the source, which need not be the true one of its record; counts of records are right "
        "on average. protocol.json gives the probabilities."
    ),
    recipe=(
        "Count as usual: shares of records are right on average, up to the noise of the frequencies. Multiply usual "
        "standard errors for the population by sqrt(1 + r), with r at most 1, and divide a chi-square by 1 + r. For "
        "records selected by something that is not published, estimate by the probabilities in protocol.json."
    ),
    estimator=False,
)
"""Outputs that are the inputs, with the same distribution."""


def published_values(mechanism: str) -> PublishedValues:
    """How the outputs of a protocol of this mechanism are read."""
    return PLAIN if mechanism == INVARIANT else SETS
