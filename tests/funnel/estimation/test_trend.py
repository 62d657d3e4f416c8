"""Trends: their coverage where versions are independent and where they are not, and what cannot be told."""

from __future__ import annotations

import json

import numpy as np
import pytest

from funnel import LDP, Joint, SpecError, estimate, fit
from funnel.estimation.share_estimate import Estimate
from funnel.estimation.trend import estimate_trend
from funnel.protocol import Protocol

JOINT = Joint.from_counts([[300, 100, 200], [100, 500, 100]], inputs=["u", "v", "w"])
FIRST, SECOND = fit("grr", JOINT, LDP(1.0)), fit("grr", JOINT, LDP(0.6))
PEOPLE = [np.array([400, 600, 300]), np.array([500, 550, 250]), np.array([640, 480, 180])]


def released(protocol: Protocol, people: np.ndarray, random: np.random.Generator) -> Estimate:
    channel = protocol.matrix / protocol.matrix.sum(axis=0)
    return estimate(random.multinomial(people, channel.T).sum(axis=0), protocol)


@pytest.mark.parametrize("same_people", [False, True])
def test_intervals_of_changes_hold_the_truth(same_people: bool) -> None:
    random = np.random.default_rng(4)
    truth = np.array([people / people.sum() for people in PEOPLE])
    slope = np.polyfit([0.0, 1.0, 3.0], truth, 1)[0]
    held: list[list[np.ndarray]] = [[], [], []]
    for _ in range(300):
        versions = [
            released(protocol, people, random) for protocol, people in zip((FIRST, SECOND, FIRST), PEOPLE, strict=True)
        ]
        trend = estimate_trend(versions, same_people=same_people, times=[0, 1, 3])
        for place, (change, right) in enumerate(
            ((trend.changes[0], truth[1] - truth[0]), (trend.whole, truth[2] - truth[0]), (trend.slope, slope))
        ):
            held[place].append((change.lower <= right) & (right <= change.upper))
    for one in held:
        # Four standard deviations; those that allow for any dependence are wider than independent versions need.
        assert (np.mean(one, axis=0) >= 0.95 - 0.05).all()
        assert same_people or (np.mean(one, axis=0) <= 0.95 + 0.04).all()


def test_of_the_same_people_no_dependence_is_too_strong() -> None:
    # Answers that err against each other as far as they can: what was drawn too often once is drawn too rarely next.
    random, held, alone = np.random.default_rng(8), [], []
    truth = PEOPLE[0] / PEOPLE[0].sum()
    channel = FIRST.matrix / FIRST.matrix.sum(axis=0)
    mean = channel @ PEOPLE[0]
    for _ in range(300):
        counts = random.multinomial(PEOPLE[0], channel.T).sum(axis=0)
        against = np.round(2 * mean - counts).astype(np.int64)
        years = [estimate(counts, FIRST), estimate(against, FIRST)]
        change = estimate_trend(years).whole
        held.append((change.lower <= 0) & (change.upper >= 0))
        narrow = estimate_trend(years, same_people=False).whole
        alone.append((narrow.lower <= 0) & (narrow.upper >= 0))
    assert len(truth) == 3
    assert (np.mean(held, axis=0) >= 0.95 - 0.05).all()
    assert (np.mean(alone, axis=0) < 0.9).all()


def test_cells_that_all_versions_have_are_compared_by_name() -> None:
    other = Joint.from_counts([[300, 100, 9], [100, 500, 9]], inputs=["v", "u", "x"])
    protocol = fit("grr", other, LDP(1.0))
    years = [estimate(np.array([40, 50, 10]), FIRST), estimate(np.array([45, 50, 5]), protocol)]
    trend = estimate_trend(years, versions=["2019", "2020"])
    assert trend.cells == (("u",), ("v",))
    assert trend.shares[1].tolist() == [years[1].frequencies[1], years[1].frequencies[0]]
    assert trend.whole.values == pytest.approx(trend.shares[1] - trend.shares[0])
    assert "2020" in str(trend).splitlines()[0]
    assert "any dependence" in str(trend)
    said = json.loads(json.dumps(trend.to_dict()))
    assert said["cells"][0]["values"] == ["u"]
    assert said["cells"][0]["whole"]["lower"] < said["cells"][0]["whole"]["upper"]


def test_what_one_version_cannot_tell_has_only_a_range() -> None:
    from tests.funnel.estimation.test_estimating import SINGULAR

    years = [estimate(np.array([50, 30, 20]), SINGULAR, "n"), estimate(np.array([40, 40, 20]), SINGULAR, "n")]
    for same_people in (True, False):
        trend = estimate_trend(years, same_people=same_people)
        untold = np.isnan(trend.shares[0])
        assert untold.any()
        assert np.isnan(trend.whole.values[untold]).all()
        assert trend.whole.lower[untold] == pytest.approx((years[1].lower - years[0].upper)[untold])
    assert "not told" in str(trend)
    assert trend.to_dict()["cells"][0]["whole"]["value"] is None


def test_what_makes_no_sense_is_refused_in_a_sentence() -> None:
    one = estimate(np.array([40, 50, 10]), FIRST)
    other = Joint.from_counts([[3, 1], [1, 5]], inputs=["a", "b"])
    with pytest.raises(SpecError, match="at least two versions"):
        estimate_trend([one])
    with pytest.raises(SpecError, match="no value of X in common"):
        estimate_trend([one, estimate(np.array([4, 5]), fit("grr", other, LDP(1.0)))])
    with pytest.raises(SpecError, match="different settings"):
        estimate_trend([one, estimate(np.array([40, 50, 10]), FIRST, sampling=True)])
    with pytest.raises(SpecError, match="rising times"):
        estimate_trend([one, one], times=[2, 1])
    with pytest.raises(SpecError, match="as many names"):
        estimate_trend([one, one], versions=["only one"])
