"""A release as an attacker and an analyst have it; those of the truth and of funnel, and the limit that is proven."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import funnel
from benchmarks.comparison.tables import BoolArray, Study, Trial
from benchmarks.whole_record_draws import draw_records, input_places, moves_between, published_table
from funnel.donors.growing import record_classes
from funnel.estimation.by_class import whole_records
from funnel.estimation.plain_counts import PlainCounts
from funnel.joint import FloatArray, IntArray
from funnel.sampling.donors import Donors

# As `funnel init` writes them: records of a class, classes, records of a rare value.
LEAST, MOST, FEW = 50, 400, 10
# Of the counts of (secret, class), for one record more or less.
NOISE = 1.0
Ratio = Callable[[Callable[[IntArray], FloatArray]], FloatArray]


@dataclass(frozen=True, eq=False)
class Release:
    """What was published of a trial.

    Attributes
    ----------
    codes : ndarray of int64, shape (rows, columns)
        Published records in the values of the source; values that a method has grouped are drawn evenly from the group.
    keep : ndarray, shape (t, c, c)
        Of every target, secret s and published secret v the probability that the target, with this s, is published
        with v beside the target's own other columns; up to a factor of the target.
    evidence : ndarray, shape (t, 2), optional
        The probability of the record that was published in the place of the target, under both candidates; none where
        published records are nobody's.
    grouped : tuple of ndarray, optional
        Of every column the number of the group of each value, where values were grouped.
    grouped_codes : ndarray of int64, shape (rows, columns), optional
        The records in these groups.
    ratio : callable, optional
        r of influence, a function of records (v, columns) to (k, v): the variance that the release adds, as a share of
        the usual one. None: as usual.
    channel : ndarray, shape (c, c), optional
        P(published | true secret) where the secret alone was changed, by itself: tables can be corrected by it.
    """

    codes: IntArray
    keep: FloatArray
    evidence: FloatArray | None = None
    grouped: tuple[IntArray, ...] | None = None
    grouped_codes: IntArray | None = None
    ratio: Ratio | None = None
    channel: FloatArray | None = None


def identity(trial: Trial) -> FloatArray:
    """`Release.keep` of secrets that are published as they are."""
    c = trial.study.sizes[0]
    return np.asarray(np.broadcast_to(np.eye(c), (len(trial.targets), c, c)))


def read_secrets(trial: Trial, secrets: IntArray) -> FloatArray:
    """Evidence of records that have the true secrets, shape (t, 2)."""
    return (trial.candidates == secrets[:, np.newaxis]).astype(float)


def truth(trial: Trial, random: np.random.Generator) -> Release:
    """The table as it is."""
    return Release(trial.inside, identity(trial), read_secrets(trial, trial.inside[trial.targets, 0]))


def attribute(
    epsilon: float,
    trial: Trial,
    random: np.random.Generator,
    *,
    with_known: bool = False,
    noise: bool = False,
    robust: bool = False,
) -> Release:
    """Whole records with the secret, by class, as `funnel release` makes them from `[groups]`.

    Under noise and for a population the classes come from the people who are not in the table.
    """
    study, from_others = trial.study, noise or robust
    sample, records, of_row = study.counted(trial.inside)
    source = study.counted(trial.outside)[0] if from_others else sample
    known = study.known if with_known else ()
    classes = record_classes(source, 4 * LEAST if from_others else LEAST, MOST, FEW, every, known)
    counted = classes.counted(sample)
    if noise:
        counted = funnel.protect(counted, NOISE)
    guarantee = funnel.parse_guarantee(f"rattribute:{epsilon},0.05" if robust else f"attribute:{epsilon}")
    protocol = funnel.fit("invariant", counted.with_secret(), guarantee)
    donors = Donors.of(sample.inputs, sample.counts.sum(axis=0), classes, sample.inputs.columns)
    places = input_places(protocol, sample.secret, classes.names)
    drawn = draw_records(donors, protocol, places, trial.inside[:, 0], of_row, random)
    plain, _ = whole_records(published_table(donors, sample.secret, drawn), protocol)
    channel, of_class = moves_between(protocol, places), donors.of_record[of_row[trial.targets]]
    shown = (drawn.secrets[trial.targets, np.newaxis], drawn.classes[trial.targets, np.newaxis])
    return Release(
        np.column_stack([drawn.secrets, records[drawn.taken]]),
        channel[:, of_class, :, of_class],
        channel[trial.candidates, of_class[:, np.newaxis], *shown],
        ratio=functools.partial(_ratio, plain, study),
    )


def _ratio(plain: PlainCounts, study: Study, influence: Callable[[IntArray], FloatArray]) -> FloatArray:
    """r of influence (k, values), given as a function of records."""
    texts = [dict(zip(names, range(len(names)), strict=True)) for names in study.categories]
    codes = [[of[text] for of, text in zip(texts, symbol, strict=False)] for symbol in plain.values.symbols]
    return plain.ratio(influence(np.array(codes)))


def every(tables: IntArray) -> BoolArray:
    """Tables of the secret in classes that may be: all, as without a rule of dominance."""
    return np.ones(tables.shape[1:], dtype=np.bool_)


def limit(epsilon: float) -> float:
    """The largest gain that any attack on a tossed secret has: tanh(ε / 2) (the proof is on the page)."""
    return math.tanh(epsilon / 2)
