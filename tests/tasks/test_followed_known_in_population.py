"""Versions in a population for observers who know published columns: released, judged, audited, and mutants refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from funnel.errors import ReleaseRefused
from funnel.history import history_status, worst_tables
from funnel.history.possible_distributions import DistributionSet
from funnel.pipeline.flows.pipeline import run_release
from funnel.recount import open_tables
from funnel.spec import ReleaseSpec
from tests import chance
from tests.funnel.history.test_known_in_population import panel
from tests.projects import make_project
from tests.tasks.population_versions import LEFT_OPEN, PopulationVersions
from tests.tasks.test_units_noise import SPEC

EXACT = (
    SPEC.replace("epsilon = 4.0", 'protection = "none"')
    .replace('"lip:1.0"', '"rsrlip:0.8,0.05"')
    .replace('"grr"', '"optimal"')
    .replace('publish = ["ward"]', 'publish = ["size", "town"]')
    .replace('unit = ["patient"]', 'record_key = ["id"]')
    .replace('ward = ["a", "b", "c"]', 'size = ["a", "b"]\ntown = ["x", "y"]')
)
NOISY = EXACT.replace('protection = "none"', "epsilon = 8.0").replace("rsrlip:0.8", "rattribute:1.5")


def versions(folder: Path, spec: str, number: int) -> PopulationVersions:
    return PopulationVersions.of(folder, "encounters", spec, panel(1, number))


@pytest.fixture(scope="module", params=[EXACT, NOISY], ids=["exact", "noise"])
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> PopulationVersions:
    """Two versions."""
    with chance.same_noise():
        return versions(tmp_path_factory.mktemp("known"), request.param, 2)


def test_both_computations_find_the_bound_for_whoever_knows_columns(made: PopulationVersions) -> None:
    made.require_bound(0.05)


@pytest.mark.parametrize("wrong", ["limits of known", "new people"])
def test_the_second_computation_refuses_what_fewer_people_would_leave_open(
    made: PopulationVersions, monkeypatch: pytest.MonkeyPatch, wrong: str
) -> None:
    real = open_tables.limits_at
    parts = 0 if wrong == "new people" else 1

    def wider(counts: Any, tail: Any) -> Any:
        # Of what is known, or of whole versions, as if nobody could say so certainly.
        is_whole = len(counts.lower[0]) == 4
        return real(counts, tail**20 if is_whole == (not parts) else tail)

    monkeypatch.setattr(open_tables, "limits_at", wider)
    made.require_refusal()


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One version, which a second one that is refused leaves as it is."""
    folder = tmp_path_factory.mktemp("first")
    versions(folder, EXACT, 1)
    return folder


@pytest.mark.parametrize("mutant", ["nobody knows columns", "a column is forgotten", "counted", "others count"])
def test_a_maker_with_a_wrong_line_is_refused(first: Path, monkeypatch: pytest.MonkeyPatch, mutant: str) -> None:
    if mutant == "nobody knows columns":
        real = DistributionSet.of

        def without(past: Any, observed: Any, allowed: Any) -> DistributionSet | None:
            return real(past, observed, replace(allowed, for_known=False))

        monkeypatch.setattr(DistributionSet, "of", without)
        monkeypatch.setattr(history_status, "_known", lambda guarantee, joint: [((), None)])
    elif mutant == "a column is forgotten":
        known = DistributionSet._known_in
        monkeypatch.setattr(DistributionSet, "_known_in", lambda self, joint: known(self, joint)[:2])
    elif mutant == "counted":
        parts = DistributionSet._parts
        monkeypatch.setattr(
            DistributionSet,
            "_parts",
            lambda self, joint, number: parts(self, replace(joint, counts=joint.counts * 1000), number),
        )
    else:
        after = worst_tables.worst_after
        monkeypatch.setattr(
            worst_tables,
            "worst_after",
            lambda step, reach, rows, told, allowed: after(step, reach, 0 * rows + rows.max(), told, allowed),
        )
    path = make_project(first, EXACT, panel(1, 2)[1])
    with pytest.raises(ReleaseRefused, match=LEFT_OPEN):
        run_release(ReleaseSpec.load(path), again=False, rotate=False)
    assert len(list((first / "releases" / "encounters").glob("[0-9]*"))) == 1
