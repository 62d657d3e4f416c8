"""Robust groups of columns, judged once more: who proved what, from the text of the protocol, counts and a seed.

Of the people of a table those who made a protocol and those who prove it are told apart again by the seed, and whoever
proves is followed by the word the seed gives: among those who stand for what a record can end with, the shares of the
secrets have limits of Clopper and Pearson. How many limits were stated is what the maker says, and at least as many as
trees have that end in what is published; all else that is said of the proof is counted again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final, Self

from funnel.errors import DataError, SpecError
from funnel.recount.grouped import Followed, GroupedLevel
from funnel.recount.grouped_text import SILENT, UNIT, GroupedText, TextChannel, Values
from funnel.recount.law_box import UNIT as PARTS
from funnel.recount.law_box import lower_limit
from funnel.recount.promise import Promise, read_promise
from funnel.recount.ratios import Ratio, larger, scaled

Counts = Mapping[tuple[Values, Values], int]
MAKERS: Final = Fraction(1, 4)
"""The share of people who make a protocol that is published by a spec."""
_KINDS = ("rlip", "ralip", "rldp")
_WORD = 1 << 64


@dataclass(frozen=True)
class Stated:
    """What the maker of a protocol says of its proof.

    Attributes
    ----------
    seed : str
    share : Fraction
        Of people, who made it.
    cells : int
        What limits were stated for.
    made_from, proving, leaves : int, optional
        People who made and who prove it, and what a record can end with, as it is said.
    significance : float, optional
        What all limits together may miss, as it is said.
    """

    seed: str
    share: Fraction
    cells: int
    made_from: int | None = None
    proving: int | None = None
    leaves: int | None = None
    significance: float | None = None

    @classmethod
    def of(cls, said: Mapping[str, Any], series: str) -> Self:
        """What ``audit/proof.json`` says of a release of a series.

        Raises
        ------
        DataError
            If other people prove it than the name of the series tells.
        """
        if said["seed"] != series or said["share"] != float(MAKERS):
            raise DataError("the people who prove a release of groups are told apart by the name of the series")
        numbers = {name: said[name] for name in ("cells", "made_from", "proving", "leaves", "significance")}
        return cls(series, MAKERS, **numbers)


@dataclass(frozen=True)
class RobustLevel:
    """How far a protocol goes in the population, as far as people who did not make it can tell.

    Attributes
    ----------
    nats : float
        Over all laws within the limits; infinite where nothing is ruled out.
    holds : bool
        Whether that is within the promise, decided exactly.
    leaves : int
        What a record can end with.
    fewest : int
        People who stand for one of them.
    proving : int
        People who prove.
    """

    nats: float
    holds: bool
    leaves: int
    fewest: int
    proving: int


def robust_level(protocol: GroupedText | str | bytes, guarantee: str, counts: Counts, stated: Stated) -> RobustLevel:
    """Judge a grouped protocol by people who did not make it.

    Parameters
    ----------
    protocol : GroupedText, or text of ``protocol.json``
    guarantee : str
        Such as ``"rlip:1.0,0.05"``.
    counts : mapping of (secret, record) to int
        Of everybody; a record is one text for every column, in the order of the protocol's columns.
    stated : Stated

    Raises
    ------
    DataError
        If it is no grouped protocol, nobody proves, or more is published than limits were stated for.
    SpecError
        If the guarantee is of another kind.

    Notes
    -----
    Every leaf is followed for every record that may end there: whole numbers.
    """
    text = protocol if isinstance(protocol, GroupedText) else GroupedText.parse(protocol)
    promise = read_promise(guarantee)
    if promise.kind not in _KINDS or promise.laws != "boxes":
        raise SpecError(f"{guarantee} is no bound in the population that groups of columns are judged by")
    return _Judge(text, promise, counts, stated).level()


def in_population(followed: Followed, counts: Counts, stated: Stated) -> Followed:
    """All ways through the stages, with the level of outputs in the population where that is what is promised.

    Raises
    ------
    DataError
        As `robust_level`.
    """
    if followed.promise.kind not in _KINDS:
        return followed
    found, counted = _Judge(followed.text, followed.promise, counts, stated).level(), followed.outputs
    level = GroupedLevel(max(found.nats, counted.nats), found.holds and counted.holds)
    return replace(followed, outputs=level)


@dataclass(frozen=True)
class _Leaf:
    """What a record can end with: how likely every record does, over how likely anybody does at most."""

    ways: dict[int, int]
    most: int
    tells: bool


class _Judge:
    def __init__(self, text: GroupedText, promise: Promise, counts: Counts, stated: Stated) -> None:
        self._text, self._promise, self._stated = text, promise, stated
        self._secrets = sorted({secret for (secret, _), count in counts.items() if count})
        self._records = sorted({record for (_, record), count in counts.items() if count})
        sizes = dict.fromkeys(self._secrets, 0)
        for (secret, _), count in counts.items():
            if count:
                sizes[secret] += count
        self._sizes = tuple(sizes[secret] for secret in self._secrets)
        self._people, self._makers = _who_prove(counts, self._secrets, self._records, stated)
        if not any(self._people):
            raise DataError("nobody is left to prove what others made")
        c = len(self._secrets)
        pairs = promise.kind == "rldp"
        number = c * (c - 1) if pairs else 2 if c == 2 else 2 * c
        self._tail = promise.number("alpha") / (number * (stated.cells + 2))

    def level(self) -> RobustLevel:
        self._fewest_cells = 0
        up = down = odds = Ratio(Fraction(1), 0, 0)
        leaves, fewest = 0, sum(len(some) for some in self._people)
        for leaf in self._leaves():
            if not leaf.tells:
                continue
            standing = [0] * len(self._secrets)
            for r, way in leaf.ways.items():
                for s, word in self._people[r]:
                    standing[s] += word * leaf.most < way * _WORD
            leaves += 1
            fewest = min(fewest, sum(standing))
            for s in range(len(standing)):
                low, high = self._share(standing[s], sum(standing))
                least, most = self._share(self._sizes[s], sum(self._sizes))
                up, down = larger(up, high, least, 0, s), larger(down, most, low, 0, s)
                for t in range(len(standing)):
                    if t != s:
                        after = self._share(standing[s], standing[s] + standing[t])[1]
                        before = self._share(self._sizes[s], self._sizes[s] + self._sizes[t])[0]
                        odds = larger(odds, after * (PARTS - before), (PARTS - after) * before, 0, s)
        if self._fewest_cells > self._stated.cells:
            raise DataError(
                f"what the protocol publishes takes limits of {self._fewest_cells:,} outputs and unions of them at "
                "least, and limits were stated for fewer"
            )
        proving = sum(len(some) for some in self._people)
        counted = {
            "made_from": sum(self._sizes) - proving,
            "proving": proving,
            "leaves": leaves,
            "significance": float(self._promise.number("alpha")),
        }
        for name, number in counted.items():
            if getattr(self._stated, name) not in (None, number):
                raise DataError(f"the proof says {getattr(self._stated, name):,} as {name}, and it is {number:,}")
        nats, holds = self._against(up, down, odds)
        return RobustLevel(nats, holds, leaves, fewest, proving)

    def _share(self, successes: int, trials: int) -> tuple[int, int]:
        """Limits of a share, times 2^32."""
        if not trials:
            return 0, PARTS
        low = lower_limit(successes, trials, self._tail)
        return low, PARTS - lower_limit(trials - successes, trials, self._tail)

    def _against(self, up: Ratio, down: Ratio, odds: Ratio) -> tuple[float, bool]:
        promise = self._promise
        if promise.kind == "rldp":
            return odds.nats, odds.within(promise.budget)
        if promise.kind == "rlip":
            return max(up.nats, down.nats), up.within(promise.budget) and down.within(promise.budget)
        sides = ((up, promise.numbers["upper"]), (down, promise.numbers["lower"]))
        nats = max(scaled(one.nats, side, promise.budget) for one, side in sides)
        return nats, all(side is None or one.within(side) for one, side in sides)

    def _leaves(self) -> Iterator[_Leaf]:
        text = self._text
        inputs = [[stage.reads(text.columns, record) for record in self._records] for stage in text.stages]
        left = [(0, 0, _Leaf(dict.fromkeys(range(len(self._records)), 1), 1, False))]
        while left:
            number, place, so_far = left.pop()
            which, following = text.stages[number].classes[place]
            # Outputs are joined two by two until they are all: k of them that are left had 2k - 2 cells, or more.
            self._fewest_cells += 2 * len(following) - 2
            channel = text.stages[number].channels[which]
            rare = dict(channel.rare)
            known = {inputs[number][r] for r in so_far.ways if r in self._makers}
            for x in channel.inputs:
                own = any(weights.get(x, 0) != rare.get(y, 0) for y, weights in enumerate(channel.outputs))
                if own and x not in known:
                    raise DataError(
                        "people who prove the protocol have weights of their own, so that it was made of them"
                    )
            for y, then in enumerate(following):
                weights = channel.outputs[y]
                ways: dict[int, int] = {}
                for r, way in so_far.ways.items():
                    x = inputs[number][r]
                    weight = weights.get(x, 0) if x in channel.inputs else rare.get(y, 0)
                    if weight:
                        ways[r] = way * weight
                most = so_far.most * max([*weights.values(), rare.get(y, 0)])
                leaf = _Leaf(ways, most, so_far.tells or _tells(channel, y))
                if then == SILENT:
                    yield leaf
                else:
                    left.append((number + 1, then, leaf))


def _tells(channel: TextChannel, y: int) -> bool:
    """Whether an output is not that of everybody."""
    rare = dict(channel.rare).get(y, 0)
    return rare != UNIT or any(channel.outputs[y].get(x, 0) != UNIT for x in channel.inputs)


def _who_prove(
    counts: Counts, secrets: list[Values], records: list[Values], stated: Stated
) -> tuple[list[list[tuple[int, int]]], set[int]]:
    """Of every record the (secret, word) of those who prove, and the records that somebody has who makes."""
    place = {secret: s for s, secret in enumerate(secrets)}
    number = {record: r for r, record in enumerate(records)}
    everybody: list[tuple[int, int, int, int]] = []
    for (secret, record), count in counts.items():
        for copy in range(count):
            said = json.dumps([stated.seed, *secret, "", *record, copy])
            told = hashlib.sha256(said.encode("ascii")).hexdigest()
            everybody.append((int(told[:16], 16), int(told[16:32], 16), place[secret], number[record]))
    everybody.sort()
    people: list[list[tuple[int, int]]] = [[] for _ in records]
    number_of_makers = int(stated.share * len(everybody))
    for _, word, s, r in everybody[number_of_makers:]:
        people[r].append((s, word))
    return people, {r for _, _, _, r in everybody[:number_of_makers]}
