"""Roles: what the columns of a source may be for, by their names and values: keys, people, weights, secrets."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from funnel.drafting.look import Column, Look
from funnel.settings.replicate_weights import replicate_weights

# Categories that need no recoding.
FEW = 30
# Combinations of those columns that are published at first, and how many columns.
_COMBINATIONS, PUBLISHED = 32, 3
# Candidates for the secret that are named.
_CANDIDATES = 16
_SENSITIVE = re.compile(
    r"incom|salar|wage|earn|wealth|debt|benefit|health|disease|diagn|illness|hiv|disab|medic|drug|pregnan|relig|belief|"
    r"race|ethnic|nation|origin|marital|married|partner|sex(?!$)|orient|gender|politic|party|vote|union|crim|convict|"
    r"offen[cs]e|citizen|immigr|migra|genetic|suicid|docvis|hospvis|abuse|welfare|"
    r"einkommen|gehalt|lohn|schulden|krank|gesundheit|behinder|sucht|partei|wahl|straf|staatsang|herkunft|sozialhilfe"
)
# What outsiders often know of somebody, so that they could find their record in this table, or it in another.
_KNOWN = re.compile(
    r"(^|[^a-z])(age|birth|dob|born|sex|gender|female|male|zip|post|plz|region|state|county|city|town|municipal|province|"
    r"country|occupation|job|profession|educat\w*|marital|married|race|ethnic\w*|kids|children|household|employer|"
    r"alter|geschlecht|geburt\w*|geboren|wohnort|gemeinde|kreis|bundesland|beruf|bildung\w*|schulab|familienst|kinder|"
    r"haushalt)"
)
# Survey weights, and not what somebody weighs.
_WEIGHT = re.compile(
    r"(?<!body)(?<!birth)(?<!body[ _-])(?<!birth[ _-])weight"
    r"(?![ _(-]*(in[ _-]?)?(kg|lbs?|g|grams?|kilos?|pounds?)\b)|wgt",
    re.IGNORECASE,
)
# Measures of a body, beside which a column "weight" is one too.
_BODY = re.compile(r"(^|[^a-z])(height|stature|bmi|(low)?birth[ _.-]?weight|gestation)([^a-z]|$)")


@dataclass(frozen=True)
class Roles:
    """What every column may be for; each tuple in the order of the source.

    Attributes
    ----------
    keys : tuple of Column
        Every record has a value of its own.
    people : tuple of Column
        May say whose record it is, of people who have several.
    identifiers : tuple of Column
        Others that are named as what tells people apart.
    alike : tuple of Column
        The same in every record.
    weights : tuple of Column
        Named like survey weights, or their replicates.
    free : tuple of Column
        All others, which can be secret or published.
    secrets : tuple of Column
        Candidates for the secret, likely ones first.
    published : tuple of Column
        Some to begin with, few enough values together that a plan takes little time.
    known : tuple of Column
        By which an outsider could find somebody.
    """

    keys: tuple[Column, ...]
    people: tuple[Column, ...]
    identifiers: tuple[Column, ...]
    alike: tuple[Column, ...]
    weights: tuple[Column, ...]
    free: tuple[Column, ...]
    secrets: tuple[Column, ...]
    published: tuple[Column, ...]
    known: tuple[Column, ...]

    @property
    def apart(self) -> tuple[Column, ...]:
        """Columns that tell people apart, which are not published."""
        return (*self.keys, *self.people, *self.identifiers)


def roles_of(look: Look) -> Roles:
    """What the columns of a source may be for."""
    taken: set[str] = set()

    def take(found: Sequence[Column]) -> tuple[Column, ...]:
        new = tuple(column for column in found if column.name not in taken)
        taken.update(column.name for column in new)
        return new

    replicates = replicate_weights(column.name for column in look.columns)
    weights = take([column for column in look.columns if column.name in replicates])
    keys = take([column for column in look.columns if column.unique(look.rows)])
    alike = take([column for column in look.columns if column.is_constant(look.rows)])
    # Ages and years of birth are whole numbers that about as many have, too.
    people = take(
        [
            column
            for column in look.columns
            if column.repeats(look.rows) and (column.named_as_person() or not _KNOWN.search(column.name.lower()))
        ]
    )
    identifiers = take([column for column in look.columns if column.is_identifier(look.rows)])
    is_of_body = any(_BODY.search(column.name.lower()) for column in look.columns)
    weights += take(
        [
            column
            for column in look.columns
            if column.kind == "number"
            and _WEIGHT.search(column.name)
            and not (is_of_body and column.name.lower() == "weight")
        ]
    )
    free = take(look.columns)
    secrets = _secrets(free)
    known = tuple(column for column in free if _KNOWN.search(column.name.lower()))
    # Those whose name says it before those that only look like it.
    people = tuple(sorted(people, key=lambda column: not column.named_as_person()))
    return Roles(keys, people, identifiers, alike, weights, free, secrets, _published(free, secrets), known)


def is_wide(column: Column) -> bool:
    """Whether a column of numbers or dates has too many values for each to be a category."""
    return column.kind in ("number", "date") and column.values > 12


def _secrets(columns: Sequence[Column]) -> tuple[Column, ...]:
    """By their names first, then outcomes with two values; those that need no recoding before the others."""
    few = [column for column in columns if column.values <= FEW or column.kind in ("number", "date")]
    named = [column for column in few if _SENSITIVE.search(column.name.lower())]
    outcomes = [column for column in few if column.values == 2 and column not in named]
    outcomes = [column for column in outcomes if not _KNOWN.search(column.name.lower())]
    found = [*_easy_first(named), *outcomes]
    found = found or _easy_first([column for column in few if column.values <= FEW] or list(columns))
    return tuple(found[:_CANDIDATES])


def _easy_first(columns: Sequence[Column]) -> list[Column]:
    return sorted(columns, key=lambda column: (column.values > FEW, column.kind == "number" and column.values > 2))


def _published(columns: Sequence[Column], secrets: Sequence[Column]) -> tuple[Column, ...]:
    others = [column for column in columns if column not in secrets]
    others = others or [column for column in columns if column is not secrets[0]]
    chosen: list[Column] = []
    size = 1
    for column in others:
        if column.values > FEW and column.kind == "text":
            continue
        width = 6 if is_wide(column) else column.values
        if len(chosen) < PUBLISHED and size * width <= _COMBINATIONS:
            chosen.append(column)
            size *= width
    return tuple(chosen) or tuple(others[:1])
