"""What the pages say of protected frequencies is what the benchmark found; and its attacks are no toys."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import protection
from benchmarks.unmasking import deduced
from funnel.frequencies import public_counts as room
from funnel.joint import IntArray, Joint
from funnel.mechanisms import fit
from funnel.release.public.rounding import public_shares, share_step
from tests.crowds import EIGHT, eight_columns

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results"
# 412 people of six kinds: no cell is below ten.
TABLE = Joint.from_counts([[41, 73, 12, 30], [59, 28, 47, 122]])


@pytest.fixture(scope="module")
def results() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((RESULTS / "protection.json").read_text(encoding="utf-8"))
    return found


@pytest.fixture
def seeded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same noise in every run: a discrete Laplace variable is the difference of two geometric ones."""
    rng = np.random.default_rng(7)

    def draw(size: int, epsilon: float, key: bytes | None) -> IntArray:
        stop = 1 - math.exp(-epsilon)
        return np.asarray(rng.geometric(stop, size) - rng.geometric(stop, size), dtype=np.int64)

    monkeypatch.setattr(room, "draw_noise", draw)


def test_the_page_of_results_is_that_of_the_results(results: dict[str, Any]) -> None:
    assert (RESULTS / "protection.md").read_text(encoding="utf-8") == protection.page_of(results)


def test_limitations_quotes_the_results(results: dict[str, Any]) -> None:
    said = " ".join((ROOT / "docs" / "limitations-figures.md").read_text(encoding="utf-8").split())
    for sentence in protection.quoted(results):
        assert sentence in said, sentence


def test_no_measured_attack_is_above_what_noise_allows(results: dict[str, Any]) -> None:
    for name in protection.TABLES:
        noise, most = results[name]["noise"], results[name]["noise"]["optimum"]
        for attack in noise.keys() - {"optimum"}:
            assert noise[attack]["low"] <= most[attack.partition(",")[0]], (name, attack)
        assert results[name]["by the bound"]["noise"]["low"] <= most["secret"]
        # The best attack reaches it.
        for attack in ("secret", "cell", "counts"):
            assert noise[attack]["low"] <= most[attack] <= noise[attack]["high"], (name, attack)


@pytest.mark.parametrize(("epsilon", "cells", "reach"), [(1.0, 2, 40), (0.5, 2, 60), (1.0, 3, 25), (2.0, 3, 15)])
def test_the_optimum_is_that_of_all_noisy_counts(epsilon: float, cells: int, reach: int) -> None:
    """Summed over everything that can be seen: of each noisy table the likeliest cell."""
    values = np.arange(-reach, reach + 1)
    alpha = math.exp(-epsilon)
    away, there = ((1 - alpha) / (1 + alpha) * alpha ** np.abs(values - k) for k in (0, 1))
    total = np.zeros((len(values),) * cells)
    for person in range(cells):
        likelihood = np.ones(())
        for cell in range(cells):
            likelihood = np.multiply.outer(likelihood, there if cell == person else away)
        total = np.maximum(total, likelihood)
    assert protection.optimum(epsilon, cells) == pytest.approx(total.sum() / cells, abs=1e-6)


def test_the_optimum_of_two_is_that_of_differential_privacy() -> None:
    for epsilon in (0.1, 1.0, 3.0):
        assert protection.optimum(epsilon, 2) == pytest.approx(1 / (1 + math.exp(-epsilon)))


def test_without_noise_everybody_is_told() -> None:
    """The attack is no toy: every secret of every value has files of its own, whether values are grouped or not."""
    small = Joint.from_counts([[41, 73, 12, 3], [59, 28, 47, 122]])
    for protected in ("none", "threshold"):
        assert protection.without_noise(small, protected, range(4))["share"] == 1.0
    assert protection.grouped(small).counts.shape == (2, 3)


@pytest.mark.usefixtures("seeded")
def test_with_noise_the_best_attack_reaches_the_optimum_and_none_is_above() -> None:
    found = protection.under_noise(TABLE, 120, np.random.default_rng(1))
    most = found["optimum"]
    for attack in found.keys() - {"optimum"}:
        assert found[attack]["low"] <= most[attack.partition(",")[0]], attack
    for attack in ("secret", "cell", "counts"):
        assert found[attack]["low"] <= most[attack] <= found[attack]["high"], attack
    # Far from what is told without noise, and not nothing either.
    assert 0.55 < found["secret"]["share"] < 0.9


def test_people_who_are_alone_in_their_values_are_unmasked_and_groups_are_not() -> None:
    """Weights, and rounded shares of the secret."""
    joint, more = (Joint.from_table(eight_columns(people), ["disease"], list(EIGHT)) for people in (300, 1000))
    found = {}
    for name, public in (("none", joint), ("threshold", protection.grouped(more))):
        protocol = fit("optimal", public, protection.GUARANTEE)
        weights = protocol.weights_for(public.inputs) / float(protocol.denominator)
        found[name] = deduced(weights, public_shares(public.p_secret, share_step(public.n)), public.n)
    assert len(found["none"]) > 250
    assert all(joint.counts[s, x] > 0 for x, s in found["none"].items())
    assert found["threshold"] == {}


def test_counts_are_guessed_as_often_as_said() -> None:
    """Over all noise, cell by cell: exactly, unless the count is below zero with it."""
    alpha = math.exp(-1.0)
    distribution = {k: (1 - alpha) / (1 + alpha) * alpha ** abs(k) for k in range(-60, 61)}
    for counts in itertools.product((0, 1, 5), repeat=2):
        hit = np.mean([sum(p for k, p in distribution.items() if max(n + k, 0) == n) for n in counts])
        assert protection.count_optimum(1.0, np.array(counts)) == pytest.approx(float(hit), abs=1e-9)
