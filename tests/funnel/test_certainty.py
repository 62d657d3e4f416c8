"""Nominal beside robust: what the difference costs is what both plans say, and what it buys is a level."""

from __future__ import annotations

import json

import numpy as np
import pytest

import funnel
from funnel import LDP, LIP, Joint, plan
from funnel.bounds import Bounds
from funnel.certainty import certainty
from funnel.guarantees.sided import over_set

COUNTS = np.array([[60, 25, 15], [20, 30, 50]])


def noisy() -> Joint:
    joint = Joint.from_counts(COUNTS)
    sums = COUNTS.sum(axis=1)
    bounds = Bounds(COUNTS - 5, COUNTS + 5, np.stack([sums - 8, sums + 8], axis=1), 0.01)
    return Joint(COUNTS, joint.secret, joint.inputs, bounds)


@pytest.mark.parametrize(
    ("joint", "text", "why", "sure"),
    [
        (Joint.from_counts(COUNTS), "rlip:0.5,0.05", "sample", "95 %"),
        (noisy(), "lip:0.5", "noise", "99 %"),
        (noisy(), "rldp:1.0,0.05", "sample and noise", "94 %"),
    ],
)
def test_the_nominal_protocol_keeps_more_and_reaches_more(joint: Joint, text: str, why: str, sure: str) -> None:
    guarantee = funnel.parse_guarantee(text)
    rows = plan(joint, guarantee, ["optimal", "grr"])
    found = certainty(joint, guarantee, rows)
    assert found is not None
    assert found.why == why
    assert found.kept == max(row.share for row in rows)  # type: ignore[type-var]
    nominal = funnel.parse_guarantee(found.nominal)
    alone = funnel.optimal(joint.as_published, nominal)
    assert found.nominal_kept == pytest.approx(alone.utility / joint.entropy, abs=1e-5)
    over = over_set(guarantee, joint)
    assert over is not None
    assert found.nominal_level == pytest.approx(over.level(joint, alone.protocol).value, rel=1e-3)
    assert found.nominal_level > guarantee.budget
    assert found.cost == found.nominal_kept - found.kept > 0
    assert f"{found.kept:.1%}" in found.sentence
    assert f"reaches {found.nominal_level:.3g} under the worst of" in found.sentence
    assert f"rule out ({sure} confidence)." in found.sentence
    assert found.to_dict()["confidence"] == pytest.approx(float(sure[:2]) / 100)
    assert json.loads(json.dumps(found.to_dict()))["nominal"] == str(nominal)


def test_a_bound_for_the_counts_alone_has_nothing_beside_it() -> None:
    joint = Joint.from_counts(COUNTS)
    assert certainty(joint, LIP(0.5), plan(joint, LIP(0.5), ["grr"])) is None


def test_a_secret_that_some_table_gives_away_is_said_so() -> None:
    counts = np.array([[90, 4], [3, 80]])
    joint, sums = Joint.from_counts(counts), counts.sum(axis=1)
    bounds = Bounds(np.maximum(counts - 5, 0), counts + 5, np.stack([sums - 7, sums + 7], axis=1), 0.01)
    joint = Joint(counts, joint.secret, joint.inputs, bounds)
    # As counted, columns may be published as they are; with a count that may be zero they give a value away.
    found = certainty(joint, LDP(4.0), plan(joint, LDP(4.0), ["optimal"]))
    assert found is not None
    assert found.nominal_kept == 1.0
    assert found.to_dict()["nominal_level"] is None
    assert "tells some secret for certain under one of" in found.sentence
