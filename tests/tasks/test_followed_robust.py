"""People who are the same, under noise, with a bound for whoever knows the true counts as well: released and judged."""

from __future__ import annotations

from pathlib import Path

import pytest

from funnel.audit.histories import recount_histories
from funnel.register.register import Register
from funnel.release import secret
from funnel.release.findings import FindingsDocument
from funnel.release.layout import ReleaseFolder
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
        return folder, [released(folder, ROBUST, wave(year, 400), patch) for year in WAVES[:3]]


def test_whoever_knows_the_true_tables_finds_nobody_outside(made: tuple[Path, list[Released]]) -> None:
    kept = []
    for one in made[1]:
        found = FindingsDocument.read(one.folder.findings).found_history
        assert found is not None
        assert found.expected is not None
        assert found.expected.tables is not None
        kept.append(found.share)
        assert found.expected.tables_people == found.expected.tables_moved == 0
        assert found.expected.tables <= 1
    assert kept[1] > 0.1
    register = Register.of(made[0] / ".funnel", "panel")
    assert [entry.limits is not None for entry in register.entries] == [True] * 3
    for entry in register.entries[1:]:
        assert entry.changes is not None
        assert {len(one.stayed[0]) for one in entry.changes.since} == {1}


def test_both_computations_find_that(made: tuple[Path, list[Released]]) -> None:
    register = Register.of(made[0] / ".funnel", "panel")
    found = recount_histories(register.root)
    assert not found.complaints
    assert [(version.complaints, version.broken) for version in found.versions] == [((), ())] * 3
    for one in made[1]:
        assert [check for check in recheck(ReleaseFolder(one.folder.root)) if check.failed] == []
