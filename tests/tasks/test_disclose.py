"""Groups of columns are held against the rules one by one: what breaks one is kept in private until nothing does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from funnel.alphabet import Alphabet
from funnel.errors import ReleaseRefused
from funnel.joint import Joint
from funnel.pipeline.tasks.disclose import disclose_groups
from funnel.pipeline.tasks.step import listening
from tests.projects import spec_of

GROUPS = [("x",), ("z",)]


def counted(rare: int) -> Joint:
    """Of the first column every combination with the secret is common; of the second one is as rare as that."""
    symbols = (("a", "p"), ("b", "p"), ("a", "q"), ("b", "q"))
    inputs = Alphabet(("x", "z"), symbols)
    return Joint.from_counts([[90, 80, 70, 60], [80, 90, rare, 0]], inputs=inputs)


def test_groups_that_keep_every_rule_leave_nothing_behind(tmp_path: Path) -> None:
    rules = {"minimum_cell": 10, "dominance": 1.0, "unique_share": 1.0}
    spec = spec_of("t.parquet", tmp_path, publish=["x", "z"], disclosure={**rules, "on_breach": "report"})
    said: list[str] = []
    with listening(lambda what, done, total: said.append(what)):
        disclose_groups(spec, counted(4), GROUPS, tmp_path)
        (found,) = json.loads((tmp_path / "disclosure.json").read_text())["groups"]
        disclose_groups(spec, counted(40), GROUPS, tmp_path)
    assert found["group"] == ["z"]
    assert said[0].startswith("warning: of z, ")
    assert said[1:] == ["every rule holds"]
    assert not (tmp_path / "disclosure.json").exists()
    strict = spec_of("t.parquet", tmp_path, publish=["x", "z"], disclosure=rules)
    with pytest.raises(ReleaseRefused, match=r"minimum_cell of .*: 1 of 4 combinations .*; group values of S, z"):
        disclose_groups(strict, counted(4), GROUPS, tmp_path)
