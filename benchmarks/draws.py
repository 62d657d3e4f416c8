"""A hundred million draws put to the test: chi-square of every input's distribution, and a test of neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats

from funnel.protocol import DENOMINATOR
from funnel.sampling.draw import ChannelSampler
from funnel.sampling.draw_counts import CellCounts
from funnel.sampling.random_words import WordStream

_PIECE = 1 << 16


def p_values(rows: int = 100_000_000, inputs: int = 16, outputs: int = 16) -> dict[str, Any]:
    """P-values, each uniform on [0, 1] if draws are as declared and independent.

    The chi-square test compares the counts of (input, output) with the weights, all inputs together. The serial test
    draws all rows of one input and compares the counts of (output, next output) with the square of its distribution;
    the words in the middle of which a piece ends are neighbours too.
    """
    choice = np.random.default_rng(7)
    shares = choice.dirichlet(np.full(outputs, 0.5), inputs).T
    weights = (shares * float(DENOMINATOR)).astype(np.uint64)
    weights[np.argmax(weights, axis=0), np.arange(inputs)] += np.uint64(DENOMINATOR) - weights.sum(axis=0)
    sampler, stream = ChannelSampler(weights, weights[:, 0].copy()), WordStream()
    counts = CellCounts(inputs, outputs)
    follow = np.zeros((outputs, outputs), dtype=np.int64)
    last = np.empty(0, dtype=np.uint8)
    for start in range(0, rows, _PIECE):
        size = min(_PIECE, rows - start)
        codes = (np.arange(start, start + size) * 7) % inputs
        counts.add(codes, sampler.draw(codes, stream.words(size)))
        drawn = np.concatenate([last, sampler.draw(np.zeros(size, dtype=np.int64), stream.words(size))])
        follow += np.bincount(drawn[:-1] * outputs + drawn[1:].astype(np.int64), minlength=outputs**2).reshape(
            follow.shape
        )
        last = drawn[-1:]
    pairs, distribution = counts.counts().pairs, weights / DENOMINATOR
    expected = distribution.T * pairs[:inputs].sum(axis=1, keepdims=True)
    chi2 = float(((pairs[:inputs] - expected) ** 2 / expected).sum())
    both = np.outer(distribution[:, 0], distribution[:, 0]) * follow.sum()
    serial = float(((follow - both) ** 2 / both).sum())
    return {
        "rows": rows,
        "chi2": chi2,
        "chi2_p": float(stats.chi2.sf(chi2, inputs * (outputs - 1))),
        "serial_chi2": serial,
        # Overlapping pairs: the usual statistic less that of single draws is chi-square (Good 1953).
        "serial_p": float(stats.chi2.sf(serial - _single(follow, distribution[:, 0]), outputs**2 - outputs)),
        "impossible": int(pairs[:inputs][distribution.T == 0].sum()),
    }


def _single(follow: np.ndarray, distribution: np.ndarray) -> float:
    once = follow.sum(axis=1)
    return float(((once - distribution * once.sum()) ** 2 / (distribution * once.sum())).sum())
