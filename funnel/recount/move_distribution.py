"""Move distribution: the integer distribution of changes that noisy tables stand for, found again by its definition.

What people have come from says how their secret changed (D), and whether the published input is the same still; who
takes one anew has an input as common as it is now among those of their secret (A):

    records(s', x' -> s, x) = D[s'][s] (stay(s', x') 2^20 [same labels] + anew(s', x') A[s][x])

Some of these take the input that they had, with the chance ``Σ_s D[s'][s] A[s][x']``. Where tables are by input, so
many take one anew that as many as the tables say end at another one, to the nearest number, as far as there are people.
So a distribution is carried in O(c'a' + c'c + ca) products, and no table of all pairs of cells is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import floor
from typing import Any, ClassVar

from funnel.errors import DataError
from funnel.recount.channel import Symbols, by_secret
from funnel.recount.noisy_moves import NoisyRows, Since, Table
from funnel.recount.packed import divided_up

OF_SECRETS, OF_INPUTS = 1 << 15, 1 << 20


def shares(counts: Sequence[int], whole: int) -> tuple[int, ...]:
    """Counts >= 0 as shares that add up to ``whole``: none that is positive becomes zero, the largest has the rest.

    Raises
    ------
    DataError
        If no count is positive, or there are more values than parts.
    """
    total = sum(counts)
    if total <= 0:
        raise DataError("counts that are all zero have no shares")
    found = [max(whole * count // total, 1) if count > 0 else 0 for count in counts]
    largest = found.index(max(found))
    found[largest] += whole - sum(found)
    if found[largest] < 1:
        raise DataError("there are more values than a distribution of changes has parts for")
    return tuple(found)


@dataclass(frozen=True)
class MoveDistribution:
    """How people went from each cell of an earlier version, or row, to each cell of a later one.

    Attributes
    ----------
    of_secrets : c' × c whole numbers
        D: rows add up to 2^15.
    of_inputs : c × a whole numbers
        A: rows add up to 2^20.
    stay, left : tuple of int, length c' a'
        Of cells before, not both zero.
    same : tuple of int or None, length a'
        Where an input of before is among those of now.
    common : int
        What the records of all rows are multiples of, and `divided` leaves aside.
    """

    of_secrets: Table
    of_inputs: Table
    stay: tuple[int, ...]
    left: tuple[int, ...]
    same: tuple[int | None, ...]
    common: ClassVar[int] = OF_SECRETS * OF_INPUTS

    @property
    def before(self) -> int:
        """Inputs before, a'."""
        return len(self.same)

    @property
    def after(self) -> int:
        """Inputs now, a."""
        return len(self.of_inputs[0])

    @cached_property
    def _known(self) -> tuple[int, ...]:
        """What the records of every cell before are in proportion to, length c' a'; positive."""
        return tuple(stay + left for stay, left in zip(self.stay, self.left, strict=True))

    @property
    def largest(self) -> int:
        """The most records of a row."""
        return max(self._known) * self.common

    @cached_property
    def by_secret(self) -> tuple[int, ...]:
        """Records by secret now, length c."""
        found = [0] * len(self.of_inputs)
        for s, to in enumerate(self.of_secrets):
            people = OF_INPUTS * sum(self._known[s * self.before : (s + 1) * self.before])
            found = [one + people * part for one, part in zip(found, to, strict=True)]
        return tuple(found)

    @cached_property
    def by_cell(self) -> tuple[int, ...]:
        """Records by cell now, length c a."""
        return tuple(self.carried([1] * len(self.stay), len(self.of_inputs) * self.after))

    def row(self, cell: int) -> tuple[dict[int, int], int]:
        """Records from a cell before to every cell now, and how many these are."""
        found: dict[int, int] = {}
        same, a = self.same[cell % self.before], self.after
        for s, part in enumerate(self.of_secrets[cell // self.before]):
            for x, share in enumerate(self.of_inputs[s]):
                count = self.left[cell] * share + (self.stay[cell] * OF_INPUTS if x == same else 0)
                if part * count:
                    found[s * a + x] = part * count
        return found, self._known[cell] * self.common

    def divided(self, numbers: Sequence[Any], by: Callable[[Any, int], Any] = divided_up) -> list[Any]:
        """Numbers by cell before, each by what its records are in proportion to, rounded up or not."""
        return [by(n, known) for n, known in zip(numbers, self._known, strict=True)]

    def pairs(self) -> dict[tuple[int, int], int]:
        """Records of all pairs of cells that are not zero; O(c' a' c a)."""
        return {(cell, to): count for cell in range(len(self.stay)) for to, count in self.row(cell)[0].items()}

    def carried(self, parts: Sequence[Any], cells: int) -> list[Any]:
        """``Σ_before parts[before] · records(before -> after)``, by cell now; exactly.

        Parameters
        ----------
        parts : sequence of int, length c' a'
            Many numbers side by side in each, where no sum leaves its place.
        cells : int
            c a.
        """
        a, found = self.after, [0] * cells
        leaving = [0] * len(self.of_inputs)
        for s, to in enumerate(self.of_secrets):
            start = s * self.before
            gone = sum(parts[cell] * self.left[cell] for cell in range(start, start + self.before) if self.left[cell])
            kept = [
                (x, parts[start + place] * (self.stay[start + place] * OF_INPUTS))
                for place, x in enumerate(self.same)
                if x is not None and self.stay[start + place]
            ]
            for now, part in enumerate(to):
                if part:
                    leaving[now] += gone * part
                    for x, content in kept:
                        found[now * a + x] += content * part
        for s, row in enumerate(self.of_inputs):
            for x, share in enumerate(row):
                if share:
                    found[s * a + x] += leaving[s] * share
        return found


def distribution_since(
    since: Since, before: tuple[Symbols, Symbols], now: tuple[Symbols, Symbols], counts: Sequence[int], alike: bool
) -> MoveDistribution:
    """The distribution of changes since an earlier version.

    Parameters
    ----------
    since : Since
    before, now : pair of symbols
        Values of secret and input in the earlier version and in this one.
    counts : sequence of int, length c a
        Published counts of this version.
    alike : bool
        Whether both versions publish the same columns; else nobody has the same labels in both.

    Raises
    ------
    DataError
        If tables do not fit the values.
    """
    places = {symbol: x for x, symbol in enumerate(now[1])}
    same = tuple(places.get(symbol) if alike else None for symbol in before[1])
    table = by_secret(counts, len(now[1]))
    secrets = {symbol: s for s, symbol in enumerate(now[0])}
    totals = [sum(row) for row in table]
    if (len(since.secrets), len(since.secrets[0]), len(table)) != (len(before[0]), len(now[0]), len(now[0])):
        raise DataError(f"changes since {since.version} do not fit the values of the secret")
    of_secrets = []
    for symbol, noisy in zip(before[0], since.secrets, strict=True):
        row = [max(0, count) for count in noisy]
        if not any(row) and symbol in secrets:
            row[secrets[symbol]] = 1
        of_secrets.append(shares(row if any(row) else totals, OF_SECRETS))
    return _distribution(of_secrets, table, since.stayed, since.left, same)


def distribution_of_rows(rows: NoisyRows, secrets: int, counts: Sequence[int]) -> MoveDistribution:
    """The distribution from a row of a person to the next: the secret stays.

    Parameters
    ----------
    rows : NoisyRows
    secrets : int
        Values of the secret, c.
    counts : sequence of int, length c a
        Published counts of first rows.
    """
    a = len(counts) // secrets
    stays = [tuple(OF_SECRETS if s == t else 0 for t in range(secrets)) for s in range(secrets)]
    return _distribution(stays, by_secret(counts, a), rows.stayed, rows.left, tuple(range(a)))


def _alike(stayed: Table, left: Table, same: tuple[int | None, ...]) -> tuple[Table, Table]:
    """Of those with a secret as many stay whatever their input is, where it is still one; else all of them leave."""
    can = [x is not None for x in same]
    stays, leaves = [], []
    for (stay,), (leave,) in zip(stayed, left, strict=True):
        n, m = max(0, stay) if any(can) else 0, max(0, leave)
        if not n and not m:
            n, m = int(any(can)), int(not any(can))
        stays.append(tuple(n if kept else 0 for kept in can))
        leaves.append(tuple(m if kept else n + m for kept in can))
    return tuple(stays), tuple(leaves)


def _distribution(
    of_secrets: Sequence[tuple[int, ...]],
    table: Sequence[Sequence[int]],
    stayed: Table,
    left: Table,
    same: tuple[int | None, ...],
) -> MoveDistribution:
    columns = [sum(column) for column in zip(*table, strict=True)]
    of_inputs = tuple(shares(row if any(row) else columns, OF_INPUTS) for row in table)
    if any(len(one) != len(of_secrets) or len(one[0]) not in (1, len(same)) for one in (stayed, left)):
        raise DataError("tables of people who stayed or left do not fit the values that they had")
    by_input = len(stayed[0]) == len(same)
    if not by_input:
        stayed, left = _alike(stayed, left, same)
    stays: list[int] = []
    leaves: list[int] = []
    for staying, leaving in zip(stayed, left, strict=True):
        of_staying = [max(0, n) if x is not None else 0 for n, x in zip(staying, same, strict=True)]
        of_leaving = [max(0, n) for n in leaving]
        # Of a cell that nothing is known of: what most of its secret do, if it can.
        stay = sum(of_staying) >= sum(of_leaving)
        for n, m, x in zip(of_staying, of_leaving, same, strict=True):
            known = n or m
            stays.append(n if known else int(stay and x is not None))
            leaves.append(m if known else int(not stay or x is None))
    if by_input:
        chances = [_chance(to, of_inputs, x) for to in of_secrets for x in same]
        people = [n + m for n, m in zip(stays, leaves, strict=True)]
        leaves = [_anew(*cell) for cell in zip(stays, leaves, chances, strict=True)]
        stays = [n - m for n, m in zip(people, leaves, strict=True)]
    return MoveDistribution(tuple(of_secrets), of_inputs, tuple(stays), tuple(leaves), same)


def _chance(to: Sequence[int], of_inputs: Table, same: int | None) -> Fraction:
    """How likely an input that is taken anew is the same one."""
    if same is None:
        return Fraction()
    return Fraction(sum(part * row[same] for part, row in zip(to, of_inputs, strict=True)), OF_SECRETS * OF_INPUTS)


def _anew(stay: int, left: int, chance: Fraction) -> int:
    """How many take an input anew where so many left; nobody who is known to have stayed is quite forgotten."""
    most = stay + left - min(stay, 1)
    if chance == 1:
        return most if left else 0
    return min(most, floor(left / (1 - chance) + Fraction(1, 2)))
