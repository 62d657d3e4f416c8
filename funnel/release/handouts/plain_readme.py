"""README.md of an invariant release: it is counted as usual, so it says how exact that is and gives no recipe."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from funnel.release.handouts.channel_tables import likely_pairs
from funnel.release.public import rounded_up
from funnel.settings.count_protection import PROTECTIONS

# Of epsilon, where a part went into learning which values there are: what counts are left with.
_AFTER_LEARNING = 0.75
_DIGITS = 2
_CHANGING = (
    "That is so for the people there are, however they changed since the versions before: how many records each value "
    "would be published for on average was counted{noisy}, and answers were changed until these agree with the counts"
    "{far}."
)
_WITH_NOISE = {"noisy": ", with noise, as `means` in `frequencies.json`", "far": ""}
_EXACT = {"noisy": "", "far": ", to within a record each; the probabilities in `protocol.json` are rounded"}
_NOISE_IN_R = "; what is left of the noise is in it, so that it can be above 1 for values of few records"
_BUT_FOR_FEW = " where r is not above 1"
# The parts of epsilon that counts and means of a later version have.
_COUNTS_PART, _MEANS_PART = 1 / 2, 1 / 4
_OR_SECRET = (
    ", or its secret is another one, drawn alike for all records of a class: the report says how far tables of the "
    "secret with another column may be off"
)


def counting(privacy: Mapping[str, Any], protocol: Mapping[str, Any]) -> Iterator[str]:
    """How to work with the records."""
    by_class = protocol["outputs"]["columns"] != privacy["published"]
    yield (
        f"Count, tabulate and regress as usual. Every value is one of the source, and tables are right on average"
        f"{_up_to(privacy, protocol)}."
    )
    noisy = PROTECTIONS[privacy["frequencies"]["protection"]].is_noisy
    if (privacy["versions"] or 1) > 1:
        yield _CHANGING.format(**(_WITH_NOISE if noisy else _EXACT))
    yield (
        f"Standard errors for the population are the usual ones times √(1 + r){'' if noisy else ', at most 1.41'}, and "
        "a chi-square statistic is divided by 1 + r. r is the variance that the random changes add, as a part of the "
        f"usual one{_NOISE_IN_R if noisy else ''}. `funnel estimate` prints it for shares, means, odds ratios and "
        "tests of independence; for any other statistic, such as a regression, `funnel.load_release(…).variance_ratio` "
        f"gives it. About these records alone usual errors are long enough{_BUT_FOR_FEW if noisy else ''}."
    )
    selected = (
        "Analyses within records that are selected by something not published, such as records of a register that you "
        "link, are not right on average"
    )
    if by_class:
        secret = protocol["outputs"]["columns"][0] in privacy["secret"]
        yield f"{selected}: some of them are records of others, as often as `protocol.json` says for their classes."
        yield (
            "A record that was changed is, in all columns, that of somebody else"
            f"{_OR_SECRET if secret else ''}. The last column is its class, which "
            "follows from the others as `classes.json` says; `protocol.json` has how often records of one class were "
            "published as one of another."
        )
    else:
        yield (
            f"{selected}: use `funnel.estimate(table, protocol, by=…)` in Python, or the probabilities in "
            "`protocol.json`."
        )


def _up_to(privacy: Mapping[str, Any], protocol: Mapping[str, Any]) -> str:
    behind = privacy["frequencies"]
    if not PROTECTIONS[behind["protection"]].is_noisy:
        return ""
    if (privacy["versions"] or 1) > 1:
        left = behind["epsilon"] * (_AFTER_LEARNING if behind["delta"] else 1.0)
        mean, count = (
            rounded_up(one, _DIGITS) for one in (math.sqrt(2) / (left * _MEANS_PART), _deviation(left * _COUNTS_PART))
        )
        return (
            f" up to the noise of `frequencies.json`: about {mean:g} records for a published value by its mean, and "
            f"about {count:g} by each count of it, and √m times as many for m of these"
        )
    records = rounded_up(remaining_noise(behind, protocol), _DIGITS)
    return (
        f" up to what is left of the noise: about {records:g} records for a count of `frequencies.json`, and about "
        "√m times as many for the sum of m counts"
    )


def remaining_noise(behind: Mapping[str, Any], protocol: Mapping[str, Any]) -> float:
    """Largest standard deviation, in records, of what the noise of the frequencies moves an expected count by.

    Expected counts are ``ñ + (n - ñ) W``: the noise of every cell x enters the count of y with weight W(y|x).
    """
    squares = [0.0] * len(protocol["outputs"]["symbols"])
    for _, y, probability in likely_pairs(protocol):
        squares[y] += probability**2
    epsilon = behind["epsilon"] * (_AFTER_LEARNING if behind["delta"] else 1.0)
    return _deviation(epsilon) * math.sqrt(max(squares))


def _deviation(epsilon: float) -> float:
    """Of the discrete Laplace distribution, with a = e^-ε: √(2a) / (1 - a)."""
    return math.sqrt(2 * math.exp(-epsilon)) / -math.expm1(-epsilon)
