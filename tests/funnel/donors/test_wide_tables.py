"""Wide tables: bound, balance and optimum against brute force over all records, refusals, and the draws."""

from __future__ import annotations

import itertools
import math
import time
from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import funnel
from funnel import Alphabet, DataError, Guarantee, Joint, SpecError
from funnel.donors import ColumnsSolution, fit_columns
from funnel.donors.expansion import expanded
from funnel.donors.posterior_classes import PosteriorClasses
from funnel.donors.wide_tables import is_balanced
from funnel.solver.invariant import invariant_optimum

ADULT = Path(__file__).parents[3] / "data" / "adult.parquet"
FOUR = ["education", "sex", "race", "relationship"]
WIDE = [*FOUR, "occupation", "workclass", "marital-status", "native-country", "capital-loss", "education-num", "split"]
GUARANTEES = (funnel.LIP(1.0), funnel.LIP(0.3), funnel.ALIP(1.2, 0.4), funnel.LDP(0.8), funnel.PML(0.5))


@st.composite
def tables(draw: st.DrawFn) -> Joint:
    """Counts of 2 or 3 secrets over some of the records of two or three columns."""
    sizes = draw(st.lists(st.integers(2, 3), min_size=2, max_size=3))
    records = list(itertools.product(*(range(size) for size in sizes)))
    c = draw(st.integers(2, 3))
    cells = st.one_of(st.just(0), st.just(1), st.integers(0, 6), st.integers(0, 3000))
    counts = np.array([[draw(cells) for _ in records] for _ in range(c)])
    counts[draw(st.integers(0, c - 1)), draw(st.integers(0, len(records) - 1))] += 1
    columns = tuple(f"c{j}" for j in range(len(sizes)))
    return Joint.from_counts(counts, inputs=Alphabet(columns, tuple(tuple(map(str, r)) for r in records)))


def channel_of(joint: Joint, found: ColumnsSolution) -> dict[tuple[str, ...], dict[tuple[str, ...], Fraction]]:
    """``P(Y = y | X = x)`` of all records that somebody has."""
    protocol = found.protocol
    there = [symbol for symbol, some in zip(joint.inputs.symbols, joint.counts.any(axis=0), strict=True) if some]
    channel = {}
    for x in there:
        outputs, weights = protocol.law(protocol.inputs.index(x))
        channel[x] = {
            protocol.outputs.symbols[y]: Fraction(int(w), 2**63)
            for y, w in zip(outputs.tolist(), weights.tolist(), strict=True)
        }
    return channel


def ratios(guarantee: Guarantee, masses: list[Fraction], prior: list[int]) -> bool:
    """Whether P(s, y) of an output is within a guarantee, from its definition; e^ε a little larger than it is."""
    lifts = [Fraction(m) / n for m, n in zip(masses, prior, strict=True) if n]
    middle = sum(masses) / sum(prior)

    def most(budget: float) -> Fraction:
        return Fraction(math.exp(budget)) * (1 + Fraction(1, 2**45))

    if isinstance(guarantee, funnel.LDP):
        return max(lifts) <= most(guarantee.epsilon) * min(lifts)
    if isinstance(guarantee, funnel.PML):
        return max(lifts) <= most(guarantee.epsilon) * middle
    up, down = (
        (guarantee.upper, guarantee.lower)
        if isinstance(guarantee, funnel.ALIP)
        else (guarantee.budget, guarantee.budget)
    )
    return max(lifts) <= most(up) * middle and middle <= most(down) * min(lifts)


@settings(max_examples=60)
@given(tables(), st.sampled_from(GUARANTEES), st.data())
def test_all_that_is_promised_by_brute_force(joint: Joint, guarantee: Guarantee, data: st.DataObject) -> None:
    columns = data.draw(st.permutations(joint.inputs.columns))
    found = fit_columns(joint, [[column] for column in columns], guarantee)
    channel = channel_of(joint, found)
    records = {x: [int(n) for n in joint.counts[:, joint.inputs.index(x)]] for x in channel}
    prior = [int(n) for n in joint.counts.sum(axis=1)]

    published: dict[tuple[str, ...], list[Fraction]] = {}
    stays, by_column = Fraction(0), [Fraction(0)] * len(columns)
    for x, law in channel.items():
        assert sum(law.values()) == 1
        for y, chance in law.items():
            assert y in records  # Combinations that nobody has are never published.
            masses = published.setdefault(y, [Fraction(0)] * len(prior))
            published[y] = [m + n * chance for m, n in zip(masses, records[x], strict=True)]
            stays += sum(records[x]) * chance * (x == y)
            by_column = [b + sum(records[x]) * chance * (x[j] == y[j]) for j, b in enumerate(by_column)]
    for y, own in records.items():
        assert abs(sum(published[y]) - sum(own)) <= Fraction(joint.n, 10**12)
    for size in range(1, len(columns) + 1):
        for seen in itertools.combinations(range(len(columns)), size):
            parts: dict[tuple[str, ...], list[Fraction]] = {}
            for y, masses in published.items():
                part = parts.setdefault(tuple(y[j] for j in seen), [Fraction(0)] * len(prior))
                part[:] = [a + b for a, b in zip(part, masses, strict=True)]
            assert all(ratios(guarantee, masses, prior) for masses in parts.values())

    assert found.unchanged == pytest.approx(float(stays / joint.n), abs=1e-12)
    assert list(found.by_column.values()) == pytest.approx([float(b / joint.n) for b in by_column], abs=1e-12)
    assert found.level <= guarantee.budget
    # No invariant channel that reads whole records does better: the optimum without any classes is the same.
    best = invariant_optimum(joint.occurring, guarantee, "share", gap=1e-6)
    assert found.unchanged >= best.utility - 2e-4
    assert found.bound >= best.utility - 1e-6


def test_a_target_of_exact_counts_is_noticed() -> None:
    exact = Joint.from_table(ADULT, ["income"], FOUR)
    moved = np.array(exact.counts)
    moved[:, 0] += 1
    protected = Joint(moved, exact.secret, exact.inputs)
    weights = fit_columns(exact, FOUR, funnel.LIP(1.0)).protocol.sparse
    assert is_balanced(exact, weights)
    assert not is_balanced(protected, weights)


def test_classes_that_are_no_posterior_are_noticed() -> None:
    """Records of two posteriors taken for one class would each need what their mean needs."""
    joint = Joint.from_table(ADULT, ["income"], FOUR)
    right = PosteriorClasses.of(joint)
    shares = right.joint.secret_given_input[0]
    merged = np.where(right.of_record == shares.argmin(), shares.argmax(), right.of_record)
    _, of_record = np.unique(merged, return_inverse=True)
    counts = np.zeros((2, of_record.max() + 1), dtype=np.int64)
    np.add.at(counts, (slice(None), of_record), joint.counts)
    wrong = PosteriorClasses(of_record, Joint.from_counts(counts))
    codes = np.zeros((len(joint.inputs), 1), dtype=np.int64)
    for classes, holds in ((right, True), (wrong, False)):
        made = invariant_optimum(classes.joint, funnel.LIP(1.0).tightened(1e-5), "share")
        weights = expanded(joint, classes, made.protocol.weights, codes)
        assert is_balanced(joint, weights)
        assert funnel.LIP(1.0).sparse_holds(joint, weights) is holds


def test_what_is_within_the_bound_stays() -> None:
    joint = Joint.from_counts([[30, 31], [29, 30]], inputs=Alphabet(("a", "b"), (("1", "2"), ("2", "1"))))
    found = fit_columns(joint, ["a", "b"], funnel.LIP(1.0))
    assert found.unchanged == 1.0
    assert found.gap == 0.0
    assert len(found.protocol.sparse.values) == 2


def test_columns_of_early_groups_stay() -> None:
    records = Alphabet(("a", "b"), (("0", "0"), ("0", "1"), ("1", "0"), ("1", "1")))
    joint = Joint.from_counts([[50, 0, 0, 50], [0, 50, 50, 0]], inputs=records)
    for groups in (["a"], ["b"]), (["b"], ["a"]):
        found = fit_columns(joint, groups, funnel.LIP(0.4))
        first, second = groups[0][0], groups[1][0]
        assert found.by_column[first] == 1
        assert found.by_column[second] == pytest.approx(found.unchanged)
        assert found.unchanged == pytest.approx(1 - math.exp(-0.4) / 2, abs=1e-6)


def test_several_guarantees_hold_together() -> None:
    joint = Joint.from_table(ADULT, ["income"], FOUR)
    both = funnel.Several([funnel.LIP(1.0), funnel.LDP(1.1)])
    found = fit_columns(joint, FOUR, both)
    assert all(part.holds(joint, found.protocol) for part in both.parts)
    assert found.level <= both.budget
    alone = [fit_columns(joint, FOUR, part).unchanged for part in both.parts]
    assert found.unchanged < min(alone) + 1e-4
    with pytest.raises(SpecError, match="choose lip, alip, ldp or pml"):
        fit_columns(joint, FOUR, funnel.Several([funnel.LIP(1.0), funnel.SRLIP(1.0)]))


def test_more_than_two_secrets() -> None:
    found = fit_columns(pq.read_table(ADULT), [["education"], ["sex"]], funnel.LIP(1.0), ["marital-status"])
    assert 0.9 < found.unchanged <= found.bound <= 1
    assert found.gap <= 1e-4


def test_a_dozen_columns_of_adult() -> None:
    table = pq.read_table(ADULT, columns=["income", *WIDE])
    began = time.process_time()
    found = fit_columns(table, WIDE, funnel.LIP(1.0), ["income"])
    assert time.process_time() - began < 60
    assert found.gap <= 1e-4
    assert found.unchanged > 0.85
    assert found.level <= 1
    assert funnel.LIP(1.0).holds(Joint.from_table(table, ["income"], WIDE), found.protocol)


def test_draws_have_the_chances_of_the_weights() -> None:
    """Each count of (true, published) records is within what happens in all but 10^-11 of the runs (Hoeffding)."""
    rows = {("ill", "old", "f"): 3000, ("ill", "old", "m"): 400, ("ill", "young", "f"): 90, ("well", "old", "f"): 1200}
    rows |= {("well", "old", "m"): 3100, ("well", "young", "f"): 1700, ("well", "young", "m"): 6000}
    records = [row for row, number in rows.items() for _ in range(number)]
    table = pa.table({name: [row[j] for row in records] for j, name in enumerate(("health", "age", "sex"))})
    found = fit_columns(table, [["age"], ["sex"]], funnel.LIP(0.4), ["health"])
    assert 0.5 < found.unchanged < 0.99
    drawn = funnel.sanitise(table, found.protocol, shuffle=False)
    assert drawn.column_names == ["age", "sex"]
    both = [part[column].to_pylist() for part in (table, drawn) for column in ("age", "sex")]
    seen = Counter(zip(*both, strict=True))
    people = Counter(row[1:] for row in records)
    protocol = found.protocol
    for x, number in people.items():
        outputs, weights = protocol.law(protocol.inputs.index(x))
        chances = dict(zip(outputs.tolist(), (weights / 2.0**63).tolist(), strict=True))
        for y, symbol in enumerate(protocol.outputs.symbols):
            expected = number * chances.get(y, 0.0)
            # 2 exp(-2 t² / n) is 2 · 10^-12 for t² = 13.8 n; of a weight of zero nothing is drawn.
            most = math.sqrt(13.8 * number) if y in chances else 0.0
            assert abs(seen[*x, *symbol] - expected) <= most
    # A count of published records varies no more than that of as many independent draws: Hoeffding again.
    published = Counter(zip(*both[2:], strict=True))
    assert all(abs(published[x] - number) <= math.sqrt(13.8 * len(records)) for x, number in people.items())


@pytest.mark.parametrize(
    ("groups", "guarantee", "secret", "said"),
    [
        ([["sex"], ["race"]], funnel.SRLIP(1.0), ["income"], "choose lip, alip, ldp or pml"),
        ([["sex"], ["race"]], funnel.PerfectPrivacy(), ["income"], "choose lip, alip, ldp or pml"),
        ([["sex"], ["race"]], funnel.LIP(0.0), ["income"], "choose lip, alip, ldp or pml"),
        ([["sex"], ["sex"]], funnel.LIP(1.0), ["income"], "'sex' is in the groups twice"),
        ([["sex"], []], funnel.LIP(1.0), ["income"], "name the columns to publish"),
        ([], funnel.LIP(1.0), ["income"], "name the columns to publish"),
        ([["sex"], ["income"]], funnel.LIP(1.0), ["income"], "'income' is the secret"),
        ([["sex"], ["race"]], funnel.LIP(1.0), None, "name the columns of the secret"),
    ],
)
def test_refused(groups: list[list[str]], guarantee: Guarantee, secret: list[str] | None, said: str) -> None:
    with pytest.raises(SpecError, match=said) as error:
        fit_columns(ADULT, groups, guarantee, secret)
    assert str(error.value).count(". ") == 0


def test_unknown_columns_are_refused() -> None:
    with pytest.raises(DataError, match="'size'"):
        fit_columns(ADULT, [["sex"], ["size"]], funnel.LIP(1.0), ["income"])
    joint = Joint.from_table(ADULT, ["income"], ["sex", "race"])
    with pytest.raises(SpecError, match="name each of them once"):
        fit_columns(joint, [["sex"]], funnel.LIP(1.0))
    with pytest.raises(SpecError, match="has the secret"):
        fit_columns(joint, [["sex"], ["race"]], funnel.LIP(1.0), ["age"])


def test_noisy_counts_are_refused() -> None:
    joint = funnel.protect(Joint.from_table(ADULT, ["income"], ["sex", "race"]), epsilon=1.0)
    with pytest.raises(SpecError, match="as_published"):
        fit_columns(joint, [["sex"], ["race"]], funnel.LIP(1.0))
    assert fit_columns(joint.as_published, [["sex"], ["race"]], funnel.LIP(1.0)).unchanged > 0.9
