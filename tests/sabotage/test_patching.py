"""A sabotage is applied as it is written, for everybody who has imported the function, and is gone afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest

from funnel.guarantees import LIP
from funnel.guarantees.exact import exp_below
from funnel.joint import Joint
from funnel.mechanisms import fit
from funnel.pipeline.tasks import estimate
from funnel.release.files import FileRef
from funnel.release.public.rounding import RECORDS, share_step
from funnel.release.snapshot import Snapshot
from funnel.sampling import answers
from funnel.sampling.answers import DRAW_ROWS
from tests.sabotage.patching import DoesNotApply, Patch, patched


def test_a_function_is_another_one_inside_and_the_same_afterwards() -> None:
    before = exp_below.__code__
    patch = Patch("funnel.guarantees.exact", "smaller_reading = min(", "smaller_reading = 2 * min(")
    with patched(patch):
        assert exp_below(1.0) > 7
    assert exp_below(1.0) < 3
    assert exp_below.__code__ is before


def test_a_property_and_a_step_are_reached(tmp_path: Path) -> None:
    file = FileRef(str(tmp_path), "")
    snapshot = Snapshot(file, file, "", "", (3, 4), 0)
    with patched(Patch("funnel.release.snapshot", "return sum(self.sizes)", "return len(self.sizes)")):
        assert snapshot.rows == 2
    assert snapshot.rows == 7
    code = estimate.estimate.__wrapped__.__code__
    with patched(
        Patch("funnel.pipeline.tasks.estimate", "joint = count_snapshot(spec, snapshot, spec.inputs)", "joint = None")
    ):
        assert estimate.estimate.__wrapped__.__code__ is not code
    assert estimate.estimate.__wrapped__.__code__ is code


def test_a_constant_is_another_one_for_all_who_have_it() -> None:
    with patched(Patch("funnel.sampling.answers", "DRAW_ROWS = 1 << 16", "DRAW_ROWS = 3")):
        assert answers.DRAW_ROWS == 3
    assert answers.DRAW_ROWS == DRAW_ROWS
    with patched(Patch("funnel.release.public.rounding", "RECORDS = 10", "RECORDS = 500")):
        assert share_step(1000) == 0.5
    assert share_step(1000) == RECORDS / 1000


def test_what_was_kept_from_calls_before_is_forgotten() -> None:
    joint = Joint.from_counts([[30, 10], [10, 50]])
    protocol = fit("grr", joint, LIP(0.5))
    kept = answers.sampler_of(protocol)
    assert answers.sampler_of(protocol) is kept
    with patched(Patch("funnel.sampling.answers", "DRAW_ROWS = 1 << 16", "DRAW_ROWS = 3")):
        changed = answers.sampler_of(protocol)
        assert changed is not kept
    assert answers.sampler_of(protocol) is not changed


@pytest.mark.parametrize(
    ("old", "new", "because"),
    [
        ("there is no such line", "", "0 times"),
        ("import", "", "times"),
        ("def exp_below(epsilon: float) -> Fraction:", "def exp_below(epsilon: float) -> Fraction: ", "no function"),
        ("if epsilon == 0:", "if epsilon == 0:\n", "one line"),
    ],
    ids=["gone", "not alone", "no change", "two lines"],
)
def test_what_does_not_apply_is_an_error(old: str, new: str, because: str) -> None:
    with pytest.raises(DoesNotApply, match=because), patched(Patch("funnel.guarantees.exact", old, new)):
        pass
