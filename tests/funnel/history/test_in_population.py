"""Robust guarantees over versions: no population that the samples leave open is beyond what is decided."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import funnel
from funnel.guarantees.binomial_limits import UNIT
from funnel.history.allowed import allowed_by
from funnel.history.changes import MoveLimits
from funnel.history.open_shares import (
    OpenShares,
    float_below,
    shares_in_population,
    significance_of_changes,
    significance_of_counts,
)
from funnel.joint import Joint
from tests.funnel.history.populations import Known, book_of, carried, corner, end, followed, telling
from tests.funnel.history.test_possible import alphabets, lifts, within

ALPHA = Fraction(1, 20)
BOUNDS = ("rlip:0.7,0.05", "ralip:1.0,0.5,0.05", "rldp:1.2,0.05", "rpml:0.6,0.05")


def test_all_versions_together_may_miss_with_alpha() -> None:
    spent = [
        significance_of_counts(t, ALPHA) + (t - 1) * (significance_of_changes(t, ALPHA) if t > 1 else 0)
        for t in range(1, 40)
    ]
    # Half of the first version is left: it has no changes.
    assert sum(spent) == ALPHA * (1 - Fraction(1, 40)) - ALPHA / 4


@pytest.mark.parametrize("number", [Fraction(1, 80), Fraction(1, 240), Fraction(1, 3), Fraction(1, 7 * 10**9)])
def test_a_significance_is_never_rounded_up(number: Fraction) -> None:
    found = float_below(number)
    assert number * (1 - Fraction(1, 2**50)) <= Fraction(repr(found)) <= number


def test_limits_hold_the_population_that_people_are_drawn_from() -> None:
    # Each of 300 panels misses with a probability of 1/4 at most: more than 130 of them with one below 1e-9.
    alpha, drawn = Fraction(1, 4), np.random.default_rng(7)
    p = np.array([[0.3, 0.2, 0.1], [0.05, 0.15, 0.2]])
    prior, kept = p.sum(axis=1), np.array([0.7, 0.4])
    d = np.array([[0.9, 0.1], [0.25, 0.75]])
    missed = 0
    for _ in range(300):
        first = drawn.multinomial(400, p.ravel()).reshape(p.shape)
        joint = Joint(first, *alphabets(2, 3))
        before = first.sum(axis=1)
        secrets = np.stack([drawn.multinomial(n, row) for n, row in zip(before, d, strict=True)])
        stayed = drawn.binomial(before, kept)
        limits = MoveLimits(*(np.stack([one, one]) for one in (secrets, stayed, before - stayed)))
        counts, moves = shares_in_population(joint, None, 1, alpha), shares_in_population(joint, limits, 2, alpha)
        true = (
            (counts.totals, prior),
            (counts.inputs, p / prior[:, None]),
            (moves.secrets, d),
            (moves.stays, kept),
            (moves.prior, prior @ d),
        )
        missed += not all(((low <= one) & (one <= high)).all() for (low, high), one in true)
    assert missed <= 130


def test_limits_are_those_of_clopper_and_pearson() -> None:
    from scipy.stats import beta

    secrets = np.array([[30, 10], [0, 5]])
    limits = MoveLimits(*(np.stack([one, one]) for one in (secrets, np.array([25, 5]), np.array([15, 0]))))
    joint = Joint(np.array([[20, 20], [3, 7]]), *alphabets(2, 2))
    found = shares_in_population(joint, limits, 3, ALPHA)
    tail = float(ALPHA) / (2 * 3 * 4 * 2) / (2 * (4 + 2 + 2))
    assert found.secrets[:, 0, 0] == pytest.approx([beta.ppf(tail, 30, 11), beta.isf(tail, 31, 10)], abs=2 / UNIT)
    assert found.secrets[:, 1, 0] == pytest.approx([0, beta.isf(tail, 1, 5)], abs=2 / UNIT)
    assert found.stays[:, 1] == pytest.approx([beta.ppf(tail, 5, 1), 1], abs=2 / UNIT)
    assert found.prior[:, 0] == pytest.approx([beta.ppf(tail, 30, 16), beta.isf(tail, 31, 15)], abs=2 / UNIT)
    of_counts = float(ALPHA) / (2 * 3 * 4) / (2 * (4 + 2))
    assert found.inputs[0, 1, 0] == pytest.approx(beta.ppf(of_counts, 3, 8), abs=2 / UNIT)


def test_nothing_is_known_of_how_nobody_changed() -> None:
    nobody = MoveLimits(*(np.zeros(shape, dtype=np.int64) for shape in ((2, 2, 2), (2, 2), (2, 2))))
    found = shares_in_population(Joint(np.array([[5, 6], [7, 8]]), *alphabets(2, 2)), nobody, 2, ALPHA)
    for one in (found.secrets, found.stays, found.prior):
        assert (one[0] == 0).all()
        assert (one[1] == 1).all()


class Population:
    """A population at some corner of what the samples of a panel leave open."""

    def __init__(self, shares: list[OpenShares], drawn: np.random.Generator) -> None:
        self.inputs = [[corner(limits.T, drawn) for limits in np.moveaxis(one.inputs, 1, 0)] for one in shares]
        self.priors = [corner(one.prior.T, drawn) for one in shares]
        self.secrets = [[corner(limits.T, drawn) for limits in np.moveaxis(one.secrets, 1, 0)] for one in shares]
        self.stays = [[end(ends, drawn) for ends in one.stays.T] for one in shares]

    def before(self, t: int, node: int, told: Known | None) -> Known:
        """What is known before version t, of new people or of those of the version before."""
        if told is None:
            begun = [p * share for p, row in zip(self.priors[0], self.inputs[0], strict=True) for share in row]
            return begun, self.priors[t]
        return carried(told[0], self.secrets[t], self.stays[t], self.inputs[t]), self.priors[t]


def panel(seed: int, people: int, waves: int) -> list[pa.Table]:
    """The same people in every wave; secrets and inputs go together, and some change."""
    drawn = np.random.default_rng(seed)
    ill = drawn.random(people) < 0.4
    size = np.where(drawn.random(people) < 0.3, ill, drawn.integers(0, 3, people))
    found = []
    for _ in range(waves):
        found.append(
            pa.table({"id": np.arange(people), "ill": np.where(ill, "yes", "no"), "size": np.array(list("abc"))[size]})
        )
        ill = ill ^ (drawn.random(people) < 0.1)
        size = np.where(drawn.random(people) < 0.2, drawn.integers(0, 3, people), size)
    return found


def open_to(book: funnel.History, alpha: Fraction) -> list[OpenShares]:
    """What the samples of all versions leave open, each since the one before."""
    found = []
    for t, chapter in enumerate(book.past.chapters):
        limits = None
        if t:
            limits = MoveLimits.exactly(chapter.changes[t - 1], book.past.chapters[t - 1].joint, chapter.joint)
        found.append(shares_in_population(chapter.joint, limits, t + 1, alpha))
    return found


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("bound", BOUNDS)
def test_what_is_decided_holds_in_every_population_that_is_left_open(seed: int, bound: str) -> None:
    book = book_of(bound, panel(seed, 20_000, 3))
    allowed = allowed_by(book.guarantee)
    assert allowed.significance == ALPHA
    shares, drawn = open_to(book, ALPHA), np.random.default_rng(seed)
    said = 0
    for _ in range(6):
        population = Population(shares, drawn)
        for t, _, channel, distribution, prior in followed(
            zip(book.steps, book.past.chapters, strict=True), population.before
        ):
            for row in telling(channel):
                said += t > 0
                assert within(lifts(prior, distribution, row), allowed)
    assert said


def test_a_nominal_bound_is_left_in_some_population() -> None:
    # What robust bounds are for: of channels for the counted frequencies alone, some answers are beyond the bound.
    book = book_of("lip:0.3", panel(3, 1500, 2))
    allowed = allowed_by(book.guarantee)
    shares, drawn = open_to(book, ALPHA), np.random.default_rng(3)
    beyond = 0
    for _ in range(20):
        distribution, prior = Population(shares, drawn).before(0, 0, None)
        rows = book.steps[0].library[book.steps[0].drawn_from[0]]
        beyond += not all(within(lifts(prior, distribution, row), allowed) for row in rows.tolist() if any(row))
    assert beyond


def test_robust_is_nominal_too_for_both_observers() -> None:
    (*_, robust), (*_, nominal) = (book_of(bound, panel(5, 4000, 2)).steps for bound in ("rlip:0.5,0.05", "lip:0.5"))
    assert [one.observer for one in robust.bounded_for] == ["transitions", "mover-stayer"]
    assert robust.level.value <= 0.5
    assert robust.outside == robust.moved == 0
    assert 0.2 * nominal.utility < robust.utility < nominal.utility
    assert str(robust.guarantee) == robust.chapter(np.zeros(1, int), np.zeros(1, int)).guarantee == "rlip:0.5,0.05"


def test_more_people_leave_more_to_be_said() -> None:
    kept = []
    for people in (1_000, 8_000, 60_000):
        step = book_of("rlip:0.5,0.05", panel(1, people, 2)).steps[-1]
        kept.append(step.utility / step.entropy)
    alone = book_of("lip:0.5", panel(1, 60_000, 2)).steps[-1]
    assert kept == sorted(kept)
    assert kept[-1] > 0.85 * alone.utility / alone.entropy


def test_the_set_of_the_paper_has_no_limits_of_changes() -> None:
    with pytest.raises(funnel.errors.SpecError, match="over boxes"):
        funnel.History(funnel.RLDP(1.0, 0.05, set="chi2"))
