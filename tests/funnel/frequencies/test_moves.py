"""Moves: the distribution of changes by noisy tables, by hand and by brute force, and the noise in these."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from funnel import Alphabet, DataError, Joint, SpecError
from funnel.frequencies import moves as module
from funnel.frequencies.moves import INPUT_PARTS, SECRET_PARTS, Moves, NoisyMoves, noisy_moves, same_inputs, shares
from funnel.frequencies.noise import scale_of
from funnel.history.changes import Changes

SECRETS, INPUTS = ("ill", "well", "gone"), ("a", "b", "c", "d")


@st.composite
def versions(draw: st.DrawFn) -> tuple[Joint, Joint]:
    """Two versions that share some labels, in orders of their own."""
    found = []
    for _ in range(2):
        secret = draw(st.lists(st.sampled_from(SECRETS), min_size=1, unique=True))
        inputs = draw(st.lists(st.sampled_from(INPUTS), min_size=1, unique=True))
        size = len(secret) * len(inputs)
        counts = draw(st.lists(st.integers(0, 30), min_size=size, max_size=size).filter(any))
        found.append(Joint.from_counts(np.reshape(counts, (len(secret), len(inputs))), secret, inputs))
    return found[0], found[1]


@st.composite
def noisy(draw: st.DrawFn) -> tuple[Joint, Joint, Moves]:
    """Two versions and noisy moves between them."""
    earlier, joint = draw(versions())

    def table(rows: int, columns: int) -> np.ndarray:
        values = draw(st.lists(st.integers(-9, 40), min_size=rows * columns, max_size=rows * columns))
        return np.reshape(np.array(values, dtype=np.int64), (rows, columns))

    c, a = earlier.counts.shape
    stayed = table(c, a)
    stayed[:, same_inputs(earlier.inputs, joint.inputs) < 0] = 0
    return earlier, joint, Moves("panel/1.0.0", table(c, len(joint.secret)), stayed, table(c, a))


def by_hand(earlier: Joint, joint: Joint, moves: Moves, by_input: bool = True) -> dict[tuple[int, int], int]:
    """Records by pairs of cells, entry by entry; who left is somewhere else where tables are by input."""

    def distribution(counts: list[int], parts: int) -> list[int]:
        found = [int(Fraction(parts * n, sum(counts))) for n in counts]
        found = [1 if n and not part else part for n, part in zip(counts, found, strict=True)]
        found[found.index(max(found))] += parts - sum(found)
        return found

    c, a = joint.counts.shape
    table = joint.counts.tolist()
    records: dict[tuple[int, int], int] = {}
    for s_then, secret in enumerate(earlier.secret.symbols):
        row = [max(0, n) for n in moves.secrets[s_then].tolist()]
        if any(row):
            kept = distribution(row, SECRET_PARTS)
        elif secret in joint.secret.symbols:
            kept = [SECRET_PARTS * (one == secret) for one in joint.secret.symbols]
        else:
            kept = distribution([sum(line) for line in table], SECRET_PARTS)
        all_stay, all_leave = (sum(max(0, n) for n in one[s_then].tolist()) for one in (moves.stayed, moves.left))
        for x_then, label in enumerate(earlier.inputs.symbols):
            stay, leave = (max(0, int(one[s_then, x_then])) for one in (moves.stayed, moves.left))
            if not stay and not leave:
                stays = all_stay >= all_leave and label in joint.inputs.symbols
                stay, leave = int(stays), int(not stays)
            owns = [line if any(line) else [sum(column) for column in zip(*table, strict=True)] for line in table]
            if by_input and label in joint.inputs.symbols:
                place = joint.inputs.symbols.index(label)
                back = sum(part * distribution(own, INPUT_PARTS)[place] for part, own in zip(kept, owns, strict=True))
                elsewhere = 1 - Fraction(back, SECRET_PARTS * INPUT_PARTS)
                most = stay + leave - (stay > 0)
                anew = most if leave and not elsewhere else leave and min(most, int(leave / elsewhere + Fraction(1, 2)))
                stay, leave = stay + leave - anew, anew
            for s in range(c):
                to = distribution(owns[s], INPUT_PARTS)
                for x in range(a):
                    same = joint.inputs.symbols[x] == label
                    value = kept[s] * (stay * INPUT_PARTS * same + leave * to[x])
                    if value:
                        records[s_then * len(earlier.inputs) + x_then, s * a + x] = value
    return records


@given(noisy())
def test_the_distribution_is_the_one_that_is_written_down(drawn: tuple[Joint, Joint, Moves]) -> None:
    earlier, joint, moves = drawn
    distribution = moves.changes(earlier, joint)
    found = dict(
        zip(
            zip(distribution.before.tolist(), distribution.after.tolist(), strict=True),
            distribution.records.tolist(),
            strict=True,
        )
    )
    assert found == by_hand(earlier, joint, moves)
    # Whatever the noise is, something is known of every cell.
    assert set(distribution.before.tolist()) == set(range(earlier.counts.size))


@given(noisy())
def test_by_secret_alone_the_distribution_is_that_of_all_inputs_alike(drawn: tuple[Joint, Joint, Moves]) -> None:
    earlier, joint, moves = drawn
    alone = moves.by_secret
    assert (alone.stayed[:, 0] == moves.stayed.sum(axis=1)).all()
    assert (alone.left[:, 0] == moves.left.sum(axis=1)).all()
    there = same_inputs(earlier.inputs, joint.inputs) >= 0
    stay, leave = (np.maximum(one, 0) for one in (alone.stayed, alone.left))
    nothing = (stay == 0) & (leave == 0)
    # Of a secret of which nothing is told all stay, if there is an input to stay at.
    stay, leave = stay + (nothing & there.any()), leave + (nothing & ~there.any())
    alike = Moves(moves.since, moves.secrets, np.where(there, stay, 0), np.where(there, leave, stay + leave))
    distribution = alone.changes(earlier, joint)
    found = dict(
        zip(
            zip(distribution.before.tolist(), distribution.after.tolist(), strict=True),
            distribution.records.tolist(),
            strict=True,
        )
    )
    assert found == by_hand(earlier, joint, alike, by_input=earlier.counts.shape[1] == 1)


@given(noisy(), st.integers(0, 9), st.data())
def test_limits_hold_what_noise_can_have_moved_and_no_more(
    drawn: tuple[Joint, Joint, Moves], most: int, data: st.DataObject
) -> None:
    moves = drawn[2].by_secret
    limits = moves.limits(most)

    def moved(table: np.ndarray, by: int) -> np.ndarray:
        return table + data.draw(st.sampled_from([-by, by]))

    told = [moves.secrets, moves.stayed[:, 0], moves.left[:, 0]]
    inside = [np.maximum(moved(table, most), 0) for table in told]
    assert limits.hold(*inside)
    # A count that noise would have to move by one more is outside.
    for place in range(3):
        outside = [*inside]
        outside[place] = np.maximum(told[place] + most, 0) + 1
        assert not limits.hold(*outside)


def test_limits_are_of_tables_by_secret_alone() -> None:
    moves = Moves("panel/1.0.0", np.ones((2, 2)), np.ones((2, 3)), np.ones((2, 3)))
    with pytest.raises(SpecError, match="counted by published input"):
        moves.limits(3)


def test_noise_is_in_every_count_of_every_version() -> None:
    since = (
        Moves("panel/1.0.0", np.ones((2, 2)), np.ones((2, 3)), np.ones((2, 3))),
        Moves("panel/1.1.0", np.ones((3, 2)), np.ones((3, 1)), np.ones((3, 1))),
    )
    assert NoisyMoves(1.0, since).counts == 4 + 6 + 6 + 6 + 3 + 3


@given(
    st.lists(st.integers(0, 10**9), min_size=1, max_size=30).filter(any), st.sampled_from([1 << 12, 1 << 15, 1 << 20])
)
def test_shares_add_up_and_leave_nobody_out(counts: list[int], parts: int) -> None:
    found = shares(np.array(counts), parts)
    assert found.sum() == parts
    assert ((found > 0) == (np.array(counts) > 0)).all()
    apart = [abs(Fraction(int(part), parts) - Fraction(n, sum(counts))) for part, n in zip(found, counts, strict=True)]
    assert max(apart) <= Fraction(len(counts), parts)


def test_too_many_values_are_no_distribution() -> None:
    # 30 rare ones take one part each, of the common ones too.
    counts = np.array([1] * 30 + [10**9] * 40)
    with pytest.raises(DataError, match="group its values"):
        shares(counts, 64)


@given(versions(), st.data())
def test_exact_moves_count_everybody_once_in_each_table(both: tuple[Joint, Joint], data: st.DataObject) -> None:
    earlier, joint = both
    people = data.draw(st.integers(1, 40))
    before, after = (
        np.array(data.draw(st.lists(st.integers(0, one.counts.size - 1), min_size=people, max_size=people)))
        for one in both
    )
    moves = Moves.counted("panel/1.0.0", Changes.counted(before, after), earlier, joint)
    assert moves.secrets.sum() == moves.stayed.sum() + moves.left.sum() == moves.people == people
    moves.require_fitting(earlier, joint)
    # One person less is one less in two counts.
    fewer = Moves.counted("panel/1.0.0", Changes.counted(before[1:], after[1:]), earlier, joint)
    gone = [getattr(moves, name) - getattr(fewer, name) for name in ("secrets", "stayed", "left")]
    assert sum(int(np.abs(table).sum()) for table in gone) == 2


def test_other_columns_are_other_inputs() -> None:
    kids, cars = (Alphabet((column,), (("no",), ("yes",))) for column in ("kids", "cars"))
    assert same_inputs(kids, kids).tolist() == [0, 1]
    assert same_inputs(kids, cars).tolist() == [-1, -1]


def test_every_count_has_noise_but_those_that_alphabets_rule_out(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, float, int]] = []

    def ones(size: int, epsilon: float, sensitivity: int, _key: bytes | None) -> np.ndarray:
        asked.append((size, epsilon, sensitivity))
        return np.arange(1, size + 1)

    monkeypatch.setattr(module, "draw_noise", ones)
    earlier = Joint.from_counts([[1, 2, 3], [0, 0, 4]], ["ill", "well"], ["a", "b", "c"])
    joint = Joint.from_counts([[5, 1]], ["ill"], ["c", "a"])
    nobody = Moves.counted("panel/1.0.0", Changes.counted(np.zeros(0, int), np.zeros(0, int)), earlier, joint)
    found = noisy_moves([nobody, nobody], [earlier, earlier], joint, 0.25)
    # Two tables a person, for all versions together; nothing is left out because it is empty.
    assert asked == [(2 * (2 + 4 + 6), 0.25, 2)]
    assert found.since[0].secrets.tolist() == [[1], [2]]
    assert found.since[0].stayed.tolist() == [[3, 0, 4], [5, 0, 6]]
    assert found.since[0].left.tolist() == [[7, 8, 9], [10, 11, 12]]
    assert found.scale == 8.0 == scale_of(0.25, 2)


def test_tables_that_do_not_fit_are_refused() -> None:
    earlier = Joint.from_counts([[1, 2], [3, 4]], ["ill", "well"], ["a", "b"])
    joint = Joint.from_counts([[1], [2]], ["ill", "well"], ["a"])
    stayed = np.array([[1, 1], [1, 0]])
    with pytest.raises(SpecError, match="stayed at an input that is no longer there"):
        Moves("panel/1.0.0", np.ones((2, 2)), stayed, stayed).changes(earlier, joint)
    with pytest.raises(SpecError, match="do not fit one another"):
        Moves("panel/1.0.0", np.ones((3, 2)), stayed, stayed)
    with pytest.raises(SpecError, match="not between the values"):
        Moves("panel/1.0.0", np.ones((2, 3)), stayed, stayed).changes(earlier, joint)
    many = np.array([[1 << 27, 0], [0, 0]])
    with pytest.raises(DataError, match="more people"):
        Moves("panel/1.0.0", np.ones((2, 2)), many, np.zeros((2, 2))).changes(earlier, joint)
