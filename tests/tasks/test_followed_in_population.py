"""People who are the same, under a bound in the population that they are a sample of: released, judged and audited."""

from __future__ import annotations

from pathlib import Path

import pytest

from funnel.audit.histories import recount_histories
from funnel.errors import ReleaseRefused
from funnel.history import open_shares, possible_distributions
from funnel.pipeline.flows.pipeline import run_release
from funnel.recount import open_tables
from funnel.recount.count_box import CountBox
from funnel.register.register import Register
from funnel.release.findings import FindingsDocument
from funnel.release.layout import ReleaseFolder
from funnel.spec import ReleaseSpec
from tests import chance
from tests.audits import recheck
from tests.projects import make_project
from tests.tasks.test_followed_noise import PANEL
from tests.waves import WAVES, wave

EXACT = PANEL.replace("epsilon = 2.0", 'protection = "none"').replace('"lip:1.0"', '"rlip:1.0,0.05"')
NOISY = PANEL.replace("epsilon = 2.0", "epsilon = 8.0").replace('"lip:1.0"', '"rlip:1.0,0.05"')


def waves(folder: Path, spec: str, number: int) -> list[ReleaseFolder]:
    """Some waves, released one after the other."""
    found = []
    for year in WAVES[:number]:
        path = make_project(folder, spec, wave(year))
        told, _ = run_release(ReleaseSpec.load(path), again=False, rotate=False)
        found.append(ReleaseFolder(Path(told["folder"])))
    return found


@pytest.fixture(scope="module", params=[EXACT, NOISY], ids=["exact", "noise"])
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[ReleaseFolder]]:
    """Three waves, two of them with noise, which takes longer."""
    folder = tmp_path_factory.mktemp("population")
    with chance.same_noise():
        return folder, waves(folder, request.param, 3 if request.param is EXACT else 2)


def test_both_computations_find_the_bound_in_later_versions(
    made: tuple[Path, list[ReleaseFolder]],
) -> None:
    for one in made[1]:
        found = FindingsDocument.read(one.findings).history
        assert found is not None
        assert found.share > 0.1
        assert [check for check in recheck(one) if check.failed] == []
    register = Register.of(made[0] / ".funnel", "panel")
    assert {entry.guarantee for entry in register.entries} == {"rlip:1.0,0.05"}
    found = recount_histories(register.root)
    assert not found.complaints
    assert [(version.complaints, version.broken) for version in found.versions] == [((), ())] * len(made[1])


@pytest.mark.parametrize("wrong", ["of_counts", "of_changes"])
def test_the_second_computation_refuses_what_fewer_people_would_leave_open(
    made: tuple[Path, list[ReleaseFolder]], monkeypatch: pytest.MonkeyPatch, wrong: str
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
    found = recount_histories(Register.of(made[0] / ".funnel", "panel").root)
    said = [said for version in found.versions for said in version.broken]
    assert any("frequencies of a population that are not ruled out" in one for one in said)


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
    with pytest.raises(ReleaseRefused, match="frequencies of a population that are not ruled out"):
        waves(tmp_path, text, first + 1)
