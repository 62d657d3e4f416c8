"""Usefulness of releases: tables, scores of SDMetrics, a logistic regression with intervals."""

from __future__ import annotations

import importlib
import itertools
import math
from dataclasses import dataclass

import numpy as np

from benchmarks.comparison.releases import Release
from benchmarks.comparison.tables import Study, Trial
from benchmarks.usual_statistics import logistic
from funnel.joint import FloatArray, IntArray


def shares_of(codes: IntArray, sizes: tuple[int, ...], columns: tuple[int, ...]) -> FloatArray:
    """The table of some columns, in shares."""
    shape = [sizes[j] for j in columns]
    cells = np.ravel_multi_index(tuple(codes[:, j] for j in columns), shape)
    return np.bincount(cells, minlength=math.prod(shape)).reshape(shape) / len(codes)


def corrected(shares: FloatArray, channel: FloatArray) -> FloatArray:
    """A table whose first column is the secret, by the inverse of P(published | true)."""
    return np.asarray(np.linalg.solve(channel.T, shares.reshape(len(channel), -1)).reshape(shares.shape))


def table_errors(trial: Trial, release: Release, correct: bool) -> dict[str, float]:
    """Mean total variation between published and true tables, of one, two and three columns; and of the secret's."""
    sizes, found = trial.study.sizes, {}
    for width in (1, 2, 3):
        errors, with_secret = [], []
        for columns in itertools.combinations(range(len(sizes)), width):
            shown = shares_of(release.codes, sizes, columns)
            if correct and columns[0] == 0 and release.channel is not None:
                shown = corrected(shown, release.channel)
            errors.append(np.abs(shown - shares_of(trial.inside, sizes, columns)).sum() / 2)
            if columns[0] == 0:
                with_secret.append(errors[-1])
        found[f"{width}-way"] = float(np.mean(errors))
        found[f"{width}-way with the secret"] = float(np.mean(with_secret))
    return found


def sdmetrics_scores(trial: Trial, release: Release) -> dict[str, float]:
    """Column shapes and pair trends as SDMetrics scores them (1 - total variation, by definition); {} without it."""
    try:
        single = importlib.import_module("sdmetrics.single_column").TVComplement
        pair = importlib.import_module("sdmetrics.column_pairs").ContingencySimilarity
    except ImportError:
        return {}
    true, made = trial.study.frame(trial.inside), trial.study.frame(release.codes)
    columns = trial.study.columns
    pairs = [[a, b] for a, b in itertools.combinations(columns, 2)]
    return {
        "columns": float(np.mean([single.compute(true[c], made[c]) for c in columns])),
        "pairs": float(np.mean([pair.compute(true[both], made[both]) for both in pairs])),
    }


@dataclass(frozen=True)
class Regression:
    """Coefficients of the odds of the secret by the other columns.

    Attributes
    ----------
    off : float
        The mean distance from the coefficients of the true table, in standard errors of these.
    covered, intervals : int
        Usual intervals at 95 % that hold the coefficient of the population, and how many there are. Half of the
        population is in the table, so that a usual variance counts one half (the finite population correction); for
        funnel it counts 1/2 + r.
    """

    off: float
    covered: int
    intervals: int


def regression(trial: Trial, release: Release) -> Regression:
    """The logistic regression of a release beside those of the table and of the population."""
    study = trial.study
    population, _, _ = _fitted(study, trial.population)
    true, errors, _ = _fitted(study, trial.inside)
    shown, usual, influence = _fitted(study, release.codes)
    sampled = 1 - len(trial.inside) / len(trial.population)
    r = 0.0 if release.ratio is None else release.ratio(influence)
    half = 1.959963984540054 * usual * np.sqrt(sampled + r)
    inside = np.abs(shown - population) <= half
    return Regression(float(np.mean(np.abs(shown - true) / errors)), int(inside.sum()), len(inside))


def _fitted(study: Study, codes: IntArray):  # type: ignore[no-untyped-def]
    """Coefficients (k,), their usual standard errors, and influence (k, v) as a function of records."""
    cells, counts = np.unique(codes, axis=0, return_counts=True)
    found = logistic(*_model(study, cells))(counts.astype(float))
    low, high = found.interval(np.ones(len(found.estimates)))

    def influence(records: IntArray) -> FloatArray:
        design, response = _model(study, records)
        fitted = 1 / (1 + np.exp(-design @ found.estimates))
        own, _ = _model(study, cells)
        own_fit = 1 / (1 + np.exp(-own @ found.estimates))
        inverse = np.linalg.inv((own.T * (counts * own_fit * (1 - own_fit))) @ own)
        return np.asarray(counts.sum() * (inverse @ design.T) * (response - fitted))

    return found.estimates, (high - low) / 2 / 1.959963984540054, influence


def _model(study: Study, records: IntArray) -> tuple[FloatArray, FloatArray]:
    """The design (v, k), a constant first, and the response (v,)."""
    scores = [np.array(of)[records[:, j]] for j, of in enumerate(study.scores, 1)]
    positive = np.array([name in study.positive for name in study.categories[0]], dtype=float)
    return np.column_stack([np.ones(len(records)), *scores]), positive[records[:, 0]]
