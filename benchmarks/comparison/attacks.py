"""Attacks on releases: guesses at tossed secrets, and Anonymeter's three risks.

An attacker knows all other columns of a target and which two values its secret was tossed between. The gain of a guess
that is right with probability q is 2 q - 1: 0 for a guess without the release, 1 for one that is always right.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import binom, binomtest

from benchmarks.comparison.releases import Release
from benchmarks.comparison.tables import BoolArray, Trial
from funnel.joint import FloatArray, IntArray

# An honest release crosses its limit with this probability, at most, in all tests of a run together.
FALSE_ALARM = 1e-6


@dataclass(frozen=True)
class Tally:
    """Guesses and right ones; a guess among equals counts one half."""

    right: float = 0.0
    guesses: int = 0

    def __add__(self, other: Tally) -> Tally:
        return Tally(self.right + other.right, self.guesses + other.guesses)

    @property
    def gain(self) -> float:
        """2 q - 1 of the share q of right guesses."""
        return 2 * self.right / self.guesses - 1

    @property
    def interval(self) -> tuple[float, float]:
        """Clopper-Pearson limits of the gain at 95 %."""
        found = binomtest(round(self.right), self.guesses).proportion_ci(0.95)
        return 2 * float(found.low) - 1, 2 * float(found.high) - 1

    def exceeds(self, epsilon: float, tests: int) -> bool:
        """Whether so many right guesses rule out that odds change by e^ε at most.

        Under the bound the number of right guesses is, in the stochastic order, at most binomial with a probability of
        e^ε / (1 + e^ε), however the guesses depend on each other (Steinke, Nasr and Jagielski 2023, theorem 5.2).
        """
        chance = 1 / (1 + np.exp(-epsilon))
        return bool(binom.sf(np.floor(self.right) - 1, self.guesses, chance) < FALSE_ALARM / tests)


class Classifier:
    """Gradient boosting, trained on the secret of published records by their other columns."""

    def __init__(self, codes: IntArray, secrets: int, seed: int = 0) -> None:
        from sklearn.ensemble import HistGradientBoostingClassifier

        self._secrets = secrets
        self._model = HistGradientBoostingClassifier(
            max_iter=30, learning_rate=0.25, categorical_features=list(range(codes.shape[1] - 1)), random_state=seed
        )
        self._model.fit(codes[:, 1:], codes[:, 0])

    def chances(self, others: IntArray) -> FloatArray:
        """Of every secret, given other columns (t, columns - 1); shape (t, c)."""
        found = np.full((len(others), self._secrets), 1e-9)
        found[:, self._model.classes_] += self._model.predict_proba(others)
        return found

    def accuracy(self, codes: IntArray) -> float:
        """The share of records whose secret it predicts."""
        return float((self.chances(codes[:, 1:]).argmax(axis=1) == codes[:, 0]).mean())


def guesses(trial: Trial, release: Release, model: Classifier) -> dict[str, FloatArray]:
    """Scores of both candidates of every target, shape (t, 2), by attack: the larger one is the guess."""
    known = trial.known
    grouped = known
    codes = release.codes
    if release.grouped is not None and release.grouped_codes is not None:
        grouped = np.stack([of[v] for of, v in zip(release.grouped[1:], known.T, strict=True)], axis=1)
        codes = release.grouped_codes
    chances = model.chances(known)
    targets = np.arange(len(known))[:, np.newaxis]
    found = {
        "table": _by_table(codes, grouped, release.keep, chances)[targets, trial.candidates],
        "classifier": chances[targets, trial.candidates],
        "nearest": _by_nearest(codes, grouped, trial.study.sizes[0])[targets, trial.candidates],
    }
    if release.evidence is not None:
        found["own record"] = release.evidence
    return found


def _by_table(codes: IntArray, known: IntArray, keep: FloatArray, chances: FloatArray) -> FloatArray:
    """Bayes: any of the published records with the target's columns may be the target's; shape (t, c).

    Each speaks for a secret by how likely it made the published one, over how likely that is in a record of somebody
    else with these columns.
    """
    records, of = np.unique(np.concatenate([codes[:, 1:], known]), axis=0, return_inverse=True)
    counts = np.zeros((len(records), chances.shape[1]))
    np.add.at(counts, (of[: len(codes)], codes[:, 0]), 1)
    return np.asarray(np.einsum("tsv,tv->ts", keep, counts[of[len(codes) :]] / chances))


def _by_nearest(codes: IntArray, known: IntArray, secrets: int) -> FloatArray:
    """Votes of the published records that agree in most columns, shape (t, c)."""
    records, of = np.unique(codes[:, 1:], axis=0, return_inverse=True)
    counts = np.zeros((len(records), secrets))
    np.add.at(counts, (of, codes[:, 0]), 1)
    votes = np.empty((len(known), secrets))
    for start in range(0, len(known), 256):
        some = known[start : start + 256]
        alike = sum((some[:, j, np.newaxis] == records[:, j]).astype(np.int8) for j in range(known.shape[1]))
        votes[start : start + 256] = (alike == alike.max(axis=1, keepdims=True)).astype(float) @ counts
    return votes


def tally(scores: FloatArray, answers: IntArray, some: BoolArray | None = None) -> Tally:
    """How many guesses are right, of all targets or some."""
    mine, other = scores[np.arange(len(answers)), answers], scores[np.arange(len(answers)), 1 - answers]
    right = np.where(mine > other, 1.0, np.where(mine == other, 0.5, 0.0))
    right = right if some is None else right[some]
    return Tally(float(right.sum()), len(right))


def largest_change(evidence: FloatArray) -> float:
    """The largest change of log odds that a target's own record brought, in nats."""
    with np.errstate(divide="ignore"):
        return float(np.abs(np.diff(np.log(evidence), axis=1)).max())


def anonymeter_risks(
    trial: Trial, release: Release, attacks: int, seed: int
) -> Mapping[str, tuple[float, float, float]]:
    """Singling out, linkability and inference by Anonymeter, each (risk, low, high); nothing if it is not installed.

    Risks are of people in the table over those of people who are not, as the package defines them.
    """
    try:
        evaluators: Any = importlib.import_module("anonymeter.evaluators")
    except ImportError:
        return {}
    study = trial.study
    original, made = study.frame(trial.inside[trial.plain]), study.frame(release.codes)
    control = study.frame(trial.outside[trial.plain_outside])
    first = [study.columns[0], *study.columns[1:3]]
    rest = [c for c in study.columns if c not in first]
    tried: dict[str, Callable[[], Any]] = {
        "singling out": lambda: evaluators.SinglingOutEvaluator(
            original, made, n_attacks=attacks, n_cols=len(study.columns), control=control, seed=seed
        ),
        "linkability": lambda: evaluators.LinkabilityEvaluator(
            original, made, aux_cols=(first, rest), n_attacks=attacks // 2, n_neighbors=5, control=control
        ),
        "inference": lambda: evaluators.InferenceEvaluator(
            original,
            made,
            aux_cols=list(study.columns[1:]),
            secret=study.columns[0],
            n_attacks=attacks,
            control=control,
        ),
    }
    found = {}
    np.random.seed(seed)
    for name, make in tried.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            evaluator = make()
            if name == "singling out":
                evaluator.evaluate(mode="multivariate")
            else:
                evaluator.evaluate(n_jobs=1)
            risk = evaluator.risk()
        found[name] = (float(risk.value), float(risk.ci[0]), float(risk.ci[1]))
    return found
