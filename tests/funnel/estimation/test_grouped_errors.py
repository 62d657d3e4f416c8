"""Expected errors of releases of groups: those that estimates turn out to have, from public figures alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import funnel
from funnel.estimation import grouped_errors as module
from funnel.estimation.grouped import of_counts
from funnel.estimation.grouped_errors import grouped_errors, grouped_sentence
from funnel.estimation.told_channel import FEW, EffectiveChannels
from funnel.groups import Schedule, Shown
from funnel.release.effective_channels import channel_rows, told_channels
from tests.funnel.groups.conftest import tabled

N = 20_000


@pytest.fixture(scope="module")
def channels() -> EffectiveChannels:
    joint = tabled(2, (5, 3, 4), seed=11, n=N)
    made = funnel.publish_groups(joint, [["x"], ["y"], ["z"]], funnel.LIP(1.0), schedule=Schedule(0.9, 4))
    return told_channels(made.protocol, channel_rows(Shown.of(joint, made.protocol), made.protocol.people), N)


def test_intervals_are_as_long_as_they_were_said_to_be(channels: EffectiveChannels) -> None:
    tables = grouped_errors(channels)
    assert [table.columns for table in tables] == [("x",), ("y",), ("z",), ("x", "y"), ("x", "z"), ("y", "z")]
    for table in tables:
        told = channels.of(table.columns)
        expected = told.matrix @ (told.shares / told.shares.sum())
        found = of_counts(np.round(expected / expected.sum() * N).astype(np.int64), told)
        wide = (found.lower > 0) & (found.upper < 1)
        half = (found.upper - found.lower)[wide] / 2
        assert table.errors[wide] * 1.959964 == pytest.approx(half, rel=0.01)
        assert np.isnan(table.errors).tolist() == np.isnan(found.errors).tolist()
    assert grouped_sentence(tables).startswith(
        f"standard errors of estimated shares, with room for rounding, in percentage points: {tables[0].said}; y "
    )


def channel_of(rows: list[tuple[str, str, float, float]]) -> EffectiveChannels:
    values = frozenset(value for value, *_ in rows)
    told = [("c", None, value, None, text, None, share, p) for value, text, share, p in rows]
    return EffectiveChannels(("c", "d"), told, {"c": dict.fromkeys([text for _, text, *_ in rows], values)}, N)


def test_what_cannot_be_told_apart_is_a_sum_and_what_is_not_told_has_no_cells() -> None:
    rows = [(value, text, 0.25, p) for value in ("u", "v") for text, p in (("a", 0.6), ("any", 0.4))]
    channels = channel_of([*rows, ("w", "b", 0.5, 0.7), ("w", "any", 0.5, 0.3)])
    one, other, both = grouped_errors(channels)
    assert np.isnan(one.errors).tolist() == [True, True, False]
    assert one.sums == ((0, 1),)
    assert (other.columns, other.values, both.values, other.typical) == (("d",), (), (), None)
    assert grouped_sentence((one, other, both)).endswith("d cannot be told; of 1 of 1 pairs no cell can be told")
    nothing = channel_of([("u", "any", 0.3, 1.0), ("v", "any", 0.7, 1.0)])
    assert grouped_errors(nothing)[0].sums == ((0, 1),)
    single = replace(nothing, rows=[("c", None, None, None, "any", None, 1.0, 1.0)])
    (alone, *_) = grouped_errors(single)
    # All records have one of all values, and nothing is unsure about that.
    assert (alone.values, alone.sums, alone.errors.tolist()) == (((FEW,),), (), pytest.approx([0.0], abs=1e-9))


def test_large_tables_are_left_out(channels: EffectiveChannels, monkeypatch: pytest.MonkeyPatch) -> None:
    told = channels.of(("x",))
    monkeypatch.setattr(module, "MOST_WORK", float(len(told.inputs) ** 3 * len(told.outputs)))
    assert ("x",) in [table.columns for table in grouped_errors(channels)]
    assert ("x", "z") not in [table.columns for table in grouped_errors(channels)]
