"""Replicate weights: known by their names, never published, and why: they single records of a real table out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from funnel.cli import main
from funnel.errors import SpecError
from funnel.joint import IntArray
from funnel.settings.replicate_weights import replicate_weights
from funnel.spec import ReleaseSpec
from tests.projects import ADULT, spec_of
from tests.releases import release

GROUPS = 80


def numbered(stem: str, number: int) -> list[str]:
    return [f"{stem}{k}" for k in range(1, number + 1)]


@pytest.mark.parametrize(
    "stem",
    ["PWGTP", "WGTP", "REPWTP", "repwgt", "rep_weight_", "Replicate weight ", "BRR_", "brrwt", "W_FSTURWT", "W_FSTR",
     "jkw", "jackknife_", "bsw", "boot_weight", "fay"],
)  # fmt: skip
def test_replicate_weights_are_known_by_their_names(stem: str) -> None:
    found = replicate_weights(["age", "weight", *numbered(stem, 3), "sex", "wave2"])
    assert found == tuple(numbered(stem, 3))


@pytest.mark.parametrize(
    "names",
    [
        ["weight", "weight1", "weight2", "weight3"],
        ["report1", "report2"],
        ["reply_1", "reply_2", "reply_3"],
        ["bw1", "bw2"],
        ["boot1", "boot2"],
        ["PWGTP", "PWGTP1"],
        numbered("question", 90),
        numbered("growth", 90),
    ],
)
def test_other_columns_that_are_numbered_are_not(names: list[str]) -> None:
    assert replicate_weights(names) == ()


def test_many_numbered_weights_are_replicates_whatever_they_are_called() -> None:
    assert len(replicate_weights(numbered("gewicht_wt_", 10))) == 10
    assert replicate_weights(numbered("gewicht_wt_", 9)) == ()


@pytest.mark.parametrize("stem", ["body_weight_", "Bodyweight", "birth weight ", "weight_kg_", "fat wt"])
def test_what_bodies_weigh_at_many_visits_is_no_replicate(stem: str) -> None:
    assert replicate_weights(numbered(stem, 30)) == ()


def survey(folder: Path) -> Path:
    random = np.random.default_rng(5)
    n = 600
    table = pd.DataFrame({"ill": random.integers(0, 2, n), "sex": random.choice(["f", "m"], n)})
    weight = random.uniform(50, 500, n)
    for k, name in enumerate(numbered("REPWT", 4)):
        table[name] = np.where(np.arange(n) % 4 == k, 0.0, weight * 4 / 3)
    path = folder / "survey.csv"
    table.to_csv(path, index=False)
    return path


def test_a_spec_that_publishes_them_is_refused_with_what_to_do(tmp_path: Path) -> None:
    survey(tmp_path)
    with pytest.raises(SpecError, match=r"2 replicate weights .*REPWT1 to REPWT2: .*sampling unit.*--design-effect"):
        spec_of("survey.csv", tmp_path, secret=["ill"], publish=["sex", "REPWT1", "REPWT2"])
    with pytest.raises(SpecError, match="replicate weights"):
        spec_of("survey.csv", tmp_path, secret=["REPWT1", "REPWT2"], publish=["sex"])


def test_all_columns_of_a_source_are_no_way_around(tmp_path: Path) -> None:
    survey(tmp_path)
    text = (
        'name = "people"\ntitle = "T"\nsecret = ["ill"]\npublish = "auto"\nguarantee = "lip:1.0"\n'
        'frequencies.protection = "none"\ndisclosure.on_breach = "report"\n'
        '[source]\npath = "survey.csv"\n[metadata]\nlicence = "CC0-1.0"\n[groups]\nexclude = []\n'
    )
    (tmp_path / "people.toml").write_text(text)
    ReleaseSpec.load(tmp_path / "people.toml")
    with pytest.raises(SpecError, match="4 replicate weights"):
        release(tmp_path / "people.toml")
    assert not (tmp_path / "releases" / "people" / "latest").exists()


def test_a_draft_leaves_them_out_and_says_so(tmp_path: Path) -> None:
    path = survey(tmp_path)
    draft = tmp_path / "s.toml"
    told = CliRunner().invoke(main, ["init", str(path), "--secret", "ill", "--publish", "all", "-o", str(draft)])
    assert told.exit_code == 0, told.output
    text = draft.read_text()
    assert "# 4 columns are named like replicate weights: REPWT1 to REPWT4." in text
    assert not any("REPWT" in line for line in text.splitlines() if not line.startswith("#"))


def share_alone(*columns: IntArray) -> float:
    """The share of the records that no other has all of these values of."""
    _, of, counts = np.unique(np.column_stack(columns), axis=0, return_inverse=True, return_counts=True)
    return float((counts[of.ravel()] == 1).mean())


def test_they_single_out_the_records_of_a_real_table_in_classes_too() -> None:
    """The figures of docs/estimation.md: Adult, with a jackknife that leaves out one of 80 random groups in turn."""
    table = pd.read_parquet(ADULT, columns=["fnlwgt", "education", "sex", "race"])
    weight = table["fnlwgt"].to_numpy()
    group = np.random.default_rng(2026).permutation(len(table)) % GROUPS
    replicates = np.where(group[:, np.newaxis] == np.arange(GROUPS), 0, weight[:, np.newaxis])
    assert round(share_alone(weight), 3) == 0.375
    assert round(share_alone(replicates), 3) == 0.977
    cuts = np.quantile(weight, np.arange(1, 6) / 6)
    known = [pd.factorize(table[name])[0] for name in ("education", "sex", "race")]
    classes = np.searchsorted(cuts, weight, side="right")
    assert round(share_alone(*known, classes), 3) == 0.003
    of_replicates = np.where(replicates == 0, -1, np.searchsorted(cuts, replicates, side="right"))
    assert round(share_alone(*known, of_replicates), 3) == 0.145
