"""Value order: which values of a column are neighbours, by their texts: numbers, dates, ranges and degrees."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

_NUMBER = r"[-+]?\d+(?:[.,]\d+)?"
_UNIT = r"(?:\s*[a-zäöü]+)?"
# "30-39", "30–39", "30 to 39", "[30, 40)", "30 to under 40", "30 < 40"; a dash is no sign where a number is before it.
_RANGE = re.compile(
    rf"[\[(\]]?\s*({_NUMBER})\s*(?:-|–|—|,|\.\.|to(?:\s+under)?|bis(?:\s+unter)?|<|until|through)\s*({_NUMBER})"
    rf"\s*[\])\[]?{_UNIT}",
    re.I,
)
_YEARS = r"(?:years?\s+|jahre\s+)?(?:or|and|oder|und)\s+"
_BELOW = re.compile(
    rf"(?:under|below|less than|up to|lt|unter|bis(?:\s+unter)?|weniger als|<=?|≤)\s*({_NUMBER}){_UNIT}"
    rf"|({_NUMBER})\s*{_YEARS}(?:under|younger|less|below|fewer|jünger|weniger|darunter){_UNIT}",
    re.I,
)
_FROM = re.compile(
    rf"(?:over|above|more than|from|at least|gt|über|ab|mehr als|mindestens|>=?|≥)\s*({_NUMBER}){_UNIT}"
    rf"|({_NUMBER})\s*(?:\+|{_YEARS}(?:over|older|more|above|älter|mehr|darüber)){_UNIT}",
    re.I,
)
_ONE = re.compile(rf"({_NUMBER})(?:\s+[a-zäöü]+)?", re.I)
# A number with marks, and one whose marks are between thousands.
_MARKED = re.compile(r"[0-9]+(?:[.,'’ \u00a0\u202f][0-9]+)+")
_THOUSANDS = re.compile(r"[1-9][0-9]{0,2}(?:[.,'’ \u00a0\u202f][0-9]{3})+")
# Words of one scale, from its least to its most; those that mean the same have a stroke between them.
_SCALES = tuple(
    {word: place for place, words in enumerate(scale.split(", ")) for word in words.split("|")}
    for scale in (
        "none|no, very low, low, mid|middle|medium|moderate|normal|average, high, very high",
        "none|no|absent, minimal, mild|light|slight, moderate|medium, severe|strong, very severe|very strong|critical",
        "never, rarely|seldom|hardly ever, sometimes|occasionally, often|frequently|usually, always",
        "very poor|very bad, poor|bad, fair|average|satisfactory, good, very good, excellent",
        "extra small|xs, small|s, medium|middle|m, large|l|big, extra large|very large|xl",
        "strongly disagree, disagree, neutral|neither agree nor disagree|undecided, agree, strongly agree",
        "very dissatisfied, dissatisfied, neutral|neither satisfied nor dissatisfied, satisfied, very satisfied",
        "very weak, weak, medium|moderate, strong, very strong",
        "primary|elementary, lower secondary, secondary|upper secondary, tertiary",
        "january|jan, february|feb, march|mar, april|apr, may, june|jun, july|jul, august|aug, september|sep|sept, "
        "october|oct, november|nov, december|dec",
    )
)
_PERIOD = re.compile(r"(\d{4})(?:-(\d{2}|Q[1-4])(?:-(\d{2}))?)?", re.I)


def in_order(values: Sequence[str]) -> list[str] | None:
    """The values in order, where every one is a number, a range of numbers, a date or period, or a degree; else None.

    Examples
    --------
    >>> in_order(["80 or older", "45-49", "under 20", "20-44"])
    ['under 20', '20-44', '45-49', '80 or older']
    >>> in_order(["2026-Q3", "2025-Q4"])
    ['2025-Q4', '2026-Q3']
    >>> in_order(["High", "low", "Mid"])
    ['low', 'Mid', 'High']
    >>> in_order(["$1,000 to $1,999", "under $500", "$500 to $999"])
    ['under $500', '$500 to $999', '$1,000 to $1,999']
    >>> in_order(["no", "yes"]) is None
    True
    """
    if len(values) < 2:
        return None
    plain = [value.strip() for value in values]
    ways: tuple[tuple[Callable[[str], tuple[float, ...] | None], Sequence[str]], ...] = (
        (_period, plain),
        (_range, _without_marks(plain)),
        (_range, plain),
        *((_degree(scale), plain) for scale in _SCALES),
    )
    for place_of, texts in ways:
        places = [place_of(text) for text in texts]
        if None not in places and len(set(places)) == len(places):
            return [value for _, value in sorted(zip(places, values, strict=True), key=lambda pair: pair[0] or ())]
    return None


def _degree(scale: dict[str, int]) -> Callable[[str], tuple[float, ...] | None]:
    """Where words stand in a scale."""

    def place_of(value: str) -> tuple[float, ...] | None:
        place = scale.get(" ".join(re.split(r"[\s_-]+", value.casefold())))
        return None if place is None else (float(place),)

    return place_of


def _period(value: str) -> tuple[float, ...] | None:
    found = _PERIOD.fullmatch(value)
    if found is None:
        return None
    return tuple(float(part.upper().lstrip("Q")) for part in found.groups(default="0"))


def _range(value: str) -> tuple[float, ...] | None:
    """Where a range of numbers begins and ends."""
    if found := _ONE.fullmatch(value):
        return (_number(found[1]), _number(found[1]))
    if found := _BELOW.fullmatch(value):
        return (float("-inf"), _number(found[1] or found[2]))
    if found := _FROM.fullmatch(value):
        return (_number(found[1] or found[2]), float("inf"))
    if found := _RANGE.fullmatch(value):
        low, high = _number(found[1]), _number(found[2])
        return (low, high) if low <= high else None
    return None


def _without_marks(values: Sequence[str]) -> list[str]:
    """The values without currencies, and without marks between thousands where no number has another mark."""
    texts = [" ".join(re.sub("[€$£¥%]", " ", value).split()) for value in values]
    if not all(_THOUSANDS.fullmatch(number) for text in texts for number in _MARKED.findall(text)):
        return texts
    return [_MARKED.sub(lambda found: re.sub("[^0-9]", "", found[0]), text) for text in texts]


def _number(text: str) -> float:
    return float(text.replace(",", "."))
