"""What is asked of releases is answered by the estimate that is meant, or refused where it does not go together."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from funnel.analysis.estimated import estimate_release
from funnel.analysis.question import Question
from funnel.errors import SpecError
from funnel.estimation.number_estimate import NumberEstimate
from funnel.estimation.share_estimate import Estimate
from funnel.estimation.trend import Trend
from funnel.release.layout import ReleaseFolder


@pytest.mark.parametrize(
    ("asked", "folders", "message"),
    [
        ({"quantiles": (0.5,)}, 1, "--quantile and --number go with --of"),
        ({"of": "age", "within": ("sex",)}, 1, "--of is about the records of one release"),
        ({"of": "age", "weighted": True}, 1, "--of is about the records of one release"),
        ({"of": "age"}, 2, "--of is about the records of one release"),
        ({"weighted": True, "within": ("sex",)}, 1, "--weighted is about one release"),
        ({"weighted": True}, 2, "--weighted is about one release"),
        ({"weighted": True, "method": "inverse"}, 1, "take --method inverse out"),
        ({"odds": True, "by": ("sex",)}, 1, "--odds is about the records of one release and two columns"),
        ({"odds": True, "by": ("relationship", "sex")}, 2, "--odds is about the records of one release"),
        ({"odds": True, "by": ("relationship", "sex"), "within": ("sex",)}, 1, "--odds is about the records of one"),
        ({"odds": True, "by": ("relationship", "sex"), "method": "em"}, 1, "counted as usual; take --method out"),
    ],
)
def test_what_does_not_go_together_is_refused(
    asked: dict[str, Any], folders: int, message: str, published: ReleaseFolder
) -> None:
    with pytest.raises(SpecError, match=message):
        Question(**asked).answer([published.root] * folders)


def test_one_release_is_answered_with_shares_and_several_with_changes(published: ReleaseFolder, tmp_path: Path) -> None:
    one = Question(method="inverse").answer([published.root])
    assert isinstance(one, Estimate)
    np.testing.assert_array_equal(one.frequencies, estimate_release(published, method="inverse").frequencies)
    with pytest.raises(SpecError, match="numbers"):
        Question(of=one.columns[0]).answer([published.root])
    again = ReleaseFolder(tmp_path / "1.1.0")
    shutil.copytree(published.root, again.root)
    both = Question().answer([published.root, again.root])
    assert isinstance(both, Trend)
    assert all(np.nanmax(np.abs(change.values)) == 0 for change in both.changes)


def test_what_values_stand_for_is_said_one_by_one(published: ReleaseFolder) -> None:
    shares = estimate_release(published, "relationship")
    texts = [f"{cell[0]}={number}" for number, cell in enumerate(shares.cells[1:])]
    found = Question(of=shares.columns[0], numbers=(f"{shares.cells[0][0]}=-9..-5", *texts)).answer([published.root])
    assert isinstance(found, NumberEstimate)
    middles = np.array([-7.0, *range(len(texts))])
    assert found.means[0] == pytest.approx(shares.frequencies @ middles, abs=1e-6)


@pytest.mark.parametrize("text", ["Husband", "=3", "Husband=many", "Husband=1..2..3", "Husband=1.."])
def test_what_is_no_number_of_a_value_is_refused(text: str, published: ReleaseFolder) -> None:
    with pytest.raises(SpecError, match="is no VALUE=NUMBER"):
        Question(of="relationship", numbers=(text,)).answer([published.root])
