"""A threshold for groups of columns: values are grouped until every group keeps the rules with one secret."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from funnel.disclosure import Disclosure
from funnel.disclosure.groups import broken_groups, rules_given_prefixes
from funnel.disclosure.rules import Rules
from funnel.disclosure.threshold import threshold_rules
from funnel.groups.records import Records
from funnel.progress import quiet
from funnel.source import count_joint
from funnel.spec import ReleaseSpec
from tests.projects import spec_of

GROUPS = [["x", "y"], ["z"]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """2,000 people; of z the rarest value, and of the secret the rarest, are had by few."""
    random = np.random.default_rng(5)
    secret = random.choice(["a", "b", "c", "rare"], p=[0.5, 0.3, 0.195, 0.005], size=2000)
    table = pd.DataFrame(
        {
            "s": secret,
            "x": random.choice(["k", "l"], size=2000),
            "y": random.choice(["m", "n", "o"], p=[0.5, 0.45, 0.05], size=2000),
            "z": random.choice(["p", "q", "r"], p=[0.6, 0.39, 0.01], size=2000),
        }
    )
    made = tmp_path_factory.mktemp("threshold")
    table.to_parquet(made / "t.parquet", index=False)
    return made


def asked(folder: Path, **changes: object) -> ReleaseSpec:
    protected = {"protection": "threshold", "threshold": 12}
    return spec_of("t.parquet", folder, **{"secret": ["s"], "publish": GROUPS, "frequencies": protected, **changes})


def test_every_group_keeps_the_rules_and_all_people_are_there(folder: Path) -> None:
    spec = asked(folder)
    plain = count_joint(asked(folder, frequencies={"protection": "none"}), quiet)
    counted = count_joint(spec, quiet)
    assert len(broken_groups(spec, plain, GROUPS)) == 2
    assert broken_groups(spec, counted, GROUPS) == []
    for group in GROUPS:
        found = Records.of(counted).marginal(group)
        assert Disclosure(found, Rules(12)).passes
        assert found.counts[found.counts > 0].min() >= 12
    assert counted.n == plain.n == 2000
    # The rare secret is in one group for all groups of columns.
    assert len(counted.secret) == 3
    assert all(len({symbol[j] for symbol in counted.inputs.symbols}) >= 2 for j in range(3))


def test_rules_given_prefixes_are_those_of_the_spec(folder: Path) -> None:
    spec = asked(folder)
    assert rules_given_prefixes(spec) == threshold_rules(spec) == Rules(12)
    exact = {"protection": "none"}
    assert rules_given_prefixes(asked(folder, frequencies=exact, disclosure={"minimum_cell": 20})) == Rules(20)
    assert rules_given_prefixes(asked(folder, frequencies=exact, disclosure={"on_breach": "report"})) is None
    # What is grouped for a threshold keeps it, whatever is only reported.
    assert rules_given_prefixes(asked(folder, disclosure={"on_breach": "report"})) == Rules(12)
