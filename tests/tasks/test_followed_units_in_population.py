"""Units of several rows under a bound in the population that they are drawn from: released, judged and audited."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from funnel.errors import FunnelError, ReleaseRefused
from funnel.frequencies import unit_tables
from funnel.history import open_shares, possible_distributions
from funnel.history.changes import MoveLimits
from funnel.history.open_shares import OpenShares
from funnel.joint import IntArray, Joint
from funnel.pipeline.flows.pipeline import run_release
from funnel.recount import open_tables
from funnel.register import units
from funnel.release.layout import ReleaseFolder
from funnel.spec import ReleaseSpec
from tests import chance
from tests.audits import recheck
from tests.projects import make_project
from tests.tasks.population_versions import LEFT_OPEN, PopulationVersions
from tests.tasks.test_units_noise import SPEC

EXACT = SPEC.replace("epsilon = 4.0", 'protection = "none"').replace('"lip:1.0"', '"rlip:0.4,0.05"')
EXACT = EXACT.replace('"grr"', '"auto"')
NOISY = EXACT.replace('protection = "none"', "epsilon = 8.0").replace("rlip:0.4", "rlip:1.0")
UNITS = 6_000


def visits(version: int, more: float) -> pa.Table:
    """Rows of patients, of whom some have two or three; in a later version some are gone, and others changed."""
    random = np.random.default_rng(5)
    ill = random.random(UNITS) < 0.4
    usual = np.where(random.random(UNITS) < 0.4, ill, random.integers(0, 3, UNITS))
    random = np.random.default_rng(version)
    there = random.random(UNITS) < 1 - 0.2 * version
    patient = np.repeat(np.arange(UNITS), there * (1 + random.binomial(2, more, UNITS)))
    ill = ill ^ (random.random(UNITS) < 0.1 * version)
    ward = np.where(random.random(len(patient)) < 0.7, usual[patient], random.integers(0, 3, len(patient)))
    ills, wards = np.array(["no", "yes"])[ill.astype(int)][patient], np.array(list("abc"))[ward]
    return pa.table({"patient": patient, "ill": ills, "ward": wards})


def versions(folder: Path, spec: str, number: int, more: float = 0.2) -> PopulationVersions:
    return PopulationVersions.of(folder, "encounters", spec, (visits(version, more) for version in range(number)))


@pytest.fixture(scope="module", params=[EXACT, NOISY], ids=["exact", "noise"])
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> PopulationVersions:
    """Two versions."""
    with chance.same_noise():
        return versions(tmp_path_factory.mktemp("units"), request.param, 2)


def test_both_computations_find_the_bound_in_all_rows_of_both_versions(made: PopulationVersions) -> None:
    made.require_bound(0.1)
    assert [entry.row_limits is not None for entry in made.register.entries] == [True, True]


@pytest.mark.parametrize("wrong", ["second rows", "first rows"])
def test_the_second_computation_refuses_what_fewer_units_would_leave_open(
    made: PopulationVersions, monkeypatch: pytest.MonkeyPatch, wrong: str
) -> None:
    # As if a hundredth of the units had been counted: channels that say much are beyond the bound then.
    if wrong == "second rows":
        real = open_tables._Step.of_rows
        monkeypatch.setattr(
            open_tables._Step,
            "of_rows",
            lambda second, *others: real(
                [tuple((low // 100, high // 100) for low, high in pair) for pair in second], *others
            ),
        )
    else:
        limits = open_tables.limits_at
        monkeypatch.setattr(open_tables, "limits_at", lambda counts, tail: limits(counts, tail**9))
    made.require_refusal()


def _no_sample(first: Joint, limits: MoveLimits, version: int, alpha: Fraction, *box: Any) -> OpenShares:
    found = open_shares.shares_of_rows(first, limits, version, alpha, *box)
    return open_shares.replace(found, stays=limits.stayed / (limits.stayed + limits.left))


def _like_new(first: Joint, limits: MoveLimits, version: int, alpha: Fraction, *box: Any) -> OpenShares:
    found = open_shares.shares_of_rows(first, limits, version, alpha, *box)
    return open_shares.replace(found, stays=np.zeros_like(found.stays))


def _often(first: Joint, limits: MoveLimits, version: int, alpha: Fraction, *box: Any) -> OpenShares:
    return open_shares.shares_of_rows(first, limits, version, Fraction(99, 100), *box)


@pytest.mark.parametrize("mutant", [_no_sample, _like_new, _often], ids=["no sample", "like new", "misses often"])
def test_a_maker_that_leaves_less_open_of_rows_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mutant: object
) -> None:
    monkeypatch.setattr(possible_distributions, "shares_of_rows", mutant)
    with pytest.raises(ReleaseRefused, match=LEFT_OPEN):
        versions(tmp_path, EXACT, 1, 0.02)


def test_a_maker_that_counts_all_rows_of_a_unit_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = units.second_rows

    def twice(*asked: object) -> tuple[IntArray, IntArray]:
        stayed, left = real(*asked)  # type: ignore[arg-type]
        return 2 * stayed, 2 * left

    monkeypatch.setattr(units, "second_rows", twice)
    with pytest.raises(ReleaseRefused, match="its counts of second rows are not those of its people"):
        versions(tmp_path, EXACT, 1)


def test_a_maker_that_tells_rows_by_input_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unit_tables.UnitCounts, "by_secret", property(lambda counts: counts))
    with pytest.raises(FunnelError, match="leave too much open"):
        versions(tmp_path, NOISY, 1)


def test_units_that_were_published_for_the_counted_ones_alone_can_go_on_for_a_population(tmp_path: Path) -> None:
    versions(tmp_path, EXACT.replace("rlip:0.4,0.05", "lip:0.4"), 1)
    path = make_project(tmp_path, EXACT.replace("[history]", '[history]\nsecrets = "current"'), visits(1, 0.2))
    told, _ = run_release(ReleaseSpec.load(path), again=False, rotate=False)
    assert [check for check in recheck(ReleaseFolder(Path(told["folder"]))) if check.failed] == []
