"""Every guarantee at the edges: one secret, one input, one output, what never occurs, the largest counts."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from funnel import Joint, SpecError, parse_guarantee
from funnel.guarantees import ALIP, ConeGuarantee, MutualInformation, OutputGuarantee
from funnel.protocol import WeightArray

FULL = 2**63
# Side channels are judged over pairs of columns below, everything else over the same distribution.
KINDS = [
    "lip:1",
    "ldp:1",
    "srlip:1",
    "perfect",
    "alip:2,1",
    "alip:inf,1",
    "alip:1,inf",
    "l1-lift:2,1",
    "chi2-lift:2,1",
    "alpha-lift:2,1,2",
    "alpha-lift:2,1,100",
    "mi:1",
]
every_kind = pytest.mark.parametrize("text", KINDS)


def pairs(counts: list[list[int]]) -> Joint:
    """A joint distribution whose inputs are pairs: two columns if there are several inputs, else one constant."""
    a = len(counts[0])
    return Joint.from_counts(counts, inputs=[(f"u{x // 2}", f"v{x % 2}") for x in range(a)])


def weights(*rows: list[int]) -> WeightArray:
    return np.array(rows, dtype=object).astype(np.uint64)


IDENTITY = weights([FULL, 0], [0, FULL])


@every_kind
@pytest.mark.parametrize(
    ("counts", "channel"),
    [
        ([[7, 3]], IDENTITY),
        ([[7, 3], [0, 0]], IDENTITY),
        ([[7], [3]], weights([FULL - 1], [1])),
        ([[7, 3], [1, 5]], weights([FULL, FULL])),
        ([[7, 3], [1, 5]], weights([1, 1], [FULL - 1, FULL - 1])),
        ([[7, 3], [1, 5]], weights([0, 0], [FULL, FULL])),
        ([[7, 0], [3, 0]], IDENTITY),
        ([[7, 14], [3, 6]], IDENTITY),
        ([[1, 0], [0, 0]], IDENTITY),
    ],
    ids=[
        "one secret",
        "one secret that occurs",
        "one input",
        "one output",
        "alike outputs",
        "an output that never occurs",
        "an input that never occurs",
        "independent",
        "one record",
    ],
)
def test_nothing_is_told(text: str, counts: list[list[int]], channel: WeightArray) -> None:
    guarantee, joint = parse_guarantee(text), pairs(counts)
    found = guarantee.level_for(joint, channel)
    assert found.value == 0
    assert guarantee.holds_for(joint, channel)
    if text != "perfect":
        assert guarantee.with_budget(0.0).holds_for(joint, channel)
    y, s = found.witness.output, found.witness.secret
    assert joint.counts[s].any()
    assert (joint.counts.any(axis=0) & (channel[y] > 0)).any()
    if isinstance(guarantee, OutputGuarantee):
        levels = guarantee.output_levels(joint, channel.astype(np.float64) / FULL)
        assert levels.tolist() == pytest.approx([0.0] * len(channel), abs=1e-12)
        assert np.isfinite(guarantee.risks(joint, channel.astype(np.float64) / FULL)).all()
    if isinstance(guarantee, ConeGuarantee):
        rows = guarantee.cone(joint) @ (channel.astype(np.float64).T / FULL)
        assert np.isfinite(rows).all()
        assert (rows <= 1e-12).all()


@every_kind
def test_what_never_occurs_changes_nothing(text: str) -> None:
    """A secret, an input and an output more, of no record: the same level at the same place."""
    guarantee = parse_guarantee(text)
    joint = pairs([[70, 30], [25, 60]])
    channel = weights([FULL // 4, FULL // 2], [FULL - FULL // 4, FULL // 2])
    wider = pairs([[70, 30, 0], [0, 0, 0], [25, 60, 0]])
    padded = weights([0, 0, FULL], [FULL // 4, FULL // 2, 0], [FULL - FULL // 4, FULL // 2, 0])
    one, other = guarantee.level_for(joint, channel), guarantee.level_for(wider, padded)
    assert one.value == other.value > 0
    assert (other.witness.output, other.witness.secret) == (one.witness.output + 1, 2 * one.witness.secret)
    assert other.witness.ratio == one.witness.ratio
    if isinstance(guarantee, OutputGuarantee):
        levels = [
            guarantee.output_levels(distribution, rows.astype(np.float64) / FULL)
            for distribution, rows in ((joint, channel), (wider, padded))
        ]
        assert levels[1].tolist() == pytest.approx([0.0, *levels[0]], rel=1e-12)
    if isinstance(guarantee, ConeGuarantee):
        cones = [guarantee.cone(distribution) for distribution in (joint, wider)]
        assert cones[1].shape[0] == cones[0].shape[0]
        np.testing.assert_allclose(cones[1][:, :2], cones[0], rtol=1e-12)
        assert not cones[1][:, 2].any()


@every_kind
def test_an_output_that_rules_a_secret_out(text: str) -> None:
    """Infinite wherever beliefs may not fall to nothing, but not where only gains or averages are bounded."""
    guarantee, joint = parse_guarantee(text), pairs([[70, 0], [25, 60]])
    found = guarantee.level_for(joint, IDENTITY)
    if text in ("alip:inf,1", "mi:1"):
        assert 0 < found.value < 1
        assert guarantee.with_budget(found.value + 1e-12).holds_for(joint, IDENTITY)
        return
    assert found.value == math.inf
    assert float(found) == math.inf
    assert found.witness.ratio is None
    assert not guarantee.holds_for(joint, IDENTITY)
    # What excludes the first secret is the second output.
    assert found.witness.output == 1
    assert found.witness.secret == (1 if text == "ldp:1" else 0)
    if text != "perfect":
        assert not guarantee.with_budget(1e300).holds_for(joint, IDENTITY)


@every_kind
def test_the_largest_counts_and_the_smallest_weights(text: str) -> None:
    """2^31 - 1 records and a weight of 2^-63: sums beyond 64 bits, differences beyond a float."""
    guarantee = parse_guarantee(text)
    joint = pairs([[2**31 - 4, 1], [1, 1]])
    apart = guarantee.level_for(joint, weights([FULL - 1, 1], [1, FULL - 1]))
    assert 0 < apart.value < math.inf
    assert guarantee.holds_for(joint, weights([FULL - 1, 1], [1, FULL - 1])) == (apart.value <= guarantee.budget)
    # One bit of difference between two inputs: no float sees it, the level is above zero all the same.
    near = guarantee.level_for(joint, weights([2**62, 2**62 + 1], [2**62, 2**62 - 1]))
    assert 0 < near.value < 1e-15
    if text == "perfect":
        assert not guarantee.holds_for(joint, weights([2**62, 2**62 + 1], [2**62, 2**62 - 1]))
    else:
        assert not guarantee.with_budget(0.0).holds_for(joint, weights([2**62, 2**62 + 1], [2**62, 2**62 - 1]))


def test_the_level_of_the_last_bit_by_hand() -> None:
    """P(y|s) is 1/2 and 1/2 + 2^-63 for two secrets as likely: every ratio is 1 up to 2^-63."""
    joint = Joint.from_counts([[1, 0], [0, 1]])
    channel = weights([2**62, 2**62 + 1], [2**62, 2**62 - 1])
    # The second output has the larger relative gap to its mean.
    ratio = Fraction(2**62 - Fraction(1, 2)) / (2**62 - 1)
    found = parse_guarantee("lip:1").level_for(joint, channel)
    assert found.witness.ratio == ratio
    assert found.value == pytest.approx(float(ratio - 1), rel=1e-15)
    for text, factor in (("ldp:1", 2), ("chi2-lift:1,inf", 1), ("l1-lift:1,inf", 1), ("alip:1,inf", 1)):
        value = parse_guarantee(text).level_for(joint, channel).value
        assert value == pytest.approx(factor * float(ratio - 1), rel=1e-12), text
    information = parse_guarantee("mi:1").level_for(joint, channel).value
    assert information == pytest.approx(float(ratio - 1) ** 2 / 2, rel=1e-9)


def test_mutual_information_between_two_copies_is_the_entropy() -> None:
    joint = Joint.from_counts([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])
    copy = weights(*(np.eye(4, dtype=object) * FULL).tolist())
    assert MutualInformation(2.0).level_for(joint, copy).value == pytest.approx(math.log(4), rel=1e-15)
    assert MutualInformation(math.log(4) + 1e-15).holds_for(joint, copy)
    assert not MutualInformation(math.log(4) - 1e-15).holds_for(joint, copy)


def test_side_channels_need_two_published_columns() -> None:
    joint, guarantee = Joint.from_counts([[7, 3], [1, 5]]), parse_guarantee("srlip:1")
    assert isinstance(guarantee, ConeGuarantee)
    sentence = "only X is published; publish two columns or use lip"
    for distribution, channel in (
        (joint, IDENTITY),
        (joint.with_secret(), weights([FULL, 0, FULL, 0], [0, FULL, 0, FULL])),
    ):
        for ask in (guarantee.level_for, guarantee.holds_for):
            with pytest.raises(SpecError, match=sentence):
                ask(distribution, channel)
        with pytest.raises(SpecError, match=sentence):
            guarantee.cone(distribution)
        with pytest.raises(SpecError, match=sentence):
            guarantee.output_levels(distribution, channel.astype(np.float64))


def test_all_columns_count_as_known_where_the_secret_is_read() -> None:
    """A protocol that reports the secret itself tells everything to who knows the record; one of X adds nothing."""
    joint = Joint.from_counts([[4, 0, 1, 2], [3, 2, 1, 0]], inputs=[("a", "a"), ("a", "b"), ("b", "a"), ("b", "b")])
    tells = weights([3 * FULL // 4] * 4 + [FULL // 4] * 4, [FULL // 4] * 4 + [3 * FULL // 4] * 4)
    found = parse_guarantee("srlip:1").level_for(joint.with_secret(), tells)
    # Where x leaves one secret only there is nothing to learn; else prior odds decide: 4 to 3 and 1 to 1 given all.
    distribution = [Fraction(4 * 3 + 3 * 1, 7 * 4), Fraction(1, 2)]
    ratios = [
        r
        for q in distribution
        for p in (Fraction(3, 4), Fraction(1, 4))
        for r in (p / q, q / p, p / (1 - q), (1 - q) / p)
    ]
    assert found.value >= math.log(max(ratios)) * (1 - 1e-15)
    known = dict(found.witness.given)
    assert found.witness.ratio is not None
    assert set(known) <= {"X0", "X1"}


def test_both_budgets_zero_are_perfect_privacy_with_the_level_of_lip() -> None:
    joint, channel = pairs([[70, 30], [25, 60]]), weights([FULL // 4, FULL // 2], [FULL - FULL // 4, FULL // 2])
    strict = ALIP(0.0, 0.0)
    level = strict.level_for(joint, channel).value
    assert level == parse_guarantee("lip:1").level_for(joint, channel).value
    assert not strict.holds_for(joint, channel)
    assert strict.with_budget(level + 1e-12).holds_for(joint, channel)


def test_a_side_of_zero_forbids_every_change_there() -> None:
    joint, channel = pairs([[70, 30], [25, 60]]), weights([FULL // 4, FULL // 2], [FULL - FULL // 4, FULL // 2])
    for text in ("alip:0,1", "alip:1,0", "l1-lift:0,1", "chi2-lift:1,0", "alpha-lift:0,1,2"):
        guarantee = parse_guarantee(text)
        assert guarantee.level_for(joint, channel).value == math.inf
        assert not guarantee.with_budget(50.0).holds_for(joint, channel)
        assert guarantee.holds_for(joint, weights([FULL, FULL]))


@pytest.mark.parametrize(
    "text", ["lip:1", "ldp:1", "alip:1.3,0.7", "alip:inf,0.7", "alip:0.7,inf", "alip:0,inf", "perfect"]
)
@pytest.mark.parametrize("prior", [[1.0], [1.0, 0.0], [0.3, 0.7], [0.2, 0.0, 0.8], [1e-9, 1 - 1e-9]])
def test_limits_on_beliefs_hold_the_prior(text: str, prior: list[float]) -> None:
    limits = parse_guarantee(text).posterior_limits(np.array(prior))
    assert limits is not None
    low, high = limits
    assert (low <= np.array(prior) + 1e-15).all()
    assert (high >= np.array(prior) - 1e-15).all()
    assert ((low >= 0) & (high <= 1)).all()
    assert high[np.array(prior) == 0].tolist() == [0.0] * prior.count(0.0)


@pytest.mark.parametrize("kind", ["alip", "l1-lift", "chi2-lift", "alpha-lift"])
def test_a_side_of_zero_is_perfect_privacy(kind: str) -> None:
    """Lifts that are all on one side of 1 are all 1: equations, which rounding and mixing would miss."""
    for budgets, perfect in (("0,1", True), ("1,0", True), ("0,inf", True), ("0,0", True), ("1,1", False)):
        guarantee = parse_guarantee(f"{kind}:{budgets}")
        assert guarantee.is_perfect is perfect
        if isinstance(guarantee, ALIP):
            prior = np.array([0.2, 0.5, 0.3])
            same = guarantee.posterior_cone(prior).tolist() == parse_guarantee("perfect").posterior_cone(prior).tolist()
            assert same is perfect
