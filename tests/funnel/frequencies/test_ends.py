"""The ends of what noise is asked: tails that floats cannot tell, tables that nothing helps, searches without time."""

from __future__ import annotations

import decimal
import math
from fractions import Fraction

import numpy as np
import pytest

import funnel
from funnel import LIP, Joint
from funnel.frequencies import helping, noise_forecast
from funnel.frequencies.helping import MAX_ROWS, Help, expected
from funnel.frequencies.limits import _least_power, _negative_binomial
from funnel.frequencies.noise import Noise
from funnel.frequencies.noise_forecast import Cost, NoiseForecast, forecast_noise
from funnel.sample_size import rarest_together
from funnel.settings.protection_settings import FrequencySettings

# Two values of the secret that hardly anybody has.
RARE = Joint.from_counts([[4000, 2000], [1800, 2400], [12, 6], [5, 8]], secret=["ill", "well", "rare", "odd"])


@pytest.mark.parametrize("k", [1, 2, 5, 11])
def test_a_tail_that_is_missed_by_less_than_floats_tell_takes_one_more(k: int) -> None:
    """α = e^-40, and a tail that is α^k less one part in 10^17: α^k/(1 + α) is above it by 6 parts in 10^18."""
    scale = 0.025
    with decimal.localcontext(prec=80):
        power = (-k / decimal.Decimal(scale)).exp()
        less = Fraction(power) * (1 - Fraction(1, 10**17))
        more = Fraction(power) * (1 - Fraction(1, 10**18))
    assert _least_power(scale, 1, less) == k + 1
    assert _least_power(scale, 1, more) == k


@pytest.mark.parametrize(("scale", "a"), [(0.0735, 518), (0.0805, 2900), (0.0618, 2)])
def test_a_distribution_that_reaches_further_than_is_guessed_is_looked_at_further(scale: float, a: int) -> None:
    """So little noise that the first reach leaves out too much: it is doubled until what is left out is negligible."""
    distribution, outside, _ = _negative_binomial(scale, a, 1e-30)
    assert outside <= 1e-30
    alpha = math.exp(-1 / scale)
    by_hand = [math.comb(a + j - 1, j) * alpha**j * (1 - alpha) ** a for j in range(len(distribution))]
    assert distribution == pytest.approx(by_hand, rel=1e-12)


def test_records_are_multiplied_until_they_are_enough_or_cannot_be_had() -> None:
    for enough in (RARE.n + 1, 3 * RARE.n, 40 * RARE.n, 3000 * RARE.n):
        found = helping._records(RARE, lambda table, enough=enough: table.n >= enough)
        assert found is not None
        assert enough <= found <= 1.2 * enough
    assert helping._records(RARE, lambda table: table.n >= MAX_ROWS) is None


def test_the_rarest_values_are_made_one_until_that_helps() -> None:
    assert rarest_together(RARE, lambda table: len(table.secret) == 3) == ("odd", "rare")
    assert rarest_together(RARE, lambda table: len(table.secret) == 2) == ("odd", "rare", "well")
    assert rarest_together(RARE, lambda _: False) == ()


def told(helps: Help, kept: tuple[float, ...]) -> str:
    """The sentence of a table that is too small at epsilon 1, with what would be kept at larger ones."""
    epsilons = tuple(float(k + 1) for k in range(len(kept)))
    costs = [Cost(100, None, 0.5, 0.5, 1.0, None)]
    costs += [Cost(100, epsilon, share, share, 1.0, 2.0) for epsilon, share in zip(epsilons, kept, strict=True)]
    found = NoiseForecast("lip:1.0", 100, 1.0, 0.01, epsilons, (100,), tuple(costs), helps, ("S",))
    assert found.sentence is not None
    return found.sentence.partition("; ")[2]


@pytest.mark.parametrize(
    ("helps", "kept", "said"),
    [
        (Help(0.25, 900, (), None), (0.1, 0.2), "at least 25.0% would be kept with about 900 records with the same"),
        (Help(0.25, None, ("a", "b"), None), (0.1, 0.2), "at least 25.0% would be kept with the values a, b of S made"),
        (Help(0.25, None, (), None), (0.1, 0.3), "at least 25.0% would be kept with an epsilon of 2"),
        (Help(0.25, None, (), None), (0.1, 0.2), "neither more records with the same frequencies nor rare values made"),
    ],
)
def test_only_what_would_help_is_said_to(helps: Help, kept: tuple[float, ...], said: str) -> None:
    assert told(helps, kept).startswith(said)


def test_hardly_anything_is_nothing() -> None:
    assert Cost(100, 1.0, 1e-5, 1e-4, 1.0, 2.0).share == "nothing"
    assert Cost(100, 1.0, 1e-5, 0.3, 1.0, 2.0).share == "nothing to 30.0%"
    assert Cost(100, 1.0, 0.01, 0.01, 1.0, 2.0).share == "1.0%"


@pytest.mark.parametrize("helps", [None, Help(0.2, 900, (), None)], ids=["nothing", "records alone"])
def test_values_are_made_one_only_where_that_helps(helps: Help | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noise_forecast, "what_would_help", lambda *_: helps)
    monkeypatch.setattr(noise_forecast, "made_one", lambda *_: pytest.fail("no values are named"))
    settings = FrequencySettings(protection="noise", epsilon=1.0, beta=0.01)
    found = forecast_noise(RARE, LIP(0.8), settings, epsilons=(), sizes=(), seconds=0.05)
    assert found is not None
    assert found.help == helps


def test_a_protocol_that_was_found_before_is_taken_where_a_search_without_time_finds_none_as_good() -> None:
    counts = np.random.default_rng(7).integers(20, 90, size=(4, 9))
    known = expected(Joint.from_counts(counts), Noise(1.0, 0.0, 0.01))
    found = funnel.optimal(known, LIP(0.6), 1e-3).protocol
    best, most = noise_forecast._best(known, LIP(0.6), [found], 1e-9)
    assert best is found
    alone, _ = noise_forecast._best(known, LIP(0.6), [], 1e-9)
    kept = [funnel.measures.normalised_mutual_information(known, one) for one in (alone, found)]
    assert kept[0] < kept[1] <= most
