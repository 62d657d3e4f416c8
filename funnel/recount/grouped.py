"""Whole records of groups of columns: everything that a grouped protocol can show, followed once more in whole numbers.

What makes grouped protocols proves them while it makes them. Here the text of the protocol and the counts are all there
is: every record is drawn through all stages in every way it can be, each prefix of outputs by itself, and the ways that
show the same texts are added up, since texts are what a reader has.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from funnel.errors import DataError, SpecError
from funnel.recount.grouped_text import BITS, SILENT, UNIT, GroupedText, TextStage, Values
from funnel.recount.promise import Promise, read_promise
from funnel.recount.ratios import Ratio, larger, scaled

Counts = Mapping[tuple[Values, Values], int]
KINDS = ("lip", "alip", "ldp", "perfect", "rlip", "ralip", "rldp")


@dataclass(frozen=True)
class GroupedLevel:
    """How far something goes.

    Attributes
    ----------
    nats : float
        The smallest budget that would do (of two budgets the larger, while they keep their proportion); never below
        it. Infinite if none would.
    holds : bool
        Whether the promised one does, decided exactly.
    """

    nats: float
    holds: bool


@dataclass(frozen=True)
class RecordLevel(GroupedLevel):
    """How far whole records go.

    Attributes
    ----------
    records : int
        Distinct published records that were judged.
    missing : int
        Of those that were asked about, how many this protocol cannot publish about anybody who was counted.
    """

    records: int
    missing: int


@dataclass(frozen=True)
class People:
    """How many people are expected to draw from a channel.

    Attributes
    ----------
    stage, channel : int
        From 0.
    most, fewest : float
        Of the prefixes that draw from it.
    """

    stage: int
    channel: int
    most: float
    fewest: float


@dataclass(frozen=True, eq=False)
class RowTable:
    """The people behind the rows of a channel: inputs with the same weights are one row.

    Attributes
    ----------
    stage, channel : int
        From 0.
    unit : int
        One person is so much.
    masses : tuple of tuple of int, (rows, c)
        Of every row that is drawn by, by secret, over all prefixes that draw from the channel.
    shared : int
        The mass of rows that several combinations of values have in common.
    together : int
        How many rows these are.
    """

    stage: int
    channel: int
    unit: int
    masses: tuple[tuple[int, ...], ...]
    shared: int
    together: int


@dataclass(frozen=True, eq=False)
class Followed:
    """All ways of the counted people through the stages.

    Attributes
    ----------
    text : GroupedText
    promise : Promise
    outputs : GroupedLevel
        Over all prefixes and outputs, for whoever knows which output it was.
    decided : int
        Prefixes and outputs, each decided by itself.
    records : RecordLevel
        Over all published records that are possible.
    masses : mapping of published record to tuple of int
        By secret; P(s, y) = mass / (n 2^(44 stages)).
    secrets : tuple of tuple of str
        Those that occur, in the order of the masses.
    sizes : tuple of int
        People with each.
    sources : tuple of tuple of str
        The distinct source records.
    totals : tuple of int
        People with each.
    rows, published : array of int
        Entries of P(published | source record): places in ``sources``, and in the order of ``masses``; a pair may
        come more than once.
    likely : array of float
        Their probabilities, each rounded once.
    people : tuple of People
        Of every channel with more than one output.
    tables : tuple of RowTable
        Of every one of these: what its weights are about.
    prefixes : tuple of int
        By stage: prefixes that draw from one of these.
    told : tuple of float
        What each stage tells of its inputs for whoever knows the outputs before, nats.
    strangers : int
        Prefixes at which a record has an input that the channel does not know.
    """

    text: GroupedText
    promise: Promise
    outputs: GroupedLevel
    decided: int
    records: RecordLevel
    masses: Mapping[Values, tuple[int, ...]]
    secrets: tuple[Values, ...]
    sizes: tuple[int, ...]
    sources: tuple[Values, ...]
    totals: tuple[int, ...]
    rows: array[int]
    published: array[int]
    likely: array[float]
    people: tuple[People, ...]
    tables: tuple[RowTable, ...]
    prefixes: tuple[int, ...]
    told: tuple[float, ...]
    strangers: int

    @property
    def shared(self) -> tuple[float, ...]:
        """By stage the share of all people who are expected to draw by a row that several combinations share."""
        n, unit = sum(self.sizes), [0] * len(self.text.stages)
        for table in self.tables:
            unit[table.stage] += table.shared
        return tuple(mass / (n << (BITS * number)) for number, mass in enumerate(unit))

    def level_of(self, records: Iterable[Values]) -> RecordLevel:
        """The level of some published records, such as those of a release."""
        asked = set(records)
        worst, found = _Worst(self.sizes), 0
        for record in asked:
            masses = self.masses.get(record)
            if masses is not None:
                worst.meet(masses)
                found += 1
        level = worst.level(self.promise)
        return RecordLevel(level.nats, level.holds, found, len(asked) - found)


def follow(protocol: GroupedText | str | bytes, guarantee: str | Promise, counts: Counts) -> Followed:
    """Follow everybody who was counted through all stages of a grouped protocol.

    Parameters
    ----------
    protocol : GroupedText, or text of ``protocol.json``
    guarantee : str or Promise
        Such as ``"lip:1.0"``; lip, alip, ldp or perfect. Of rlip, ralip and rldp that is the bound under the counts
        alone; `funnel.recount.grouped_robust` judges them in the population.
    counts : mapping of (secret, record) to int
        How many people have each; a record is one text for every column, in the order of the protocol's columns.

    Raises
    ------
    DataError
        If it is no grouped protocol, or nobody is counted.
    SpecError
        If the guarantee is of another kind.

    Notes
    -----
    A product of whole numbers for every source record, prefix that it may be published with, and stage. Memory grows
    with the pairs of a source record and a published one, 24 bytes each.
    """
    text = protocol if isinstance(protocol, GroupedText) else GroupedText.parse(protocol)
    promise = read_promise(guarantee) if isinstance(guarantee, str) else guarantee
    if promise.kind not in KINDS:
        raise SpecError(f"{promise.kind} is no bound on the posterior of the secret that whole records are judged by")
    return _Walk(text, promise, counts).followed()


def record_level(
    protocol: str | bytes,
    guarantee: str,
    counts: Counts,
    records: Iterable[Values] | None = None,
) -> RecordLevel:
    """The level of whole records under a grouped protocol: of all that are possible, or of some.

    Parameters
    ----------
    protocol, guarantee, counts
        As of `follow`.
    records : iterable of tuple of str, optional
        Published records, such as those of a release; by default, every one that is possible.

    Raises
    ------
    DataError, SpecError
        As `follow`.
    """
    found = follow(protocol, guarantee, counts)
    return found.records if records is None else found.level_of(records)


class _Worst:
    """The largest lift, inverse lift and odds so far."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self._sizes, self._n = sizes, sum(sizes)
        self._up = self._down = self._odds = Ratio(Fraction(1), 0, 0)

    def meet(self, masses: Sequence[int]) -> None:
        """See what masses by secret tell."""
        whole, n, sizes = sum(masses), self._n, self._sizes
        high = low = 0
        for s, (mass, size) in enumerate(zip(masses, sizes, strict=True)):
            if mass * sizes[high] > masses[high] * size:
                high = s
            if mass * sizes[low] < masses[low] * size:
                low = s
        self._up = larger(self._up, masses[high] * n, whole * sizes[high], 0, high)
        self._down = larger(self._down, whole * sizes[low], masses[low] * n, 0, low)
        self._odds = larger(self._odds, masses[high] * sizes[low], masses[low] * sizes[high], 0, high)

    def level(self, promise: Promise) -> GroupedLevel:
        """How far they go, by what was promised: of a robust promise, under the counts alone."""
        up, down = self._up, self._down
        if promise.kind in ("ldp", "rldp"):
            return GroupedLevel(self._odds.nats, self._odds.within(promise.budget))
        if promise.kind in ("alip", "ralip"):
            sides = ((up, promise.numbers["upper"]), (down, promise.numbers["lower"]))
            levels = [scaled(one.nats, side, promise.budget) for one, side in sides]
            return GroupedLevel(max(levels), all(side is None or one.within(side) for one, side in sides))
        nats = max(up.nats, down.nats)
        if promise.kind == "perfect":
            return GroupedLevel(nats, nats == 0)
        return GroupedLevel(nats, up.within(promise.budget) and down.within(promise.budget))


# A prefix: its stage, its class, the records that may show it, their weights, and what was published so far.
_Prefix = tuple[int, int, list[int], list[int], Values]


class _Walk:
    """All ways of the counted people through the stages."""

    def __init__(self, text: GroupedText, promise: Promise, counts: Counts) -> None:
        self._text, self._promise = text, promise
        there = {pair: count for pair, count in counts.items() if count}
        if not there:
            raise DataError("nobody is counted, so nothing can be told of whole records")
        self._secrets = sorted({secret for secret, _ in there})
        place = {secret: s for s, secret in enumerate(self._secrets)}
        numbers: dict[Values, int] = {}
        self._counts: list[list[tuple[int, int]]] = []
        sizes = [0] * len(place)
        for (secret, record), count in there.items():
            r = numbers.setdefault(record, len(numbers))
            if r == len(self._counts):
                self._counts.append([])
            self._counts[r].append((place[secret], count))
            sizes[place[secret]] += count
        if any(len(record) != len(text.columns) for record in numbers):
            raise DataError("the records have not as many columns as the grouped protocol")
        self._sizes, self._sources = tuple(sizes), tuple(numbers)
        self._totals = [sum(count for _, count in some) for some in self._counts]
        self._inputs = [_read(stage, text.columns, self._sources) for stage in text.stages]
        self._own = [[_own_terms(channel.inputs) for channel in stage.channels] for stage in text.stages]
        self._outputs = _Worst(self._sizes)
        self._nobody = [0] * len(self._sizes)
        self._masses: dict[Values, list[int]] = {}
        self._numbers: dict[Values, int] = {}
        self._entries = array("q"), array("q"), array("d")
        self._people: dict[tuple[int, int], tuple[Fraction, Fraction]] = {}
        self._tables: dict[tuple[int, int], dict[int, list[int]]] = {}
        self._decided = self._strangers = 0
        self._prefixes = [0] * len(text.stages)
        self._told = [0.0] * len(text.stages)

    def followed(self) -> Followed:
        text, promise = self._text, self._promise
        everybody = list(range(len(self._sources)))
        left: list[_Prefix] = [(0, 0, everybody, [1] * len(everybody), ())]
        while left:
            left += self._after(*left.pop())
        whole = _Worst(self._sizes)
        for masses in self._masses.values():
            whole.meet(masses)
        level = whole.level(promise)
        back = [text.order.index(place) for place in range(len(text.columns))]
        n = sum(self._sizes)
        return Followed(
            text,
            promise,
            self._outputs.level(promise),
            self._decided,
            RecordLevel(level.nats, level.holds, len(self._masses), 0),
            {tuple(texts[j] for j in back): tuple(masses) for texts, masses in self._masses.items()},
            tuple(self._secrets),
            self._sizes,
            self._sources,
            tuple(self._totals),
            *self._entries,
            tuple(
                People(stage, channel, float(most), float(fewest))
                for (stage, channel), (most, fewest) in sorted(self._people.items())
            ),
            tuple(self._row_table(*place) for place in sorted(self._tables)),
            tuple(self._prefixes),
            tuple(told / n for told in self._told),
            self._strangers,
        )

    def _after(self, number: int, place: int, rows: list[int], weights: list[int], texts: Values) -> list[_Prefix]:
        """Decide every output of a prefix; the prefixes that it leads to."""
        stage, inputs = self._text.stages[number], self._inputs[number]
        which, following = stage.classes[place]
        channel = stage.channels[which]
        known, own = channel.inputs, self._own[number][which]
        # Records with one input draw by the same weights: whoever is behind it is added up once.
        members: dict[int, tuple[list[int], list[int]]] = {}
        for r, weight in zip(rows, weights, strict=True):
            of_input = members.get(inputs[r])
            if of_input is None:
                of_input = members[inputs[r]] = [], []
            of_input[0].append(r)
            of_input[1].append(weight)
        some: list[tuple[list[int], list[int]]] = [([], []) for _ in channel.labels]
        behind: dict[int, list[int]] = {}
        masses_of = [[0] * len(self._sizes) for _ in channel.labels]
        before, told, strangers = 0, 0.0, 0
        depth = BITS * number
        for x, (of_x, weights_of_x) in members.items():
            of_secret = behind[x] = self._by_secret(of_x, weights_of_x)
            people = sum(of_secret)
            before += people
            if x in known:
                ways = known[x]
                told += people / (1 << depth) * own[x]
            else:
                ways = channel.rare
                strangers += 1
            for y, likely in ways:
                of_output, shown = some[y]
                of_output += of_x
                shown += [weight * likely for weight in weights_of_x]
                masses_of[y] = [mass + one * likely for mass, one in zip(masses_of[y], of_secret, strict=True)]
        self._strangers += bool(strangers)
        longer: list[_Prefix] = []
        expected = before / (1 << depth)
        for (of_output, shown), masses, label, then in zip(some, masses_of, channel.labels, following, strict=True):
            if not of_output:
                continue
            self._outputs.meet(masses)
            self._decided += 1
            part = sum(masses) / (1 << (depth + BITS))
            told -= part * math.log(part / expected)
            if then == SILENT:
                self._end(number + 1, of_output, shown, masses, texts + label)
            else:
                longer.append((number + 1, then, of_output, shown, texts + label))
        if len(channel.labels) > 1:
            self._prefixes[number] += 1
            self._told[number] += told
            exact = Fraction(before, 1 << depth)
            most, fewest = self._people.get((number, which), (exact, exact))
            self._people[number, which] = (max(most, exact), min(fewest, exact))
            self._behind(number, which, behind)
        return longer

    def _behind(self, number: int, which: int, behind: Mapping[int, Sequence[int]]) -> None:
        """Add the people of a prefix, by input and secret, to the rows that they draw by."""
        row_of, table = self._text.stages[number].channels[which].rows, self._tables.setdefault((number, which), {})
        for x, of_secret in behind.items():
            # What the channel does not know draws by the one row of its marginal.
            row = row_of.get(x, -1)
            table[row] = [mass + one for mass, one in zip(table.get(row, self._nobody), of_secret, strict=True)]

    def _row_table(self, number: int, which: int) -> RowTable:
        stage = self._text.stages[number]
        combinations: dict[int, set[int]] = {}
        for x, row in stage.channels[which].rows.items():
            combinations.setdefault(row, set()).add(x // stage.folds)
        table = self._tables[number, which]
        shared = [sum(masses) for row, masses in table.items() if len(combinations.get(row, ())) > 1]
        return RowTable(
            number, which, 1 << (BITS * number), tuple(map(tuple, table.values())), sum(shared), len(shared)
        )

    def _by_secret(self, rows: list[int], weights: list[int]) -> list[int]:
        masses, counts = [0] * len(self._sizes), self._counts
        for r, weight in zip(rows, weights, strict=True):
            for s, count in counts[r]:
                masses[s] += count * weight
        return masses

    def _end(self, number: int, rows: list[int], weights: list[int], masses: list[int], texts: Values) -> None:
        """Note what is published; of stages that say nothing more it is that."""
        stages = self._text.stages
        for stage in stages[number:]:
            texts += stage.nothing
        rest = BITS * (len(stages) - number)
        together = self._masses.setdefault(texts, [0] * len(masses))
        for s, mass in enumerate(masses):
            together[s] += mass << rest
        y = self._numbers.setdefault(texts, len(self._numbers))
        unit = UNIT**number
        of_row, of_published, likely = self._entries
        of_row.extend(rows)
        of_published.extend([y] * len(rows))
        likely.extend(weight / unit for weight in weights)


def _read(stage: TextStage, columns: Sequence[str], records: Sequence[Values]) -> list[int]:
    return [stage.reads(columns, record) for record in records]


def _own_terms(known: Mapping[int, Sequence[tuple[int, int]]]) -> dict[int, float]:
    """``Σ_y W(y|x) ln W(y|x)`` of every input."""
    return {x: sum(w / UNIT * math.log(w / UNIT) for _, w in ways) for x, ways in known.items()}
