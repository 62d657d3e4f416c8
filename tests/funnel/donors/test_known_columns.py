"""Known columns: what observers conclude from whole records who know some of these, from who takes whose place."""

from __future__ import annotations

from itertools import combinations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import funnel
from funnel.alphabet import CLASS_COLUMN, Alphabet
from funnel.donors.composition import Composition
from funnel.donors.growing import grown
from funnel.donors.record_classes import RecordClasses
from funnel.errors import DataError, SpecError
from funnel.guarantees import LIP, SRLIP, Several
from funnel.guarantees.published import meaning_for
from funnel.joint import Joint
from funnel.protocol import Protocol
from funnel.recount.classes import PlainClasses
from funnel.recount.published_classes import PublishedByClass, moves_of
from funnel.recount.released import ReleasedProtocol
from funnel.release.classes_document import classes_document
from funnel.sampling.donors import Donors
from funnel.settings.disclosure_rules import Rules
from funnel.solver.optimum import optimal

COLUMNS = ("place", "size", "colour", "shape")
KNOWN = ("size", "place")
FREE = Rules(1, 1.0, 1.0, by_class=True)


@st.composite
def joints(draw: st.DrawFn) -> Joint:
    """Records of four columns, with a secret of two or three values that depends on all of them."""
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    symbols = tuple((f"p{h}", f"s{i}", f"c{j}", f"f{k}") for h, i, j, k in np.ndindex(2, 3, 3, 2))
    tells = random.dirichlet(np.full(draw(st.integers(2, 3)), 0.7), len(symbols))
    counts = [random.multinomial(random.integers(1, 60), one) for one in tells]
    return Joint.from_counts(np.array(counts).T, inputs=Alphabet(COLUMNS, symbols))


def by_records(joint: Joint, classes: RecordClasses, protocol: Protocol) -> np.ndarray:
    """P(y | x) of records, shape (a, a), from who takes whose place."""
    donors = Donors.of(joint.inputs, joint.counts.sum(axis=0), classes, COLUMNS)
    moves, people = protocol.matrix, joint.counts.sum(axis=0)
    channel = np.diag(moves.diagonal()[donors.of_record])
    for source, target in zip(*np.nonzero(~np.eye(len(moves), dtype=bool)), strict=True):
        records, others, shares = donors.pairs(int(source), int(target))
        np.add.at(channel, (others, records), moves[target, source] * shares * donors.sizes[source] / people[records])
    return channel


def largest_change(joint: Joint, classes: RecordClasses, protocol: Protocol, known: tuple[str, ...]) -> float:
    """The largest |log| of a posterior over the prior of an observer who knows these columns, over all records seen."""
    channel, of_record = by_records(joint, classes, protocol), classes.of_records(joint.inputs)
    people, of_class = joint.counts.sum(axis=0), classes.counted(joint).counts
    belief = (of_class / of_class.sum(axis=0))[:, of_record] * people
    places = [joint.inputs.columns.index(column) for column in known]
    groups: dict[tuple[str, ...], list[int]] = {}
    for x, symbol in enumerate(joint.inputs.symbols):
        groups.setdefault(tuple(symbol[place] for place in places), []).append(x)
    largest = 0.0
    for members in groups.values():
        prior = belief[:, members].sum(axis=1)
        after = belief[:, members] @ channel[:, members].T
        seen = after.sum(axis=0) > 1e-7
        there = prior > 0
        with np.errstate(divide="ignore"):
            changes = (
                np.log(after[there][:, seen] / after[:, seen].sum(axis=0)) - np.log(prior[there] / prior.sum())[:, None]
            )
        largest = max(largest, float(np.abs(changes).max()))
    return largest


def solved(joint: Joint, known: tuple[str, ...], epsilon: float) -> tuple[RecordClasses, Protocol]:
    classes = grown(joint, 20, FREE, known)
    bound = Several((LIP(epsilon), SRLIP(epsilon))) if known else LIP(epsilon)
    return classes, optimal(classes.counted(joint), bound, 1e-4, utility="unchanged", weights="share").protocol


@settings(max_examples=30)
@given(joints(), st.floats(0.3, 1.5))
def test_observers_of_any_known_columns_are_within_the_bound(joint: Joint, epsilon: float) -> None:
    classes, protocol = solved(joint, KNOWN, epsilon)
    assert protocol.inputs.columns == (*KNOWN, CLASS_COLUMN)
    for size in range(len(KNOWN) + 1):
        for some in combinations(KNOWN, size):
            assert largest_change(joint, classes, protocol, some) <= epsilon + 1e-6


@settings(max_examples=25)
@given(joints(), st.floats(0.3, 1.5))
def test_what_is_stated_of_observers_of_one_column_is_no_less_than_what_they_conclude(
    joint: Joint, epsilon: float
) -> None:
    """By what makes a report, and by the independent recomputation; of known columns both are within the bound."""
    classes, protocol = solved(joint, KNOWN, epsilon)
    true = {
        (joint.secret.symbols[s], joint.inputs.symbols[x]): int(joint.counts[s, x])
        for s, x in zip(*np.nonzero(joint.counts), strict=True)
    }
    plain = PlainClasses.parse(classes_document(classes).to_bytes())
    moves = moves_of(ReleasedProtocol.parse(protocol.to_json()), len(KNOWN))
    stated = PublishedByClass(plain, true, {}, moves).observed(epsilon)
    changes = {column: largest_change(joint, classes, protocol, (column,)) for column in COLUMNS}
    for column, change in changes.items():
        assert stated[column,][0] >= change - 1e-6
        assert column not in KNOWN or (stated[column,][0] <= epsilon + 1e-6 and stated[column,][1] == 0)
    found = Composition.of(joint, classes).concluded(protocol, epsilon)
    assert {one.columns for one in found} == {*stated}
    for one in found:
        assert one.level == pytest.approx(stated[one.columns][0], rel=1e-6, abs=1e-9)


@given(joints())
def test_all_records_of_a_class_have_the_same_known_values(joint: Joint) -> None:
    classes = grown(joint, 20, FREE, KNOWN)
    of_record = classes.of_records(joint.inputs)
    places = [COLUMNS.index(column) for column in KNOWN]
    for symbol, of in zip(joint.inputs.symbols, of_record, strict=True):
        assert classes.known_values[of] == tuple(symbol[place] for place in places)
    assert len(set(classes.known_values)) == 6


def test_a_bound_for_the_record_alone_does_not_cover_them() -> None:
    """The change that the tests above would not see if it could not be there."""
    random = np.random.default_rng(3)
    symbols = tuple((f"p{h}", f"s{i}", f"c{j}", f"f{k}") for h, i, j, k in np.ndindex(2, 3, 3, 2))
    counts = [random.multinomial(60, one) for one in random.dirichlet(np.full(2, 0.7), len(symbols))]
    joint = Joint.from_counts(np.array(counts).T, inputs=Alphabet(COLUMNS, symbols))
    classes, protocol = solved(joint, (), 1.0)
    assert largest_change(joint, classes, protocol, ()) <= 1 + 1e-6
    assert largest_change(joint, classes, protocol, ("size",)) > 1.5


def test_classes_for_other_known_values_are_refused() -> None:
    inputs = Alphabet(("a", "b"), (("x", "1"), ("x", "2"), ("y", "1"), ("y", "2")))
    joint = Joint.from_counts([[30, 10, 20, 5], [5, 20, 10, 30]], inputs=inputs)
    classes = grown(joint, 20, FREE, ["a"])
    further = Alphabet(("a", "b"), (("z", "1"),))
    with pytest.raises(DataError, match=r"values of 'a'.* no class"):
        classes.of_records(further)


def test_values_that_too_few_people_have_are_refused() -> None:
    inputs = Alphabet(("a", "b"), (("x", "1"), ("x", "2"), ("y", "1"), ("y", "2")))
    joint = Joint.from_counts([[300, 100, 200, 50], [50, 200, 0, 1]], inputs=inputs)
    with pytest.raises(DataError, match="values of a together; group these values"):
        grown(joint, 20, Rules(1, 0.9, 1.0, by_class=True), ["a"])


def test_the_promise_names_the_columns_that_it_is_for() -> None:
    bound = funnel.parse_guarantee("lip:1.0 & srlip:1.0")
    assert "who know any of sex, age, or all" in meaning_for(bound, ("sex", "age", CLASS_COLUMN), ("ill",), 0)
    alone = meaning_for(funnel.Attribute(1.0), ("ill", CLASS_COLUMN), ("ill",), 0)
    assert "who know none of the other columns, or all" in alone
    assert meaning_for(bound, ("sex", "age"), ("ill",), 0) == bound.meaning
    assert meaning_for(LIP(1.0), (CLASS_COLUMN,), ("ill",), 0) == LIP(1.0).meaning


def test_a_column_that_is_not_published_is_not_known() -> None:
    joint = Joint.from_counts([[30, 10], [5, 20]], inputs=Alphabet(("a",), (("x",), ("y",))))
    with pytest.raises(SpecError, match="known names 'size', which is not published"):
        funnel.fit_columns(joint, ["a"], LIP(1.0), known=["size"])
