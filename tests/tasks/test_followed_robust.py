"""The same people under noise, with a bound also for an observer who knows the true counts: released and judged."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from funnel.audit.history import recount_histories
from funnel.errors import SpecError
from funnel.guarantees import parse_guarantee
from funnel.planning import plan
from funnel.preview.counted import preview
from funnel.preview.version_plan import plan_version
from funnel.progress import quiet
from funnel.recount import left_open
from funnel.recount.noise import cell_limit
from funnel.register.register import Register
from funnel.release import secret
from funnel.release.findings import FindingsDocument
from funnel.release.layout import ReleaseFolder
from funnel.spec import ReleaseSpec
from tests.audits import recheck
from tests.tasks.test_followed_noise import PANEL, SAME_SECRET
from tests.tasks.test_neighbours import Released, released
from tests.waves import WAVES, wave

ROBUST = PANEL.replace('people = "same"', 'people = "same"\nrobust = true').replace("epsilon = 2.0", "epsilon = 8.0")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Released]]:
    """Three waves, released one after the other."""
    folder = tmp_path_factory.mktemp("robust")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(secret, "secrets", SAME_SECRET)
        return folder, [released(folder, ROBUST, wave(year, 2000), patch) for year in WAVES[:3]]


def test_whoever_knows_the_true_tables_finds_nobody_outside(made: tuple[Path, list[Released]]) -> None:
    kept = []
    for one in made[1]:
        found = FindingsDocument.read(one.folder.findings).history
        assert found.expected.tables is not None
        kept.append(found.share)
        assert found.expected.tables_people == found.expected.tables_moved == 0
        assert found.expected.tables <= 1
    assert kept[1] > 0.1
    register = Register.of(made[0] / ".funnel", "panel")
    assert [entry.limits is not None for entry in register.entries] == [True] * 3
    for entry in register.entries[1:]:
        assert {len(one.stayed[0]) for one in entry.changes.since} == {1}


def test_both_computations_find_that(made: tuple[Path, list[Released]]) -> None:
    register = Register.of(made[0] / ".funnel", "panel")
    found = recount_histories(register.root)
    assert not found.complaints
    assert [(version.complaints, version.broken) for version in found.versions] == [((), ())] * 3
    for one in made[1]:
        assert [check for check in recheck(ReleaseFolder(one.folder.root)) if check.failed] == []


def test_the_second_computation_refuses_what_more_noise_would_leave_open(
    made: tuple[Path, list[Released]], monkeypatch: pytest.MonkeyPatch
) -> None:
    # As if noise were many times as wide as it is said to be: channels that say much are beyond the bound then.
    register = Register.of(made[0] / ".funnel", "panel")
    monkeypatch.setattr(left_open, "cell_limit", lambda scale, tail: 60 * cell_limit(scale, tail))
    found = recount_histories(register.root)
    assert not found.versions[0].broken
    assert any(
        "true tables that are not ruled out" in said for version in found.versions[1:] for said in version.broken
    )


def test_pages_say_for_whom_the_bound_holds(made: tuple[Path, list[Released]]) -> None:
    for number, one in enumerate(made[1]):
        page = one.folder.report.read_text(encoding="utf-8")
        assert ("over all versions together it is proven for every set of such tables" in page) is (number > 0)
        assert "not proven" not in page
        found = FindingsDocument.read(one.folder.findings).history
        assert found.expected.open_people is not None
        assert (found.expected.open_people > 0) <= (number > 0)


def test_a_plan_is_made_for_the_same_tables(made: tuple[Path, list[Released]], tmp_path: Path) -> None:
    place = tmp_path / "panel"
    shutil.copytree(made[0], place, symlinks=True)
    spec = ReleaseSpec.load(place / "people.toml")
    found = preview(spec, quiet)
    rows = plan(found.protected.frequencies.joint, parse_guarantee("lip:1.0"), time_limit=0.2)
    (outlook,) = plan_version(spec, found, (("lip:1.0", tuple(rows)),))
    limits = outlook.costs[0].step.observed.limits
    assert limits is not None
    assert sorted(limits) == [0, 1, 2]


def test_robust_is_asked_for_from_the_first_version_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secret, "secrets", SAME_SECRET)
    released(tmp_path, PANEL, wave(WAVES[0], 240), monkeypatch)
    with pytest.raises(SpecError, match="begin another register"):
        released(tmp_path, ROBUST, wave(WAVES[1], 240), monkeypatch)


@pytest.mark.parametrize(
    "text",
    [ROBUST.replace("epsilon = 8.0", 'protection = "none"'), ROBUST.replace('people = "same"', 'people = "different"')],
)
def test_robust_is_refused_where_it_means_nothing(text: str, tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="robust"):
        ReleaseSpec.parse(text, tmp_path / "people.toml")
