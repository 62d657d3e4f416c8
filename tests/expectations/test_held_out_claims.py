"""Whole records under a bound for a population: what is stated of held-out records is judged, and that others chose."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from funnel.audit.check import State, overall
from funnel.audit.recheck import Told
from funnel.errors import SpecError
from funnel.pipeline.expectations import Finished
from funnel.release.layout import ReleaseFolder
from funnel.spec import ReleaseSpec
from tests.audits import recheck
from tests.expectations.conftest import Made
from tests.expectations.test_finished import edit, failures
from tests.projects import make_project
from tests.sabotage.holding_out import HOLDING_OUT
from tests.sabotage.observing import outcome
from tests.sabotage.scenes import HELD_OUT_SPEC, source

# The checks that are about classes and the bound between them.
CHECKS = ("record classes", "classes", "leakage")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return Made.of(make_project(tmp_path_factory.mktemp("held out"), HELD_OUT_SPEC, source()))


def test_a_release_passes_with_and_without_internal_evidence(made: Made, finished: Finished) -> None:
    assert failures(finished, *CHECKS) == {}
    for told in (Told(), Told(public=True)):
        checks = recheck(ReleaseFolder(made.folder), told)
        assert overall(checks) == State.PASSED, [check for check in checks if not check.passed]


def one_more(document: Any) -> None:
    document["held_out"][0][0] += 1


def one_less(document: Any) -> None:
    document["held_out"][1][-1] -= 1


def none(document: Any) -> None:
    document["held_out"] = None


def of_the_next_class(document: Any) -> None:
    document["held_out"] = [[*row[1:], row[0]] for row in document["held_out"]]


def of_the_other_secret(document: Any) -> None:
    document["held_out"].reverse()


def nobody(document: Any) -> None:
    document["held_out"] = [[0] * len(row) for row in document["held_out"]]


@pytest.mark.parametrize("change", [one_more, one_less, none, of_the_next_class, of_the_other_secret, nobody])
def test_other_records_than_are_held_out_are_refused(finished: Finished, change: Callable[[Any], None]) -> None:
    edit(finished.folder.parts, change)
    assert set(failures(finished, "record classes")) == {"held out"}


@pytest.mark.parametrize("people", ["same", "different"])
def test_questions_that_are_said_to_be_chosen_by_others_are_refused(finished: Finished, people: str) -> None:
    edit(finished.folder.classes, lambda document: document.update(people=people))
    assert set(failures(finished, "record classes")) == {"origin"}
    # Nothing public says of a bound for a population that the same people chose, and nothing denies that others did.
    assert set(failures(finished, "classes")) == ({"classes"} if people == "same" else set())


def test_a_part_of_the_people_chooses_for_a_population_alone(finished: Finished) -> None:
    edit(finished.folder.protocol, lambda document: document["guarantee"].update(declared="lip:1.5 & srlip:3.0"))
    assert "though no bound for a population needs that" in failures(finished, "classes")["classes"]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("held_out = 0.5", "held_out = 0.45", {"held out", "chosen"}),
        # Classes of another size are other classes.
        ('known = "pairs"', 'known = "pairs"\nmin_records = 300', {"chosen"}),
    ],
)
def test_another_spec_is_another_choice(made: Made, finished: Finished, old: str, new: str, said: set[str]) -> None:
    text = made.spec.read_text(encoding="utf-8")
    assert old in text
    other = made.spec.with_name("other.toml")
    other.write_text(text.replace(old, new), encoding="utf-8")
    assert (
        set(failures(replace(finished, spec=ReleaseSpec.load(other)), "record classes"))
        & {
            "held out",
            "chosen",
        }
        == said
    )


@pytest.mark.parametrize("name", ["classes that all records choose", "bins that all records choose"])
def test_classes_that_held_out_records_choose_are_refused_for_that_alone(name: str, tmp_path: Path) -> None:
    (mutant,) = (one for one in HOLDING_OUT if one.name == name)
    found = outcome(mutant, tmp_path / "project")
    assert "1 of" in found.sentence
    assert found.sentence.endswith("record classes: chosen by other records than those not held out")


def test_bins_that_are_found_from_all_records_are_refused(tmp_path: Path) -> None:
    spec = HELD_OUT_SPEC.replace("bins = [30, 50]", 'bins = "auto"')
    assert spec != HELD_OUT_SPEC
    with pytest.raises(SpecError, match="bins of age are found from all of them"):
        ReleaseSpec.load(make_project(tmp_path, spec, source()))
