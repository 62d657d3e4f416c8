"""Donors' lines a second time: of whole records which values stay, and how exact their shares are, from public files.

A published record of class g stays with the probability that its class does, and else becomes that of a donor of the
class that is drawn: people of both classes stand along lines, and somebody at a share q of one takes the place at q of
the other. Published records stand for the true ones, since those of every class have the composition of the true ones.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from itertools import accumulate, compress
from operator import ne
from statistics import median
from typing import Any, TypeVar

from funnel.recount.part_beliefs import PART
from funnel.recount.plain_distributions import NOISE, up_to_digits
from funnel.recount.unchanged import share_mismatch

Json = Mapping[str, Any]
Record = tuple[str, ...]
Numbers = Sequence[defaultdict[str, float]]
"""By column, of each of its values."""
K = TypeVar("K")

# As documented: nothing is stated where more pairs of a record and a donor had to be compared.
MOST_PAIRS = 50_000_000
# As documented: what the words of a probe are multiples of.
_SPREAD = 0x9E3779B97F4A7C15
# As documented: groups are told of that have one of so many records.
LEAST_GROUP = 1_000
# By so little groups do not differ; a value that is kept so seldom is not kept.
_NEARLY = 1e-9
# A class that so few of a record go to is none that it goes to.
_HARDLY = 1e-9
# As documented: errors are listed for so many values of a column, the most common ones.
_LISTED = 30
# Of the variance of a share in a sample: less is the rounding of sums, and no error.
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class PlainDonors:
    """Published whole records, and what becomes of each.

    Parameters
    ----------
    columns : sequence of str
        Those of the secret, where it is published, and of the records, without that of the class.
    published : mapping of (secret, record, class) to int
    moves : mapping of (input, output) to float
        The protocol: of a class, after the secret where that is published.
    categories : mapping of str to sequence of str
        The values of every column of the records, in the order in which people stand.
    """

    columns: Sequence[str]
    published: Mapping[tuple[Record, Record, str], int]
    moves: Mapping[tuple[Record, Record], float]
    categories: Mapping[str, Sequence[str]]

    @cached_property
    def _is_even(self) -> bool:
        """Whether donors are anybody of the new part of a class, whoever the record is."""
        return any(PART in name for _, _, name in self.published)

    @cached_property
    def _lines(self) -> dict[str, list[tuple[Record, int]]]:
        """By class its records and the people with each, in the order in which they stand."""
        people: dict[str, Counter[Record]] = defaultdict(Counter)
        width = 0
        for (secret, record, name), count in self.published.items():
            people[name][record] += count
            width = len(secret)
        ranks = [{text: rank for rank, text in enumerate(self.categories[name])} for name in self.columns[width:]]
        return {
            name: sorted(of.items(), key=lambda one: [rank[text] for rank, text in zip(ranks, one[0], strict=True)])
            for name, of in people.items()
        }

    @cached_property
    def _chances(self) -> dict[Record, dict[Record, float]]:
        """Of every input the chances of its outputs; a class that nobody was published of takes nobody."""
        most: dict[tuple[str, str], float] = defaultdict(float)
        for (x, y), chance in self.moves.items():
            most[x[-1], y[-1]] = max(most[x[-1], y[-1]], chance)
        found: dict[Record, dict[Record, float]] = defaultdict(lambda: defaultdict(float))
        for (x, y), chance in self.moves.items():
            goes = most[x[-1], y[-1]] > _HARDLY and y[-1] in self._lines
            found[x][y if goes else (*y[:-1], x[-1])] += chance
        return found

    def _becomes(self, secret: Record, name: str) -> Mapping[Record, float]:
        x = (*secret, name)
        return self._chances.get(x, {x: 1.0})

    @property
    def pairs(self) -> int:
        """How many pairs of a record and a donor there are at most, for each pair of secrets."""
        ways = {
            (x[-1], y[-1]) for x, of in self._chances.items() for y in of if x[-1] != y[-1] and x[-1] in self._lines
        }
        if self._is_even:
            # Counts of values are compared, and no pairs.
            return 0
        secrets = len({x[:-1] for x in self._chances})
        return secrets**2 * sum(len(self._lines[one]) + len(self._lines[other]) for one, other in ways)

    def taken_digest(self, names: Sequence[str]) -> str:
        """The digest of the probe of `funnel.sampling.probe`: whose place every record takes.

        Parameters
        ----------
        names : sequence of str
            Of the classes, in order.
        """
        there = [name for name in names if name in self._lines]
        ends = {name: list(accumulate(count for _, count in self._lines[name])) for name in there}
        stands = {
            record: (place, end - count, count)
            for place, name in enumerate(there)
            for (record, count), end in zip(self._lines[name], ends[name], strict=True)
        }
        numbers = {record: number for number, record in enumerate(sorted(stands))}
        answers = []
        for record, number in numbers.items():
            own, before, count = stands[record]
            other = there[(own + 1 + number % (len(there) - 1)) % len(there)] if len(there) > 1 else there[own]
            if other == there[own]:
                answers.append(number)
                continue
            size, width = ends[there[own]][-1], ends[other][-1]
            word, limit = number * _SPREAD % 2**64, width if self._is_even else count * width
            while word >= 2**64 - 2**64 % limit:
                word = (word + 1) % 2**64
            person = word % limit if self._is_even else (before * width + word % limit) // size
            answers.append(numbers[self._lines[other][bisect_right(ends[other], person)][0]])
        return blake2b(b"".join(one.to_bytes(4, "little") for one in answers), digest_size=16).hexdigest()

    @cached_property
    def _values(self) -> dict[str, list[defaultdict[str, float]]]:
        """By class and column the share of the people there with every value."""
        found = {}
        for name, line in self._lines.items():
            size = sum(count for _, count in line)
            found[name] = [defaultdict[str, float](float) for _ in line[0][0]]
            for record, count in line:
                for place, value in enumerate(record):
                    found[name][place][value] += count / size
        return found

    def _donors(self, name: str, other: str) -> Iterator[list[tuple[int, str, float]]]:
        """Record by record of a class how likely its donor of another one has another value, by column and value."""
        mine, theirs = self._lines[name], self._lines[other]
        size, width = (sum(count for _, count in line) for line in (mine, theirs))
        places = range(len(mine[0][0]))
        donors = iter(theirs)
        donor: Record = ()
        left = 0
        for record, count in mine:
            needed = whole = count * width
            found = []
            while needed:
                if not left:
                    donor, people = next(donors)
                    left = people * size
                step = min(left, needed)
                left, needed = left - step, needed - step
                found += [(place, donor[place], step / whole) for place in compress(places, map(ne, record, donor))]
            yield found

    @cached_property
    def _groups(self) -> dict[str, dict[Record, list[tuple[Record, int]]]]:
        """By class and secret the records and the people with each."""
        found: dict[str, dict[Record, list[tuple[Record, int]]]] = defaultdict(lambda: defaultdict(list))
        for (secret, record, name), count in self.published.items():
            found[name][secret].append((record, count))
        return found

    @cached_property
    def _changes(self) -> tuple[Numbers, Numbers]:
        """By column and value: how many records with it lose it on average, and the variance of how many will have it.

        What each becomes is drawn by itself: one that has a value with the chance q adds q (1 - q).
        """
        away, spread = ([defaultdict[str, float](float) for _ in self.columns] for _ in range(2))
        width = len(next(iter(self.published))[0])
        of_records = away[width:], spread[width:]
        for name, of in self._groups.items():
            goes = {}
            for secret, people in of.items():
                becomes, size = self._becomes(secret, name), sum(count for _, count in people)
                goes[secret] = _summed((y[-1], chance) for y, chance in becomes.items() if y[-1] != name)
                for place, own in enumerate(secret):
                    chances = _summed((y[place], chance) for y, chance in becomes.items())
                    away[place][own] += size * (1 - chances.get(own, 0.0))
                    for value, q in chances.items():
                        spread[place][value] += size * q * (1 - q)
                if self._is_even:
                    self._even(people, goes[secret], *of_records)
            if not self._is_even:
                self._along(name, goes, *of_records)
        return away, spread

    def _along(self, name: str, goes: Mapping[Record, Mapping[str, float]], away: Numbers, spread: Numbers) -> None:
        """Add the changes of the records of a class, of which those of each secret go to others with some chances."""
        others = sorted({other for of in goes.values() for other in of})
        walks = [self._donors(name, other) for other in others]
        for record, _ in self._lines[name]:
            donors = dict(zip(others, map(next, walks), strict=True))
            for secret, of in goes.items():
                count = self.published.get((secret, record, name), 0)
                if not count or not of:
                    continue
                chances = _summed(
                    ((place, value), chance * share)
                    for other, chance in of.items()
                    for place, value, share in donors[other]
                )
                lost = _summed((place, q) for (place, _), q in chances.items())
                for (place, value), q in chances.items():
                    spread[place][value] += count * q * (1 - q)
                for place, q in lost.items():
                    away[place][record[place]] += count * q
                    spread[place][record[place]] += count * q * (1 - q)

    def _even(
        self, people: Sequence[tuple[Record, int]], goes: Mapping[str, float], away: Numbers, spread: Numbers
    ) -> None:
        """Add the changes of records of one secret and part whose donors are anybody of the new part."""
        size, stay = sum(count for _, count in people), 1 - math.fsum(goes.values())
        for place in range(len(away)):
            come: dict[str, float] = defaultdict(float)
            for other, chance in goes.items():
                for value, share in self._values[other][place].items():
                    come[value] += chance * share
            own = Counter[str]()
            for record, count in people:
                own[record[place]] += count
            for value, count in own.items():
                away[place][value] += count * (1 - stay - come[value])
            for value, q in come.items():
                kept = stay + q
                spread[place][value] += own[value] * kept * (1 - kept) + (size - own[value]) * q * (1 - q)

    @cached_property
    def stays(self) -> dict[str, float]:
        """By column the share of the records whose value there stays."""
        records = sum(self.published.values())
        lost = zip(self.columns, self._changes[0], strict=True)
        return {column: 1 - math.fsum(of.values()) / records for column, of in lost}

    def people(self, column: str) -> Counter[str]:
        """By value of a column the records that are published with it; a secret that has none counts as one."""
        place, found = self.columns.index(column), Counter[str]()
        for (secret, record, _), count in self.published.items():
            found[(*secret, *record)[place]] += count
            if place < len(secret):
                found.update(dict.fromkeys((x[place] for x in self._chances), 0))
        return found

    def errors(self, column: str) -> dict[str, float]:
        """By value the standard error of its counted share that drawing adds, the most common first."""
        spread, people = self._changes[1][self.columns.index(column)], self.people(column)
        n, order = sum(people.values()), self.categories[column]
        listed = sorted(people, key=lambda value: (-people[value], order.index(value)))
        rounding = {value: _ROUNDING * count * (1 - count / n) for value, count in people.items()}
        return {value: math.sqrt(spread[value]) / n if spread[value] > rounding[value] else 0.0 for value in listed}

    def groups(self, column: str) -> dict[str, float]:
        """By value that a thousandth of the records have the share of these that keep it."""
        away, people = self._changes[0][self.columns.index(column)], self.people(column)
        least = sum(people.values()) / LEAST_GROUP
        kept = {value: 1 - away[value] / count for value, count in people.items() if count >= least}
        return {value: share if share > _NEARLY else 0.0 for value, share in kept.items()}

    @cached_property
    def whole(self) -> float:
        """The share of the records that stay in all columns."""
        stay = (count * self._becomes(s, name).get((*s, name), 0.0) for (s, _, name), count in self.published.items())
        return sum(stay) / sum(self.published.values())

    @property
    def alone(self) -> tuple[int, float | None]:
        """Published records like no other, and the share of them that is expected to be true."""
        single = [(secret, name) for (secret, _, name), count in self.published.items() if count == 1]
        true = sum(self._becomes(secret, name).get((*secret, name), 0.0) for secret, name in single)
        return len(single), true / len(single) if single else None


def _summed(pairs: Iterable[tuple[K, float]]) -> dict[K, float]:
    found: dict[K, float] = defaultdict(float)
    for key, number in pairs:
        found[key] += number
    return found


def whole_complaints(stated: Json | None, found: PlainDonors, share: float, step: float) -> Iterator[str]:
    """What a report states of whole records that does not follow from those that are published.

    Parameters
    ----------
    stated : JSON object or None
        ``unchanged.whole`` of ``report.json``.
    found : PlainDonors
    share : float
        Of the records that is stated to be wholly unchanged; that it follows is judged elsewhere.
    step : float
        Public shares are multiples of it.
    """
    if found.pairs > MOST_PAIRS:
        if stated is not None:
            yield "more is stated of whole records than there is room to compute"
        return
    if stated is None:
        yield "nothing is stated of whole records by column"
        return
    named = [one["column"] for one in stated["columns"]]
    if named != list(found.columns):
        yield f"columns of whole records are {named!r} instead of {list(found.columns)!r}"
        return
    for one in stated["columns"]:
        name = f"share of whole records with their {one['column']!r}"
        stays = min(1.0, share + found.stays[one["column"]] - found.whole)
        yield from share_mismatch(name, one["share"], stays, step)
        yield from _group_complaints(one, found.groups(one["column"]), step)
    if [one["columns"] for one in stated["estimated"]] != [[name] for name in found.columns]:
        yield "errors of whole records are not told of every column"
    else:
        for name, one in zip(found.columns, stated["estimated"], strict=True):
            yield from _error_complaints(one, name, found.errors(name))
    number, true = found.alone
    if stated["unique"] != number:
        yield f"{stated['unique']!r} whole records are stated to be like no other, instead of {number!r}"
    yield from share_mismatch("unique_unchanged of whole records", stated["unique_unchanged"], true, step)


def _group_complaints(stated: Json, groups: Mapping[str, float], step: float) -> Iterator[str]:
    """What is stated of the groups of a column, the median one and the worst, that is not so."""
    column, worst = stated["column"], stated["worst"]
    least = min(groups.values()) if groups else None
    typical = median(groups.values()) if groups else None
    yield from share_mismatch(f"typical of {column!r}", stated["typical"], typical, step)
    yield from share_mismatch(f"least of {column!r}", stated["least"], least, step)
    is_worst = worst is None if least is None else worst in groups and groups[worst] <= least + _NEARLY
    if not is_worst:
        yield f"the group of {column!r} that keeps its value least often is not {worst!r}"


def _error_complaints(stated: Json, column: str, errors: Mapping[str, float]) -> Iterator[str]:
    """What is stated of the errors of a column's shares, value by value, that is not so."""
    rows, common = stated["rows"], list(errors)[:_LISTED]
    if (stated["cells"], stated["unknown"], stated["sums"]) != (len(errors), 0, []):
        yield f"errors of {column!r} are not those of {len(errors)} values, each of which can be told"
    if [one["label"] for one in rows] != common:
        yield f"errors of {column!r} are not listed for its most common values, in their order"
        return
    exactly = {"typical": median(errors.values()), "largest": max(errors.values())}
    figures = [(name, stated[name], exact) for name, exact in exactly.items()]
    figures += [(f"that of {one['label']!r}", one["error"], errors[one["label"]]) for one in rows]
    for name, said, exact in figures:
        limits = [up_to_digits(exact * (1 + sign * NOISE), digits=2) for sign in (-1, 1)]
        if said is None or said != up_to_digits(said, digits=2) or not limits[0] <= said <= limits[1]:
            yield f"of the errors of {column!r} {name} is {said!r} instead of {limits[1]!r}"
