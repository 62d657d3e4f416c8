"""Every sabotage of the pipeline is refused before anything is published, by the expectation or guard that is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sabotage.every import MUTANTS
from tests.sabotage.mutant import Mutant
from tests.sabotage.observing import PUBLISHED, outcome
from tests.sabotage.scenes import HONEST, Scene, prepared, run


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_refused_before_anything_is_published(mutant: Mutant, tmp_path: Path) -> None:
    found = outcome(mutant, tmp_path / "project")
    assert found.caught_by != (PUBLISHED,), f"{mutant.breaks}: {found.sentence}"
    assert mutant.caught_by in found.caught_by, found.sentence
    assert not found.touched
    # One clear sentence, without the words of a library or a way through the code.
    assert found.sentence
    assert "\n" not in found.sentence
    assert "Traceback" not in found.sentence


@pytest.mark.parametrize("scene", HONEST, ids=lambda scene: scene.name)
def test_without_sabotage_every_scene_is_published(scene: Scene, tmp_path: Path) -> None:
    assert run(prepared(tmp_path / "project", scene), scene)["status"] == "published"


def test_there_are_at_least_sixty_each_of_its_own_name_and_line() -> None:
    assert len(MUTANTS) >= 60
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)
    assert len({(mutant.patch, mutant.scene.name) for mutant in MUTANTS}) == len(MUTANTS)
