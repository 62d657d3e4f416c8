"""Combinations of settings that the rules accept end in a release that passes its audit."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from funnel.audit.check import State, overall
from tests.audits import recheck
from tests.combinations import COMBINATIONS, PEOPLE, Combination

pytestmark = pytest.mark.usefixtures("in_process")


def accepted(seed: int) -> list[Combination]:
    """Some that are accepted: one for each kind of people and width, with another protection and utility each time."""
    drawn = random.Random(seed)
    shuffled = drawn.sample(COMBINATIONS, len(COMBINATIONS))
    found: dict[object, Combination] = {}
    for one in shuffled:
        if (one.width, one.people) not in found and not one.refusals:
            found[one.width, one.people] = one
    return list(found.values())


SOME = accepted(1)


def test_every_kind_of_people_is_among_them() -> None:
    assert {one.people for one in SOME} == set(PEOPLE)


@pytest.mark.parametrize("combination", SOME, ids=map(str, SOME))
def test_what_is_accepted_is_released(combination: Combination, tmp_path: Path) -> None:
    made = combination.release(tmp_path / "project")
    assert len({folder.root for folder in made}) == (1 if combination.people == PEOPLE[0] else 2)
    checks = recheck(made[-1])
    assert overall(checks) == State.PASSED, [check for check in checks if not check.passed]
