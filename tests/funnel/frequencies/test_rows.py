"""Tables of the rows of units: what one unit changes, the distribution they come to, and waves they expect."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from funnel.errors import SpecError
from funnel.frequencies import unit_tables
from funnel.frequencies.moves import INPUT_PARTS, SECRET_PARTS, shares
from funnel.frequencies.unit_tables import CHANCE, NoisyRows, UnitCounts
from funnel.joint import Joint

TABLES = st.lists(st.integers(-20, 60), min_size=6, max_size=6).map(lambda n: np.array(n).reshape(2, 3))
FIRST = st.lists(st.integers(0, 60), min_size=6, max_size=6).filter(any).map(lambda n: np.array(n).reshape(2, 3))


def no_noise(size: int, epsilon: float, sensitivity: int, _key: bytes | None) -> np.ndarray:
    assert sensitivity == 2
    return np.arange(size)


def test_every_count_gets_noise_for_a_unit_that_is_in_two(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unit_tables, "draw_noise", no_noise)
    table = np.zeros((2, 3), dtype=np.int64)
    counts = UnitCounts(Joint.from_counts([[1, 0, 0], [0, 0, 1]]), table, table, np.zeros(4, dtype=np.int64))
    noisy = counts.with_noise(0.5)
    drawn = np.concatenate([noisy.stayed.ravel(), noisy.left.ravel(), noisy.sizes])
    assert drawn.tolist() == list(range(16))
    assert noisy.scale == 4.0


@settings(deadline=None)
@given(TABLES, TABLES, FIRST)
def test_the_next_row_has_the_secret_of_the_one_before_and_its_input_or_that_of_a_first_row(
    stayed: np.ndarray, left: np.ndarray, first: np.ndarray
) -> None:
    distribution = NoisyRows(0.25, stayed, left, np.zeros(3, dtype=np.int64)).changes(Joint.from_counts(first))
    found = np.zeros((6, 6), dtype=object)
    found[distribution.before, distribution.after] = distribution.records
    for secret in range(2):
        inputs = shares(first[secret] if first[secret].any() else first.sum(axis=0), INPUT_PARTS)
        mostly = np.maximum(stayed[secret], 0).sum() >= np.maximum(left[secret], 0).sum()
        for x in range(3):
            stay, leave = max(0, int(stayed[secret, x])), max(0, int(left[secret, x]))
            if not stay and not leave:
                stay, leave = (1, 0) if mostly else (0, 1)
            # So many take an input of the distribution that as many as left have another one then.
            away, most = INPUT_PARTS - int(inputs[x]), stay + leave - (stay > 0)
            anew = (most if leave else 0) if not away else min(most, (2 * leave * INPUT_PARTS + away) // (2 * away))
            stay, leave = stay + leave - anew, anew
            expected = [SECRET_PARTS * leave * int(one) for one in inputs]
            expected[x] += SECRET_PARTS * stay * INPUT_PARTS
            row = found[secret * 3 + x].reshape(2, 3)
            assert row[secret].tolist() == expected
            assert not row[1 - secret].any()


@pytest.mark.parametrize(
    ("sizes", "waves"),
    [
        ([500, 300, 200, 0, 0], (1000, 500, 200)),
        # What noise explains counts where more rows are there for certain, and only then.
        ([500, 60, 200, 68, -3], (760, 260, 200)),
        ([500, 60, 20, 69, 68], (649, 149, 89, 69)),
        ([500, -70, 200, 0, 0], (700, 200, 200)),
        ([40, 60, 20, 10, 0], (40,)),
        ([-4, 0, 0, 0, 0], (1,)),
    ],
)
def test_waves_are_expected_up_to_the_last_number_of_rows_that_noise_does_not_explain(
    sizes: list[int], waves: tuple[int, ...]
) -> None:
    table = np.zeros((1, 1), dtype=np.int64)
    assert NoisyRows(0.25, table, table, np.array(sizes)).waves == waves


@pytest.mark.parametrize("epsilon", [0.05, 0.25, 1.0, 3.0])
@pytest.mark.parametrize("numbers", [2, 5, 100])
def test_noise_alone_is_hardly_ever_taken_for_units_with_several_rows(epsilon: float, numbers: int) -> None:
    table, sizes = np.zeros((1, 1), dtype=np.int64), np.zeros(numbers, dtype=np.int64)
    least = 0
    while len(NoisyRows(epsilon, table, table, sizes).waves) == 1:
        least += 1
        sizes[-1] = least
    # Noise is least or more with this probability, and each number has noise of its own.
    one = math.exp(-least * epsilon / 2) / (1 + math.exp(-epsilon / 2))
    assert CHANCE / 8 < 1 - (1 - one) ** numbers <= CHANCE == 1e-3


def test_tables_that_do_not_fit_are_refused() -> None:
    table, other = np.zeros((2, 3), dtype=np.int64), np.zeros((3, 2), dtype=np.int64)
    with pytest.raises(SpecError, match="do not fit one another"):
        UnitCounts(Joint.from_counts([[1, 0, 0], [0, 0, 1]]), table, other, np.zeros(4, dtype=np.int64))
    for noisy in ((table, other, np.zeros(4)), (table[0], table[0], np.zeros(4)), (table, table, np.zeros((1, 4)))):
        with pytest.raises(SpecError, match="do not fit one another"):
            NoisyRows(0.25, *noisy)
