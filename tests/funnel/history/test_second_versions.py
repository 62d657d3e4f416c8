"""Honest second versions: records come from the published channel; a false distribution is seen."""

from __future__ import annotations

import json

import numpy as np
import pytest

from benchmarks import second_versions
from funnel.frequencies import moves
from funnel.guarantees import parse_guarantee
from funnel.history.allowed import require_posterior
from tests import chance

BOUND = require_posterior(parse_guarantee("lip:0.5"))


@pytest.fixture(autouse=True)
def seeded(monkeypatch: pytest.MonkeyPatch) -> None:
    """All is the same in every run."""
    noise = chance.noise_of(1)
    for module in ("public_counts", "moves"):
        monkeypatch.setattr(f"funnel.frequencies.{module}.draw_noise", noise)


def test_second_versions_are_drawn_from_their_channels() -> None:
    random = np.random.default_rng(2)
    assert min(second_versions.second_version(20_000, BOUND, random).p for _ in range(8)) > 0.05 / 8


def test_leavers_who_are_thought_to_come_back_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The distribution of changes as it once was: who leaves a value may take it again, and counts as staying."""
    monkeypatch.setattr(moves, "_anew", lambda stay, leave, chance: (stay, leave))
    assert second_versions.second_version(100_000, BOUND, np.random.default_rng(2)).p < 1e-9


def test_the_page_is_that_of_the_results() -> None:
    content = json.loads((second_versions.RESULTS / "second-versions.json").read_text(encoding="utf-8"))
    found = [second_versions.Found(**one) for one in content["versions"]]
    told = (second_versions.RESULTS / "second-versions.md").read_text(encoding="utf-8")
    audits = [second_versions.Audit(**one) for one in json.loads(second_versions.AUDITED.read_text(encoding="utf-8"))]
    assert told == second_versions.page(content["people"], found, audits)
    assert audits
    assert all(one == second_versions.Audit(None, [], []) for one in audits)
    assert (len(found), content["people"]) == (200, 100_000)
    assert len(found) * min(one.p for one in found) > 0.05
