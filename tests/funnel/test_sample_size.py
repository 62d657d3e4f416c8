"""What the number of records allows: a robust bound that leaves nothing of use says so, with how many would do."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner

from funnel import LIP, RLDP, InfeasibleGuarantee, Joint, fit, measures, plan
from funnel.bounds import Bounds
from funnel.cli import main
from funnel.console import Console
from funnel.frequencies.noise import Noise
from funnel.frequencies.public_counts import of_noisy
from funnel.guarantees import parse_guarantee
from funnel.preview.spec_plan import BoundPlan, SpecPlan
from funnel.sample_size import _times as times
from funnel.sample_size import (
    doubts,
    grouped,
    rare_secrets,
    records_needed,
    too_few,
    values_to_group,
    warnings,
)
from funnel.spec import ReleaseSpec
from tests.projects import SPEC, make_project, spec_of
from tests.public import UNPROTECTED
from tests.releases import make_release

COUNTS = np.array([[7, 3], [4, 6]])
# Without a limit of time: what is found must not depend on one.
ROBUST = SPEC.replace("lip:1.0", "rldp:0.05,0.05,chi2")


def project(folder: Path, factor: int) -> Path:
    cells = [(s, x) for s, row in enumerate(COUNTS) for x, count in enumerate(row) for _ in range(count * factor)]
    secret, shown = zip(*cells, strict=True)
    table = {"marital-status": [f"s{s}" for s in secret], "relationship": [f"x{x}" for x in shown]}
    return make_project(folder, ROBUST, pa.table(table))


@pytest.mark.parametrize("epsilon", [0.2, 1.0])
def test_the_records_needed_are_enough_and_not_many_too_many(epsilon: float) -> None:
    guarantee = RLDP(epsilon, set="chi2")
    need = records_needed(Joint.from_counts(COUNTS), guarantee)
    factor = -(-need.n // 20)
    enough = Joint.from_counts(COUNTS * factor)
    assert measures.normalised_mutual_information(enough, fit("grr", enough, guarantee)) >= need.share
    less = Joint.from_counts(COUNTS * int(factor * 0.85))
    assert measures.normalised_mutual_information(less, fit("grr", less, guarantee)) < need.share
    assert too_few(enough, guarantee, plan(enough, guarantee, ["grr"])) is None


def test_a_bound_that_more_records_would_not_help_is_no_matter_of_records() -> None:
    joint = Joint.from_counts(COUNTS * 1_000_000)
    guarantee = RLDP(0.01, set="chi2")
    rows = plan(joint, guarantee, ["grr"])
    assert (rows[0].share or 0) < 0.01
    assert too_few(joint, guarantee, rows) is None
    assert too_few(joint, LIP(0.001), plan(joint, LIP(0.001), ["grr"])) is None
    with pytest.raises(InfeasibleGuarantee, match="perfect"):
        records_needed(joint, RLDP(0.0, set="chi2"))


def test_a_plan_warns_of_few_records_and_of_rare_combinations(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = project(tmp_path, 1)
    shown = CliRunner().invoke(main, ["plan", str(spec), "--no-page"]).stdout
    few, useless = (line.removeprefix("warning: ") for line in shown.splitlines() if line.startswith("warning: "))
    assert few.startswith("3 of the 4 combinations of marital-status, relationship have fewer than 5 records, or would")
    assert useless.startswith("the data are too few for this bound: from 20 records")
    joint, guarantee = Joint.from_counts(COUNTS), RLDP(0.05, set="chi2")
    rows = plan(joint, guarantee, ["grr"])
    said = warnings(joint, guarantee, rows)
    bound = BoundPlan(str(guarantee), rows, said)
    Console(True).print_plan(SpecPlan(ReleaseSpec.load(spec), joint, UNPROTECTED, [bound]))
    assert json.loads(capsys.readouterr().out)["warnings"] == list(said)
    assert len(said) == 2


def test_enough_records_are_no_reason_to_warn() -> None:
    joint = Joint.from_counts(COUNTS * 2000)
    guarantee = RLDP(1.0, set="chi2")
    assert warnings(joint, guarantee, plan(joint, guarantee, ["grr"])) == ()
    assert doubts(Joint.from_counts(COUNTS), LIP(1.0)) == ()


def test_a_release_of_too_few_records_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InfeasibleGuarantee, match="the data are too few for this bound: from 20 records"):
        make_release(project(tmp_path, 1))
    assert not (tmp_path / "releases" / "people" / "1.0.0").exists()


def thin(noise: bool) -> Joint:
    """One value of the secret so rare that no bound over what is possible leaves anything of use."""
    counts = np.array([[400, 200, 150], [180, 240, 330], [2, 1, 1], [1, 1, 2]])
    joint = Joint.from_counts(counts, secret=["often", "seldom", "rare", "odd"])
    if not noise:
        return joint
    sums = counts.sum(axis=1)
    lower, upper = np.maximum(counts - 9, 0), counts + 9
    totals = np.stack([np.maximum(sums - 15, lower.sum(axis=1)), sums + 15], axis=1)
    return Joint(counts, joint.secret, joint.inputs, Bounds(lower, upper, totals, 0.01))


@pytest.mark.parametrize(("text", "noise"), [("rldp:0.2,0.05", False), ("rldp:0.2,0.05", True), ("ldp:0.2", True)])
def test_over_boxes_and_noisy_counts_a_sentence_says_how_many_would_do(text: str, noise: bool) -> None:
    joint, guarantee = thin(noise), parse_guarantee(text)
    said = too_few(joint, guarantee, plan(joint, guarantee, ["grr", "subset-merging"]))
    assert said is not None
    assert ("the noise on their frequencies" in said) == noise
    need = records_needed(joint, guarantee)
    assert f"about {need.n:,} records" in said
    matrix = fit("grr", times(joint, need.n / joint.n), guarantee)
    assert measures.normalised_mutual_information(times(joint, need.n / joint.n), matrix) >= need.share * 0.98


def test_rare_values_that_would_do_as_one_are_named() -> None:
    counts = np.array([[4000, 2000, 1500], [1800, 2400, 3300], [40, 20, 25], [20, 30, 35], [30, 20, 25], [25, 40, 30]])
    joint = Joint.from_counts(counts, secret=["a", "b", "c", "d", "e", "f"])
    guarantee = RLDP(1.1)
    found = values_to_group(joint, guarantee)
    assert found == ("e", "c", "d")
    said = too_few(joint, guarantee, [])
    assert said is not None
    assert f"with the values {', '.join(found)} of S made one" in said


class TestRareSecrets:
    COUNTS = (((7_000, 7_000), (1_500, 1_600), (40, 35), (30, 32), (5, 4)), ("none", "asthma", "cancer", "hiv", "tb"))

    def joint(self, scale: int = 1) -> Joint:
        counts, secrets = self.COUNTS
        exact = Joint.from_counts(np.array(counts) * scale, list(secrets), ["clerk", "farmer"])
        noise = Noise(1.0, 0.0, 0.01)
        return of_noisy(exact.counts, exact.secret, exact.inputs, noise, 1.0, 1.0).joint

    def test_are_named_with_the_setting_that_merges_them(self, tmp_path: Path) -> None:
        joint, spec = self.joint(), spec_of("t", tmp_path, secret=["S"], publish=["X"])
        said = rare_secrets(spec, joint, LIP(1.0))
        assert said is not None
        # The one that it is merged with may be common: it is not called rare.
        assert said.startswith("the value tb of the secret column 'S' is too rare for ")
        assert "to merge it with hiv" in said
        # What is merged then is told of no more.
        (merged,) = re.findall(r"write groups = (\{.*\}) in \[recode.S\]", said)
        members = next(iter(tomllib.loads(f"groups = {merged}")["groups"].values()))
        apart = [k for k, label in enumerate(joint.secret.labels) if label in members]
        assert rare_secrets(spec, grouped(joint, np.array(apart)), LIP(1.0)) is None

    def test_of_many_records_none_are(self, tmp_path: Path) -> None:
        spec = spec_of("t", tmp_path, secret=["S"], publish=["X"])
        assert rare_secrets(spec, self.joint(1000), LIP(1.0)) is None

    def test_of_known_frequencies_none_are(self, tmp_path: Path) -> None:
        spec = spec_of("t", tmp_path, secret=["S"], publish=["X"])
        assert rare_secrets(spec, Joint.from_counts(np.array(self.COUNTS[0])), LIP(1.0)) is None
