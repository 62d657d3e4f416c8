"""Effective channel: whether what an entry publishes, and its histories, are those of the people in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from funnel.recount.chapters import NEW, WHOLE
from funnel.recount.register_files import Entry
from funnel.recount.register_people import Followed


def history_complaints(entry: Entry, followed: Followed, missing: int, coming: bool) -> Iterator[str]:
    """Histories and the published channel of an entry that are not those of its people.

    The published channel is the mean of all channels, over the people who drew from each; its weights are whole numbers
    that add up to 2^63, so that each may be off by as many as there are outputs. People who were forgotten before the
    version draw from the law of the output of all others, whatever they are. Once some of a version are forgotten that
    was published, nobody can tell any more what they drew from; the mean is then known up to their share.
    """
    chapter = entry.chapter
    if any(sum(column) != WHOLE for column in zip(*entry.effective, strict=True)):
        yield "the weights of the effective channel do not add up to 2^63"
    new = {NEW} if missing else set()
    had, has = set(followed.people) - new, set(chapter.followed) - new
    known = coming or not missing
    # With noise there are histories that are expected and that nobody has.
    if not had <= has or (had != has and not entry.protected and known):
        yield "it has channels for other histories than its people had"
    # With noise it is that of people who are expected, and judged with their laws.
    if not entry.protected and (wrong := _not_the_mean(entry, followed.by_channel, known)):
        yield f"{wrong:,} weights of the effective channel are not the mean of what people drew from"


def _not_the_mean(entry: Entry, by_channel: Mapping[tuple[int, int], int], known: bool) -> int:
    """Weights that are not the mean; if it is not ``known`` what some drew from, those that it cannot be."""
    chapter = entry.chapter
    people = [0] * chapter.a
    drawn = [[0] * chapter.a for _ in range(chapter.b)]
    by_input: dict[int, dict[int, int]] = {}
    for (k, x), count in by_channel.items():
        people[x] += count
        by_input.setdefault(k, {})[x] = count
    silent = [max(0, sum(chapter.counts[x :: chapter.a]) - count) for x, count in enumerate(people)]
    for k, counts in by_input.items():
        for y, row in enumerate(chapter.channels[k]):
            for x, weight in row:
                drawn[y][x] += counts.get(x, 0) * weight
    if not known:
        # Whatever they drew from, its weights are from zero to 2^63.
        return sum(
            not -room <= entry.effective[y][x] * (people[x] + gone) - drawn[y][x] <= gone * WHOLE + room
            for x, gone in enumerate(silent)
            for room in (2 * chapter.b * (people[x] + gone),)
            for y in range(chapter.b if people[x] + gone else 0)
        )
    others = sum(people)
    if not others:
        # All of them are forgotten: any law tells nothing.
        return sum(len(set(row[x] for x in range(chapter.a) if silent[x])) > 1 for row in entry.effective)
    law = [sum(row) for row in drawn]
    wrong = 0
    for x, count in enumerate(map(sum, zip(people, silent, strict=True))):
        for y in range(chapter.b if count else 0):
            expected = drawn[y][x] * others + silent[x] * law[y]
            # A unit more an output where the law of all others was rounded too.
            room = chapter.b * (2 if silent[x] else 1)
            wrong += abs(entry.effective[y][x] * count * others - expected) > room * count * others
    return wrong
