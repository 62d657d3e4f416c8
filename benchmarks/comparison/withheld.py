"""Releases without the secret: what an observer of a published record concludes about it, beside what is proven.

The secret is no column here, and an observer who knows how secrets go with the other columns guesses it from a person's
published record. Such relations are what a release discloses by its purpose; LIP bounds how much of them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog

import funnel
from benchmarks.comparison.attacks import Classifier
from benchmarks.comparison.other_methods import draw_columns
from benchmarks.comparison.releases import FEW, LEAST, MOST, NOISE, every
from benchmarks.comparison.tables import Study, Trial
from benchmarks.comparison.usefulness import shares_of
from benchmarks.rows import Row
from benchmarks.whole_record_draws import draw_records, input_places
from funnel.donors.growing import record_classes
from funnel.joint import FloatArray, IntArray
from funnel.sampling.donors import Donors


def largest_accuracy(prior: FloatArray, epsilon: float) -> float:
    """The largest share of right guesses of anybody whose belief in no secret changes by more than a factor e^ε.

    Outputs after which the guess is the same may be put together: q[k, s], the probability of guess k and secret s,
    keeps the bound, e^-ε p_s Q_k <= q[k, s] <= e^ε p_s Q_k with Q_k = sum of q[k, :]. The sum of q[s, s] is largest at
    the optimum of a linear programme.
    """
    c = len(prior)
    rows, equal = [], np.zeros((c, c * c))
    for k, s in np.ndindex(c, c):
        for sign, factor in ((1, math.exp(epsilon)), (-1, math.exp(-epsilon))):
            row = np.zeros((c, c))
            row[k] = -sign * factor * prior[s]
            row[k, s] += sign
            rows.append(row.ravel())
        equal[s, k * c + s] = 1
    found = linprog(-np.eye(c).ravel(), A_ub=np.array(rows), b_ub=np.zeros(len(rows)), A_eq=equal, b_eq=prior)
    if not found.success:
        raise ArithmeticError(f"the limit on guesses was not found: {found.message}")
    return float(found.x.reshape(c, c).trace())


def right_guesses(joint: FloatArray, channel: FloatArray) -> float:
    """The share of right guesses from an output, given P(known, secret, input) and P(output | input)."""
    return float((joint @ channel).max(axis=1).sum())


@dataclass(frozen=True)
class Withheld:
    """A release by funnel without the secret.

    Attributes
    ----------
    bound : str
    with_known : bool
        Whether it is for observers who know the known columns of the study.
    from_others : bool
        Whether classes come from the people who are not in the table.
    noise : bool
        On the counts of (secret, class).
    """

    bound: str
    with_known: bool = False
    from_others: bool = False
    noise: bool = False

    @property
    def name(self) -> str:
        """As the page has it."""
        return f"funnel, {self.bound}{', noise' * self.noise}"

    def released(self, trial: Trial, random: np.random.Generator) -> tuple[IntArray, Row]:
        """The published records (the true secret beside them), and what observers conclude by their classes.

        Raises
        ------
        ArithmeticError
            If one is right more often than the bound allows.
        """
        study = trial.study
        sample, records, of_row = study.counted(trial.inside)
        source = study.counted(trial.outside)[0] if self.from_others else sample
        known = study.known if self.with_known else ()
        classes = record_classes(source, 4 * LEAST if self.from_others else LEAST, MOST, FEW, every, known)
        counted = classes.counted(sample)
        guarantee = funnel.parse_guarantee(self.bound)
        protocol = funnel.fit("invariant", funnel.protect(counted, NOISE) if self.noise else counted, guarantee)
        donors = Donors.of(sample.inputs, sample.counts.sum(axis=0), classes, sample.inputs.columns)
        places = input_places(protocol, None, classes.names)
        drawn = draw_records(donors, protocol, places, np.zeros(len(of_row), dtype=np.int64), of_row, random)
        shown = np.column_stack([trial.inside[:, 0], records[drawn.taken]])
        epsilon = float(self.bound.split(":")[1].split(" ")[0].split(",")[0])
        # P(known, secret, class) for observers of nothing, and of the known columns.
        of_class, places_of = donors.of_record[of_row], [study.columns.index(c) for c in study.known]
        groups = np.unique(trial.inside[:, places_of], axis=0, return_inverse=True)[1]
        channel = protocol.matrix.T[np.ix_(places[0], places[0])]
        found: Row = {"unchanged": float(drawn.stayed.mean())}
        for name, group in (("nothing", np.zeros_like(groups)), ("known", groups)):
            joint = np.zeros((group.max() + 1, study.sizes[0], len(classes.names)))
            np.add.at(joint, (group, trial.inside[:, 0], of_class), 1 / len(group))
            of_secret = joint.sum(axis=2)
            found[f"{name}: before"] = float(of_secret.max(axis=1).sum())
            found[f"{name}: after"] = right_guesses(joint, channel)
            if name == "nothing" or self.with_known:
                found[f"{name}: limit"] = float(
                    sum(p.sum() * largest_accuracy(p / p.sum(), epsilon) for p in of_secret)
                )
                if found[f"{name}: after"] > found[f"{name}: limit"] + 1e-9:
                    raise ArithmeticError(
                        f"an observer of {name} is right beyond the limit of {self.bound}: the proof is wrong"
                    )
        return shown, found


CASES = (
    Withheld("lip:0.5"),
    Withheld("lip:1.0"),
    Withheld("lip:2.0"),
    Withheld("lip:1.0 & srlip:1.0", with_known=True),
    Withheld("rlip:1.0,0.05", from_others=True),
    Withheld("lip:1.0", from_others=True, noise=True),
)


def _errors(study: Study, shown: IntArray, true: IntArray) -> float:
    """Mean total variation of tables of three columns."""
    some = itertools.combinations(range(1, len(study.sizes)), 3)
    return float(
        np.mean([np.abs(shares_of(shown, study.sizes, c) - shares_of(true, study.sizes, c)).sum() / 2 for c in some])
    )


def cases(study: Study, seed: int) -> Iterator[Row]:
    """Every release of one half of a population."""
    trial = Trial.toss(study, np.random.default_rng(seed), 0.0, 0.0)
    true, model = trial.inside, Classifier(trial.outside, study.sizes[0])
    prior = np.bincount(true[:, 0], minlength=study.sizes[0]) / len(true)
    base = {"table": study.name, "base": float(prior.max())}

    def used(shown: IntArray) -> Row:
        guess = model.chances(shown[:, 1:]).argmax(axis=1)
        return {"model": float((guess == true[:, 0]).mean()), "3-way": _errors(study, shown, true)}

    yield {**base, "method": "truth", **used(true)}
    random = np.random.default_rng([seed, 1])
    yield {**base, "method": "PRAM, all columns", **used(draw_columns(trial, random)[0])}
    for number, case in enumerate(CASES):
        shown, figures = case.released(trial, np.random.default_rng([seed, 2, number]))
        yield {**base, "method": case.name, **used(shown), **figures}
