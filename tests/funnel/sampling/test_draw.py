"""Exact draws: every boundary word against big integers, and long runs against the weights."""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from funnel.alphabet import Alphabet
from funnel.errors import DataError, SpecError
from funnel.protocol import Protocol
from funnel.sampling import draw as draw_module
from funnel.sampling.draw import ChannelSampler
from funnel.sampling.random_words import WordStream

FULL = 2**63
CELL = 2**49

# Thresholds on and beside the borders of the table's cells, at the ends, and anywhere.
cuts = st.one_of(
    st.sampled_from([0, 1, FULL - 1, FULL]),
    st.builds(lambda i, d: min(FULL, max(0, i * CELL + d)), st.integers(0, FULL // CELL), st.integers(-1, 1)),
    st.integers(0, FULL),
)


def distribution(borders: list[int]) -> list[int]:
    """Weights between sorted borders of [0, 2^63]: some are zero, one may be full."""
    ends = [0, *sorted(borders), FULL]
    return [upper - lower for lower, upper in pairwise(ends)]


@st.composite
def channels(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    a, b = draw(st.integers(1, 5)), draw(st.integers(1, 9))
    distributions = [distribution(draw(st.lists(cuts, min_size=b - 1, max_size=b - 1))) for _ in range(a + 1)]
    columns = np.array(distributions, dtype=np.uint64).T
    return np.ascontiguousarray(columns[:, :a]), np.ascontiguousarray(columns[:, a])


def reference(weights: list[int], word: int) -> int:
    """The output by the definition, in Python's integers."""
    return bisect_right(list(accumulate(weights)), word >> 1)


def boundary_words(weights: list[int]) -> list[int]:
    thresholds = {0, FULL - 1, *(t + d for t in accumulate(weights) for d in (-1, 0, 1))}
    return [2 * u + lowest for u in sorted(thresholds) if 0 <= u < FULL for lowest in (0, 1)]


def assert_exact_at_boundaries(weights: np.ndarray, marginal: np.ndarray) -> None:
    sampler = ChannelSampler(weights, marginal)
    codes, words, expected = [], [], []
    for x in range(-1, weights.shape[1]):
        column = (marginal if x < 0 else weights[:, x]).tolist()
        tried = boundary_words(column)
        codes += [x] * len(tried)
        words += tried
        expected += [reference(column, word) for word in tried]
    drawn = sampler.draw(np.array(codes), np.array(words, dtype=np.uint64))
    np.testing.assert_array_equal(drawn, expected)
    columns = np.column_stack([weights, marginal])
    assert (columns[drawn, codes] > 0).all()


@settings(max_examples=80)
@given(channels())
def test_every_boundary_word_gives_the_output_of_the_definition(channel: tuple[np.ndarray, np.ndarray]) -> None:
    assert_exact_at_boundaries(*channel)


@settings(max_examples=60)
@given(channels())
def test_boundaries_hold_whatever_the_size_of_the_table(channel: tuple[np.ndarray, np.ndarray]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(draw_module, "_MAX_CELLS", 1)
        assert ChannelSampler(*channel)._bits == 1
        assert_exact_at_boundaries(*channel)


@settings(max_examples=60)
@given(channels(), st.lists(st.tuples(st.integers(-1, 4), st.integers(0, 2**64 - 1)), max_size=60))
def test_any_word_gives_the_output_of_the_definition(
    channel: tuple[np.ndarray, np.ndarray], rows: list[tuple[int, int]]
) -> None:
    weights, marginal = channel
    codes = np.array([min(code, weights.shape[1] - 1) for code, _ in rows], dtype=np.int64)
    words = np.array([word for _, word in rows], dtype=np.uint64)
    distributions = np.column_stack([weights, marginal])
    expected = [reference(distributions[:, x].tolist(), int(word)) for x, word in zip(codes, words, strict=True)]
    np.testing.assert_array_equal(ChannelSampler(*channel).draw(codes, words), expected)


def random_distributions(count: int, b: int, seed: int) -> np.ndarray:
    """(b, count) distributions of very unequal weights, a third of them zero."""
    choice = np.random.default_rng(seed)
    distributions = []
    for _ in range(count):
        p = choice.dirichlet(np.full(b, 0.2)) * (choice.random(b) > 1 / 3)
        weights = [int(x) for x in p / max(p.sum(), 1e-300) * FULL]
        weights[int(np.argmax(weights))] += FULL - sum(weights)
        distributions.append(weights)
    return np.array(distributions, dtype=np.uint64).T.copy()


@pytest.mark.parametrize(
    ("a", "b", "dtype"),
    [(1, 1, np.uint8), (7, 255, np.uint8), (3, 256, np.uint16), (2, 300, np.uint16), (200, 17, np.uint8)],
)
def test_wide_channels_are_exact_at_their_boundaries(a: int, b: int, dtype: type) -> None:
    distributions = random_distributions(a + 1, b, seed=a * 1000 + b)
    assert_exact_at_boundaries(distributions[:, :a].copy(), distributions[:, a].copy())
    sampler = ChannelSampler(distributions[:, :a].copy(), distributions[:, a].copy())
    assert sampler.draw(np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.uint64)).dtype == dtype


def test_more_outputs_than_16_bits() -> None:
    b = 2**16
    weights = np.full((b, 1), FULL // b, dtype=np.uint64)
    sampler = ChannelSampler(weights, weights[:, 0].copy())
    words = np.array([0, 2**64 - 1, 2**48 - 1, 2**48], dtype=np.uint64)
    drawn = sampler.draw(np.array([0, 0, -1, -1]), words)
    assert drawn.dtype == np.uint32
    assert drawn.tolist() == [0, b - 1, 0, 1]


def test_more_inputs_than_the_table_has_cells_for() -> None:
    a = 5000
    distributions = random_distributions(a + 1, 3, seed=5)
    sampler = ChannelSampler(distributions[:, :a].copy(), distributions[:, a].copy())
    assert sampler._bits == 8
    codes, words = np.arange(-1, a), WordStream().words(a + 1)
    expected = [reference(distributions[:, x].tolist(), int(word)) for x, word in zip(codes, words, strict=True)]
    np.testing.assert_array_equal(sampler.draw(codes, words), expected)


@pytest.mark.parametrize(
    "weights",
    [
        [0, FULL, 0],
        [FULL, 0, 0],
        [0, 0, FULL],
        [0, 1, FULL - 1],
        [1, FULL - 1, 0],
        [FULL // 2, 0, FULL // 2],
    ],
)
def test_zero_weights_are_never_drawn(weights: list[int]) -> None:
    column = np.array(weights, dtype=np.uint64)
    sampler = ChannelSampler(column[:, np.newaxis], column)
    words = np.concatenate([WordStream().words(200_000), np.array(boundary_words(weights), dtype=np.uint64)])
    for code in (0, -1):
        drawn = sampler.draw(np.full(len(words), code), words)
        assert set(drawn.tolist()) <= {y for y, weight in enumerate(weights) if weight}


@pytest.mark.parametrize(("a", "b"), [(16, 16), (3, 300), (200, 40)])
def test_draws_follow_the_weights(a: int, b: int) -> None:
    distributions = random_distributions(a + 1, b, seed=b)
    sampler = ChannelSampler(distributions[:, :a].copy(), distributions[:, a].copy())
    n = 300_000
    codes = np.arange(n) % (a + 1) - 1
    drawn = sampler.draw(codes, WordStream().words(n)).astype(np.int64)
    counts = np.bincount((codes % (a + 1)) * b + drawn, minlength=(a + 1) * b).reshape(a + 1, b)
    expected = distributions.T / FULL * counts.sum(axis=1, keepdims=True)
    assert counts[distributions.T == 0].sum() == 0
    # Outputs that are too rare for the test's approximation are one class per input.
    statistic, classes = 0.0, 0
    for observed, mean in zip(counts, expected, strict=True):
        common = mean >= 10
        observed = np.append(observed[common], observed[~common].sum())
        mean = np.append(mean[common], mean[~common].sum())
        kept = mean >= 5
        statistic += float(((observed[kept] - mean[kept]) ** 2 / mean[kept]).sum())
        classes += int(kept.sum()) - 1
    # Words are fresh: one in 10^11 runs fails.
    assert stats.chi2.sf(statistic, classes) > 1e-12
    assert stats.chi2.cdf(statistic, classes) > 1e-12


def test_sampler_of_a_protocol_draws_its_weights_and_its_marginal() -> None:
    weights = np.array([[FULL, 0], [0, FULL], [0, 0]], dtype=np.uint64)
    marginal = np.array([0, 0, FULL], dtype=np.uint64)
    protocol = Protocol(weights, marginal, Alphabet(("x",), (("a",), ("b",))), Alphabet.of("pqr", 3, "x"))
    drawn = ChannelSampler.from_protocol(protocol).draw(np.array([1, 0, -1, 1]), WordStream().words(4))
    assert drawn.tolist() == [1, 0, 2, 1]


def test_no_rows() -> None:
    column = np.array([FULL], dtype=np.uint64)
    drawn = ChannelSampler(column[:, np.newaxis], column).draw(np.empty(0, np.int64), np.empty(0, np.uint64))
    assert drawn.shape == (0,)


def test_small_unsigned_codes_are_taken_as_they_are() -> None:
    distributions = random_distributions(201, 5, seed=1)
    sampler = ChannelSampler(distributions[:, :200].copy(), distributions[:, 200].copy())
    codes, words = np.arange(200), WordStream().words(200)
    np.testing.assert_array_equal(sampler.draw(codes.astype(np.uint8), words), sampler.draw(codes, words))


@pytest.mark.parametrize("codes", [[-2], [2], [0, 1, 2], [-1, -2]])
def test_codes_outside_the_alphabet_are_refused(codes: list[int]) -> None:
    distributions = random_distributions(3, 4, seed=2)
    sampler = ChannelSampler(distributions[:, :2].copy(), distributions[:, 2].copy())
    with pytest.raises(DataError, match="not from -1 to 1"):
        sampler.draw(np.array(codes), np.zeros(len(codes), dtype=np.uint64))


@pytest.mark.parametrize(
    ("codes", "words"),
    [
        (np.zeros(2, np.int64), np.zeros(3, np.uint64)),
        (np.zeros(2), np.zeros(2, np.uint64)),
        (np.zeros(2, np.int64), np.zeros(2, np.int64)),
        (np.zeros((2, 1), np.int64), np.zeros((2, 1), np.uint64)),
    ],
)
def test_codes_and_words_of_other_shapes_and_types_are_refused(codes: np.ndarray, words: np.ndarray) -> None:
    distributions = random_distributions(3, 4, seed=2)
    with pytest.raises(DataError, match="equally long"):
        ChannelSampler(distributions[:, :2].copy(), distributions[:, 2].copy()).draw(codes, words)


@pytest.mark.parametrize("column", [[FULL - 1, 0], [FULL, 1], [2**64 - 1, FULL + 1], [0, 0]])
def test_columns_that_do_not_sum_to_the_denominator_are_refused(column: list[int]) -> None:
    good, bad = np.array([1, FULL - 1], dtype=np.uint64), np.array(column, dtype=np.uint64)
    with pytest.raises(SpecError, match="column 1 of the weights sums to"):
        ChannelSampler(np.column_stack([good, bad]), good)
    with pytest.raises(SpecError, match="the marginal sums to"):
        ChannelSampler(good[:, np.newaxis], bad)


@pytest.mark.parametrize(
    ("weights", "marginal"),
    [
        (np.array([[FULL]], dtype=np.uint64), np.array([FULL, 0], dtype=np.uint64)),
        (np.empty((1, 0), dtype=np.uint64), np.array([FULL], dtype=np.uint64)),
        (np.array([[1.0]]), np.array([FULL], dtype=np.uint64)),
    ],
)
def test_weights_of_other_shapes_and_types_are_refused(weights: np.ndarray, marginal: np.ndarray) -> None:
    with pytest.raises(SpecError):
        ChannelSampler(weights, marginal)
