"""Whether a grouped protocol is what it says: its form, its names, the people behind channels, and the bound."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction

from funnel.audit.grouped.law import PublishedLaw
from funnel.recount.grouped import Followed, GroupedLevel
from funnel.recount.grouped_text import GroupedText

# A prefix that fewer people are expected to have than this share of what a channel is made for says nothing more.
_THINNEST = 0.1
# What was expected in doubles may be that much off.
_RELATIVE = 1e-9


def form_complaints(text: GroupedText) -> Iterator[str]:
    """Whether all there is of a protocol is drawn by, under the digest that it states."""
    if text.content.get("digest") != text.digest:
        yield "its digest is not that of its stages"
    for number, what, place in text.unused():
        yield f"{what} {place + 1} of stage {number} is one that no record comes to"
    for stage in text.stages:
        for channel in stage.channels:
            if len(set(map(repr, zip(channel.labels, channel.outputs, strict=True)))) < len(channel.labels):
                yield "a channel has an output twice"


def name_complaints(text: GroupedText) -> Iterator[str]:
    """Whether every output is named as the set of the values that it mixes, in the one way there is."""
    for stage, channel, output in text.misnamed():
        yield f"output {output} of channel {channel} of stage {stage} is not called as the values that it mixes"


def truth_complaints(law: PublishedLaw) -> Iterator[str]:
    """Whether everybody's own value is in everything that they can be published as."""
    if law.followed.strangers:
        yield (
            f"in {law.followed.strangers:,} classes of records a channel does not know a value that people there have, "
            "so that they are published as others"
        )
    for j, column in enumerate(law.columns):
        if wrong := law.untrue(j):
            yield f"{column} can be published as something that it is not, in {wrong:,} combinations of records"


def people_complaints(followed: Followed, people: int) -> Iterator[str]:
    """Whether channels are made for as many people as the spec asks for, and where they are too few nothing is said."""
    if followed.text.people != people:
        yield f"it says that channels are made for {followed.text.people:,} people, and the spec {people:,}"
    for one in followed.people:
        where = f"channel {one.channel + 1} of stage {one.stage + 1}"
        if one.most < people * (1 - _RELATIVE):
            yield f"{where} was made for fewer than {people:,} people"
        if one.fewest < people * _THINNEST * (1 - _RELATIVE):
            yield f"{where} is drawn from where fewer than {people * _THINNEST:g} people are expected"


def bound_complaints(what: str, level: GroupedLevel, budget: Fraction) -> Iterator[str]:
    """Whether the bound holds for something."""
    if not level.holds:
        yield f"{what} goes to {level.nats!r} nats, and the bound is {float(budget)!r}"


def groups_complaints(
    text: GroupedText, columns: Iterable[str], groups: tuple[tuple[str, ...], ...] | None, choice: str
) -> Iterator[str]:
    """Whether columns and groups are those that were asked for.

    Parameters
    ----------
    text : GroupedText
    columns : iterable of str
        Published columns, in order.
    groups : tuple of tuple of str, optional
        As they were given; None where they were to be found.
    choice : str
        "given", "order" (the columns in this order, in groups that are found) or "auto" (in any order).
    """
    wanted = tuple(columns)
    found = tuple(stage.columns for stage in text.stages)
    if text.columns != wanted:
        yield "its columns are not the published ones, in their order"
    if choice == "given" and found != groups:
        yield "its groups are not those of the spec, in their order"
    if choice == "order" and tuple(column for group in found for column in group) != wanted:
        yield "its groups do not follow the order of the spec"
    if text.content.get("choice", choice) != choice:
        yield f"it says that its groups were chosen as {text.content.get('choice')!r}, which is not what the spec asks"
