"""Means, totals and quantiles: their coverage over simulated releases, and what cannot be told."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from funnel import LDP, LIP, Joint, Protocol, SpecError, estimate, fit
from funnel.alphabet import Alphabet
from funnel.estimation.means import estimate_numbers
from funnel.estimation.number_estimate import NumberEstimate
from funnel.rounding import integer_weights

AGES = ("19", "27", "33", "48", "61")
INPUTS = Alphabet(("sex", "age"), tuple((sex, age) for sex in "fm" for age in AGES))
PEOPLE = np.array([300, 260, 120, 90, 30, 25, 15, 20, 10, 30])
ILL = np.array([290, 10, 110, 5, 29, 2, 14, 1, 9, 2])
GRR = fit("grr", Joint(np.stack([ILL, PEOPLE - ILL]), Alphabet(("s",), (("ill",), ("well",))), INPUTS), LDP(1.0))
NUMBER = np.array([float(symbol[1]) for symbol in INPUTS.symbols])


def drawn(random: np.random.Generator) -> np.ndarray:
    channel = GRR.matrix / GRR.matrix.sum(axis=0)
    return np.asarray(random.multinomial(PEOPLE, channel.T).sum(axis=0))


def quantile(people: np.ndarray, q: float) -> float:
    every = np.repeat(NUMBER[np.argsort(NUMBER, kind="stable")], people[np.argsort(NUMBER, kind="stable")])
    return float(every[int(np.ceil(q * len(every))) - 1])


@pytest.mark.parametrize("by", [None, "sex"])
def test_nineteen_of_twenty_intervals_hold_the_truth(by: str | None) -> None:
    random = np.random.default_rng(5)
    parts = [np.ones(10, dtype=bool)] if by is None else [np.arange(10) < 5, np.arange(10) >= 5]
    means = np.array([(NUMBER * PEOPLE)[part].sum() / PEOPLE[part].sum() for part in parts])
    totals = np.array([(NUMBER * PEOPLE)[part].sum() for part in parts])
    quantiles = np.array([[quantile(np.where(part, PEOPLE, 0), q) for q in (0.25, 0.5, 0.75)] for part in parts])
    held: dict[str, list[np.ndarray]] = {"mean": [], "total": [], "quantile": []}
    for _ in range(300):
        found = estimate_numbers(drawn(random), GRR, "age", by)
        held["mean"].append((found.mean_lower <= means) & (means <= found.mean_upper))
        held["total"].append((found.total_lower <= totals) & (totals <= found.total_upper))
        held["quantile"].append((found.quantile_lower <= quantiles) & (quantiles <= found.quantile_upper))
        assert ((found.mean_lower <= found.means) & (found.means <= found.mean_upper)).all()
    # Four standard deviations of 300.
    assert np.mean(held["mean"], axis=0) == pytest.approx(0.95, abs=0.05)
    assert np.mean(held["total"], axis=0) == pytest.approx(0.95, abs=0.05)
    assert (np.mean(held["quantile"], axis=0) >= 0.95 - 0.05).all()


@given(st.lists(st.integers(0, 60), min_size=10, max_size=10).filter(lambda counts: sum(counts) > 0))
def test_a_mean_is_that_of_the_estimated_shares(counts: list[int]) -> None:
    found = estimate_numbers(np.array(counts), GRR, "age")
    shares = estimate(np.array(counts), GRR, "age")
    ages = np.array([float(cell[0]) for cell in shares.cells])
    assert found.means[0] == pytest.approx(float(ages @ shares.frequencies))
    assert found.totals[0] == pytest.approx(sum(counts) * found.means[0])
    assert found.mean_lower[0] <= found.means[0] <= found.mean_upper[0]
    assert (found.quantile_lower <= found.quantiles).all()
    assert (found.quantiles <= found.quantile_upper).all()
    assert (np.diff(found.quantiles[0]) >= 0).all()


def test_a_public_column_makes_groups_that_are_estimated_by_themselves() -> None:
    random = np.random.default_rng(2)
    counts = drawn(random), drawn(random)
    tables = [
        pd.DataFrame(list(GRR.outputs.symbols), columns=list(GRR.outputs.columns)).loc[np.repeat(np.arange(10), some)]
        for some in counts
    ]
    both = pd.concat([tables[0].assign(region="north"), tables[1].assign(region="south")])
    found = estimate_numbers(both, GRR, "age", ["sex", "region"])
    assert found.cells == (("f", "north"), ("m", "north"), ("f", "south"), ("m", "south"))
    alone = estimate_numbers(counts[1], GRR, "age", "sex")
    np.testing.assert_allclose(found.means[2:], alone.means)
    np.testing.assert_allclose(found.mean_upper[2:], alone.mean_upper)
    np.testing.assert_allclose(found.totals[2:], alone.totals)


def test_intervals_are_taken_for_their_middles_and_it_is_said_what_that_may_change() -> None:
    counts = drawn(np.random.default_rng(7))
    bins = {age: (float(age) - 2.0, float(age) + 2.0) for age in AGES}
    found, plain = estimate_numbers(counts, GRR, "age", numbers=bins), estimate_numbers(counts, GRR, "age")
    assert found.means == pytest.approx(plain.means)
    assert found.within[0] == pytest.approx(2.0)
    assert plain.within[0] == 0
    assert "changes a mean by at most 2" in found.about
    assert "middles" not in plain.about
    assert (np.abs(found.quantiles - plain.quantiles) <= 2.0 + 1e-9).all()
    assert set(found.quantile_lower.ravel()) <= {float(age) - 2 for age in AGES}


def test_records_without_a_number_are_left_out_of_means_and_add_nothing_to_totals() -> None:
    joint = Joint.from_counts([[30, 10, 20], [10, 30, 20]], inputs=["10", "20", "(missing)"])
    every = fit("grr", joint, LDP(30.0))
    found = estimate_numbers(np.array([40, 40, 40]), every, "X")
    assert found.means[0] == pytest.approx(15)
    assert found.totals[0] == pytest.approx(1200, rel=1e-6)
    of_all = estimate_numbers(np.array([40, 40, 40]), every, "X", numbers={"(missing)": 0.0})
    assert of_all.means[0] == pytest.approx(10)


def test_what_the_records_cannot_tell_is_not_told() -> None:
    # 10 and 30 are published alike, so that only their sum is told.
    weights = integer_weights(np.array([[0.9, 0.1, 0.9], [0.1, 0.9, 0.1]]))
    inputs = Alphabet(("x",), (("10",), ("20",), ("30",)))
    alike = Protocol(weights, weights[:, 0], inputs, Alphabet(("x",), (("10",), ("20",))), "test", "lip:9")
    found = estimate_numbers(np.array([60, 40]), alike, "x")
    assert np.isnan(found.means[0])
    assert np.isnan(found.mean_errors[0])
    assert (found.mean_lower[0], found.mean_upper[0]) == (10, 30)
    assert (found.quantile_lower == 10).all()
    assert (found.quantile_upper == 30).all()
    assert np.isnan(found.quantiles).all()
    assert not found.told.any()
    assert str(found).splitlines()[1].split() == ["nothing", "is", "told", "–", "not", "told", "10", "30"]
    cell = found.to_dict()["cells"][0]
    assert cell["mean"]["value"] is None
    # Where both stand for the same number there is nothing to tell apart.
    same = estimate_numbers(np.array([60, 40]), alike, "x", numbers={"30": 10.0})
    assert same.means[0] == pytest.approx(10 + 10 * (0.4 - 0.1) / 0.8)


def test_a_cell_of_which_every_interval_is_everything_has_one_row() -> None:
    """Whatever figures a fit has for it: nobody is to read them as if they said something."""
    few = estimate_numbers(np.array([0, 0, 1, 0, 0, 0, 0, 0, 0, 0]), GRR, "age", "sex", quantiles=[0.5])
    assert np.isfinite(few.means[0])
    assert (few.mean_lower[0], few.mean_upper[0]) == (19, 61)
    assert not few.told.any()
    assert [line.split() for line in str(few).splitlines()[1:-1]] == [
        [sex, "nothing", "is", "told", "–", "not", "told", "19", "61"] for sex in "fm"
    ]
    # And of a cell of which something is told every row that says nothing says so.
    half = estimate_numbers(drawn(np.random.default_rng(3)), GRR, "age", "sex", quantiles=[0.5])
    assert half.told.tolist() == [[True, True, True], [False, True, False]]
    assert np.isfinite([half.means, half.quantiles[:, 0]]).all()
    assert ["not told" in line for line in str(half).splitlines()[1:-1]] == [False, False, False, True, False, True]


def test_what_is_known_of_the_only_number_is_told() -> None:
    one = Joint.from_counts([[300, 60], [100, 540]], inputs=["20", "(missing)"])
    found = estimate_numbers(np.array([430, 570]), fit("grr", one, LIP(0.5)), "X")
    assert (found.mean_lower[0], found.mean_upper[0]) == (20, 20)
    assert found.told[0, [0, 2, 3, 4]].all()


def test_a_rare_value_widens_what_it_can_change() -> None:
    counts = drawn(np.random.default_rng(9))
    rare = ("m", "61")
    found = estimate_numbers(counts, GRR, "age", at_most={rare: 0.05})
    plain = estimate_numbers(counts, GRR, "age")
    assert (found.mean_upper - found.mean_lower)[0] > 0
    truth = float(NUMBER @ PEOPLE / PEOPLE.sum())
    assert found.mean_lower[0] <= truth <= found.mean_upper[0]
    assert found.mean_errors[0] < plain.mean_errors[0]


def test_it_prints_as_a_table_and_says_itself_in_json() -> None:
    found = estimate_numbers(drawn(np.random.default_rng(1)), GRR, "age", "sex", quantiles=[0.5])
    assert isinstance(found, NumberEstimate)
    lines = str(found).splitlines()
    assert lines[0].split() == ["sex", "of", "age", "estimate", "error", "from", "to"]
    assert [line.split()[:2] for line in lines[1:4]] == [["f", "mean"], ["f", "total"], ["f", "50%"]]
    said = json.loads(json.dumps(found.to_dict()))
    assert said["cells"][1]["values"] == ["m"]
    assert said["cells"][1]["quantiles"][0]["at"] == 0.5
    assert said["cells"][0]["mean"]["lower"] <= said["cells"][0]["mean"]["value"] <= said["cells"][0]["mean"]["upper"]


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"of": "height"}, "'height' is none of the protocol's columns, sex, age"),
        ({"of": "sex"}, "no value of 'sex' stands for a number"),
        ({"of": "age", "by": "age"}, "'age' is what is estimated"),
        ({"of": "age", "by": "region"}, "'region' is no column"),
        ({"of": "age", "by": ["sex", "sex"]}, "name columns once each"),
        ({"of": "age", "quantiles": [1.0]}, "shares between 0 and 1"),
        ({"of": "age", "confidence": 95}, "between 0 and 1"),
        ({"of": "age", "method": "guess"}, "unknown method 'guess'"),
        ({"of": "age", "numbers": {"18": 1.0}}, "'18' is no value of 'age'"),
        ({"of": "age", "numbers": {"19": (1.0, 30.0)}}, "the intervals of 'age' overlap"),
        ({"of": "age", "numbers": {"19": (3.0, 1.0)}}, "'19' of 'age' stands for no interval"),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_sentence(settings: dict[str, object], reason: str) -> None:
    with pytest.raises(SpecError, match=reason):
        estimate_numbers(PEOPLE, GRR, **settings)  # type: ignore[arg-type]
