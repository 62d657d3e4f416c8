"""A report that states other figures of what stays unchanged than follow fails by the check *unchanged*."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from funnel.audit.arithmetic import mean_between
from funnel.audit.check import State, overall
from funnel.audit.recheck import Told
from funnel.audit.unchanged import followed_complaints
from funnel.release.layout import ReleaseFolder
from tests.audits import recheck, verified
from tests.copies import copied
from tests.funnel.audit.forging import Forger
from tests.funnel.audit.statements import passes
from tests.projects import SPEC, adult_rows, make_project
from tests.releases import make_release

CATEGORIES = """
[categories]
income = ["<=50K", ">50K"]
sex = ["Female", "Male"]
race = ["White", "Black", "Other"]
"""
PLAIN = (
    SPEC.replace('["marital-status"]', '["income"]')
    .replace('["relationship"]', '["sex", "race"]')
    .replace("[source]", 'mechanism = "invariant"\n\n[source]')
)
WITH_SECRET = PLAIN.replace('["sex", "race"]', '["income", "sex", "race"]').replace('"lip:1.0"', '"attribute:1.0"')
SPECS = {
    "noise": WITH_SECRET.replace('protection = "none"', 'protection = "noise"') + CATEGORIES,
    "noise, secret not published": PLAIN.replace('protection = "none"', 'protection = "noise"') + CATEGORIES,
    "exact": WITH_SECRET,
    "exact, secret not published": PLAIN,
}
# The checks of what stays unchanged.
CONCERNED = ("unchanged", "exact unchanged")
# What a figure becomes; shares are told in steps of .001, of this many records.
ROWS = 12_000
POINT, STEP = 0.01, 0.001
Change = Callable[[Any], None]


def moved(share: float, by: float = POINT) -> float:
    """A share that is off, still a multiple of its step."""
    return round(share + by if share + by <= 1 else share - by, 4)


def wider(error: float) -> float:
    """An error of two digits that is one of the last digit larger."""
    return float(f"{error + 10.0 ** (math.floor(math.log10(error)) - 1):.2g}")


def off(*path: str | int, by: float = POINT) -> Change:
    """The figure at a path of the block, off."""

    def change(block: Any) -> None:
        for part in path[:-1]:
            block = block[part]
        block[path[-1]] = moved(block[path[-1]], by)

    return change


# Name, and change.
EVERYWHERE: tuple[tuple[str, Change], ...] = (
    ("share", off("share")),
    ("share of a column", off("columns", 1, "share")),
    ("columns", lambda block: block["columns"].pop()),
    ("error", lambda block: block.update(error=block["error"] / 2)),
    ("error of any values", lambda block: block.update(any_error=float(f"{block['any_error'] / 2:.2g}"))),
    ("error of any values left out", lambda block: block.update(any_error=None)),
    ("exact records", off("exact_records", by=0.02)),
    ("unique", lambda block: block.update(unique=block["unique"] + 1)),
    ("a share with more digits", lambda block: block.update(share=block["share"] + 0.0002)),
)
OF_SECRET: tuple[tuple[str, Change], ...] = (
    ("unchanged by secret", off("secrets", 0, "share", by=0.05)),
    ("prior of a secret", off("secrets", 0, "prior", by=0.05)),
)
OF_PUBLISHED_SECRET: tuple[tuple[str, Change], ...] = (
    ("a secret that stays", off("secrets", 1, "stays", by=0.05)),
    ("its limit", off("secrets", 1, "at_most", by=0.05)),
)
OF_COUNTS: tuple[tuple[str, Change], ...] = (
    ("level of observers", lambda block: block["observers"][0].update(level=0.2)),
    ("people moved beyond the bound", off("observers", 0, "outside", by=0.02)),
    ("an observer less", lambda block: block["observers"].pop()),
    ("a value of the secret less", lambda block: block["secrets"].pop()),
    # Each is rounded up in one way, so that a wider figure is as wrong as a narrower one.
    ("an error wider by its last digit", lambda block: block.update(error=wider(block["error"]))),
    ("an error of any values, wider", lambda block: block.update(any_error=wider(block["any_error"]))),
    ("an error of three digits", lambda block: block.update(error=float(f"{block['error'] * 0.994:.3g}"))),
    ("a level above the bound that holds", lambda block: block["observers"][0].update(level=1.05)),
    ("another step of people beyond the bound", off("observers", 0, "outside", by=STEP)),
)
# They are in that of their public shares, which are not there where the secret is not published and counts are exact.
OF_ORDER: tuple[tuple[str, Change], ...] = (
    ("values of the secret in another order", lambda block: block["secrets"].reverse()),
)
OF_COUNTED_SECRET: tuple[tuple[str, Change], ...] = (
    ("another step of a limit", off("secrets", 1, "at_most", by=STEP)),
    ("a limit between two steps", off("secrets", 1, "at_most", by=STEP / 2)),
)


def changes_of(name: str, public: bool) -> list[tuple[str, Change]]:
    published, counted = "not published" not in name, name.startswith("noise") or not public
    found = [*EVERYWHERE]
    found += OF_SECRET if published or counted else ()
    found += OF_PUBLISHED_SECRET if published else ()
    found += OF_COUNTS if counted else ()
    found += OF_COUNTED_SECRET if counted and published else ()
    found += OF_ORDER if counted and (published or name.startswith("noise")) else ()
    return found


CASES = [
    pytest.param(name, public, change, id=f"{name}, {'public' if public else 'workspace'}: {what}")
    for name in SPECS
    for public in (True, False)
    for what, change in changes_of(name, public)
]


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ReleaseFolder]:
    rows = adult_rows(rows=ROWS)
    return {
        name: make_release(make_project(tmp_path_factory.mktemp("original"), spec, rows))
        for name, spec in SPECS.items()
    }


def changed(folder: ReleaseFolder, target: Path, change: Change) -> ReleaseFolder:
    """A copy whose report states something else."""
    copy = copied(folder, target)
    Forger(copy).edit(copy.numbers, lambda content: change(content["unchanged"]))
    return copy


def forged(folder: ReleaseFolder, target: Path, change: Change) -> ReleaseFolder:
    """The same, with pages that say so too and digests and a signature that fit."""
    copy = changed(folder, target, change)
    Forger(copy).pages()
    Forger(copy).cover()
    return copy


@pytest.mark.parametrize("name", SPECS)
def test_honest_reports_pass(originals: dict[str, ReleaseFolder], name: str) -> None:
    for told in (Told(), Told(public=True)):
        checks = recheck(originals[name], told)
        assert overall(checks) is State.PASSED, [check for check in checks if not check.passed]
        expected = {"unchanged"} | ({"exact unchanged"} if name.startswith("exact") and not told.public else set())
        assert expected <= {check.name for check in checks}


@pytest.mark.parametrize(("name", "public", "change"), CASES)
def test_another_figure_fails(
    originals: dict[str, ReleaseFolder], tmp_path: Path, name: str, public: bool, change: Change
) -> None:
    copy = changed(originals[name], tmp_path / "1.0.0", change)
    assert any(check.failed for check in verified(copy, CONCERNED, Told(public=public)))


@pytest.mark.parametrize("name", SPECS)
def test_no_other_check_notices(originals: dict[str, ReleaseFolder], tmp_path: Path, name: str) -> None:
    """Everything is signed by whoever made it."""
    copy = forged(originals[name], tmp_path / "1.0.0", off("share"))
    # Without noise the mean over secrets tells it as well.
    noticed = {"unchanged", "secrets"} if name.startswith("exact") else {"unchanged"}
    assert {check.name for check in recheck(copy, Told(public=True)) if check.failed} == noticed


@pytest.mark.parametrize("name", ["noise", "exact"])
def test_how_many_columns_observers_know_at_once_follows_from_the_classes(
    originals: dict[str, ReleaseFolder], name: str
) -> None:
    report = json.loads(originals[name].numbers.read_bytes())
    assert passes(originals[name], report)
    report["unchanged"]["at_once"] = 1
    assert not passes(originals[name], report)


def test_a_report_that_is_silent_fails(originals: dict[str, ReleaseFolder], tmp_path: Path) -> None:
    copy = copied(originals["noise"], tmp_path / "1.0.0")
    Forger(copy).edit(copy.numbers, lambda content: content.update(unchanged=None))
    failed = {check.name: check.detail for check in recheck(copy, Told(public=True)) if check.failed}
    assert "does not state" in failed["unchanged"]
    copy.numbers.unlink()
    assert "unchanged" in {check.name for check in recheck(copy, Told(public=True)) if check.failed}


# Nothing, or what a mean can be taken of in floats.
PARTS = st.just(0.0) | st.floats(1e-6, 0.3)


@given(
    st.lists(st.tuples(st.floats(0, 1), PARTS, PARTS), min_size=1, max_size=5),
    st.lists(st.floats(0, 1), min_size=5, max_size=5),
)
def test_means_are_those_of_the_best_and_worst_shares(
    values: list[tuple[float, float, float]], places: list[float]
) -> None:
    """No shares within the limits have a mean outside, and some have both ends: against all corners of the box."""
    numbers = np.array([value for value, _, _ in values])
    least = np.array([low for _, low, _ in values])
    most = least + np.array([width for _, _, width in values])
    found = mean_between(least, most, numbers)
    inside = least + np.array(places[: len(values)]) * (most - least)
    if inside.sum() > 1e-6:
        assert found.low - 1e-9 <= float(inside @ numbers / inside.sum()) <= found.high + 1e-9
    corners = []
    for corner in range(2 ** len(values)):
        upper = np.array([corner >> k & 1 for k in range(len(values))], dtype=bool)
        p = np.where(upper, most, least)
        if p.sum() > 0:
            corners.append(float(p @ numbers / p.sum()))
    if corners:
        assert found.low == pytest.approx(min(corners), abs=1e-9)
        assert found.high == pytest.approx(max(corners), abs=1e-9)


def test_own_records_are_held_to_what_shares_were_before_they_were_rounded() -> None:
    """Of 250,000 people in 22 classes .893 were to be own, and by rounded shares .890 were to keep their class."""
    stated = SimpleNamespace(share=0.89, whole=None, known=(), followed=object())
    assert not list(followed_complaints(0.893, stated, 0.897, STEP))
    for own, most in ((0.893, 0.8924), (0.8935, 0.897), (-0.001, 0.897), (None, 0.897)):
        assert list(followed_complaints(own, stated, most, STEP))
    for wrong in ({"whole": object()}, {"followed": None}):
        assert list(followed_complaints(0.893, SimpleNamespace(**vars(stated) | wrong), 0.897, STEP))
