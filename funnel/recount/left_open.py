"""Left open: which true tables of a version noisy ones leave possible, of its people and of how these changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

from funnel.recount.channel import by_secret
from funnel.recount.chapters import Chapter
from funnel.recount.count_box import CountBox, Limits
from funnel.recount.noise import cell_limit, limits_of, possible_counts, scale_of
from funnel.recount.noisy_moves import NoisyChanges, NoisyRows, Since


@dataclass(frozen=True)
class OpenTables:
    """What noise leaves open of a version.

    Attributes
    ----------
    beta : Fraction
    noisy : tuple of tuple of int, c × a
        Counts with noise.
    epsilon : float
        Of that noise (nats).
    changes : NoisyChanges or None
        Since earlier versions.
    rows : NoisyRows or None
        From first rows of people to second ones, where they may have several.
    """

    beta: Fraction
    noisy: tuple[tuple[int, ...], ...]
    epsilon: float
    changes: NoisyChanges | None
    rows: NoisyRows | None = None

    @cached_property
    def tables(self) -> Tables:
        """All that is left."""
        c, a = len(self.noisy), len(self.noisy[0])
        counts = possible_counts(self.noisy, *limits_of(scale_of(self.epsilon), self.beta, c, a))
        second, most = None, 0
        since = () if self.changes is None else self.changes.since
        if self.rows is not None:
            within = cell_limit(self.rows.scale, self.beta / (2 * c))
            pairs = zip(self.rows.stayed, self.rows.left, strict=True)
            second = [(around(stay, within), around(left, within)) for (stay,), (left,) in pairs]
        if self.changes is not None:
            tables = [table for one in since for table in (one.secrets, one.stayed, one.left)]
            most = cell_limit(self.changes.scale, self.beta / sum(len(row) for table in tables for row in table))
        return Tables(counts, {one.version: one for one in since}, most, second=second, of_units=second is not None)


@dataclass(frozen=True)
class Tables:
    """What is known of the tables of a version.

    Attributes
    ----------
    counts : CountBox
        All tables of counts that are left.
    since : mapping of str to Since
        How people changed since earlier versions, by their names.
    most : int
        How far noise moved a count of changes at most.
    same : mapping of str to sequence of int or None
        Where each input of an earlier version is among those of this one; of those that the chapter does not say it of.
    second : sequence of pairs of pairs of int or None
        By secret, limits of how many people have a second row like the first one, and unlike it; None where nothing is
        known of that.
    of_units : bool
        Whether people may have several rows.
    """

    counts: CountBox
    since: Mapping[str, Since]
    most: int = 0
    same: Mapping[str, Sequence[int | None]] = field(default_factory=dict)
    second: Sequence[tuple[Limits, Limits]] | None = None
    of_units: bool = False

    @classmethod
    def exactly(
        cls,
        chapter: Chapter,
        earlier: Mapping[int, tuple[Chapter, bool]],
        second_rows: Sequence[tuple[int, int]] | None = None,
    ) -> Tables:
        """Tables without noise: of people in an earlier version and in this one.

        ``earlier`` has every version before, and whether its published columns have the names of these; ``second_rows``
        how many have a second row like the first one and unlike it.
        """
        since, same = {}, {}
        now = {symbol: x for x, symbol in enumerate(chapter.inputs)}
        for v, changes in chapter.changes.items():
            if v == chapter.ordinal:
                continue
            before, alike = earlier[v]
            into = [now.get(symbol) if alike else None for symbol in before.inputs]
            since[before.name] = exact_since(before.name, changes, into, (before.c, chapter.c, chapter.a))
            same[before.name] = into
        counts = CountBox.exactly(by_secret(chapter.beginning, chapter.a))
        second = None if second_rows is None else [((n, n), (m, m)) for n, m in second_rows]
        return cls(counts, since, 0, same, second, chapter.units is not None)


def exact_since(
    version: str,
    moves: Mapping[tuple[int, int], int],
    same: Sequence[int | None],
    sizes: tuple[int, int, int],
    by_input: bool = False,
) -> Since:
    """What became of people who changed so, from cell to cell.

    Parameters
    ----------
    version : str
    moves : mapping of (cell there, cell here) to int
    same : sequence of int or None
        Where each input of the earlier version is among those of this one.
    sizes : (int, int, int)
        Values of the secret then and now, and of the input now.
    by_input : bool
        Whether those who stayed and left are told apart by their input then.
    """
    c_before, c, a = sizes
    secrets = [[0] * c for _ in range(c_before)]
    stayed, left = ([[0] * (len(same) if by_input else 1) for _ in range(c_before)] for _ in range(2))
    for (before, after), count in moves.items():
        s, x = divmod(before, len(same))
        secrets[s][after // a] += count
        (stayed if same[x] == after % a else left)[s][x if by_input else 0] += count
    return Since(version, *(tuple(map(tuple, table)) for table in (secrets, stayed, left)))


def around(count: int, most: int) -> Limits:
    """What a count with noise of at most so much may be."""
    return max(0, count - most), max(0, count + most)
