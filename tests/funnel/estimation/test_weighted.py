"""Weighted frequencies: right without noise, right on average with it, with intervals that hold, and honest limits."""

from __future__ import annotations

import re
import shutil
import subprocess
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import funnel
from funnel.errors import DataError, SpecError
from funnel.estimation.weighted import estimate_weighted
from funnel.joint import FloatArray, IntArray

VALUES, CLASSES = ("a", "b", "c"), ("low", "middle", "high")
NUMBERS = {"low": (1.0, 0.5, 1.5), "middle": (2.5, 1.5, 3.0), "high": (6.0, 3.0, 10.0)}
COUNTS = np.array([[900, 100, 500, 300, 100, 30, 60, 50, 90], [300, 200, 900, 100, 400, 60, 20, 80, 40]])
MEANS = np.array([NUMBERS[k][0] for k in CLASSES])


@pytest.fixture(scope="module")
def joint() -> funnel.Joint:
    symbols = tuple(product(VALUES, CLASSES))
    return funnel.Joint.from_counts(COUNTS, inputs=funnel.Alphabet(("x", "weight"), symbols))


def truth(counts: IntArray) -> FloatArray:
    table = counts.sum(axis=0).reshape(3, 3) @ MEANS
    return np.asarray(table / table.sum())


def drawn(joint: funnel.Joint, protocol: funnel.Protocol, random: np.random.Generator) -> IntArray:
    channel = protocol.matrix / protocol.matrix.sum(axis=0)
    people = joint.counts.sum(axis=0)
    return np.asarray(random.multinomial(people, channel.T).sum(axis=0))


def test_of_records_as_they_are_it_is_the_weighted_share(joint: funnel.Joint) -> None:
    protocol = funnel.fit("optimal", joint, funnel.LIP(20.0))
    assert protocol.size == (9, 9)
    order = [protocol.outputs.symbols.index(symbol) for symbol in joint.inputs.symbols]
    counts = np.zeros(9, dtype=np.int64)
    counts[order] = joint.counts.sum(axis=0)
    found = estimate_weighted(counts, protocol, "weight", NUMBERS)
    assert found.cells == (("a",), ("b",), ("c",))
    assert found.frequencies == pytest.approx(truth(COUNTS), abs=1e-6)
    assert found.errors == pytest.approx(0, abs=1e-9)
    # By hand: the value as heavy as its classes allow, all others as light.
    table = COUNTS.sum(axis=0).reshape(3, 3)
    low, high = (np.array([NUMBERS[k][place] for k in CLASSES]) for place in (1, 2))
    largest = table[0] @ high / (table[0] @ high + table[1:].sum(axis=0) @ low)
    assert found.largest[0] == pytest.approx(largest, abs=1e-6)
    # Weights as they may be in truth are never outside.
    random = np.random.default_rng(1)
    for _ in range(50):
        totals = (table * random.uniform(low, high, (3, 3))).sum(axis=1)
        assert (found.least - 1e-9 <= totals / totals.sum()).all()
        assert (totals / totals.sum() <= found.largest + 1e-9).all()


@pytest.mark.parametrize(("mechanism", "epsilon"), [("grr", 0.6), ("invariant", 0.2)])
def test_with_the_design_effect_intervals_hold_of_a_sample_in_clusters(mechanism: str, epsilon: float) -> None:
    """Every sampled household has two people who are alike: the variance of the sample is twice that of single ones.

    An invariant protocol is made for the counts of the sample itself. The figures are those of docs/estimation.md.
    """
    inputs = funnel.Alphabet(("x", "weight"), tuple(product(VALUES, CLASSES)))
    bound, random, releases = funnel.LIP(epsilon), np.random.default_rng(11), 300
    right, held = truth(COUNTS), {1.0: 0.0, 2.0: 0.0}
    for k in range(releases):
        sample = 2 * random.multinomial(COUNTS.sum() // 2, (COUNTS / COUNTS.sum()).ravel()).reshape(COUNTS.shape)
        sampled = funnel.Joint.from_counts(sample, inputs=inputs)
        if k == 0 or mechanism == "invariant":
            protocol = funnel.fit(mechanism, sampled, bound)
        counts = drawn(sampled.read_by(protocol.inputs.columns), protocol, random)
        for effect in held:
            found = estimate_weighted(counts, protocol, "weight", NUMBERS, sampling=True, design_effect=effect)
            held[effect] += float(((found.lower <= right) & (right <= found.upper)).mean()) / releases
    # Five standard errors of a coverage of 95 % over 300 releases: wrong less than once in a million draws.
    assert held[2.0] == pytest.approx(0.95, abs=5 * np.sqrt(0.95 * 0.05 / releases))
    assert held[1.0] < held[2.0] - 0.03
    assert 0.94 < held[2.0] < 0.97
    assert 0.85 < held[1.0] < 0.93


@pytest.mark.parametrize(("effect", "sampling"), [(0.0, True), (-1.0, True), (float("inf"), True), (2.0, False)])
def test_a_design_effect_is_a_number_above_zero_of_a_sample(joint: funnel.Joint, effect: float, sampling: bool) -> None:
    protocol = funnel.fit("grr", joint, funnel.LIP(1.0))
    counts = np.full(len(protocol.outputs), 100)
    with pytest.raises(SpecError, match="design effect"):
        estimate_weighted(counts, protocol, "weight", NUMBERS, sampling=sampling, design_effect=effect)


def test_the_design_multiplies_the_variance_of_the_sample_alone(joint: funnel.Joint) -> None:
    protocol = funnel.fit("invariant", joint, funnel.LIP(1.0))
    counts = joint.counts.sum(axis=0)
    answers = estimate_weighted(counts, protocol, "weight", NUMBERS)
    once, thrice = (
        estimate_weighted(counts, protocol, "weight", NUMBERS, sampling=True, design_effect=effect) for effect in (1, 3)
    )
    of_sample = once.errors**2 - answers.errors**2
    assert (of_sample > 0).all()
    assert thrice.errors**2 == pytest.approx(answers.errors**2 + 3 * of_sample, rel=1e-9)
    assert "a design effect of 3" in thrice.about
    assert thrice.to_dict()["design_effect"] == 3


@pytest.mark.parametrize("rare", [False, True])
def test_errors_are_those_of_repeated_releases_and_intervals_hold(joint: funnel.Joint, rare: bool) -> None:
    protocol = funnel.fit("grr", joint, funnel.LIP(0.2))
    random = np.random.default_rng(7)
    right, held, found = truth(COUNTS), [], []
    at_most = {("c", "low"): 0.03} if rare else None
    for _ in range(200):
        one = estimate_weighted(drawn(joint, protocol, random), protocol, "weight", NUMBERS, at_most=at_most)
        found.append(one)
        held.append((one.lower <= right) & (right <= one.upper))
    shares = np.array([one.frequencies for one in found])
    errors = np.array([one.errors for one in found]).mean(axis=0)
    if not rare:
        assert np.abs(shares.mean(axis=0) - right).max() < 4 * errors.max() / np.sqrt(200)
        assert shares.std(axis=0) == pytest.approx(errors, rel=0.2)
        assert np.mean(held) == pytest.approx(0.95, abs=0.035)
    else:
        # Of what may be that rare nothing is told, and every interval has room for it.
        assert np.mean(held) > 0.93


def test_equal_weights_are_no_weights(joint: funnel.Joint) -> None:
    protocol = funnel.fit("grr", joint, funnel.LIP(0.2))
    counts = drawn(joint, protocol, np.random.default_rng(3))
    alike = dict.fromkeys(CLASSES, (2.0, 2.0, 2.0))
    for sampling in (False, True):
        weighted = estimate_weighted(counts, protocol, "weight", alike, sampling=sampling)
        plain = funnel.estimate(counts, protocol, "x", sampling=sampling)
        for name in ("frequencies", "errors", "lower", "upper"):
            assert getattr(weighted, name) == pytest.approx(getattr(plain, name), abs=1e-4)
        assert weighted.unweighted == pytest.approx(plain.frequencies, abs=1e-9)
        assert weighted.least == pytest.approx(weighted.frequencies, abs=1e-9)


def test_classes_that_outputs_do_not_tell_apart_are_not_told() -> None:
    symbols = tuple(product(("a", "b"), ("low", "high")))
    inputs = funnel.Alphabet(("x", "weight"), symbols)
    # Values are told, classes are not: the same column for both.
    whole = 2**63
    weights = [[whole // 4 * 3] * 2 + [whole // 4] * 2, [whole // 4] * 2 + [whole // 4 * 3] * 2]
    outputs = funnel.Alphabet(("x", "weight"), (("a", "any"), ("b", "any")))
    marginal = np.array([whole // 2] * 2, dtype=np.uint64)
    protocol = funnel.Protocol(np.array(weights, dtype=np.uint64), marginal, inputs, outputs)
    found = estimate_weighted(np.array([500, 500]), protocol, "weight", {"low": (1, 0, 2), "high": (3, 2, 4)})
    assert np.isnan(found.frequencies).all()
    assert found.lower.tolist() == [0, 0]
    assert found.upper.tolist() == [1, 1]
    assert found.to_dict()["cells"][0]["error"] is None
    assert "–" in str(found)
    alike = estimate_weighted(np.array([500, 500]), protocol, "weight", dict.fromkeys(("low", "high"), (1, 0, 2)))
    assert alike.frequencies == pytest.approx([0.5, 0.5])


def test_what_cannot_be_asked_is_one_sentence(joint: funnel.Joint) -> None:
    protocol, counts = funnel.fit("grr", joint, funnel.LIP(0.2)), np.full(9, 100)
    for message, arguments in (
        ("no column that the protocol reads", {"weight": "z"}),
        ("what they are weighted by", {"by": "weight"}),
        ("between 0 and 1", {"confidence": 1.0}),
        ("no class of weights", {"classes": {"huge": (1, 0, 2)}}),
        ("from 2 to 4, with a mean of 1", {"classes": {"low": (1, 2, 4)}}),
        ("no class of 'weight' that is given has a weight", {"classes": {"low": (0, 0, 0)}}),
    ):
        given = {"weight": "weight", "classes": NUMBERS, **arguments}
        with pytest.raises(SpecError, match=message):
            estimate_weighted(counts, protocol, **given)  # type: ignore[arg-type]
    with pytest.raises(DataError):
        estimate_weighted(np.zeros(9, dtype=np.int64), protocol, "weight", NUMBERS)


def has_survey() -> bool:
    """Whether R is here with its package for surveys, which only some machines have."""
    asked = 'stopifnot(requireNamespace("survey", quietly = TRUE))'
    found = shutil.which("Rscript")
    return found is not None and subprocess.run([found, "-e", asked], capture_output=True, check=False).returncode == 0


def people_in_clusters(random: np.random.Generator, groups: int) -> pd.DataFrame:
    """A survey of 300 clusters of 20 people of mostly one sex, with replicates that leave out groups of clusters."""
    clusters, size = 300, 20
    share = random.beta(1.5, 1.5, clusters).repeat(size)
    people = pd.DataFrame(
        {
            "sex": np.where(random.random(clusters * size) < share, "f", "m"),
            "weight": random.choice([1.0, 2.5, 6.0], clusters * size),
            "ill": random.integers(0, 2, clusters * size),
        }
    )
    left_out = (random.permutation(clusters) % groups).repeat(size)
    replicates = {
        f"rep{k + 1}": np.where(left_out == k, 0.0, people["weight"] * groups / (groups - 1)) for k in range(groups)
    }
    return pd.concat([people, pd.DataFrame(replicates)], axis=1)


def test_with_the_design_effect_of_replicate_weights_errors_are_those_of_svrepdesign(tmp_path: Path) -> None:
    """The R of docs/estimation.md, on a source that has replicate weights, beside an estimate of its release."""
    if not has_survey():
        pytest.skip("R or its package survey is not installed")
    people = people_in_clusters(np.random.default_rng(8), 60)
    people.to_csv(tmp_path / "survey.csv", index=False)
    page = (Path(__file__).parents[3] / "docs" / "estimation.md").read_text(encoding="utf-8")
    (script,) = re.findall(r'```r title="design-effect\.R"\n(.*?)```', page, re.DOTALL)
    told = subprocess.run(
        [str(shutil.which("Rscript")), "-e", script], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    error, effect = map(float, told.stdout.split())
    assert effect > 3
    weights = {"low": (1.0, 1.0, 1.0), "middle": (2.5, 2.5, 2.5), "high": (6.0, 6.0, 6.0)}
    of_weight = {mean: name for name, (mean, _, _) in weights.items()}
    table = people[["sex", "ill"]].assign(weight=people["weight"].map(of_weight)).astype(str)
    joint = funnel.Joint.from_table(table, ["ill"], ["sex", "weight"])
    kept, strong = funnel.fit("identity", joint, funnel.LIP(20.0)), funnel.fit("grr", joint, funnel.LIP(0.05))
    truth = people.loc[people["sex"] == "f", "weight"].sum() / people["weight"].sum()
    for protocol in (kept, strong):
        counts = drawn(joint.read_by(protocol.inputs.columns), protocol, np.random.default_rng(4))
        found = estimate_weighted(counts, protocol, "weight", weights, sampling=True, design_effect=effect)
        alone = estimate_weighted(counts, protocol, "weight", weights)
        assert found.cells[0] == ("f",)
        assert found.frequencies[0] == pytest.approx(truth, abs=6 * alone.errors[0] + 1e-9)
        if protocol is kept:
            assert found.errors[0] == pytest.approx(error, rel=1e-3)
        else:
            assert found.errors[0] ** 2 == pytest.approx(error**2 + alone.errors[0] ** 2, rel=0.2)
            assert found.errors[0] > error
