"""Several guarantees at once: read back, scaled, decided and optimised as one."""

from __future__ import annotations

import math
import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import funnel
from funnel import Attribute, Guarantee, Joint, Several, SpecError
from funnel.bounds import Bounds
from funnel.guarantees import as_guarantee, guarantee_of, over_set, parse_guarantee, parts_of
from funnel.guarantees.base import ConeGuarantee, OutputGuarantee
from funnel.guarantees.over_distributions import SetGuarantee
from funnel.settings.guarantee import GuaranteeSettings
from tests.funnel.guarantees.known import PUBLISHED, channels, tables

TEXTS = [
    "lip:1.0 & ldp:1.5",
    "rlip:1.0,0.05 & srlip:1.0",
    "rlip:1.0,0.05 & rsrlip:2.0,0.01 & ldp:1.5",
    "attribute:1.0 & rattribute:1.5,0.05",
    "lip:1.0 & mi:0.1",
    "lip:1.0 & rldp:2.0,0.05,chi2",
]
JOINT = Joint.from_counts([[300, 100, 50, 80], [100, 200, 120, 100]], inputs=PUBLISHED)


@pytest.mark.parametrize("text", TEXTS)
def test_what_is_written_is_read_back(text: str) -> None:
    guarantee = parse_guarantee(text)
    assert isinstance(guarantee, Several)
    assert str(guarantee) == text
    assert parse_guarantee(str(guarantee)) == guarantee
    assert pickle.loads(pickle.dumps(guarantee)) == guarantee
    assert hash(parse_guarantee(text)) == hash(guarantee)
    assert guarantee_of("several", {"parts": text}) == guarantee
    assert GuaranteeSettings.model_validate(text).canonical == text
    assert GuaranteeSettings.model_validate({"kind": "several", "parts": text}).canonical == text
    assert as_guarantee(list(parts_of(guarantee))) == guarantee
    assert as_guarantee(guarantee) is guarantee


def test_parts_are_taken_apart_and_none_is_there_twice() -> None:
    lip, ldp, pml = funnel.LIP(1.0), funnel.LDP(1.5), funnel.PML(0.7)
    assert Several([Several([lip, ldp]), pml]) == Several([lip, ldp, pml])
    assert as_guarantee([lip]) is lip
    assert as_guarantee((lip, ldp)) == Several([lip, ldp])
    with pytest.raises(SpecError, match=r"lip:1\.0 is given twice"):
        Several([lip, Several([ldp, lip])])
    with pytest.raises(SpecError, match="at least two"):
        Several([lip])
    with pytest.raises(SpecError, match="at least one"):
        as_guarantee([])
    with pytest.raises(SpecError, match="or a list of them is expected"):
        as_guarantee("lip:1.0")  # type: ignore[arg-type]
    with pytest.raises(SpecError, match="a guarantee is expected"):
        Several([lip, "ldp:1.5"])  # type: ignore[list-item]
    with pytest.raises(SpecError, match="asks for independence"):
        parse_guarantee("perfect & lip:1.0")
    with pytest.raises(SpecError, match="unknown guarantee ''"):
        parse_guarantee("lip:1.0 &")
    with pytest.raises(ValueError, match="no protection at all"):
        GuaranteeSettings.model_validate("lip:1.0 & ldp:200")


def test_kinds_are_what_the_parts_allow() -> None:
    kinds = {text: parse_guarantee(text) for text in TEXTS}
    assert isinstance(kinds["lip:1.0 & ldp:1.5"], ConeGuarantee)
    assert isinstance(kinds["rlip:1.0,0.05 & srlip:1.0"], SetGuarantee)
    for text in ("lip:1.0 & mi:0.1", "lip:1.0 & rldp:2.0,0.05,chi2"):
        assert not isinstance(kinds[text], (ConeGuarantee, SetGuarantee))
        assert over_set(kinds[text], JOINT) is None
        with pytest.raises(SpecError, match="no polyhedral cone"):
            funnel.optimal(JOINT, kinds[text].with_budget(0.01))
    assert isinstance(kinds["lip:1.0 & rldp:2.0,0.05,chi2"], OutputGuarantee)
    assert not isinstance(kinds["lip:1.0 & mi:0.1"], OutputGuarantee)


@pytest.mark.parametrize("text", TEXTS)
@settings(max_examples=25, deadline=None)
@given(data=st.data(), joint=tables(largest=200))
def test_all_hold_and_the_level_is_the_worst_in_proportion(text: str, data: st.DataObject, joint: Joint) -> None:
    joint = Joint.from_counts(joint.counts + 1, inputs=PUBLISHED)
    weights = data.draw(channels(4))
    guarantee = parse_guarantee(text)
    parts = parts_of(guarantee)
    assert guarantee.budget == max(part.budget for part in parts)
    assert guarantee.holds_for(joint, weights) == all(part.holds_for(joint, weights) for part in parts)
    levels = [part.level_for(joint, weights) for part in parts]
    shares = [level.value / part.budget for level, part in zip(levels, parts, strict=True)]
    level = guarantee.level_for(joint, weights)
    assert level.value == pytest.approx(max(shares) * guarantee.budget, rel=1e-12)
    assert all(level.value >= share * guarantee.budget * (1 - 1e-15) for share in shares)
    assert level.witness in [one.witness for one, share in zip(levels, shares, strict=True) if share == max(shares)]
    if 0 < level.value < math.inf and guarantee.precision == 0:
        assert guarantee.with_budget(level.value * (1 + 1e-9)).holds_for(joint, weights)
        assert not guarantee.with_budget(level.value * (1 - 1e-9)).holds_for(joint, weights)
    if isinstance(guarantee, OutputGuarantee) and guarantee.precision == 0:
        found = guarantee.output_levels(joint, weights / 2.0**63).max()
        assert found == pytest.approx(level.value, rel=1e-6, abs=1e-9)


def test_what_it_says_of_itself() -> None:
    guarantee = parse_guarantee("rlip:1.0,0.05 & rsrlip:2.0,0.01 & ldp:1.5")
    assert guarantee.significance == pytest.approx(0.06)
    assert guarantee.covers_noise
    assert not parse_guarantee("lip:1.0 & mi:0.1").covers_noise
    assert parse_guarantee("lip:1.0 & ldp:1.5").significance is None
    assert guarantee.meaning == " ".join(part.meaning for part in parts_of(guarantee))
    assert guarantee.beyond.count(funnel.SRLIP.beyond) == 1
    assert guarantee.lift_limits == funnel.LIP(1.0).lift_limits
    assert guarantee.ratio_limit == funnel.LDP(1.5).ratio_limit
    prior = np.array([0.3, 0.7])
    low, high = guarantee.posterior_limits(prior) or (None, None)
    for part in parts_of(guarantee):
        limits = part.posterior_limits(prior)
        assert limits is not None
        assert low is not None
        assert (low >= limits[0]).all()
        assert (high <= limits[1]).all()
    assert parse_guarantee("lip:1.0 & mi:0.1").posterior_limits(prior) is not None
    assert parse_guarantee("mi:0.2 & l1-lift:inf,1.0").posterior_limits(prior) is None
    halved = guarantee.with_budget(1.0)
    assert [part.budget for part in parts_of(halved)] == [0.5, 1.0, 0.75]
    assert guarantee.with_budget(2.0) is guarantee
    assert [part.budget for part in parts_of(guarantee.tightened(0.5))] == [0.5, 1.0, 0.75]
    silent = guarantee.with_budget(0.0)
    assert silent.is_perfect
    assert not guarantee.is_perfect


@pytest.mark.parametrize("text", ["lip:1.0 & ldp:1.5", "rlip:1.0,0.05 & srlip:1.0", "ldp:1.5 & srlip:0.6"])
def test_an_optimum_under_all_is_below_those_under_each(text: str) -> None:
    guarantee = parse_guarantee(text)
    best = funnel.optimal(JOINT, guarantee)
    assert guarantee.holds(JOINT, best.protocol)
    for part in parts_of(guarantee):
        assert part.holds(JOINT, best.protocol)
        assert best.utility <= funnel.optimal(JOINT, part).bound + 1e-9
    assert best.bound - best.utility <= 1e-5


def test_half_spaces_of_cones_and_of_sets_stack() -> None:
    """Every row that breaks a part gets half-spaces that it breaks and that no feasible row does."""
    totals = JOINT.counts.sum(axis=1)
    bounds = Bounds(JOINT.counts - 9, JOINT.counts + 9, np.stack([totals - 20, totals + 20], 1), 0.1)
    noisy = replace(JOINT, bounds=bounds).with_secret()
    guarantee = Several([Attribute(0.5), funnel.LDP(0.8)])
    assert over_set(guarantee, JOINT.with_secret()) is None
    over = over_set(guarantee, noisy)
    assert over is not None
    generator = np.random.default_rng(5)
    for _ in range(20):
        first = generator.uniform(0.1, 0.9, 8)
        rows = np.stack([first, 1 - first])
        spaces, of, by = over.half_spaces(noisy, rows)
        broken = over.output_levels(noisy, rows) > guarantee.budget * (1 + 1e-9)
        assert set(of.tolist()) == set(np.flatnonzero(broken).tolist())
        assert ((spaces * rows[of]).sum(axis=1) > 0).all()
        assert (by > 0).all()
        assert (np.vstack([spaces, over.starting_cone(noisy)]).sum(axis=1) < 0).all()
    chained = Several([funnel.RLIP(0.4, 0.05), funnel.LDP(0.4)])
    spaces, of, _ = over_set(chained, JOINT).half_spaces(JOINT, np.array([[99.0, 1, 50, 50], [1, 99, 50, 50]]) / 100)  # type: ignore[union-attr]
    assert set(of.tolist()) == {0, 1}


def test_a_protocol_states_several() -> None:
    guarantee: Guarantee = parse_guarantee("lip:1.0 & srlip:1.0")
    protocol = funnel.fit("optimal", JOINT, guarantee)
    assert protocol.guarantee == "lip:1.0 & srlip:1.0"
    assert guarantee.level(JOINT, protocol).value <= 1.0
