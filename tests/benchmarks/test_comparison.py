"""Attacks of the comparison find what they must on small made tables, and nothing where there is nothing to find."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from benchmarks.comparison import command, page
from benchmarks.comparison.attacks import Classifier, Tally, guesses, largest_change, tally
from benchmarks.comparison.other_methods import invariant_matrix, pram_all, pram_secret
from benchmarks.comparison.releases import Release, attribute, limit, truth
from benchmarks.comparison.tables import Study, Trial
from benchmarks.comparison.usefulness import corrected, regression, shares_of, table_errors
from benchmarks.comparison.withheld import largest_accuracy, right_guesses
from benchmarks.rows import RESULTS, Row

SEARCHES = ("table", "nearest", "own record")


def made(people: int, sizes: tuple[int, ...], seed: int) -> Study:
    """A secret of two values, that depends on the first other column."""
    random = np.random.default_rng(seed)
    others = np.stack([random.integers(0, size, people) for size in sizes], axis=1)
    secret = (random.random(people) < 0.2 + 0.5 * others[:, 0] / (sizes[0] - 1)).astype(np.int64)
    codes = np.column_stack([secret, others])
    categories = tuple(tuple(f"{j}.{v}" for v in range(size)) for j, size in enumerate((2, *sizes)))
    columns = ("secret", *(f"c{j}" for j in range(len(sizes))))
    scores = tuple(tuple(float(v) for v in range(size)) for size in sizes)
    return Study("made", columns, categories, codes, ("c0",), ("0.1",), scores)


def attacked(trial: Trial, release: Release) -> dict[str, Tally]:
    found = guesses(trial, release, Classifier(release.codes, trial.study.sizes[0]))
    return {name: tally(scores, trial.answers) for name, scores in found.items()}


@pytest.fixture(scope="module")
def alone() -> Trial:
    """Nearly everybody is alone with the other columns."""
    return Trial.toss(made(4000, (20, 20, 20, 20), 1), np.random.default_rng(2), 0.2, 0.0)


@pytest.fixture(scope="module")
def crowd() -> Trial:
    """Hundreds of people have the same other columns."""
    return Trial.toss(made(8000, (4, 3), 3), np.random.default_rng(4), 0.2, 0.0)


def test_the_truth_is_fully_attackable_where_people_are_alone(alone: Trial) -> None:
    found = attacked(alone, truth(alone, np.random.default_rng(0)))
    assert {name: found[name].gain for name in SEARCHES} == pytest.approx(dict.fromkeys(SEARCHES, 1.0), abs=0.03)
    assert found["own record"].gain == 1.0


def test_nothing_is_gained_from_the_truth_about_others_or_by_a_model_in_a_crowd(crowd: Trial) -> None:
    release = truth(crowd, np.random.default_rng(0))
    # Six standard deviations of a fair coin: a probability below 1e-9 each.
    most = 6 / math.sqrt(len(crowd.targets))
    assert abs(attacked(crowd, release)["classifier"].gain) < most
    # Secrets that are published for anybody, independent of the targets.
    codes = release.codes.copy()
    codes[:, 0] = np.random.default_rng(5).integers(0, 2, len(codes))
    found = attacked(crowd, Release(codes, release.keep))
    assert set(found) == {"table", "nearest", "classifier"}
    assert all(abs(of.gain) < most for of in found.values())


def test_tosses_are_fair_and_not_to_be_seen_in_the_candidates(alone: Trial) -> None:
    assert abs(alone.answers.mean() - 0.5) < 3 / math.sqrt(len(alone.answers))
    rows = np.arange(len(alone.targets))
    assert (alone.candidates[rows, alone.answers] == alone.inside[alone.targets, 0]).all()
    assert (alone.candidates[:, 0] < alone.candidates[:, 1]).all()
    assert len(alone.inside) == len(alone.outside) == 2000
    assert not alone.plain[alone.targets].any()


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_releases_with_a_bound_are_within_the_limit(alone: Trial, crowd: Trial, epsilon: float) -> None:
    for trial in (alone, crowd):
        for make in (pram_secret, attribute):
            release = make(epsilon, trial, np.random.default_rng(6))
            assert release.evidence is not None
            assert largest_change(release.evidence) <= epsilon + 1e-9
            assert not any(of.exceeds(epsilon, 1) for of in attacked(trial, release).values())


def test_the_limit_is_reached_by_randomised_response_and_not_by_less() -> None:
    for epsilon in (0.5, 1.0, 2.0):
        chance = 1 / (1 + math.exp(-epsilon))
        assert limit(epsilon) == pytest.approx(2 * chance - 1)
        assert not Tally(round(100_000 * chance), 100_000).exceeds(epsilon, 100)
        assert Tally(round(100_000 * (chance + 0.02)), 100_000).exceeds(epsilon, 100)


def test_an_attack_beyond_the_limit_fails_the_page() -> None:
    row: Row = {"table": "made", "method": "funnel", "epsilon": 1.0, "attacks": {"nearest": {"all": [900, 1000]}}}
    with pytest.raises(ArithmeticError, match=r"'nearest' on funnel of made gains 0.800 .* allows 0.462"):
        page.check_limits({"made": [row]})
    assert page.check_limits({"made": [row | {"epsilon": None}]}) == 0
    assert page.check_limits({"made": [row | {"epsilon": 3.0}]}) == 1


def test_the_limit_of_lip_is_that_of_two_outputs_and_reached_by_no_other_channel() -> None:
    prior, epsilon = np.array([0.7, 0.3]), 1.0
    assert largest_accuracy(prior, 0.0) == pytest.approx(0.7)
    assert largest_accuracy(prior, 20.0) == pytest.approx(1.0, abs=1e-6)
    most = largest_accuracy(prior, epsilon)
    # Two outputs: P(guess 1 | secret) is x and y. All channels within the bound, on a grid.
    best, side = 0.0, np.linspace(0, 1, 401)
    x, y = np.meshgrid(side, side)
    inside = np.ones_like(x, dtype=bool)
    for a, b in ((x, y), (1 - x, 1 - y)):
        p = prior[0] * a + prior[1] * b
        for of in (a, b):
            inside &= (of <= math.e * p + 1e-12) & (of >= p / math.e - 1e-12)
    best = float((prior[0] * x + prior[1] * (1 - y))[inside].max())
    assert best <= most + 1e-9
    assert best == pytest.approx(most, abs=0.01)
    # Guesses from a joint distribution of (known, secret, input).
    joint = np.array([[[0.4, 0.1], [0.1, 0.4]]])
    assert right_guesses(joint, np.eye(2)) == pytest.approx(0.8)
    assert right_guesses(joint, np.full((2, 2), 0.5)) == pytest.approx(0.5)


def test_pram_is_invariant_and_has_its_diagonal() -> None:
    shares, diagonal = np.array([0.6, 0.3, 0.1]), np.array([0.8, 0.9, 0.85])
    for alpha in (0.5, 1.0):
        matrix = invariant_matrix(shares, diagonal, alpha)
        assert matrix.sum(axis=1) == pytest.approx(np.ones(3))
        assert shares @ matrix == pytest.approx(shares)
    # As calcTransitionMatrix of sdcMicro (R/pram.R) computes it in R, with this diagonal in place of its random one.
    by_sdcmicro = [
        [0.909728441128, 0.0566277985075, 0.0336437603648],
        [0.113255597015, 0.8630900186567, 0.0236543843284],
        [0.201862562189, 0.0709631529851, 0.7271742848259],
    ]
    assert invariant_matrix(shares, diagonal, 0.5) == pytest.approx(np.array(by_sdcmicro), abs=1e-11)
    assert np.diag(matrix).min() < np.diag(invariant_matrix(shares, diagonal, 0.1)).min() < 1


def test_records_of_the_command_are_read_as_values_and_groups_and_kept_secrets_as_its_protocol_has_them() -> None:
    codes = np.zeros((1, 2), dtype=np.int64)
    categories = (("no", "yes"), ("?", "a", "b", "c"))
    study = Study("made", ("ill", "town"), categories, codes, (), ("yes",), ((0.0, 1.0, 2.0, 3.0),))
    towns = ["(missing)", "a", "b or others", "a"]
    table = pa.table({"ill": ["no", "yes", "yes", "no"], "town": towns})
    alone = command._alone(study, table)
    assert [of.tolist() for of in alone] == [[True, True], [True, True, False, False]]
    assert command._codes(study, alone, table).tolist() == [[0, 0], [1, 1], [1, 2], [0, 1]]
    # Two classes of different size and channel, the secret before the class.
    secrets, weights = np.array([0, 1, 0, 1]), np.array([0.4, 0.2, 0.1, 0.3])
    shown = np.array([[0.9, 0.3, 0.5, 0.2], [0.1, 0.7, 0.5, 0.8]])
    kept = command._kept(shown, secrets, weights)
    assert kept == pytest.approx(np.array([[0.82, 0.18], [0.24, 0.76]]))
    assert command._kept(shown, secrets, weights * (secrets == 0))[1].tolist() == [0, 1]


def test_usefulness_of_the_truth_is_full_and_corrections_are_right_on_average(crowd: Trial) -> None:
    release = truth(crowd, np.random.default_rng(0))
    assert set(table_errors(crowd, release, False).values()) == {0.0}
    assert regression(crowd, release).off == 0
    true = shares_of(crowd.inside, crowd.study.sizes, (0, 1))
    channel = np.array([[0.7, 0.3], [0.2, 0.8]])
    assert corrected(channel.T @ true, channel) == pytest.approx(true)
    changed = pram_all(crowd, np.random.default_rng(7))
    errors = table_errors(crowd, changed, False)
    assert 0 < errors["1-way"] < errors["2-way"] < errors["3-way"] < 0.2


def test_the_page_is_made_of_the_figures_that_were_kept() -> None:
    tables = page.rows_of(RESULTS)
    assert set(tables) == set(page.TABLES)
    text = (Path(RESULTS) / "comparison.md").read_text(encoding="utf-8")
    assert text == page.page(tables, page.FINDINGS)


def test_every_attack_is_kept_for_every_method_and_for_rare_targets_and_shown() -> None:
    text = (Path(RESULTS) / "comparison.md").read_text(encoding="utf-8")
    for rows in page.rows_of(RESULTS).values():
        for row in page.measured_rows(rows):
            for attack in {*page.SEARCHES, *row["attacks"]}:
                for who in ("all", "rare"):
                    found = page.tally_of(row, attack, who)
                    low, high = found.interval
                    assert found.guesses > 100
                    assert f"{found.gain:.2f} ({low:.2f} to {high:.2f})" in text
            # Synthetic records are nobody's, and those of the command are in random order.
            assert ("own record" in row["attacks"]) is not row["method"].startswith(
                ("CART", "MST", "AIM", "funnel init")
            )
