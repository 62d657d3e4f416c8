"""Wide tables: classes, bound and balance of whole records, refusals, and the draws."""

from __future__ import annotations

import math
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import funnel
from funnel import DataError, Guarantee, Joint, SpecError
from funnel.alphabet import CLASS_COLUMN
from funnel.disclosure import Rules
from funnel.donors.wide_tables import ColumnsSolution, fit_columns
from funnel.solver.invariant import invariant_optimum

ADULT = Path(__file__).parents[3] / "data" / "adult.parquet"
FOUR = ["education", "sex", "race", "relationship"]
WIDE = [*FOUR, "occupation", "workclass", "marital-status", "native-country", "capital-loss", "education-num", "split"]


@pytest.fixture(scope="module")
def found() -> ColumnsSolution:
    return fit_columns(ADULT, [["education", "sex"], ["race"], ["relationship"]], funnel.LIP(1.0), ["income"])


@pytest.mark.parametrize("guarantee", [funnel.LIP(1.0), funnel.ALIP(1.2, 0.4), funnel.LDP(0.8), funnel.PML(0.5)])
def test_bound_and_balance_hold_over_classes(guarantee: Guarantee) -> None:
    joint = Joint.from_table(ADULT, ["income"], FOUR)
    found = fit_columns(joint, FOUR, guarantee, least=500)
    counted = found.classes.counted(joint)
    sizes = counted.counts.sum(axis=0)
    assert sizes.min() >= 500
    assert guarantee.holds(counted, found.protocol)
    assert found.level <= guarantee.budget
    assert np.abs(found.protocol.matrix @ sizes / joint.n - sizes / joint.n).max() <= 1e-12
    best = invariant_optimum(counted, guarantee, "share", gap=1e-6)
    assert found.unchanged >= best.utility - 2e-4
    assert found.bound >= best.utility - 1e-6
    assert 0 <= found.gap <= 1e-4


def test_classes_keep_the_rules() -> None:
    joint = Joint.from_table(ADULT, ["income"], FOUR)
    rules = Rules(minimum_cell=30, dominance=0.6, by_class=True)
    counted = fit_columns(joint, FOUR, funnel.LIP(1.0), least=50, rules=rules).classes.counted(joint)
    assert not rules.small(counted.counts).any()
    assert not rules.dominant(counted.counts, counted.counts.sum(axis=0), counted.counts.sum(axis=1), joint.n).any()


def test_several_guarantees_hold_together(found: ColumnsSolution) -> None:
    both = funnel.Several([funnel.LIP(1.0), funnel.LDP(1.1)])
    joint = Joint.from_table(ADULT, ["income"], FOUR)
    together = fit_columns(joint, FOUR, both)
    assert fit_columns(joint, FOUR, list(both.parts)).protocol.digest == together.protocol.digest
    assert all(part.holds(together.classes.counted(joint), together.protocol) for part in both.parts)
    assert together.unchanged < found.unchanged
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
    assert found.unchanged > 0.9
    assert found.level <= 1


# Guarantee, and columns that observers may know; the secret is published under attribute.
DRAWN = [(funnel.LIP(1.0), ()), ([funnel.LIP(1.0), funnel.SRLIP(1.0)], ("sex",)), (funnel.Attribute(1.0), ())]


@pytest.mark.parametrize(("guarantee", "known"), DRAWN)
def test_draws_are_what_was_expected(guarantee: Guarantee | list[Guarantee], known: tuple[str, ...]) -> None:
    """Shares of unchanged values by column, and counts of every value, are within seven standard errors."""
    columns = ["income", *FOUR] if isinstance(guarantee, funnel.Attribute) else FOUR
    found = fit_columns(ADULT, [columns[:2], *columns[2:]], guarantee, "income", known=known)
    source = pq.read_table(ADULT, columns=columns)
    drawn = funnel.sanitise(ADULT, found.protocol, classes=found.classes, shuffle=False)
    assert drawn.column_names == [*columns, CLASS_COLUMN]
    assert [*found.by_column] == columns
    n = source.num_rows
    kept = np.ones(n, dtype=bool)
    for column in columns:
        texts, shown = (np.array(part[column].to_pylist()) for part in (source, drawn))
        share, same = found.by_column[column], texts == shown
        kept &= same
        assert abs(same.mean() - share) <= 7 * math.sqrt(max(0.0, share * (1 - share)) / n) + 1e-12
        # Each count is a sum of independent zeros and ones, of those with the value and of those who come to it.
        true, published = Counter(texts.tolist()), Counter(shown.tolist())
        assert published.keys() <= true.keys()
        assert all(abs(published[value] - number) <= 7 * math.sqrt(number) + 7 for value, number in true.items())
    # Whoever changes class changes something that a question is about.
    share = found.unchanged
    assert abs(kept.mean() - share) <= 7 * math.sqrt(share * (1 - share) / n)


def test_a_secret_is_published_under_a_bound_for_those_who_know_all_else() -> None:
    joint = Joint.from_table(ADULT, ["income"], FOUR)
    found = fit_columns(joint, [["income"], FOUR[::-1]], funnel.Attribute(1.0))
    channel, inputs = found.protocol.matrix, found.protocol.inputs
    assert inputs.columns == ("income", CLASS_COLUMN)
    assert found.classes.columns == tuple(FOUR[::-1])
    place = {symbol: number for number, symbol in enumerate(inputs.symbols)}
    into = np.array([symbol[1] for symbol in inputs.symbols])
    for name in found.classes.names:
        low, high = (channel[:, place[value, name]] for value in ("<=50K", ">50K"))
        assert np.maximum(low, high).max() > 0
        assert (low <= math.exp(1.0) * high + 1e-15).all()
        assert (high <= math.exp(1.0) * low + 1e-15).all()
        # Whether a record changes its class is drawn unseen by its secret.
        assert all(abs((low - high)[into == other].sum()) <= 1e-9 for other in found.classes.names)
    assert 0.75 < found.unchanged <= found.bound <= found.unchanged + 1e-4
    assert found.level <= 1
    assert found.unchanged < min(found.by_column.values())


def test_values_are_laid_out_alike_whatever_order_they_are_counted_in(found: ColumnsSolution) -> None:
    joint = Joint.from_table(ADULT, ["income"], FOUR)
    order = np.random.default_rng(0).permutation(len(joint.inputs))
    symbols = tuple(joint.inputs.symbols[x] for x in order)
    mixed = Joint.from_counts(joint.counts[:, order], joint.secret, funnel.Alphabet(joint.inputs.columns, symbols))
    again = fit_columns(mixed, FOUR, funnel.LIP(1.0))
    assert again.by_column == pytest.approx(found.by_column, abs=1e-9)


def test_records_that_were_not_there_have_classes_too(found: ColumnsSolution) -> None:
    """A protocol is for any records of these columns; donors are those of the table that is drawn."""
    some = pq.read_table(ADULT, columns=FOUR).slice(0, 5_000)
    drawn = funnel.sanitise(some, found.protocol, classes=found.classes)
    true = set(zip(*(some[column].to_pylist() for column in FOUR), strict=True))
    rows = list(zip(*(drawn[column].to_pylist() for column in FOUR), strict=True))
    assert len(rows) == 5_000
    assert set(rows) <= true
    different = tuple(dict.fromkeys(rows))
    of = found.classes.of_records(funnel.Alphabet(tuple(FOUR), different))
    names = {row: found.classes.names[number] for row, number in zip(different, of.tolist(), strict=True)}
    assert [names[row] for row in rows] == drawn[CLASS_COLUMN].to_pylist()


def test_the_same_records_have_the_same_answers_by_a_key(found: ColumnsSolution) -> None:
    some = pq.read_table(ADULT, columns=FOUR).slice(0, 5_000)
    some = some.append_column("id", pa.array([str(i) for i in range(5_000)]))
    key = funnel.RecordKey(("id",), bytes(range(32)))
    first, second = (funnel.sanitise(some, found.protocol, key, classes=found.classes) for _ in range(2))
    assert first.equals(second)


def test_what_cannot_be_drawn_is_refused(found: ColumnsSolution) -> None:
    source = pq.read_table(ADULT, columns=FOUR)
    other = fit_columns(ADULT, FOUR, funnel.LIP(0.5), ["income"], least=5_000)
    with pytest.raises(SpecError, match="take both of one solution"):
        funnel.sanitise(source, found.protocol, classes=other.classes)
    with pytest.raises(DataError, match="nobody is a donor there"):
        funnel.sanitise(source.slice(0, 30), found.protocol, classes=found.classes)
    with pytest.raises(DataError, match="no row"):
        funnel.sanitise(source.slice(0, 0), found.protocol, classes=found.classes)
    with pytest.raises(DataError, match="'race'"):
        funnel.sanitise(source.drop_columns(["race"]), found.protocol, classes=found.classes)


@pytest.mark.parametrize(
    ("groups", "guarantee", "secret", "said"),
    [
        ([["sex"], ["race"]], funnel.SRLIP(1.0), ["income"], "choose lip, alip, ldp or pml"),
        ([["sex"], ["race"]], funnel.PerfectPrivacy(), ["income"], "choose lip, alip, ldp or pml"),
        ([["sex"], ["race"]], funnel.LIP(0.0), ["income"], "choose lip, alip, ldp or pml"),
        ([["sex"], ["sex"]], funnel.LIP(1.0), ["income"], "'sex' is in the groups twice"),
        ([["sex"], []], funnel.LIP(1.0), ["income"], "name the columns to publish"),
        ([], funnel.LIP(1.0), ["income"], "name the columns to publish"),
        ([["sex"], ["income"]], funnel.LIP(1.0), ["income"], "ask for attribute:1.0"),
        ([["income"]], funnel.Attribute(1.0), ["income"], "and others with them"),
        ([["sex"], ["income"]], funnel.Attribute(1.0), ["income", "race"], "publish all columns of the secret"),
        ([["sex"], ["race"]], funnel.Attribute(1.0), ["income"], "publish the secret under attribute"),
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


def test_one_class_is_no_protection() -> None:
    joint = Joint.from_table(ADULT, ["income"], ["sex", "race"])
    with pytest.raises(DataError, match="too few"):
        fit_columns(joint, ["sex", "race"], funnel.LIP(1.0), least=40_000)
