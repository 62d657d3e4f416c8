"""Planning a version: the very people and histories that a release would find, and nothing left behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from funnel import LIP, Joint, plan
from funnel.certificate import Weighting
from funnel.errors import LedgerError, SpecError
from funnel.history.following import VersionTerms
from funnel.history.version_forecast import VersionForecast
from funnel.measures import Estimation, Information
from funnel.pipeline.tasks.optimise import optimise
from funnel.preview.version_plan import plan_version
from funnel.progress import quiet
from funnel.register.look_up import observe
from funnel.register.register import REGISTERS, Register, open_register
from funnel.release.secret import REGISTER_FILE
from funnel.solver.invariant import counted
from funnel.source.counting import count_joint
from funnel.spec import ReleaseSpec
from tests.panels import KEY, REGISTER, SECRET, publish, waves
from tests.public import previewed

WAVES = waves(4, 2, 90)
SETTINGS: dict[str, Any] = {
    "name": "panel",
    "title": "A panel",
    "secret": list(SECRET),
    "publish": ["town"],
    "record_key": ["id"],
    "guarantee": "lip:2.0",
    "source": {"path": "panel.parquet"},
    "output": {"workspace": "work"},
    "metadata": {"licence": "CC0-1.0"},
    "frequencies": {"protection": "none"},
    "history": {"people": "same", "register": REGISTER, "budget_fraction": 0.9},
}


def spec_in(folder: Path, **changes: Any) -> ReleaseSpec:
    """The spec of the second wave, whose source is there."""
    pq.write_table(pa.Table.from_pandas(WAVES[1].people, preserve_index=False), folder / "panel.parquet")
    return ReleaseSpec.of({**SETTINGS, **changes}, folder)


def planned(spec: ReleaseSpec, mechanisms: tuple[str, ...] = ("grr", "optimal")) -> VersionForecast | None:
    joint = count_joint(spec, quiet)
    rows = plan(joint, LIP(2.0), mechanisms)
    (found,) = plan_version(spec, previewed(spec, joint), (("lip:2.0", rows),))
    return found


def with_first_version(folder: Path) -> Register:
    workspace = folder / "work"
    with open_register(workspace, REGISTER) as register:
        publish(register, WAVES[0], 1, "1.0.0", folder / "made")
    secret = workspace / REGISTERS / REGISTER / REGISTER_FILE
    secret.write_text(KEY.secret.hex())
    secret.chmod(0o600)
    return Register.of(workspace, REGISTER)


def test_a_second_version_is_planned_given_the_history_and_leaves_nothing_but_fits_behind(tmp_path: Path) -> None:
    register = with_first_version(tmp_path)
    spec = spec_in(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    found = planned(spec)
    assert found is not None
    fits = tmp_path / "work/panel/fits"
    left = [path for path in sorted(tmp_path.rglob("*")) if path not in before and fits not in (path, *path.parents)]
    assert [path for path in left if path != fits.parent] == []
    joint = Joint.from_table(WAVES[1].table(), SECRET, ["town"])
    observed = observe(register, WAVES[1].snapshot(tmp_path / "now"), joint, tmp_path / "looked").observed
    assert (found.versions, found.people) == (1, len(WAVES[1].people))
    assert found.histories == len(np.unique(observed.nodes)) > 1
    assert found.new == len(set(WAVES[1].people["id"]) - set(WAVES[0].people["id"]))
    assert [cost.reserve for cost in found.costs] == [1.0, 0.95, 0.9, 0.8]
    assert found.declared.reserve == 0.9
    assert found.declared.step.past.chapters[0].version == "panel/1.0.0"
    assert found.beginnings == ()


@pytest.mark.parametrize("weights", ["root", "share"])
def test_values_as_they_are_are_forecast_as_a_release_makes_them(tmp_path: Path, weights: Weighting) -> None:
    """With exact counts a release changes what is drawn until its table is right on average, and so does the plan."""
    register = with_first_version(tmp_path)
    spec = spec_in(tmp_path, mechanism={"name": "invariant", "weights": weights})
    found = planned(spec, ("invariant",))
    assert found is not None
    step, joint = found.declared.step, count_joint(spec, quiet)
    made = VersionTerms(
        LIP(2.0), "made", target=step.target, worth=counted(joint, weights), reserve=0.9, right=True
    ).decide(register.past, step.observed)
    assert (step.channel.weights == made.channel.weights).all()
    there = joint.counts.sum(axis=0).astype(object)
    off = step.channel.weights.astype(object) @ there - there * made.channel.denominator
    assert (np.abs(off) <= made.channel.denominator).all()


def test_versions_for_estimates_are_forecast_as_a_release_makes_them(tmp_path: Path) -> None:
    register = with_first_version(tmp_path)
    found = planned(spec_in(tmp_path, utility="estimation"))
    assert found is not None
    step = found.declared.step
    made, informative = (
        VersionTerms(LIP(2.0), "made", target=step.target, utility=utility, reserve=0.9, right=True).decide(
            register.past, step.observed
        )
        for utility in (Estimation(), Information())
    )
    assert (step.channel.weights == made.channel.weights).all()
    assert (step.channel.weights != informative.channel.weights).any()


def test_a_first_version_needs_no_register_and_no_secret(tmp_path: Path) -> None:
    found = planned(spec_in(tmp_path))
    assert found is not None
    assert (found.versions, found.histories, found.new) == (0, 1, len(WAVES[1].people))
    left = {path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file()}
    assert {path.parts[:3] for path in left} == {("panel.parquet",), ("work", "panel", "fits")}


def test_a_plan_aims_at_the_protocol_that_a_release_fits_to_a_fraction_of_the_budget(tmp_path: Path) -> None:
    spec = spec_in(tmp_path, history={**SETTINGS["history"], "budget_fraction": 0.5})
    found = planned(spec)
    frequencies = previewed(spec, count_joint(spec, quiet)).protected.frequencies
    made = optimise(spec, frequencies, tmp_path / "elsewhere", Information()).protocol
    assert found is not None
    assert found.declared.step.target.digest == made.digest
    whole = planned(spec_in(tmp_path, history={**SETTINGS["history"], "budget_fraction": 1.0}))
    assert whole is not None
    assert whole.declared.step.target.digest != made.digest


def test_versions_about_others_have_no_outlook(tmp_path: Path) -> None:
    assert planned(spec_in(tmp_path, history={"people": "different"})) is None


def test_a_mechanism_that_cannot_be_used_has_no_outlook(tmp_path: Path) -> None:
    assert planned(spec_in(tmp_path, mechanism={"name": "identity"})) is None


def test_what_cannot_be_known_is_refused(tmp_path: Path) -> None:
    register = with_first_version(tmp_path)
    with pytest.raises(SpecError, match="is about the secret ill, poor"):
        planned(spec_in(tmp_path, secret=["ill"]))
    (register.root / REGISTER_FILE).unlink()
    with pytest.raises(LedgerError, match="is gone"):
        planned(spec_in(tmp_path))
