"""A classifier as an attacker: what a forest of decision trees learns of the secret, with the release and without."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from funnel.findings.attacks import Channel
from funnel.joint import FloatArray, IntArray

_TREES = 40
# A leaf of fewer records would learn these records by heart.
_LEAF = 10
_SEED = 1


@dataclass(frozen=True)
class Learned:
    """How often a forest guesses the secret of records right that it has not learnt from.

    Attributes
    ----------
    trained, tried : int
        Records that it learnt from, and others that it was tried on.
    prior, without, with_release : float
        Share guessed right by the most common secret, from all other columns, and from these and the published value.
    columns : int
        How many columns it knows beside the published value.
    """

    trained: int
    tried: int
    prior: float
    without: float
    with_release: float
    columns: int


def learn(sample: IntArray, channel: Channel) -> Learned | None:
    """Train a forest on half of some records, with published values drawn for them, and try it on the other half.

    The rows of the release are shuffled, so that nobody can say which is whose. What the attacker learns from are
    published values drawn anew for these records from the same protocol: the same distribution, by a known seed.

    Parameters
    ----------
    sample : ndarray of int64, shape (m, 2 + k)
        Secret, input and codes of other columns, of m records.
    channel : ndarray or sparse array, shape (b, a)
        Q(y|x).

    Returns
    -------
    Learned or None
        None where there are too few records, or the secret is the same in all.

    Raises
    ------
    ImportError
        If scikit-learn is not installed.
    """
    from sklearn.ensemble import RandomForestClassifier

    generator = np.random.Generator(np.random.PCG64(_SEED))
    order = generator.permutation(len(sample))
    secret, inputs, side = sample[order, 0], sample[order, 1], sample[order, 2:]
    half = len(sample) // 2
    if half < 2 * _LEAF or len(np.unique(secret[:half])) < 2:
        return None
    drawn = _drawn(channel, inputs, generator.random(len(sample)))
    common = np.bincount(secret[:half]).argmax()

    def right(known: IntArray) -> float:
        if not known.shape[1]:
            return float((secret[half:] == common).mean())
        forest = RandomForestClassifier(_TREES, min_samples_leaf=_LEAF, random_state=_SEED, n_jobs=1)
        with warnings.catch_warnings():
            # Of the library's own future; nothing that a report should say.
            warnings.simplefilter("ignore", FutureWarning)
            forest.fit(known[:half], secret[:half])
            return float((forest.predict(known[half:]) == secret[half:]).mean())

    return Learned(
        trained=half,
        tried=len(sample) - half,
        prior=float((secret[half:] == common).mean()),
        without=right(side),
        with_release=right(np.column_stack([side, drawn])),
        columns=side.shape[1],
    )


def _drawn(channel: Channel, inputs: IntArray, uniform: FloatArray) -> IntArray:
    """An output for each input by inversion: the first whose cumulated probability exceeds a uniform number."""
    outputs = np.empty(len(inputs), dtype=np.int64)
    for x in np.unique(inputs):
        here = inputs == x
        if isinstance(channel, np.ndarray):
            possible, distribution = np.arange(len(channel), dtype=np.int64), channel[:, x]
        else:
            part = slice(int(channel.indptr[x]), int(channel.indptr[x + 1]))
            possible, distribution = channel.indices[part].astype(np.int64), channel.data[part]
        outputs[here] = possible[np.searchsorted(np.cumsum(distribution)[:-1], uniform[here], side="right")]
    return outputs
