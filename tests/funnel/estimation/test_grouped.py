"""Estimates from releases of groups: intervals that hold whatever was rounded, and what cannot be told said so."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import combinations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import funnel
from funnel.cli import main
from funnel.errors import DataError, SpecError
from funnel.estimation.affine import shortest
from funnel.estimation.grouped import GroupedEstimate, of_counts
from funnel.estimation.told_channel import FEW, EffectiveChannels, ToldChannel
from funnel.groups import GroupedSolution, Schedule, Shown
from funnel.joint import FloatArray
from funnel.release.channel_rows import read_channel_rows
from funnel.release.effective_channels import channels_table
from funnel.release.public.rounding import share_step
from funnel.release.reading import GroupedRelease
from tests.funnel.groups.conftest import tabled
from tests.groups import grouped_release

N = 20_000


@pytest.fixture(scope="module")
def joint() -> funnel.Joint:
    return tabled(2, (5, 3, 4), seed=11, n=N)


@pytest.fixture(scope="module")
def made(joint: funnel.Joint) -> GroupedSolution:
    return funnel.publish_groups(joint, [["x"], ["y"], ["z"]], funnel.LIP(1.0), schedule=Schedule(0.9, 4))


@pytest.fixture(scope="module")
def shown(joint: funnel.Joint, made: GroupedSolution) -> Shown:
    return Shown.of(joint, made.protocol)


def told_of(shown: Shown, people: int = 50) -> EffectiveChannels:
    rows = [tuple(row.values()) for row in channels_table(shown, people).to_pylist()]
    return EffectiveChannels(shown.protocol.columns, rows, shown.protocol.meant, shown.joint.n, max(500, people))


@pytest.fixture(scope="module")
def channels(shown: Shown) -> EffectiveChannels:
    return told_of(shown)


def truth(joint: funnel.Joint, told: ToldChannel) -> FloatArray:
    """Shares of the cells, all others in the one of few records if there is one."""
    places = [joint.inputs.columns.index(column) for column in told.columns]
    found = dict.fromkeys(told.inputs, 0.0)
    few = (FEW,) * len(told.columns)
    for symbol, share in zip(joint.inputs.symbols, joint.p_input.tolist(), strict=True):
        cell = tuple(symbol[j] for j in places)
        if (cell if cell in found else few) in found:
            found[cell if cell in found else few] += share
    return np.array(list(found.values()))


def simulated(shown: Shown, told: ToldChannel, releases: int, seed: int) -> FloatArray:
    """Counts (releases, b + 1) of what is shown of some columns, every record drawn by itself."""
    random = np.random.default_rng(seed)
    labels = [shown.protocol.labels[column] for column in told.columns]
    at = [shown.protocol.columns.index(column) for column in told.columns]
    place = {text: y for y, text in enumerate(told.outputs)}
    of_code = np.array(
        [
            place.get(tuple(of[code] for of, code in zip(labels, row, strict=True)), len(place))
            for row in shown.codes[:, at].tolist()
        ]
    )
    law = np.zeros((len(shown.joint.inputs), len(place) + 1))
    np.add.at(law, (shown.rows, of_code[shown.published]), shown.likely)
    people = shown.joint.counts.sum(axis=0)
    law /= law.sum(axis=1, keepdims=True)
    return np.array([random.multinomial(people, law).sum(axis=0) for _ in range(releases)])


def test_intervals_hold_the_shares_of_columns_and_pairs_as_often_as_they_say(
    joint: funnel.Joint, shown: Shown, channels: EffectiveChannels
) -> None:
    held: list[bool] = []
    lengths: list[float] = []
    columns = [(column,) for column in channels.columns] + list(combinations(channels.columns, 2))
    for number, some in enumerate(columns):
        told = channels.of(some)
        exact = truth(joint, told)
        for counts in simulated(shown, told, 40, number):
            found = of_counts(counts, told)
            known = ~np.isnan(found.errors)
            assert known.any()
            held += ((found.lower <= exact) & (exact <= found.upper))[known].tolist()
            lengths += (found.upper - found.lower)[known].tolist()
        # Of a population that these records are from less is known.
        wider = of_counts(counts, told, sampling=True)
        assert (wider.upper - wider.lower >= found.upper - found.lower - 1e-9)[known].all()
        assert (wider.errors > found.errors)[known].all()
    assert len(held) > 1500
    assert np.mean(held) >= 0.95
    assert np.median(np.array(lengths)) < 0.05


def rounded(law: FloatArray, step: float) -> FloatArray:
    from funnel.release import effective_channels

    return np.array([effective_channels._multiples(column, step) * step for column in law.T]).T


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 5), st.integers(2, 9), st.sampled_from([0.001, 0.01, 0.02]))
def test_no_rounding_moves_an_estimate_further_than_it_says(seed: int, a: int, b: int, step: float) -> None:
    random = np.random.default_rng(seed)
    true = random.dirichlet(np.full(b, 0.5), size=a).T
    shares = random.dirichlet(np.full(a, 2.0))
    near = rounded(true, step)
    whole = near.sum(axis=0) > 1 - 1e-6
    off = np.where(whole, 1.0, 0.5) * step * np.ones_like(near)
    assert (np.abs(true - near) <= off + 1e-9).all()
    found = shortest(near, shares, off @ shares, np.eye(a), 10_000)
    moved = np.abs(found.constants + found.weights @ (true @ shares) - shares)
    assert (moved <= np.abs(found.weights) @ (off @ shares) + 1e-7)[found.told].all()
    # And what is told exactly is not moved at all.
    assert np.abs(found.constants + found.weights @ (near @ shares) - shares)[found.told].max(initial=0.0) <= 1e-5


def test_of_all_estimates_without_bias_none_has_a_shorter_interval() -> None:
    """Held against a linear programme for the part of rounding alone, which is all where there are many records."""
    from scipy.optimize import linprog

    random = np.random.default_rng(5)
    channel = random.dirichlet(np.full(9, 0.4), size=4).T[:-1]
    slack = random.uniform(1e-3, 5e-3, 8)
    found = shortest(channel, np.full(4, 0.25), slack, np.eye(4), 10**12)
    for row, aim in enumerate(np.eye(4)):
        best = linprog(
            np.concatenate([slack, slack, [0.0]]),
            A_eq=np.hstack([channel.T, -channel.T, np.ones((4, 1))]),
            b_eq=aim,
            bounds=[(0, None)] * 16 + [(None, None)],
        )
        assert np.abs(found.weights[row]) @ slack == pytest.approx(best.fun, rel=0.05)


def channel_of(rows: list[tuple[str, str | None, float, float]], records: int = 20_000) -> EffectiveChannels:
    """Of one column c, by true value, text, share and probability; every text may be any of the values."""
    values = frozenset(value for value, *_ in rows)
    texts = {text for _, text, *_ in rows if text is not None} | {"any"}
    told = [("c", None, value, None, text, None, share, p) for value, text, share, p in rows]
    return EffectiveChannels(("c",), told, {"c": dict.fromkeys(texts, values)}, records)


def test_what_cannot_be_told_apart_is_told_in_sum() -> None:
    rows = [(value, text, 0.25, p) for value in ("u", "v") for text, p in (("a", 0.6), ("any", 0.4))]
    rows += [("w", "b", 0.5, 0.7), ("w", "any", 0.5, 0.3)]
    told = channel_of(rows).of(["c"])
    counts = {"a": 6_000, "any": 7_000, "b": 7_000}
    found = of_counts(np.array([*(counts[text] for (text,) in told.outputs), 0]), told)
    assert np.isnan(found.frequencies).tolist() == [True, True, False]
    assert found.frequencies[2] == pytest.approx(0.5, abs=0.01)
    (both,) = found.together
    assert both.cells == (("u",), ("v",))
    assert both.lower < 0.5 < both.upper
    assert (found.lower[:2] == 0).all()
    assert (found.upper[:2] == both.upper).all()
    assert "–" in str(found)
    assert json.loads(json.dumps(found.to_dict()))["cells"][0]["off"] is None


def test_what_is_published_alike_of_all_is_not_told() -> None:
    told = channel_of([("u", "any", 0.3, 1.0), ("v", "any", 0.7, 1.0)]).of(["c"])
    found = of_counts(np.array([20_000, 0]), told)
    assert np.isnan(found.errors).all()
    assert (found.lower == 0).all()
    assert (found.upper == 1).all()
    assert not found.together


def test_values_that_nothing_is_told_of_widen_intervals_by_all_that_they_may_show() -> None:
    rows = [("u", "u", 0.5, 0.8), ("u", "any", 0.5, 0.2), ("v", "v", 0.48, 0.8), ("v", "any", 0.48, 0.2)]
    told = [("c", None, value, None, text, None, share, p) for value, text, share, p in rows]
    meant = {"c": {"u": frozenset("u"), "v": frozenset("v"), "any": frozenset("uvw")}}
    channels = EffectiveChannels(("c",), told, meant, 20_000)
    of = channels.of(["c"])
    # Those with w are at most what the shares leave, and at most as few as are not told.
    assert 0.02 <= of.left_out <= 500 / 20_000
    assert of.beyond.tolist() == [text == ("any",) for text in of.outputs]
    counts = {"u": 8_000, "v": 7_680, "any": 4_320}
    found = of_counts(np.array([*(counts[text] for (text,) in of.outputs), 0]), of)
    assert (found.lower <= [0.5, 0.48]).all()
    assert (found.upper >= [0.5, 0.48]).all()
    assert "left out, at most 2.1" in found.about
    known = replace(of, left_out=0.0)
    narrow = of_counts(np.array([*(counts[text] for (text,) in of.outputs), 0]), known)
    assert (narrow.upper - narrow.lower < found.upper - found.lower).all()


def test_a_share_of_one_step_may_be_any_smaller_one() -> None:
    """In ten million records a step is ten thousand, and five hundred of them are told as one."""
    rows = [("u", "u", 0.001, 0.9), ("u", "any", 0.001, 0.1), ("v", "any", 0.999, 1.0)]
    told = channel_of(rows, 10_000_000).of(["c"])
    assert told.off[:, 0].max() >= share_step(500)
    assert told.off[:, 1].max() == share_step(9_985_000)
    found = of_counts(np.array([450 if text == ("u",) else 9_999_550 for text in told.outputs] + [0]), told)
    assert found.lower[0] <= 500 / 10_000_000 <= found.upper[0]


def test_what_versions_are_off_by_adds_up_in_a_trend() -> None:
    rows = [("u", "u", 0.5, 0.8), ("u", "any", 0.5, 0.2), ("v", "any", 0.4, 1.0)]
    table = channel_of(rows)
    few = replace(table, rows=[*table.rows, ("c", None, None, None, "any", None, 0.1, 1.0)]).of(["c"])
    years = [
        of_counts(np.array([number if text == ("u",) else 20_000 - number for text in few.outputs] + [0]), few)
        for number in (8_000, 8_400)
    ]
    trend = funnel.estimate_trend(years, same_people=False)
    # What few records have is not the same in both.
    assert trend.cells == (("u",), ("v",))
    assert trend.whole.values[0] == pytest.approx(0.025, abs=1e-6)
    halves = [(one.upper[0] - one.lower[0]) / 2 for one in years]
    assert (trend.whole.upper[0] - trend.whole.lower[0]) / 2 == pytest.approx(sum(halves))


def test_without_rounding_an_interval_is_the_usual_one() -> None:
    told = channel_of([("u", "u", 0.5, 0.8), ("u", "any", 0.5, 0.2), ("v", "any", 0.5, 1.0)]).of(["c"])
    exact = replace(told, off=np.zeros_like(told.off))
    found = of_counts(np.array([8_000 if text == ("u",) else 12_000 for text in exact.outputs] + [0]), exact)
    assert found.frequencies == pytest.approx([0.5, 0.5], abs=1e-6)
    # Of ten thousand people each is u with probability 0.8, and the count is divided by that.
    assert found.errors == pytest.approx(np.sqrt(10_000 * 0.16) / 0.8 / 20_000, rel=1e-3)
    assert (found.upper - found.lower) / 2 == pytest.approx(1.959964 * found.errors, rel=1e-6)
    assert not found.off.any()


def test_a_table_that_was_drawn_gives_its_columns_in_the_order_asked_for(
    joint: funnel.Joint, made: GroupedSolution, channels: EffectiveChannels
) -> None:
    symbols = np.repeat(np.arange(len(joint.inputs)), joint.counts.sum(axis=0))
    columns = {
        column: pa.array([joint.inputs.symbols[x][j] for x in symbols.tolist()]).dictionary_encode()
        for j, column in enumerate(joint.inputs.columns)
    }
    released = funnel.sanitise(pa.table(columns), made.protocol)
    found = funnel.estimate(released, channels, ["y", "x"])
    other = funnel.estimate(released.to_pandas(), channels, ("x", "y"), method="em", simultaneous=True)
    assert isinstance(found, GroupedEstimate)
    assert (found.columns, found.records, found.method) == (("y", "x"), N, "inverse")
    assert {cell[::-1] for cell in found.cells} == set(other.cells)
    exact = truth(joint, channels.of(["y", "x"]))
    known = ~np.isnan(found.errors)
    assert np.abs(found.frequencies - exact)[known].max() < 0.1
    assert ((other.lower <= other.frequencies) & (other.frequencies <= other.upper))[~np.isnan(other.errors)].all()
    assert "rounding of the published probabilities" in found.about


def test_what_it_cannot_be_asked_is_refused_in_one_sentence(channels: EffectiveChannels) -> None:
    rows = pa.table({column: ["any"] * 10 for column in channels.columns})
    for by, said in (
        (None, "name one or two of x, y, z"),
        (["x", "y", "z"], "name one or two"),
        (["x", "x"], "name one or two"),
        (["region"], "hold for no part of them"),
    ):
        with pytest.raises(SpecError, match=said):
            funnel.estimate(rows, channels, by)
    with pytest.raises(DataError, match=r"these are 10 records and not the 20,000"):
        funnel.estimate(rows, channels, "x")
    with pytest.raises(DataError, match="10 records have values that this release never publishes"):
        funnel.estimate(rows.set_column(0, "x", [["nothing"] * 10]), channels, "x")
    with pytest.raises(SpecError, match="a table, or the path of one"):
        funnel.estimate(np.array([1, 2]), channels, "x")
    with pytest.raises(SpecError, match="leave both out"):
        funnel.estimate(rows, channels, "x", bootstrap=200)
    with pytest.raises(SpecError, match="between 0 and 1"):
        funnel.estimate(rows, channels, "x", confidence=2.0)
    with pytest.raises(SpecError, match="unknown method"):
        funnel.estimate(rows, channels, "x", method="guess")  # type: ignore[arg-type]
    none = replace(channels, rows=[])
    with pytest.raises(SpecError, match="too few records have any"):
        none.of(["x"])


def test_shares_are_told_to_half_a_step_and_probabilities_by_records(shown: Shown, channels: EffectiveChannels) -> None:
    for some in [("x",), ("z", "y")]:
        told, exact = channels.of(some), shown.channel(some)
        inputs = {value: x for x, value in enumerate(exact.inputs)}
        outputs = {text: y for y, text in enumerate(exact.outputs)}
        for x, value in enumerate(told.inputs):
            if value not in inputs:
                continue
            assert abs(told.shares[x] - exact.law[inputs[value]]) <= share_step(N) / 2 + 1e-9
            for y, text in enumerate(told.outputs):
                true = exact.matrix[outputs[text], inputs[value]]
                assert abs(told.matrix[y, x] - true) <= told.off[y, x] + 1e-9
                assert told.possible[y, x] or true == 0
        assert told.matrix.sum(axis=0) == pytest.approx(1)


def test_a_published_release_is_estimated_from_its_public_files_alone() -> None:
    folder = grouped_release()
    opened = funnel.open_release(folder.root)
    assert isinstance(opened, GroupedRelease)
    found = funnel.estimate(opened.table(), opened.channels, "age")
    ran = CliRunner().invoke(main, ["estimate", str(folder.root), "--by", "age", "--json"])
    assert ran.exit_code == 0, ran.output
    said = json.loads(ran.stdout)
    assert [cell["frequency"] for cell in said["cells"]] == pytest.approx(found.frequencies.tolist(), nan_ok=True)
    told = {row[2]: row[6] for row in read_channel_rows(folder.channels) if row[:2] == ("age", None)}
    for cell in said["cells"]:
        assert cell["lower"] - 0.01 <= told[cell["values"][0]] <= cell["upper"] + 0.01
    ran = CliRunner().invoke(main, ["estimate", str(folder.root)])
    assert ran.exit_code == SpecError.exit_code
    assert "name one or two of" in ran.stderr
    assert pq.read_metadata(folder.data).num_rows == said["records"]
