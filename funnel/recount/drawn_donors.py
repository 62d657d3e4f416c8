"""Drawn donors: whether records of the same people go on and begin as their channels say, and donors evenly."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from funnel.recount.chapters import WHOLE

# What tells people apart.
Key = Any
Weights = Sequence[Sequence[int]]
# A fair release is refused less often than this, by any of its draws that is looked at.
_RARELY = 1e-10


@dataclass(frozen=True)
class DonorDraws:
    """What was drawn of the people of a version, by their keys.

    Attributes
    ----------
    of_class : mapping of key to int
    before : mapping of key to key, or None
        Whose record was published last; their own of new people, None of who is gone, or of whom nobody knows.
    outputs : mapping of key to int
    stands_for : mapping of key to key, or None
    channels : mapping of key to weights
    new : set of key
        Of whom nothing was published before.
    unknown : set of key
        Of whom nobody knows any more whose record was published last.
    """

    of_class: Mapping[Key, int]
    before: Mapping[Key, Key | None]
    outputs: Mapping[Key, int]
    stands_for: Mapping[Key, Key | None]
    channels: Mapping[Key, Weights]
    new: Set[Key]
    unknown: Set[Key] = frozenset()

    def complaints(self, k: int) -> Iterator[str]:
        """What is wrong with it, as sentences."""
        found: dict[str, None] = {}
        drawn: dict[tuple[int, int], Counter[int]] = defaultdict(Counter)
        begun: list[Key] = []
        later: list[Key] = []
        standing: set[Key | None] = set()
        known = {id(weights): weights for weights in self.channels.values()}
        for key, of in self.of_class.items():
            before, y, now = self.before[key], self.outputs[key], self.stands_for[key]
            if now is None or key in self.unknown:
                continue
            own = before == key
            x = self.of_class[before] + (0 if own else k) if before in self.of_class else 2 * k
            stays = key in self.new and y == k + of
            if not self.channels[key][y][x]:
                found["an output was drawn that has no weight"] = None
            if now not in self.of_class or self.of_class[now] != y % k:
                found["a record is published as one of a class that it is not of"] = None
                continue
            if (y < k or stays) != (now == before) or (now == key and not own):
                found["a record goes on as that of another person, or begins as that of the same one"] = None
            drawn[id(self.channels[key]), x][y] += 1
            if now not in (before, key):
                (begun if key in self.new else later).append(now)
            if key in self.new or now == before:
                standing.add(now)
        everybody = Counter(self.of_class.values())
        left = Counter(c for key, c in self.of_class.items() if key not in standing)
        # Where there is nobody else but a person and who stood for them, anybody of the class may begin.
        if not self.unknown and any(one in standing and left[self.of_class[one]] > 2 for one in later):
            found["a record begins as that of a person who is published already"] = None
        if is_uneven(begun, self.of_class, everybody) or is_uneven(later, self.of_class, left):
            found["donors of a class are not drawn evenly"] = None
        yield from found
        yield from _unlikely((known[number], x, counts) for (number, x), counts in drawn.items())


def is_uneven(begun: Sequence[Key], of_class: Mapping[Key, int], sizes: Mapping[int, int]) -> bool:
    """Whether one person is a donor more often than by chance, if each is drawn from all but two of so many."""
    times = Counter(of_class[one] for one in begun)
    for one, load in Counter(begun).items():
        c = of_class[one]
        log = math.log(math.comb(times[c], load)) + math.log(max(1, sizes[c])) - load * math.log(max(1, sizes[c] - 2))
        if log < math.log(_RARELY):
            return True
    return False


def _unlikely(drawn: Iterable[tuple[Weights, int, Counter[int]]]) -> Iterator[str]:
    """Whether what was drawn is less likely than chance allows, of all channels and what was read together.

    By types: m draws come to shares q with a probability of at most ``e^(-m D(q, p))``, and to one of at most
    ``C(m + b - 1, b - 1)`` shares of b outputs.
    """
    log = 0.0
    for weights, x, counts in drawn:
        m = counts.total()
        possible = {y: row[x] / WHOLE for y, row in enumerate(weights) if row[x]}
        log += math.log(math.comb(m + len(possible) - 1, len(possible) - 1)) if possible else 0.0
        log -= math.fsum(count * math.log(count / (m * possible[y])) for y, count in counts.items() if y in possible)
    if log < math.log(_RARELY):
        yield "outputs are not drawn as the channels say"
