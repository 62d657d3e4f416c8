"""People who are the same, under a bound in the population that they are a sample of: released, judged and audited."""

from __future__ import annotations

from pathlib import Path

import pytest

from funnel.errors import ReleaseRefused
from funnel.history import open_shares, possible_distributions
from funnel.recount import open_tables
from funnel.recount.count_box import CountBox
from tests import chance
from tests.tasks.population_versions import LEFT_OPEN, PopulationVersions
from tests.tasks.test_followed_noise import PANEL
from tests.waves import WAVES, wave

EXACT = PANEL.replace("epsilon = 2.0", 'protection = "none"').replace('"lip:1.0"', '"rlip:1.0,0.05"')
NOISY = PANEL.replace("epsilon = 2.0", "epsilon = 8.0").replace('"lip:1.0"', '"rlip:1.0,0.05"')


def waves(folder: Path, spec: str, number: int) -> PopulationVersions:
    return PopulationVersions.of(folder, "panel", spec, map(wave, WAVES[:number]))


@pytest.fixture(scope="module", params=[EXACT, NOISY], ids=["exact", "noise"])
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> PopulationVersions:
    """Three waves, two of them with noise, which takes longer."""
    with chance.same_noise():
        return waves(tmp_path_factory.mktemp("population"), request.param, 3 if request.param is EXACT else 2)


def test_both_computations_find_the_bound_in_later_versions(made: PopulationVersions) -> None:
    made.require_bound(0.1)
    assert {entry.guarantee for entry in made.register.entries} == {"rlip:1.0,0.05"}


@pytest.mark.parametrize("wrong", ["of_counts", "of_changes"])
def test_the_second_computation_refuses_what_fewer_people_would_leave_open(
    made: PopulationVersions, monkeypatch: pytest.MonkeyPatch, wrong: str
) -> None:
    # As if a hundredth of the people had been counted: channels that say much are beyond the bound then.
    real = open_tables.sampled_shares, open_tables.limits_at
    if wrong == "of_changes":
        monkeypatch.setattr(
            open_tables,
            "sampled_shares",
            lambda counts, tail: real[0]([(low // 100, high // 100) for low, high in counts], tail),
        )
    else:
        monkeypatch.setattr(open_tables, "limits_at", lambda counts, tail: real[1](hundredth(counts), tail))
    made.require_refusal()


def hundredth(box: CountBox) -> CountBox:
    """The tables of a hundredth of the people."""
    tables = ([[count // 100 for count in row] for row in table] for table in (box.lower, box.upper))
    return CountBox.of(*tables, [(0, most) for _, most in box.totals])


@pytest.mark.parametrize("mutant", ["changes are counted ones", "every version has alpha"])
def test_a_maker_that_leaves_less_open_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mutant: str) -> None:
    first = 0 if mutant == "every version has alpha" else 1
    text = EXACT.replace("rlip:1.0", "rlip:0.3").replace('"kids"', '"income"').replace('kids = ["no", "yes"]\n', "")
    waves(tmp_path, text, first)
    if mutant == "changes are counted ones":
        counted = open_shares._quotients
        monkeypatch.setattr(open_shares, "_sampled", lambda lower, upper, tail: counted(lower * 1.0, upper * 1.0))
    else:
        for module in (open_shares, possible_distributions):
            monkeypatch.setattr(module, "significance_of_counts", lambda version, alpha: 8 * alpha)
    with pytest.raises(ReleaseRefused, match=LEFT_OPEN):
        waves(tmp_path, text, first + 1)
