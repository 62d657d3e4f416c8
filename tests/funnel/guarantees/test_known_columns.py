"""SRLIP and attribute protection against their definitions in fractions: counted, over tables, and over boxes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import funnel
import funnel.rounding
from funnel import Alphabet, Attribute, DataError, Guarantee, Joint, RAttribute, SpecError
from funnel.bounds import Bounds
from funnel.guarantees import Witness, attribute, check_published_secret, over_set, srlip
from funnel.guarantees.base import ConeGuarantee
from funnel.guarantees.exact import exp_below, log_above
from funnel.guarantees.known_columns import Given, known_events, known_values
from funnel.protocol import DENOMINATOR, WeightArray
from funnel.solver.over_distributions import limited
from tests.funnel.guarantees.known import (
    channels,
    noisy_tables,
    tables,
    tables_within,
    worst_attribute,
    worst_labels,
    worst_srlip,
)

NAIVE = {"srlip": worst_srlip, "attribute": worst_attribute}
KINDS = pytest.mark.parametrize("guarantee", [funnel.SRLIP(0.7), Attribute(0.7)], ids=str)
READS = pytest.mark.parametrize("reads_secret", [False, True])


def level_of(ratio: Fraction | None) -> float:
    return math.inf if ratio is None else log_above(ratio)


def read_by(joint: Joint, reads_secret: bool) -> Joint:
    return joint.with_secret() if reads_secret else joint


@KINDS
@READS
@settings(max_examples=75)
@given(data=st.data(), joint=tables())
def test_levels_are_those_of_the_definition(
    guarantee: Guarantee, reads_secret: bool, data: st.DataObject, joint: Joint
) -> None:
    weights = data.draw(channels(4 * len(joint.secret) if reads_secret else 4))
    read = read_by(joint, reads_secret)
    ratio = NAIVE[guarantee.name](joint.counts.tolist(), weights, reads_secret)
    level = guarantee.level_for(read, weights)
    assert level.value == level_of(ratio)
    assert level.witness.ratio == ratio
    assert guarantee.holds_for(read, weights) == (ratio is not None and ratio <= exp_below(guarantee.budget))


@KINDS
@READS
@settings(max_examples=50)
@given(data=st.data(), joint=tables())
def test_the_cone_is_the_guarantee(
    guarantee: ConeGuarantee, reads_secret: bool, data: st.DataObject, joint: Joint
) -> None:
    weights = data.draw(channels(4 * len(joint.secret) if reads_secret else 4))
    read = read_by(joint, reads_secret)
    rows = weights / 2.0**63
    level = guarantee.level_for(read, weights).value
    for budget, holds in ((level * (1 + 1e-6) + 1e-9, True), (level * (1 - 1e-6), False)):
        if 0 < budget < math.inf and level > 1e-6:
            broken = guarantee.with_budget(budget).cone(read) @ rows.T
            assert (broken.max() <= 1e-12) == holds
    if math.isinf(level):
        assert (guarantee.cone(read) @ rows.T).max() > 0
    assert guarantee.output_levels(read, rows).max() == pytest.approx(level, rel=1e-9, abs=1e-12)


@KINDS
@READS
@settings(max_examples=12, deadline=None)
@given(data=st.data(), joint=noisy_tables())
def test_over_bounds_every_table_counts(
    guarantee: Guarantee, reads_secret: bool, data: st.DataObject, joint: Joint
) -> None:
    """The level over noisy counts is the largest of any table within the bounds, and half-spaces hold for all."""
    weights = data.draw(channels(4 * len(joint.secret) if reads_secret else 4))
    read = read_by(joint, reads_secret)
    assert joint.bounds is not None
    ratios = [NAIVE[guarantee.name](table.tolist(), weights, reads_secret) for table in tables_within(joint.bounds)]
    worst = None if None in ratios else max(ratio for ratio in ratios if ratio is not None)
    level = guarantee.level_for(read, weights).value
    assert level == level_of(worst)
    assert guarantee.holds_for(read, weights) == (worst is not None and worst <= exp_below(guarantee.budget))
    over = over_set(guarantee, read)
    assert over is not None
    assert over.covers_noise
    assert guarantee.covers_noise
    rows = weights / 2.0**63
    assert over.output_levels(read, rows).max() >= level * (1 - 1e-9) - 1e-12
    spaces, of, by = over.half_spaces(read, rows)
    assert len(spaces) == len(of) == len(by)
    assert bool(len(spaces)) >= (level > guarantee.budget * (1 + 1e-6))
    assert (np.bincount(of, minlength=len(rows)) <= 4).all()
    # Every half-space is broken by its row, and met by whatever meets the guarantee.
    assert ((spaces * rows[of]).sum(axis=1) > 0).all()
    hardly = np.ones(rows.shape) / len(rows) + 1e-3 * (rows - 1 / len(rows))
    if over.output_levels(read, hardly).max() <= guarantee.budget:
        assert (spaces @ hardly.T <= 1e-12).all()
        assert (over.starting_cone(read) @ hardly.T <= 1e-12).all()


@pytest.mark.parametrize("guarantee", [funnel.RSRLIP(1.0, 0.1), RAttribute(1.0, 0.1)], ids=str)
@READS
@settings(max_examples=30, deadline=None)
@given(data=st.data(), joint=tables(largest=400))
def test_robust_bounds_hold_for_distributions_that_the_limits_allow(
    guarantee: funnel.RSRLIP, reads_secret: bool, data: st.DataObject, joint: Joint
) -> None:
    """The counts themselves are among what is possible, and so are other mixtures of secrets within an event."""
    if not joint.counts.any(axis=1).all():
        with pytest.raises(DataError, match="so the data set no bound"):
            guarantee.level_for(joint, np.full((1, 4), DENOMINATOR, dtype=np.uint64))
        return
    weights = data.draw(channels(4 * len(joint.secret) if reads_secret else 4))
    read = read_by(joint, reads_secret)
    level = guarantee.level_for(read, weights).value
    assert level >= guarantee.nominal.level_for(read, weights).value
    assert guarantee.holds_for(read, weights) == (level <= guarantee.budget)
    assert level <= type(guarantee)(1.0, 0.001).level_for(read, weights).value
    assert guarantee.significance == 0.1


def test_limits_of_all_events_share_the_significance() -> None:
    """Nine groups of inputs without the full ones: 4 + 2·2 + 2·2 inputs, and two secrets for each of five groups."""
    joint = Joint.from_counts([[300, 200, 100, 50], [50, 80, 200, 400]], inputs=PUBLISHED_FOUR)
    events = known_events(joint, False)
    assert [len(event.joint.inputs) for event in events] == [4, 2, 2, 2, 2]
    alone = funnel.RLIP(1.0, 0.1 * (2 * 4 + 2) / (5 * 2 + 2 * 12))
    weights = np.array([[3, 1, 2, 2], [1, 3, 2, 2]], dtype=np.uint64) * np.uint64(2**61)
    parts = [part.level_for(event.joint, weights[:, event.inside]).value for event, part in robust_parts(joint)]
    assert parts[0] == alone.level_for(joint, weights).value
    assert funnel.RSRLIP(1.0, 0.1).level_for(joint, weights).value == max(parts)


PUBLISHED_FOUR = Alphabet(("size", "colour"), (("s", "red"), ("s", "blue"), ("m", "red"), ("m", "blue")))


def robust_parts(joint: Joint) -> list[tuple[object, object]]:
    return list(funnel.RSRLIP(1.0, 0.1).parts(joint))


def test_an_event_that_only_noise_allows_counts() -> None:
    """Nobody is counted as (m, ·), but one record of each secret may be there: then its secret is disclosed."""
    joint = Joint.from_counts([[9, 9, 0, 0], [9, 9, 0, 0]], inputs=PUBLISHED_FOUR)
    upper = joint.counts + np.array([[0, 0, 1, 0], [0, 0, 0, 1]])
    totals = np.array([[18, 19], [18, 19]])
    noisy = replace(joint, bounds=Bounds(joint.counts, upper, totals, 0.1))
    weights = np.array([[2, 2, 4, 0], [2, 2, 0, 4]], dtype=np.uint64) * np.uint64(2**61)
    assert funnel.SRLIP(1.0).level_for(joint, weights).value == 0.0
    level = funnel.SRLIP(1.0).level_for(noisy, weights)
    assert math.isinf(level.value)
    assert level.witness.given == (("size", "m"),)


def test_of_one_column_attribute_is_lip_and_label_ldp() -> None:
    joint = Joint.from_counts([[30, 10], [10, 50]])
    weights = np.array([[3, 1], [1, 3]], dtype=np.uint64) * np.uint64(2**61)
    assert Attribute(1.0).level_for(joint, weights) == funnel.LIP(1.0).level_for(joint, weights)
    with pytest.raises(SpecError, match="only X is published"):
        funnel.SRLIP(1.0).level_for(joint, weights)
    labels = np.array([[3, 1, 2, 1], [1, 3, 2, 3]], dtype=np.uint64) * np.uint64(2**61)
    witness = Attribute(1.0).level_for(joint.with_secret(), labels).witness
    assert (witness.output, witness.secret, witness.other_secret) == (1, 1, 0)
    assert (witness.ratio, witness.given) == (Fraction(2), (("X", "X0"),))


@settings(max_examples=50)
@given(data=st.data(), joint=tables())
def test_label_ldp_is_lip_for_who_knows_all_columns(data: st.DataObject, joint: Joint) -> None:
    """Attribute protection is never less than SRLIP, of which all columns are a set too."""
    weights = data.draw(channels(4 * len(joint.secret)))
    read = joint.with_secret()
    assert Attribute(1.0).level_for(read, weights).value >= funnel.SRLIP(1.0).level_for(read, weights).value


def test_pairs_that_nobody_has_count_all_the_same() -> None:
    joint = Joint.from_counts([[5, 5, 5, 0], [5, 5, 5, 5]], inputs=PUBLISHED_FOUR).with_secret()
    even = np.full((2, 8), 2**62, dtype=np.uint64)
    unseen = even.copy()
    unseen[:, 3] = [2**63, 0]
    assert funnel.SRLIP(1.0).level_for(joint, unseen).value == 0.0
    assert math.isinf(Attribute(1.0).level_for(joint, unseen).value)
    assert Attribute(1.0).level_for(joint, even).value == 0.0


@KINDS
def test_fewer_inputs_ask_for_less(guarantee: Guarantee) -> None:
    """What is asked at some inputs alone is met by what meets the guarantee, whatever others get."""
    joint = Joint.from_counts([[9, 9, 0, 4], [9, 3, 1, 7]], inputs=PUBLISHED_FOUR)
    totals = joint.counts.sum(axis=1)
    bounds = Bounds(np.maximum(joint.counts - 1, 0), joint.counts + 1, np.stack([totals - 2, totals + 2], 1), 0.1)
    read = replace(joint, bounds=bounds).with_secret()
    over = over_set(guarantee, read)
    assert over is not None
    known = np.ones(8, dtype=bool)
    assert limited(over, read, known) is over
    known[[2, 6]] = False
    fewer = limited(over, read, known)
    assert fewer is not None
    rows = np.array([[4, 4, 9, 5, 5, 4, 1, 4], [6, 6, 1, 5, 5, 6, 9, 6]]) / 10
    assert over.output_levels(read, rows).max() > 1.0 > fewer.output_levels(read, rows).max()
    assert str(fewer) == str(guarantee)
    assert fewer.with_budget(0.25).budget == 0.25


def test_a_published_secret_needs_attribute_protection() -> None:
    joint = Joint.from_counts([[30, 10], [10, 50]], secret=["ill", "well"])
    for guarantee in (funnel.LIP(1.0), funnel.SRLIP(1.0), funnel.Several([funnel.LIP(1.0), funnel.LDP(1.5)])):
        check_published_secret(guarantee, joint)
        with pytest.raises(SpecError, match=r"ask for attribute:1\.[05], alone or as"):
            check_published_secret(guarantee, joint.with_secret())
    for protecting in (Attribute(1.0), RAttribute(1.0), funnel.Several([funnel.LIP(0.5), Attribute(1.0)])):
        check_published_secret(protecting, joint.with_secret())


def test_what_a_slip_would_leave_out_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the empty set, or without pairs that nobody has, the bound would be another: the cases above see it."""
    # Each column discloses the secret, so that who knows one has nothing left to learn.
    joint = Joint.from_counts([[10, 0, 0, 0], [0, 0, 0, 10]], inputs=PUBLISHED_FOUR)
    weights = np.array([[3, 2, 2, 1], [1, 2, 2, 3]], dtype=np.uint64) * np.uint64(2**61)
    expected = level_of(worst_srlip(joint.counts.tolist(), weights, False))
    assert funnel.SRLIP(1.0).level_for(joint, weights).value == expected > 0
    labels = np.array([[2, 2, 2, 2, 2, 2, 2, 3], [2, 2, 2, 2, 2, 2, 2, 1]], dtype=np.uint64) * np.uint64(2**61)
    read = Joint.from_counts([[5, 5, 5, 0], [5, 5, 5, 0]], inputs=PUBLISHED_FOUR).with_secret()
    assert Attribute(1.0).level_for(read, labels).value == level_of(worst_labels(2, labels)) > 0

    def without_nothing(joint: Joint, every: bool) -> Iterator[tuple[Given, npt.NDArray[np.bool_]]]:
        yield from (known for known in known_values(joint, every) if known[0])

    monkeypatch.setattr(srlip, "known_values", without_nothing)
    monkeypatch.setattr(Attribute, "bounds_labels", False)
    monkeypatch.setattr(attribute, "worst_label", lambda joint, weights: Witness(0, 0, None, Fraction(1), True))
    assert funnel.SRLIP(1.0).level_for(joint, weights).value == 0.0
    assert Attribute(1.0).level_for(read, labels).value == 0.0


def test_an_optimum_by_information_needs_every_pair() -> None:
    joint = Joint.from_counts([[30, 10, 5, 0], [10, 20, 7, 10]], inputs=PUBLISHED_FOUR)
    with pytest.raises(SpecError, match="never occur"):
        funnel.optimal(joint.with_secret(), Attribute(1.0))
    filled = Joint.from_counts(np.maximum(joint.counts, 1), inputs=PUBLISHED_FOUR).with_secret()
    best = funnel.optimal(filled, Attribute(1.0))
    assert Attribute(1.0).holds(filled, best.protocol)
    assert best.bound - best.utility <= 1e-6
    silent = funnel.optimal(filled, Attribute(0.0))
    assert Attribute(0.0).holds(filled, silent.protocol)


@pytest.mark.parametrize("text", ["srlip:0.8", "rsrlip:1.5,0.1", "lip:0.7 & srlip:0.8"])
def test_an_optimum_over_noisy_counts_holds_for_all_of_them(text: str) -> None:
    guarantee = funnel.parse_guarantee(text)
    joint = Joint.from_counts([[90, 40, 20, 60], [30, 50, 70, 10]], inputs=PUBLISHED_FOUR)
    totals = joint.counts.sum(axis=1)
    noisy = replace(
        joint, bounds=Bounds(joint.counts - 3, joint.counts + 3, np.stack([totals - 5, totals + 5], 1), 0.1)
    )
    best = funnel.optimal(noisy, guarantee)
    assert guarantee.holds(noisy, best.protocol)
    assert best.bound - best.utility <= 1e-5
    exact = funnel.optimal(joint, guarantee)
    assert 0.05 < best.utility < exact.utility


def donor_channel(joint: Joint) -> WeightArray:
    """The secret by randomised response; the record as it is if its secret stayed, else the columns of a random donor.

    For the joint distribution (c, c u) of `Joint.with_secret`: what is best under a bound on the record alone.
    """
    c, a = joint.counts.shape
    u = a // c
    cells = joint.counts.reshape(c, c, u)[np.arange(c), np.arange(c)] / joint.n
    prior = cells.sum(axis=1)
    # Invariant for the secret: it stays, or is drawn anew from the prior.
    stays = 0.5
    channel = np.zeros((c, u, c, u))
    for s in range(c):
        drawn = (1 - stays) * prior
        for y in range(c):
            if y == s:
                channel[y, np.arange(u), s, np.arange(u)] = stays + drawn[y]
            else:
                channel[y, :, s, :] = drawn[y] * (cells[y] / prior[y])[:, None]
    return np.asarray(channel.reshape(a, a))


def test_a_donor_attack_finds_unchanged_secrets_where_the_record_alone_is_bounded() -> None:
    """Adult: under LIP 1 who knows the other columns learns each unchanged secret; attribute refuses the channel."""
    table = funnel.Joint.from_table("data/adult.parquet", secret=["income"], inputs=["education", "sex", "income"])
    wide = donor_channel(table)
    # Balanced: published tables are right on average.
    assert np.abs(wide @ table.p_input - table.p_input).max() < 1e-12
    protocol = funnel.rounding.proven_weights(table, funnel.LIP(1.0), wide)
    assert funnel.LIP(1.0).holds_for(table, protocol)
    with pytest.raises(SpecError, match="would read income in it"):
        check_published_secret(funnel.LIP(1.0), table)
    # An observer who knows u sees (s, u) published with these other columns: the posterior of s, against its prior.
    c, u = len(table.secret), len(table.inputs) // len(table.secret)
    cells = table.counts.reshape(c, c, u)[np.arange(c), np.arange(c)] / table.n
    same = wide.reshape(c, u, c, u)[:, np.arange(u), :, np.arange(u)]
    seen = same * cells.T[:, None, :]
    told = seen.sum(axis=2, keepdims=True)
    posterior = np.divide(seen, told, out=np.zeros(seen.shape), where=told > 0)
    own = posterior[:, np.arange(c), np.arange(c)]
    unchanged = (same[:, np.arange(c), np.arange(c)] * cells.T).sum()
    assert unchanged > 0.5
    # Of records whose published columns are the observer's, nearly all secrets are found.
    found = (seen[:, np.arange(c), np.arange(c)] * (own > 0.95)).sum() / unchanged
    assert found > 0.9
    level = Attribute(1.0).level_for(table, protocol)
    assert level.value > 3
    assert "education" in dict(level.witness.given)
    assert not Attribute(1.0).holds_for(table, protocol)
