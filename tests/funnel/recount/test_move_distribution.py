"""The distribution of changes that noisy tables stand for: by its definition, and as it is made for releases."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from funnel.alphabet import Alphabet
from funnel.errors import DataError
from funnel.frequencies.moves import Moves
from funnel.joint import Joint
from funnel.recount.move_distribution import (
    OF_INPUTS,
    OF_SECRETS,
    MoveDistribution,
    distribution_of_rows,
    distribution_since,
    shares,
)
from funnel.recount.noisy_moves import NoisyRows, Since

Symbols = tuple[tuple[str, ...], ...]
Rows = tuple[tuple[int, ...], ...]


def symbols(labels: str) -> Symbols:
    return tuple((label,) for label in labels)


@st.composite
def table(draw: st.DrawFn, rows: int, columns: int, least: int = -6) -> Rows:
    cell = st.one_of(st.integers(least, 3), st.integers(least, 40_000))
    return tuple(tuple(draw(cell) for _ in range(columns)) for _ in range(rows))


@st.composite
def versions(draw: st.DrawFn) -> tuple[Since, tuple[Symbols, Symbols], tuple[Symbols, Symbols], Rows]:
    """Noisy tables since a version, the values of both, and the published counts of the later one."""

    def values(labels: str) -> Symbols:
        return symbols("".join(draw(st.lists(st.sampled_from(labels), min_size=1, max_size=3, unique=True))))

    before, now = (values("abc"), values("uvwx")), (values("abc"), values("uvwx"))
    here = set(now[1])
    left = draw(table(len(before[0]), len(before[1])))
    stayed = tuple(
        tuple(n if symbol in here else 0 for n, symbol in zip(row, before[1], strict=True))
        for row in draw(table(len(before[0]), len(before[1])))
    )
    since = Since("people/1.0.0", draw(table(len(before[0]), len(now[0]))), stayed, left)
    counts = draw(table(len(now[0]), len(now[1]), 0).filter(lambda rows: any(map(any, rows))))
    return since, before, now, counts


def flat(counts: Rows) -> tuple[int, ...]:
    return tuple(count for row in counts for count in row)


def brute(
    since: Since, before: tuple[Symbols, Symbols], now: tuple[Symbols, Symbols], counts: Rows
) -> dict[tuple[int, int], int]:
    """The definition, for every pair of cells by itself."""

    def parts(counts: list[int], whole: int) -> list[int]:
        found = [whole * n // sum(counts) for n in counts]
        found = [1 if n and not share else share for n, share in zip(counts, found, strict=True)]
        place = max(range(len(found)), key=lambda k: (found[k], -k))
        found[place] = whole - sum(share for k, share in enumerate(found) if k != place)
        return found

    def known(n: int) -> int:
        return n if n > 0 else 0

    a, later = len(before[1]), len(now[1])
    found = {}
    for s, symbol in enumerate(before[0]):
        row = [known(n) for n in since.secrets[s]]
        if any(row):
            to = parts(row, 2**15)
        elif symbol in now[0]:
            to = [2**15 if one == symbol else 0 for one in now[0]]
        else:
            to = parts([sum(counts[t]) for t in range(len(now[0]))], 2**15)
        most_stay = sum(map(known, since.stayed[s])) >= sum(map(known, since.left[s]))
        for x in range(a):
            stay, left = known(since.stayed[s][x]), known(since.left[s][x])
            if not stay and not left:
                stay, left = (1, 0) if most_stay and before[1][x] in now[1] else (0, 1)
            everybody = [sum(column) for column in zip(*counts, strict=True)]
            distributions = [parts(list(row) if any(row) else everybody, 2**20) for row in counts]
            if before[1][x] in now[1] and left:
                y = now[1].index(before[1][x])
                away = 2**35 - sum(to[t] * distributions[t][y] for t in range(len(to)))
                # The whole number nearest to left / away, of halves the larger.
                anew = min(stay + left, (left * 2**36 + away) // (2 * away) if away else stay + left)
                stay, left = (1, stay + left - 1) if stay and anew == stay + left else (stay + left - anew, anew)
            for t, inputs in enumerate(distributions):
                for y in range(later):
                    records = to[t] * ((stay << 20) * (before[1][x] == now[1][y]) + left * inputs[y])
                    if records:
                        found[s * a + x, t * later + y] = records
    return found


@settings(max_examples=150, deadline=None)
@given(versions())
def test_the_distribution_is_that_of_the_definition_and_of_releases(
    made: tuple[Since, tuple[Symbols, Symbols], tuple[Symbols, Symbols], Rows],
) -> None:
    since, before, now, counts = made
    distribution = distribution_since(since, before, now, flat(counts), alike=True)
    assert distribution.pairs() == brute(*made)
    # As releases are made with.
    joints = [
        Joint(np.array(table), Alphabet(("ill",), one[0]), Alphabet(("town",), one[1]))
        for one, table in ((before, np.ones((len(before[0]), len(before[1])), dtype=np.int64)), (now, counts))
    ]
    moves = Moves(since.version, np.array(since.secrets), np.array(since.stayed), np.array(since.left))
    changes = moves.changes(joints[0], joints[1])
    pairs = zip(changes.before.tolist(), changes.after.tolist(), strict=True)
    assert distribution.pairs() == dict(zip(pairs, changes.records.tolist(), strict=True))


@settings(max_examples=60, deadline=None)
@given(versions(), st.data())
def test_carried_numbers_are_sums_over_pairs_of_cells(
    made: tuple[Since, tuple[Symbols, Symbols], tuple[Symbols, Symbols], Rows], data: st.DataObject
) -> None:
    since, before, now, counts = made
    distribution = distribution_since(since, before, now, flat(counts), alike=data.draw(st.booleans()))
    parts = [data.draw(st.integers(0, 2**170)) for _ in distribution.stay]
    after = len(flat(counts))
    expected, by_secret = [0] * after, [0] * len(counts)
    sizes = [0] * len(parts)
    for (cell, to), records in distribution.pairs().items():
        expected[to] += parts[cell] * records
        by_secret[to // len(counts[0])] += records
        sizes[cell] += records
    assert distribution.carried(parts, after) == expected
    assert distribution.by_secret == tuple(by_secret)
    assert [distribution.row(cell)[1] for cell in range(len(parts))] == sizes
    assert distribution.largest == max(sizes)
    divided = distribution.divided(parts)
    assert all(
        0 <= one * (size // distribution.common) - n < size for one, size, n in zip(divided, sizes, parts, strict=True)
    )


@settings(max_examples=60, deadline=None)
@given(table(2, 3), table(2, 3), table(2, 3, 0).filter(lambda rows: any(map(any, rows))))
def test_from_a_row_to_the_next_the_secret_stays(stayed: Rows, left: Rows, counts: Rows) -> None:
    distribution = distribution_of_rows(NoisyRows(0.5, 4.0, stayed, left, (0,) * 100), 2, flat(counts))
    values = (symbols("ab"), symbols("uvw"))
    certain = Since("", ((1, 0), (0, 1)), stayed, left)
    assert distribution == distribution_since(certain, values, values, flat(counts), alike=True)
    assert all(before // 3 == after // 3 for before, after in distribution.pairs())


def test_nobody_stays_where_other_columns_are_published() -> None:
    values = (symbols("a"), symbols("uv"))
    distribution = distribution_since(Since("", ((3,),), ((0, 0),), ((4, 5),)), values, values, (1, 3), alike=False)
    assert distribution == MoveDistribution(
        ((OF_SECRETS,),), ((OF_INPUTS // 4, 3 * OF_INPUTS // 4),), (0, 0), (4, 5), (None, None)
    )


def test_shares_are_whole_and_none_is_lost() -> None:
    assert shares((1, 1, 1), 32) == (12, 10, 10)
    assert shares((0, 10**6, 1, 1), 8) == (0, 6, 1, 1)
    with pytest.raises(DataError, match="zero"):
        shares((0, 0), 8)
    with pytest.raises(DataError, match="more values"):
        shares((1,) * 20, 8)


@pytest.mark.parametrize(
    "since",
    [
        Since("", ((1, 1, 1),), ((0, 0),), ((1, 1),)),
        Since("", ((1, 1), (1, 1)), ((0, 0),), ((1, 1),)),
        Since("", ((1, 1),), ((0, 0, 0),), ((1, 1, 1),)),
        Since("", ((1, 1),), ((0, 0), (0, 0)), ((1, 1),)),
    ],
)
def test_tables_of_another_shape_are_refused(since: Since) -> None:
    with pytest.raises(DataError, match="do not fit"):
        distribution_since(
            since, (symbols("a"), symbols("uv")), (symbols("ab"), symbols("uv")), (1, 1, 1, 1), alike=True
        )
