"""Frequencies: exact counts become public in one place, at a price that is added up."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import funnel
from funnel import DataError, Joint, SpecError
from funnel.bounds import Bounds
from funnel.frequencies import public_counts
from funnel.frequencies.limits import bounds_of
from funnel.frequencies.noise import Noise
from funnel.frequencies.public_counts import Frequencies, of_noisy, protect, spent_with
from funnel.frequencies.selection import Share
from funnel.frequencies.widening import widened
from funnel.settings.protection_settings import FrequencySettings
from tests.strategies import joints

NOISE = FrequencySettings(protection="noise", epsilon=0.5, beta=0.05)
JOINT = Joint.from_counts([[30, 0, 5], [200, 3000, 7]])


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, float]]:
    """Noise -3, -2, … in order, and what was asked for."""
    asked: list[tuple[int, float]] = []

    def draw(size: int, epsilon: float, key: bytes | None) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        asked.append((size, epsilon))
        return np.arange(size) - 3

    monkeypatch.setattr(public_counts, "draw_noise", draw)
    return asked


def test_every_count_gets_noise_and_is_clipped(drawn: list[tuple[int, float]]) -> None:
    made = protect(JOINT, NOISE)
    assert drawn == [(6, 0.5)]
    assert made.noisy is not None
    assert made.noisy.tolist() == [[27, -2, 4], [200, 3001, 9]]
    assert made.joint.counts.tolist() == [[27, 0, 4], [200, 3001, 9]]
    assert (made.joint.secret, made.joint.inputs) == (JOINT.secret, JOINT.inputs)
    assert made.noise == Noise(0.5, 0.0, 0.05)
    assert (made.protection, made.spent, made.epsilon) == ("noise", 0.5, 0.5)
    expected = bounds_of(made.noisy, made.noise)
    assert made.joint.bounds is not None
    for name in ("lower", "upper", "totals"):
        assert getattr(made.joint.bounds, name).tolist() == getattr(expected, name).tolist()
    with pytest.raises(ValueError, match="read-only"):
        made.noisy[0, 0] = 1


def test_noise_is_drawn_anew_every_time() -> None:
    # Equal by chance once in 2^60 or so.
    wide = Joint.from_counts(np.full((6, 10), 500))
    assert protect(wide, NOISE).joint.counts.tolist() != protect(wide, NOISE).joint.counts.tolist()


@pytest.mark.parametrize("protection", ["none", "threshold"])
def test_without_noise_nothing_is_spent_and_no_bounds_are_needed(protection: str) -> None:
    made = protect(JOINT, FrequencySettings.model_validate({"protection": protection}), spent_before=3.0)
    assert made.joint is JOINT
    assert (made.protection, made.noise, made.noisy, made.spent, made.epsilon) == (protection, None, None, 0.0, 0.0)


def test_the_counts_get_what_learning_values_has_left(drawn: list[tuple[int, float]]) -> None:
    made = protect(JOINT, NOISE, learned=Share(0.125, 1e-9), spent_before=1.0)
    assert drawn == [(6, 0.375)]
    assert made.noise == Noise(0.375, 1e-9, 0.05)
    assert (made.spent, made.epsilon) == (1.5, 0.5)


def test_a_draw_beyond_the_total_is_refused(drawn: list[tuple[int, float]]) -> None:
    settings = FrequencySettings(protection="noise", epsilon=0.1, max_epsilon=1.0)
    spent = 0.0
    for _ in range(10):
        spent = protect(JOINT, settings, spent_before=spent).spent
    # Ten times 0.1 is 1, as everybody who wrote the spec thinks.
    assert spent == 1.0
    drawn.clear()
    with pytest.raises(SpecError, match=r"have spent 1 of max_epsilon = 1 in .* would spend 0\.1 more") as caught:
        protect(JOINT, settings, spent_before=spent)
    assert "\n" not in str(caught.value)
    assert drawn == []
    assert spent_with(FrequencySettings(protection="noise", epsilon=2.0), 100.0) == 102.0


def test_a_table_of_which_nothing_is_left_is_refused() -> None:
    with pytest.raises(DataError, match="nothing is left of the frequencies"):
        of_noisy(np.array([[0, -2]]), JOINT.secret, JOINT.inputs, Noise(1.0, 0.0, 0.1), 1.0, 1.0)


def test_noisy_counts_are_not_protected_again() -> None:
    with pytest.raises(SpecError, match="noisy already"):
        protect(protect(JOINT, NOISE).joint, NOISE)


@pytest.mark.parametrize("protection", ["none", "noise"])
def test_frequencies_that_contradict_themselves_are_refused(protection: str) -> None:
    made = protect(JOINT, NOISE)
    assert made.noisy is not None
    whole = {"joint": made.joint, "noise": made.noise, "noisy": made.noisy, "spent": 0.5, "epsilon": 0.5}
    assert Frequencies(protection="noise", **whole).spent == 0.5  # type: ignore[arg-type]
    for wrong in (
        {"joint": made.joint.as_published},
        {"noise": None},
        {"noisy": None},
        {"noisy": made.noisy + 1},
        {"spent": 0.4},
        {"epsilon": 0.4},
        {"noise": Noise(0.5, 0.0, 0.06)},
    ):
        with pytest.raises(SpecError):
            Frequencies(protection="noise", **{**whole, **wrong})  # type: ignore[arg-type]
    with pytest.raises(SpecError):
        Frequencies(protection="none", **whole)  # type: ignore[arg-type]
    with pytest.raises(SpecError):
        Frequencies(JOINT, "none", spent=1.0)


@given(joints(), st.data())
def test_widened_counts_are_the_same_counts_over_the_product(joint: Joint, data: st.DataObject) -> None:
    values = {
        column: (*sorted({symbol[j] for symbol in alphabet.symbols}), *(["none", "other"] if extra else []))
        for alphabet in (joint.secret, joint.inputs)
        for j, column in enumerate(alphabet.columns)
        for extra in (data.draw(st.booleans()),)
    }
    wide = widened(joint, values)
    assert wide.n == joint.n
    assert len(wide.secret) * len(wide.inputs) == np.prod([len(labels) for labels in values.values()])
    for s, secret in enumerate(wide.secret.symbols):
        for x, symbol in enumerate(wide.inputs.symbols):
            before = joint.secret.get(secret), joint.inputs.get(symbol)
            assert wide.counts[s, x] == (joint.counts[before] if min(before) >= 0 else 0)


def test_several_columns_make_a_product_in_the_order_of_their_values() -> None:
    joint = Joint.from_counts([[4, 5]], secret=["s"], inputs=[("b", "1"), ("a", "2")])
    wide = widened(joint, {"S": ("s", "t"), "X0": ("b", "a"), "X1": ("2", "1")})
    assert wide.inputs.symbols == (("b", "2"), ("b", "1"), ("a", "2"), ("a", "1"))
    assert wide.counts.tolist() == [[0, 4, 5, 0], [0, 0, 0, 0]]


@given(joints(), st.data())
def test_what_cannot_exist_has_no_count_and_all_else_keeps_its_own(joint: Joint, data: st.DataObject) -> None:
    values = {
        column: tuple(sorted({symbol[j] for symbol in alphabet.symbols} | {"none"}))
        for alphabet in (joint.secret, joint.inputs)
        for j, column in enumerate(alphabet.columns)
    }
    listed = [
        {column: data.draw(st.sets(st.sampled_from(values[column]), min_size=1)) for column in joint.inputs.columns}
        for _ in range(data.draw(st.integers(1, 2)))
    ]
    wide = widened(joint, values)

    def cannot_be(symbol: tuple[str, ...]) -> bool:
        said = dict(zip(joint.inputs.columns, symbol, strict=True))
        return any(all(said[column] in of for column, of in one.items()) for one in listed)

    left = [k for k, symbol in enumerate(wide.inputs.symbols) if not cannot_be(symbol)]
    impossible = [{column: tuple(of) for column, of in one.items()} for one in listed]
    if any(
        {symbol[j] for symbol in wide.inputs.symbols} != {wide.inputs.symbols[k][j] for k in left}
        for j in range(len(joint.inputs.columns))
    ):
        with pytest.raises(DataError, match="leaves no combination with"):
            widened(joint, values, impossible=impossible)
    elif joint.counts[:, [cannot_be(symbol) for symbol in joint.inputs.symbols]].size:
        with pytest.raises(DataError, match="not among those the columns may have"):
            widened(joint, values, impossible=impossible)
    else:
        narrow = widened(joint, values, impossible=impossible)
        assert narrow.inputs.symbols == tuple(wide.inputs.symbols[k] for k in left)
        assert narrow.counts.tolist() == wide.counts[:, left].tolist()


def test_what_cannot_be_widened_is_refused() -> None:
    joint = Joint.from_counts([[4, 5]], secret=["s"], inputs=["b", "a"])
    with pytest.raises(DataError, match="which values X may have"):
        widened(joint, {"S": ("s",)})
    with pytest.raises(DataError, match="not among those the columns may have"):
        widened(joint, {"S": ("s",), "X": ("a", "c")})
    many = tuple(map(str, range(1000)))
    with pytest.raises(DataError, match=r"1,000,000 combinations \(S 1,000, X 1,000\)") as caught:
        widened(joint, {"S": many, "X": many})
    assert "list fewer values of 'S' in [categories]" in str(caught.value)


def test_combinations_that_nobody_has_get_noise_as_all_others(drawn: list[tuple[int, float]]) -> None:
    made = protect(JOINT, NOISE, values={"S": ("S0", "S1", "other"), "X": ("X0", "X1", "X2", "other")})
    assert made.joint.counts.shape == (3, 4)
    assert made.noisy is not None
    assert made.noisy[2].tolist() == [5, 6, 7, 8]
    assert made.joint.counts[2].tolist() == [5, 6, 7, 8]


def test_the_library_s_protect_gives_a_distribution_with_bounds(drawn: list[tuple[int, float]]) -> None:
    made = funnel.protect(JOINT, epsilon=0.5, beta=0.05)
    assert drawn == [(6, 0.5)]
    assert made.counts.tolist() == [[27, 0, 4], [200, 3001, 9]]
    assert isinstance(made.bounds, Bounds)
    assert made.bounds.beta == 0.05
    assert funnel.protect(JOINT).bounds is not None
    assert drawn[-1] == (6, 1.0)


@pytest.mark.parametrize(
    ("given_", "said"),
    [
        ({"epsilon": 0}, "epsilon must be at least 0.0001"),
        ({"epsilon": 1e-5}, "epsilon must be at least 0.0001"),
        ({"beta": 1.0}, "beta must be below 1"),
    ],
)
def test_the_library_s_protect_says_what_is_wrong(given_: dict[str, float], said: str) -> None:
    with pytest.raises(SpecError, match=said):
        funnel.protect(JOINT, **given_)
