"""Combinations of settings that the rules accept end in a release that passes its audit."""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path

import pytest

from funnel.audit.check import State, overall
from funnel.audit.context import Told
from tests.audits import recheck
from tests.combinations import (
    COMBINATIONS,
    ESTIMATION,
    INFORMATION,
    ONE,
    OTHERS,
    PEOPLE,
    SINGLE,
    UNCHANGED,
    UNITS,
    WHOLE,
    WIDTHS,
    Combination,
)

KINDS = [(width, people) for width in WIDTHS for people in PEOPLE]


@cache
def accepted() -> dict[tuple[str, str], Combination]:
    """One that is accepted for each width and kind of people, with another protection and utility each time."""
    found: dict[tuple[str, str], Combination] = {}
    for one in random.Random(1).sample(COMBINATIONS, len(COMBINATIONS)):
        if (one.width, one.people) not in found and not one.refusals:
            found[one.width, one.people] = one
    return found


def test_there_is_one_of_every_kind() -> None:
    assert set(accepted()) == set(KINDS)


@pytest.mark.parametrize("kind", KINDS, ids=", ".join)
def test_what_is_accepted_is_released(kind: tuple[str, str], tmp_path: Path) -> None:
    combination = accepted()[kind]
    made = combination.release(tmp_path / "project")
    assert len({folder.root for folder in made}) == combination.versions
    checks = recheck(made[-1])
    assert overall(checks) == State.PASSED, [check for check in checks if not check.passed]


# Of whom an observer knows columns of one row, whichever it is; and records that all count alike.
FURTHER = [
    Combination(ONE, UNITS, "none", "srlip:1.0", UNCHANGED),
    Combination(ONE, UNITS, "threshold", "attribute:1.0", ESTIMATION),
    Combination(ONE, UNITS, "none", "rsrlip:1.0,0.05", INFORMATION),
    Combination(WHOLE, OTHERS, "noise", "rattribute:1.0,0.05", ESTIMATION),
    Combination(WHOLE, SINGLE, "none", "srlip:1.0", ESTIMATION),
    Combination(WHOLE, UNITS, "threshold", "pml:1.0", UNCHANGED),
]


@pytest.mark.parametrize("combination", FURTHER, ids=str)
def test_a_copy_of_it_passes_a_public_audit_too(combination: Combination, tmp_path: Path) -> None:
    for folder in combination.release(tmp_path / "project"):
        for told in (Told(), Told(public=True)):
            checks = recheck(folder, told)
            assert overall(checks) == State.PASSED, [check for check in checks if not check.passed]
