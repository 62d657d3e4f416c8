"""Utility by estimation: a share of the records, which specs may ask for."""

from __future__ import annotations

import numpy as np
import pytest

from funnel import LDP, Joint, SpecError, fit
from funnel.estimation import share_information
from funnel.estimation.expected_errors import expected_errors
from funnel.measures import Estimation
from funnel.measures.utilities import utility_of
from funnel.numbers import utility_for
from tests.projects import spec_of

JOINT = Joint.from_counts([[300, 60, 40], [100, 300, 200]])


def test_it_is_the_share_of_records_that_would_tell_as_much() -> None:
    protocol, useful = fit("grr", JOINT, LDP(1.0)), Estimation()
    worth = useful.told(JOINT, protocol)
    found = expected_errors(JOINT, protocol)
    assert found is not None
    (table,) = found.tables
    sampled = (table.shares * (1 - table.shares)).sum()
    # That many records, drawn from a population and published as they are, err as much as a sample and its answers.
    assert sampled / (worth * JOINT.n) == pytest.approx(sampled / JOINT.n + (table.errors**2).sum())
    assert useful.share(JOINT, protocol) == worth
    assert (useful.whole(JOINT), useful.content, useful.name) == (1.0, ["estimation"], "estimation")


def test_it_is_nothing_where_a_value_is_not_told_and_all_where_nothing_is_drawn() -> None:
    useful = Estimation()
    assert useful.told(JOINT, fit("subset-merging", JOINT, LDP(0.3))) == 0.0
    same = Joint.from_counts([[50, 50], [50, 50]])
    assert useful.told(same, fit("identity", same, LDP(0.1))) == pytest.approx(1.0)


def test_of_too_many_values_it_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(share_information, "MOST_WORK", 1.0)
    with pytest.raises(SpecError, match="cannot be computed for 3 values"):
        Estimation().told(JOINT, fit("grr", JOINT, LDP(1.0)))


def test_a_spec_may_ask_for_it_for_versions_about_the_same_people_too() -> None:
    joint = Joint(JOINT.counts, JOINT.secret, JOINT.inputs)
    assert utility_for(spec_of("t.csv", ".", utility="estimation"), joint) == Estimation()
    assert utility_of("estimation", joint.inputs) == Estimation()
    followed = spec_of("t.csv", ".", utility="estimation", record_key=["id"], history={"people": "same"})
    assert utility_for(followed, joint) == Estimation()
    assert np.isfinite(Estimation().whole(joint))
