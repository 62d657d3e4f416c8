"""Shares within parts, and numbers, of releases of groups: intervals hold the truth as often as they say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import funnel
from funnel.errors import SpecError
from funnel.estimation.grouped import GroupedEstimate
from funnel.estimation.told_channel import FEW, EffectiveChannels
from funnel.groups import Schedule, Shown
from funnel.release.effective_channels import channel_rows, told_channels
from tests.funnel.groups.conftest import tabled

N = 60_000
NUMBERS = {"x0": 10.0, "x1": (20.0, 24.0), "x2": 30.0, "x3": 40.0, "x4": None}
MIDDLES = {"x0": 10.0, "x1": 22.0, "x2": 30.0, "x3": 40.0}


@pytest.fixture(scope="module")
def joint() -> funnel.Joint:
    return tabled(2, (5, 3, 3), seed=12, n=N)


@pytest.fixture(scope="module")
def shown(joint: funnel.Joint) -> Shown:
    made = funnel.publish_groups(joint, [["x"], ["y"], ["z"]], funnel.LIP(1.5), schedule=Schedule(0.9, 4))
    return Shown.of(joint, made.protocol)


@pytest.fixture(scope="module")
def channels(shown: Shown) -> EffectiveChannels:
    return told_channels(shown.protocol, channel_rows(shown, 50), N)


@pytest.fixture(scope="module")
def releases(shown: Shown) -> list[pa.Table]:
    """Three releases, every record drawn by itself."""
    random = np.random.default_rng(1)
    law = np.zeros((len(shown.joint.inputs), len(shown.codes)))
    np.add.at(law, (shown.rows, shown.published), shown.likely)
    people = shown.joint.counts.sum(axis=0)
    found = []
    for _ in range(3):
        counts = random.multinomial(people, law / law.sum(axis=1, keepdims=True)).sum(axis=0)
        rows = np.repeat(shown.codes, counts, axis=0)
        columns = {
            column: pa.DictionaryArray.from_arrays(rows[:, j].astype(np.int32), list(shown.protocol.labels[column]))
            for j, column in enumerate(shown.protocol.columns)
        }
        found.append(pa.table(columns))
    return found


def crossed(joint: funnel.Joint, by: str) -> dict[tuple[str, str], float]:
    """How many records have each value of x with each of another column."""
    places = joint.inputs.columns.index("x"), joint.inputs.columns.index(by)
    found: dict[tuple[str, str], float] = {}
    for symbol, count in zip(joint.inputs.symbols, joint.counts.sum(axis=0).tolist(), strict=True):
        cell = symbol[places[0]], symbol[places[1]]
        found[cell] = found.get(cell, 0.0) + count
    return found


@pytest.mark.parametrize("by", ["y"])
def test_shares_within_parts_are_held_as_often_as_intervals_say(
    joint: funnel.Joint, channels: EffectiveChannels, releases: list[pa.Table], by: str
) -> None:
    counts, held = crossed(joint, by), []
    for table in releases:
        found = funnel.estimate(table, channels, "x", within=by)
        assert isinstance(found, GroupedEstimate)
        assert (found.columns, found.given) == ((by, "x"), (by,))
        for (part, value), low, up, error in zip(found.cells, found.lower, found.upper, found.errors, strict=True):
            inside = {x: number for (x, of), number in counts.items() if of == part}
            told = [x for of, x in found.cells if of == part and x != FEW]
            mine = sum(inside.values()) - sum(inside.get(x, 0) for x in told) if value == FEW else inside.get(value, 0)
            if not np.isnan(error):
                held.append(low <= mine / sum(inside.values()) <= up)
        wider = funnel.estimate(table, channels, "x", within=by, sampling=True, method="em", simultaneous=True)
        known = ~np.isnan(found.errors)
        assert (wider.upper - wider.lower >= found.upper - found.lower - 1e-6)[known].all()
        inside_em = (wider.lower <= wider.frequencies) & (wider.frequencies <= wider.upper)
        assert inside_em[~np.isnan(wider.frequencies)].all()
    assert len(held) > 20
    assert np.mean(held) >= 0.95


@pytest.mark.parametrize("by", [None, "z"])
def test_means_totals_and_quantiles_are_held_as_often_as_intervals_say(
    joint: funnel.Joint, channels: EffectiveChannels, releases: list[pa.Table], by: str | None
) -> None:
    counts, held = crossed(joint, by or "y"), []
    for table in releases:
        found = funnel.estimate_numbers(table, channels, "x", by, numbers=NUMBERS)
        for place, cell in enumerate(found.cells):
            people = {
                value: sum(count for (x, part), count in counts.items() if x == value and (not cell or part == cell[0]))
                for value in MIDDLES
            }
            total = sum(MIDDLES[value] * count for value, count in people.items())
            mean, law = total / sum(people.values()), np.cumsum(list(people.values())) / sum(people.values())
            held.append(found.mean_lower[place] <= mean <= found.mean_upper[place])
            held.append(found.total_lower[place] <= total <= found.total_upper[place])
            for k, q in enumerate(found.at):
                true = list(MIDDLES.values())[int(np.searchsorted(law, q))]
                held.append(found.quantile_lower[place, k] <= true <= found.quantile_upper[place, k])
        wider = funnel.estimate_numbers(table, channels, "x", by, numbers=NUMBERS, sampling=True)
        assert (wider.mean_upper - wider.mean_lower >= found.mean_upper - found.mean_lower - 1e-6).all()
        assert (wider.total_upper - wider.total_lower >= found.total_upper - found.total_lower - 1e-6).all()
    assert np.mean(held) >= 0.95
    # They are no excuses: something is told.
    assert found.told.any()
    assert "rounding of the published probabilities" in found.about


def exact(rows: list[tuple[str, str | None, str, str | None, float]], shares: dict[str, float]) -> EffectiveChannels:
    """Channels that publish everybody as they are: of numbers c with parts d, and of d alone."""
    told = [("c", "d", *true, *true, share, 1.0) for *true, share in [(a, b, s) for a, b, _, _, s in rows]]
    told += [("d", None, part, None, part, None, share, 1.0) for part, share in shares.items()]
    values = {"1", "2", "5", "9"}
    meant = {
        "c": {one: frozenset({one}) for one in values} | {"any": frozenset(values)},
        "d": {one: frozenset({one}) for one in shares},
    }
    return EffectiveChannels(("c", "d"), told, meant, 100_000)


def test_what_few_records_have_may_be_any_number_that_nothing_is_told_of() -> None:
    rows = [("1", "u", "1", "u", 0.3), ("2", "u", "2", "u", 0.2), ("2", "v", "2", "v", 0.4)]
    channels = exact([*rows], {"u": 0.55, "v": 0.45})
    # Of u a tenth is not told of, and of v a ninth: 5 or 9, and 1, 5 or 9.
    counts = {("1", "u"): 30_000, ("2", "u"): 20_000, ("2", "v"): 40_000, ("9", "u"): 5_000, ("5", "v"): 5_000}
    table = pa.table(
        {name: np.repeat([cell[j] for cell in counts], list(counts.values())) for j, name in enumerate("cd")}
    )
    open_ = replace(channels, fewest=12_000)
    found = funnel.estimate_numbers(table, open_, "c", "d")
    assert found.cells == (("u",), ("v",))
    for place, (low, high) in enumerate([((30 + 40 + 25) / 55, (30 + 40 + 45) / 55), ((80 + 5) / 45, (80 + 45) / 45)]):
        assert found.mean_lower[place] < low < high < found.mean_upper[place]
        assert found.total_lower[place] < low * 1_000 * (55, 45)[place] < found.total_upper[place]
    assert found.quantile_upper[0].tolist() == [1.0, 1.0, 2.0]
    shares = funnel.estimate(table, open_, "c", within="d")
    assert shares.cells == (("u", "1"), ("u", "2"), ("u", FEW), ("v", "2"), ("v", FEW))
    for share, low, up in zip([30 / 55, 20 / 55, 5 / 55, 40 / 45, 5 / 45], shares.lower, shares.upper, strict=True):
        assert low <= share <= up


def test_what_pairs_do_not_tell_is_refused_in_one_sentence(
    channels: EffectiveChannels, releases: list[pa.Table]
) -> None:
    table = releases[0]
    for by, within in ((["x", "y"], "z"), ("x", ["y", "z"]), (None, "y")):
        with pytest.raises(SpecError, match="nothing is told of three together: name one column to estimate"):
            funnel.estimate(table, channels, by, within=within)
    with pytest.raises(SpecError, match="name one or two"):
        funnel.estimate(table, channels, "x", within="x")
    with pytest.raises(SpecError, match="in the cells of one other column"):
        funnel.estimate_numbers(table, channels, "x", ["y", "z"], numbers=NUMBERS)
    with pytest.raises(SpecError, match="leave at_most out"):
        funnel.estimate_numbers(table, channels, "x", numbers=NUMBERS, at_most={("x0",): 0.1})
    with pytest.raises(SpecError, match="no value of 'x' stands for a number"):
        funnel.estimate_numbers(table, channels, "x")
    few = [row if row[1] is None else (*row[:2], None, None, *row[4:]) for row in channels.rows]
    alone = replace(channels, rows=few)
    with pytest.raises(SpecError, match="nothing is told of x within y: too few records"):
        funnel.estimate(table, alone, "x", within="y")
    with pytest.raises(SpecError, match="nothing is told of x by y: too few records"):
        funnel.estimate_numbers(table, alone, "x", "y", numbers=NUMBERS)
