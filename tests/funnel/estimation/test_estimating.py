"""Estimates: their coverage over simulated releases, both methods, and what cannot be told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from funnel import LDP, DataError, Joint, Protocol, SolverError, SpecError, estimate, fit
from funnel.alphabet import Alphabet
from funnel.estimation.expected_errors import expected_errors
from funnel.estimation.likelihood import likeliest_shares, on_simplex
from funnel.estimation.share_estimate import Estimate
from funnel.protocol import DENOMINATOR
from funnel.rounding import integer_weights

INPUTS = Alphabet(("x", "n"), tuple((x, n) for x in "ab" for n in "123"))
JOINT = Joint(
    np.array([[1300, 200, 300, 50, 400, 20], [100, 1300, 100, 190, 10, 60]]),
    Alphabet(("s",), (("ill",), ("well",))),
    INPUTS,
)
PEOPLE = JOINT.counts.sum(axis=0)
GRR = fit("grr", JOINT, LDP(1.0))


def made(matrix: list[list[float]]) -> Protocol:
    weights = integer_weights(np.array(matrix))
    outputs = Alphabet(("x", "n"), INPUTS.symbols[: len(matrix)])
    return Protocol(weights, weights[:, 0], INPUTS, outputs, "test", "lip:9")


# Of the second column, 1 and 2 are told together.
SINGULAR = made([[0.75, 0.75, 0, 0.25, 0.25, 0], [0.25, 0.25, 0, 0.75, 0.75, 0], [0, 0, 1, 0, 0, 1]])


def drawn(protocol: Protocol, random: np.random.Generator) -> np.ndarray:
    channel = protocol.matrix / protocol.matrix.sum(axis=0)
    return np.asarray(random.multinomial(PEOPLE, channel.T).sum(axis=0))


@pytest.mark.parametrize("method", ["em", "inverse"])
def test_nineteen_of_twenty_intervals_hold_the_truth(method: str) -> None:
    random, truth = np.random.default_rng(3), PEOPLE / JOINT.n
    held, off = [], []
    for _ in range(400):
        found = estimate(drawn(GRR, random), GRR, method="em" if method == "em" else "inverse")
        assert found.frequencies.sum() == pytest.approx(1)
        held.append((found.lower <= truth) & (truth <= found.upper))
        assert ((found.lower <= found.frequencies) & (found.frequencies <= found.upper)).all()
        off.append(found.frequencies - truth)
    # Of 2,400 that are hardly dependent, four standard deviations.
    assert np.mean(held) == pytest.approx(0.95, abs=0.018)
    expected = expected_errors(JOINT, GRR)
    assert expected is not None
    assert np.std(off, axis=0) == pytest.approx(expected.tables[2].errors, rel=0.15)
    assert found.errors == pytest.approx(expected.tables[2].errors, rel=0.1)


def test_intervals_that_hold_together_are_wider_and_do() -> None:
    random, truth = np.random.default_rng(11), PEOPLE / JOINT.n
    held = []
    for _ in range(150):
        found = estimate(drawn(GRR, random), GRR, simultaneous=True)
        held.append(((found.lower <= truth) & (truth <= found.upper)).all())
    # At least 95 %, by four standard deviations.
    assert np.mean(held) >= 0.95 - 4 * np.sqrt(0.95 * 0.05 / 150)
    counts = drawn(GRR, random)
    alone, together = estimate(counts, GRR), estimate(counts, GRR, simultaneous=True)
    np.testing.assert_array_equal(alone.errors, together.errors)
    assert (together.upper - together.lower > alone.upper - alone.lower).all()
    assert str(together).endswith("intervals at 95%, all of them together")


def test_errors_of_a_sample_are_larger_by_what_a_sample_errs() -> None:
    counts = drawn(GRR, np.random.default_rng(5))
    alone, sample = estimate(counts, GRR), estimate(counts, GRR, sampling=True)
    np.testing.assert_array_equal(alone.frequencies, sample.frequencies)
    shares = alone.frequencies
    assert sample.errors**2 == pytest.approx(alone.errors**2 + shares * (1 - shares) / JOINT.n, rel=1e-6)
    assert "population" in str(sample)
    assert "population" not in str(alone)


def test_a_column_is_estimated_as_the_sum_of_its_combinations() -> None:
    counts = drawn(GRR, np.random.default_rng(8))
    every, column = estimate(counts, GRR), estimate(counts, GRR, by="n")
    assert every.cells == GRR.inputs.symbols
    assert (column.columns, column.cells) == (("n",), (("1",), ("2",), ("3",)))
    assert column.frequencies == pytest.approx(every.frequencies.reshape(2, 3).sum(axis=0))
    crossed = estimate(counts, GRR, by=["n", "x"])
    assert crossed.cells[:2] == (("1", "a"), ("2", "a"))


def test_what_is_told_only_in_sum_is_said_so_and_what_is_left_of_it_holds_the_truth() -> None:
    random = np.random.default_rng(2)
    truth = np.bincount([0, 1, 2, 0, 1, 2], PEOPLE / JOINT.n)
    held = []
    for _ in range(15):
        found = estimate(drawn(SINGULAR, random), SINGULAR, by="n")
        assert np.isnan(found.errors).tolist() == [True, True, False]
        (group,) = found.together
        assert group.cells == (("1",), ("2",))
        held.append(
            group.lower <= truth[:2].sum() <= group.upper and ((found.lower <= truth) & (truth <= found.upper)).all()
        )
        # As much of the sum as there is may be of either.
        assert found.upper[:2] == pytest.approx([group.frequency] * 2, abs=0.1)
    # Nothing is drawn between 3 and the others.
    assert all(held)
    assert "1 + 2" in str(found)
    assert "not told" in str(found)
    assert json.loads(json.dumps(found.to_dict()))["cells"][0]["frequency"] is None


def test_what_is_published_as_it_is_is_counted() -> None:
    same = made(np.eye(6).tolist())
    found = estimate(PEOPLE, same)
    np.testing.assert_allclose(found.frequencies, PEOPLE / JOINT.n, atol=1e-12)
    assert not found.errors.any()
    assert (found.upper - found.lower < 1e-10).all()


def test_a_bootstrap_agrees_with_what_is_computed_and_repeats_by_its_seed() -> None:
    counts = drawn(GRR, np.random.default_rng(4))
    computed, simulated = estimate(counts, GRR), estimate(counts, GRR, bootstrap=300, seed=1)
    assert simulated.errors == pytest.approx(computed.errors, rel=0.2)
    # An end of an interval is known to about a tenth of an error from 300 releases.
    assert (np.abs(simulated.lower - computed.lower) < 0.5 * computed.errors).all()
    np.testing.assert_array_equal(simulated.errors, estimate(counts, GRR, bootstrap=300, seed=1).errors)


def test_tables_of_every_kind_give_the_same_counts(tmp_path: Path) -> None:
    counts = drawn(GRR, np.random.default_rng(9))
    rows = [symbol for symbol, number in zip(GRR.outputs.symbols, counts, strict=True) for _ in range(number)]
    frame = pd.DataFrame(rows, columns=["x", "n"])
    table = pa.Table.from_pandas(frame)
    pq.write_table(table.append_column("else", pa.array(range(len(frame)))), tmp_path / "records.parquet")
    expected = estimate(counts, GRR).frequencies
    for released in (frame, table, tmp_path / "records.parquet"):
        np.testing.assert_array_equal(estimate(released, GRR).frequencies, expected)


def test_columns_beside_the_protocol_make_groups_that_are_estimated_by_themselves() -> None:
    random = np.random.default_rng(6)
    parts = {region: drawn(GRR, random) for region in ("south", "north")}
    rows = [
        (region, *symbol)
        for region, counts in parts.items()
        for symbol, number in zip(GRR.outputs.symbols, counts, strict=True)
        for _ in range(number)
    ]
    frame = pd.DataFrame(rows, columns=["region", "x", "n"])
    found = estimate(frame, GRR, by=["n", "region"], sampling=True)
    assert (found.columns, found.given, found.records) == (("n", "region"), ("region",), 2 * JOINT.n)
    assert "given region" in str(found)
    for place, region in enumerate(("north", "south")):
        alone = estimate(parts[region], GRR, by="n", sampling=True)
        part = slice(3 * place, 3 * place + 3)
        assert found.cells[part] == tuple((n, region) for n in "123")
        np.testing.assert_array_equal(found.frequencies[part], alone.frequencies)
        np.testing.assert_array_equal(found.lower[part], alone.lower)
    with pytest.raises(DataError, match="age"):
        estimate(frame, GRR, by="age")


def test_what_does_not_fit_is_said() -> None:
    known = GRR.outputs.symbols[0]
    frame = pd.DataFrame([known, ("z", "1"), (None, "1")], columns=["x", "n"])
    with pytest.raises(DataError, match="2 records have values that this protocol never publishes"):
        estimate(frame, GRR)
    with pytest.raises(DataError, match="no records"):
        estimate(np.zeros(6, dtype=int), GRR)
    with pytest.raises(DataError, match="6 whole numbers"):
        estimate(np.ones(5, dtype=int), GRR)
    with pytest.raises(SpecError, match="'age' is no column; the protocol is about x, n"):
        estimate(PEOPLE, GRR, by="age")
    with pytest.raises(SpecError, match="name columns once each"):
        estimate(PEOPLE, GRR, by=["x", "x"])
    with pytest.raises(SpecError, match="unknown method"):
        estimate(PEOPLE, GRR, method="guess")  # type: ignore[arg-type]
    with pytest.raises(SpecError, match="between 0 and 1"):
        estimate(PEOPLE, GRR, confidence=95)
    with pytest.raises(SpecError, match="at least 100"):
        estimate(PEOPLE, GRR, bootstrap=10)


@given(st.lists(st.lists(st.integers(1, 20), min_size=3, max_size=3), min_size=3, max_size=5), st.data())
def test_no_shares_are_likelier_than_the_gap_says(rows: list[list[int]], data: st.DataObject) -> None:
    channel = np.array(rows, dtype=float)
    channel /= channel.sum(axis=0)
    counts = np.array(data.draw(st.lists(st.integers(0, 50), min_size=len(rows), max_size=len(rows)))) + 1.0
    seen = counts / counts.sum()
    found = likeliest_shares(channel, seen, 1e-9)
    assert found.shares.sum() == pytest.approx(1)
    reached = float(seen @ np.log(channel @ found.shares))
    for weights in np.random.default_rng(0).dirichlet(np.ones(3), 200):
        assert float(seen @ np.log(channel @ weights)) <= reached + found.gap + 1e-12
    assert found.gap <= 1e-9 or found.steps >= 20_000


@given(st.lists(st.floats(-2, 2), min_size=1, max_size=6))
def test_the_nearest_distribution_is_nearer_than_others(values: list[float]) -> None:
    point = np.array(values)
    distribution = on_simplex(point)
    assert distribution.min() >= 0
    assert distribution.sum() == pytest.approx(1)
    for other in np.random.default_rng(0).dirichlet(np.ones(len(values)), 50):
        assert np.linalg.norm(point - distribution) <= np.linalg.norm(point - other) + 1e-9


def test_its_arrays_are_in_the_order_of_the_protocol() -> None:
    found = estimate(PEOPLE, GRR)
    assert isinstance(found, Estimate)
    assert [len(part) for part in (found.frequencies, found.errors, found.lower, found.upper)] == [6] * 4
    assert int(DENOMINATOR) == GRR.denominator
    assert (found.lower <= found.upper).all()


def test_shares_within_a_part_are_of_its_records_and_their_intervals_hold_them() -> None:
    random, held = np.random.default_rng(6), []
    parts = PEOPLE.reshape(2, 3)
    truth = (parts / parts.sum(axis=1, keepdims=True)).ravel()
    for _ in range(300):
        found = estimate(drawn(GRR, random), GRR, "n", within="x")
        held.append((found.lower <= truth) & (truth <= found.upper))
        assert ((found.lower <= found.frequencies) & (found.frequencies <= found.upper)).all()
        assert found.frequencies.reshape(2, 3).sum(axis=1) == pytest.approx(1)
    assert (found.columns, found.given, found.cells) == (("x", "n"), ("x",), INPUTS.symbols)
    # Four standard deviations of 300.
    assert np.mean(held, axis=0) == pytest.approx(0.95, abs=0.05)
    counts = drawn(GRR, random)
    whole, inside = estimate(counts, GRR), estimate(counts, GRR, within="x")
    sums = whole.frequencies.reshape(2, 3).sum(axis=1)
    assert inside.frequencies == pytest.approx(whole.frequencies / np.repeat(sums, 3))
    together = estimate(counts, GRR, within="x", simultaneous=True)
    assert (together.upper - together.lower >= inside.upper - inside.lower).all()
    np.testing.assert_array_equal(together.errors, inside.errors)


def test_a_share_that_can_be_anything_is_printed_as_not_told() -> None:
    """A ratio has a figure where both of its parts have one; whether that says something, its interval knows."""
    found = estimate(np.array([1, 0, 0, 1, 0, 0]), GRR, "n", within="x")
    everything = (found.lower <= 0) & (found.upper >= 1)
    assert everything.any()
    assert np.isfinite(found.frequencies).all()
    printed = str(found).splitlines()[1:-1]
    assert [("not told" in line) for line in printed] == everything.tolist()


def test_shares_within_groups_of_another_column_are_those_of_each_group() -> None:
    random = np.random.default_rng(14)
    counts = drawn(GRR, random), drawn(GRR, random)
    tables = [
        pd.DataFrame(list(GRR.outputs.symbols), columns=list(GRR.outputs.columns)).loc[np.repeat(np.arange(6), some)]
        for some in counts
    ]
    both = pd.concat([tables[0].assign(region="north"), tables[1].assign(region="south")])
    found = estimate(both, GRR, ["n", "region"], within="x")
    alone = estimate(counts[1], GRR, "n", within="x")
    assert found.given == ("region", "x")
    assert found.cells[6] == ("a", "1", "south")
    np.testing.assert_allclose(found.frequencies[6:], alone.frequencies)
    np.testing.assert_allclose(found.upper[6:], alone.upper)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"within": "region"}, "'region' is no column"),
        ({"by": "n", "within": "n"}, "name columns once each"),
        ({"within": ("x", "n")}, "name columns once each"),
        ({"within": "x", "bootstrap": 200}, "leave out the bootstrap"),
    ],
)
def test_parts_that_make_no_sense_are_refused(settings: dict[str, object], reason: str) -> None:
    with pytest.raises(SpecError, match=reason):
        estimate(PEOPLE, GRR, **settings)  # type: ignore[arg-type]


def test_a_fit_that_is_not_found_is_refused_and_another_method_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("funnel.estimation.likelihood._MOST_STEPS", 3)
    with pytest.raises(SolverError, match=r'not found in 3 steps.*method="inverse"'):
        estimate(PEOPLE[::-1].copy(), GRR)
    assert estimate(PEOPLE[::-1].copy(), GRR, method="inverse").frequencies.sum() == pytest.approx(1)


def test_the_likeliest_shares_are_found_where_values_are_hardly_told_apart() -> None:
    random = np.random.default_rng(0)
    for case in range(120):
        a, b, n = int(random.integers(2, 30)), int(random.integers(2, 40)), int(random.choice([100, 5_000, 50_000]))
        channel = random.dirichlet(np.full(b, 0.3), a).T
        if case % 3 == 0:
            channel = 0.97 * channel[:, [0]] + 0.03 * channel
        if case % 4 == 0 and a > 3:
            channel[:, 1], channel[:, 2] = channel[:, 0], (channel[:, 0] + channel[:, 3]) / 2
        counts = random.multinomial(
            n, (distribution := channel @ random.dirichlet(np.full(a, 0.2))) / distribution.sum()
        )
        found = likeliest_shares(channel, counts / n, 1e-5 / n)
        assert found.gap <= 1e-5 / n, case
        assert found.shares.sum() == pytest.approx(1)
        assert (found.shares >= 0).all()


def test_values_given_for_within_are_refused_instead_of_being_ignored() -> None:
    chosen: Any = {"x": "a"}
    with pytest.raises(SpecError, match="'x' has values, and shares are within every value"):
        estimate(np.array([1, 0, 0, 1, 0, 0]), GRR, "n", within=chosen)
