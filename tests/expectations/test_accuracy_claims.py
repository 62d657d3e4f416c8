"""What a report tells of errors of estimates is what least squares on the weights and rounded shares give."""

from __future__ import annotations

import copy
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from funnel import LIP, Joint, Protocol, fit
from funnel.alphabet import Alphabet
from funnel.estimation.estimation_utility import utility_of_estimates
from funnel.estimation.share_information import ShareInformation
from funnel.frequencies.averages import NoisyAverages
from funnel.pipeline.expectations import accuracy_claims as accuracy
from funnel.pipeline.expectations.accuracy_claims import Estimating, accuracy_claims, utility_share
from funnel.protocol import DENOMINATOR
from funnel.release.public.public_distributions import PublicDistributions
from funnel.release.public.rounding import rounded_up
from funnel.release.public_accuracy import PublicAccuracy, estimated
from tests.expectations.test_distributions import distributions_of
from tests.public import counted

INPUTS = Alphabet(("x", "n"), tuple((x, n) for x in "ab" for n in "123"))
JOINT = Joint(
    np.array([[300, 200, 100, 50, 400, 0], [100, 300, 100, 90, 10, 60]]),
    Alphabet(("s",), (("ill",), ("well",))),
    INPUTS,
)


def singular() -> Protocol:
    """Of the second column, 1 and 2 are told together."""
    matrix = np.array([[3, 3, 0, 1, 1, 0], [1, 1, 0, 3, 3, 0], [0, 0, 4, 0, 0, 4]]).astype(np.uint64)
    weights = matrix * np.uint64(DENOMINATOR // 4)
    return Protocol(weights, weights[:, 2], INPUTS, Alphabet(("x", "n"), INPUTS.symbols[:3]), "test", "lip:9")


def told(
    protocol: Protocol, joint: Joint = JOINT, records: int | None = None, noise: NoisyAverages | None = None
) -> dict[str, Any]:
    """What the report has of it."""
    distributions = PublicDistributions.of(counted(joint), protocol)
    found = PublicAccuracy.of(distributions, records or joint.n, departures=noise)
    assert found is not None
    rows = [
        {"label": label, "error": None if np.isnan(error) else float(error)}
        for label, error in zip(joint.inputs.labels, found.errors, strict=True)
    ]
    tables = estimated(found.tables, partial(rounded_up, digits=2))
    unknown = int(np.isnan(found.errors).sum())
    return {
        "accuracy": {"rows": rows, "unknown": unknown},
        "estimated": [table.model_dump(mode="json") for table in tables],
    }


def failures(
    numbers: dict[str, Any],
    protocol: Protocol,
    joint: Joint = JOINT,
    records: int | None = None,
    departures: float | None = None,
) -> list[str]:
    claims = accuracy_claims(numbers, distributions_of(joint, protocol), records or joint.n, departures=departures)
    return [one.name for one in claims if one.failure is not None]


PROTOCOLS = [fit(name, JOINT, LIP(0.4)) for name in ("grr", "optimal", "subset-merging", "optimal-with-secret")]


@pytest.mark.parametrize("protocol", [*PROTOCOLS, singular()], ids=lambda one: one.mechanism)
def test_what_is_told_is_what_follows(protocol: Protocol) -> None:
    assert failures(told(protocol), protocol) == []


@pytest.mark.parametrize("protocol", [*PROTOCOLS[:3], singular()], ids=lambda one: one.mechanism)
def test_the_noise_of_departures_and_all_records_are_in_what_is_told(protocol: Protocol) -> None:
    noise = NoisyAverages(0.25, np.zeros(len(protocol.outputs), dtype=np.int64), 3 << 20)
    numbers, records = told(protocol, records=5 * JOINT.n, noise=noise), 5 * JOINT.n
    assert failures(numbers, protocol, records=records, departures=noise.scale) == []
    for said in (
        {"records": records},
        {"departures": noise.scale},
        {"records": records, "departures": noise.scale / 2},
    ):
        assert any(name.startswith("error of ") for name in failures(numbers, protocol, **said))


@pytest.mark.parametrize(
    ("place", "value", "failure"),
    [
        (("accuracy", "rows", 0, "error"), 0.0, "error of"),
        (("accuracy", "rows", 0, "error"), None, "error of"),
        (("accuracy", "unknown"), 1, "unknown"),
        (("accuracy",), None, "accuracy"),
        (("estimated",), [], "tables"),
        (("estimated", 0, "typical"), 0.0001, "typical error of x"),
        (("estimated", 0, "typical"), None, "typical error of x"),
        (("estimated", 2, "largest"), 0.5, "largest error of x × n"),
        (("estimated", 1, "rows", 0, "error"), 0.00001, "error of n"),
        (("estimated", 1, "rows", 0, "label"), "9", "n '9'"),
        (("estimated", 1, "rows"), [], "rows of n"),
        (("estimated", 1, "cells"), 2, "cells of n"),
        (("estimated", 1, "unknown"), 1, "unknown of n"),
        (("estimated", 1, "sums"), [["1", "2"]], "sums of n"),
    ],
)
def test_anything_else_is_noticed(place: tuple[Any, ...], value: Any, failure: str) -> None:
    protocol = PROTOCOLS[0]
    numbers = copy.deepcopy(told(protocol))
    *way, last = place
    part: Any = numbers
    for step in way:
        part = part[step]
    assert part[last] != value
    part[last] = value
    assert any(name.startswith(failure) for name in failures(numbers, protocol))


def test_a_sum_that_cannot_be_told_is_noticed() -> None:
    protocol = singular()
    numbers = told(protocol)
    assert numbers["estimated"][1]["sums"] == [["1", "2"]]
    numbers["estimated"][1]["sums"] = [["1"], ["2"]]
    assert failures(numbers, protocol) == ["sum in n", "sum in n"]


def test_of_too_many_values_nothing_may_be_told(monkeypatch: pytest.MonkeyPatch) -> None:
    protocol = PROTOCOLS[0]
    monkeypatch.setattr(accuracy, "_MOST_WORK", 10.0)
    assert failures({"accuracy": None, "estimated": []}, protocol) == []
    assert failures(told(protocol), protocol) == ["accuracy", "estimated"]


@pytest.mark.parametrize("protocol", [*PROTOCOLS, singular()], ids=lambda one: one.mechanism)
def test_what_records_are_worth_is_what_the_choice_was_made_by(protocol: Protocol) -> None:
    worth = utility_of_estimates(JOINT, protocol)
    assert utility_share(distributions_of(JOINT, protocol), False) == pytest.approx(worth, abs=1e-9)
    # Where some share cannot be told, no number of records tells it.
    assert (worth == 0) == (protocol.mechanism in ("test", "subset-merging"))


ANSWERS = Alphabet(("x",), (("no",), ("yes",)))
# Few records: the rounding of a variance, which is the same for any number, is the larger an error.
FEW = Joint(np.array([[81, 1], [34, 4]]), JOINT.secret, ANSWERS)


def all_but_exact(moved: int) -> Protocol:
    """Of 2⁶³ draws, as many tell the other answer."""
    weights = np.array([[DENOMINATOR - moved, moved], [moved, DENOMINATOR - moved]], dtype=np.uint64)
    return Protocol(weights, weights[:, 1], ANSWERS, ANSWERS, "test", "lip:9")


@pytest.mark.parametrize("moved", [0, 1, 2**10])
@given(counts=st.lists(st.integers(1, 100), min_size=4, max_size=4))
@example([81, 1, 34, 4])
@settings(max_examples=40)
def test_an_error_of_nothing_is_told_as_zero_whatever_rounding_makes_of_it(moved: int, counts: list[int]) -> None:
    joint = Joint(np.array(counts).reshape(2, 2), JOINT.secret, ANSWERS)
    numbers = told(all_but_exact(moved), joint)
    assert [row["error"] for row in numbers["accuracy"]["rows"]] == [0, 0]
    assert failures(numbers, all_but_exact(moved), joint) == []


@pytest.mark.parametrize("false", [None, 1e-7, 0.01])
def test_no_other_error_of_an_exact_answer_is_believed(false: float | None) -> None:
    numbers = told(all_but_exact(0), FEW)
    numbers["accuracy"]["rows"][0]["error"] = false
    assert failures(numbers, all_but_exact(0), FEW) == ["error of 'no'"]


@given(st.integers(26, 61))
def test_a_small_error_is_no_error_of_nothing(power: int) -> None:
    """From a share of 2⁻³⁷ of wrong answers on; the error of both answers is what the wrong ones add."""
    protocol = all_but_exact(2**power)
    numbers = told(protocol, FEW)
    assert failures(numbers, protocol, FEW) == []
    share = 2.0 ** (power - 63)
    exact = np.sqrt(share * (1 - share) / 120) / (1 - 2 * share)
    for row in numbers["accuracy"]["rows"]:
        assert exact * (1 - 1e-3) <= row["error"] <= exact * 1.1
        for false in (0.0, row["error"] / 2, row["error"] * 2):
            with pytest.MonkeyPatch.context() as patch:
                patch.setitem(row, "error", float(f"{false:.1e}"))
                assert len(failures(numbers, protocol, FEW)) == 1


def test_values_that_are_told_only_together_are_so_for_the_second_computation() -> None:
    """Channels with columns that differ by about as much as what is taken for nothing, where the two could disagree."""
    random = np.random.default_rng(29)
    sums = 0
    for _ in range(1500):
        a = int(random.integers(3, 12))
        kinds = random.dirichlet(np.full(a, 0.7), int(random.integers(1, 4)))
        channel = kinds[random.integers(0, len(kinds), a)].T
        least = random.uniform(-8, -1)
        channel = channel + 10 ** random.uniform(least, least + 2, a) * random.normal(size=channel.shape)
        channel = np.maximum(channel, 1e-12)
        channel /= channel.sum(axis=0)
        shares = random.dirichlet(np.full(a, 0.3)) + 1e-5
        shares /= shares.sum()
        made = ShareInformation.of(channel, shares, 1000)
        assert made is not None
        again = Estimating(channel.T.tolist(), shares.tolist(), 1000)
        told = [error for error in again.errors([[x] for x in range(a)]) if error is not None]
        for group in made.only_in_sum(np.arange(a), a):
            sums += 1
            assert again.can_be_estimated(group, len(told))
    assert sums > 500


@pytest.mark.parametrize("tilt", [1e-5, 1e-4, 1e-3, 2e-3, 3e-3, 1e-2])
def test_what_a_sum_of_values_lacks_that_is_told_the_others_may_lack_too(tilt: float) -> None:
    """Three values with two of another: what is told of the third is tilted into a difference within the first."""
    contrast, within = np.array([-1, -1, -1, -1, 2, 2]) / np.sqrt(12), np.array([1, -1, 0, 0, 0, 0]) / np.sqrt(2)
    told = np.cos(tilt) * contrast + np.sin(tilt) * within
    channel = 0.5 + 0.2 * np.array([told, -told])
    shares, cells = np.full(6, 1 / 6), np.repeat(np.arange(3), 2)
    made = ShareInformation.of(channel, shares, 1000)
    assert made is not None
    again = Estimating(channel.T.tolist(), shares.tolist(), 1000)
    alone = [error for error in again.errors([[0, 1], [2, 3], [4, 5]]) if error is not None]
    groups = made.only_in_sum(cells, 3)
    assert sorted(one for group in groups for one in group) == ([0, 1] if alone else [0, 1, 2])
    for group in groups:
        assert again.can_be_estimated([x for x in range(6) if cells[x] in group], len(alone))


def test_a_part_of_what_is_told_only_together_is_not_told() -> None:
    channel = [[0.5, 0.5, 0.0], [0.5, 0.5, 0.0], [0.0, 0.2, 0.8]]
    again = Estimating(channel, [0.3, 0.3, 0.4], 1000)
    assert again.can_be_estimated([0, 1], 1)
    assert not again.can_be_estimated([0], 1)
    assert not again.can_be_estimated([0, 2], 1)
