"""What no public file tells beside the one that says it: statements of a report that an audit of public files names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

UNTOLD: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "what the publisher writes in words, such as the title and what the source is",
        ("title", "description", "licence.*", "contact.*", "source.title", "source.references.*"),
    ),
    ("how the source was recoded", ("recodings.#", "source.dropped")),
    ("how good the search for the protocol was", ("compared.#.finished", "compared.#.certificate.*")),
    ("what judged the release", ("judged.#.*",)),
    ("who approved it", ("approval.*",)),
    (
        "how many versions came before, and what they spent",
        ("earlier_releases", "frequencies.spent", "frequencies.unprotected"),
    ),
    ("whose people these are", ("people", "unit.#", "frequencies.covers_versions")),
    (
        "what people who are in several versions add up to",
        ("figures.history.observers.#.outside_at_most", "figures.history.observers.#.bounded"),
    ),
    ("the version before", ("change.created", "change.guarantee", "change.records", "change.rows", "change.new_data")),
    ("the version before", ("change.withdrawn.#", "kept.#.share", "kept.#.share_alone")),
)
"""Words for statements of ``report.json``, and their places: ``#`` is any number of a list."""
# Of counts that nobody publishes; from noisy ones all of this is made again.
_WITHOUT_NOISE: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "how the draws compare with the exact counts",
        ("figures.consistency.*", "figures.outside", "rarity.combinations"),
    ),
    ("how much records tell of the secret on average", ("figures.secret_information",)),
    (
        "levels over the confidence set",
        (
            "estimation.robust_level",
            "estimation.robust_lift_level",
            "estimation.doubtful",
            "figures.worst_of_many_laws",
        ),
    ),
)
# Where there are so many lifts that no table of them is told.
_OF_MANY = (
    "lifts that are not among the strongest",
    (
        *("lifts.total", "lifts.spreads.#.values.#", "beliefs.rows.#.lowest", "beliefs.rows.#.highest"),
        *("example.lowest", "example.highest", "unchanged.observers.#.level", "unchanged.observers.#.outside"),
    ),
)
# Where exact shares of outputs are known to the publisher alone.
_OF_READERS = (
    "shares of outputs that a protocol draws by the secret, and errors of estimates",
    (
        *("outputs.*", "heat.*", "accuracy.*", "estimated.*", "beliefs.rows.#.lowest", "beliefs.rows.#.highest"),
        *("example.lowest", "example.highest", "lifts.total", "lifts.spreads.*"),
    ),
)


def untold(report: Mapping[str, Any], off: float | None) -> tuple[str, ...]:
    """Words for all that a report states and nothing else public tells, each once.

    ``off`` is how far probabilities of the protocol are said to be off at most.
    """
    there = {place for place, value in leaves(report) if value is not None}
    said = [words for words, patterns in _excepted(report) if any(_is_one_of(place, patterns) for place in there)]
    said.append("the numbers that its spec declares, such as the limits of disclosure control")
    noise = report["frequencies"]["protection"] == "noise"
    rounded = "what shares of the secret and lifts were before they were rounded"
    said.append("what the noise was added to" if noise else rounded)
    if off:
        said.append("how far the probabilities of the protocol are off")
    return tuple(dict.fromkeys(said))


def untold_places(report: Mapping[str, Any]) -> set[str]:
    """The places of all these statements."""
    some = tuple(pattern for _, patterns in _excepted(report) for pattern in patterns)
    return {place for place, _ in leaves(report) if _is_one_of(place, some)}


def _excepted(report: Mapping[str, Any]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    if report["frequencies"]["protection"] == "noise":
        return UNTOLD
    many = () if report["lifts"]["table"] is not None else (_OF_MANY,)
    return (*UNTOLD, *_WITHOUT_NOISE, *many, *((_OF_READERS,) if report["mechanism"]["reads_secret"] else ()))


def _is_one_of(place: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(place, pattern) for pattern in patterns)


def leaves(value: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """Every text, number and truth value of a document with its place."""
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield from leaves(part, f"{place}.{key}" if place else str(key))
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from leaves(part, f"{place}.#")
    else:
        yield place, value
